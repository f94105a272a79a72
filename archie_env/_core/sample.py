"""Random choices for whole batches of decisions."""

from __future__ import annotations

from archie_env._core.jit import kernel


@kernel
def find_unplayable(probabilities, masks, tolerance, found):
    """Write into ``found`` ``(n,)`` which rows have a NaN, negative or illegal probability, or are further from 1 in all."""
    for i in range(len(found)):
        total, wrong = 0.0, False
        for a in range(probabilities.shape[1]):
            p = float(probabilities[i, a])
            wrong |= not p >= 0  # NaN is not
            wrong |= (p > 0) & (masks[i, a] == 0)
            total += p
        found[i] = wrong | (not abs(total - 1) <= tolerance)


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
