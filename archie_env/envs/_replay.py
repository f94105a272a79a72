"""Snapshots of a `SingleAgentBatch`: the hands in progress, as `archie_env.replay` has them, and statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import seats
from archie_env._core.seats import LEARNER_STATS
from archie_env._core.state import BIG_BLIND, DEALER
from archie_env.errors import ArchieError
from archie_env.replay import MOST_HANDS, check_types, columns, replayed
from archie_env.rulebook import Books
from archie_env.rules import Rules

KEPT: Final = ("chips", "squares", "hands", "walks", "length", "reward", "done")
"""Statistics in a snapshot; the others follow from the arguments of the batch and from the hands in progress."""


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
    check_types(arrays, expected)


def _check_stats(stats: NDArray[Any]) -> None:
    hands = stats["hands"]
    chips = np.abs(stats["chips"].astype(np.float64))  # of -2 ** 63 too
    for name, bad, expected in (
        ("hands", (hands < 0) | (hands > MOST_HANDS), f"0 to {MOST_HANDS}"),
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
    decisions = np.zeros(len(games), np.int32)
    for index in replayed(games, books, hand_numbers, actions):
        learner = _learner(games, roles)
        decisions[index] += (roles[index] == seats.BOTH) | (games["turn"][index] == learner[index])
    return decisions
