"""The files of the page, and the sentences that it makes itself."""

from __future__ import annotations

from importlib import resources
from typing import Final

from archie_env.words import words

_WORDS: Final = ("table.", "hand.rank.", "terminal.dealer", "terminal.big_blind", "terminal.pot", "terminal.hand_of")


def static(name: str) -> str:
    """The text of a file of the page."""
    return resources.files("archie_env.table").joinpath("static", name).read_text(encoding="utf-8")


def page_words(language: str) -> dict[str, str]:
    """The sentences that the page makes."""
    return {key: text for key, text in words(language).catalogue().items() if key.startswith(_WORDS)}
