"""Decisions of the rule-based policy for whole batches.

`agents.rule_based` holds the tables of strengths and frequencies; these kernels classify the hand and the betting, and look up
the decision.
"""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from agents._kernels import (
    discard_not_low,
    discard_outside_run,
    discard_unpaired,
    longest_suit,
    low_cards,
    lowest_rank,
    spread_of_groups,
    within_limit,
)
from agents.rows import NO_RANK, RANKS, count_ranks, read_hand, read_round
from archie_env._core.jit import kernel
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import DISCARD, MAX_HAND, RAISE
from archie_env._core.tables import ACE

# Kinds of hands, weakest first.  A hand is a draw only while there is a draw to come.
(
    NOTHING,
    WEAK_HIGH,  # an ace, or three rough low cards
    SMALL_PAIR,  # does not qualify
    THREE_LOW,  # the highest at least two ranks below the limit: to a six
    HIGH_DRAW,  # four to a flush or to a straight open at both ends
    ROUGH_LOW_DRAW,  # one card short of a low: to an eight,
    MIDDLE_LOW_DRAW,  # to a seven,
    SMOOTH_LOW_DRAW,  # to a six or better
    PAIR_AND_LOW_DRAW,  # a qualifying pair among four low cards
    PAIR,  # qualifies
    MIDDLE_PAIR,  # nines to jacks
    HIGH_PAIR,  # queens to aces
    TWO_PAIR,
    TOP_TWO_PAIR,  # jacks up or better
    TRIPS,
    ROUGH_LOW,  # an eight
    MIDDLE_LOW,  # a seven
    SMOOTH_LOW,  # a six or better
    STRAIGHT_OR_FLUSH,
    SCOOP,  # a straight or flush that is a low as well
    FULL_HOUSE,  # or better
) = range(21)
NINE, JACK, QUEEN = 7, 9, 10
MINE, NOBODYS, THEIRS = 1, 0, 2
"""The player who made the last raise of the previous betting round."""


@kernel
def straight_draw_rank(counts):
    """The lowest of four consecutive ranks that two ranks complete to a straight, or -1."""
    for k in range(8, -1, -1):  # 2345 has the ace below, TJQK is open above; JQKA is not
        if counts[k] and counts[k + 1] and counts[k + 2] and counts[k + 3]:
            return k
    return NO_RANK


@kernel
def roughness(rank, low_limit):
    """2 if the top card of a low or low draw is of the highest rank allowed; 1 for the rank below, 0 for others."""
    return max(0, 2 - (low_limit - rank))


@kernel
def made_kind(book, layout, hand, counts):
    """The kind of a made hand, or -1."""
    first, second, rank = spread_of_groups(counts)
    if first > 3 or (first + second == MAX_HAND and second > 1):
        return FULL_HOUSE
    low, low_limit = low_value(book, hand) > 0, layout["low_limit"]
    if first == 1 and high_value(book, hand) >= layout["high_qualifier"]:
        return SCOOP if low else STRAIGHT_OR_FLUSH
    if low:
        return SMOOTH_LOW - roughness(lowest_rank(counts, layout["hand_size"], low_limit), low_limit)
    if first == 3:
        return TRIPS
    if second == 2:
        return TOP_TWO_PAIR if rank >= JACK else TWO_PAIR
    return -1


@kernel
def hand_kind(book, layout, hand, counts, left):
    """The kind of a hand; ``left`` is the number of draws to come."""
    made = made_kind(book, layout, hand, counts)
    if made >= 0:
        return made
    n, low_limit = layout["hand_size"], layout["low_limit"]
    first, _, rank = spread_of_groups(counts)
    qualifies = first > 1 and high_value(book, hand) >= layout["high_qualifier"]
    lows = low_cards(counts, low_limit)
    if left and lows >= n - 1:
        if qualifies:
            return PAIR_AND_LOW_DRAW
        return SMOOTH_LOW_DRAW - roughness(lowest_rank(counts, n - 1, low_limit), low_limit)
    if qualifies:
        return HIGH_PAIR if rank >= QUEEN else MIDDLE_PAIR if rank >= NINE else PAIR
    if left and n == MAX_HAND and (straight_draw_rank(counts) >= 0 or (layout["flushes"] and longest_suit(hand)[0] == n - 1)):
        return HIGH_DRAW
    if first > 1:
        return SMALL_PAIR
    if lows >= n - 2 and roughness(lowest_rank(counts, n - 2, low_limit), low_limit) == 0:
        return THREE_LOW
    return WEAK_HIGH if lows >= n - 2 or counts[ACE] else NOTHING


