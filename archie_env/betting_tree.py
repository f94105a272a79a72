"""One betting round as a tree walked by the engine, and reach and values along it.

Nodes and ends are numbered in the order of a depth-first walk, ends by a fold before all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import CALL, FOLD, RAISE
from archie_env.game import Game

BETTING_ACTIONS: Final = (FOLD, CALL, RAISE)
NO_CHILD: Final = -(1 << 15)
"""Entry of `Betting.child` for an illegal action."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Betting:
    """One betting round as a tree; every node precedes its children."""

    player: NDArray[np.int8]
    """``(nodes,)``: position to act, 0 for the dealer."""
    child: NDArray[np.int16]
    """``(nodes, 3)``: next node after fold, check/call and bet/raise; ``-1 - e`` for end e, `NO_CHILD` if illegal."""
    own: NDArray[np.int16]
    """``(nodes,)``: index of the node among those of its player."""
    path: tuple[tuple[int, ...], ...]
    """``(nodes,)``: betting actions since the start of the round."""
    folder: NDArray[np.int8]
    """``(ends,)``: position that folded, or -1 before a draw or a showdown; folds come first."""
    paid: Ints
    """``(ends, 2)``: chips paid by position, relative to ``before``."""
    end_path: tuple[tuple[int, ...], ...]
    """``(ends,)``: betting actions since the start of the round."""

    @property
    def folds(self) -> int:
        """Number of ends by a fold."""
        return int((self.folder >= 0).sum())

    def nodes_of(self, player: int) -> Ints:
        """Return the nodes of a player."""
        return np.flatnonzero(self.player == player)

    def legal(self) -> NDArray[np.bool_]:
        """Return whether each action is legal, ``(nodes, 3)``."""
        legal: NDArray[np.bool_] = self.child != NO_CHILD
        return legal

    def same_tree(self, other: Betting) -> bool:
        """Whether both trees have the same actions and cost the same chips."""
        return (self.path, self.end_path) == (other.path, other.end_path) and np.array_equal(self.paid, other.paid)

    def fold_chips(self, player: int) -> Ints:
        """Net chips of `player` at each terminal fold, relative to ``before``; shape ``(folds,)``."""
        folder = self.folder[: self.folds]
        lost = np.take_along_axis(self.paid[: self.folds], folder[:, None], axis=1)[:, 0]
        return np.where(folder == player, -lost, lost)


def walk(start: Game, before: int) -> Betting:
    """Walk the betting round at whose beginning ``start`` stands; the dealer must be seat 0.

    ``before``: chips that each player has paid in earlier rounds.
    """
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
    index = {path: n for n, (path, _) in enumerate(nodes)} | {path: -1 - e for e, (path, _, _) in enumerate(ends)}
    child = np.full((len(nodes), len(BETTING_ACTIONS)), NO_CHILD, np.int16)
    for number, action, path in edges:
        child[number, action] = index[path]
    player = np.array([position for _, position in nodes], np.int8)
    own = np.array([np.sum(player[:n] == position) for n, position in enumerate(player)], np.int16)
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
    """Return a player's own reach by hand, ``(nodes, hands)`` and ``(ends, hands)``, under a strategy ``(nodes, hands, 3)``."""
    hands, legal = strategy.shape[1], tree.legal()
    nodes, ends = np.ones((len(tree.player), hands)), np.ones((len(tree.folder), hands))
    for n, position in enumerate(tree.player):
        for k in np.flatnonzero(legal[n]):
            c, reach = tree.child[n, k], nodes[n] * strategy[n, :, k] if position == player else nodes[n]
            if c >= 0:
                nodes[c] = reach
            else:
                ends[-1 - c] = reach
    return nodes, ends


def backward(tree: Betting, player: int, ends: Floats, strategy: Floats | None) -> Floats:
    """Return the values of nodes ``(nodes, hands)`` from those of ends; without a strategy the player takes the best action."""
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
