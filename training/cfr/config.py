"""What a CFR run is: the stages from coarse to fine, and what is reported on the way; see `training.settings`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from agents.cfr import STEPS
from archie_env.errors import shown
from training.cfr.abstraction import Detail
from training.settings import AgentName, RunSettings, Settings, Several


class Stage(Settings):
    """Training on one abstraction.  A stage begins with what the one before has learnt."""

    detail: Detail = Detail()
    traversals: int = Field(default=0, ge=0, le=10**13)
    """How many, both positions counted; 0 = as many as the time allows."""
    seconds: float = Field(default=0.0, ge=0.0, le=1e7)
    """Wall time spent training; 0 = no limit.  A stage that is ended by time is not reproducible."""
    keep: float = Field(default=1.0, ge=0.0, le=10.0)
    """How much of the stage before it begins with; 1 is what its own smaller classes would have gathered until here."""


class Report(Settings):
    """What is measured and written on the way; none of it changes the training."""

    seconds: float = Field(default=30.0, ge=1.0, le=1e7)
    """Training time between matches against the reference agents."""
    deals: int = Field(default=4096, ge=2, le=10**8)
    """Of each match on the way, each dealt twice with seats swapped."""
    last_deals: int = Field(default=20_000, ge=2, le=10**8)
    """The same at the end."""
    agents: Several[AgentName] = ("call_draw", "rule_based")
    save_seconds: float = Field(default=120.0, ge=1.0, le=1e7)
    """Training time between checkpoints: what a kill can cost."""


class Config(RunSettings):
    """A whole run."""

    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    threads: int = Field(default=1, ge=1, le=256)
    """On shared tables.  Only a run on one thread is reproducible."""
    explore: float = Field(default=0.25, ge=0.0, le=1.0)
    """How often an action of the traverser is looked at that is never taken."""
    drop: float = Field(default=0.05, ge=0.0, le=0.5)
    """Actions less likely than this are left out of the finished strategy."""
    levels: int = Field(default=STEPS, ge=5, le=STEPS)
    """Its probabilities are rounded to multiples of 1 / levels; with fewer the file is smaller."""
    stages: Annotated[Several[Stage], Field(min_length=1)] = (Stage(),)
    report: Report = Report()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check what depends on several fields."""
        rules = self.resolved_rules()
        if STEPS % self.levels:
            raise ValueError(f"levels = {self.levels}: expected a divisor of {STEPS} from 5, such as 15, 51 or {STEPS}")
        if "human" in self.report.agents:
            raise ValueError("report.agents: human: expected players that need no terminal")
        for i, stage in enumerate(self.stages):
            if not stage.traversals and not stage.seconds:
                raise ValueError(f"stages[{i}]: traversals = 0 and seconds = 0: expected one of them above 0")
            if len(stage.detail.pots) < rules.draws:
                raise ValueError(
                    f"stages[{i}].detail.pots = {shown(stage.detail.pots)}: expected a list for each of the "
                    f"{rules.draws} rounds after the first"
                )
        return self
