"""Hands in progress as lists of actions, a form safe to read from files: the engine replays them and refuses illegal ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import batch as loops
from archie_env._core.rng import ONE
from archie_env._core.state import BIG_BLIND, COUNTS, DEALER, DISCARD, FOLD
from archie_env.errors import ArchieError
from archie_env.rulebook import Books
from archie_env.rules import Rules

NONE: Final = -1
"""Stands where no action was taken."""
MOST_HANDS: Final = 2**31 - 3
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


def replayed(
    games: NDArray[Any], books: Books, hand_numbers: NDArray[np.int64], actions: NDArray[np.int8]
) -> Iterator[NDArray[np.int64]]:
    """Deal the hands of these numbers and play the actions, column by column; yields the games of a column before it is played.

    Args:
        games: ``(n,)`` of ``GAME``, each with its key.
        books: the rules as the engine reads them.
        hand_numbers: ``(n,)``, 0 to `MOST_HANDS`.
        actions: ``(n, columns)``, not trusted.

    Raises:
        ArchieError: naming the game and the action that is not legal; the games are then half played.
    """
    loops.deal_numbered(games, books, hand_numbers)
    for column in actions.T:
        index = np.flatnonzero(column != NONE)
        chosen = column[index].astype(np.int64)
        bad = loops.first_illegal_at(games, books, index, chosen)
        if bad >= 0:
            raise ArchieError(f"actions of game {index[bad]}: {chosen[bad]} is not legal after those before it")
        yield index
        loops.play_at(games, books, index, chosen)


def check_types(arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> None:
    """Raise `ArchieError` unless every array has its type and shape."""
    for name, (dtype, shape) in expected.items():
        array = arrays[name]
        if array.dtype != dtype or array.shape != shape:
            raise ArchieError(f"{name} {array.shape} of type {array.dtype}: expected {shape} of type {dtype}")
