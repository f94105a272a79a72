"""The strategy that a policy plays, found by asking for its probabilities at every information set, in batches.

Answers are taken as float64 and divided by their sum, which must be 1 within 0.0001.  In class form every question is asked
again with other suits, and a policy that answers differently is refused: class form would not be its exact value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import DISCARD
from archie_env.errors import ArchieError
from archie_env.policy import Policy
from evaluation.betting import BETTING_ACTIONS, Floats, Ints
from evaluation.exact_game import ExactGame
from evaluation.questions import Questions, Rows, position_text
from evaluation.strategy import PLAYERS, Reals, shapes

BATCH: Final = 32_768
"""Rows handed to a policy at once."""
ASSIGNMENTS: Final = 4
"""Ways of giving suits to the cards in which each question is asked in class form."""
_SUM_TOLERANCE: Final = 1e-4
_SUIT_TOLERANCE: Final = 1e-6
_SINGLE_PRECISION: Final = 20_000_000
"""Information sets beyond which the last round is kept in float32."""


class LooksAtSuitsError(ArchieError):
    """A policy asked in class form answered differently when only suits were exchanged; names the position."""


def checked(policy: Policy, rows: Rows, game: ExactGame) -> Floats:
    """``(n, a)``: a policy's probabilities.

    Raises:
        ArchieError: if it raises, or for NaN, negative, illegal or unnormalised probabilities, naming the first position.
    """
    masks = rows.masks
    try:
        answer: Any = policy.probabilities(rows.observations.copy(), masks.copy())
    except ArchieError:
        raise
    except Exception as error:
        raise ArchieError(f"{policy.name}: probabilities raised {type(error).__name__}: {error}") from error
    given = np.asarray(answer)
    if given.shape != masks.shape or not np.issubdtype(given.dtype, np.floating):
        raise ArchieError(
            f"{policy.name}: probabilities of shape {given.shape} and dtype {given.dtype}: expected {masks.shape} floats"
        )
    chances = given.astype(np.float64)
    total = chances.sum(axis=1)
    faults = {
        "not a finite number": ~np.isfinite(chances).all(axis=1),
        "negative": (chances < 0).any(axis=1),
        "positive for an illegal action": ((chances > 0) & (masks == 0)).any(axis=1),
        f"not normalised, the sum is {total[np.argmax(np.abs(total - 1))]:.6g}": ~(np.abs(total - 1) <= _SUM_TOLERANCE),
    }
    for fault, where in faults.items():
        if where.any():
            i = int(np.argmax(where if "sum" not in fault else np.abs(total - 1)))
            answers = ", ".join(f"{a}: {p:g}" for a, p in enumerate(chances[i]) if p != 0)
            raise ArchieError(
                f"{policy.name}: a probability is {fault} ({answers or 'all 0'}) as "
                f"{position_text(rows.observations[i], masks[i], game.rules)}"
            )
    normal: Floats = chances / total[:, None]
    return normal


class AskedStrategy:
    """A policy as a `evaluation.strategy.Strategy` of a game: the last round is asked for when it is wanted, and not kept.

    Args:
        policy: any policy for the game's rules.
        game: in full form exact for every policy; in class form for those that ignore suits, which is checked.
        assignments: how often each question is asked with other suits in class form, at least 2.
        asked: called with the number of rows a policy has just answered.

    Raises:
        LooksAtSuitsError: in class form, when an answer depends on suits.
        ArchieError: see `checked`.
    """

    def __init__(
        self,
        policy: Policy,
        game: ExactGame,
        assignments: int = ASSIGNMENTS,
        asked: Callable[[int], None] | None = None,
    ) -> None:
        if game.form == "class" and assignments < 2:
            raise ArchieError(f"assignments {assignments}: expected at least 2, as one shows nothing about suits")
        self.policy, self.game = policy, game
        self.rows = 0
        """Rows the policy has answered so far."""
        self._asked = asked
        self._times = assignments if game.multiplicity > 1 else 1
        self._questions = Questions(game)
        first, draw, self._last_shapes = shapes(game)
        self._dtype: Any = np.float32 if game.information_sets > _SINGLE_PRECISION else np.float64
        self.first: Floats = np.zeros(first)
        self._ask_first()
        a, b = (self._ask_draw(player, draw[player]) for player in PLAYERS)
        self.draw: tuple[Floats, Floats] = a, b

    def _ask(self, make: Callable[[], Rows], read: Callable[[Floats], Floats]) -> Floats:
        """What ``read`` makes of the answers, the same for every assignment of suits."""
        rows = make()
        answer = read(self._answers(rows))
        for _ in range(1, self._times):
            again = make()
            other = read(self._answers(again))
            differ = (np.abs(answer - other) > _SUIT_TOLERANCE).any(axis=1)
            if differ.any():
                i = int(np.argmax(differ))
                one, two = (position_text(r.observations[i], r.masks[i], self.game.rules) for r in (rows, again))
                raise LooksAtSuitsError(
                    f"{self.policy.name} looks at suits, which form 'class' cannot measure: "
                    f"other probabilities as {one} than as {two}"
                )
        return answer

    def _answers(self, rows: Rows) -> Floats:
        n = len(rows.observations)
        parts = [slice(i, i + BATCH) for i in range(0, n, BATCH)]
        answers = [checked(self.policy, Rows(rows.observations[p], rows.masks[p]), self.game) for p in parts]
        self.rows += n
        if self._asked:
            self._asked(n)
        return np.concatenate(answers)

    def _ask_first(self) -> None:
        for node in range(len(self.first)):
            self.first[node] = self._ask(partial(self._questions.first, node), _betting)

    def _ask_draw(self, player: int, shape: tuple[int, ...]) -> Floats:
        draw = np.ones(shape)
        if not self.game.rules.draws:
            return draw
        for line in range(shape[0]):
            for told in range(shape[1]):
                draw[line, told] = self._ask(partial(self._questions.draw, player, line, told), self._discards)
        return draw

    def _discards(self, answers: Floats) -> Floats:
        """``(hands, a) -> (hands, discards)``: the chance of each discard, whichever cards of a kind go."""
        table = self.game.discard_of_subset
        hand, subset = np.nonzero(table >= 0)
        chances = np.zeros((len(table), self.game.discards))
        np.add.at(chances, (hand, table[hand, subset]), answers[hand, DISCARD + subset])
        return chances

    def last(self, player: int, line: int) -> Reals:
        """See `Strategy.last`."""
        game, counts = self.game, self.game.counts
        nodes = game.last.nodes_of(player)
        cells = len(game.histories) * counts
        result: NDArray[Any] = np.empty((cells, len(nodes), len(BETTING_ACTIONS)), self._dtype)
        for start in range(0, cells, BATCH):
            cell = np.arange(start, min(start + BATCH, cells))
            for own, node in enumerate(nodes.tolist()):
                result[cell, own] = self._ask(partial(self._last, player, line, cell, node), _betting)
        return result.reshape(self._last_shapes[player][1:])

    def _last(self, player: int, line: int, cells: Ints, node: int) -> Rows:
        history, other = np.divmod(cells, self.game.counts)
        return self._questions.last(self._questions.deal(player, history, other), line, node)


def _betting(answers: Floats) -> Floats:
    return answers[:, : len(BETTING_ACTIONS)]
