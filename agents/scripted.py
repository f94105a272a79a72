"""The simplest opponents: always call or always raise, standing pat or drawing sensibly.

They are fixed reference points: a strategy that cannot beat them has learnt nothing, and winning much from them proves little.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents import _kernels
from archie_env._core.jit import kernel
from archie_env.errors import ArchieError
from archie_env.observation import (
    fields,
    highest_low_rank,
    lowest_qualifying_high,
    owed_unit,
    pot_unit,
    rulebook,
    unscaled,
    width,
)
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rules import Rules, as_rules


@functools.cache
def layout(rules: Rules) -> NDArray[np.void]:
    """``(1,)``: where rows of these rules keep what the kernels read."""
    record = np.zeros(1, _kernels.LAYOUT)
    blocks = {block.name: block for block in fields(rules)}
    for name in ("held", "wagers", "other_draws", "phase", "dealer", "owed", "pot"):
        record[name] = blocks[name].start
    for name in ("draws", "hand_size", "max_discard", "flushes", "deck_size"):
        record[name] = getattr(rules, name)
    highest_low = highest_low_rank(rules)
    record["low_limit"] = -1 if highest_low is None else highest_low
    record["high_qualifier"] = lowest_qualifying_high(rules)
    record["actions"] = len(blocks["wagers"].axes[1])
    record["pot_unit"], record["owed_unit"] = pot_unit(rules), owed_unit(rules)
    record["deck"][0, : rules.deck_size] = rules.deck
    record.setflags(write=False)
    return record


@kernel
def first_impossible(layouts: Any, rows: Any, masks: Any) -> Any:
    """The first of the rows ``(n, d)`` that no player can be shown, or -1: too many cards in a betting round, no whole hand in
    its own, or no legal action.

    What reads hands has room for as many cards as the rules deal.
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
        now = _kernels.read_round(layout, row)
        for r in range(rounds):
            held = row[at + r * deck_size : at + (r + 1) * deck_size]
            cards = np.int8(0)  # a narrow sum is what makes this loop fast
            for column in range(deck_size):
                cards = np.int8(cards + np.int8(held[column] != 0))
            if cards > size or (r == now and cards < size):
                return i
    return -1


@functools.cache
def _shape(rules: Rules) -> tuple[int, int]:
    return width(rules), rules.actions


def checked_rows(observations: Observations, masks: Masks, rules: Rules) -> NDArray[np.int8]:
    """``(n, d)`` int8 rows of these rules, or an error: a kernel would read other memory from rows of other rules.

    Raises:
        ArchieError: for anything but arrays of numbers, of the shapes of these rules, with a whole hand and a legal action in
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
        with np.errstate(invalid="ignore"):  # a row of nan holds no hand
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


class ScriptedPolicy:
    """One bet for every occasion.

    Args:
        name: what tables call it.
        raises: bet and raise while that is legal, else check and call.
        draws: draw sensibly, else stand pat.
        rules: a preset's name or a `Rules` value.
    """

    def __init__(self, name: str, raises: bool, draws: bool, rules: Rules | str = "archie") -> None:
        self.name = name
        self.rules = as_rules(rules)
        self._choice = raises, draws
        self._tables = rulebook(self.rules), layout(self.rules)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; ``rng`` is not used."""
        rows = checked_rows(observations, masks, self.rules)
        actions = np.empty(len(rows), np.int64)
        _kernels.scripted_actions(*self._tables, rows, masks, *self._choice, actions)
        return actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`: 1 for the action it takes."""
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks)] = 1
        certain[masks == 0] = 0
        return certain
