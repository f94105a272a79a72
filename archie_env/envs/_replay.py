"""Hands in progress as lists of actions, a form safe to read from files: the engine replays them and refuses illegal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import batch as loops
from archie_env._core import seats
from archie_env._core.rng import ONE
from archie_env._core.seats import LEARNER_STATS
from archie_env._core.state import BIG_BLIND, COUNTS, DEALER, DISCARD, FOLD
from archie_env.errors import ArchieError
from archie_env.rulebook import Books
from archie_env.rules import Rules

NONE: Final = -1
"""Stands where no action was taken."""
KEPT: Final = ("chips", "squares", "hands", "walks", "length", "reward", "done")
"""Statistics in a snapshot; the others follow from the arguments of the batch and from the hands in progress."""
_MOST_HANDS: Final = 2**31 - 3
"""Hands of a game whose number still fits the record."""


def columns(rules: Rules) -> int:
    """Return the number of columns of `actions_of`: every betting action and draw that a hand can have, and a fold."""
    return rules.rounds * (rules.raise_cap + 2) + 2 * rules.draws + 1


def actions_of(games: NDArray[Any], rules: Rules) -> NDArray[np.int8]:
    """``(n, columns)``: the actions of each hand in progress in the order they were taken, `NONE` in between."""
    found = []
    per_round = rules.raise_cap + 2
    for r in range(rules.rounds):
        for k in range(per_round):
            code = games["betting"] >> np.uint64(2 * (r * per_round + k)) & np.uint64(3)
            found.append(np.where(code > 0, code.astype(np.int8), NONE))
        if r < rules.draws:
            found += [_draws_of(games, position, r, rules.hand_size) for position in (BIG_BLIND, DEALER)]
    found.append(np.where(games["folded"] > 0, FOLD, NONE))
    return np.stack(found, axis=1).astype(np.int8)


def _draws_of(games: NDArray[Any], position: int, r: int, size: int) -> NDArray[np.int64]:
    """``(n,)``: one position's action in draw ``r``.  A card that was held before and is not after was discarded."""
    before, after = games["held"][:, position, r].copy(), games["held"][:, position, r + 1]
    actions = np.full(len(games), DISCARD, np.int64)
    for i in range(size):
        rest = before & before - ONE
        actions += np.where((before ^ rest) & after, 0, 1 << i)
        before = rest
    committed = games["thrown"][:, position] >> COUNTS * r != 0
    return np.where(committed, actions, NONE)


def restore_hands(
    games: NDArray[Any], stats: NDArray[Any], books: Books, rules: Rules, keep_walks: bool, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Fill games and statistics from the arrays of `SingleAgentBatch.snapshot`.

    Args:
        games: ``(n,)`` of ``GAME``, each with its key.
        stats: ``(n,)`` of ``LEARNER_STATS``, each with its slot and role.
        books: the rules as the engine reads them.
        rules: the same rules.
        keep_walks: whether a hand may stand that is over before the learner has decided anything.
        arrays: ``actions`` and the statistics in `KEPT`; nothing in them is trusted.

    Raises:
        ArchieError: naming the array and what is wrong; games and statistics are then half written.
    """
    _check_types(arrays, len(games), rules)
    for name in KEPT:
        stats[name] = arrays[name]
    _check_stats(stats)
    stats["decisions"] = _replay(games, books, stats["hands"], arrays["actions"], stats["role"])
    over = (games["over"] != 0) & ~((stats["decisions"] == 0) & keep_walks)
    if over.any():
        raise ArchieError(f"actions of game {over.argmax()}: the hand is over: expected one in progress")
    turn = games["turn"] == _learner(games, stats["role"])
    if not (turn | (stats["role"] == seats.BOTH) | (games["over"] != 0)).all():
        raise ArchieError(f"actions of game {turn.argmin()}: the opponent is to act: expected the learner")


def _check_types(arrays: Mapping[str, NDArray[Any]], n: int, rules: Rules) -> None:
    expected: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {"actions": (np.dtype(np.int8), (n, columns(rules)))}
    expected |= {name: (LEARNER_STATS[name], (n,)) for name in KEPT}
    for name, (dtype, shape) in expected.items():
        array = arrays[name]
        if array.dtype != dtype or array.shape != shape:
            raise ArchieError(f"{name} {array.shape} of type {array.dtype}: expected {shape} of type {dtype}")


def _check_stats(stats: NDArray[Any]) -> None:
    hands = stats["hands"]
    chips = np.abs(stats["chips"].astype(np.float64))  # of -2 ** 63 too
    for name, bad, expected in (
        ("hands", (hands < 0) | (hands > _MOST_HANDS), f"0 to {_MOST_HANDS}"),
        ("walks", (stats["walks"] < 0) | (stats["walks"] > hands), "0 to the number of hands"),
        ("chips", chips > hands * 2.0**15, "what so many hands can pay"),
        ("squares", (stats["squares"] < 0) | (stats["squares"] > hands * 2.0**30), "what so many hands can pay"),
        ("length", stats["length"] < 0, "0 or more"),
        ("done", (stats["done"] & ~1) != 0, "0 or 1"),
    ):
        if bad.any():
            raise ArchieError(f"{name} {stats[name][bad.argmax()]} of game {bad.argmax()}: expected {expected}")


def _learner(games: NDArray[Any], roles: NDArray[np.int8]) -> NDArray[np.int64]:
    """``(n,)``: the position of the learner where it has one of its own; see `archie_env._core.seats.learner_position`."""
    chosen = [roles == seats.ALTERNATE, roles == seats.ALWAYS_BIG_BLIND]
    positions: NDArray[np.int64] = np.select(chosen, [games["dealer"], BIG_BLIND], DEALER)
    return positions


def _replay(
    games: NDArray[Any], books: Books, hand_numbers: NDArray[np.int64], actions: NDArray[np.int8], roles: NDArray[np.int8]
) -> NDArray[np.int32]:
    """Deal the hands of these numbers and play the actions; returns the learner's decisions ``(n,)`` in each hand."""
    loops.deal_numbered(games, books, hand_numbers)
    learner, decisions = _learner(games, roles), np.zeros(len(games), np.int32)
    for column in actions.T:
        index = np.flatnonzero(column != NONE)
        chosen = column[index].astype(np.int64)
        bad = loops.first_illegal_at(games, books, index, chosen)
        if bad >= 0:
            raise ArchieError(f"actions of game {index[bad]}: {chosen[bad]} is not legal after those before it")
        decisions[index] += (roles[index] == seats.BOTH) | (games["turn"][index] == learner[index])
        loops.play_at(games, books, index, chosen)
    return decisions
