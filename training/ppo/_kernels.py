"""Kernels over all games of a rollout: sampling of actions, and advantages where one learner plays both positions."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import kernel


@kernel
def two_seat_advantages(positions, rewards, starts, values, last_positions, last_values, last_done, gae_lambda, advantages):
    """Compute generalised advantage estimates ``(steps, games)`` for each player from that player's own decisions.

    The decisions of the two positions interleave in a column.  A hand's reward stands at its last step and is the net result
    of the position that acted there; the other position's is the negative.  Rewards are not discounted.  ``starts[t]`` is 1
    if step t opens a hand.  A hand that is cut off at the end of the column bootstraps from ``last_values`` for the position
    to act and, since the game is zero-sum, from the negative for the other.
    """
    steps, games = rewards.shape
    following, run = np.zeros(2, np.float32), np.zeros(2, np.float32)
    for i in range(games):
        p = last_positions[i]
        following[p], following[1 - p] = last_values[i], -last_values[i]
        run[0] = run[1] = 0
        for t in range(steps - 1, -1, -1):
            p = positions[t, i]
            ended = last_done[i] != 0 if t == steps - 1 else starts[t + 1, i] != 0
            if ended:
                following[p], following[1 - p] = rewards[t, i], -rewards[t, i]
                run[0] = run[1] = 0
            run[p] = following[p] - values[t, i] + gae_lambda * run[p]
            advantages[t, i] = run[p]
            following[p] = values[t, i]


@kernel
def draw_actions(logits, masks, uniform, actions, log_probs):
    """Draw ``actions[i]`` from the softmax of ``logits[i]`` over legal actions with ``uniform[i]`` in [0, 1).

    ``logits`` ``(n, a)`` is written to; ``log_probs`` receives the logarithm of each drawn action's probability.
    """
    for i in range(len(logits)):
        row, mask = logits[i], masks[i]
        top = np.float32(-np.inf)
        for a in range(len(row)):
            if mask[a]:
                top = max(top, row[a])
        total = np.float32(0)
        for a in range(len(row)):
            if mask[a]:
                row[a] -= top
                total += np.exp(row[a])
        left, last = uniform[i] * total, -1
        for a in range(len(row)):
            if mask[a]:
                last = a
                left -= np.exp(row[a])
                if left < 0:
                    break
        actions[i] = last  # rounding may leave a remainder: take the last legal action
        log_probs[i] = row[last] - np.log(total)
