"""Behavioural cloning for a warm start: the actor learns a policy's probabilities in games of that policy against itself."""

from __future__ import annotations

import numpy as np
import torch as th

from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.policy import Policy, Probabilities, name_of, sample
from archie_env.rules import Rules
from training.ppo.network import ArchiePolicy, masked_log_softmax

_NUM_ENVS, _NUM_STEPS = 1024, 16


def clone(
    learner: ArchiePolicy,
    teacher: Policy,
    rules: Rules,
    decisions: int,
    learning_rate: float,
    minibatch_size: int,
    hidden: bool,
    seed: int,
) -> float:
    """Fit the actor of ``learner`` to ``teacher``, using each of about ``decisions`` of its decisions once.

    Args:
        learner: its critic stays unchanged.
        teacher: gives the target probabilities and plays.
        rules: the rules of the games.
        decisions: rounded up to whole rollouts of 16,384.
        learning_rate: of Adam.
        minibatch_size: decisions in a minibatch.
        hidden: whether the network reads hidden cards, which makes its inputs wider.
        seed: of cards and everything drawn.

    Returns:
        The mean KL divergence from the teacher to the learner in the last rollout, in nats a decision.
    """
    generator = np.random.default_rng(seed)
    batch = SingleAgentBatch(_NUM_ENVS, [None], None, rules, seed, hidden=hidden)
    extractor = learner.features_extractor
    inputs = th.empty(_NUM_STEPS, _NUM_ENVS, extractor.features_dim, dtype=extractor.dtype)
    targets = th.empty(_NUM_STEPS, _NUM_ENVS, rules.actions)
    legal = th.empty(_NUM_STEPS, _NUM_ENVS, rules.actions, dtype=th.bool)
    optimizer = th.optim.Adam(learner.parameters(), lr=learning_rate, fused=True)
    divergence = 0.0
    for _ in range(-(-decisions // (_NUM_ENVS * _NUM_STEPS))):
        for t in range(_NUM_STEPS):
            extractor.read(batch.observations, batch.hidden, inputs[t])
            probabilities = _probabilities(teacher, batch)
            targets[t], legal[t] = th.from_numpy(probabilities), th.from_numpy(batch.masks) != 0
            batch.step(sample(probabilities, generator))
        flat = inputs.flatten(0, 1), targets.flatten(0, 1), legal.flatten(0, 1)
        divergence = _fit(learner, optimizer, *flat, minibatch_size, generator)
    return divergence


def _probabilities(teacher: Policy, batch: SingleAgentBatch) -> Probabilities:
    """Return the teacher's probabilities; raises `ArchieError` unless they are a distribution over legal actions."""
    if not callable(getattr(teacher, "probabilities", None)):
        raise ArchieError(f"{name_of(teacher)} has no probabilities(): expected a policy that has, to clone it")
    found = np.asarray(teacher.probabilities(batch.observations, batch.masks), np.float32)
    legal = batch.masks != 0
    good = found.shape == legal.shape and bool(
        np.isfinite(found).all()
        and (found >= 0).all()
        and not found[~legal].any()
        and np.allclose(found.sum(axis=1), 1, atol=1e-3)
    )
    if not good:
        raise ArchieError(f"{name_of(teacher)}: its probabilities are no distribution over legal actions: it can't be cloned")
    return found


def _fit(
    learner: ArchiePolicy,
    optimizer: th.optim.Optimizer,
    inputs: th.Tensor,
    targets: th.Tensor,
    legal: th.Tensor,
    minibatch_size: int,
    generator: np.random.Generator,
) -> float:
    """Fit one epoch over a rollout; returns the mean divergence."""
    order, found = th.from_numpy(generator.permutation(len(inputs))), []
    for start in range(0, len(order), minibatch_size):
        chosen = order[start : start + minibatch_size]
        logits, _ = learner.decide(inputs[chosen])
        loss = th.nn.functional.kl_div(masked_log_softmax(logits, legal[chosen]), targets[chosen], reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own types lack it
        optimizer.step()
        found.append(loss.item())
    return float(np.mean(found))
