"""A value function of whole hands, and how much luck one hand had by it: what it expected, less what came.

Values are chips that position 0 wins.  They are looked up by *cell*: who deals, the phase, where in the round's betting the
hand stands, who would win a showdown now, and the kind of either hand.  ``shares (cells,)`` holds the part of the stake that
is won there, ``future (states,)`` the chips that are still to be paid, states being cells without the cards.
"""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from agents._rule_kernels import FULL_HOUSE, hand_kind
from agents.rows import RANKS, count_ranks
from archie_env._core.jit import inner, kernel
from archie_env._core.play import sort_hand, step
from archie_env._core.rng import GOLDEN, below, mix
from archie_env._core.showdown import award, high_value, low_value
from archie_env._core.state import BIG_BLIND, DEALER, DISCARD, MAX_CAP

KINDS = FULL_HOUSE + 1
STANDINGS = 3
"""Position 0 would lose, share or win the larger part."""
NODES = 2 * (MAX_CAP + 1)
"""Whose turn it is, and the wagers of the round so far: the two tell every place in a round's betting."""
HANDS_OF_A_STATE = STANDINGS * KINDS * KINDS
_11 = np.uint64(11)
_UNIT = 2.0**-53


@inner
def standing(book, mine, other):
    """0, 1 or 2: ``mine`` would lose, share or win the larger part if both hands were shown now."""
    high, low = np.int64(high_value(book, mine)), np.int64(low_value(book, mine))
    other_high, other_low = np.int64(high_value(book, other)), np.int64(low_value(book, other))
    for_high, for_low, divided = award(book, 2, high, other_high, low, other_low, False)
    return 1 + np.sign(for_high + for_low + divided - 2)


@inner
def state_of(game, phases):
    """The number of the state: who deals, the phase, and the place in the round's betting."""
    phase = game["phase"]
    node = 0 if phase & 1 else game["turn"] * (MAX_CAP + 1) + game["wagers"]
    return (game["dealer"] * phases + phase) * NODES + node


@inner
def cell_of(game, book, layout, counts):
    """The cell of a hand that is neither over nor between two discards."""
    r, draws = game["phase"] >> 1, book["draws"]
    mine, other = game["hand"][DEALER, r], game["hand"][BIG_BLIND, r]
    count_ranks(mine, counts)
    kind = hand_kind(book, layout, mine, counts, draws - r)
    count_ranks(other, counts)
    other_kind = hand_kind(book, layout, other, counts, draws - r)
    state = state_of(game, 2 * draws + 1)
    return ((state * STANDINGS + standing(book, mine, other)) * KINDS + kind) * KINDS + other_kind


@inner
def stake(game):
    """The most chips a player has paid."""
    return max(game["paid"][DEALER], game["paid"][BIG_BLIND])


