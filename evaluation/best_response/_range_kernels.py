"""Ranges sampled for local best response: whole games that agree with everything one player has seen.

A *particle* is a `GAME` dealt from a deck in which the player's own cards lie where it received them and all other cards lie at
random, and played up to the decision with the actions seen.  A `SCRIPT` holds the contents of a row; the particles of script s
are the games ``s * n .. s * n + n - 1``.  Replacements are dealt per seat, so that the player's discards never move a card of
the opponent.
"""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from agents.rows import read_hand
from archie_env._core.encode import encode, write_mask
from archie_env._core.jit import inner, kernel
from archie_env._core.play import count_discards, deal_hand, step
from archie_env._core.rng import GOLDEN, below, mix
from archie_env._core.state import (
    BIG_BLIND,
    CALL,
    DEALER,
    DECK,
    DISCARD,
    MAX_CAP,
    MAX_DRAWS,
    MAX_HAND,
    MAX_ROUNDS,
    NO_CARD,
    RAISE,
)

UNKNOWN = -1
"""Stands for a number of discards that is not public, and asks for any number of discards."""

SCRIPT = np.dtype(
    [
        ("me", "i1"),  # position of the player that the row belongs to
        ("phase", "i1"),  # phase of the decision
        ("moves", "i1"),  # betting actions so far in this round
        ("known", "i1"),  # replacement cards received
        ("hand", "i1", (MAX_HAND,)),  # first hand
        ("new", "i1", (MAX_DRAWS * MAX_HAND,)),  # replacements in the order received
        ("own_discards", "i1", (MAX_DRAWS,)),  # own discard of each draw, as bits
        ("other_discards", "i1", (MAX_DRAWS,)),  # number of the opponent's discards in each draw, UNKNOWN if not public
        ("wagers", "i1", (MAX_ROUNDS, MAX_CAP + 2)),  # betting actions of both players, then 0
    ],
    align=True,
)


@inner
def holds(hand, card):
    """Whether a hand of ``MAX_HAND`` entries contains a card."""
    found = False
    for i in range(MAX_HAND):
        found |= hand[i] == card
    return found


@kernel
def read_scripts(layouts, rows, scripts):
    """Read rows ``(n, d)`` of the player to act into ``scripts (n,)``."""
    layout = layouts[0]
    before, after = np.zeros(MAX_HAND, np.int64), np.zeros(MAX_HAND, np.int64)
    counts = layout["max_discard"] + 1
    for i in range(len(rows)):
        row, script = rows[i], scripts[i]
        script["me"] = DEALER if row[layout["dealer"]] else BIG_BLIND
        phase = 0
        while not row[layout["phase"] + phase]:
            phase += 1
        script["phase"] = phase
        known = 0
        read_hand(layout, row, 0, before)
        for k in range(MAX_HAND):
            script["hand"][k] = before[k]
        for d in range(layout["draws"]):
            script["other_discards"][d] = UNKNOWN
            for count in range(counts):
                if row[layout["other_draws"] + d * counts + count]:
                    script["other_discards"][d] = count
            script["own_discards"][d] = 0
            if d >= phase >> 1:
                continue
            read_hand(layout, row, d + 1, after)
            for k in range(MAX_HAND):
                if before[k] < NO_CARD and not holds(after, before[k]):
                    script["own_discards"][d] |= 1 << k
            for k in range(MAX_HAND):
                if after[k] < NO_CARD and not holds(before, after[k]):
                    script["new"][known] = after[k]
                    known += 1
            before[:] = after
        script["known"] = known
        for r in range(layout["draws"] + 1):
            moves = 0
            for k in range(layout["actions"]):
                at = layout["wagers"] + 2 * (r * layout["actions"] + k)
                action = CALL if row[at] else RAISE if row[at + 1] else 0
                script["wagers"][r, k] = action
                moves += action > 0
            if r == phase >> 1:
                script["moves"] = moves


