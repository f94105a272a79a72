"""The command ``python -m evaluation.best_response``.

python -m evaluation.best_response rule_based --budget 400000 --seed 1
python -m evaluation.best_response ppo:a.npz --budget 4000000 --out results/a-bound            # killed? add --resume
python -m evaluation.best_response ppo:a.npz --budget 60s --exploiters rule_based lbr ppo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from evaluation.best_response.bound import best_response, format_bound
from evaluation.best_response.exploiters import EXPLOITERS, Budget, Settings
from evaluation.command import Agent, OutFolder, Resume, RulesName, Seed, TimeLimit, check_resume, interrupted, run_command

_DEFAULT = Settings()
_EXPLOITERS = f"Opponents instead of all of them: {', '.join(EXPLOITERS)}, or any agent."


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure a lower bound on the winnings of a best response to an agent."""

    agent: Agent
    budget: Annotated[str, arg(metavar="N|Ns")] = str(_DEFAULT.budget.decisions)
    """Learning time of an opponent: decisions (400000) or seconds (60s)."""
    deals: int = _DEFAULT.deals
    """Deal pairs of a match."""
    slow_deals: int = _DEFAULT.slow_deals
    """Deal pairs of a match against lbr."""
    particles: int = _DEFAULT.particles
    """Hands that lbr samples."""
    exploiters: Annotated[tuple[str, ...], arg(metavar="NAME ...", help=_EXPLOITERS, help_behavior_hint="")] = ()
    rules: RulesName = "archie"
    seed: Seed = _DEFAULT.seed
    chunk: int = _DEFAULT.chunk
    """Deals played side by side."""
    time_limit: TimeLimit = None
    checkpoint: Annotated[str | None, arg(metavar="FILE")] = None
    """Checkpoint of the training.cfr run that made the agent, for the cfr responder."""
    out: OutFolder = None
    resume: Resume = False


def measure(options: Options) -> None:
    """Measure the bound and print it."""
    check_resume(options.resume, "--out FOLDER", options.out)
    settings = Settings(
        Budget.parse(options.budget), options.deals, options.slow_deals, options.particles, options.seed,
        options.exploiters, options.chunk, options.time_limit, options.checkpoint,
    )  # fmt: skip
    print(format_bound(best_response(options.agent, options.rules, settings, options.out, options.resume)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.best_response", measure, arguments, lambda options: interrupted(options.out))
