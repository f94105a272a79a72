"""External-sampling Monte Carlo counterfactual regret minimisation (Lanctot et al. 2009) over an abstraction.

A traversal deals one hand, tries every action of one player, the traverser, and samples those of the other.  There is no
recursion, which could not be cached: a frame for each betting round and each draw is kept in a ``WALK``, and a small state
machine goes down and up through them.

Tables are float32: ``bets (blocks, 2, width)`` and ``draws (blocks, 2, 8)``, [:, 0] regrets and [:, 1] the weights of the
average strategy, each added to with weights that grow with time (Brown & Sandholm 2019): t for regrets, t^2 for averages.
Threads may share tables: an update is lost now and then, and no more than that.
"""

from __future__ import annotations

import numpy as np

from agents._cfr_kernels import (
    CLOSED,
    FIRST,
    FOLDED,
    LATER,
    NO_SLOT,
    NODES,
    SLOTS,
    bet_block,
    draw_block,
    hand_class,
    paid_after,
    paid_by_folder,
    raisers_after,
)
from archie_env._core.jit import inner, kernel
from archie_env._core.rng import GOLDEN, below, mix
from archie_env._core.showdown import award, high_value, low_value
from archie_env._core.state import DISCARD, MAX_HAND, NO_CARD

REGRETS, AVERAGES = 0, 1

WALK = np.dtype(
    [
        ("bits", "u8"),  # state of the random numbers
        ("traversals", "i8"),
        ("nodes", "i8"),  # decisions looked at
        ("deck", "i8", (52,)),
        ("next", "i8", (2, 4)),  # [position, round]: place in the deck of the next replacement
        ("hand", "i8", (2, 4, MAX_HAND)),
        ("class", "i8", (2, 4)),
        ("value", "i8", (2, 2)),  # [position, high or low] of the last hand
        # A betting round
        ("paid", "i8", (4,)),  # chips by each before it
        ("raisers", "i8", (4,)),
        ("thrown", "i8", (2, 4)),  # [position, round]: cards thrown in the draws before
        ("block", "i8", (2, 4)),
        ("reached", "i8", (4, NODES)),
        ("chance", "f8", (4, NODES, 3)),  # the traverser's strategy
        ("worth", "f8", (4, NODES, 3)),  # chips to the traverser
        ("tried", "i8", (4, NODES, 3)),
        ("ends", "i8", (4,)),  # how many actions close the round, and which
        ("end", "i8", (4, NODES, 2)),
        ("at", "i8", (4,)),  # the end that is being played on
        # A draw
        ("draw", "i8", (3,)),  # the traverser's block
        ("slot", "i8", (3,)),
        ("slot_chance", "f8", (3, SLOTS)),
        ("slot_worth", "f8", (3, SLOTS)),
        ("slot_tried", "i8", (3, SLOTS)),
        ("apart", "i8", (16,)),  # keeps what one thread writes out of the next one's cache lines
    ]
)

ENTER_BETTING, NEXT_END, ENTER_DRAW, NEXT_SLOT, OVER = range(5)
_11 = np.uint64(11)
_STEP = 2.0**-53
_PARTS = 16  # of a chip: halves and quarters are whole numbers of them


@inner
def uniform(walk):
    """A number in [0, 1)."""
    walk["bits"] += GOLDEN
    return np.float64(mix(walk["bits"]) >> _11) * _STEP


@inner
def insert(hand, n, card):
    """Put a card among the first n, ascending."""
    while n > 0 and hand[n - 1] > card:
        hand[n] = hand[n - 1]
        n -= 1
    hand[n] = card


@inner
def deal(walk, book):
    """Shuffle what can be dealt, give each position its first hand and, as in duplicate play, its own replacements."""
    size = book["deck_size"]
    for i in range(size):
        walk["deck"][i] = book["deck"][i]
    n, reach = book["hand_size"], book["draws"] * book["max_discard"]
    for i in range(2 * (n + reach)):
        walk["bits"] += GOLDEN
        j = i + below(mix(walk["bits"]), size - i)
        walk["deck"][i], walk["deck"][j] = walk["deck"][j], walk["deck"][i]
    for position in range(2):
        start = position * (n + reach)
        for i in range(MAX_HAND):
            walk["hand"][position, 0, i] = NO_CARD
        for i in range(n):
            insert(walk["hand"][position, 0], i, walk["deck"][start + i])
        walk["next"][position, 0] = start + n


