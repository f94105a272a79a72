"""What a seat has seen: as words of bits, and from them as a row of numbers; the layout comes from ``archie_env.observation``.

Seven words hold everything, whichever the rules, each part where the largest game needs it:

======== ===================== =============================================================================
from bit  entries              what
======== ===================== =============================================================================
0        4 rounds x 52         own cards held
208      5 slots x 17          13 ranks and 4 suits of the hand the discard bits refer to
293      3 draws x 6           own cards thrown
311      3 draws x 6           the other's cards thrown, once public
329      48                    the first 48 betting entries
377      7                     phase
384      1, 1                  hand over; this seat deals
400      16                    betting entries of rules with more than four wagers a round
432      8 bits, 8 bits        chips owed; chips in the pot
======== ===================== =============================================================================

In a game of 52 cards, five of them in a hand, three draws and four wagers a round, the first 386 bits are the first 386 entries
of a row.  Other rules have shorter rows, copied in runs (``BOOK["run"]``).
"""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inlined, inner
from archie_env._core.play import menu
from archie_env._core.rng import ONE
from archie_env._core.state import DEALER, MAX_ACTIONS
from archie_env._core.wide import lowest, write_32, write_64

HELD, SLOTS, OWN_DRAWS, OTHER_DRAWS, BETTING, PHASE, OVER, DEALS, MORE_BETTING = 0, 208, 293, 311, 329, 377, 384, 385, 400
RANK_BITS, SLOT_BITS = 13, 17
BETTING_BITS = 48
OWED, POT = 432, 440
WORDS = 7
PLAIN_BITS = DEALS + 1
"""Bits of the words that are the entries of the row themselves where ``BOOK["runs"]`` is 0."""

_0, _1, _2, _3, _4, _5, _6, _9, _12, _16, _17, _18, _20, _24, _28, _34, _36, _37, _40, _48, _52, _55, _56, _57, _64 = (
    np.uint64(n) for n in (0, 1, 2, 3, 4, 5, 6, 9, 12, 16, 17, 18, 20, 24, 28, 34, 36, 37, 40, 48, 52, 55, 56, 57, 64)
)
_14, _32, _51, _63 = (np.uint64(n) for n in (14, 32, 51, 63))
_FIRST_BETS = np.uint64(2**BETTING_BITS - 1)


@inner
def word_of(words, index):
    """Word ``index`` of seven; a tuple indexed by a variable."""
    w0, w1, w2, w3, w4, w5, w6 = words
    if index < 3:
        return w0 if index == 0 else w1 if index == 1 else w2
    if index < 5:
        return w3 if index == 3 else w4
    return w5 if index == 5 else w6


@inlined
def write_runs(book, words, rows, start):
    """Write the bits of the words where the rules have them in a row that begins at ``start``, 64 entries at a time."""
    word, index, gathered, before, entries = words[0], 0, _0, _0, _0
    for k in range(book["runs"]):
        run = book["run"][np.uint64(k)]
        if run["word"] != index:
            index = run["word"]
            word = word_of(words, index)
        bits = word << np.uint64(run["left"]) >> np.uint64(run["right"])
        gathered |= bits << np.uint64(run["at"])
        if run["fills"]:
            write_64(rows, start + entries, gathered)
            before, gathered = gathered, _0
            entries += _64
    rest = np.uint64(book["width"] - 2) - entries
    if entries and rest:  # nothing may be written beyond the row: the last 64 entries, some of them for the second time
        write_64(rows, start + entries + rest - _64, before >> rest | gathered << _64 - rest)
    elif rest:
        for i in range(rest):
            rows[start + np.uint64(i)] = np.int8(gathered & ONE)
            gathered >>= ONE


