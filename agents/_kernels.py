"""Decisions of the scripted players, whole batches at a time.

Every kernel reads rows of the information state as int8 and the book of the rules, nothing else; hands are ascending and
padded with ``NO_CARD`` to five places, as in the engine.  ``low_limit`` is the highest ace-low rank a low may hold, -1 when
there is no low.
"""

from __future__ import annotations

import numpy as np

from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import CALL, DISCARD, MAX_HAND, NO_CARD, RAISE
from archie_env._jit import kernel

RANKS = 13
NO_RANK = -1


@kernel
def read_round(book, row):
    """The betting round, or the round before the draw."""
    for phase in range(2 * book["draws"] + 1):
        if row[book["phase_at"] + phase]:
            return phase >> 1
    return book["draws"]


@kernel
def read_hand(book, row, r, hand):
    """Write the cards held in round r into ``hand``."""
    at, k = book["held"] + r * book["deck_size"], 0
    for column in range(book["deck_size"]):
        if row[at + column]:
            hand[k] = book["deck"][column]
            k += 1
    for i in range(k, MAX_HAND):
        hand[i] = NO_CARD


@kernel
def count_ranks(hand, counts):
    """Write into ``counts`` ``(13,)`` how many cards of each rank, deuce first, the hand holds."""
    for k in range(RANKS):
        counts[k] = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD:
            counts[hand[i] >> 2] += 1


@kernel
def ace_low_rank(card):
    """0 for an ace to 12 for a king."""
    return ((card >> 2) + 1) % RANKS


@kernel
def low_cards(counts, low_limit):
    """Different ranks that a low may hold."""
    n = 0
    for k in range(RANKS):
        if counts[k] and (k + 1) % RANKS <= low_limit:
            n += 1
    return n


@kernel
def spread_of_groups(counts):
    """``(largest group, second largest, highest rank of the largest)``; a hand without a pair is ``(1, 1, ...)``."""
    first, second, rank = 0, 0, NO_RANK
    for k in range(RANKS):
        if counts[k] >= first:
            first, second, rank = counts[k], first, k
        elif counts[k] > second:
            second = counts[k]
    return first, second, rank


@kernel
def throw_unpaired(hand, counts):
    """Discard bits that keep every card of a group."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD and counts[hand[i] >> 2] < 2:
            bits |= 1 << i
    return bits


@kernel
def lowest_rank(counts, k, low_limit):
    """The ace-low rank of the k-th lowest different rank; ``low_limit`` where a low could not hold so many."""
    for rank in range(low_limit):
        if counts[(rank + RANKS - 1) % RANKS]:
            k -= 1
            if k == 0:
                return rank
    return low_limit


@kernel
def throw_not_low(hand, low_limit):
    """Discard bits that keep the first card of each rank a low may hold."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD:
            again = i > 0 and hand[i] >> 2 == hand[i - 1] >> 2
            if again or ace_low_rank(hand[i]) > low_limit:
                bits |= 1 << i
    return bits


@kernel
def within_limit(bits, hand, max_discard):
    """Discard bits with the lowest cards kept after all where more than ``max_discard`` would go."""
    count = 0
    for i in range(MAX_HAND):
        count += bits >> i & 1
    while count > max_discard:
        best = -1
        for i in range(MAX_HAND):
            if bits >> i & 1 and (best < 0 or ace_low_rank(hand[i]) < ace_low_rank(hand[best])):
                best = i
        bits &= ~(1 << best)
        count -= 1
    return bits


