"""Compiled ends of the protocol: the messages of whole batches, and answers in canonical form."""

from __future__ import annotations

from typing import Any

from agents.rows import read_round
from archie_env._core.jit import inner, kernel
from archie_env._core.play import count_discards
from archie_env._core.state import DISCARD

# Numbers of the pieces of text between the numbers of a message, in `agents.process.wire.PIECES`.
INDEX, LEFT, ROUND, DRAW, DEALER, POT, OWE, MOST, LEGAL, AFTER_MOST, AFTER_LEGAL, DREW, OTHER, BETS, CHANCE, END = range(16)
_QUOTE, _COMMA, _MINUS, _ZERO, _NINE = 34, 44, 45, 48, 57
_CHECK, _RAISE = 107, 114  # k and r
_OPEN, _I, _A, _COLON, _CLOSE, _NEWLINE = 123, 105, 97, 58, 125, 10
_MOST_DIGITS = 15


@inner
def _put(out: Any, at: Any, pieces: Any, ends: Any, k: Any) -> Any:
    for j in range(ends[k], ends[k + 1]):
        out[at] = pieces[j]
        at += 1
    return at


@inner
def _separate(out: Any, at: Any, follows: Any) -> Any:
    """Write a comma before what follows something else."""
    if follows:
        out[at] = _COMMA
        at += 1
    return at


@inner
def _quote(out: Any, at: Any) -> Any:
    out[at] = _QUOTE
    return at + 1


@inner
def _put_number(out: Any, at: Any, value: Any, digits: Any) -> Any:
    """Write a number of at least 0 with at least so many digits."""
    power = 10 ** (digits - 1)
    while value // power >= 10:
        power *= 10
    while power:
        out[at] = _ZERO + value // power % 10
        at += 1
        power //= 10
    return at


@inner
def _put_counts(out: Any, at: Any, row: Any, start: Any, draws: Any, counts: Any) -> Any:
    some = False
    for d in range(draws):
        for n in range(counts):
            if row[start + d * counts + n]:
                at = _put_number(out, _separate(out, at, some), n, 1)
                some = True
                break  # a row that no engine wrote could have more, and no line has room for them
    return at


