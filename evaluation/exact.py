"""Exact value, best responses and NashConv of any strategy in a game of at most one draw, in vector form.

Values are in chips per hand and weighted with every deal: nothing is sampled.  For a strategy of both players,

* ``value`` is what the dealer (small blind) wins in expectation; the big blind wins its negative;
* ``best_response_value(player)`` is the most that player can win against the other's strategy;
* ``nash_conv`` is the sum over players of what a best response gains, which is 0 exactly at an equilibrium;
* ``exploitability`` is half of it: what the strategy loses on average over both positions to the player that knows it.

The other's reach is added up by the cards it has seen and the strength of the hand it holds, not by its private history, as
neither card removal nor a showdown depends on more.  Removal of cards of one kind with m cards takes the weight
``m! / (m - s - t)!`` where s and t are the numbers the two players have seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Final

import numpy as np

from archie_env._core.state import DEALER
from evaluation import _kernels
from evaluation.betting import Floats, backward, forward
from evaluation.exact_game import ExactGame
from evaluation.strategy import PLAYERS, Reals, Strategy

_DENSE: Final = 2000
"""Up to so many sets of seen cards removal is a product with a matrix; beyond, in full form, sums over subsets."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a strategy is worth, in chips per hand."""

    values: tuple[float, float]
    """What each position wins, dealer first; sums to 0 up to rounding."""
    best_responses: tuple[float, float]
    """The most each position can win against the other's strategy."""
    big_blind: int
    """Chips of the big blind."""

    @property
    def value(self) -> float:
        """What the dealer (small blind) wins."""
        return self.values[DEALER]

    @property
    def nash_conv(self) -> float:
        """Sum over players of what a best response gains."""
        return sum(self.best_responses) - sum(self.values)

    @property
    def exploitability(self) -> float:
        """Half of NashConv."""
        return self.nash_conv / 2

    def mbb(self, chips: float) -> float:
        """Chips in thousandths of a big blind."""
        return 1000 * chips / self.big_blind


class Removal:
    """Card removal: for each set of cards that one player has seen, sums over those the other can have seen."""

    def __init__(self, game: ExactGame) -> None:
        self._game = game
        self._numbers = game.seen @ game.base  # in full form the bits of the cards
        self._by_matrix = game.multiplicity > 1 or len(game.seen) <= _DENSE
        m = game.multiplicity
        left = [[factorial(m) / factorial(m - s - t) if s + t <= m else 0.0 for t in range(m + 1)] for s in range(m + 1)]
        self._left = np.array(left)
        self._matrices: dict[tuple[int, int], Floats] = {}
        seen, made = np.unique([game.histories.seen, game.strength[game.histories.final]], axis=1)
        place = np.arange(len(seen)) - np.searchsorted(seen, seen)
        self.held = np.full((len(game.seen), place.max() + 1), -1, np.int32)
        """``(seen, places)``: the strengths that each set of cards can make, then -1."""
        self.held[seen, place] = made

    def block(self, thrown: int) -> slice:
        """The sets of seen cards that go with so many cards thrown."""
        start = self._game.seen_start
        return slice(int(start[thrown]), int(start[thrown + 1]))

    def _matrix(self, a: int, b: int) -> Floats:
        if (a, b) not in self._matrices:
            mine, other = self._game.seen[self.block(a)], self._game.seen[self.block(b)]
            matrix = np.ones((len(mine), len(other)))
            for kind in range(self._game.kinds):
                matrix *= self._left[mine[:, kind, None], other[None, :, kind]]
            self._matrices[a, b] = matrix
        return self._matrices[a, b]

    def sums(self, a: int, b: int, amounts: Floats) -> Floats:
        """``(seen with b thrown, columns) -> (seen with a thrown, columns)``."""
        mine, other = self.block(a), self.block(b)
        result = np.empty((mine.stop - mine.start, amounts.shape[1]))
        if self._by_matrix:
            _kernels.weighted_sums(self._matrix(a, b), amounts, result)
        else:
            _kernels.disjoint_sums(self._game.kinds, self._numbers[other], amounts, self._numbers[mine], result)
        return result

    def meetings(self, a: int, b: int, amounts: Floats) -> Floats:
        """``(seen with b thrown, strengths, ends) -> (seen with a thrown, strengths, ends)``."""
        if not self._by_matrix:
            return self.sums(a, b, amounts.reshape(len(amounts), -1)).reshape(-1, *amounts.shape[1:])
        matrix = self._matrix(a, b)
        result = np.empty((len(matrix), *amounts.shape[1:]))
        _kernels.weighted_meetings(matrix, self.held[self.block(b)], amounts, result)
        return result


