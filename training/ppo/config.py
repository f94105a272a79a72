"""What a PPO run is: a frozen dataclass for each section of the file, every field with its default and what it means."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from training.settings import AgentName, RunSettings, Settings, Several

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Budget(Settings):
    """How long to train; learning rate and prior anneal over it.  Whichever ends first counts."""

    decisions: int = Field(default=2_000_000, ge=1, le=10**13)
    """Decisions of the learner, both seats counted."""
    seconds: float = Field(default=0.0, ge=0.0, le=1e9)
    """Wall time spent training, reports excluded; 0 = no limit.  A run with a limit is not reproducible."""


class Rollout(Settings):
    """What is played between updates."""

    games: int = Field(default=1024, ge=2, le=10**6)
    steps: int = Field(default=16, ge=2, le=10**4)
    """Learner decisions in each game."""
    decay: float = Field(default=0.8, ge=0.0, le=1.0)
    """Lambda of the advantage estimates."""
    chips: float = Field(default=8.0, ge=0.1, le=1e4)
    """Chips that make one unit of reward."""


class Learning(Settings):
    """How the network is changed."""

    rate: float = Field(default=1.5e-3, ge=1e-8, le=1.0)
    """Adam's learning rate at the start."""
    last_rate: float = Field(default=0.05, ge=0.0, le=1.0)
    """The share of it that is left at the end."""
    batch: int = Field(default=1024, ge=2, le=10**7)
    """Samples in a minibatch; the last of a rollout may be smaller, but not one sample: advantages are normalised in each."""
    epochs: int = Field(default=1, ge=1, le=100)
    clip: float = Field(default=0.2, ge=0.01, le=1.0)
    """Of the probability ratio."""
    value_weight: float = Field(default=0.5, ge=0.0, le=100.0)
    prior_weight: float = Field(default=0.1, ge=0.0, le=100.0)
    """Weight at the start of the divergence from the prior (of minus the entropy where ``network.prior`` is 0)."""
    last_prior_weight: float = Field(default=0.05, ge=0.0, le=1.0)
    """The share of it that is left at the end."""
    gradient_norm: float = Field(default=0.5, ge=1e-3, le=1e6)


class Network(Settings):
    """See `training.ppo.network`."""

    widths: Annotated[Several[Annotated[int, Field(ge=1, le=8192)]], Field(min_length=1)] = (256, 256)
    hand_features: bool = True
    slots: bool = True
    bias: float = Field(default=1.5, ge=0.0, le=10.0)
    prior: float = Field(default=20.0, ge=0.0, le=1e4)
    hidden_cards: bool = True
    """The critic sees the other's cards while training."""
    bfloat16: Literal["auto", "on", "off"] = "auto"
    """Of the hidden layers while training; auto: where the processor has it."""


class Opponents(Settings):
    """Shares of the games by who sits across; they need not sum to 1."""

    itself: float = Field(default=0.95, ge=0.0, le=1.0)
    """The learner plays both seats."""
    past: float = Field(default=0.05, ge=0.0, le=1.0)
    """Frozen past selves, drawn anew before each rollout."""
    past_at_once: int = Field(default=1, ge=1, le=64)
    """Different past selves in one rollout."""
    past_kept: int = Field(default=12, ge=1, le=1000)
    past_every: int = Field(default=16, ge=1, le=10**6)
    """Updates between one past self and the next."""
    named: dict[AgentName, Share] = Field(default_factory=dict)
    """Players by name, and their shares."""


class WarmStart(Settings):
    """What is done before the first update."""

    policy: str = Field(default="", title="a name that agents.load takes, or '' to start from nothing")
    """Who is cloned: the actor learns its probabilities in its own games."""
    decisions: int = Field(default=500_000, ge=1, le=10**12)
    """Of that policy, looked at once each; not counted in the budget."""
    rate: float = Field(default=1e-3, ge=1e-8, le=1.0)
    """Adam's learning rate while cloning."""
    critic_updates: int = Field(default=16, ge=0, le=10**6)
    """First updates, in which the critic alone learns, so that its first estimates do not spoil the actor."""


class Report(Settings):
    """What is measured and written on the way; none of it changes the training."""

    times: int = Field(default=4, ge=0, le=10**4)
    """Matches against the reference agents, spread over the budget, the last at its end."""
    deals: int = Field(default=2048, ge=2, le=10**8)
    """Of each match on the way, each dealt twice with seats swapped."""
    last_deals: int = Field(default=8192, ge=2, le=10**8)
    """The same at the end."""
    agents: Several[AgentName] = ("uniform", "call", "raise")
    log_every: int = Field(default=4, ge=1, le=10**6)
    """Updates between TensorBoard points."""
    save_every: int = Field(default=32, ge=1, le=10**6)
    """Updates between checkpoints."""


class Config(RunSettings):
    """A whole run."""

    seed: int = Field(default=1, ge=0, le=2**32 - 1)
    """Of everything that is random; NumPy's global generator, which SB3 seeds, takes 32 bits."""
    threads: int = Field(default=1, ge=1, le=1024)
    """Of torch.  Only a run on one thread is resumed to exactly the same weights."""
    budget: Budget = Budget()
    rollout: Rollout = Rollout()
    learning: Learning = Learning()
    network: Network = Network()
    opponents: Opponents = Opponents()
    warm_start: WarmStart = WarmStart()
    report: Report = Report()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check what depends on several fields."""
        opponents, rollout = self.opponents, self.rollout
        if opponents.itself + opponents.past + sum(opponents.named.values()) <= 0:
            raise ValueError("opponents: every share is 0, expected at least one above it")
        asked = {
            "opponents.named": opponents.named,
            "warm_start.policy": [self.warm_start.policy],
            "report.agents": self.report.agents,
        }
        for key, names in asked.items():
            if "human" in names:
                raise ValueError(f"{key}: human: expected players that need no terminal")
        samples, batch = rollout.games * rollout.steps, self.learning.batch
        if batch > samples:
            raise ValueError(f"learning.batch = {batch}: expected at most rollout.games x rollout.steps = {samples}")
        if samples % batch == 1:
            raise ValueError(
                f"learning.batch = {batch}: rollout.games x rollout.steps = {samples} leaves a last minibatch of one "
                "sample, whose advantage can't be normalised: expected a remainder of 0 or at least 2"
            )
        return self
