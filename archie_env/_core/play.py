"""The course of one hand: dealing, betting, drawing (R1, R2).  Nothing here checks an action; callers do."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inner
from archie_env._core.rng import GOLDEN, ONE, below, mix, stream_key
from archie_env._core.showdown import showdown
from archie_env._core.state import BIG_BLIND, CLOSED, DEALER, DISCARD, DRAWING, FOLD, NO_CARD, RAISE

_DEAL_STREAM = np.uint64(0xD1B54A32D192ED03)  # keeps the hands of a key apart from the keys of a seed


@inner
def settle(game, book, place):
    """Fix the card at ``place``, the first place not fixed yet: one Fisher-Yates swap, its bits a hash of the place."""
    if place >= game["given"]:
        bits = mix(game["stream"] + np.uint64(place + 1) * GOLDEN)
        j = place + below(bits, book["deck_size"] - place)
        card = game["deck"][j]
        game["deck"][j] = game["deck"][place]
        game["deck"][place] = card


@inner
def settle_through(game, book, places):
    """Fix the first ``places`` cards now, whoever will get them."""
    for place in range(game["given"], places):
        settle(game, book, place)
    game["given"] = max(game["given"], places)


@inner
def sort_hand(hand):
    """Sort five places with a network of nine exchanges; empty places go last."""
    a, b, c, d, e = hand[0], hand[1], hand[2], hand[3], hand[4]
    a, d = min(a, d), max(a, d)
    b, e = min(b, e), max(b, e)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    a, b = min(a, b), max(a, b)
    c, e = min(c, e), max(c, e)
    b, c = min(b, c), max(b, c)
    d, e = min(d, e), max(d, e)
    c, d = min(c, d), max(c, d)
    hand[0], hand[1], hand[2], hand[3], hand[4] = a, b, c, d, e


@inner
def fill(game, book, position, hand, kept):
    """Deal from the deck into ``hand[kept:]`` and sort it."""
    n = book["hand_size"]
    if kept == n:
        return
    owner = position if book["per_seat"] else 0
    place = game["next"][owner]
    for i in range(kept, n):
        settle(game, book, place)
        hand[i] = game["deck"][place]
        place += 1
    game["next"][owner] = place
    sort_hand(hand)


@inner
def deal(game, book):
    """Start a hand.  Set before: the stream, the dealer, and deck[:given] where the caller fixes cards."""
    if game["given"] == 0:
        for i in range(book["deck_size"]):
            game["deck"][i] = book["deck"][i]
    for i in range(3):
        game["draws"][0, i] = game["draws"][1, i] = 0
        game["shown"][0, i] = game["shown"][1, i] = 0
    for position in range(2):
        for r in range(1, 4):
            for i in range(5):
                game["hand"][position, r, i] = NO_CARD
    game["betting"] = 0
    n, reach = book["hand_size"], book["draws"] * book["max_discard"]
    if book["per_seat"]:
        settle_through(game, book, 2 * n + 2 * reach)
    for i in range(5):  # one at a time, the big blind first (R5.3)
        for position in (BIG_BLIND, DEALER):
            if i < n:
                place = 2 * i + (1 - position)
                settle(game, book, place)
                game["hand"][position, 0, i] = game["deck"][place]
            else:
                game["hand"][position, 0, i] = NO_CARD
    for position in (DEALER, BIG_BLIND):
        sort_hand(game["hand"][position, 0])
    game["next"][0] = 2 * n + (reach if book["per_seat"] else 0)  # the big blind's block comes first
    game["next"][1] = 2 * n
    game["paid"][DEALER] = book["blinds"][DEALER]
    game["paid"][BIG_BLIND] = book["blinds"][BIG_BLIND]
    game["turn"] = DEALER
    game["wagers"] = 1
    game["phase"] = game["moves"] = game["over"] = game["folded"] = game["net"] = 0


@inner
def deal_hand(game, book, hand_number, given):
    """Deal hand ``hand_number`` of this game's key: its cards depend on nothing played before, or on ``deck[:given]``."""
    game["hand_number"] = hand_number
    game["stream"] = mix(game["key"] ^ (np.uint64(hand_number + 1) * _DEAL_STREAM))
    game["dealer"] = game["first_dealer"] ^ (hand_number & 1)
    game["given"] = given
    deal(game, book)


@inner
def open_game(game, seed, index):
    """Give a game its key, a hash of (seed, index); the key also picks who deals first."""
    game["key"] = stream_key(seed, index)
    game["first_dealer"] = np.int64(mix(game["key"]) & ONE)


@inner
def finish(game, net):
    game["over"] = 1
    game["net"] = net


@inner
def bet(game, book, action):
    """Fold, check, call, bet or raise; ends the round or the hand where that is due (R2.4 to R2.6)."""
    me = game["turn"]
    other = 1 - me
    if action == FOLD:
        game["folded"] = me + 1
        finish(game, game["paid"][BIG_BLIND] if me == BIG_BLIND else -game["paid"][DEALER])
        return
    r = game["phase"] >> 1
    first = game["moves"] == 0
    game["betting"] |= np.uint64(action) << np.uint64(r * book["wagers_width"] + 2 * game["moves"])
    game["moves"] += 1
    game["paid"][me] = game["paid"][other] if game["paid"][other] > game["paid"][me] else game["paid"][me]
    if action == RAISE:
        game["paid"][me] += book["bet"][r]
        game["wagers"] += 1
        game["turn"] = other
    elif first:
        game["turn"] = other
    elif r == book["draws"]:
        finish(game, showdown(game, book))
    else:
        game["phase"] += 1
        game["turn"] = BIG_BLIND


@inner
def draw(game, book, discards):
    """Commit a discard; once both have, deal the replacements, the big blind's first, and open the next round (R2.3)."""
    me, r = game["turn"], game["phase"] >> 1
    n, kept = book["hand_size"], 0
    for i in range(n):
        if not discards >> i & 1:
            game["hand"][me, r + 1, kept] = game["hand"][me, r, i]
            kept += 1
    game["draws"][me, r] = n - kept + 1
    if me == BIG_BLIND:
        game["turn"] = DEALER
        if book["sequential"]:
            game["shown"][me, r] = game["draws"][me, r]
        return
    for position in (BIG_BLIND, DEALER):
        fill(game, book, position, game["hand"][position, r + 1], n + 1 - game["draws"][position, r])
        game["shown"][position, r] = game["draws"][position, r]
    game["phase"] += 1
    game["turn"] = BIG_BLIND
    game["moves"] = game["wagers"] = 0


@inner
def step(game, book, action):
    """Play one legal action."""
    if game["phase"] & 1:
        draw(game, book, action - DISCARD)
    else:
        bet(game, book, action)


@inner
def menu(game, book):
    """What the player to act faces: a row of ``book["legal"]``."""
    if game["over"]:
        return CLOSED
    if game["phase"] & 1:
        return DRAWING
    me = game["turn"]
    owes = game["paid"][1 - me] > game["paid"][me]
    capped = game["wagers"] >= book["raise_cap"]
    return int(owes) + 2 * int(capped)


@inner
def allowed(game, book, action):
    """Whether the player to act may take this action."""
    return 0 <= action < book["actions"] and book["legal"][menu(game, book), action] != 0