class Evaluator:
    """Measures strategies of one game; what only depends on the game is worked out once."""

    def __init__(self, game: ExactGame) -> None:
        self.game = game
        self.removal = Removal(game)
        histories, tree = game.histories, game.last
        self.tree = tree.player, tree.child, tree.own
        """The last round's tree as kernels take it."""
        self.ending = histories.ways, histories.seen, game.strength[histories.final]
        """``(histories,)`` each: what the ends of the last round depend on."""
        self._cells = len(histories), game.counts
        self._pat = histories.seen[histories.thrown == 0]  # the sets of cards seen that are a first hand, by hand
        self._pays = game.pays, np.ascontiguousarray(-game.pays.T)

    def first_reach(self, player: int, strategy: Strategy) -> tuple[Floats, Floats]:
        """A player's own reach by hand: ``(nodes, hands)`` of the first round, ``(ends, hands)``."""
        if self.game.first is None:
            return strategy.first[:, :, 0], np.ones((1, len(self.game.hands)))
        return forward(self.game.first, player, strategy.first)

    def line_reach(self, player: int, strategy: Strategy, line: int, ends: Floats) -> Floats:
        """``(histories, counts)``: own reach where the last round begins; ``ends``: that of the first round's ends."""
        game, histories = self.game, self.game.histories
        reach = ends[line - len(game.lines)]  # the lines are the last of the ends
        chosen = reach[:, None] * strategy.draw[player][line]
        start = chosen[:, histories.hand, histories.discard].T
        return np.ascontiguousarray(np.broadcast_to(start, self._cells))

    def end_values(self, player: int, line: int, opponent: Reals, start: Floats) -> tuple[Floats, Floats]:
        """Values to ``player`` of the last round's ends after one line of the first.

        Args:
            player: whose values.
            line: the first round's betting.
            opponent: the other's strategy in this line, see `Strategy.last`.
            start: the other's reach, see `line_reach`.

        Returns:
            Folds ``(counts, seen, fold ends)`` and showdowns ``(counts, seen, strengths, other ends)``; counts are of the
            cards that the other threw.
        """
        game, tree = self.game, self.game.last
        counts, seen, strengths = game.counts, len(game.seen), len(game.classes)
        folds = np.zeros((counts, seen, tree.folds))
        shows = np.zeros((counts, seen, strengths, len(tree.folder) - tree.folds))
        _kernels.reach_ends(*self.tree, 1 - player, opponent, start, *self.ending, folds, shows)
        fold_values, show_values = np.empty_like(folds), np.zeros_like(shows)
        paid = float(game.line_paid[line])
        won = tree.fold_chips(player) + np.where(tree.folder[: tree.folds] == player, -paid, paid)
        at_stake = paid + tree.paid[tree.folds :, 0]
        for a in range(counts):
            mine = self.removal.block(a)
            for b in range(counts):
                other = self.removal.block(b)
                chance = game.deal_chance[a, b]
                fold_values[b, mine] = self.removal.sums(a, b, folds[a, other]) * (won * chance)
                met = self.removal.meetings(a, b, shows[a, other])
                held = self.removal.held[mine]
                _kernels.show_down(self._pays[player], met, held, at_stake * chance, show_values[b, mine])
        return fold_values, show_values

    def by_discard(self, player: int, cells: Floats) -> Floats:
        """``(histories, counts) -> (told, hands, discards)``: summed over what the player has yet to learn when it discards."""
        game, group = self.game, self.game.histories.group
        sums = np.add.reduceat(cells, group, axis=0).T
        if game.told[player] == 1:
            sums = sums.sum(axis=0, keepdims=True)
        result = np.zeros((len(sums), len(game.hands), game.discards))
        result[:, game.histories.hand[group], game.histories.discard[group]] = sums
        return result

    def evaluate(self, strategy: Strategy, progress: Callable[[int, int], None] | None = None) -> Evaluation:
        """Value and best responses of a strategy; ``progress`` is called with lines done and lines in all."""
        game = self.game
        ends = [self.first_reach(player, strategy)[1] for player in PLAYERS]
        played = np.zeros((2, len(game.lines), len(game.hands)))
        answered = np.zeros_like(played)
        values, best = np.empty(self._cells), np.empty(self._cells)
        for line in range(len(game.lines)):
            last = [strategy.last(player, line) for player in PLAYERS]
            for p in PLAYERS:
                start = self.line_reach(1 - p, strategy, line, ends[1 - p])
                end_values = self.end_values(p, line, last[1 - p], start)
                _kernels.last_values(*self.tree, p, last[p], *self.ending, *end_values, values, best)
                played[p, line] = (strategy.draw[p][line] * self.by_discard(p, values)).sum(axis=(0, 2))
                choices = np.where(game.legal_discard, self.by_discard(p, best), -np.inf)
                answered[p, line] = choices.max(axis=2).sum(axis=0)
            if progress:
                progress(line + 1, len(game.lines))
        (v0, b0), (v1, b1) = [
            (
                self.first_values(p, strategy.first, ends[1 - p], played[p])[1],
                self.first_values(p, None, ends[1 - p], answered[p])[1],
            )
            for p in PLAYERS
        ]
        return Evaluation((v0, v1), (b0, b1), game.rules.stakes.blinds[1])

    def first_values(self, player: int, strategy: Floats | None, reach: Floats, lines: Floats) -> tuple[Floats, float]:
        """The first round's values to a player, from those of its lines ``(lines, hands)``.

        Args:
            player: whose values.
            strategy: of the first round; None takes the best action.
            reach: ``(ends, hands)``, the other's.
            lines: values where the draw begins.

        Returns:
            ``(nodes + ends, hands)``: node n at n, end e at ``-1 - e``; and the value of the hand.
        """
        tree, game = self.game.first, self.game
        if tree is None:
            return lines, float(lines.sum())
        amounts = np.zeros((len(game.hands), tree.folds))
        amounts[self._pat] = (reach[: tree.folds] * game.hand_ways).T
        folds = self.removal.sums(0, 0, amounts)[self._pat].T * game.hand_ways * game.deal_chance[0, 0]
        ends = np.concatenate([folds * tree.fold_chips(player)[:, None], lines])
        nodes = backward(tree, player, ends, strategy)
        return np.concatenate([nodes, ends[::-1]]), float(nodes[0].sum())


def evaluate(game: ExactGame, strategy: Strategy) -> Evaluation:
    """Everything at once, see `Evaluation`."""
    return Evaluator(game).evaluate(strategy)


def value(game: ExactGame, strategy: Strategy) -> float:
    """Chips per hand the dealer wins."""
    return evaluate(game, strategy).value


def best_response_value(game: ExactGame, strategy: Strategy, player: int) -> float:
    """The most chips per hand ``player`` (0 the dealer) can win against the other's strategy."""
    return evaluate(game, strategy).best_responses[player]


def nash_conv(game: ExactGame, strategy: Strategy) -> float:
    """Sum over players of the chips per hand a best response gains."""
    return evaluate(game, strategy).nash_conv


def exploitability(game: ExactGame, strategy: Strategy) -> float:
    """Half of `nash_conv`, in chips per hand."""
    return nash_conv(game, strategy) / 2