@inlined
def encode(game, book, me, rows, i, pot_scale, owed_scale):
    """Write the information state of position ``me`` as row i: its own cards and everything public, nothing else.

    ``rows``: all rows one behind the other, as a view of each would be counted in and out: int8 or float32 of ``BOOK["width"]``
    entries each, or uint64 of seven.
    """
    mine, other = np.uint64(me), np.uint64(1 - me)
    phase, thrown, shown = np.uint64(game["phase"]), np.uint64(game["thrown"][mine]), np.uint64(game["shown"][other])
    over = ONE if game["over"] else _0
    held = game["held"][mine]
    first, second, third, fourth = held[_0], held[_1], held[_2], held[_3]
    now = phase >> ONE
    now += phase & np.uint64(thrown >> _6 * now != 0)  # committed: the cards thrown are gone, the new ones not seen yet
    cards, slot = held[now], book["slot"]
    slot_0 = slot[lowest(cards)]
    cards &= cards - ONE
    slot_1 = slot[lowest(cards)]
    cards &= cards - ONE
    slot_2 = slot[lowest(cards)]
    cards &= cards - ONE
    slot_3 = slot[lowest(cards)]
    cards &= cards - ONE
    slot_4 = slot[lowest(cards)]
    betting, paid, theirs = game["betting"], np.int64(game["paid"][mine]), np.int64(game["paid"][other])
    owed = np.uint64(max(paid, theirs) - paid + book["owed_unit"] - 1) * book["owed_inverse"] >> _32  # whoever owes sees that
    pot = np.uint64(paid + theirs) * book["pot_inverse"] >> _32
    w0 = first | second << _52
    w1 = second >> _12 | third << _40
    w2 = third >> _24 | fourth << _28
    w3 = fourth >> _36 | slot_0 << _16 | slot_1 << np.uint64(33) | slot_2 << np.uint64(50)
    w4 = slot_2 >> _14 | slot_3 << _3 | slot_4 << _20 | thrown << _37 | shown << _55
    w5 = shown >> _9 | (betting & _FIRST_BETS) << _9 | (ONE - over) << _57 + phase
    w6 = over | np.uint64(me == DEALER) << ONE | betting >> _48 << _16
    if rows.itemsize == 8:  # packed
        at = np.uint64(i) * np.uint64(WORDS)
        rows[at], rows[at + ONE], rows[at + _2], rows[at + _3], rows[at + _4], rows[at + _5] = w0, w1, w2, w3, w4, w5
        rows[at + _6] = w6 | owed << _48 | pot << _56
        return
    width = np.uint64(book["width"])
    start = np.uint64(i) * width
    end = start + width
    if book["runs"]:
        write_runs(book, (w0, w1, w2, w3, w4, w5, w6), rows, start)
    else:
        write_64(rows, start, w0)
        write_64(rows, start + np.uint64(64), w1)
        write_64(rows, start + np.uint64(128), w2)
        write_64(rows, start + np.uint64(192), w3)
        write_64(rows, start + np.uint64(256), w4)
        write_64(rows, start + np.uint64(320), w5)
        rows[start + np.uint64(OVER)], rows[start + np.uint64(DEALS)] = np.int8(over), me == DEALER
    rows[end - _2] = np.int64(owed) * owed_scale
    rows[end - ONE] = np.int64(pot) * pot_scale


@inlined
def write_actions(book, bits, masks, i):
    """Write the actions whose bits are set as mask i: an int8 for each action, or one word."""
    actions = np.uint64(book["actions"])
    at = np.uint64(i) * actions
    if masks.itemsize == 8:  # packed
        masks[np.uint64(i)] = bits
    elif actions == MAX_ACTIONS:
        masks[at] = np.int8(bits & ONE)
        masks[at + ONE] = np.int8(bits >> ONE & ONE)
        masks[at + _2] = np.int8(bits >> _2 & ONE)
        write_32(masks, at + _3, bits >> _3)
    else:
        for a in range(book["actions"]):
            masks[at + np.uint64(a)] = np.int8(bits & ONE)
            bits >>= ONE


@inlined
def write_menu(book, choice, masks, i):
    """Write the legal actions of a menu, a row of ``BOOK["legal"]``, as mask i."""
    write_actions(book, book["legal_bits"][np.uint64(choice)], masks, i)


@inlined
def write_every_action(book, masks, i):
    """Write a mask of all ones, where no action is played."""
    write_actions(book, (ONE << np.uint64(book["actions"])) - ONE, masks, i)


@inlined
def write_mask(game, book, masks, i):
    """Write the legal actions of the player to act as mask i; all zeros when the hand is over."""
    write_menu(book, menu(game, book), masks, i)
