"""The layout of the picture of a table; `artwork` draws its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from archie_env.events import SEATS, View
from archie_env.hands import HandValues
from archie_env.rendering import artwork as art
from archie_env.rendering import wording
from archie_env.rules import Rules

WIDTH, HEIGHT = 1000, 650
_TABLE: Final = (24, 56, WIDTH - 24, HEIGHT - 76)
_MIDDLE: Final = (_TABLE[0] + _TABLE[2]) / 2
_CARDS_TOP: Final = (98, HEIGHT - 118 - art.CARD_HEIGHT)
"""Top edge of the cards of the far seat and the near seat."""
_GAP: Final = 8
_PLATE: Final = (182, 90)
"""Width and height of the plates left and right of the cards."""
_PLATE_LEFT: Final = (40, WIDTH - 40 - _PLATE[0])


def paint(view: View, rules: Rules, stacks: Mapping[str, int] | None = None) -> NDArray[np.uint8]:
    """Draw the table, ``(HEIGHT, WIDTH, 3)``, with the viewer's seat at the bottom, or player_0 if the view shows all cards."""
    canvas = art.Canvas(art.table(WIDTH, HEIGHT, *_TABLE).copy())
    near = view.seat or 0
    _heading(canvas, view, rules)
    wagered = (0, 0) if view.result is not None or view.drawing else view.wagered
    for seat in (0, 1):
        _seat(canvas, view, rules, stacks, seat, seat == near)
        _wager(canvas, wagered[seat], seat == near)
    if view.result is not None:
        _banner(canvas, view, rules)
    else:
        _pot(canvas, sum(view.paid) - sum(wagered), sum(view.paid))
    _footing(canvas, view)
    finished = canvas.image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
    return np.array(finished, np.uint8)


def _heading(canvas: art.Canvas, view: View, rules: Rules) -> None:
    canvas.text(28, 29, "Archie", 24, art.GOLD, bold=True)
    canvas.text(118, 31, f"rules {rules.name}", 15, art.DIM)
    canvas.text(_MIDDLE, 29, wording.phase(view, rules).capitalize(), 21, art.WHITE, "mm")
    limit = "" if view.drawing or view.result else f"bets of {rules.stakes.bets[view.round]}"
    canvas.text(WIDTH - 28, 31, limit, 15, art.DIM, "rm")


def _seat(canvas: art.Canvas, view: View, rules: Rules, stacks: Mapping[str, int] | None, seat: int, near: bool) -> None:
    """Cards, name plate, dealer button, draw counts and the hand in words."""
    top = _CARDS_TOP[near]
    width = rules.hand_size * (art.CARD_WIDTH + _GAP) - _GAP
    left = _MIDDLE - width / 2
    cards = view.hands[seat] or (None,) * rules.hand_size
    for i, card in enumerate(cards):
        canvas.put(art.card(card), left + i * (art.CARD_WIDTH + _GAP), top)
    y = top + (art.CARD_HEIGHT - _PLATE[1]) / 2
    _plate(canvas, view, stacks, seat, y)
    if seat == view.dealer:
        canvas.button(left - 25, top + (20 if near else art.CARD_HEIGHT - 20))
    _holding(canvas, view, rules, seat, y)


def _plate(canvas: art.Canvas, view: View, stacks: Mapping[str, int] | None, seat: int, y: float) -> None:
    """Name and chips of a seat; the plate glows for the seat to act, and for the winner."""
    x, (width, height) = _PLATE_LEFT[0], _PLATE
    glows = view.to_act == seat or (view.result is not None and view.result.net[seat] > 0)
    if glows:
        for grow, alpha in ((7, 40), (4, 70)):
            canvas.box(x - grow, y - grow, width + 2 * grow, height + 2 * grow, 14 + grow, (*art.GOLD, alpha))
    canvas.box(x, y, width, height, 14, art.PLATE, art.GOLD if glows else art.EDGE, 2 if glows else 1)
    position = "dealer" if seat == view.dealer else "big blind"
    turn = (", to draw" if view.drawing else ", to act") if view.to_act == seat else ""
    chips = wording.stack_of(stacks, seat)
    paid = f"paid {view.paid[seat]}" + ("" if chips is None else f", stack {chips}")
    canvas.text(x + 16, y + 24, SEATS[seat], 20, art.WHITE, bold=True)
    canvas.text(x + 16, y + 47, position + turn, 14, art.DIM)
    canvas.text(x + 16, y + 68, paid, art.fitting(paid, 15, width - 32), art.GOLD)


