"""Kernels that read a hand, and the decisions of the scripted policies for whole batches.

Kernels take int8 rows, the compiled rules (``book``) and the layout of a row (`agents.rows`).  Hands ascend and are padded with
``NO_CARD`` to five cards.  Ace-low ranks count up from the ace, 0.  Discard bits number the cards of a hand, bit 0 the lowest.
"""

from __future__ import annotations

import numpy as np

from agents.rows import NO_RANK, RANKS, count_ranks, read_hand, read_round
from archie_env._core.jit import kernel
from archie_env._core.play import count_discards
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import CALL, DISCARD, MAX_HAND, NO_CARD, RAISE


@kernel
def ace_low_rank(card):
    """Rank from 0 for an ace to 12 for a king."""
    return ((card >> 2) + 1) % RANKS


@kernel
def low_cards(counts, low_limit):
    """Number of distinct ranks that a low may hold."""
    n = 0
    for k in range(RANKS):
        if counts[k] and (k + 1) % RANKS <= low_limit:
            n += 1
    return n


@kernel
def spread_of_groups(counts):
    """Return ``(largest group, second largest, highest rank of the largest)``; ``(1, 1, ...)`` without a pair."""
    first, second, rank = 0, 0, NO_RANK
    for k in range(RANKS):
        if counts[k] >= first:
            first, second, rank = counts[k], first, k
        elif counts[k] > second:
            second = counts[k]
    return first, second, rank


@kernel
def discard_unpaired(hand, counts):
    """Discard bits that keep pairs, trips and quads."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD and counts[hand[i] >> 2] < 2:
            bits |= 1 << i
    return bits


@kernel
def longest_suit(hand):
    """Return ``(cards of the most frequent suit, discard bits that keep them)``."""
    most, bits = 0, 0
    for suit in range(4):
        cards, others = 0, 0
        for k in range(MAX_HAND):
            if hand[k] < NO_CARD:
                if hand[k] & 3 == suit:
                    cards += 1
                else:
                    others |= 1 << k
        if cards > most:
            most, bits = cards, others
    return most, bits


@kernel
def discard_outside_run(hand, top, length):
    """Discard bits that keep one card of each of the ``length`` ranks up to ``top``; the ace is also below the deuce."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD:
            again = i > 0 and hand[i] >> 2 == hand[i - 1] >> 2
            if again or (top - (hand[i] >> 2)) % RANKS >= length:
                bits |= 1 << i
    return bits


@kernel
def lowest_rank(counts, k, low_limit):
    """Ace-low rank of the k-th lowest distinct rank; ``low_limit`` if a low cannot hold so many."""
    for rank in range(low_limit):
        if counts[(rank + RANKS - 1) % RANKS]:
            k -= 1
            if k == 0:
                return rank
    return low_limit


@kernel
def discard_not_low(hand, low_limit):
    """Discard bits that keep one card of each rank that a low may hold."""
    bits = 0
    for i in range(MAX_HAND):
        if hand[i] < NO_CARD:
            again = i > 0 and hand[i] >> 2 == hand[i - 1] >> 2
            if again or ace_low_rank(hand[i]) > low_limit:
                bits |= 1 << i
    return bits


@kernel
def within_limit(bits, hand, max_discard):
    """Remove the lowest cards from ``bits`` until at most ``max_discard`` are discarded."""
    count = count_discards(bits)
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
    """Scripted discard bits: keep a made hand, else four low cards, else a qualifying pair, else the low cards."""
    n, low_limit = layout["hand_size"], layout["low_limit"]
    qualifies = high_value(book, hand) >= layout["high_qualifier"]
    first, second, _ = spread_of_groups(counts)
    if low_value(book, hand) > 0 or (n == MAX_HAND and first == 1 and qualifies):
        return 0  # a low, or a straight or flush: no other high without a pair qualifies
    if first + second == MAX_HAND and second > 1:
        return 0  # a full house
    if first > 2 or second > 1:
        return discard_unpaired(hand, counts)
    lows = low_cards(counts, low_limit)
    if first > 1 and (lows < n - 2 or (qualifies and lows < n - 1)):
        return discard_unpaired(hand, counts)
    return discard_not_low(hand, low_limit)


@kernel
def scripted_actions(books, layouts, rows, masks, raises, draws, actions):
    """Write ``actions``: raise or call by ``raises``, draw or stand pat by ``draws``."""
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
