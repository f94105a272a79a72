"""The last betting round of every private history, walked cell by cell, and the rows in which a policy is asked about it.

A *cell* is one private history h together with how many cards b the other threw, which is public by then.  Arrays over cells
are ``(histories, counts, nodes of the player, 3)``; a tree is ``player (nodes,)``, ``child (nodes, 3)``, ``own (nodes,)`` as in
`evaluation.betting.Betting`, its ends numbered folds first.  Values are counterfactual: sums over the other's cards,
weighted with the chance of the deal and the other's own probability of having come there.
"""

from __future__ import annotations

import numpy as np

from archie_env._core.encode import encode, write_mask
from archie_env._core.play import allowed, deal_hand, step
from archie_env._jit import kernel

ABSENT = -(1 << 15)
"""``evaluation.betting.NO_CHILD``."""


@kernel
def reach_ends(player, child, own, who, strategy, start, ways, seen, strength, folds, shows):
    """Add up how far ``who`` comes by its own choices alone.

    ``start`` ``(histories, counts)``: its reach where the round begins.  Written to: ``folds (counts, seen, fold ends)`` and
    ``shows (counts, seen, strengths, other ends)``, by how many cards the *other* threw.
    """
    nodes, fold_ends = len(player), folds.shape[2]
    reach = np.empty(nodes, np.float64)
    for h in range(len(start)):
        for b in range(start.shape[1]):
            if start[h, b] == 0.0:
                continue
            reach[0] = start[h, b] * ways[h]
            for n in range(nodes):
                mine = player[n] == who
                for k in range(3):
                    c = child[n, k]
                    if c == ABSENT:
                        continue
                    r = reach[n] * strategy[h, b, own[n], k] if mine else reach[n]
                    if c >= 0:
                        reach[c] = r
                    elif -1 - c < fold_ends:
                        folds[b, seen[h], -1 - c] += r
                    else:
                        shows[b, seen[h], strength[h], -1 - c - fold_ends] += r


@kernel
def last_values(player, child, own, who, strategy, ways, seen, strength, folds, shows, values, best):
    """Values of cells to ``who``: ``values`` if it plays ``strategy``, ``best`` if it plays its best response.

    ``folds (counts, seen, fold ends)`` and ``shows (counts, seen, strengths, other ends)`` hold the values of the ends.
    """
    nodes, fold_ends = len(player), folds.shape[2]
    value, top = np.empty(nodes, np.float64), np.empty(nodes, np.float64)
    for h in range(len(values)):
        for b in range(values.shape[1]):
            for n in range(nodes - 1, -1, -1):
                mine = player[n] == who
                value[n] = 0.0
                top[n] = -np.inf if mine else 0.0
                for k in range(3):
                    c = child[n, k]
                    if c == ABSENT:
                        continue
                    if c >= 0:
                        v, t = value[c], top[c]
                    elif -1 - c < fold_ends:
                        v = t = folds[b, seen[h], -1 - c]
                    else:
                        v = t = shows[b, seen[h], strength[h], -1 - c - fold_ends]
                    if mine:
                        value[n] += strategy[h, b, own[n], k] * v
                        top[n] = max(top[n], t)
                    else:
                        value[n] += v
                        top[n] += t
            values[h, b] = value[0] * ways[h]
            best[h, b] = top[0] * ways[h]


@kernel
def last_regrets(
    player, child, own, who, strategy, regrets, average, reach, ways, seen, strength, folds, shows, discounts, values
):  # fmt: skip
    """One step of discounted CFR (Brown & Sandholm 2019) for ``who``, whose own reach is ``reach (histories, counts)``.

    ``strategy``, ``regrets`` and ``average`` are written to; ``discounts``: factor of positive regrets, of negative ones, and
    the weight of this strategy in the average.  ``values`` as in `last_values`, of the strategy before.
    """
    positive, negative, weight = discounts
    nodes, fold_ends = len(player), folds.shape[2]
    value, mine = np.empty(nodes, np.float64), np.empty(nodes, np.float64)
    action = np.empty(3, np.float64)
    for h in range(len(values)):
        for b in range(values.shape[1]):
            mine[0] = reach[h, b] * weight
            for n in range(nodes):
                if mine[n] == 0.0 and player[n] == who:
                    for k in range(3):
                        if child[n, k] >= 0:
                            mine[child[n, k]] = 0.0
                    continue
                for k in range(3):
                    c = child[n, k]
                    r = mine[n]
                    if c != ABSENT and player[n] == who:
                        r *= strategy[h, b, own[n], k]
                        average[h, b, own[n], k] += r
                    if c >= 0:
                        mine[c] = r
            for n in range(nodes - 1, -1, -1):
                acts = player[n] == who
                value[n] = 0.0
                for k in range(3):
                    c = child[n, k]
                    if c == ABSENT:
                        continue
                    if c >= 0:
                        v = value[c]
                    elif -1 - c < fold_ends:
                        v = folds[b, seen[h], -1 - c]
                    else:
                        v = shows[b, seen[h], strength[h], -1 - c - fold_ends]
                    action[k] = v
                    value[n] += strategy[h, b, own[n], k] * v if acts else v
                if not acts:
                    continue
                total, legal = 0.0, 0
                for k in range(3):
                    if child[n, k] == ABSENT:
                        continue
                    legal += 1
                    r = regrets[h, b, own[n], k]
                    r = r * (positive if r > 0.0 else negative) + action[k] - value[n]
                    regrets[h, b, own[n], k] = r
                    total += max(r, 0.0)
                for k in range(3):
                    if child[n, k] != ABSENT:
                        r = max(regrets[h, b, own[n], k], 0.0)
                        strategy[h, b, own[n], k] = r / total if total > 0.0 else 1.0 / legal
            values[h, b] = value[0] * ways[h]


