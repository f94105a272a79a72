"""Sentences in three languages: English, European Portuguese and Spanish.

A catalogue is a file of this folder, ``en.toml``, ``pt.toml`` or ``es.toml``, with the same keys and placeholders in each.
Code holds values (a category and its ranks, a seat and its chips); sentences are made from them here.

>>> words("pt").say("hand.pair", ranks=words("pt").say("hand.ranks.9"))
'par de noves'
>>> words("es").count("count.card", 1), words("es").count("count.card", 3)
('una carta', '3 cartas')
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from archie_env.errors import ArchieError

__all__ = ["ENGLISH", "LANGUAGES", "YOU", "Words", "default_language", "words"]

LANGUAGES: Final = ("en", "pt", "es")
YOU: Final = "you"
"""The name of the person who reads: sentences about them are in the second person."""


class Words:
    """The sentences of one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    @functools.cached_property
    def _entries(self) -> Mapping[str, str]:
        import tomllib  # loaded when the first sentence is made: most programs make none
        from importlib import resources

        text = resources.files(__name__).joinpath(f"{self.language}.toml").read_text(encoding="utf-8")
        return MappingProxyType(dict(_flat(tomllib.loads(text))))

    def catalogue(self) -> dict[str, str]:
        """Every sentence by its key, such as ``hand.pair``."""
        return dict(self._entries)

    def say(self, key: str, **values: object) -> str:
        """The sentence of a key, with the values in place of its placeholders."""
        return self._entries[key].format_map(values)

    def count(self, key: str, n: int, **values: object) -> str:
        """The sentence for a number of things: ``key.one`` or ``key.other``; ``{n}`` is the number as written in a text."""
        return self.say(f"{key}.{'one' if n == 1 else 'other'}", n=self.number(n), **values)

    def number(self, n: int) -> str:
        """A number as written in a text: ``two``; in digits beyond six."""
        return self._entries.get(f"number.{n}", str(n))

    def about(self, key: str, name: str, **values: object) -> str:
        """The sentence about a player: ``key.you`` for the person who reads, or ``key.they`` with the player's name."""
        return self.say(f"{key}.you", **values) if name == YOU else self.say(f"{key}.they", name=name, **values)

    def __reduce__(self) -> tuple[Any, ...]:
        return words, (self.language,)


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for name, value in table.items():
        entries += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return entries


@functools.cache
def words(language: str = "en") -> Words:
    """The sentences of a language of `LANGUAGES`."""
    if language not in LANGUAGES:
        raise ArchieError(f"language {language!r}: expected one of {', '.join(LANGUAGES)}")
    return Words(language)


def default_language(environment: Mapping[str, str] | None = None) -> str:
    """The language of the locale, if it is one of `LANGUAGES`, else ``en``.

    Of ``LC_ALL``, ``LC_MESSAGES`` and ``LANG`` the first that is not empty counts, as in POSIX; nothing else is read.
    """
    environment = os.environ if environment is None else environment
    setting = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    language = re.split("[_.@-]", setting)[0].lower()
    return language if language in LANGUAGES else "en"


ENGLISH: Final = words("en")
