"""What a CFR run is: the stages from coarse to fine, and what is reported on the way; see `training.settings`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.cfr import STEPS
from training.cfr.abstraction import Detail
from training.settings import RULES, Played, real, several, shown, tables, whole


@dataclass(frozen=True, slots=True)
class Stage:
    """Training on one abstraction.  A stage begins with what the one before has learnt."""

    detail: Detail = field(default_factory=Detail)
    traversals: int = whole(0, 0, 10**13)
    """How many, both positions counted; 0 = as many as the time allows."""
    seconds: float = real(0.0, 0.0, 1e7)
    """Wall time spent training; 0 = no limit.  A stage that is ended by time is not reproducible."""
    keep: float = real(1.0, 0.0, 10.0)
    """How much of the stage before it begins with; 1 is what its own smaller classes would have gathered until here."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is measured and written on the way; none of it changes the training."""

    seconds: float = real(30.0, 1.0, 1e7)
    """Training time between matches against the reference agents."""
    deals: int = whole(4096, 2, 10**8)
    """Of each match on the way, each dealt twice with seats swapped."""
    last_deals: int = whole(20_000, 2, 10**8)
    """The same at the end."""
    agents: tuple[str, ...] = several(("call_draw", "rule_based"), "names that agents.load takes", lambda v: isinstance(v, str))
    save_seconds: float = real(120.0, 1.0, 1e7)
    """Training time between checkpoints: what a kill can cost."""


@dataclass(frozen=True, slots=True)
class Config(Played):
    """A whole run."""

    seed: int = whole(1, 0, 2**63 - 1)
    threads: int = whole(1, 1, 256)
    """On shared tables.  Only a run on one thread is reproducible."""
    rules: str | dict[str, Any] = field(default="archie", metadata=RULES)
    explore: float = real(0.25, 0.0, 1.0)
    """How often an action of the traverser is looked at that is never taken."""
    drop: float = real(0.05, 0.0, 0.5)
    """Actions less likely than this are left out of the finished strategy."""
    levels: int = whole(STEPS, 5, STEPS)
    """Its probabilities are rounded to multiples of 1 / levels; with fewer the file is smaller."""
    stages: tuple[Stage, ...] = tables(Stage, "stages")
    report: Report = field(default_factory=Report)

    def faults(self) -> Iterator[str]:
        """What no field can tell alone; see `training.settings`."""
        if unplayable := list(self.rules_faults()):
            yield from unplayable
            return
        rules = self.played()
        if STEPS % self.levels:
            yield f"levels = {self.levels}: expected a divisor of {STEPS} from 5, such as 15, 51 or {STEPS}"
        if "human" in self.report.agents:
            yield "report.agents: human: expected players that need no terminal"
        for i, stage in enumerate(self.stages):
            if not stage.traversals and not stage.seconds:
                yield f"stages[{i}]: traversals = 0 and seconds = 0: expected one of them above 0"
            if len(stage.detail.pots) < rules.draws:
                yield (
                    f"stages[{i}].detail.pots = {shown(stage.detail.pots)}: expected a list for each of the "
                    f"{rules.draws} rounds after the first"
                )
