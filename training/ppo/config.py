"""What a PPO run is: a frozen dataclass for each section of the file, every field with its default and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.settings import (
    RULES,
    Allowed,
    Played,
    choice,
    flag,
    from_values,
    is_whole,
    load,
    real,
    several,
    text,
    whole,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to train; learning rate and prior anneal over it.  Whichever ends first counts."""

    decisions: int = whole(2_000_000, 1, 10**13)
    """Decisions of the learner, both seats counted."""
    seconds: float = real(0.0, 0.0, 1e9)
    """Wall time spent training, reports excluded; 0 = no limit.  A run with a limit is not reproducible."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is played between updates."""

    games: int = whole(1024, 2, 10**6)
    steps: int = whole(16, 2, 10**4)
    """Learner decisions in each game."""
    decay: float = real(0.8, 0.0, 1.0)
    """Lambda of the advantage estimates."""
    chips: float = real(8.0, 0.1, 1e4)
    """Chips that make one unit of reward."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How the network is changed."""

    rate: float = real(1.5e-3, 1e-8, 1.0)
    """Adam's learning rate at the start."""
    last_rate: float = real(0.05, 0.0, 1.0)
    """The share of it that is left at the end."""
    batch: int = whole(1024, 2, 10**7)
    """Samples in a minibatch; the last of a rollout may be smaller, but not one sample: advantages are normalised in each."""
    epochs: int = whole(1, 1, 100)
    clip: float = real(0.2, 0.01, 1.0)
    """Of the probability ratio."""
    value_weight: float = real(0.5, 0.0, 100.0)
    prior_weight: float = real(0.1, 0.0, 100.0)
    """Weight at the start of the divergence from the prior (of minus the entropy where ``network.prior`` is 0)."""
    last_prior_weight: float = real(0.05, 0.0, 1.0)
    """The share of it that is left at the end."""
    gradient_norm: float = real(0.5, 1e-3, 1e6)


@dataclass(frozen=True, slots=True)
class Network:
    """See `training.ppo.network`."""

    widths: tuple[int, ...] = several((256, 256), "whole numbers 1 to 8192", lambda v: is_whole(v) and 1 <= v <= 8192)
    hand_features: bool = flag(True)
    slots: bool = flag(True)
    bias: float = real(1.5, 0.0, 10.0)
    prior: float = real(20.0, 0.0, 1e4)
    hidden_cards: bool = flag(True)
    """The critic sees the other's cards while training."""
    bfloat16: str = choice("auto", "auto", "on", "off")
    """Of the hidden layers while training; auto: where the processor has it."""


@dataclass(frozen=True, slots=True)
class Opponents:
    """Shares of the games by who sits across; they need not sum to 1."""

    itself: float = real(0.95, 0.0, 1.0)
    """The learner plays both seats."""
    past: float = real(0.05, 0.0, 1.0)
    """Frozen past selves, drawn anew before each rollout."""
    past_at_once: int = whole(1, 1, 64)
    """Different past selves in one rollout."""
    past_kept: int = whole(12, 1, 1000)
    past_every: int = whole(16, 1, 10**6)
    """Updates between one past self and the next."""
    named: Mapping[str, float] = field(
        default_factory=dict,
        metadata={
            "allowed": Allowed(
                "a table of names that agents.load takes and shares from 0 to 1",
                lambda v: (
                    isinstance(v, Mapping)
                    and all(isinstance(s, (int, float)) and not isinstance(s, bool) and 0 <= s <= 1 for s in v.values())
                ),
            )
        },
    )


@dataclass(frozen=True, slots=True)
class WarmStart:
    """What is done before the first update."""

    policy: str = text("", "a name that agents.load takes, or '' to start from nothing")
    """Who is cloned: the actor learns its probabilities in its own games."""
    decisions: int = whole(500_000, 1, 10**12)
    """Of that policy, looked at once each; not counted in the budget."""
    rate: float = real(1e-3, 1e-8, 1.0)
    """Adam's learning rate while cloning."""
    critic_updates: int = whole(16, 0, 10**6)
    """First updates, in which the critic alone learns, so that its first estimates do not spoil the actor."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is measured and written on the way; none of it changes the training."""

    times: int = whole(4, 0, 10**4)
    """Matches against the reference agents, spread over the budget, the last at its end."""
    deals: int = whole(2048, 2, 10**8)
    """Of each match on the way, each dealt twice with seats swapped."""
    last_deals: int = whole(8192, 2, 10**8)
    """The same at the end."""
    agents: tuple[str, ...] = several(
        ("uniform", "call", "raise"), "names that agents.load takes", lambda v: isinstance(v, str)
    )
    log_every: int = whole(4, 1, 10**6)
    """Updates between TensorBoard points."""
    save_every: int = whole(32, 1, 10**6)
    """Updates between checkpoints."""


@dataclass(frozen=True, slots=True)
class Config(Played):
    """A whole run."""

    seed: int = whole(1, 0, 2**32 - 1)
    """Of everything that is random; NumPy's global generator, which SB3 seeds, takes 32 bits."""
    threads: int = whole(1, 1, 1024)
    """Of torch.  Only a run on one thread is resumed to exactly the same weights."""
    rules: str | dict[str, Any] = field(default="archie", metadata=RULES)
    budget: Budget = field(default_factory=Budget)
    rollout: Rollout = field(default_factory=Rollout)
    learning: Learning = field(default_factory=Learning)
    network: Network = field(default_factory=Network)
    opponents: Opponents = field(default_factory=Opponents)
    warm_start: WarmStart = field(default_factory=WarmStart)
    report: Report = field(default_factory=Report)

    def faults(self) -> Iterator[str]:
        """What no field can tell alone; see `training.settings`."""
        yield from self.rules_faults()
        opponents, rollout = self.opponents, self.rollout
        if opponents.itself + opponents.past + sum(opponents.named.values()) <= 0:
            yield "opponents: every share is 0, expected at least one above it"
        asked = {
            "opponents.named": opponents.named,
            "warm_start.policy": [self.warm_start.policy],
            "report.agents": self.report.agents,
        }
        for key, names in asked.items():
            if "human" in names:
                yield f"{key}: human: expected players that need no terminal"
        samples, batch = rollout.games * rollout.steps, self.learning.batch
        if batch > samples:
            yield f"learning.batch = {batch}: expected at most rollout.games x rollout.steps = {samples}"
        if samples % batch == 1:
            yield (
                f"learning.batch = {batch}: rollout.games x rollout.steps = {samples} leaves a last minibatch of one "
                "sample, whose advantage can't be normalised: expected a remainder of 0 or at least 2"
            )
        if not self.network.widths:
            yield "network.widths = []: expected at least one layer"


def config_from(values: Mapping[str, Any], source: str) -> Config:
    """A configuration from plain values; ``source`` is named in errors."""
    return from_values(Config, values, source)


def load_config(path: str | Path, changes: Sequence[str] = ()) -> Config:
    """A configuration from a TOML file, with ``section.key=value`` changes; raises `ConfigError`."""
    return load(Config, path, changes)