@inner
def own_block(book, me):
    """Index of a position's first replacement card in a deck dealt per seat."""
    n = 2 * book["hand_size"]
    return n if me == BIG_BLIND else n + book["draws"] * book["max_discard"]


@inner
def shuffle_cards(deck, indexes, count, stream):
    """Shuffle the cards at ``indexes[:count]`` among each other; return the advanced stream."""
    for k in range(count - 1, 0, -1):
        stream += GOLDEN
        j = below(mix(stream), k + 1)
        a, b = indexes[k], indexes[j]
        deck[a], deck[b] = deck[b], deck[a]
    return stream


@kernel
def deal_particles(games, books, scripts, streams):
    """Deal every particle: the player's cards where it received them, all others at random."""
    book = books[0]
    size, n = np.int64(book["deck_size"]), np.int64(book["hand_size"])
    particles = len(games) // len(scripts)
    mine, taken = np.zeros(DECK, np.bool_), np.zeros(DECK, np.bool_)
    deck, indexes, number = np.zeros(DECK, np.int8), np.zeros(DECK, np.int64), np.zeros(DECK + 1, np.int64)
    for k in range(size):
        number[book["deck"][k]] = k  # rows name cards by id, the engine by their index in the deck in play
    for s in range(len(scripts)):
        script = scripts[s]
        me, known = script["me"], script["known"]
        mine[:] = False
        taken[:] = False
        for k in range(n):
            index = 2 * k + (1 - me)  # one at a time, the big blind first
            card = number[script["hand"][k]]
            deck[index], taken[index], mine[card] = card, True, True
        for k in range(known):
            index = own_block(book, me) + k
            card = number[script["new"][k]]
            deck[index], taken[index], mine[card] = card, True, True
        count, card = 0, 0
        for index in range(size):
            if taken[index]:
                continue
            while mine[card]:
                card += 1
            deck[index] = card
            card += 1
            indexes[count] = index
            count += 1
        for i in range(s * particles, (s + 1) * particles):
            streams[s] = shuffle_cards(deck, indexes, count, streams[s])
            game = games[i]
            game["first_dealer"] = 0
            for index in range(size):
                game["deck"][index] = deck[index]
            deal_hand(game, book, 0, size)


@inner
def unseen_indexes(game, book, me, known, indexes):
    """List the indexes of a particle's deck whose cards nobody has received; return their number."""
    n, other = 2 * np.int64(book["hand_size"]), 1 - me
    mine, theirs, count = own_block(book, me), own_block(book, other), 0
    for index in range(n, book["deck_size"]):
        if mine <= index < mine + known or theirs <= index < game["next"][other]:
            continue
        indexes[count] = index
        count += 1
    return count


@inner
def arrived(game, script):
    """Whether a particle has reached the player's decision."""
    if game["phase"] != script["phase"]:
        return False
    if game["phase"] & 1:
        return game["turn"] == script["me"]
    return game["moves"] == script["moves"]


@inner
def add_waiting(game, book, i, index, observations, masks, count):
    """Append particle i with the observation and mask of the player to act; return the new number of entries."""
    one = np.int8(1)
    index[count] = i
    encode(game, book, game["turn"], observations.reshape(-1), count, one, one)
    write_mask(game, book, masks.reshape(-1), count)
    return count + 1


