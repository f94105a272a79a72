"""Who the learner plays: itself in both seats, past selves, named policies."""

from __future__ import annotations

import numpy as np

from agents.ppo import PPOPolicy
from archie_env.envs.learner import SingleAgentBatch
from archie_env.policy import Policy, UniformPolicy
from training.ppo.config import Opponents


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
    """The opponents of a run as slots of `SingleAgentBatch`.

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

    def redraw(self, tables: SingleAgentBatch) -> None:
        """Give every seat of a past self to another one."""
        for slot in self._past_slots:
            tables.opponents[slot] = self.past.draw()