@kernel
def weighted_sums(weights, amounts, sums):
    """``sums (wanted, columns)`` = ``weights (wanted, sets)`` times ``amounts (sets, columns)``.

    Half of the weights and more are 0, and a library's threads would get in each other's way on matrices as small as these.
    """
    for i in range(weights.shape[0]):
        sums[i] = 0.0
        for j in range(weights.shape[1]):
            weight = weights[i, j]
            if weight != 0.0:
                for k in range(amounts.shape[1]):
                    sums[i, k] += weight * amounts[j, k]


@kernel
def weighted_meetings(weights, held, amounts, sums):
    """As `weighted_sums` for showdowns, ``amounts (sets, strengths, ends)``.

    ``held (sets, places)``: the strengths that each set of cards can make, then -1; all other amounts are 0.
    """
    for i in range(weights.shape[0]):
        sums[i] = 0.0
        for j in range(weights.shape[1]):
            weight = weights[i, j]
            if weight == 0.0:
                continue
            for x in range(held.shape[1]):
                strength = held[j, x]
                if strength < 0:
                    break
                for e in range(amounts.shape[2]):
                    sums[i, strength, e] += weight * amounts[j, strength, e]


@kernel
def disjoint_sums(cards, sets, amounts, wanted, sums):
    """For each wanted set of cards add up the amounts of all sets that share no card with it.

    Sets are bits of ``cards`` cards; ``amounts (sets, columns)``, ``sums (wanted, columns)``.  Sums over all subsets take one
    addition for each set and card (Yates 1937); four columns go together to fill a vector register.
    """
    size, columns = 1 << cards, amounts.shape[1]
    table = np.empty((size, 4), np.float64)
    for first in range(0, columns, 4):
        lanes = min(4, columns - first)
        table[:] = 0.0
        for i in range(len(sets)):
            for k in range(lanes):
                table[sets[i], k] = amounts[i, first + k]
        bit = 1
        while bit < size:
            for base in range(0, size, 2 * bit):
                for m in range(base, base + bit):
                    for k in range(4):
                        table[m + bit, k] += table[m, k]
            bit *= 2
        for j in range(len(wanted)):
            for k in range(lanes):
                sums[j, first + k] = table[size - 1 - wanted[j], k]


@kernel
def show_down(pays, met, held, at_stake, values):
    """Values of showdowns from the reach of the strengths met, ``(seen, strengths, ends)`` both.

    ``pays (strengths, strengths)``: won from each strength, times ``at_stake (ends,)``; ``held`` as in `weighted_meetings`, of
    the player's own cards; the values of other strengths are left as they are.
    """
    strengths, ends = met.shape[1], met.shape[2]
    for s in range(len(met)):
        for x in range(held.shape[1]):
            mine = held[s, x]
            if mine < 0:
                break
            values[s, mine] = 0.0
            for other in range(strengths):
                pay = pays[mine, other]
                if pay != 0.0:
                    for e in range(ends):
                        values[s, mine, e] += pay * met[s, other, e]
            for e in range(ends):
                values[s, mine, e] *= at_stake[e]


@kernel
def play_paths(games, books, decks, paths, observations, masks):
    """Deal each deck, play its path up to the first -1, and write what the player to act sees and may do.

    ``games``: one record to play in; ``decks (n, 52)`` in dealing order, seat 0 the dealer; ``paths (n, steps)``.  Returns the
    first whose path is not legal, or -1.
    """
    game, book, one = games[0], books[0], np.int8(1)
    size = book["deck_size"]
    for i in range(len(decks)):
        game["first_dealer"] = 0
        for k in range(size):
            game["deck"][k] = decks[i, k]
        deal_hand(game, book, 0, size)
        for k in range(paths.shape[1]):
            action = paths[i, k]
            if action < 0:
                break
            if not allowed(game, book, action):
                return i
            step(game, book, action)
        if game["over"]:
            return i
        encode(game, book, game["turn"], observations[i], one, one)
        write_mask(game, book, masks[i])
    return -1
