"""Every error the project raises on bad input, and values in error messages.

A message is one line: the value refused, the value expected, and where.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ILLEGAL: Final = "illegal action"
MALFORMED: Final = "malformed answer"
PROBABILITIES: Final = "bad probabilities"
EXCEPTION: Final = "exception"
TIME_LIMIT: Final = "time limit"
DISQUALIFIED: Final = "disqualified"
FAULT_KINDS: Final = (ILLEGAL, MALFORMED, PROBABILITIES, EXCEPTION, TIME_LIMIT, DISQUALIFIED)
"""Why a player's answer can't be played."""


class ArchieError(ValueError):
    """Bad input of any kind."""


class RulesError(ArchieError):
    """A rule option that the engine can't play; names the field, the value and the allowed range."""


class CardError(ArchieError):
    """A card, hand or deck that cannot be."""


class IllegalActionError(ArchieError):
    """An action that is not legal here; names the action, the legal ones and the position.  Nothing was played."""


class NotationError(ArchieError):
    """A string that does not parse; names the line."""


class OrderError(ArchieError):
    """A call that comes too early or too late, such as a step before ``reset``."""


class PlayerLeftError(Exception):
    """A person left: typed ``quit``, or the input ended.  Not bad input, so no `ArchieError`."""


class ConfigError(ArchieError):
    """A configuration with an unknown key or an impossible value; names the file, the key and the allowed values."""


class BotError(ArchieError):
    """A player's answer that can't be played; a match forfeits the hands at fault under their kind and goes on.

    Args:
        kind: one of `FAULT_KINDS`.
        reason: what was wrong.
        player: its name, for the message.
        rows: kind and reason of each row at fault, by number; None where the whole call is.
        answer: what the call would have returned; any values in rows at fault.
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        player: str = "",
        rows: Mapping[int, tuple[str, str]] | None = None,
        answer: Any = None,
    ) -> None:
        super().__init__(f"{player}: {reason}" if player else reason)
        self.kind, self.reason, self.rows, self.answer = kind, reason, rows, answer


def shown(value: object, most: int = 120) -> str:
    """Return the ``repr`` of ``value`` as one printable line of at most ``most`` characters and three dots."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python prints, tables in tables in tables
        text = f"a {type(value).__name__} too large to print"
    except Exception as error:
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return _one_line(text, most)


def printable(text: str) -> str:
    """The text with line ends, control characters and lone surrogates as escapes, so that it can't move a cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def described(error: BaseException, place: bool = True, folder: bool = True) -> str:
    """Describe an exception in one printable line; never raises, even if its ``__str__`` does.

    Args:
        error: the exception.
        place: add the file and line that raised it.
        folder: name that file with its folder, which differs between machines.
    """
    try:
        text = str(error)
    except BaseException as second:
        text = f"an error whose text raises {type(second).__name__}"
    line, trace = f"{type(error).__name__}: {_one_line(text, 300)}".rstrip(": "), error.__traceback__
    while place and trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if not place or trace is None or isinstance(error, SyntaxError):  # the text of a SyntaxError has the place
        return line
    file = Path(trace.tb_frame.f_code.co_filename)
    return f"{line} ({printable(str(file) if folder else file.name)}:{trace.tb_lineno})"


def _one_line(text: str, most: int) -> str:
    text = " ".join(text.split())
    text = printable(text[: most + 1])
    return text if len(text) <= most else f"{text[:most]}..."
