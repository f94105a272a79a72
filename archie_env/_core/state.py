"""The two records every kernel works on: ``GAME``, one hand in progress, and ``BOOK``, the rules it is played by.

A game is one element of ``np.zeros(n, GAME)``; kernels index its fields by name, which works compiled and interpreted.
Within both, a card is its index in the deck in play, counted in ascending order from 0, and a set of cards is a word with a
bit for each.  ``BOOK["deck"]`` leads back to the ids of `archie_env.cards`; in a deck of 52 the two are the same.
Positions: 0 = dealer (small blind), 1 = big blind.  ``phase`` counts bet, draw, bet, draw, ... from 0, so ``phase & 1`` is
"drawing" and ``phase >> 1`` is the betting round (or the draw that follows it).
"""

from __future__ import annotations

import numpy as np

DEALER, BIG_BLIND = 0, 1
FOLD, CALL, RAISE, DISCARD = 0, 1, 2, 3
"""Actions: ``CALL`` is also check, ``RAISE`` also bet; ``DISCARD + m`` throws the cards whose bits are set in ``m``."""

MAX_HAND, MAX_DRAWS, MAX_CAP = 5, 3, 6
MAX_ROUNDS = MAX_DRAWS + 1
MAX_ACTIONS = DISCARD + 2**MAX_HAND
DECK = 52
COUNTS = MAX_HAND + 1
"""Different numbers of cards that a player can throw."""
NO_CARD = 52
"""Fills the places of a listed hand that hold no card: it sorts behind every card and adds nothing to a hand's number."""

# What a player can face; a row of ``BOOK["legal"]``.  The first four are OWES + 2 * (no wager left under the cap).
OPEN, FACING, OPEN_CAPPED, FACING_CAPPED, DRAWING, CLOSED = range(6)
MENUS = 6

GAME = np.dtype(
    [
        # Two bits for each betting action so far, check/call and bet/raise, as in a row: 4 rounds of MAX_CAP + 2 just fit
        ("betting", "u8"),
        (
            "held",
            "u8",
            (2, MAX_ROUNDS),
        ),  # [position, round]: the set of cards held in that betting round; empty in later ones
        ("thrown", "u4", (2,)),  # by position: bit COUNTS * d + k says that k cards were thrown in draw d
        ("shown", "u4", (2,)),  # the same, once the other player knows it
        ("hand_number", "i4"),  # hands dealt before this one
        ("paid", "i2", (2,)),  # chips in the pot, by position
        ("net", "i2"),  # chips position 0 has won (lost, if negative) once over
        ("next", "i2", (2,)),  # index in the deck of the next card; per seat only if BOOK["per_seat"]
        ("given", "i2"),  # deck[:given] is fixed by the caller or settled already
        ("turn", "i1"),  # position to act
        ("phase", "i1"),  # 0 .. 2 * draws
        ("moves", "i1"),  # betting actions so far in this round
        ("wagers", "i1"),  # bets and raises so far in this round, the big blind being one (R1.3)
        ("over", "i1"),  # folded or shown down
        ("folded", "i1"),  # position that folded + 1, or 0
        ("dealer", "i1"),  # seat in position 0
        ("first_dealer", "i1"),  # seat that dealt hand 0; positions swap from hand to hand (R1.5)
        ("key", "u8"),  # the stream of hands this game belongs to: a hash of (seed, game index)
        ("stream", "u8"),  # the cards of this hand: a hash of (key, hand number)
        ("deck", "i1", (DECK,)),  # deck[:next] are out, in the order dealt
    ],
    align=True,
)

MAX_RUNS = 64
RUN = np.dtype(
    [
        ("word", "i1"),  # where its bits are
        ("left", "i1"),  # shifts to the left and back to the right that leave these bits alone
        ("right", "i1"),
        ("at", "i1"),  # its place among the 64 entries of the row that are written together
        ("fills", "i1"),  # 1: it is the last of 64 entries
    ]
)
MULTISETS = 6188  # C(17, 5): multisets of five of 13 ranks

BOOK = np.dtype(
    [
        ("blinds", "i2", (2,)),  # chips posted, by position
        ("bet", "i2", (MAX_ROUNDS,)),  # chips of a bet or raise, by round
        ("raise_cap", "i2"),  # most wagers a round
        ("draws", "i2"),
        ("hand_size", "i2"),
        ("max_discard", "i2"),
        ("sequential", "i2"),  # 1: the second to draw knows the first one's count (R5.1)
        ("equal_split", "i2"),  # 1: nobody qualifies -> each takes half
        ("per_seat", "i2"),  # 1: each position owns its replacement cards from the start
        ("high_qualifier", "i2"),  # lowest qualifying high value
        ("deck_size", "i2"),
        ("deck", "i1", (65,)),  # [card] -> id, and NO_CARD behind: entry 64 is where the lowest bit of an empty set leads
        ("high", "i2", (2, MULTISETS)),  # [suited, number of the rank multiset] -> high value, better higher
        ("low", "i2", (MULTISETS,)),  # -> low value, better higher, 0 does not qualify
        ("legal", "i1", (MENUS, MAX_ACTIONS)),  # [menu, action] -> 1 if legal
        ("legal_bits", "u8", (MENUS,)),  # bit a: action a is legal
        ("legal_count", "i2", (MENUS,)),
        ("legal_list", "i1", (MENUS, MAX_ACTIONS)),  # the legal actions of a menu, ascending, then 0
        ("width", "i2"),  # entries of a row
        ("actions", "i2"),
        ("slot", "u8", (65,)),  # [card] -> its bits in a slot of the words (see encode); 0 behind the deck
        ("runs", "i2"),  # runs of bits that lie side by side in the words and in a row; 0 if all of them do
        ("run", RUN, (MAX_RUNS,)),
        ("wagers_width", "i2"),  # entries of one betting round
        ("pot_unit", "i2"),  # chips that one step of the pot's entry stands for
        ("owed_unit", "i2"),  # the same for the chips owed
        ("pot_inverse", "u8"),  # 2**32 / pot_unit, rounded up: x // unit is x * inverse >> 32 for x and unit of 16 bits
        ("owed_inverse", "u8"),
    ],
    align=True,
)