@inner
def replace(walk, a, position, r, discard):
    """The hand of round r + 1: that of round r without the discarded cards, filled up; returns how many those were."""
    old, new = walk["hand"][position, r], walk["hand"][position, r + 1]
    n, kept = a["hand_size"], 0
    for i in range(n):
        if not discard >> i & 1:
            new[kept] = old[i]
            kept += 1
    place = walk["next"][position, r]
    for i in range(kept, n):
        insert(new, i, walk["deck"][place])
        place += 1
    for i in range(n, MAX_HAND):
        new[i] = NO_CARD
    walk["next"][position, r + 1] = place
    walk["class"][position, r + 1] = hand_class(new, a["suited"])
    return n - kept


@inner
def evaluate(walk, book, position, r):
    """Note the values of a last hand."""
    hand = walk["hand"][position, r]
    walk["value"][position, 0], walk["value"][position, 1] = high_value(book, hand), low_value(book, hand)


@inner
def share_won(walk, book, position):
    """What that position wins at a showdown for each chip that both paid, -1 to 1: an odd chip is divided too."""
    value = walk["value"]
    high, low, division = award(book, _PARTS, value[0, 0], value[1, 0], value[0, 1], value[1, 1], False)
    net = np.float64(high + low + division - _PARTS) / _PARTS
    return net if position == 0 else -net


@inner
def betting_block(walk, a, position, r, early, final):
    """The block of a position's hand in betting round r."""
    which = walk["class"][position, r]
    bucket = final[which] if r + 1 == a["rounds"] else early[which]
    own, other = walk["thrown"][position, r], walk["thrown"][1 - position, r]
    return bet_block(a, r, position, walk["paid"][r], walk["raisers"][r], own, other, bucket)


@inner
def match_regrets(regrets, start, count, legal, chances):
    """Regret matching: write chances in proportion to positive regrets, or equal ones where there are none."""
    total, number = 0.0, 0
    for k in range(count):
        chances[k] = 0
        if legal >> k & 1:
            number += 1
            regret = np.float64(regrets[start + k])
            if regret > 0:
                chances[k] = regret
                total += regret
    share = 1.0 / total if total > 0 else 0.0
    for k in range(count):
        if total > 0:
            chances[k] *= share
        elif legal >> k & 1:
            chances[k] = 1.0 / number


@inner
def sample_matched(chances, averages, start, count, legal, weight, number):
    """Add a strategy to its average and return the action that a number in [0, 1) falls on."""
    chosen = 1 if count == 3 else 0  # always legal: regrets that have overflowed leave no chance above 0
    for k in range(count):
        chance = chances[k]
        if chance > 0:
            averages[start + k] += np.float32(weight * weight * chance)
            if number >= 0:
                chosen = k
                number -= chance
    return chosen


@inner
def legal_slots(slots, which):
    """Bit k: the class has a discard in slot k."""
    bits = 0
    for k in range(SLOTS):
        if slots[which, k] != NO_SLOT:
            bits |= 1 << k
    return bits


@inner
def sample_frozen(table, start, count, legal, number):
    """An action of a finished strategy; where it says nothing, check or call, and stand pat."""
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


@inner
def follow(walk, a, r, kind, node, action, loser_sign):
    """Note where an action leads; ``loser_sign`` is -1 where the traverser would be the one who folds."""
    following = a["next"][kind, node, action]
    if following >= 0:
        walk["reached"][r, following] = 1
    elif following == CLOSED:
        k = walk["ends"][r]
        walk["end"][r, k, 0], walk["end"][r, k, 1] = node, action
        walk["ends"][r] = k + 1
    else:
        lost = paid_by_folder(a, r, walk["paid"][r], node, a["wagers"][kind, node])
        walk["worth"][r, node, action] = loser_sign * lost


@inner
def go_through(walk, a, r, me, bets, frozen, frozen_bets, explore, weight):
    """From the first node of a betting round to its ends: all of the traverser's actions, one of the other's."""
    kind = FIRST if r == 0 else LATER
    nodes = a["nodes"][kind]
    reached = walk["reached"][r]
    for node in range(nodes):
        reached[node] = 0
    reached[0] = 1
    walk["ends"][r] = 0
    for node in range(nodes):
        if not reached[node]:
            continue
        walk["nodes"] += 1
        legal, place = a["legal"][kind, node], 3 * a["place"][kind, node]
        tried, chances = walk["tried"][r, node], walk["chance"][r, node]
        if a["actor"][kind, node] == me:
            match_regrets(bets[walk["block"][me, r], REGRETS], place, 3, legal, chances)
            for k in range(3):
                # An action that is never taken is looked at now and then, except a fold, which costs nothing to look at
                tried[k] = legal >> k & 1
                if tried[k]:
                    if chances[k] <= 0 and a["next"][kind, node, k] != FOLDED and uniform(walk) >= explore:
                        tried[k] = 0
                        continue
                    follow(walk, a, r, kind, node, k, -1.0)
            continue
        block = walk["block"][1 - me, r]
        if frozen:
            chosen = sample_frozen(frozen_bets[block], place, 3, legal, uniform(walk))
        else:
            match_regrets(bets[block, REGRETS], place, 3, legal, chances)
            chosen = sample_matched(chances, bets[block, AVERAGES], place, 3, legal, weight, uniform(walk))
        for k in range(3):
            tried[k] = k == chosen
        follow(walk, a, r, kind, node, chosen, 1.0)


