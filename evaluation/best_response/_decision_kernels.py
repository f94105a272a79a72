"""Decisions of local best response: the hands played on without bets, the value of a bet and of every discard."""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from agents._kernels import sensible_discard, within_limit
from agents.rows import RANKS, count_ranks
from archie_env._core.jit import inner, kernel
from archie_env._core.play import count_discards, keep, step
from archie_env._core.rng import GOLDEN, ONE, below, mix
from archie_env._core.showdown import award, list_cards, set_values
from archie_env._core.state import CALL, DECK, DISCARD, FOLD, MAX_DRAWS, MAX_HAND, RAISE
from evaluation.best_response._range_kernels import (
    UNKNOWN,
    add_waiting,
    sample_discard,
    uniform,
    unseen_indexes,
)

_STAKE = 1 << 20
"""Chips of each player at a showdown played for shares of the pot: large, so that an odd chip is worth nothing."""


@inner
def sensible(book, layout, cards, hand, counts):
    """Discard that a simple player would take from a set of cards, as bits.  ``hand`` and ``counts``: room for its list."""
    list_cards(book, cards, hand)
    count_ranks(hand, counts)
    return within_limit(sensible_discard(book, layout, hand, counts), hand, layout["max_discard"])


@kernel
def check_down(games, books, layouts, scripts, index, observations, masks):
    """Play on without bets, the player drawing like a simple one; list the particles in which the opponent is to draw.

    Returns:
        The number of particles listed.
    """
    book, layout = books[0], layouts[0]
    hand, counts = np.zeros(MAX_HAND, np.int64), np.zeros(RANKS, np.int64)
    particles, count = len(games) // len(scripts), 0
    for i in range(len(games)):
        game, me = games[i], scripts[i // particles]["me"]
        while not game["over"]:
            if not game["phase"] & 1:
                step(game, book, CALL)
            elif game["turn"] == me:
                step(game, book, DISCARD + sensible(book, layout, game["held"][me, game["phase"] >> 1], hand, counts))
            else:
                break
        if game["over"]:
            continue
        count = add_waiting(game, book, i, index, observations, masks, count)
    return count


@kernel
def draw_for_other(games, books, scripts, index, probabilities, streams):
    """Sample the opponent's discard in the listed particles."""
    book = books[0]
    particles = len(games) // len(scripts)
    for k in range(len(index)):
        s = index[k] // particles
        streams[s] += GOLDEN
        m, _ = sample_discard(book, probabilities[k], UNKNOWN, uniform(streams[s]))
        step(games[index[k]], book, DISCARD + m)


@inner
def share_of(book, cards, high, low):
    """Share of the pot, 0 to 1, that a set of cards wins against a hand of these values."""
    stake = np.int64(_STAKE)
    mine, mine_low = set_values(book, cards)
    for_high, for_low, divided = award(book, stake, mine, high, mine_low, low, False)
    return (for_high + for_low + divided) / (2 * stake)


@kernel
def final_shares(games, books, scripts, shares):
    """The player's share of the pot in particles played to the end."""
    book = books[0]
    particles = len(games) // len(scripts)
    for i in range(len(games)):
        game, me = games[i], scripts[i // particles]["me"]
        high, low = set_values(book, game["held"][1 - me, book["draws"]])
        shares[i] = share_of(book, game["held"][me, book["draws"]], high, low)


@kernel
def raise_all(games, books, index, observations, masks):
    """Raise where that is legal; list these particles with the rows of the opponent.

    Returns:
        The number of particles listed.
    """
    book, count = books[0], 0
    for i in range(len(games)):
        game = games[i]
        if game["phase"] & 1 or game["wagers"] >= book["raise_cap"]:
            continue
        step(game, book, RAISE)
        count = add_waiting(game, book, i, index, observations, masks, count)
    return count


@kernel
def choose_bets(games, books, scripts, weights, shares, folds, actions):
    """Choose the betting action of highest value, assuming that nobody bets afterwards.

    Values are chips beyond the result of a fold.  ``folds``: probability that the opponent folds to a raise, by particle.
    Scripts of draws are skipped.
    """
    book = books[0]
    particles = len(games) // len(scripts)
    for s in range(len(scripts)):
        script, first = scripts[s], s * particles
        if script["phase"] & 1:
            continue
        game, me = games[first], script["me"]
        owed, pot = game["paid"][1 - me] - game["paid"][me], game["paid"][0] + game["paid"][1]
        bet = book["bet"][script["phase"] >> 1]
        total, share, folded, share_left = 0.0, 0.0, 0.0, 0.0
        for i in range(first, first + particles):
            total += weights[i]
            share += weights[i] * shares[i]
            folded += weights[i] * folds[i]
            share_left += weights[i] * (1 - folds[i]) * shares[i]
        call = share * (pot + owed) - total * owed
        raised = folded * pot + share_left * (pot + owed + 2 * bet) - (total - folded) * (owed + bet)
        can_raise = game["wagers"] < book["raise_cap"]
        if can_raise and raised > call and raised > 0:
            actions[s] = RAISE
        else:
            actions[s] = CALL if call >= 0 or owed == 0 else FOLD


@kernel
def choose_discards(rolled, books, layouts, scripts, weights, completions, streams, actions):
    """Choose the discard whose final hand wins the greatest share from the opponent's final hands.

    ``rolled``: the particles played to the end.  Every discard is completed with the same unseen cards, ``completions`` times
    in each particle; later draws are those of a simple player.  Scripts of bets are skipped.
    """
    book, layout = books[0], layouts[0]
    draws, limit = np.int64(book["draws"]), np.int64(book["max_discard"])
    particles, subsets = len(rolled) // len(scripts), 1 << np.int64(book["hand_size"])
    values, counts = np.zeros(1 << MAX_HAND, np.float64), np.zeros(RANKS, np.int64)
    indexes, hand, fresh = np.zeros(DECK, np.int64), np.zeros(MAX_HAND, np.int64), np.zeros(MAX_DRAWS * MAX_HAND, np.uint64)
    for s in range(len(scripts)):
        script = scripts[s]
        me, d = script["me"], np.int64(script["phase"] >> 1)
        if not script["phase"] & 1:
            continue
        values[:] = 0.0
        for i in range(s * particles, (s + 1) * particles):
            if weights[i] <= 0:
                continue
            game = rolled[i]
            high, low = set_values(book, game["held"][1 - me, draws])
            count = unseen_indexes(game, book, me, script["known"], indexes)
            for _ in range(completions):
                for k in range((draws - d) * limit):
                    streams[s] += GOLDEN
                    j = k + below(mix(streams[s]), count - k)
                    indexes[k], indexes[j] = indexes[j], indexes[k]
                    fresh[k] = ONE << np.uint64(game["deck"][indexes[k]])
                for m in range(subsets):
                    bits, used = m, 0
                    if count_discards(m) > limit:
                        continue
                    cards = game["held"][me, d]
                    for later in range(d, draws):
                        if later > d:
                            bits = sensible(book, layout, cards, hand, counts)
                        cards = keep(cards, bits)
                        for _ in range(count_discards(bits)):
                            cards |= fresh[used]
                            used += 1
                    values[m] += weights[i] * share_of(book, cards, high, low)
        best = 0
        for m in range(subsets):
            if count_discards(m) <= limit and values[m] > values[best]:
                best = m
        actions[s] = DISCARD + best
