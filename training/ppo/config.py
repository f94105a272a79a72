"""Settings of a PPO run: one model for each table of the file, each field with its default, its range and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from training.settings import AgentName, RunSettings, Settings, Several

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Budget(Settings):
    """Length of the training, over which learning rate and KL coefficient anneal.  The limit reached first ends it."""

    decisions: int = Field(default=2_000_000, ge=1, le=10**13)
    """Decisions of the learner in both seats."""
    seconds: float = Field(default=0.0, ge=0.0, le=1e9)
    """Wall time spent training, reports excluded; 0 = no limit.  A run with a limit is not reproducible."""


class Rollout(Settings):
    """Play between two updates."""

    renamed: ClassVar[Mapping[str, str]] = {
        "games": "num_envs",
        "steps": "num_steps",
        "decay": "gae_lambda",
        "chips": "reward_scale (which is 1 / chips)",
    }

    num_envs: int = Field(default=1024, ge=2, le=10**6)
    """Games played side by side."""
    num_steps: int = Field(default=16, ge=2, le=10**4)
    """Learner decisions in each game."""
    gae_lambda: float = Field(default=0.8, ge=0.0, le=1.0)
    """Lambda of the generalised advantage estimates; rewards are not discounted."""
    reward_scale: float = Field(default=0.125, ge=1e-4, le=10.0)
    """Multiplies net chips."""


class Learning(Settings):
    """Updates of the network."""

    renamed: ClassVar[Mapping[str, str]] = {
        "rate": "learning_rate",
        "last_rate": "final_learning_rate_fraction",
        "batch": "minibatch_size",
        "epochs": "update_epochs",
        "clip": "clip_range",
        "value_weight": "vf_coef",
        "prior_weight": "kl_coef",
        "last_prior_weight": "final_kl_coef_fraction",
        "gradient_norm": "max_grad_norm",
    }

    learning_rate: float = Field(default=1.5e-3, ge=1e-8, le=1.0)
    """Adam's learning rate at the start."""
    final_learning_rate_fraction: float = Field(default=0.05, ge=0.0, le=1.0)
    """The fraction of it that is left at the end."""
    minibatch_size: int = Field(default=1024, ge=2, le=10**7)
    """Samples in a minibatch; the last of a rollout may be smaller, but not one sample: advantages are normalised in each."""
    update_epochs: int = Field(default=1, ge=1, le=100)
    """Passes over a rollout."""
    clip_range: float = Field(default=0.2, ge=0.01, le=1.0)
    """Clipping of the probability ratio."""
    vf_coef: float = Field(default=0.5, ge=0.0, le=100.0)
    """Weight of the value loss."""
    kl_coef: float = Field(default=0.1, ge=0.0, le=100.0)
    """Weight at the start of the KL divergence from the prior.  With ``network.prior = 0`` the prior is uniform, which makes
    this the coefficient of an entropy bonus."""
    final_kl_coef_fraction: float = Field(default=0.05, ge=0.0, le=1.0)
    """The fraction of it that is left at the end."""
    max_grad_norm: float = Field(default=0.5, ge=1e-3, le=1e6)
    """Gradients are clipped to this norm."""


class Network(Settings):
    """See `training.ppo.network`."""

    widths: Annotated[Several[Annotated[int, Field(ge=1, le=8192)]], Field(min_length=1)] = (256, 256)
    """Units of each hidden layer, of the actor and of the critic."""
    hand_features: bool = True
    """Whether features of the hand are an input beside the observation."""
    slots: bool = True
    """Whether the discard head has the four slot logits."""
    bias: float = Field(default=1.5, ge=0.0, le=10.0)
    """Initial logit bias of standing pat and of each slot."""
    prior: float = Field(default=20.0, ge=0.0, le=1e4)
    """Weight added to standing pat and to each slot in the prior, where every discard has 1; 0 = uniform."""
    hidden_cards: bool = True
    """Whether the critic sees the other player's cards while training."""
    bfloat16: Literal["auto", "on", "off"] = "auto"
    """Type of the hidden layers while training; auto: if the processor multiplies it natively."""


