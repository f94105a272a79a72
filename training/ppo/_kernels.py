"""Loops over all games of a rollout: drawing actions, and advantages where one learner is both players of a game."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import kernel


@kernel
def two_seat_advantages(positions, rewards, starts, values, last_positions, last_values, last_done, decay, advantages):
    """Generalised advantage estimates ``(steps, games)``, each player's from that player's own decisions.

    The decisions of the two positions interleave in a column.  A hand's reward stands at its last step and is what the
    position that acted there won; the other position won the negative of it.  Undiscounted: a hand is short.  ``starts[t]``
    is 1 where step t opens a hand.  A hand cut off by the end of the columns goes on with ``last_values`` for the position to
    act and, the game being zero-sum, the negative of that for the other.
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
            run[p] = following[p] - values[t, i] + decay * run[p]
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
        actions[i] = last  # the last legal one where rounding has left a little
        log_probs[i] = row[last] - np.log(total)
