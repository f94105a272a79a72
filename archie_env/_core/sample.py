"""Random choices for whole batches of decisions."""

from __future__ import annotations

from archie_env._core.jit import kernel


@kernel
def sample_rows(probabilities, randoms, actions):
    """Invert the cumulative distribution of each row; rounding can never select an action of probability 0."""
    for i in range(len(actions)):
        total = 0.0
        for a in range(probabilities.shape[1]):
            total += probabilities[i, a]
        rest, chosen = randoms[i] * total, -1
        for a in range(probabilities.shape[1]):
            p = probabilities[i, a]
            if p > 0:
                chosen = a
                rest -= p
                if rest < 0:
                    break
        actions[i] = chosen


@kernel
def sample_legal(masks, randoms, actions):
    """A uniformly random legal action for each row, by one number in [0, 1) each."""
    for i in range(len(actions)):
        count = 0
        for a in range(masks.shape[1]):
            count += masks[i, a]
        rest = int(randoms[i] * count)
        for a in range(masks.shape[1]):
            if masks[i, a]:
                if rest == 0:
                    actions[i] = a
                    break
                rest -= 1