@kernel
def keep_highest(bits, hand):
    """Remove the highest discarded card from ``bits``."""
    for i in range(MAX_HAND - 1, -1, -1):
        if bits >> i & 1:
            return bits & ~(1 << i)
    return bits


@kernel
def with_ace(bits, hand, counts):
    """Keep a lone ace as well: aces up win pots that one pair would split or lose."""
    return keep_highest(bits, hand) if counts[ACE] == 1 else bits


@kernel
def pair_or_low(rough, left, drew):
    """Probability of breaking a qualifying pair to draw to the four low cards it is part of."""
    if drew == 0 and left > 1:
        return 0.6  # a pat hand is usually a low: play for the half of the pot that can be won
    if rough == 0:
        return 0.3 if left == 1 and drew < 2 else 0.42
    if left == 1:
        return 0.38 if drew == 2 else 0.05
    return 0.3 if rough == 1 else 0.1


@kernel
def draw_to_low(kind, low_limit, flushes, hand, left):
    """Discards of a hand one card short of a low, in the form of `rule_discards`."""
    lows = discard_not_low(hand, low_limit)
    cards, others = longest_suit(hand)
    if flushes and cards == MAX_HAND - 1:
        return others, lows, 0.4
    if kind == ROUGH_LOW_DRAW and left > 2:
        return discard_not_low(hand, low_limit - 1), lows, 0.1
    return lows, lows, 0.0


@kernel
def rule_discards(kind, layout, hand, counts, left, drew):
    """Return ``(bits, alternative bits, probability of the alternative)``: the cards to discard."""
    n, low_limit = layout["hand_size"], layout["low_limit"]
    groups, lows = discard_unpaired(hand, counts), discard_not_low(hand, low_limit)
    spread = layout["flushes"] and n == MAX_HAND
    if kind >= ROUGH_LOW:
        return 0, 0, 0.0
    if kind == TRIPS:  # keeping a kicker represents two pair or a draw
        return groups, keep_highest(groups, hand), 0.3
    if kind in (TWO_PAIR, TOP_TWO_PAIR):
        return groups, groups, 0.0
    if kind == PAIR_AND_LOW_DRAW:
        rough = roughness(lowest_rank(counts, n - 1, low_limit), low_limit)
        return with_ace(groups, hand, counts), lows, pair_or_low(rough, left, drew)
    if kind in (ROUGH_LOW_DRAW, MIDDLE_LOW_DRAW, SMOOTH_LOW_DRAW):
        return draw_to_low(kind, low_limit, spread, hand, left)
    if kind == HIGH_DRAW:
        cards, others = longest_suit(hand)
        if spread and cards == MAX_HAND - 1:
            return others, 0, 0.0
        return discard_outside_run(hand, straight_draw_rank(counts) + 3, 4), 0, 0.0
    if kind >= PAIR or kind == SMALL_PAIR:
        return with_ace(groups, hand, counts), groups, 0.75 if kind == HIGH_PAIR else 0.15
    if kind == THREE_LOW:
        return lows, lows, 0.0
    two = discard_not_low(hand, lowest_rank(counts, 2, low_limit))
    return with_ace((1 << n) - 1, hand, counts) if counts[ACE] else two, two, 0.2


@kernel
def read_wagers(layout, row, r):
    """Return ``(actions, raises, index of the last raise or -1)`` of round r."""
    n, raises, last = 0, 0, -1
    at = layout["wagers"] + 2 * r * layout["actions"]
    for k in range(layout["actions"]):
        if row[at + 2 * k] or row[at + 2 * k + 1]:
            n += 1
            if row[at + 2 * k + 1]:
                raises, last = raises + 1, k
    return n, raises, last


