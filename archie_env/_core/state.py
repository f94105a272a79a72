"""The two records every kernel works on: ``GAME``, one hand in progress, and ``BOOK``, the rules it is played by.

A game is one element of ``np.zeros(n, GAME)``; kernels index its fields by name, which works compiled and interpreted.
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
NO_CARD = 52
"""Fills the places of a hand that hold no card: it sorts behind every card and adds nothing to a hand's number."""

# What a player can face; a row of ``BOOK["legal"]``.  The first four are OWES + 2 * (no wager left under the cap).
OPEN, FACING, OPEN_CAPPED, FACING_CAPPED, DRAWING, CLOSED = range(6)
MENUS = 6

GAME = np.dtype(
    [
        ("key", "u8"),  # the stream of hands this game belongs to: a hash of (seed, game index)
        ("stream", "u8"),  # the cards of this hand: a hash of (key, hand number)
        ("hand_number", "i4"),  # hands dealt before this one
        # Two bits for each betting action so far, check/call and bet/raise, as in a row: 4 rounds of MAX_CAP + 2 just fit
        ("betting", "u8"),
        ("net", "i2"),  # chips position 0 has won (lost, if negative) once over
        ("paid", "i2", (2,)),  # chips in the pot, by position
        ("next", "i2", (2,)),  # place in the deck of the next card; per seat only if BOOK["per_seat"]
        ("given", "i2"),  # deck[:given] is fixed by the caller or settled already
        ("first_dealer", "i1"),  # seat that dealt hand 0; positions swap from hand to hand (R1.5)
        ("dealer", "i1"),  # seat in position 0
        ("turn", "i1"),  # position to act
        ("phase", "i1"),  # 0 .. 2 * draws
        ("moves", "i1"),  # betting actions so far in this round
        ("wagers", "i1"),  # bets and raises so far in this round, the big blind being one (R1.3)
        ("over", "i1"),  # folded or shown down
        ("folded", "i1"),  # position that folded + 1, or 0
        ("draws", "i1", (2, MAX_DRAWS)),  # [position, draw]: cards thrown + 1, 0 = not committed yet
        ("shown", "i1", (2, MAX_DRAWS)),  # the same, once the other player knows it
        # [position, round, i]: ascending cards held in that betting round, NO_CARD behind them and in rounds to come
        ("hand", "i1", (2, MAX_ROUNDS, MAX_HAND)),
        ("deck", "i1", (52,)),  # deck[:next] are out, in the order dealt
    ],
    align=True,
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
        ("deck", "i1", (52,)),  # the cards in play, ascending
        ("high", "i2", (2, MULTISETS)),  # [suited, number of the rank multiset] -> high value, better higher
        ("low", "i2", (MULTISETS,)),  # -> low value, better higher, 0 does not qualify
        ("legal", "i1", (MENUS, MAX_ACTIONS)),  # [menu, action] -> 1 if legal
        ("legal_bits", "u8", (MENUS,)),  # bit a: action a is legal
        ("legal_count", "i2", (MENUS,)),
        ("legal_list", "i1", (MENUS, MAX_ACTIONS)),  # the legal actions of a menu, ascending, then 0
        # Where the information state keeps what (see archie_env.observation); the pot's index stands for "nowhere"
        ("width", "i2"),
        ("actions", "i2"),
        ("held_at", "u2", (MAX_ROUNDS, 53)),  # [round, card] -> index
        ("slot_at", "u2", (MAX_HAND, 53, 2)),  # [slot, card] -> indices of its rank and its suit
        ("drawn_at", "u2", (2, MAX_DRAWS, MAX_HAND + 2)),  # [own or other's, draw, cards thrown + 1] -> index
        ("wagers_at", "u2"),
        ("wagers_width", "i2"),  # entries of one betting round
        ("phase_at", "u2"),
        ("dealer_at", "u2"),  # the chips owed and the pot follow
        ("pot_unit", "i2"),  # chips that one step of the pot's entry stands for
        ("owed_unit", "i2"),  # the same for the chips owed
    ],
    align=True,
)
