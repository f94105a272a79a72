"""Who wins what: hand values from the tables, and the pot divided (R3, R4)."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inner, kernel
from archie_env._core.rng import ONE
from archie_env._core.state import BIG_BLIND, DEALER, MAX_HAND
from archie_env._core.tables import CHOOSE
from archie_env._core.wide import lowest


@kernel
def high_value(book, hand):
    """The high value of an ascending hand of five places, better higher."""
    n = 0
    for i in range(5):
        n += CHOOSE[i, hand[i] >> 2]
    mixed = ((hand[0] ^ hand[1]) | (hand[0] ^ hand[2]) | (hand[0] ^ hand[3]) | (hand[0] ^ hand[4])) & 3
    return book["high"][0 if mixed else 1, n]


@kernel
def low_value(book, hand):
    """The low value of an ascending hand of five places, better higher; 0 does not qualify."""
    n = 0
    for i in range(5):
        n += CHOOSE[i, hand[i] >> 2]
    return book["low"][n]


@inner
def share(part, mine, other, first):
    """Chips of ``part`` due to the hand valued ``mine``; of a tie's odd chip only when ``first`` after the dealer (R4.4)."""
    if mine > other:
        return part
    if mine < other:
        return 0
    return part // 2 + (part & 1 if first else 0)


@kernel
def award(book, paid, high, other_high, low, other_low, first):
    """Chips for one hand of two that paid ``paid`` each: of the high part, of the low part, of a pot divided equally.

    Both paid the same, so the pot is even, its halves are equal, and an odd chip can only fall inside a tied part (R4.4).
    """
    any_high = high >= book["high_qualifier"] or other_high >= book["high_qualifier"]
    any_low = low > 0 or other_low > 0
    if any_high and any_low:
        for_high = share(paid, high, other_high, first)
        if high == other_high:
            first = not first  # nobody gets more than one odd chip
        return for_high, share(paid, low, other_low, first), 0
    if any_low:
        return 0, share(2 * paid, low, other_low, first), 0
    if any_high or not book["equal_split"]:
        return share(2 * paid, high, other_high, first), 0, 0
    return 0, 0, paid


@inner
def set_values(book, cards):
    """The high and the low value of a set of cards, as `high_value` and `low_value` have them for its list."""
    n, suits = 0, np.int64(15)
    for i in range(MAX_HAND):
        card = book["deck"][lowest(cards)]
        cards &= cards - ONE
        n += CHOOSE[i, card >> 2]
        suits &= 1 << (card & 3)
    return np.int64(book["high"][1 if suits else 0, n]), np.int64(book["low"][n])


@inner
def showdown(game, book):
    """Net chips of the dealer when both hands are shown."""
    r = book["draws"]
    paid = np.int64(game["paid"][DEALER])  # one integer type, so that what follows is compiled once
    high, low = set_values(book, game["held"][DEALER, r])
    other_high, other_low = set_values(book, game["held"][BIG_BLIND, r])
    for_high, for_low, divided = award(book, paid, high, other_high, low, other_low, False)
    return for_high + for_low + divided - paid


@inner
def list_cards(book, cards, hand):
    """Write a set into ``hand`` as ascending ids of five places, ``NO_CARD`` behind them, as `high_value` takes it."""
    for i in range(MAX_HAND):
        hand[i] = book["deck"][lowest(cards)]
        cards &= cards - ONE
