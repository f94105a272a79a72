"""What a seat has seen, as one row of numbers; the layout comes from ``archie_env.observation`` through the book."""

from __future__ import annotations

from archie_env._core.play import menu
from archie_env._core.state import BIG_BLIND, CALL, DEALER, RAISE
from archie_env._jit import inner


@inner
def encode(game, book, me, row, pot_scale, owed_scale):
    """Write the information state of position ``me``: its own cards and everything public, nothing else."""
    for i in range(book["width"]):
        row[i] = 0
    n, phase = book["hand_size"], game["phase"]
    r = phase >> 1
    now, kept = r, n
    if phase & 1 and game["draws"][me, r]:  # committed: the cards thrown are gone, the new ones not seen yet
        now, kept = r + 1, n + 1 - game["draws"][me, r]
    at = book["held"]
    for i in range(now):
        for k in range(n):
            row[at + book["card_column"][game["hand"][me, i, k]]] = 1
        at += book["deck_size"]
    slot = book["slots"]
    for k in range(kept):
        card = game["hand"][me, now, k]
        row[at + book["card_column"][card]] = 1
        row[slot + book["rank_column"][card >> 2]] = 1
        row[slot + book["suit_column"][card & 3]] = 1
        slot += book["slot_width"]
    counts = book["max_discard"] + 1
    at = book["own_draws"] - 1
    for i in range(now):
        row[at + game["draws"][me, i]] = 1
        at += counts
    known = r  # draws whose counts are public: those dealt, and in sequential order the one just announced (R5.1)
    if phase & 1 and me == DEALER and book["sequential"] and game["draws"][BIG_BLIND, r]:
        known += 1
    at = book["other_draws"] - 1
    for i in range(known):
        row[at + game["draws"][1 - me, i]] = 1
        at += counts
    at = book["wagers_at"]
    for i in range(r + 1):
        for k in range(book["raise_cap"] + 2):
            action = game["bets"][i, k]
            row[at + 2 * k] = action == CALL
            row[at + 2 * k + 1] = action == RAISE
        at += book["wagers_width"]
    row[book["phase_at"] + (2 * book["draws"] + 1 if game["over"] else phase)] = 1
    row[book["dealer_at"]] = me == DEALER
    row[book["owed_at"]] = max(0, game["paid"][1 - me] - game["paid"][me]) * owed_scale
    row[book["pot_at"]] = (game["paid"][0] + game["paid"][1]) // book["pot_unit"] * pot_scale


@inner
def write_mask(game, book, row):
    """Write the legal actions of the player to act; all zeros when the hand is over."""
    legal = book["legal"][menu(game, book)]
    for a in range(book["actions"]):
        row[a] = legal[a]
