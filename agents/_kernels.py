"""Reading rows of the information state, and the decisions of the simplest players, whole batches at a time.

Kernels see int8 rows, the book of the rules for hand values, and a ``LAYOUT`` that says where a row keeps what; nothing else.
Hands are ascending and padded with ``NO_CARD`` to five places, as in the engine.  Ranks of lows count from the ace, 0, up.
"""

from __future__ import annotations

import numpy as np

from agents.rows import NO_RANK, RANKS, count_ranks, read_hand, read_round
from archie_env._core.jit import kernel
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import CALL, DISCARD, MAX_HAND, NO_CARD, RAISE


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
def sensible_discard(book, layout, hand, counts):
    """The draw of the simple players: keep what is made, else four low cards, a qualifying pair, the low cards."""
    n, low_limit = layout["hand_size"], layout["low_limit"]
    qualifies = high_value(book, hand) >= layout["high_qualifier"]
    first, second, _ = spread_of_groups(counts)
    if low_value(book, hand) > 0 or (n == MAX_HAND and first == 1 and qualifies):
        return 0  # a low; a straight or a flush, the only qualifying highs without a pair
    if first + second == MAX_HAND and second > 1:
        return 0  # a full house
    if first > 2 or second > 1:
        return throw_unpaired(hand, counts)
    lows = low_cards(counts, low_limit)
    if first > 1 and (lows < n - 2 or (qualifies and lows < n - 1)):
        return throw_unpaired(hand, counts)
    return throw_not_low(hand, low_limit)


@kernel
def scripted_actions(books, layouts, rows, masks, raises, draws, actions):
    """Always raise (or always call), and stand pat (or draw sensibly)."""
    book, layout = books[0], layouts[0]
    hand, counts = np.zeros(MAX_HAND, np.int64), np.zeros(RANKS, np.int64)
    for i in range(len(rows)):
        if masks[i, DISCARD]:
            bits = 0
            if draws:
                read_hand(layout, rows[i], read_round(layout, rows[i]), hand)
                count_ranks(hand, counts)
                bits = within_limit(sensible_discard(book, layout, hand, counts), hand, layout["max_discard"])
            actions[i] = DISCARD + bits
        elif raises and masks[i, RAISE]:
            actions[i] = RAISE
        else:
            actions[i] = CALL