@inner
def value(game, book, layout, shares, future, counts):
    """What position 0 wins: known at the end, estimated before."""
    if game["over"]:
        return float(game["net"])
    cell = cell_of(game, book, layout, counts)
    return shares[cell] * (stake(game) + future[cell // HANDS_OF_A_STATE])


@kernel
def values_of(games, books, layouts, shares, future, places, values):
    """Write the value of each listed hand."""
    counts = np.zeros(RANKS, np.int64)
    for k in range(len(places)):
        values[k] = value(games[places[k]], books[0], layouts[0], shares, future, counts)


@kernel
def look_up(games, books, layouts, places, cells, stakes):
    """Write the cell and the stake of each listed hand."""
    counts = np.zeros(RANKS, np.int64)
    for k in range(len(places)):
        game = games[places[k]]
        cells[k], stakes[k] = cell_of(game, books[0], layouts[0], counts), stake(game)


@kernel
def expected_deals(games, books, layouts, shares, future, scratch, keys, samples, expected):
    """Write the mean value over so many fresh deals for each hand, from its own stream ``keys (hands,)``."""
    book, game = books[0], scratch[0]
    counts, n = np.zeros(RANKS, np.int64), book["hand_size"]
    for i in range(len(games)):
        scratch[0] = games[i]
        key, total = keys[i], 0.0
        for _ in range(samples):
            for k in range(2 * n):
                key += GOLDEN
                j = k + below(mix(key), book["deck_size"] - k)
                card = game["deck"][j]
                game["deck"][j], game["deck"][k] = game["deck"][k], card
                game["hand"][k & 1, 0, k >> 1] = card
            for position in range(2):
                sort_hand(game["hand"][position, 0])
            total += value(game, book, layouts[0], shares, future, counts)
        keys[i], expected[i] = key, total / samples


@inner
def cards_thrown(bits):
    """How many discard bits are set."""
    n = 0
    while bits:
        n += bits & 1
        bits >>= 1
    return n


@inner
def choose_discard(chances, total, count, bits):
    """Discard bits drawn with the chances of a row, only those of ``count`` cards unless it is negative."""
    rest, chosen = float(bits >> _11) * _UNIT * total, 0
    for m in range(len(chances) - DISCARD):
        p = np.float64(chances[DISCARD + m])
        if p > 0 and (count < 0 or cards_thrown(m) == count):
            chosen = m
            rest -= p
            if rest < 0:
                break
    return chosen


@kernel
def imagine_discards(games, books, places, chances, actions, keys, imagined):
    """Write into ``imagined (hands, samples)`` what the player to act might have thrown in each listed hand.

    ``chances`` ``(k, a)`` are its probabilities; without columns they are unknown and it throws what it does throw.  A count
    that the other sees before it discards (the big blind's, in sequential draws) stays what it was.
    """
    book = books[0]
    for k in range(len(places)):
        i, taken = places[k], actions[k] - DISCARD
        if chances.shape[1] == 0:
            for s in range(imagined.shape[1]):
                imagined[i, s] = taken
            continue
        count = cards_thrown(taken) if book["sequential"] and games[i]["turn"] == BIG_BLIND else -1
        total = 0.0
        for m in range(chances.shape[1] - DISCARD):
            if count < 0 or cards_thrown(m) == count:
                total += np.float64(chances[k, DISCARD + m])
        for s in range(imagined.shape[1]):
            keys[i] += GOLDEN
            imagined[i, s] = choose_discard(chances[k], total, count, mix(keys[i]))


@inner
def unseen_cards(game, book, pool):
    """Write the cards that neither player has held into ``pool``; returns how many."""
    held = np.uint64(0)
    for position in range(2):
        for r in range((game["phase"] >> 1) + 1):
            for k in range(book["hand_size"]):
                held |= np.uint64(1) << np.uint64(game["hand"][position, r, k])
    n = 0
    for k in range(book["deck_size"]):
        if not held >> np.uint64(book["deck"][k]) & np.uint64(1):
            pool[n] = book["deck"][k]
            n += 1
    return n


@kernel
def expected_draws(games, books, layouts, shares, future, scratch, places, imagined, keys, expected):
    """Write the mean value, once cards are dealt, over imagined discards and fresh replacements of each listed hand.

    The dealer is about to discard.  ``imagined (2, hands, samples)``: discard bits by position.
    """
    book, game = books[0], scratch[0]
    counts, pool, size = np.zeros(RANKS, np.int64), np.zeros(len(book["deck"]), np.int64), book["hand_size"]
    samples = imagined.shape[2]
    for k in range(len(places)):
        i = places[k]
        scratch[0] = games[i]
        unseen, r = unseen_cards(game, book, pool), game["phase"] >> 1
        game["phase"] += 1
        game["turn"] = BIG_BLIND
        game["moves"] = game["wagers"] = 0
        key, total = keys[i], 0.0
        for s in range(samples):
            dealt = 0
            for position in range(2):
                hand, thrown = game["hand"][position, r + 1], imagined[position, i, s]
                for c in range(size):
                    if thrown >> c & 1:
                        key += GOLDEN
                        j = dealt + below(mix(key), unseen - dealt)
                        hand[c], pool[j] = pool[j], pool[dealt]
                        pool[dealt] = hand[c]
                        dealt += 1
                    else:
                        hand[c] = game["hand"][position, r, c]
                sort_hand(hand)
            total += value(game, book, layouts[0], shares, future, counts)
        keys[i], expected[k] = key, total / samples


@kernel
def betting_luck(games, books, layouts, shares, future, scratch, places, chances, actions, luck):
    """Write what was expected of betting in each listed hand, by ``chances`` ``(k, a)``, less the worth of the action taken."""
    counts = np.zeros(RANKS, np.int64)
    for k in range(len(places)):
        total, expected, came = 0.0, 0.0, 0.0
        for action in range(DISCARD):
            p = np.float64(chances[k, action])
            if p > 0:
                scratch[0] = games[places[k]]
                step(scratch[0], books[0], action)
                worth = value(scratch[0], books[0], layouts[0], shares, future, counts)
                total += p
                expected += p * worth
                if action == actions[k]:
                    came = worth
        luck[k] = expected / total - came