@kernel
def advance(games, books, scripts, index, observations, masks):
    """Play the player's own actions; list the particles in which the opponent acts before the decision, with its rows.

    Returns:
        The number of particles listed.
    """
    book = books[0]
    particles, count = len(games) // len(scripts), 0
    for i in range(len(games)):
        game, script = games[i], scripts[i // particles]
        me = script["me"]
        while not arrived(game, script) and game["turn"] == me:
            r = game["phase"] >> 1
            if game["phase"] & 1:
                step(game, book, DISCARD + script["own_discards"][r])
            else:
                step(game, book, script["wagers"][r, game["moves"]])
        if arrived(game, script):
            continue
        count = add_waiting(game, book, i, index, observations, masks, count)
    return count


@inner
def sample_discard(book, probabilities, wanted, number):
    """Sample a discard of ``wanted`` cards (any number if UNKNOWN) by the probabilities in a row of actions.

    ``number`` is uniform in [0, 1).  If all these discards have probability 0, one of them is drawn uniformly.  Returns the
    discard as bits and the total probability of these discards.
    """
    total, legal = 0.0, 0
    for m in range(1 << book["hand_size"]):
        count = count_discards(m)
        if count <= book["max_discard"] and (wanted == UNKNOWN or count == wanted):
            total += probabilities[DISCARD + m]
            legal += 1
    rest, chosen = number * (total if total > 0 else legal), 0
    for m in range(1 << book["hand_size"]):
        count = count_discards(m)
        if count <= book["max_discard"] and (wanted == UNKNOWN or count == wanted):
            probability = probabilities[DISCARD + m] if total > 0 else 1.0
            if probability > 0:
                chosen = m
                rest -= probability
                if rest < 0:
                    break
    return chosen, total


@inner
def uniform(stream):
    """A number in [0, 1) from an advanced stream."""
    return below(mix(stream), 1 << 30) / (1 << 30)


@kernel
def condition(games, books, scripts, index, probabilities, weights, streams):
    """Play the opponent's observed action in the listed particles, and multiply their weights by its probability."""
    book = books[0]
    particles = len(games) // len(scripts)
    for k in range(len(index)):
        i = index[k]
        game, s = games[i], i // particles
        script, r = scripts[s], game["phase"] >> 1
        if game["phase"] & 1:
            streams[s] += GOLDEN
            m, probability = sample_discard(book, probabilities[k], script["other_discards"][r], uniform(streams[s]))
            weights[i] *= 1.0 if script["other_discards"][r] == UNKNOWN else probability
            step(game, book, DISCARD + m)
        else:
            action = script["wagers"][r, game["moves"]]
            weights[i] *= probabilities[k, action]
            step(game, book, action)


@kernel
def resample(games, books, scripts, weights, streams):
    """Where the weights of a script's particles have become uneven, replace light particles by copies of heavy ones.

    Resampling is systematic: one random number for all particles.  Cards that nobody has received yet are shuffled in every
    copy.  If all weights are 0, the opponent never acts as observed with the sampled hands: the weights are reset to 1.
    """
    book = books[0]
    particles = len(games) // len(scripts)
    copies, indexes = np.zeros(particles, np.int64), np.zeros(DECK, np.int64)
    for s in range(len(scripts)):
        script, first = scripts[s], s * particles
        total, squares = 0.0, 0.0
        for j in range(particles):
            w = weights[first + j]
            total += w
            squares += w * w
        if total <= 0:
            for j in range(particles):
                weights[first + j] = 1.0
            continue
        if total * total >= 0.5 * particles * squares:
            for j in range(particles):  # rescale, or a long sequence of actions would underflow
                weights[first + j] *= particles / total
            continue
        streams[s] += GOLDEN
        point, reached, upto = uniform(streams[s]), 0.0, 0
        for j in range(particles):
            reached += weights[first + j] * particles / total
            copies[j] = 0
            while upto < particles and point + upto < reached:
                copies[j] += 1
                upto += 1
        if upto < particles:  # rounding left some copies unassigned
            j = particles - 1
            while weights[first + j] <= 0:
                j -= 1
            copies[j] += particles - upto
        heavy = 0
        for j in range(particles):
            weights[first + j] = 1.0
            if copies[j] > 0:
                continue
            while copies[heavy] < 2:
                heavy += 1
            copies[heavy] -= 1
            games[first + j] = games[first + heavy]
            game = games[first + j]
            count = unseen_indexes(game, book, script["me"], script["known"], indexes)
            streams[s] = shuffle_cards(game["deck"], indexes, count, streams[s])
