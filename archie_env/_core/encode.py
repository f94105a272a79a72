"""What a seat has seen, as one row of numbers; the layout comes from ``archie_env.observation`` through the book.

Cards and draw counts are looked up as indices into the row, with an entry that is written last standing for "none", so that
nothing branches on what is there.  Indices are unsigned: signed ones would be checked for wrapping around at every store.
"""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inlined, inner
from archie_env._core.play import menu
from archie_env._core.state import DEALER

EXPANDED = np.array([[byte >> i & 1 for i in range(8)] for byte in range(256)], np.int8)
"""``(256, 8)``: the bits of a byte as entries.  A constant of the machine code, so that eight of them are one move."""
_0, _1, _8, _BYTE = (np.uint64(n) for n in (0, 1, 8, 255))


@inlined
def write_bits(row, at, bits, n):
    """Write ``n`` bits as entries from ``at`` on."""
    for _ in range(n >> 3):
        byte = bits & _BYTE
        for i in range(8):
            row[at + np.uint64(i)] = EXPANDED[byte, np.uint64(i)]
        bits >>= _8
        at += _8
    for i in range(n & 7):
        row[at + np.uint64(i)] = EXPANDED[bits, np.uint64(i)]


@inner
def encode(game, book, me, row, pot_scale, owed_scale):
    """Write the information state of position ``me``: its own cards and everything public, nothing else."""
    for i in range(book["width"]):
        row[i] = 0
    mine, other = np.uint64(me), np.uint64(1 - me)
    phase, size, draws = game["phase"], book["hand_size"], book["draws"]
    now = np.uint64(phase >> 1)
    if phase & 1 and game["draws"][mine, now]:  # committed: the cards thrown are gone, the new ones not seen yet
        now += _1
    for r in range(draws + 1):
        for k in range(size):
            card = np.uint64(game["hand"][mine, np.uint64(r), np.uint64(k)])
            row[book["held_at"][np.uint64(r), card]] = 1
    for k in range(size):
        card = np.uint64(game["hand"][mine, now, np.uint64(k)])
        row[book["slot_at"][np.uint64(k), card, _0]] = 1
        row[book["slot_at"][np.uint64(k), card, _1]] = 1
    for i in range(draws):
        d = np.uint64(i)
        row[book["drawn_at"][_0, d, np.uint64(game["draws"][mine, d])]] = 1
        row[book["drawn_at"][_1, d, np.uint64(game["shown"][other, d])]] = 1
    write_bits(row, np.uint64(book["wagers_at"]), game["betting"], (draws + 1) * book["wagers_width"])
    at = np.uint64(book["phase_at"])
    row[at + np.uint64(2 * draws + 1 if game["over"] else phase)] = 1
    at = np.uint64(book["dealer_at"])
    row[at] = me == DEALER
    paid, theirs = np.int64(game["paid"][mine]), np.int64(game["paid"][other])
    row[at + _1] = -((paid - max(paid, theirs)) // book["owed_unit"]) * owed_scale  # rounded up: whoever owes sees that
    row[at + _1 + _1] = (paid + theirs) // book["pot_unit"] * pot_scale


@inner
def write_mask(game, book, row):
    """Write the legal actions of the player to act; all zeros when the hand is over."""
    write_bits(row, _0, book["legal_bits"][np.uint64(menu(game, book))], book["actions"])
