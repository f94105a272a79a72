"""Rows of the information state for kernels: the layout of a row, checks, and the hand in it.

Kernels take int8 rows and a `LAYOUT` record.  Hands ascend and are padded with ``NO_CARD`` to five cards, as in the engine.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archie_env._core.jit import kernel
from archie_env._core.state import MAX_HAND, NO_CARD
from archie_env.errors import ArchieError
from archie_env.observation import field, owed_unit, pot_unit, unscaled, width
from archie_env.policy import Masks, Observations
from archie_env.rulebook import highest_low_rank, lowest_qualifying_high
from archie_env.rules import Rules

RANKS = 13
NO_RANK = -1

LAYOUT = np.dtype(
    [
        ("held", "i2"),  # index of the first entry of each block
        ("wagers", "i2"),
        ("other_draws", "i2"),
        ("phase", "i2"),
        ("dealer", "i2"),
        ("owed", "i2"),
        ("pot", "i2"),
        ("pot_unit", "i2"),  # chips per step of the pot entry
        ("owed_unit", "i2"),  # chips per step of the owed entry
        ("actions", "i2"),  # betting actions that a round can hold
        ("draws", "i2"),
        ("hand_size", "i2"),
        ("max_discard", "i2"),
        ("low_limit", "i2"),  # highest ace-low rank of a low; -1 under rules without a low
        ("flushes", "i2"),
        ("high_qualifier", "i2"),  # lowest high value that qualifies
        ("deck_size", "i2"),
        ("deck", "i1", (52,)),
        ("own_draws", "i2"),
    ],
    align=True,
)


@kernel
def read_round(layout, row):
    """The betting round, or in a draw the betting round before it."""
    for phase in range(2 * layout["draws"] + 1):
        if row[layout["phase"] + phase]:
            return phase >> 1
    return layout["draws"]


@kernel
def read_hand(layout, row, r, hand):
    """Write the cards held in round ``r`` into ``hand`` ``(5,)``."""
    at, k = layout["held"] + r * layout["deck_size"], 0
    for column in range(layout["deck_size"]):
        if row[at + column]:
            hand[k] = layout["deck"][column]
            k += 1
    for i in range(k, MAX_HAND):
        hand[i] = NO_CARD


@kernel
def count_ranks(hand, counts):
    """Write the number of cards of each rank, deuce first, into ``counts`` ``(13,)``."""
    for k in range(RANKS):
        counts[k] = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD:
            counts[hand[i] >> 2] += 1


@functools.cache
def layout(rules: Rules) -> NDArray[np.void]:
    """``(1,)`` record of `LAYOUT` for rows of these rules."""
    record = np.zeros(1, LAYOUT)
    for name in ("held", "wagers", "own_draws", "other_draws", "phase", "dealer", "owed", "pot"):
        record[name] = field(rules, name).start
    for name in ("draws", "hand_size", "max_discard", "flushes", "deck_size"):
        record[name] = getattr(rules, name)
    highest_low = highest_low_rank(rules)
    record["low_limit"] = -1 if highest_low is None else highest_low
    record["high_qualifier"] = lowest_qualifying_high(rules)
    record["actions"] = len(field(rules, "wagers").axes[1])
    record["pot_unit"], record["owed_unit"] = pot_unit(rules), owed_unit(rules)
    record["deck"][0, : rules.deck_size] = rules.deck
    record.setflags(write=False)
    return record


@kernel
def first_impossible(layouts: Any, rows: Any, masks: Any) -> Any:
    """Index of the first impossible row of ``(n, d)``, or -1.

    A row is impossible with too many cards in a betting round, without a whole hand in the present one, or without a legal
    action.  Kernels rely on this: their buffers have room for one hand.
    """
    layout = layouts[0]
    size, deck_size, at = np.int64(layout["hand_size"]), np.int64(layout["deck_size"]), np.int64(layout["held"])
    rounds = np.int64(layout["draws"]) + 1
    for i in range(len(rows)):
        row = rows[i]
        legal = False
        for action in range(masks.shape[1]):
            legal |= masks[i, action] != 0
        if not legal:
            return i
        now = read_round(layout, row)
        for r in range(rounds):
            held = row[at + r * deck_size : at + (r + 1) * deck_size]
            cards = np.int8(0)  # a narrow sum keeps this loop fast
            for column in range(deck_size):
                cards = np.int8(cards + np.int8(held[column] != 0))
            if cards > size or (r == now and cards < size):
                return i
    return -1


@functools.cache
def _shape(rules: Rules) -> tuple[int, int]:
    return width(rules), rules.actions


def checked_rows(observations: Observations, masks: Masks, rules: Rules) -> NDArray[np.int8]:
    """Return ``observations`` as ``(n, d)`` int8 rows of these rules; kernels would read out of bounds in any others.

    Raises:
        ArchieError: unless both are arrays of numbers, of the shapes of these rules, with a whole hand and a legal action in
            each row.
    """
    d, a = _shape(rules)
    for name, array in (("observations", observations), ("masks", masks)):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ArchieError(f"{name} of type {found}: expected an array of int8 or float32")
    if observations.ndim != 2 or observations.shape[1] != d or masks.shape != (len(observations), a):
        raise ArchieError(
            f"observations {observations.shape} and masks {masks.shape}: "
            f"expected (n, {d}) and (n, {a}) under rules {rules.name!r}"
        )
    if observations.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a row of NaN fails the check below
            rows = unscaled(observations, rules)
    else:
        rows = observations.astype(np.int8, copy=False)
    rows = np.ascontiguousarray(rows)
    impossible = first_impossible(layout(rules), rows, masks)
    if impossible >= 0:
        if not masks[impossible].any():
            raise ArchieError(f"masks[{impossible}]: no action is legal, expected at least one in every row")
        raise ArchieError(
            f"observations[{impossible}]: no row of rules {rules.name!r}: expected {rules.hand_size} cards in its betting round"
        )
    return rows
