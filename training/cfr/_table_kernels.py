"""Kernels that read strategies from tables, add counts to them, and quantise weights for a file."""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from agents._cfr_kernels import NO_OPTION, OPTIONS
from archie_env._core.jit import inner, kernel
from archie_env._core.state import DISCARD, MAX_HAND

REGRETS, AVERAGES = 0, 1
"""Index in the second axis of the tables."""


@inner
def match_regrets(regrets, start, count, legal, probabilities):
    """Regret matching: probabilities in proportion to positive regrets, or equal ones if no regret is positive."""
    total, number = 0.0, 0
    for k in range(count):
        probabilities[k] = 0
        if legal >> k & 1:
            number += 1
            regret = np.float64(regrets[start + k])
            if regret > 0:
                probabilities[k] = regret
                total += regret
    share = 1.0 / total if total > 0 else 0.0
    for k in range(count):
        if total > 0:
            probabilities[k] *= share
        elif legal >> k & 1:
            probabilities[k] = 1.0 / number


@inner
def sample_matched(probabilities, averages, start, count, legal, weight, number):
    """Add a strategy to its average, and return the action on which a number in [0, 1) falls."""
    chosen = 1 if count == 3 else 0  # calling and standing pat are legal, even if regrets have overflowed and none is above 0
    for k in range(count):
        p = probabilities[k]
        if p > 0:
            averages[start + k] += np.float32(weight * weight * p)
            if number >= 0:
                chosen = k
                number -= p
    return chosen


@inner
def legal_options(options, which):
    """Bit k: the class of hands has a discard number k."""
    bits = 0
    for k in range(OPTIONS):
        if options[which, k] != NO_OPTION:
            bits |= 1 << k
    return bits


@inner
def sample_target(table, start, count, legal, number):
    """Sample an action of a finished strategy.  Where its table is empty, it checks or calls, and stands pat."""
    total = 0
    for k in range(count):
        if legal >> k & 1:
            total += table[start + k]
    number *= total
    chosen = 1 if count == 3 else 0
    for k in range(count):
        if legal >> k & 1 and table[start + k]:
            chosen = k
            number -= table[start + k]
            if number < 0:
                break
    return chosen


@kernel
def count_actions(index, actions, options, bets, draws):
    """Add 1 for each action at the index that `find_decisions` found; an unlisted discard counts for the most similar one."""
    for i in range(len(index)):
        drawing, block, node, which = index[i, 0], index[i, 1], index[i, 2], index[i, 3]
        if not drawing:
            bets[block, 3 * node + actions[i]] += 1
            continue
        nearest, least = 0, MAX_HAND + 1
        for k in range(OPTIONS):
            if options[which, k] != NO_OPTION:
                differing, bits = 0, options[which, k] ^ (actions[i] - DISCARD)
                for card in range(MAX_HAND):
                    differing += bits >> card & 1
                if differing < least:
                    nearest, least = k, differing
        draws[block, nearest] += 1


@kernel
def quantise(weights, group, min_probability, levels, result):
    """Write weights ``(blocks, width)`` as whole numbers of 1 / ``levels``, leaving out probabilities under the least.

    Each ``group`` entries are one decision.  The largest is never left out; where no weight is above 0, the result is 0.
    """
    for i in range(len(weights)):
        for start in range(0, weights.shape[1] - group + 1, group):
            total, top = 0.0, 0
            for k in range(group):
                total += max(weights[i, start + k], np.float32(0))
                if weights[i, start + k] > weights[i, start + top]:
                    top = k
            if total <= 0:
                continue
            limit, kept = min_probability * total, 0.0
            for k in range(group):
                if weights[i, start + k] >= limit or k == top:
                    kept += weights[i, start + k]
            for k in range(group):
                if weights[i, start + k] >= limit or k == top:
                    result[i, start + k] = np.uint8(weights[i, start + k] / kept * levels + 0.5)
