"""How often each direction of the pot is contested when a strategy plays itself: both ways, one way, or nobody qualifies.

python -m evaluation.showdowns --rules mini
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from agents import load
from archie_env._core.state import BIG_BLIND, DEALER
from archie_env.errors import ArchieError
from archie_env.observation import lowest_qualifying_high
from archie_env.rules import PRESETS
from evaluation import _kernels
from evaluation.asked import AskedStrategy
from evaluation.betting import Floats, Ints
from evaluation.exact import Evaluator
from evaluation.exact_game import ExactGame
from evaluation.strategy import PLAYERS, Strategy

_WEIGHTS: Final = Path(__file__).resolve().parents[1] / "agents" / "weights"
CASES: Final = ("both ways", "high only", "low only", "nobody")


def case_of(game: ExactGame) -> Ints:
    """``(strengths, strengths)``: which of `CASES` a showdown of two strengths is."""
    high = game.classes[:, 0] >= lowest_qualifying_high(game.rules)
    low = game.classes[:, 1] > 0
    any_high, any_low = high[:, None] | high, low[:, None] | low
    return np.where(any_high & any_low, 0, np.where(any_high, 1, np.where(any_low, 2, 3)))


def showdowns(evaluator: Evaluator, strategy: Strategy) -> tuple[float, Floats, float]:
    """Chance that a hand is shown down, ``(cases,)`` shares of those hands, and the share in which one hand takes all.

    The last is of the showdowns that are contested both ways: one hand wins the high and the low part.
    """
    game, removal = evaluator.game, evaluator.removal
    tree, counts = game.last, game.counts
    ends = [evaluator.first_reach(player, strategy)[1] for player in PLAYERS]
    met = np.zeros((len(game.classes), len(game.classes)))
    for line in range(len(game.lines)):
        shows = []
        for p in PLAYERS:
            start = evaluator.line_reach(p, strategy, line, ends[p])
            folds = np.zeros((counts, len(game.seen), tree.folds))
            shows.append(np.zeros((counts, len(game.seen), len(game.classes), len(tree.folder) - tree.folds)))
            _kernels.reach_ends(*evaluator.tree, p, strategy.last(p, line), start, *evaluator.ending, folds, shows[p])
        for a in range(counts):
            for b in range(counts):
                mine = shows[DEALER][b, removal.block(a)]
                other = removal.meetings(a, b, shows[BIG_BLIND][a, removal.block(b)])
                met += game.deal_chance[a, b] * np.einsum("sce,sde->cd", mine, other, optimize=True)
    shares = np.bincount(case_of(game).ravel(), met.ravel(), len(CASES))
    contested = met * (case_of(game) == 0)
    scooped = contested[np.abs(game.pays) == 1].sum() / contested.sum() if contested.any() else 0.0
    return float(met.sum()), shares / met.sum(), float(scooped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.showdowns", description="What showdowns are about.")
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: the reference solution")
    parser.add_argument("--rules", default="mini", choices=[name for name, rules in PRESETS.items() if rules.draws == 1])
    options = parser.parse_args(arguments)
    name = options.agent or f"solution:{_WEIGHTS / f'solution-{options.rules}.npz'}"
    try:
        evaluator = Evaluator(ExactGame(options.rules, "class"))
        shown, shares, scooped = showdowns(evaluator, AskedStrategy(load(name, options.rules), evaluator.game))
    except ArchieError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    who = options.agent or "the reference solution"
    print(f"{who} against itself under rules {options.rules}: {shown:.1%} of hands are shown down; of these")
    for case, share in zip(CASES, shares, strict=True):
        scoops = f"  (one hand takes both parts in {scooped:.1%} of them)" if case == CASES[0] else ""
        print(f"  {case:10}{share:7.1%}{scoops}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
