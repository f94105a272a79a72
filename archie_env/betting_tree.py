"""Betting rounds as trees, walked by the engine itself, and values and probabilities carried along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import CALL, FOLD, RAISE
from archie_env.game import Game

BETTING_ACTIONS: Final = (FOLD, CALL, RAISE)
NO_CHILD: Final = -(1 << 15)
"""Stands in a tree for an action that is not legal."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Betting:
    """One betting round as a tree; a node comes before its children."""

    player: NDArray[np.int8]
    """``(nodes,)``: position to act, 0 the dealer."""
    child: NDArray[np.int16]
    """``(nodes, 3)``: by fold, check/call, bet/raise, the next node; ``-1 - e`` for end e; ``NO_CHILD``."""
    own: NDArray[np.int16]
    """``(nodes,)``: number of the node among those of its player."""
    path: tuple[tuple[int, ...], ...]
    """``(nodes,)``: betting actions from the start of the round."""
    folder: NDArray[np.int8]
    """``(ends,)``: position that folded, or -1 where play goes on to a draw or a showdown; folds come first."""
    paid: Ints
    """``(ends, 2)``: chips paid by position, less ``before``."""
    end_path: tuple[tuple[int, ...], ...]

    @property
    def folds(self) -> int:
        """Ends by a fold."""
        return int((self.folder >= 0).sum())

    def nodes_of(self, player: int) -> Ints:
        """The nodes in which a player is to act."""
        return np.flatnonzero(self.player == player)

    def legal(self) -> NDArray[np.bool_]:
        """``(nodes, 3)``: whether each action is legal."""
        legal: NDArray[np.bool_] = self.child != NO_CHILD
        return legal

    def same_tree(self, other: Betting) -> bool:
        """Whether both offer the same actions for the same chips."""
        return (self.path, self.end_path) == (other.path, other.end_path) and np.array_equal(self.paid, other.paid)

    def fold_chips(self, player: int) -> Ints:
        """``(fold ends,)``: what a player wins there, less ``before``: what the other has paid or what it has itself, lost."""
        folder = self.folder[: self.folds]
        lost = np.take_along_axis(self.paid[: self.folds], folder[:, None], axis=1)[:, 0]
        return np.where(folder == player, -lost, lost)


def walk(start: Game, before: int) -> Betting:
    """The betting round that ``start`` stands at the beginning of, played out by the engine; the dealer is seat 0."""
    nodes: list[tuple[tuple[int, ...], int]] = []
    ends: list[tuple[tuple[int, ...], int, tuple[int, int]]] = []
    edges: list[tuple[int, int, tuple[int, ...]]] = []

    def visit(game: Game, path: tuple[int, ...]) -> None:
        if game.over or game.drawing:
            folded = game.result.folded if game.over else None
            first, second = game.paid
            ends.append((path, -1 if folded is None else folded, (first - before, second - before)))
            return
        number = len(nodes)
        nodes.append((path, game.to_act or 0))
        for action in game.legal_actions():
            after = game.clone()
            after.apply(action)
            edges.append((number, action, (*path, action)))
            visit(after, (*path, action))

    visit(start, ())
    ends.sort(key=lambda end: end[1] < 0)  # folds first
    place = {path: n for n, (path, _) in enumerate(nodes)} | {path: -1 - e for e, (path, _, _) in enumerate(ends)}
    child = np.full((len(nodes), len(BETTING_ACTIONS)), NO_CHILD, np.int16)
    for number, action, path in edges:
        child[number, action] = place[path]
    player = np.array([who for _, who in nodes], np.int8)
    own = np.array([np.sum(player[:n] == who) for n, who in enumerate(player)], np.int16)
    return Betting(
        player=player,
        child=child,
        own=own,
        path=tuple(path for path, _ in nodes),
        folder=np.array([folder for _, folder, _ in ends], np.int8),
        paid=np.array([paid for _, _, paid in ends], np.int64),
        end_path=tuple(path for path, _, _ in ends),
    )


def forward(tree: Betting, player: int, strategy: Floats) -> tuple[Floats, Floats]:
    """A player's own reach by hand, ``(nodes, hands)`` and ``(ends, hands)``; ``strategy`` ``(nodes, hands, 3)``."""
    hands, legal = strategy.shape[1], tree.legal()
    nodes, ends = np.ones((len(tree.player), hands)), np.ones((len(tree.folder), hands))
    for n, who in enumerate(tree.player):
        for k in np.flatnonzero(legal[n]):
            c, reach = tree.child[n, k], nodes[n] * strategy[n, :, k] if who == player else nodes[n]
            if c >= 0:
                nodes[c] = reach
            else:
                ends[-1 - c] = reach
    return nodes, ends


def backward(tree: Betting, player: int, ends: Floats, strategy: Floats | None) -> Floats:
    """``(nodes, hands)``: values of nodes from the values of ends; without a strategy the player takes the best action."""
    nodes = np.zeros((len(tree.player), ends.shape[1]))
    legal = tree.legal()
    for n in range(len(tree.player) - 1, -1, -1):
        children = {k: c for k, c in enumerate(tree.child[n].tolist()) if legal[n, k]}
        values = {k: nodes[c] if c >= 0 else ends[-1 - c] for k, c in children.items()}
        if tree.player[n] != player:
            nodes[n] = sum(values.values())
        elif strategy is None:
            nodes[n] = np.max(list(values.values()), axis=0)
        else:
            nodes[n] = sum(strategy[n, :, k] * v for k, v in values.items())
    return nodes