@kernel
def sensible_discard(book, low_limit, hand, counts):
    """The draw of the simple players: keep what is made, else four low cards, a qualifying pair, the low cards."""
    n = book["hand_size"]
    high = high_value(book, hand)
    first, second, _ = spread_of_groups(counts)
    if low_value(book, hand) > 0 or (n == MAX_HAND and first == 1 and high >= book["high_qualifier"]):
        return 0  # a low; a straight or a flush, the only qualifying highs without a pair
    if first + second == MAX_HAND and second > 1:
        return 0  # a full house
    if first > 2 or second > 1:
        return throw_unpaired(hand, counts)
    lows = low_cards(counts, low_limit)
    if first > 1 and (lows < n - 2 or (high >= book["high_qualifier"] and lows < n - 1)):
        return throw_unpaired(hand, counts)
    return throw_not_low(hand, low_limit)


@kernel
def scripted_actions(books, low_limit, rows, masks, raises, draws, actions):
    """Always raise (or always call), and stand pat (or draw sensibly)."""
    book = books[0]
    hand, counts = np.zeros(MAX_HAND, np.int64), np.zeros(RANKS, np.int64)
    for i in range(len(rows)):
        if masks[i, DISCARD]:
            bits = 0
            if draws:
                read_hand(book, rows[i], read_round(book, rows[i]), hand)
                count_ranks(hand, counts)
                bits = within_limit(sensible_discard(book, low_limit, hand, counts), hand, book["max_discard"])
            actions[i] = DISCARD + bits
        elif raises and masks[i, RAISE]:
            actions[i] = RAISE
        else:
            actions[i] = CALL


