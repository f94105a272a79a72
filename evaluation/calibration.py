"""Calibration of reviews: what the played actions were said to be worth against what they brought.

python -m evaluation.calibration champion --hands 10000
python -m evaluation.calibration rule_based --rules mini --hands 10000

An agent plays itself; one decision of each hand is reviewed by the same agent.  The hand's result is then an unbiased sample of
the exact value of the action, so the mean of result minus value is the bias of the values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents import load
from archie_env.game import Game
from archie_env.policy import Policy, private_generator
from archie_env.review import PARTICLES, review_hand
from archie_env.rules import Rules, as_rules
from archie_env.validation import whole_number
from evaluation.command import Agent, RulesName, Seed, progress, run_command, table


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the bias of the values of a review, by betting round."""

    agent: Agent
    hands: int = 10_000
    """Hands of self-play; one decision of each is reviewed."""
    rules: RulesName = "archie"
    seed: Seed = 0
    particles: int = PARTICLES
    """Particles of the first try."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One reviewed decision."""

    round: int
    kind: str
    value: float | None
    """None where the review says nothing."""
    result: int

    @property
    def bias(self) -> float:
        """Result minus value, in chips."""
        assert self.value is not None
        return self.result - self.value


def samples(agent: Policy, rules: Rules | str, hands: int, seed: int = 0, particles: int = PARTICLES) -> Iterator[Sample]:
    """Review one random decision in each hand of self-play."""
    rules = as_rules(rules)
    rng = private_generator(seed, "calibration")
    for hand in range(hands):
        game = Game(rules, seed=seed, hand=hand)
        moves = []
        while (seat := game.to_act) is not None:
            at = len(game.history)
            game.apply(int(agent.act(game.observation(seat)[None], game.mask(seat)[None], rng)[0]))
            moves.append((at, seat))
        move, seat = moves[rng.integers(len(moves))]
        (decision,) = review_hand(game, seat, agent, particles=particles, seed=hand, moves=[move]).decisions
        (played,) = (action for action in decision.actions if action.played)
        yield Sample(decision.round, decision.kind, played.value, game.result.net[seat])


def _rows(found: Sequence[Sample]) -> list[list[str]]:
    """The table: a line for each betting round and draw, and one for all."""
    by_part: dict[str, list[Sample]] = defaultdict(list)
    for sample in found:
        by_part[f"{'betting round' if sample.kind == 'bet' else 'draw'} {sample.round}"].append(sample)
    rows = [["decisions", "hands", "nothing said", "result minus value", "SE", "bias / SE"]]
    for part, some in [*sorted(by_part.items()), ("all", list(found))]:
        bias = np.array([sample.bias for sample in some if sample.value is not None])
        if len(bias) < 2:
            rows.append([part, str(len(some)), str(len(some) - len(bias)), "", "", ""])
            continue
        mean, error = bias.mean(), bias.std(ddof=1) / np.sqrt(len(bias))
        rows.append([part, str(len(some)), str(len(some) - len(bias)), f"{mean:+.3f}", f"{error:.3f}", f"{mean / error:+.2f}"])
    return rows


def _work(options: Options) -> None:
    whole_number("hands", options.hands, 2)
    agent = load(options.agent, options.rules)
    found = []
    with progress(options.hands, "hands") as advance:
        for sample in samples(agent, options.rules, options.hands, options.seed, options.particles):
            found.append(sample)
            advance(1)
    played = f"{options.agent}, rules {options.rules}, {options.hands} hands, seed {options.seed}"
    print(f"{played}, {options.particles} particles; chips")
    print("\n".join(table(_rows(found), markdown=True)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.calibration", _work, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