class Opponents(Settings):
    """Shares of the games by opponent; they need not sum to 1."""

    renamed: ClassVar[Mapping[str, str]] = {
        "itself": "self_play",
        "past": "snapshots",
        "past_at_once": "snapshots_at_once",
        "past_kept": "snapshots_kept",
        "past_every": "snapshot_interval",
    }

    self_play: Share = 0.95
    """The learner plays both seats."""
    snapshots: Share = 0.05
    """Frozen copies of the learner, drawn anew before each rollout."""
    snapshots_at_once: int = Field(default=1, ge=1, le=64)
    """Different snapshots in one rollout."""
    snapshots_kept: int = Field(default=12, ge=1, le=1000)
    """Size of the pool of snapshots."""
    snapshot_interval: int = Field(default=16, ge=1, le=10**6)
    """Updates between two snapshots."""
    named: dict[AgentName, Share] = Field(default_factory=dict)
    """Policies by name, and their shares."""


class WarmStart(Settings):
    """Behavioural cloning before the first update."""

    renamed: ClassVar[Mapping[str, str]] = {"rate": "learning_rate"}

    policy: str = Field(default="", title="a name that agents.load takes, or '' to start from nothing")
    """The policy to clone: the actor learns its probabilities in games of that policy against itself."""
    decisions: int = Field(default=500_000, ge=1, le=10**12)
    """Decisions of that policy, each used once; not counted in the budget."""
    learning_rate: float = Field(default=1e-3, ge=1e-8, le=1.0)
    """Adam's learning rate while cloning."""
    critic_updates: int = Field(default=16, ge=0, le=10**6)
    """Updates at the start that train the critic alone, so that its first estimates do not spoil the actor."""


class Report(Settings):
    """Measurements and files during the run.  They do not change the training."""

    times: int = Field(default=4, ge=0, le=10**4)
    """Rounds of matches against the reference agents, spread over the budget, the last at its end."""
    deals: int = Field(default=2048, ge=2, le=10**8)
    """Deals of each match during the run, each played twice with seats swapped."""
    last_deals: int = Field(default=8192, ge=2, le=10**8)
    """Deals of each match at the end."""
    agents: Several[AgentName] = ("uniform", "call", "raise")
    """Reference agents."""
    log_every: int = Field(default=4, ge=1, le=10**6)
    """Updates between TensorBoard points."""
    save_every: int = Field(default=32, ge=1, le=10**6)
    """Updates between checkpoints."""


class Config(RunSettings):
    """A whole run."""

    seed: int = Field(default=1, ge=0, le=2**32 - 1)
    """Seed of everything random; SB3 passes it to NumPy's global generator, which takes 32 bits."""
    threads: int = Field(default=1, ge=1, le=1024)
    """Threads of torch.  Only a run on one thread is resumed to exactly the same weights."""
    budget: Budget = Budget()
    rollout: Rollout = Rollout()
    learning: Learning = Learning()
    network: Network = Network()
    opponents: Opponents = Opponents()
    warm_start: WarmStart = WarmStart()
    report: Report = Report()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check constraints between fields."""
        opponents, rollout = self.opponents, self.rollout
        if opponents.self_play + opponents.snapshots + sum(opponents.named.values()) <= 0:
            raise ValueError("opponents: every share is 0, expected at least one above it")
        named = {
            "opponents.named": opponents.named,
            "warm_start.policy": [self.warm_start.policy],
            "report.agents": self.report.agents,
        }
        for key, names in named.items():
            if "human" in names:
                raise ValueError(f"{key}: human: expected players that need no terminal")
        samples, size = rollout.num_envs * rollout.num_steps, self.learning.minibatch_size
        if size > samples:
            raise ValueError(
                f"learning.minibatch_size = {size}: expected at most rollout.num_envs x rollout.num_steps = {samples}"
            )
        if samples % size == 1:
            raise ValueError(
                f"learning.minibatch_size = {size}: rollout.num_envs x rollout.num_steps = {samples} leaves a last minibatch "
                "of one sample, whose advantage can't be normalised: expected a remainder of 0 or at least 2"
            )
        return self
