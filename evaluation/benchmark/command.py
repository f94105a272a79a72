"""The command ``python -m evaluation.benchmark``; docs/benchmark.md states the protocol.

python -m evaluation.benchmark rule_based --quick --out results/card-rule_based
python -m evaluation.benchmark ppo:runs/first/policy.npz --out results/card-first            # killed? add --resume
python -m evaluation.benchmark 'solution:agents/weights/solution-{rules}.npz' --quick        # a file for each set of rules
python -m evaluation.benchmark configs/ppo/smoke.toml --out results/card-smoke               # trained for each set of rules
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from evaluation.benchmark.measurement import benchmark
from evaluation.benchmark.protocol import FULL, QUICK, Protocol
from evaluation.command import Jobs, OutFolder, Resume, Seed, TimeLimit, interrupted, run_command

_AGENT = "An agent, in whose name {rules} stands for mini, midi and archie, or a trainer's TOML file as in configs/."


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the whole card of an agent, or of the agent that a trainer makes."""

    agent: Annotated[str, arg(metavar="AGENT_OR_TRAINER", help=_AGENT), Positional]
    quick: bool = False
    """Use small budgets: some minutes instead of the full protocol."""
    seed: Seed = FULL.seed
    jobs: Jobs = 1
    time_limit: TimeLimit = None
    out: OutFolder = None
    resume: Resume = False

    @property
    def protocol(self) -> Protocol:
        """The protocol with the chosen seed."""
        return replace(QUICK if self.quick else FULL, seed=self.seed)

    @property
    def folder(self) -> Path:
        """Folder of the card; ``results/card-PROTOCOL-AGENT`` by default."""
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", self.agent)[-60:].strip("-")
        return self.out or Path("results") / f"card-{self.protocol.name}-{name}"


def measure(options: Options) -> None:
    """Measure the card, print it, then write it, so that a failure to write loses nothing."""
    folder = options.folder
    card = benchmark(options.agent, folder, options.protocol, options.resume, options.jobs, options.time_limit)
    print(card.markdown(), end="", flush=True)
    card.write(folder)
    print(f"\n{folder / 'card.md'}, {folder / 'card.json'}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.benchmark", measure, arguments, lambda options: interrupted(options.folder))
