"""Configuration of a CFR run: stages from coarse to fine, and reports; see `training.settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from agents.cfr import STEPS
from archie_env.errors import shown
from training.cfr.abstraction import AbstractionConfig
from training.settings import AgentName, RunSettings, Settings, Several


class Stage(Settings):
    """Training on one abstraction.  A stage starts from the tables of the previous one."""

    renamed: ClassVar[Mapping[str, str]] = {"detail": "abstraction"}
    abstraction: AbstractionConfig = AbstractionConfig()
    traversals: int = Field(default=0, ge=0, le=10**13)
    """Budget of traversals for both positions together; 0 = no limit but the time."""
    seconds: float = Field(default=0.0, ge=0.0, le=1e7)
    """Budget of training time in seconds; 0 = no limit.  A stage that ends by time is not reproducible."""
    keep: float = Field(default=1.0, ge=0.0, le=10.0)
    """Scale of the initial tables; at 1 they weigh as much as if the finer abstraction had been trained from the start."""


class Report(Settings):
    """Measurements and files during the run.  They do not change the training."""

    seconds: float = Field(default=30.0, ge=1.0, le=1e7)
    """Training time between matches against the reference agents."""
    deals: int = Field(default=4096, ge=2, le=10**8)
    """Deals of each match during the run, each played twice with seats swapped."""
    last_deals: int = Field(default=20_000, ge=2, le=10**8)
    """Deals of each match at the end."""
    agents: Several[AgentName] = ("call_draw", "rule_based")
    """Reference agents."""
    save_seconds: float = Field(default=120.0, ge=1.0, le=1e7)
    """Training time between checkpoints: the maximum lost by SIGKILL."""


class Config(RunSettings):
    """A whole run."""

    renamed: ClassVar[Mapping[str, str]] = {"drop": "min_probability", "levels": "quantization_levels"}
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    threads: int = Field(default=1, ge=1, le=256)
    """Threads on shared tables.  Only a run on one thread is reproducible."""
    explore: float = Field(default=0.25, ge=0.0, le=1.0)
    """How often the traverser visits an action to which its strategy gives probability 0."""
    min_probability: float = Field(default=0.05, ge=0.0, le=0.5)
    """Actions of smaller probability are dropped from the finished strategy."""
    quantization_levels: int = Field(default=STEPS, ge=5, le=STEPS)
    """Probabilities are rounded to multiples of 1 / quantization_levels; with fewer levels the file is smaller."""
    stages: Annotated[Several[Stage], Field(min_length=1)] = (Stage(),)
    report: Report = Report()

    @classmethod
    def from_meta(cls, values: Any, source: str) -> Self:
        """Validate the configuration in a checkpoint or strategy, which may have the keys of version 0.1."""
        return cls.from_values(with_new_names(values), source)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check constraints between fields."""
        rules = self.resolved_rules()
        if STEPS % self.quantization_levels:
            raise ValueError(
                f"quantization_levels = {self.quantization_levels}: expected a divisor of {STEPS}, such as 15, 51 or {STEPS}"
            )
        if "human" in self.report.agents:
            raise ValueError("report.agents: human: expected players that need no terminal")
        for i, stage in enumerate(self.stages):
            if not stage.traversals and not stage.seconds:
                raise ValueError(f"stages[{i}]: traversals = 0 and seconds = 0: expected one of them above 0")
            if len(stage.abstraction.pots) < rules.draws:
                raise ValueError(
                    f"stages[{i}].abstraction.pots = {shown(stage.abstraction.pots)}: expected a list for each of the "
                    f"{rules.draws} rounds after the first"
                )
        return self


def with_new_names(values: Any) -> Any:
    """Return plain values with the keys of version 0.1 replaced by those of today, at any depth."""
    if isinstance(values, dict):
        names = {**Config.renamed, **Stage.renamed}
        return {names.get(key, key): with_new_names(value) for key, value in values.items()}
    return [with_new_names(value) for value in values] if isinstance(values, list) else values
