"""Who the learner plays: itself in both seats, past selves, named policies; and the rollouts of such games."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples

from agents.ppo import PPOPolicy
from archie_env.learner import LearnerTables
from archie_env.observation import fields
from archie_env.policy import Policy, UniformPolicy
from training._kernels import two_seat_advantages
from training.config import Opponents


class TwoSeatBuffer(MaskableRolloutBuffer):  # type: ignore[misc]  # sb3-contrib ships no types
    """A rollout whose advantages are computed for each player of a game from that player's own decisions.

    Args:
        args, kwargs: as SB3 passes them; ``gamma`` must be 1.
        tables: the games that are played, asked for who is to act after the last step.
        generator: shuffles the minibatches, so that no global generator decides a run.
    """

    generator_ready: bool

    def __init__(self, *args: Any, tables: LearnerTables, generator: np.random.Generator, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tables, self.generator = tables, generator
        self._dealer = next(f.start for f in fields(tables.rules) if f.name == "dealer")

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[np.bool_]) -> None:
        """See `two_seat_advantages`."""
        two_seat_advantages(
            1 - self.observations[..., self._dealer].astype(np.int64), self.rewards, self.episode_starts, self.values,
            self.tables.games["turn"].astype(np.int64), last_values.numpy().reshape(-1), dones, np.float32(self.gae_lambda),
            self.advantages,
        )  # fmt: skip
        self.returns = self.advantages + self.values

    def get(self, batch_size: int | None = None) -> Iterator[MaskableRolloutBufferSamples]:
        """Minibatches in an order drawn from `generator`."""
        if not self.generator_ready:
            for name in ("observations", "actions", "values", "log_probs", "advantages", "returns", "action_masks"):
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self.generator_ready = True
        order = self.generator.permutation(self.buffer_size * self.n_envs)
        size = batch_size or len(order)
        for start in range(0, len(order), size):
            yield self._get_samples(order[start : start + size])


class PastSelves:
    """Frozen copies of the learner, the newest last."""

    def __init__(self, kept: int, generator: np.random.Generator) -> None:
        self.kept, self.generator = kept, generator
        self.policies: list[PPOPolicy] = []

    def add(self, policy: PPOPolicy) -> None:
        """Keep one more; when there are too many a random one of the older half goes, so that old and new remain."""
        self.policies.append(policy)
        if len(self.policies) > self.kept:
            del self.policies[int(self.generator.integers(0, max(1, len(self.policies) // 2)))]

    def draw(self) -> PPOPolicy:
        """One of them, each equally likely."""
        return self.policies[int(self.generator.integers(len(self.policies)))]


class Lineup:
    """The opponents of a run as slots of `LearnerTables`.

    Args:
        config: the shares.
        past: the past selves to draw from; it may be empty until the first `redraw`, and uniform play sits in for it.
        named: a policy for each of ``config.named``.
    """

    def __init__(self, config: Opponents, past: PastSelves, named: dict[str, Policy]) -> None:
        self.past = past
        self._past_slots: list[int] = []
        self.policies: list[Policy | None] = []
        self.shares: list[float] = []
        if config.itself > 0:
            self._seat(None, config.itself)
        if config.past > 0:
            for _ in range(config.past_at_once):
                self._past_slots.append(len(self.policies))
                self._seat(UniformPolicy(), config.past / config.past_at_once)
        for name, share in config.named.items():
            if share > 0:
                self._seat(named[name], share)

    def _seat(self, policy: Policy | None, share: float) -> None:
        self.policies.append(policy)
        self.shares.append(share)

    def redraw(self, tables: LearnerTables) -> None:
        """Give every seat of a past self to another one."""
        for slot in self._past_slots:
            tables.opponents[slot] = self.past.draw()