@inner
def come_back(walk, a, r, me, bets, weight):
    """From the ends of a betting round to its first node, learning on the way; returns its worth to the traverser."""
    kind = FIRST if r == 0 else LATER
    value = 0.0
    for node in range(a["nodes"][kind] - 1, -1, -1):
        if not walk["reached"][r, node]:
            continue
        worth, tried, chance = walk["worth"][r, node], walk["tried"][r, node], walk["chance"][r, node]
        mine = a["actor"][kind, node] == me
        value = 0.0
        for k in range(3):
            if tried[k]:
                following = a["next"][kind, node, k]
                if following >= 0:
                    worth[k] = walk["worth"][r, following, 0]
                value += chance[k] * worth[k] if mine else worth[k]
        if mine:
            regrets, place = bets[walk["block"][me, r], REGRETS], 3 * a["place"][kind, node]
            for k in range(3):
                if tried[k]:
                    regrets[place + k] += np.float32(weight * (worth[k] - value))
        worth[0] = value  # the parent finds it here
    return value


@inner
def begin_draw(walk, a, r, me, paid, raisers, early, slots, draws, frozen, f, f_early, f_slots, frozen_draws, explore, weight):
    """Draw r: the other player's is sampled, the traverser's discards are listed."""
    other = 1 - me
    which = walk["class"][other, r]
    if frozen:
        block = draw_block(f, r, other, paid, raisers, walk["thrown"][other, r], walk["thrown"][me, r], f_early[which])
        chosen = sample_frozen(frozen_draws[block], 0, SLOTS, legal_slots(f_slots, which), uniform(walk))
        discard = np.int64(f_slots[which, chosen])
    else:
        block = draw_block(a, r, other, paid, raisers, walk["thrown"][other, r], walk["thrown"][me, r], early[which])
        legal = legal_slots(slots, which)
        chances = walk["slot_chance"][r]  # free until the traverser's are written
        match_regrets(draws[block, REGRETS], 0, SLOTS, legal, chances)
        chosen = sample_matched(chances, draws[block, AVERAGES], 0, SLOTS, legal, weight, uniform(walk))
        discard = np.int64(slots[which, chosen])
    power = 1 if r == 0 else 6 if r == 1 else 36
    walk["thrown"][other, r + 1] = walk["thrown"][other, r] + power * replace(walk, a, other, r, discard)
    which = walk["class"][me, r]
    block = draw_block(a, r, me, paid, raisers, walk["thrown"][me, r], walk["thrown"][other, r], early[which])
    legal = legal_slots(slots, which)
    walk["nodes"] += 2
    match_regrets(draws[block, REGRETS], 0, SLOTS, legal, walk["slot_chance"][r])
    for k in range(SLOTS):
        tried = legal >> k & 1
        if tried and walk["slot_chance"][r, k] <= 0 and uniform(walk) >= explore:
            tried = 0
        walk["slot_tried"][r, k] = tried
    walk["draw"][r], walk["slot"][r] = block, -1
    walk["paid"][r + 1], walk["raisers"][r + 1] = paid, raisers


@inner
def end_draw(walk, r, draws, weight):
    """Learn from a draw; returns its worth to the traverser."""
    value = 0.0
    for k in range(SLOTS):
        if walk["slot_tried"][r, k]:
            value += walk["slot_chance"][r, k] * walk["slot_worth"][r, k]
    regrets = draws[walk["draw"][r], REGRETS]
    for k in range(SLOTS):
        if walk["slot_tried"][r, k]:
            regrets[k] += np.float32(weight * (walk["slot_worth"][r, k] - value))
    return value


