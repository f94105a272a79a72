"""Near-equilibria of games of at most one draw, by discounted counterfactual regret minimisation over every information set.

python -m evaluation.solver --rules mini --target 1 --out runs/mini.npz
python -m evaluation.exploitability solution:runs/mini.npz --rules mini

Brown & Sandholm (2019), "Solving imperfect-information games via discounted regret minimization": players are updated in turn,
positive regrets are discounted by t^1.5 / (t^1.5 + 1), negative ones halved, and strategy t counts t^2 in the average.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.solution import STEPS, save_solution
from archie_env.errors import ArchieError
from archie_env.rules import PRESETS
from evaluation import _kernels
from evaluation.betting import Floats
from evaluation.exact import Evaluation, Evaluator
from evaluation.exact_game import ExactGame
from evaluation.files import check_file
from evaluation.strategy import PLAYERS, Tabular, fill, uniform
from training.folders import make_folder

_ALPHA: Final = 1.5
_NEGATIVE: Final = 0.5
_GAMMA: Final = 2.0


class Solver:
    """Iterates on a game; `average` is the strategy that approaches an equilibrium."""

    def __init__(self, game: ExactGame) -> None:
        self.game, self.evaluator = game, Evaluator(game)
        self.iterations = 0
        self._current = uniform(game)
        self._regrets, self._total = _zeros(self._current), _zeros(self._current)
        self._values = np.empty((len(game.histories), game.counts))

    def iterate(self) -> None:
        """One update of each player, the dealer first."""
        self.iterations += 1
        for player in PLAYERS:
            self._update(player)

    def _update(self, player: int) -> None:
        game, evaluator, now = self.game, self.evaluator, self._current
        t = float(self.iterations)
        discounts = t**_ALPHA / (t**_ALPHA + 1), _NEGATIVE, t**_GAMMA
        nodes, mine = evaluator.first_reach(player, now)
        other = evaluator.first_reach(1 - player, now)[1]
        lines = np.empty((len(game.lines), len(game.hands)))
        for line in range(len(game.lines)):
            start = evaluator.line_reach(1 - player, now, line, other)
            ends = evaluator.end_values(player, line, now.last(1 - player, line), start)
            reach = evaluator.line_reach(player, now, line, mine)
            last = [s.last_round[player][line] for s in (now, self._regrets, self._total)]
            _kernels.last_regrets(*evaluator.tree, player, *last, reach, *evaluator.ending, *ends, discounts, self._values)
            draw = [s.draw[player][line] for s in (now, self._regrets, self._total)]
            actions = evaluator.by_discard(player, self._values)
            own = mine[line - len(game.lines)][:, None]
            lines[line] = _regret_step(draw, actions, own, game.legal_discard, discounts)
        if game.first is None:
            return
        value = evaluator.first_values(player, now.first, other, lines)[0]
        for n in game.first.nodes_of(player):
            first = [s.first[n] for s in (now, self._regrets, self._total)]
            legal = game.first.legal()[n]
            actions = np.where(legal, value[np.where(legal, game.first.child[n], 0)].T, 0.0)
            _regret_step(first, actions, nodes[n][:, None], legal, discounts)

    def average(self) -> Tabular:
        """Both players' average strategies; where a player never comes, every action is equally likely."""
        parts = iter([self._total.first, *self._total.draw, *self._total.last_round])

        def weights(shape: tuple[int, ...]) -> Floats:
            part: Floats = next(parts)
            none = part.sum(axis=-1, keepdims=True) == 0
            return np.where(none, 1.0, part)

        return fill(self.game, weights)


def _zeros(like: Tabular) -> Tabular:
    a, b, c, d = (np.zeros_like(part) for part in (*like.draw, *like.last_round))
    return Tabular(np.zeros_like(like.first), (a, b), (c, d))


def _regret_step(
    parts: Sequence[Floats],
    actions: Floats,
    reach: Floats,
    legal: NDArray[np.bool_],
    discounts: tuple[float, float, float],
) -> Floats:
    """As `_kernels.last_regrets` for decisions ``(..., hands, actions)``; returns ``(hands,)``, the values before the step.

    ``parts``: the strategy, its regrets and the total that becomes the average; all are written to.
    """
    strategy, regrets, total = parts
    positive, negative, weight = discounts
    value = (strategy * actions).sum(axis=-1, keepdims=True)
    total += weight * reach * strategy
    regrets *= np.where(regrets > 0, positive, negative)
    regrets += np.where(legal, actions - value, 0.0)
    wanted = np.maximum(regrets, 0.0)
    sums = wanted.sum(axis=-1, keepdims=True)
    even = legal / legal.sum(axis=-1, keepdims=True)
    strategy[:] = np.where(sums > 0, wanted / np.where(sums > 0, sums, 1.0), even)
    before: Floats = value.reshape(-1, strategy.shape[-2]).sum(axis=0)
    return before