@kernel
def write_messages(
    layouts: Any, rows: Any, masks: Any, pieces: Any, ends: Any, cards: Any, first: Any, chances: Any, out: Any
) -> Any:
    """Write a line for each of the rows ``(n, d)`` into ``out``; return the bytes written.

    Args:
        layouts: of the rows, which `agents.rows.checked_rows` has checked.
        rows: ``(n, d)``.
        masks: ``(n, a)``.
        pieces: bytes of the pieces of text.
        ends: where each piece begins, and where the last ends.
        cards: ``(52, 2)`` bytes of the names of cards.
        first: index of the first line.
        chances: ``(n,)``, in billionths.
        out: bytes, enough for every line.
    """
    layout, n, at = layouts[0], len(rows), 0
    draws, counts, deck_size = int(layout["draws"]), int(layout["max_discard"]) + 1, int(layout["deck_size"])
    held, wagers, actions = int(layout["held"]), int(layout["wagers"]), int(layout["actions"])
    for k in range(n):
        row, mask = rows[k], masks[k]
        now = read_round(layout, row)
        drawing = now < draws and row[layout["phase"] + 2 * now + 1] != 0
        at = _put_number(out, _put(out, at, pieces, ends, INDEX), first + k, 1)
        at = _put_number(out, _put(out, at, pieces, ends, LEFT), n - 1 - k, 1)
        at = _put_number(out, _put(out, at, pieces, ends, ROUND), now + 1, 1)
        at = _put_number(out, _put(out, at, pieces, ends, DRAW), int(drawing), 1)
        at = _put_number(out, _put(out, at, pieces, ends, DEALER), int(row[layout["dealer"]] != 0), 1)
        at = _put_number(out, _put(out, at, pieces, ends, POT), max(0, int(row[layout["pot"]])) * int(layout["pot_unit"]), 1)
        at = _put_number(out, _put(out, at, pieces, ends, OWE), max(0, int(row[layout["owed"]])) * int(layout["owed_unit"]), 1)
        if drawing:
            most = 0
            for action in range(DISCARD, len(mask)):
                if mask[action]:
                    most = max(most, count_discards(action - DISCARD))
            at = _put_number(out, _put(out, at, pieces, ends, MOST), most, 1)
            at = _put(out, at, pieces, ends, AFTER_MOST)
        else:
            at = _put(out, at, pieces, ends, LEGAL)
            some = False
            for action in range(DISCARD):
                if mask[action]:
                    at = _put_number(out, _separate(out, at, some), action, 1)
                    some = True
            at = _put(out, at, pieces, ends, AFTER_LEGAL)
        for r in range(now + 1):
            at = _quote(out, _separate(out, at, r > 0))
            for column in range(deck_size):
                if row[held + r * deck_size + column]:
                    card = layout["deck"][column]
                    out[at] = cards[card, 0]
                    out[at + 1] = cards[card, 1]
                    at += 2
            at = _quote(out, at)
        at = _put_counts(out, _put(out, at, pieces, ends, DREW), row, int(layout["own_draws"]), draws, counts)
        at = _put_counts(out, _put(out, at, pieces, ends, OTHER), row, int(layout["other_draws"]), draws, counts)
        at = _put(out, at, pieces, ends, BETS)
        for r in range(now + 1):
            at = _quote(out, _separate(out, at, r > 0))
            for a in range(actions):
                entry = wagers + (r * actions + a) * 2
                if row[entry] or row[entry + 1]:
                    out[at] = _CHECK if row[entry] else _RAISE
                    at += 1
            at = _quote(out, at)
        at = _put_number(out, _put(out, at, pieces, ends, CHANCE), chances[k], 9)
        at = _put(out, at, pieces, ends, END)
    return at


@inner
def _digits(data: Any, at: Any) -> Any:
    """The end of the digits that begin at ``at``."""
    end = at
    while end < len(data) and _ZERO <= data[end] <= _NINE:
        end += 1
    return end


@kernel
def read_answers(data: Any, at: Any, first: Any, actions: Any, answered: Any, wanted: Any) -> Any:
    """Read canonical lines ``{"i":N,"a":N}`` from ``at`` on; return where it stopped, and how many were read.

    It stops after ``wanted`` answers, before a line of any other form, and before an index that was not asked for or that is
    answered already.

    Args:
        data: bytes.
        at: where a line begins.
        first: index of the first of the ``(n,)`` questions.
        actions: ``(n,)``, written to.
        answered: ``(n,)``, written to.
        wanted: the most to read.
    """
    done = 0
    while done < wanted:
        if len(data) - at < 13:  # of the shortest answer, without its end of line
            break
        if not (data[at] == _OPEN and data[at + 1] == _QUOTE and data[at + 2] == _I and data[at + 3] == _QUOTE):
            break
        start = at + 5
        end = _digits(data, start)
        if data[at + 4] != _COLON or end == start or end - start > _MOST_DIGITS or end + 5 > len(data):
            break
        index = 0
        for j in range(start, end):
            index = 10 * index + data[j] - _ZERO
        if not (data[end] == _COMMA and data[end + 1] == _QUOTE and data[end + 2] == _A and data[end + 3] == _QUOTE):
            break
        start = end + 5
        end = _digits(data, start)
        if data[start - 1] != _COLON or end == start or end - start > _MOST_DIGITS or end + 2 > len(data):
            break
        if data[end] != _CLOSE or data[end + 1] != _NEWLINE:
            break
        k = index - first
        if k < 0 or k >= len(actions) or answered[k]:
            break
        action = 0
        for j in range(start, end):
            action = 10 * action + data[j] - _ZERO
        actions[k] = action
        answered[k] = True
        at = end + 2
        done += 1
    return at, done