def _holding(canvas: art.Canvas, view: View, rules: Rules, seat: int, y: float) -> None:
    """A box for each draw with the number of discards, and the hand in words where it is face up."""
    x, (width, height) = _PLATE_LEFT[1], _PLATE
    canvas.box(x, y, width, height, 14, art.PLATE, art.EDGE)
    cards = view.hands[seat]
    middle = y + (height / 2 if cards is None else 24)
    if rules.draws:
        canvas.text(x + 16, middle, "draws", 14, art.DIM)
    for draw in range(rules.draws):
        known = draw < len(view.draws[seat])
        waiting = view.committed[seat] and draw == len(view.draws[seat]) - 1
        left = x + 66 + 35 * draw
        outline = art.GOLD if waiting else art.EDGE
        canvas.box(left, middle - 14, 28, 28, 7, (70, 80, 90) if known else None, outline, 2 if waiting else 1)
        if known:
            color = art.GOLD if waiting else art.WHITE
            canvas.text(left + 14, middle, str(view.draws[seat][draw]), 17, color, "mm", bold=True)
    if cards is None:
        return
    values = HandValues(rules)
    high, low = values.of(cards)
    lines = (values.high_name(high), values.qualifies_high(high)), (values.low_name(low), low > 0)
    for i, (text, qualifies) in enumerate(lines):
        size = art.fitting(text, 16, width - 28)
        canvas.text(x + 16, y + 52 + 21 * i, text, size, art.WHITE if qualifies else art.FAINT)


def _wager(canvas: art.Canvas, chips: int, near: bool) -> None:
    """The chips a seat has wagered in this round, in front of its cards."""
    if not chips:
        return
    y = _CARDS_TOP[True] - 14 if near else _CARDS_TOP[False] + art.CARD_HEIGHT + 42
    width = canvas.chips(_MIDDLE - 14, y, chips)
    canvas.text(_MIDDLE - 14 + width / 2 + 8, y - 11, str(chips), 18, art.WHITE, "lm", bold=True)


def _pot(canvas: art.Canvas, collected: int, total: int) -> None:
    """The chips of earlier rounds in the middle, and the size of the whole pot."""
    y = (_TABLE[1] + _TABLE[3]) / 2
    label = f"pot {total}"
    width = art.text_width(label, 20) + 28
    if collected:
        canvas.chips(_MIDDLE, y + 4, collected)
    canvas.box(_MIDDLE - width / 2, y + 8, width, 30, 15, (0, 0, 0, 90))
    canvas.text(_MIDDLE, y + 23, label, 20, art.GOLD, "mm", bold=True)


def _banner(canvas: art.Canvas, view: View, rules: Rules) -> None:
    """The winner of each part with the reasons."""
    if view.result is None:
        return
    width = 660
    winner = int(view.result.net[1] > 0)
    won = view.result.net[winner]
    wins = "scoops and wins" if view.result.scooped is not None else "wins"
    title = f"{SEATS[winner]} {wins} {won} chip{'s' * (won != 1)}" if won else "The pot is divided"
    if view.result.quartered is not None:
        title += f" ({SEATS[view.result.quartered]} is quartered)"
    lines: list[tuple[str, int, art.Color, bool]] = [(title, 25, art.GOLD, True)]
    for award in view.result.awards:
        lines.append((wording.award_words(award), 17, art.WHITE, True))
        reasons = "; ".join(wording.award_reasons(award, rules))
        lines += [(line, 15, art.DIM, False) for line in art.wrapped(reasons, 15, width - 40, 2)]
    leading, before_award = 7, 9
    height = sum(size + leading for _, size, _, _ in lines) + before_award * len(view.result.awards) + 24
    y = (_TABLE[1] + _TABLE[3] - height) / 2
    canvas.box(_MIDDLE - width / 2, y, width, height, 16, (14, 18, 23, 238), art.GOLD, 2)
    y += 14
    for i, (text, size, color, bold) in enumerate(lines):
        y += before_award if bold and i else 0
        canvas.text(_MIDDLE, y + size / 2, text, size, color, "mm", bold)
        y += size + leading


def _footing(canvas: art.Canvas, view: View) -> None:
    """Write the last betting round or draw, and the choices of the seat to act."""
    betting, drawn = wording.betting(view), wording.drawing(view)
    del betting[0][:2]  # the picture shows the blinds
    lines = [f"Round {i + 1}: {', '.join(phrases)}" for i, phrases in enumerate(betting) if phrases]
    last = lines[-1] if lines else ""
    if drawn and (view.drawing or not betting[-1]) and drawn[-1]:
        last = f"Draw {len(drawn)}: {', '.join(drawn[-1])}"
    _line(canvas, HEIGHT - 49, last, 16, art.DIM)
    if view.to_act is None:
        return
    choices = ""
    if view.legal:
        choices = ": stand pat or discard" if view.drawing else f": {', '.join(words for _, words in wording.choices(view))}"
    turn = f"{SEATS[view.to_act]} to {'draw' if view.drawing else 'act'}{choices}"
    _line(canvas, HEIGHT - 24, turn, 18, art.WHITE)


def _line(canvas: art.Canvas, y: float, text: str, size: int, color: art.Color) -> None:
    """Write a centred line, as large as fits."""
    width = WIDTH - 60
    size = art.fitting(text, size, width)
    canvas.text(_MIDDLE, y, art.wrapped(text, size, width)[0], size, color, "mm")
