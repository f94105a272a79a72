"""A PPO run in memory: everything built from a configuration, and one update of it."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import torch as th
from threadpoolctl import ThreadpoolController

from agents.ppo import PPOPolicy
from archie_env._core.seats import BOTH
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.policy import Policy
from training.ppo.algorithm import SelfPlayBuffer, SelfPlayPPO
from training.ppo.cloning import clone
from training.ppo.config import Config
from training.ppo.network import ArchiePolicy, cpu_has_bfloat16
from training.ppo.opponents import OpponentPool, SnapshotPool
from training.ppo.vec_env import SingleAgentVecEnv


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # finding them takes milliseconds


@contextmanager
def on_threads(threads: int) -> Iterator[None]:
    """Limit torch, and the BLAS of NumPy in which opponents compute, to so many threads inside the block.

    BLAS threads spin while they wait: on small batches, beside other work, a second one costs more than it gives.
    """
    before = th.get_num_threads()
    th.set_num_threads(threads)
    try:
        with _libraries().limit(limits=threads, user_api="blas"):
            yield
    finally:
        th.set_num_threads(before)


class TrainingState:
    """Everything that changes in a training run.

    Args:
        config: the run.
        players: policies by name, used instead of ``agents.load``, for opponents that have no loadable name.
    """

    def __init__(self, config: Config, players: Mapping[str, Policy] | None = None) -> None:
        from agents import load  # names are looked up after the configuration has been checked

        self.config, self.rules = config, config.resolved_rules()
        known = dict(players or {})
        cloned = config.warm_start.policy
        for name in (*config.report.agents, *config.opponents.named, *([cloned] if cloned else [])):
            if name not in known:
                known[name] = load(name, self.rules)
        self.references = {name: known[name] for name in config.report.agents}
        named = {name: known[name] for name in config.opponents.named}
        self.cloned = known[cloned] if cloned else None
        streams = np.random.SeedSequence(config.seed).spawn(2)
        self.snapshots = SnapshotPool(config.opponents.snapshots_kept, np.random.default_rng(streams[0]))
        self.opponents = OpponentPool(config.opponents, self.snapshots, named)
        self.batch = SingleAgentBatch(
            config.rollout.num_envs, self.opponents.policies, self.opponents.shares, self.rules, config.seed,
            hidden=config.network.hidden_cards,
        )  # fmt: skip
        self.env = SingleAgentVecEnv(self.batch, config.rollout.reward_scale, quiet=True)
        self.generator = np.random.default_rng(streams[1])
        self.model = self._model()
        self.updates = 0
        self.reports = 0
        self.seconds = 0.0
        _, self._callback = self.model._setup_learn(config.budget.decisions)
        self.snapshots.add(self.policy())

    def _model(self) -> SelfPlayPPO:
        learning, network, rollout = self.config.learning, self.config.network, self.config.rollout
        bfloat16 = network.bfloat16 == "on" or (network.bfloat16 == "auto" and cpu_has_bfloat16())
        return SelfPlayPPO(
            ArchiePolicy,
            self.env,
            learning_rate=lambda left: learning.learning_rate * max(learning.final_learning_rate_fraction, left),
            n_steps=rollout.num_steps,
            batch_size=learning.minibatch_size,
            n_epochs=learning.update_epochs,
            gamma=1.0,
            gae_lambda=rollout.gae_lambda,
            clip_range=learning.clip_range,
            vf_coef=learning.vf_coef,
            max_grad_norm=learning.max_grad_norm,
            rollout_buffer_class=SelfPlayBuffer,
            rollout_buffer_kwargs={"batch": self.batch, "generator": self.generator},
            policy_kwargs={
                "rules": self.rules.to_dict(),
                "widths": network.widths,
                "hand_features": network.hand_features,
                "slots": network.slots,
                "bias": network.bias,
                "prior": network.prior,
                "bfloat16": bfloat16,
            },
            seed=self.config.seed,
            device="cpu",
        )

    @property
    def decisions(self) -> int:
        """Decisions of the learner so far, both seats counted."""
        return int(self.model.num_timesteps)

    @property
    def progress(self) -> float:
        """Fraction of the budget that is used, 0 to 1."""
        budget = self.config.budget
        by_time = self.seconds / budget.seconds if budget.seconds else 0.0
        return min(1.0, max(self.decisions / budget.decisions, by_time))

    def policy(self) -> PPOPolicy:
        """Export the current learner."""
        network = self.config.network
        meta = {
            "hand_features": network.hand_features,
            "slots": network.slots,
            "config": self.config.model_dump(),
            "decisions": self.decisions,
            "versions": {name: version(name) for name in ("numpy", "torch", "stable-baselines3", "sb3-contrib")},
        }
        return PPOPolicy(self.model.policy.exported(), meta, self.rules)

    def update(self) -> None:
        """Play one rollout and learn from it; raises `ArchieError` if the weights are no longer finite."""
        started = time.perf_counter()
        with on_threads(self.config.threads):
            self._update()
        self.seconds += time.perf_counter() - started

    def _update(self) -> None:
        learning, left = self.config.learning, 1 - self.progress
        if self.updates == 0:
            self._warm_start()
        self.model._current_progress_remaining = left
        self.model.ent_coef = learning.kl_coef * max(learning.final_kl_coef_fraction, left)
        self.model.critic_alone = self.cloned is not None and self.updates < self.config.warm_start.critic_updates
        self.opponents.redraw(self.batch)
        self.model.collect_rollouts(self.env, self._callback, self.model.rollout_buffer, self.config.rollout.num_steps)
        self.model.train()
        self.updates += 1
        if not all(bool(weights.isfinite().all()) for weights in self.model.policy.parameters()):
            raise ArchieError(
                f"update {self.updates}: weights of the network are no longer finite numbers: expected to stay so; lower "
                "learning.learning_rate or rollout.reward_scale, or raise learning.minibatch_size"
            )
        if self.updates % self.config.opponents.snapshot_interval == 0:
            self.snapshots.add(self.policy())

    def _warm_start(self) -> None:
        if self.cloned is None:
            return
        warm, network = self.config.warm_start, self.config.network
        clone(
            self.model.policy, self.cloned, self.rules, warm.decisions, warm.learning_rate, self.config.learning.minibatch_size,
            network.hidden_cards, self.config.seed,
        )  # fmt: skip
        self.snapshots.policies = [self.policy()]


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a run, to take differences of."""

    seconds: float
    decisions: int
    hands: int
    hands_against_others: int
    """Hands against snapshots and named policies."""
    chips: int
    """Net chips won in those."""

    @classmethod
    def of(cls, state: TrainingState) -> Totals:
        """Return the totals of a run so far."""
        stats = state.batch.stats
        others = stats["hands"][stats["role"] != BOTH].sum()
        return cls(state.seconds, state.decisions, int(stats["hands"].sum()), int(others), int(stats["chips"].sum()))