@inner
def traverse(
    walk, book, a, me, early, final, slots, bets, draws,
    frozen, f, f_early, f_final, f_slots, frozen_bets, frozen_draws, explore, weight,
):  # fmt: skip
    """One traversal; returns what the hand is worth to the traverser, in chips."""
    deal(walk, book)
    other, r, state, value, last = 1 - me, 0, ENTER_BETTING, 0.0, a["rounds"] - 1
    for position in range(2):
        walk["class"][position, 0] = hand_class(walk["hand"][position, 0], a["suited"])
    walk["paid"][0] = walk["raisers"][0] = walk["thrown"][0, 0] = walk["thrown"][1, 0] = 0
    while state != OVER:
        if state == ENTER_BETTING:
            walk["block"][me, r] = betting_block(walk, a, me, r, early, final)
            if frozen:
                walk["block"][other, r] = betting_block(walk, f, other, r, f_early, f_final)
            else:
                walk["block"][other, r] = betting_block(walk, a, other, r, early, final)
            go_through(walk, a, r, me, bets, frozen, frozen_bets, explore, weight)
            walk["at"][r] = -1
            if r == last:
                evaluate(walk, book, 0, r)
                evaluate(walk, book, 1, r)
                share = share_won(walk, book, me)
                for k in range(walk["ends"][r]):
                    node, action = walk["end"][r, k, 0], walk["end"][r, k, 1]
                    paid = paid_after(a, r, walk["paid"][r], a["wagers"][LATER, node])
                    walk["worth"][r, node, action] = share * paid
                walk["at"][r] = walk["ends"][r] - 1
            state = NEXT_END
        elif state == NEXT_END:
            k = walk["at"][r] = walk["at"][r] + 1
            if k < walk["ends"][r]:
                state = ENTER_DRAW
                continue
            value = come_back(walk, a, r, me, bets, weight)
            if r == 0:
                state = OVER
            else:
                r -= 1
                walk["slot_worth"][r, walk["slot"][r]] = value
                state = NEXT_SLOT
        elif state == ENTER_DRAW:
            node = walk["end"][r, walk["at"][r], 0]
            kind = FIRST if r == 0 else LATER
            wagers = a["wagers"][kind, node]
            paid = paid_after(a, r, walk["paid"][r], wagers)
            raisers = raisers_after(a, r, walk["raisers"][r], wagers, a["actor"][kind, node])
            begin_draw(
                walk, a, r, me, paid, raisers, early, slots, draws,
                frozen, f, f_early, f_slots, frozen_draws, explore, weight,
            )  # fmt: skip
            state = NEXT_SLOT
        else:
            k = walk["slot"][r] + 1
            while k < SLOTS and not walk["slot_tried"][r, k]:
                k += 1
            walk["slot"][r] = k
            if k < SLOTS:
                power = 1 if r == 0 else 6 if r == 1 else 36
                discard = np.int64(slots[walk["class"][me, r], k])
                walk["thrown"][me, r + 1] = walk["thrown"][me, r] + power * replace(walk, a, me, r, discard)
                r += 1
                state = ENTER_BETTING
            else:
                value = end_draw(walk, r, draws, weight)
                node, action = walk["end"][r, walk["at"][r], 0], walk["end"][r, walk["at"][r], 1]
                walk["worth"][r, node, action] = value
                state = NEXT_END
    walk["traversals"] += 1
    return value


@kernel
def traverse_many(
    walks, books, abstractions, early, final, slots, bets, draws,
    frozen, f_abstractions, f_early, f_final, f_slots, frozen_bets, frozen_draws,
    count, explore, weight,
):  # fmt: skip
    """``count`` traversals for each position; returns the sums of what they were worth, dealer first."""
    walk, book, a, f = walks[0], books[0], abstractions[0], f_abstractions[0]
    worth = np.zeros(2)
    for _ in range(count):
        for me in range(2):
            worth[me] += traverse(
                walk, book, a, me, early, final, slots, bets, draws,
                frozen, f, f_early, f_final, f_slots, frozen_bets, frozen_draws, explore, weight,
            )  # fmt: skip
    return worth[0], worth[1]


@kernel
def count_actions(places, actions, slots, bets, draws):
    """Add 1 for each action where `find_decisions` found it; a discard without a slot counts for the most similar one."""
    for i in range(len(places)):
        drawing, block, node, which = places[i, 0], places[i, 1], places[i, 2], places[i, 3]
        if not drawing:
            bets[block, 3 * node + actions[i]] += 1
            continue
        nearest, least = 0, MAX_HAND + 1
        for k in range(SLOTS):
            if slots[which, k] != NO_SLOT:
                differing, bits = 0, slots[which, k] ^ (actions[i] - DISCARD)
                for card in range(MAX_HAND):
                    differing += bits >> card & 1
                if differing < least:
                    nearest, least = k, differing
        draws[block, nearest] += 1


@kernel
def quantise(weights, group, drop, steps, result):
    """Weights ``(blocks, width)`` as probabilities in ``steps``; those under ``drop`` are left out, except the largest.

    Each ``group`` entries are one decision; where none is above 0, so is the result.
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
            limit, kept = drop * total, 0.0
            for k in range(group):
                if weights[i, start + k] >= limit or k == top:
                    kept += weights[i, start + k]
            for k in range(group):
                if weights[i, start + k] >= limit or k == top:
                    result[i, start + k] = np.uint8(weights[i, start + k] / kept * steps + 0.5)
