"""Sampled ranges for local best response: hands the other may hold, as whole games that agree with everything one player saw.

A *particle* is a `GAME` dealt from a deck in which the player's own cards lie where it got them and all others lie at random,
and played up to the decision with the actions seen.  What a row shows is kept in a `SCRIPT`; particles of script s are the
games ``s * n .. s * n + n - 1``.  Decks are dealt per seat, so that what the player throws never moves a card of the other.
"""

from __future__ import annotations

import numpy as np

from agents._kernels import sensible_discard, within_limit
from agents.rows import RANKS, count_ranks, read_hand
from archie_env._core.encode import encode, write_mask
from archie_env._core.jit import inner, kernel
from archie_env._core.play import deal_hand, sort_hand, step
from archie_env._core.rng import GOLDEN, below, mix
from archie_env._core.showdown import award, high_value, low_value
from archie_env._core.state import (
    BIG_BLIND,
    CALL,
    DEALER,
    DISCARD,
    FOLD,
    MAX_CAP,
    MAX_DRAWS,
    MAX_HAND,
    MAX_ROUNDS,
    NO_CARD,
    RAISE,
)

UNKNOWN = -1
_STAKE = 1 << 20
"""Chips of each at a showdown that only asks for shares: an odd one is worth nothing."""
_DECK = 52
_MOST_NEW = MAX_DRAWS * MAX_HAND

SCRIPT = np.dtype(
    [
        ("me", "i1"),  # position of the player whose row it is
        ("phase", "i1"),  # of its decision
        ("moves", "i1"),  # betting actions so far in that round
        ("known", "i1"),  # replacement cards it has got
        ("hand", "i1", (MAX_HAND,)),  # its first hand
        ("new", "i1", (_MOST_NEW,)),  # its replacements in the order got
        ("discards", "i1", (MAX_DRAWS,)),  # bits of what it threw in each draw
        ("thrown", "i1", (MAX_DRAWS,)),  # how many the other threw, UNKNOWN where that is not public
        ("wagers", "i1", (MAX_ROUNDS, MAX_CAP + 2)),  # betting actions of both, then 0
    ],
    align=True,
)


@inner
def holds(hand, card):
    """Whether a hand of five places has a card."""
    found = False
    for i in range(MAX_HAND):
        found |= hand[i] == card
    return found


@kernel
def read_scripts(layouts, rows, scripts):
    """Read rows ``(n, d)`` of players to act into ``scripts (n,)``."""
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
            script["thrown"][d] = UNKNOWN
            for count in range(counts):
                if row[layout["other_draws"] + d * counts + count]:
                    script["thrown"][d] = count
            script["discards"][d] = 0
            if d >= phase >> 1:
                continue
            read_hand(layout, row, d + 1, after)
            for k in range(MAX_HAND):
                if before[k] < NO_CARD and not holds(after, before[k]):
                    script["discards"][d] |= 1 << k
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
    """The place in a deck dealt per seat at which a position's replacement cards begin."""
    n = 2 * book["hand_size"]
    return n if me == BIG_BLIND else n + book["draws"] * book["max_discard"]


@inner
def shuffle_places(deck, places, count, stream):
    """Shuffle the cards at ``places[:count]`` among each other; returns the stream, moved on."""
    for k in range(count - 1, 0, -1):
        stream += GOLDEN
        j = below(mix(stream), k + 1)
        a, b = places[k], places[j]
        deck[a], deck[b] = deck[b], deck[a]
    return stream


@kernel
def deal_particles(games, books, scripts, streams):
    """Deal every particle: the player's cards where it got them, all others at random."""
    book = books[0]
    size, n = np.int64(book["deck_size"]), np.int64(book["hand_size"])
    particles = len(games) // len(scripts)
    mine, taken = np.zeros(_DECK + 1, np.bool_), np.zeros(_DECK, np.bool_)
    deck, places = np.zeros(_DECK, np.int8), np.zeros(_DECK, np.int64)
    for s in range(len(scripts)):
        script = scripts[s]
        me, known = script["me"], script["known"]
        mine[:] = False
        taken[:] = False
        for k in range(n):
            place = 2 * k + (1 - me)  # one at a time, the big blind first
            deck[place], taken[place], mine[script["hand"][k]] = script["hand"][k], True, True
        for k in range(known):
            place = own_block(book, me) + k
            deck[place], taken[place], mine[script["new"][k]] = script["new"][k], True, True
        count, column = 0, 0
        for place in range(size):
            if taken[place]:
                continue
            while mine[book["deck"][column]]:
                column += 1
            deck[place] = book["deck"][column]
            column += 1
            places[count] = place
            count += 1
        for i in range(s * particles, (s + 1) * particles):
            streams[s] = shuffle_places(deck, places, count, streams[s])
            game = games[i]
            game["first_dealer"] = 0
            for place in range(size):
                game["deck"][place] = deck[place]
            deal_hand(game, book, 0, size)


