"""One PPO run in memory: what is built from a configuration, one update of it, and everything a checkpoint must hold."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from threadpoolctl import ThreadpoolController

from agents.ppo import PPOPolicy
from archie_env._core.seats import BOTH
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.policy import Policy
from training.ppo import checkpoint
from training.ppo.algorithm import Rollout, SelfPlayPPO
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
    """Let torch and the BLAS of NumPy, in which frozen players think, use so many threads meanwhile.

    Threads of a BLAS wait for each other busily: on small batches, beside other work, a second one costs more than it gives.
    """
    before = th.get_num_threads()
    th.set_num_threads(threads)
    try:
        with _libraries().limit(limits=threads, user_api="blas"):
            yield
    finally:
        th.set_num_threads(before)


class TrainingState:
    """One training run: everything that changes while it goes on, and nothing else.

    Args:
        config: what it is.
        players: by name, in place of what ``agents.load`` gives; for opponents that have no name to load them by.
    """

    def __init__(self, config: Config, players: Mapping[str, Policy] | None = None) -> None:
        from agents import load  # names are resolved once the configuration is known to be good

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
            rollout_buffer_class=Rollout,
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
        """The share of the budget that is used, 0 to 1."""
        budget = self.config.budget
        by_time = self.seconds / budget.seconds if budget.seconds else 0.0
        return min(1.0, max(self.decisions / budget.decisions, by_time))

    def policy(self) -> PPOPolicy:
        """The learner as it is now."""
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
        """Play one rollout and learn from it; raises `ArchieError` where that spoils the weights."""
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
                "learning.learning_rate, or raise rollout.reward_scale or learning.minibatch_size"
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

    def save(self, path: Path) -> None:
        """Write everything that `restore` needs to go on to the same weights."""
        batch, generators = self.batch.snapshot()
        arrays = checkpoint.prefixed(checkpoint.module_arrays(self.model.policy), "network")
        arrays |= checkpoint.prefixed(checkpoint.optimizer_arrays(self.model.policy.optimizer), "optimizer")
        arrays |= checkpoint.prefixed(batch, "batch")
        for i, policy in enumerate(self.snapshots.policies):
            arrays |= checkpoint.prefixed(policy.weights, f"past{i}")
        arrays["torch_generator"] = th.get_rng_state().numpy()
        arrays["episode_starts"] = np.asarray(self.model._last_episode_starts)
        meta = {
            "config": self.config.model_dump(),
            "updates": self.updates,
            "reports": self.reports,
            "seconds": self.seconds,
            "decisions": self.decisions,
            "past": [policy.meta for policy in self.snapshots.policies],
            "generators": {
                "batch": generators,
                "past": self.snapshots.generator.bit_generator.state,
                "learner": self.generator.bit_generator.state,
            },
        }
        checkpoint.save(path, arrays, meta)

    def restore(self, arrays: checkpoint.Arrays, meta: dict[str, Any]) -> None:
        """Go on from a checkpoint of a run with the same configuration."""
        checkpoint.load_module(self.model.policy, checkpoint.grouped(arrays, "network"))
        checkpoint.load_optimizer(self.model.policy.optimizer, checkpoint.grouped(arrays, "optimizer"))
        self.snapshots.policies = [
            PPOPolicy(checkpoint.grouped(arrays, f"past{i}"), past, self.rules) for i, past in enumerate(meta["past"])
        ]
        self.snapshots.generator.bit_generator.state = meta["generators"]["past"]
        self.generator.bit_generator.state = meta["generators"]["learner"]
        self.batch.restore(checkpoint.grouped(arrays, "batch"), meta["generators"]["batch"])
        self.model._last_episode_starts = arrays["episode_starts"]
        self.model.num_timesteps = meta["decisions"]
        self.updates, self.reports, self.seconds = meta["updates"], meta["reports"], meta["seconds"]
        th.set_rng_state(th.from_numpy(arrays["torch_generator"]))


@dataclass(frozen=True, slots=True)
class Totals:
    """What a run has played so far, to take differences of."""

    seconds: float
    decisions: int
    hands: int
    hands_against_others: int
    chips: int
    """Won from others: past selves and named policies."""

    @classmethod
    def of(cls, run: TrainingState) -> Totals:
        """The run's account now."""
        stats = run.batch.stats
        others = stats["hands"][stats["role"] != BOTH].sum()
        return cls(run.seconds, run.decisions, int(stats["hands"].sum()), int(others), int(stats["chips"].sum()))
