"""A value function of whole hands, and a hand's luck by it: the value expected of a decision, less the value that came.

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
from archie_env._core.play import NONE, count_discards, keep, step
from archie_env._core.rng import GOLDEN, ONE, below, mix
from archie_env._core.showdown import award, list_cards, set_values
from archie_env._core.state import BIG_BLIND, DEALER, DECK, DISCARD, MAX_CAP

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
    """0, 1 or 2: the set ``mine`` would lose, share or win the larger part if both hands were shown now."""
    high, low = set_values(book, mine)
    other_high, other_low = set_values(book, other)
    for_high, for_low, divided = award(book, 2, high, other_high, low, other_low, False)
    return 1 + np.sign(for_high + for_low + divided - 2)


@inner
def state_of(game, phases):
    """The number of the state: who deals, the phase, and the place in the round's betting."""
    phase = game["phase"]
    node = 0 if phase & 1 else game["turn"] * (MAX_CAP + 1) + game["wagers"]
    return (game["dealer"] * phases + phase) * NODES + node


@inner
def new_buffers():
    """``(2, 13)``: room for a listed hand and for the number of cards of each rank."""
    return np.zeros((2, RANKS), np.int64)


@inner
def kind_of(book, layout, cards, buffers, left):
    """The kind of a set of cards; ``left`` is the number of draws to come; ``buffers`` as of `new_buffers`."""
    hand, counts = buffers[0], buffers[1]
    list_cards(book, cards, hand)
    count_ranks(hand, counts)
    return hand_kind(book, layout, hand, counts, left)


@inner
def cell_of(game, book, layout, buffers):
    """The cell of a hand that is neither over nor between two discards."""
    r, draws = game["phase"] >> 1, book["draws"]
    mine, other = game["held"][DEALER, r], game["held"][BIG_BLIND, r]
    kind = kind_of(book, layout, mine, buffers, draws - r)
    other_kind = kind_of(book, layout, other, buffers, draws - r)
    state = state_of(game, 2 * draws + 1)
    return ((state * STANDINGS + standing(book, mine, other)) * KINDS + kind) * KINDS + other_kind


@inner
def stake(game):
    """The most chips a player has paid."""
    return max(game["paid"][DEALER], game["paid"][BIG_BLIND])


@inner
def value(game, book, layout, shares, future, buffers):
    """What position 0 wins: known at the end, estimated before."""
    if game["over"]:
        return float(game["net"])
    cell = cell_of(game, book, layout, buffers)
    return shares[cell] * (stake(game) + future[cell // HANDS_OF_A_STATE])


@kernel
def values_of(games, books, layouts, shares, future, places, values):
    """Write the value of each listed hand."""
    buffers = new_buffers()
    for k in range(len(places)):
        values[k] = value(games[places[k]], books[0], layouts[0], shares, future, buffers)


@kernel
def look_up(games, books, layouts, places, cells, stakes):
    """Write the cell and the stake of each listed hand."""
    buffers = new_buffers()
    for k in range(len(places)):
        game = games[places[k]]
        cells[k], stakes[k] = cell_of(game, books[0], layouts[0], buffers), stake(game)


@kernel
def expected_deals(games, books, layouts, shares, future, scratch, keys, samples, expected):
    """Write each hand's mean value over ``samples`` fresh deals, drawn from its stream in ``keys (hands,)``, which advances."""
    book, game = books[0], scratch[0]
    buffers, n = new_buffers(), book["hand_size"]
    for i in range(len(games)):
        scratch[0] = games[i]
        key, total = keys[i], 0.0
        for _ in range(samples):
            game["held"][DEALER, 0] = game["held"][BIG_BLIND, 0] = NONE
            for k in range(2 * n):
                key += GOLDEN
                j = k + below(mix(key), book["deck_size"] - k)
                card = game["deck"][j]
                game["deck"][j], game["deck"][k] = game["deck"][k], card
                game["held"][k & 1, 0] |= ONE << np.uint64(card)
            total += value(game, book, layouts[0], shares, future, buffers)
        keys[i], expected[i] = key, total / samples


@inner
def choose_discard(chances, total, count, bits):
    """Draw a discard, as bits, by the probabilities of a row; only discards of ``count`` cards, unless that is negative."""
    rest, chosen = float(bits >> _11) * _UNIT * total, 0
    for m in range(len(chances) - DISCARD):
        p = np.float64(chances[DISCARD + m])
        if p > 0 and (count < 0 or count_discards(m) == count):
            chosen = m
            rest -= p
            if rest < 0:
                break
    return chosen


@kernel
def imagine_discards(games, books, places, chances, actions, keys, imagined):
    """Sample discards of the player to act in each listed hand into ``imagined (hands, samples)``.

    ``chances (k, a)`` are its probabilities; without columns they are unknown, and every sample is the discard made.  In
    sequential draws the dealer sees the big blind's count before it discards, so that count is kept.
    """
    book = books[0]
    for k in range(len(places)):
        i, taken = places[k], actions[k] - DISCARD
        if chances.shape[1] == 0:
            for s in range(imagined.shape[1]):
                imagined[i, s] = taken
            continue
        count = count_discards(taken) if book["sequential"] and games[i]["turn"] == BIG_BLIND else -1
        total = 0.0
        for m in range(chances.shape[1] - DISCARD):
            if count < 0 or count_discards(m) == count:
                total += np.float64(chances[k, DISCARD + m])
        for s in range(imagined.shape[1]):
            keys[i] += GOLDEN
            imagined[i, s] = choose_discard(chances[k], total, count, mix(keys[i]))


@inner
def unseen_cards(game, book, pool):
    """Write the cards that neither player has held into ``pool``, each as a set; return their number."""
    held = NONE
    for position in range(2):
        for r in range((game["phase"] >> 1) + 1):
            held |= game["held"][position, r]
    n = 0
    for k in range(book["deck_size"]):
        card = ONE << np.uint64(k)
        if not held & card:
            pool[n] = card
            n += 1
    return n


@kernel
def expected_draws(games, books, layouts, shares, future, scratch, places, imagined, keys, expected):
    """Write each listed hand's mean value after the draw, over imagined discards and fresh replacements.

    The dealer is about to discard.  ``imagined (2, hands, samples)``: discard bits by position.
    """
    book, game = books[0], scratch[0]
    buffers, pool, samples = new_buffers(), np.zeros(DECK, np.uint64), imagined.shape[2]
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
                thrown = imagined[position, i, s]
                cards = keep(game["held"][position, r], thrown)
                for _ in range(count_discards(thrown)):
                    key += GOLDEN
                    j = dealt + below(mix(key), unseen - dealt)
                    pool[j], pool[dealt] = pool[dealt], pool[j]
                    cards |= pool[dealt]
                    dealt += 1
                game["held"][position, r + 1] = cards
            total += value(game, book, layouts[0], shares, future, buffers)
        keys[i], expected[k] = key, total / samples


@kernel
def betting_luck(games, books, layouts, shares, future, scratch, places, chances, actions, luck):
    """Write each listed hand's mean value over bets, by ``chances (k, a)``, less the value of the action taken."""
    buffers = new_buffers()
    for k in range(len(places)):
        total, expected, came = 0.0, 0.0, 0.0
        for action in range(DISCARD):
            p = np.float64(chances[k, action])
            if p > 0:
                scratch[0] = games[places[k]]
                step(scratch[0], books[0], action)
                worth = value(scratch[0], books[0], layouts[0], shares, future, buffers)
                total += p
                expected += p * worth
                if action == actions[k]:
                    came = worth
        luck[k] = expected / total - came