@inner
def unseen_places(game, book, me, known, places):
    """List the places of a particle's deck that nobody has got a card from; returns how many."""
    n, other = 2 * np.int64(book["hand_size"]), 1 - me
    mine, theirs, count = own_block(book, me), own_block(book, other), 0
    for place in range(n, book["deck_size"]):
        if mine <= place < mine + known or theirs <= place < game["next"][other]:
            continue
        places[count] = place
        count += 1
    return count


@inner
def arrived(game, script):
    """Whether a particle has come to the player's decision."""
    if game["phase"] != script["phase"]:
        return False
    if game["phase"] & 1:
        return game["turn"] == script["me"]
    return game["moves"] == script["moves"]


@inner
def add_waiting(game, book, i, index, observations, masks, count):
    """List particle i with what the player to act sees and may do; returns how many are listed then."""
    one = np.int8(1)
    index[count] = i
    encode(game, book, game["turn"], observations[count], one, one)
    write_mask(game, book, masks[count])
    return count + 1


@kernel
def advance(games, books, scripts, index, observations, masks):
    """Play the player's own actions; list the particles in which the other is to act before the decision, with what it sees.

    Returns how many.
    """
    book = books[0]
    particles, count = len(games) // len(scripts), 0
    for i in range(len(games)):
        game, script = games[i], scripts[i // particles]
        me = script["me"]
        while not arrived(game, script) and game["turn"] == me:
            r = game["phase"] >> 1
            if game["phase"] & 1:
                step(game, book, DISCARD + script["discards"][r])
            else:
                step(game, book, script["wagers"][r, game["moves"]])
        if arrived(game, script):
            continue
        count = add_waiting(game, book, i, index, observations, masks, count)
    return count


@inner
def bits_of(m):
    """How many cards discard bits throw."""
    n = 0
    for i in range(MAX_HAND):
        n += m >> i & 1
    return n


@inner
def draw_discard(book, chances, thrown, number):
    """A discard of ``thrown`` cards (any, if UNKNOWN) by its chance, any of them where all have none; and their chance."""
    total, legal = 0.0, 0
    for m in range(1 << book["hand_size"]):
        count = bits_of(m)
        if count <= book["max_discard"] and (thrown == UNKNOWN or count == thrown):
            total += chances[DISCARD + m]
            legal += 1
    rest, chosen = number * (total if total > 0 else legal), 0
    for m in range(1 << book["hand_size"]):
        count = bits_of(m)
        if count <= book["max_discard"] and (thrown == UNKNOWN or count == thrown):
            chance = chances[DISCARD + m] if total > 0 else 1.0
            if chance > 0:
                chosen = m
                rest -= chance
                if rest < 0:
                    break
    return chosen, total


@inner
def uniform(stream):
    """A number in [0, 1) from a stream that has been moved on."""
    return below(mix(stream), 1 << 30) / (1 << 30)


@kernel
def condition(games, books, scripts, index, chances, weights, streams):
    """Play what the other was seen to do in the listed particles, and multiply their weights by its chance to do it."""
    book = books[0]
    particles = len(games) // len(scripts)
    for k in range(len(index)):
        i = index[k]
        game, s = games[i], i // particles
        script, r = scripts[s], game["phase"] >> 1
        if game["phase"] & 1:
            streams[s] += GOLDEN
            m, chance = draw_discard(book, chances[k], script["thrown"][r], uniform(streams[s]))
            weights[i] *= 1.0 if script["thrown"][r] == UNKNOWN else chance
            step(game, book, DISCARD + m)
        else:
            action = script["wagers"][r, game["moves"]]
            weights[i] *= chances[k, action]
            step(game, book, action)


@kernel
def resample(games, books, scripts, weights, streams):
    """Where the weights of a script's particles have become uneven, replace light particles by copies of heavy ones.

    Cards that nobody has got yet are shuffled in every copy.  Where no particle has any weight, the other did what it never
    does with the sampled hands: all count alike again.
    """
    book = books[0]
    particles = len(games) // len(scripts)
    copies, places = np.zeros(particles, np.int64), np.zeros(_DECK, np.int64)
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
            for j in range(particles):  # so that many actions in a row don't make them too small
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
        if upto < particles:  # rounding
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
            count = unseen_places(game, book, script["me"], script["known"], places)
            streams[s] = shuffle_places(game["deck"], places, count, streams[s])


@inner
def sensible(game, book, layout, counts):
    """The discard action of a simple player for the player to act."""
    hand = game["hand"][game["turn"], game["phase"] >> 1]
    count_ranks(hand, counts)
    return DISCARD + within_limit(sensible_discard(book, layout, hand, counts), hand, layout["max_discard"])


@kernel
def check_down(games, books, layouts, scripts, index, observations, masks):
    """Play on without any bet, the player drawing like a simple one; list the particles in which the other is to draw.

    Returns how many.
    """
    book, layout = books[0], layouts[0]
    counts = np.zeros(RANKS, np.int64)
    particles, count = len(games) // len(scripts), 0
    for i in range(len(games)):
        game, me = games[i], scripts[i // particles]["me"]
        while not game["over"]:
            if not game["phase"] & 1:
                step(game, book, CALL)
            elif game["turn"] == me:
                step(game, book, sensible(game, book, layout, counts))
            else:
                break
        if game["over"]:
            continue
        count = add_waiting(game, book, i, index, observations, masks, count)
    return count


@kernel
def draw_for_other(games, books, scripts, index, chances, streams):
    """Let the other draw in the listed particles."""
    book = books[0]
    particles = len(games) // len(scripts)
    for k in range(len(index)):
        s = index[k] // particles
        streams[s] += GOLDEN
        m, _ = draw_discard(book, chances[k], UNKNOWN, uniform(streams[s]))
        step(games[index[k]], book, DISCARD + m)


@inner
def share_of(book, hand, high, low):
    """What a hand gets of a pot against a hand of these values, 0 to 1."""
    stake = np.int64(_STAKE)
    mine, mine_low = np.int64(high_value(book, hand)), np.int64(low_value(book, hand))
    for_high, for_low, divided = award(book, stake, mine, np.int64(high), mine_low, np.int64(low), False)
    return (for_high + for_low + divided) / (2 * stake)


@kernel
def final_shares(games, books, scripts, shares):
    """The player's share of the pot in particles played to the end."""
    book = books[0]
    particles = len(games) // len(scripts)
    for i in range(len(games)):
        game, me = games[i], scripts[i // particles]["me"]
        other = game["hand"][1 - me, book["draws"]]
        shares[i] = share_of(book, game["hand"][me, book["draws"]], high_value(book, other), low_value(book, other))


@kernel
def raise_all(games, books, index, observations, masks):
    """Let the player raise where it may; list the particles in which it did, with what the other sees then.

    Returns how many.
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
    """The betting action of the greatest worth if nobody bets any more; ``folds``: chance that the other folds to a raise.

    Worths are chips beyond what a fold wins.  Scripts of draws are left alone.
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
    """The discard whose final hand gets the greatest share from the other's final hands.

    ``rolled``: the particles played to the end.  Every discard is completed with the same unseen cards, ``completions`` times
    in each particle; later draws are those of a simple player.  Scripts of bets are left alone.
    """
    book, layout = books[0], layouts[0]
    n, draws, limit = np.int64(book["hand_size"]), np.int64(book["draws"]), np.int64(book["max_discard"])
    particles, subsets = len(rolled) // len(scripts), 1 << n
    worth, counts = np.zeros(1 << MAX_HAND, np.float64), np.zeros(RANKS, np.int64)
    places, hand, fresh = np.zeros(_DECK, np.int64), np.zeros(MAX_HAND, np.int64), np.zeros(_MOST_NEW, np.int64)
    for s in range(len(scripts)):
        script = scripts[s]
        me, d = script["me"], np.int64(script["phase"] >> 1)
        if not script["phase"] & 1:
            continue
        worth[:] = 0.0
        for i in range(s * particles, (s + 1) * particles):
            if weights[i] <= 0:
                continue
            game = rolled[i]
            held, other = game["hand"][me, d], game["hand"][1 - me, draws]
            high, low = high_value(book, other), low_value(book, other)
            count = unseen_places(game, book, me, script["known"], places)
            for _ in range(completions):
                for k in range((draws - d) * limit):
                    streams[s] += GOLDEN
                    j = k + below(mix(streams[s]), count - k)
                    places[k], places[j] = places[j], places[k]
                    fresh[k] = game["deck"][places[k]]
                for m in range(subsets):
                    bits, used = m, 0
                    if bits_of(m) > limit:
                        continue
                    for k in range(MAX_HAND):
                        hand[k] = held[k]
                    for later in range(d, draws):
                        if later > d:
                            count_ranks(hand, counts)
                            bits = within_limit(sensible_discard(book, layout, hand, counts), hand, layout["max_discard"])
                        for k in range(n):
                            if bits >> k & 1:
                                hand[k] = fresh[used]
                                used += 1
                        sort_hand(hand)
                    worth[m] += weights[i] * share_of(book, hand, high, low)
        best = 0
        for m in range(subsets):
            if bits_of(m) <= limit and worth[m] > worth[best]:
                best = m
        actions[s] = DISCARD + best
