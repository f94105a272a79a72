"""Strategies of exact games: at each information set the probability of each action, as arrays or asked for line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import BIG_BLIND, DEALER
from evaluation.betting import BETTING_ACTIONS, Floats
from evaluation.exact_game import ExactGame

PLAYERS: Final = (DEALER, BIG_BLIND)
Reals = NDArray[np.float64] | NDArray[np.float32]


class Strategy(Protocol):
    """Both players' behaviour: at each information set the probability of each action.

    ``first``: ``(nodes, hands, 3)``, before the draw; ``draw``: by player ``(lines, told, hands, discards)``, where ``told`` is
    the other's number of cards if that is known before one's own discard, else one entry.
    """

    first: Floats
    draw: tuple[Floats, Floats]

    def last(self, player: int, line: int) -> Reals:
        """``(histories, counts, nodes of the player, 3)``: the last betting round after one line of the first."""
        ...


@dataclass
class Tabular:
    """A strategy whose every probability is in memory."""

    first: Floats
    draw: tuple[Floats, Floats]
    last_round: tuple[Any, Any]
    """By player ``(lines, histories, counts, nodes of the player, 3)``."""

    def last(self, player: int, line: int) -> Reals:
        """See `Strategy.last`."""
        part: Reals = self.last_round[player][line]
        return part


def shapes(game: ExactGame) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The shapes of a strategy's ``first``, ``draw`` and ``last_round``."""
    lines, hands, actions = len(game.lines), len(game.hands), len(BETTING_ACTIONS)
    first = (0 if game.first is None else len(game.first.player), hands, actions)
    draw = [(lines, game.told[player], hands, game.discards) for player in PLAYERS]
    cells = (lines, len(game.histories), game.counts)
    return first, [*draw], [(*cells, len(game.last.nodes_of(player)), actions) for player in PLAYERS]


def fill(game: ExactGame, make: Callable[[tuple[int, ...]], Reals]) -> Tabular:
    """A strategy from non-negative weights of each shape: illegal actions get none, the legal ones sum to 1."""

    def normal(weights: Any, legal: NDArray[np.bool_]) -> Any:
        weights = weights * legal
        return weights / weights.sum(axis=-1, keepdims=True)

    first, draw, last = shapes(game)
    before: Any = make(first)
    if game.first is not None:
        before = normal(before, game.first.legal()[:, None, :])
    tree = game.last
    a, b = (normal(make(draw[p]), game.legal_discard) for p in PLAYERS)
    c, d = (normal(make(last[p]), tree.legal()[tree.nodes_of(p)]) for p in PLAYERS)
    return Tabular(before, (a, b), (c, d))


def uniform(game: ExactGame) -> Tabular:
    """Every legal action equally likely; in class form every discard of different ranks."""
    return fill(game, np.ones)


def random_strategy(game: ExactGame, seed: int) -> Tabular:
    """A strategy without any pattern, to test with."""
    rng = np.random.default_rng(seed)
    return fill(game, lambda shape: rng.random(shape) ** 2 + 1e-3)