@dataclass(frozen=True, slots=True)
class Solution:
    """Where a solver stopped."""

    strategy: Tabular
    evaluation: Evaluation
    iterations: int
    seconds: float
    """Spent on iterating and measuring."""


def solve(
    game: ExactGame,
    target: float,
    most_seconds: float = 3600.0,
    report: Callable[[Solution], None] | None = None,
) -> Solution:
    """Iterate until the average strategy's exploitability is at most ``target`` mbb per hand, or time is up.

    ``report`` is called after each measurement.
    """
    if not target > 0:
        raise ArchieError(f"target {target}: expected more than 0 mbb/hand")
    start = time.perf_counter()
    solver, next_measured = Solver(game), 16
    while True:
        solver.iterate()
        late = time.perf_counter() - start > most_seconds
        if solver.iterations < next_measured and not late:
            continue
        next_measured = solver.iterations + max(8, solver.iterations // 8)
        strategy = solver.average()
        evaluation = solver.evaluator.evaluate(strategy)
        found = Solution(strategy, evaluation, solver.iterations, time.perf_counter() - start)
        if report:
            report(found)
        if late or evaluation.mbb(evaluation.exploitability) <= target:
            return found


def solution_arrays(game: ExactGame, strategy: Tabular) -> dict[str, NDArray[Any]]:
    """A strategy in class form and its index as `agents.solution` reads them."""
    histories = game.histories
    keys: dict[str, NDArray[Any]] = {
        "hands": game.hands,
        "discard_of_subset": game.discard_of_subset.astype(np.int16),
        "histories": np.column_stack([histories.hand, histories.discard, histories.replacement]).astype(np.int16),
    }
    tables: dict[str, NDArray[Any]] = {"first": strategy.first}
    for p in PLAYERS:
        tables |= {f"draw{p}": strategy.draw[p], f"last{p}": strategy.last_round[p]}
    return {**keys, **tables}


def solution_meta(game: ExactGame, evaluation: Evaluation, iterations: int) -> dict[str, Any]:
    """What a solution is of, and how good it is."""
    assert game.first is not None
    return {
        "rules": game.rules.to_dict(),
        "lines": game.lines,
        "first_nodes": game.first.path,
        "last_nodes": [[game.last.path[n] for n in game.last.nodes_of(p)] for p in PLAYERS],
        "iterations": iterations,
        "small_blind_value": evaluation.value,
        "exploitability_mbb": evaluation.mbb(evaluation.exploitability),
    }


def write_solution(path: Path, game: ExactGame, found: Solution) -> Evaluation:
    """Write a solution in class form for `agents.solution`; returns what the strategy in the file, rounded, is worth."""
    tables = iter([found.strategy.first, *found.strategy.draw, *found.strategy.last_round])
    rounded = fill(game, lambda shape: np.rint(next(tables) * STEPS))
    evaluation = Evaluator(game).evaluate(rounded)
    save_solution(path, solution_arrays(game, found.strategy), solution_meta(game, evaluation, found.iterations))
    return evaluation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    small = [name for name, rules in PRESETS.items() if rules.draws == 1]
    parser = argparse.ArgumentParser(prog="python -m evaluation.solver", description="Solve a small game by discounted CFR.")
    parser.add_argument("--rules", default="mini", choices=small)
    parser.add_argument("--target", type=float, default=1.0, help="exploitability to reach, mbb/hand (default 1)")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after so long in any case (default 3600)")
    parser.add_argument("--out", type=Path, metavar="FILE.npz", help="write the average strategy here")
    options = parser.parse_args(arguments)

    def report(found: Solution) -> None:
        e = found.evaluation
        print(
            f"{found.iterations:6d} iterations {found.seconds:7.1f} s  exploitability {e.mbb(e.exploitability):9.3f} mbb/hand  "
            f"small blind {e.value:+.5f} chips/hand",
            flush=True,
        )

    try:
        if options.out:
            make_folder(options.out.parent)
            check_file(options.out)
        game = ExactGame(options.rules, "class")
        found = solve(game, options.target, options.seconds, report)
        if options.out:
            e = write_solution(options.out, game, found)
            print(
                f"{options.out}: exploitability {e.mbb(e.exploitability):.3f} mbb/hand, small blind {e.value:+.5f} chips/hand"
            )
    except (ArchieError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