# What a hand is to the rule-based player, weakest first; draws count only while there is a draw left.
(
    NOTHING,
    WEAK_HIGH,  # an ace, or three low cards that are rough
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
"""Whose the last raise of the round before was."""


@kernel
def flush_draw_suit(hand):
    """The suit of which the hand holds all cards but one, or -1."""
    for suit in range(4):
        n = 0
        for i in range(MAX_HAND):
            n += hand[i] < NO_CARD and hand[i] & 3 == suit
        if n == MAX_HAND - 1:
            return suit
    return -1


@kernel
def straight_draw_rank(counts):
    """The lowest of four ranks in a row with room on both sides, or -1."""
    for k in range(8, -1, -1):  # 2345 has the ace below, TJQK is open above; JQKA is not
        if counts[k] and counts[k + 1] and counts[k + 2] and counts[k + 3]:
            return k
    return NO_RANK


@kernel
def roughness(rank, low_limit):
    """2 for a low or draw topped by the highest rank allowed, 1 for the next, 0 for better ones."""
    return max(0, 2 - (low_limit - rank))


@kernel
def made_kind(book, low_limit, hand, counts):
    """The kind of a hand that needs no draw, or -1."""
    first, second, rank = spread_of_groups(counts)
    if first > 3 or (first + second == MAX_HAND and second > 1):
        return FULL_HOUSE
    low = low_value(book, hand) > 0
    if first == 1 and high_value(book, hand) >= book["high_qualifier"]:
        return SCOOP if low else STRAIGHT_OR_FLUSH
    if low:
        return SMOOTH_LOW - roughness(lowest_rank(counts, book["hand_size"], low_limit), low_limit)
    if first == 3:
        return TRIPS
    if second == 2:
        return TOP_TWO_PAIR if rank >= JACK else TWO_PAIR
    return -1


@kernel
def hand_kind(book, low_limit, flushes, hand, counts, left):
    """The kind of a hand with ``left`` draws to come."""
    made = made_kind(book, low_limit, hand, counts)
    if made >= 0:
        return made
    n = book["hand_size"]
    first, _, rank = spread_of_groups(counts)
    qualifies = first > 1 and high_value(book, hand) >= book["high_qualifier"]
    lows = low_cards(counts, low_limit)
    if left and lows >= n - 1:
        if qualifies:
            return PAIR_AND_LOW_DRAW
        return SMOOTH_LOW_DRAW - roughness(lowest_rank(counts, n - 1, low_limit), low_limit)
    if qualifies:
        return HIGH_PAIR if rank >= QUEEN else MIDDLE_PAIR if rank >= NINE else PAIR
    if left and n == MAX_HAND and (straight_draw_rank(counts) >= 0 or (flushes and flush_draw_suit(hand) >= 0)):
        return HIGH_DRAW
    if first > 1:
        return SMALL_PAIR
    if lows >= n - 2 and roughness(lowest_rank(counts, n - 2, low_limit), low_limit) == 0:
        return THREE_LOW
    return WEAK_HIGH if lows >= n - 2 or counts[RANKS - 1] else NOTHING


@kernel
def throw_not_suited(hand, suit):
    """Discard bits that keep one suit."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD and hand[i] & 3 != suit:
            bits |= 1 << i
    return bits


@kernel
def throw_not_straight(hand, rank):
    """Discard bits that keep one card of each of the four ranks from ``rank``."""
    bits = 0
    for i in range(MAX_HAND):
        again = i > 0 and hand[i] >> 2 == hand[i - 1] >> 2
        if hand[i] < NO_CARD and (again or not rank <= hand[i] >> 2 < rank + 4):
            bits |= 1 << i
    return bits


@kernel
def keep_highest(bits, hand):
    """Discard bits with the highest card thrown kept after all."""
    for i in range(MAX_HAND - 1, -1, -1):
        if bits >> i & 1:
            return bits & ~(1 << i)
    return bits


@kernel
def rule_discards(kind, n, low_limit, flushes, hand, counts, left):
    """``(bits, other bits, chance of the others)``: what the rule-based player throws."""
    groups, lows = throw_unpaired(hand, counts), throw_not_low(hand, low_limit)
    if kind >= ROUGH_LOW:
        return 0, 0, 0.0
    if kind == TRIPS:  # keeping a card looks like two pair or a draw
        return groups, keep_highest(groups, hand), 0.3
    if kind in (TWO_PAIR, TOP_TWO_PAIR):
        return groups, groups, 0.0
    if kind == PAIR_AND_LOW_DRAW:
        rough = roughness(lowest_rank(counts, n - 1, low_limit), low_limit)
        return groups, lows, 0.5 if rough == 0 else 0.3 if rough == 1 else 0.0
    suit = flush_draw_suit(hand) if flushes and n == MAX_HAND else -1
    if kind in (ROUGH_LOW_DRAW, MIDDLE_LOW_DRAW, SMOOTH_LOW_DRAW):
        if suit >= 0:
            return throw_not_suited(hand, suit), lows, 0.4
        if kind == ROUGH_LOW_DRAW and left > 2:
            return throw_not_low(hand, low_limit - 1), lows, 0.1
        return lows, lows, 0.0
    if kind == HIGH_DRAW:
        if suit >= 0:
            return throw_not_suited(hand, suit), 0, 0.0
        return throw_not_straight(hand, straight_draw_rank(counts)), 0, 0.0
    if kind >= PAIR or kind == SMALL_PAIR:
        ace = counts[RANKS - 1] == 1
        return groups, keep_highest(groups, hand), 0.25 if ace else 0.0
    if kind == THREE_LOW:
        return lows, lows, 0.0
    if counts[RANKS - 1]:
        return keep_highest((1 << n) - 1, hand), throw_not_low(hand, lowest_rank(counts, 2, low_limit)), 0.2
    return throw_not_low(hand, lowest_rank(counts, 2, low_limit)), 0, 0.0


@kernel
def read_wagers(book, row, r):
    """``(actions, raises, place of the last raise or -1)`` in round r."""
    n, raises, last = 0, 0, -1
    at = book["wagers_at"] + r * book["wagers_width"]
    for k in range(book["wagers_width"] // 2):
        if row[at + 2 * k] or row[at + 2 * k + 1]:
            n += 1
            if row[at + 2 * k + 1]:
                raises, last = raises + 1, k
    return n, raises, last


@kernel
def initiative(book, row, r, dealer):
    """Whose the last raise of the round before r was; the dealer opens round 0 and no other (R2.1, R2.2)."""
    if r == 0:
        return NOBODYS
    _, _, last = read_wagers(book, row, r - 1)
    if last < 0:
        return NOBODYS
    dealers = last & 1 == (0 if r == 1 else 1)
    return MINE if dealers == (dealer != 0) else THEIRS


@kernel
def other_drew(book, row, r):
    """0 when the other stood pat in the last draw, 1 for one card, 2 for more; before any draw 2."""
    if r == 0:
        return 2
    at = book["other_draws"] + (r - 1) * (book["max_discard"] + 1)
    return 0 if row[at] else 1 if book["max_discard"] and row[at + 1] else 2


@kernel
def column(r, left, drew):
    """The column of the strength table: round 1, then two draws, one draw, none to come, by what the other drew."""
    if left == 0:
        return 7 + drew
    return 0 if r == 0 else (4 if left == 1 else 1) + drew


@kernel
def bet_level(strength, left, dealer, lead):
    """The strength at which to bet: up with the initiative, down against it, most of all before it has spoken."""
    if lead == MINE:
        return min(9, strength + 1)
    if lead == THEIRS:
        return max(0, strength - (1 if dealer or left > 1 else 3))
    return strength


@kernel
def bet_chances(strength, kind, r, left, dealer, wagers, owed, pot, drew, lead, chances, bluffs, out):
    """Write the chances of fold, call and raise; rows of ``chances`` are bet, raise, reraise, fold by strength."""
    out[:] = 0
    if owed and r == 0 and dealer and wagers == 1:  # the small blind opens
        out[2] = 0.0 if strength < 3 else 0.35 if strength == 3 else 0.88
        out[0] = 1.0 if strength < 3 else 0.3 if strength == 3 else 0.0
    elif owed:
        good_odds = pot >= 7 * owed and strength > 0
        out[0] = chances[3, min(9, strength + 1) if good_odds else strength]
        out[2] = chances[2 if wagers > 2 or (r > 0 and wagers > 1) else 1, strength]
    elif left == 0 and strength == 0:
        out[2] = bluffs[lead, drew]
    else:
        out[2] = chances[0, bet_level(strength, left, dealer, lead)]
    out[1] = 1 - out[0] - out[2]


@kernel
def rule_chances(books, low_limit, flushes, strengths, chances, bluffs, rows, masks, probabilities):
    """Write the rule-based player's chances of every action."""
    book = books[0]
    hand, counts, out = np.zeros(MAX_HAND, np.int64), np.zeros(RANKS, np.int64), np.zeros(3)
    for i in range(len(rows)):
        row, mask = rows[i], masks[i]
        r = read_round(book, row)
        left, dealer = book["draws"] - r, row[book["dealer_at"]]
        read_hand(book, row, r, hand)
        count_ranks(hand, counts)
        kind = hand_kind(book, low_limit, flushes, hand, counts, left)
        for a in range(book["actions"]):
            probabilities[i, a] = 0
        if mask[DISCARD]:
            bits, others, chance = rule_discards(kind, book["hand_size"], low_limit, flushes, hand, counts, left)
            probabilities[i, DISCARD + within_limit(bits, hand, book["max_discard"])] = 1 - chance
            if chance > 0:
                probabilities[i, DISCARD + within_limit(others, hand, book["max_discard"])] += chance
            continue
        drew, lead = other_drew(book, row, r), initiative(book, row, r, dealer)
        _, raises, _ = read_wagers(book, row, r)
        strength = strengths[kind, column(r, left, drew)]
        wagers = raises + (1 if r == 0 else 0)
        owed, pot = row[book["owed_at"]], row[book["pot_at"]] * book["pot_unit"]
        bet_chances(strength, kind, r, left, dealer, wagers, owed, pot, drew, lead, chances, bluffs, out)
        if not mask[RAISE]:
            out[1], out[2] = out[1] + out[2], 0.0
        for a in range(3):
            probabilities[i, a] = out[a]