@kernel
def initiative(layout, row, r, dealer):
    """The player who made the last raise of round r - 1; the dealer opens round 0 and no other (R2.1, R2.2)."""
    if r == 0:
        return NOBODYS
    _, _, last = read_wagers(layout, row, r - 1)
    if last < 0:
        return NOBODYS
    dealers = last & 1 == (0 if r == 1 else 1)
    return MINE if dealers == (dealer != 0) else THEIRS


@kernel
def other_drew(layout, row, r):
    """Cards the opponent drew last: 0 (stood pat), 1, or 2 for more and before the first draw."""
    if r == 0:
        return 2
    at = layout["other_draws"] + (r - 1) * (layout["max_discard"] + 1)
    return 0 if row[at] else 1 if layout["max_discard"] and row[at + 1] else 2


@kernel
def column(r, left, drew, owed):
    """Column of the strength table: round 1, then two, one and no draws to come, each by the opponent's last draw."""
    if left == 0:
        return (10 if owed else 7) + drew
    return 0 if r == 0 else (4 if left == 1 else 1) + drew


@kernel
def bet_level(strength, left, dealer, lead):
    """Strength for betting: higher in position or with the initiative, lower against the opponent's initiative."""
    if lead == THEIRS and not dealer:
        return max(0, strength - (1 if left > 1 else 3))
    if dealer:
        return min(9, strength + (1 if left else 2))
    return min(9, strength + (lead == MINE))


@kernel
def answer_level(strength, r, left, wagers, owed, pot):
    """Strength for answering a wager: lower against a raise on the end, higher before the end in a large pot."""
    if left == 0:
        return max(0, strength - 1) if wagers > 1 and r > 0 else strength
    return min(9, strength + 1) if strength > 0 and pot >= 7 * owed else strength


@kernel
def bet_probabilities(strength, r, left, dealer, wagers, owed, pot, drew, lead, frequencies, bluffs, out):
    """Write the probabilities of fold, call and raise into ``out``; ``frequencies`` as in `agents.rule_based`."""
    out[:] = 0
    if owed and r == 0 and dealer and wagers == 1:  # the small blind opens
        out[0], out[2] = frequencies[5, strength], frequencies[4, strength]
    elif owed:
        level = answer_level(strength, r, left, wagers, owed, pot)
        out[0] = frequencies[3, level]
        out[2] = frequencies[2 if wagers > (2 if r == 0 else 1) else 1, level if left == 0 else strength]
    elif left == 0 and strength == 0:
        out[2] = 0.0 if lead == THEIRS and not dealer else bluffs[lead, drew]
    else:
        out[2] = frequencies[0, bet_level(strength, left, dealer, lead)]
    out[1] = 1 - out[0] - out[2]


@kernel
def rule_probabilities(books, layouts, strengths, frequencies, bluffs, rows, masks, probabilities):
    """Write the probability of every action; ``probabilities`` must hold zeros."""
    book, layout = books[0], layouts[0]
    hand, counts, out = np.zeros(MAX_HAND, np.int64), np.zeros(RANKS, np.int64), np.zeros(3)
    for i in range(len(rows)):
        row = rows[i]
        r = read_round(layout, row)
        left, dealer = layout["draws"] - r, row[layout["dealer"]]
        read_hand(layout, row, r, hand)
        count_ranks(hand, counts)
        kind, drew = hand_kind(book, layout, hand, counts, left), other_drew(layout, row, r)
        if masks[i, DISCARD]:
            bits, others, share = rule_discards(kind, layout, hand, counts, left, drew)
            probabilities[i, DISCARD + within_limit(bits, hand, layout["max_discard"])] = 1 - share
            probabilities[i, DISCARD + within_limit(others, hand, layout["max_discard"])] += share
            continue
        _, raises, _ = read_wagers(layout, row, r)
        wagers, lead = raises + (1 if r == 0 else 0), initiative(layout, row, r, dealer)
        owed, pot = row[layout["owed"]] * layout["owed_unit"], row[layout["pot"]] * layout["pot_unit"]
        strength = strengths[kind, column(r, left, drew, owed)]
        bet_probabilities(strength, r, left, dealer, wagers, owed, pot, drew, lead, frequencies, bluffs, out)
        if not masks[i, RAISE]:
            out[1], out[2] = out[1] + out[2], 0.0
        for a in range(3):
            probabilities[i, a] = out[a]
