"""A warm start: the actor learns another player's probabilities in games of that player against itself."""

from __future__ import annotations

import numpy as np
import torch as th

from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.policy import Policy, Probabilities, name_of, sample
from archie_env.rules import Rules
from training.ppo.network import ArchiePolicy, logarithms

_GAMES, _STEPS = 1024, 16


def clone(
    learner: ArchiePolicy, teacher: Policy, rules: Rules, decisions: int, rate: float, batch: int, hidden: bool, seed: int
) -> float:
    """Bring the actor of ``learner`` close to ``teacher``, one look at each of about ``decisions`` of its decisions.

    Args:
        learner: the critic stays as it is.
        teacher: asked for its probabilities.
        rules: what is played.
        decisions: rounded up to whole rollouts of 16,384.
        rate: of Adam.
        batch: decisions in a minibatch.
        hidden: whether the network reads hidden cards, as its inputs are then wider.
        seed: of cards and everything drawn.

    Returns:
        The mean divergence from the teacher to the learner in the last rollout, in nats a decision.
    """
    generator = np.random.default_rng(seed)
    tables = SingleAgentBatch(_GAMES, [None], None, rules, seed, hidden=hidden)
    extractor = learner.features_extractor
    inputs = th.empty(_STEPS, _GAMES, extractor.features_dim, dtype=extractor.dtype)
    targets, legal = th.empty(_STEPS, _GAMES, rules.actions), th.empty(_STEPS, _GAMES, rules.actions, dtype=th.bool)
    optimizer = th.optim.Adam(learner.parameters(), lr=rate, fused=True)
    divergence = 0.0
    for _ in range(-(-decisions // (_GAMES * _STEPS))):
        for t in range(_STEPS):
            extractor.read(tables.observations, tables.hidden, inputs[t])
            probabilities = _asked(teacher, tables)
            targets[t], legal[t] = th.from_numpy(probabilities), th.from_numpy(tables.masks) != 0
            tables.step(sample(probabilities, generator))
        flat = inputs.flatten(0, 1), targets.flatten(0, 1), legal.flatten(0, 1)
        divergence = _look(learner, optimizer, *flat, batch, generator)
    return divergence


def _asked(teacher: Policy, tables: SingleAgentBatch) -> Probabilities:
    """What the teacher would do; raises `ArchieError` unless that is a probability for each legal action."""
    if not callable(getattr(teacher, "probabilities", None)):
        raise ArchieError(f"{name_of(teacher)} tells no probabilities: expected a player that does, to clone it")
    found = np.asarray(teacher.probabilities(tables.observations, tables.masks), np.float32)
    legal = tables.masks != 0
    good = found.shape == legal.shape and bool(
        np.isfinite(found).all()
        and (found >= 0).all()
        and not found[~legal].any()
        and np.allclose(found.sum(axis=1), 1, atol=1e-3)
    )
    if not good:
        raise ArchieError(f"{name_of(teacher)} gives what are no probabilities of legal actions: it can't be cloned")
    return found


def _look(
    learner: ArchiePolicy,
    optimizer: th.optim.Optimizer,
    inputs: th.Tensor,
    targets: th.Tensor,
    legal: th.Tensor,
    batch: int,
    generator: np.random.Generator,
) -> float:
    """One epoch over a rollout; returns the mean divergence."""
    order, found = th.from_numpy(generator.permutation(len(inputs))), []
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        logits, _ = learner.decide(inputs[chosen])
        loss = th.nn.functional.kl_div(logarithms(logits, legal[chosen]), targets[chosen], reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own types lack it
        optimizer.step()
        found.append(loss.item())
    return float(np.mean(found))
