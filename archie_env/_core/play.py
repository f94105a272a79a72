"""The course of one hand: dealing, betting, drawing (R1, R2).  Nothing here checks an action; callers do."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inner
from archie_env._core.rng import GOLDEN, ONE, below, mix, stream_key
from archie_env._core.showdown import showdown
from archie_env._core.state import (
    BIG_BLIND,
    CLOSED,
    COUNTS,
    DEALER,
    DECK,
    DISCARD,
    DRAWING,
    FOLD,
    MAX_HAND,
    MAX_ROUNDS,
    RAISE,
)
from archie_env._core.wide import lowest

NONE = np.uint64(0)
"""No cards."""
_DEAL_STREAM = np.uint64(0xD1B54A32D192ED03)  # keeps the hands of a key apart from the keys of a seed


@inner
def settle(game, book, place):
    """Fix the card at ``place``, the first place not fixed yet: one Fisher-Yates swap, its bits a hash of the place.

    Returns:
        The card as a set.
    """
    at = np.uint64(place)
    card = game["deck"][at]
    if place >= game["given"]:
        bits = mix(game["stream"] + np.uint64(place + 1) * GOLDEN)
        j = np.uint64(place + below(bits, book["deck_size"] - place))
        drawn = game["deck"][j]
        game["deck"][j] = card
        game["deck"][at] = card = drawn
    return ONE << np.uint64(card)


@inner
def settle_through(game, book, places):
    """Fix the first ``places`` cards now, whoever will get them."""
    for place in range(game["given"], places):
        settle(game, book, place)
    game["given"] = max(game["given"], places)


@inner
def keep(cards, discards):
    """What is left of a set without the cards whose bits are set in ``discards``, bit 0 for the lowest."""
    kept = NONE
    for i in range(MAX_HAND):
        rest = cards & cards - ONE
        kept |= (cards ^ rest) & np.uint64(discards >> i & 1) - ONE  # no branch, which would be mispredicted every second time
        cards = rest
    return kept


@inner
def count_discards(discards):
    """How many cards a discard throws: the number of its bits."""
    count = 0
    for i in range(MAX_HAND):
        count += discards >> i & 1
    return count


@inner
def fill(game, book, position, r):
    """Deal the cards that replace those a position threw in draw r."""
    owner = position if book["per_seat"] else 0
    place = game["next"][owner]
    cards = game["held"][position, r + 1]
    for _ in range(lowest(np.uint64(game["thrown"][position] >> COUNTS * r))):
        cards |= settle(game, book, place)
        place += 1
    game["held"][position, r + 1] = cards
    game["next"][owner] = place


@inner
def deal(game, book):
    """Start a hand.  Set before: the stream, the dealer, and deck[:given] where the caller fixes cards."""
    if game["given"] == 0:
        for i in range(DECK):
            game["deck"][i] = i
    for position in range(2):
        game["thrown"][position] = game["shown"][position] = 0
        for r in range(1, MAX_ROUNDS):
            game["held"][position, r] = 0
    game["betting"] = 0
    n, reach = book["hand_size"], book["draws"] * book["max_discard"]
    if book["per_seat"]:
        settle_through(game, book, 2 * n + 2 * reach)
    mine = other = NONE
    for i in range(n):  # one at a time, the big blind first (R5.3)
        other |= settle(game, book, 2 * i)
        mine |= settle(game, book, 2 * i + 1)
    game["held"][DEALER, 0], game["held"][BIG_BLIND, 0] = mine, other
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
    game["held"][me, r + 1] = keep(game["held"][me, r], discards)
    game["thrown"][me] |= np.int64(1) << np.int64(COUNTS * r + count_discards(discards))
    if me == BIG_BLIND:
        game["turn"] = DEALER
        if book["sequential"]:
            game["shown"][me] = game["thrown"][me]
        return
    for position in (BIG_BLIND, DEALER):
        fill(game, book, position, r)
        game["shown"][position] = game["thrown"][position]
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
    me = np.uint64(game["turn"])
    owes = game["paid"][ONE - me] > game["paid"][me]
    capped = game["wagers"] >= book["raise_cap"]
    choice = int(owes) + 2 * int(capped)
    choice = DRAWING if game["phase"] & 1 else choice
    return CLOSED if game["over"] else choice


@inner
def allowed(game, book, action):
    """Whether the player to act may take this action."""
    return 0 <= action < book["actions"] and book["legal"][menu(game, book), action] != 0
