"""The table as text and as a picture.

Both are made from a `View`, which contains no hidden cards; equal views give equal bytes.

>>> from archie_env.game import Game
>>> game = Game(deck="9c As 9h 2d 7d 3c 7s 4h 2c 5s", dealer=0)
>>> print(ansi(game.view(0), game.rules))
Archie (rules archie): betting round 1 of 4                                                   pot 3
---------------------------------------------------------------------------------------------------
  seat      position   cards           paid  draws
> player_0  dealer     2d 3c 4h 5s As     1  -      five-high straight, wheel
  player_1  big blind  ?? ?? ?? ?? ??     2  -
---------------------------------------------------------------------------------------------------
Round 1: player_0 posts 1, player_1 posts 2
---------------------------------------------------------------------------------------------------
player_0 to act: fold (0), call 1 (1), raise to 4 (2)
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env.actions import DISCARD
from archie_env.cards import format_cards
from archie_env.events import SEATS, View
from archie_env.hands import HandValues
from archie_env.rendering import wording
from archie_env.rules import Rules
from archie_env.words import ENGLISH, YOU, Words

__all__ = ["ansi", "rgb_array"]

WIDTH: Final = 99
"""Columns of the text table."""
_LINE: Final = "-" * WIDTH
_FACE_DOWN: Final = "??"
_NAME_WIDTH: Final = 24
_HANG: Final = len("Round 1: ")
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def ansi(
    view: View,
    rules: Rules,
    stacks: Mapping[str, int] | None = None,
    names: tuple[str, str] = SEATS,
    words: Words = ENGLISH,
) -> str:
    """Format the table as plain text, at most `WIDTH` columns wide and without colours.

    Args:
        view: the hand as one seat sees it; hands that are None are shown face down.
        rules: the rules of the game.
        stacks: chips by agent name in a session; they include the chips paid in this hand until it is over.
        names: names of the two seats; ``you`` is spoken to in the second person.
        words: the language.
    """
    title = words.say("terminal.title", rules=rules.name, phase=wording.phase(view, rules, words))
    pot = words.say("terminal.pot", chips=sum(view.paid))
    names = wording.short(names[0], _NAME_WIDTH), wording.short(names[1], _NAME_WIDTH)
    lines = [f"{title}{pot:>{WIDTH - len(title)}}", _LINE, *_seats(view, rules, stacks, names, words), _LINE]
    lines += _story(view, names, words)
    lines += [_LINE, *(_outcome(view, rules, names, words) if view.result else _turn(view, rules, names, words))]
    return "\n".join(line.rstrip() for line in lines)


def _row(cells: Iterable[str], widths: Iterable[int], aligns: str) -> str:
    return "  ".join(f"{cell:{align}{width}}" for cell, width, align in zip(cells, widths, aligns, strict=True))


def _seats(view: View, rules: Rules, stacks: Mapping[str, int] | None, names: tuple[str, str], words: Words) -> list[str]:
    """Return a heading and a row for each seat."""
    rows = [[words.say(f"terminal.{head}") for head in ("seat", "position", "cards", "stack", "paid", "draws")]]
    for seat, name in enumerate(names):
        cards, chips = view.hands[seat], wording.stack_of(stacks, seat)
        position = words.say("terminal.dealer" if seat == view.dealer else "terminal.big_blind")
        shown_name = words.say("terminal.yourself") if name == YOU else name
        shown = " ".join([_FACE_DOWN] * rules.hand_size) if cards is None else format_cards(cards, " ")
        drawn = " ".join(map(str, view.draws[seat])) + "*" * view.committed[seat]
        rows.append([shown_name, position, shown, "-" if chips is None else str(chips), str(view.paid[seat]), drawn or "-"])
    aligns = "<<<>><"
    if stacks is None:
        rows, aligns = [row[:3] + row[4:] for row in rows], "<<<><"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"  {_row(rows[0], widths, aligns)}"]
    for seat, row in enumerate(rows[1:]):
        cards = view.hands[seat]
        line = f"{'>' if view.to_act == seat else ' '} {_row(row, widths, aligns)}"
        value = "" if cards is None else f"  {HandValues(rules).summary(cards, words)}"
        lines += [line + value] if len(line + value) <= WIDTH else [line, f"  {value}"]
    return lines


def _wrapped(label: str, phrases: Iterable[str], separator: str = ", ") -> list[str]:
    """Format ``label: phrase, phrase``, wrapped between phrases."""
    whole = (phrase.replace(" ", _NO_BREAK) for phrase in phrases)
    text = f"{f'{label}:'.ljust(_HANG - 1).replace(' ', _NO_BREAK)} {separator.join(whole)}"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=" " * _HANG, break_on_hyphens=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _story(view: View, names: tuple[str, str], words: Words) -> list[str]:
    """Describe every betting round and draw so far."""
    betting, drawing = wording.betting(view, names, words), wording.drawing(view, names, words)
    lines: list[str] = []
    for r, phrases in enumerate(betting):
        if phrases:
            lines += _wrapped(words.say("terminal.round", n=r + 1), phrases)
        if r < len(drawing) and drawing[r]:
            lines += _wrapped(words.say("terminal.draw", n=r + 1), drawing[r])
    return lines


def _turn(view: View, rules: Rules, names: tuple[str, str], words: Words) -> list[str]:
    """Describe the seat to act and its choices."""
    if view.to_act is None:
        return []
    label = words.about("terminal.to_draw" if view.drawing else "terminal.to_act", names[view.to_act])
    if not view.legal:
        return [label]
    if not view.drawing:
        return _wrapped(label, (f"{text} ({action})" for action, text in wording.choices(view, words)))
    cards = view.hands[view.to_act] or ()
    most = words.say("action.most", n=words.number(rules.max_discard)) if rules.max_discard < rules.hand_size else ""
    discards = words.say("action.discard", base=DISCARD, most=most, numbers=wording.discard_numbers(cards))
    return _wrapped(label, [f"{words.say('action.pat')} ({DISCARD})", *([discards] if rules.max_discard else [])])


def _outcome(view: View, rules: Rules, names: tuple[str, str], words: Words) -> list[str]:
    """Describe the winner of each part of the pot with the reasons, and the net result."""
    if view.result is None:
        return []
    lines: list[str] = []
    for award in view.result.awards:
        reasons = wording.award_reasons(award, rules, names, words)
        lines += _wrapped(wording.award_words(award, names, words), reasons, separator="; ")
    division = wording.division_words(view.result, names, words)
    return [
        *lines,
        *([f"{division[0].upper()}{division[1:]}"] if division else []),
        words.say("terminal.result", net=wording.net_words(view, names, words)),
    ]


def rgb_array(view: View, rules: Rules, stacks: Mapping[str, int] | None = None) -> NDArray[np.uint8]:
    """Draw the table, ``(height, width, 3)`` uint8; needs Pillow (``pip install "archie-env[render]"``)."""
    try:
        from archie_env.rendering import picture as _picture
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "archie-env[render]"') from error
    picture: NDArray[Any] = _picture.paint(view, rules, stacks)
    return picture
