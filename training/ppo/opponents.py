"""Opponents of the learner: itself in both seats, snapshots of itself, and policies by name."""

from __future__ import annotations

import numpy as np

from agents.ppo import PPOPolicy
from archie_env.envs.learner import SingleAgentBatch
from archie_env.policy import Policy, UniformPolicy
from training.ppo.config import Opponents


class SnapshotPool:
    """Frozen copies of the learner, the newest last."""

    def __init__(self, size: int, generator: np.random.Generator) -> None:
        self.size, self.generator = size, generator
        self.policies: list[PPOPolicy] = []

    def add(self, policy: PPOPolicy) -> None:
        """Add a snapshot; a full pool drops a random one of its older half, so that old and new ones remain."""
        self.policies.append(policy)
        if len(self.policies) > self.size:
            del self.policies[int(self.generator.integers(0, max(1, len(self.policies) // 2)))]

    def draw(self) -> PPOPolicy:
        """Draw a snapshot uniformly."""
        return self.policies[int(self.generator.integers(len(self.policies)))]


class OpponentPool:
    """The opponents of a run as slots of `SingleAgentBatch`.

    Args:
        config: the shares.
        snapshots: the pool to draw from.  It may be empty until the first `redraw`; until then, uniform play stands in.
        named: a policy for each of ``config.named``.
    """

    def __init__(self, config: Opponents, snapshots: SnapshotPool, named: dict[str, Policy]) -> None:
        self.snapshots = snapshots
        self._snapshot_slots: list[int] = []
        self.policies: list[Policy | None] = []
        self.shares: list[float] = []
        if config.self_play > 0:
            self._add(None, config.self_play)
        if config.snapshots > 0:
            for _ in range(config.snapshots_at_once):
                self._snapshot_slots.append(len(self.policies))
                self._add(UniformPolicy(), config.snapshots / config.snapshots_at_once)
        for name, share in config.named.items():
            if share > 0:
                self._add(named[name], share)

    def _add(self, policy: Policy | None, share: float) -> None:
        self.policies.append(policy)
        self.shares.append(share)

    def redraw(self, batch: SingleAgentBatch) -> None:
        """Draw a new snapshot for each slot of one."""
        for slot in self._snapshot_slots:
            batch.opponents[slot] = self.snapshots.draw()
