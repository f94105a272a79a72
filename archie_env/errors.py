"""Every error the project raises on bad input: what was wrong, what was expected, and where."""


class ArchieError(ValueError):
    """Bad input of any kind."""


class RulesError(ArchieError):
    """A rule option outside what the engine can play; names the field, the value and the allowed range."""


class CardError(ArchieError):
    """A card, hand or deck that cannot be."""


class IllegalActionError(ArchieError):
    """An action that is not legal here; names the action, the legal ones and the position.  Nothing was played."""


class NotationError(ArchieError):
    """A text that does not parse; names the line."""


class OrderError(ArchieError):
    """A call that comes too early or too late, such as a step before ``reset``."""


class PlayerLeftError(Exception):
    """A person left: typed ``quit``, or the input ended.  Not bad input, so no `ArchieError`."""


class ConfigError(ArchieError):
    """A configuration with an unknown key or an impossible value; names the file, the key and what is allowed."""
