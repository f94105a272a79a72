"""Games seen from the learner's chair: play, pay whom it concerns, deal on, and list who waits for which opponent.

A `LEARNER_STATS` record beside each `GAME` holds the learner's role and statistics.  Where ``role`` is BOTH, the learner plays
both positions of that game, and a hand pays the player whose action ended it.
"""

from __future__ import annotations

import numpy as np

from archie_env._core.encode import encode, write_every_action, write_mask
from archie_env._core.jit import kernel
from archie_env._core.play import allowed, deal_hand, step
from archie_env._core.rng import ONE
from archie_env._core.state import BIG_BLIND, CALL, COUNTS, DEALER, DISCARD
from archie_env._core.wide import lowest

ALTERNATE, ALWAYS_DEALER, ALWAYS_BIG_BLIND, BOTH = range(4)
"""Roles: seat player_0, whose position swaps from hand to hand; one position in every hand; every player of the game."""

LEARNER_STATS = np.dtype(
    [
        ("chips", "i8"),  # net chips the learner has won in all finished hands; 0 where it is both players
        ("squares", "i8"),  # sum over those hands of the squared net chips
        ("hands", "i8"),  # finished hands
        ("walks", "i8"),  # finished hands in which the learner had no decision
        ("decisions", "i4"),  # of the learner in the hand in progress
        ("length", "i4"),  # learner decisions in the hand that last paid
        ("reward", "i2"),  # net chips of the hand that ended in the last step, else 0
        ("slot", "i2"),  # which opponent sits here
        ("role", "i1"),
        ("done", "i1"),  # 1: a hand with a learner decision ended in the last step
    ],
    align=True,
)


@kernel
def learner_position(game, role):
    """The position the learner holds; where it is both players, the one to act."""
    if role == ALTERNATE:
        return game["dealer"]  # player_0 deals when this is 0, and position 0 deals
    if role == ALWAYS_DEALER:
        return DEALER
    if role == ALWAYS_BIG_BLIND:
        return BIG_BLIND
    return game["turn"]


@kernel
def clear_stats(stats):
    """Zero every statistic; slots and roles stay."""
    for i in range(len(stats)):
        entry = stats[i]
        entry["chips"] = entry["squares"] = entry["hands"] = entry["walks"] = 0
        entry["decisions"] = entry["length"] = entry["reward"] = entry["done"] = 0


@kernel
def clear_rewards(stats):
    """Nothing has ended yet in this step."""
    for i in range(len(stats)):
        stats[i]["reward"] = stats[i]["done"] = 0


@kernel
def play_seats(games, books, stats, index, actions, learner, keep_walks, final, final_hidden, pot_scale, owed_scale):
    """Play checked actions, ``actions[k]`` in game ``index[k]``; a finished hand is recorded and the next is dealt.

    A hand that ends before the learner has decided anything (a *walk*) counts in the statistics alone: there is no step to pay.
    With ``keep_walks`` it is left standing for the learner to see, whose next action, whatever it is, pays it.
    """
    book = books[0]
    for k in range(len(index)):
        game, entry = games[index[k]], stats[index[k]]
        me = learner_position(game, entry["role"])
        if learner:
            entry["decisions"] += 1
        if not game["over"]:  # else a walk left standing
            step(game, book, actions[k])
        if not game["over"] or (keep_walks and not entry["decisions"]):
            continue
        net = game["net"] if me == DEALER else -game["net"]
        entry["hands"] += 1
        if entry["role"] != BOTH:
            entry["chips"] += net
            entry["squares"] += np.int64(net) * np.int64(net)
        if entry["decisions"]:
            entry["reward"], entry["done"], entry["length"] = net, 1, entry["decisions"]
            encode(game, book, me, final.reshape(-1), index[k], pot_scale, owed_scale)
            if final_hidden.shape[1]:
                reveal(game, book, me, final_hidden[index[k]])
        else:
            entry["walks"] += 1
        entry["decisions"] = 0
        deal_hand(game, book, game["hand_number"] + 1, 0)


@kernel
def wait_for_opponents(games, books, stats, candidates, index, bounds, observations, masks):
    """Of ``candidates``, ascending games, list those in which an opponent is to act and what it sees; returns how many.

    Opponents hold ascending ranges of games, so slot s waits in ``index[bounds[s]:bounds[s + 1]]``.  ``index`` may be the
    array that ``candidates`` is a view of.
    """
    book, one = books[0], np.int8(1)
    rows, choices = observations.reshape(-1), masks.reshape(-1)
    n = slot = 0
    bounds[0] = 0
    for k in range(len(candidates)):
        i = candidates[k]
        game, entry = games[i], stats[i]
        if game["over"] or learner_position(game, entry["role"]) == game["turn"]:
            continue
        while slot < entry["slot"]:
            slot += 1
            bounds[slot] = n
        index[n] = i
        encode(game, book, game["turn"], rows, n, one, one)
        write_mask(game, book, choices, n)
        n += 1
    while slot + 1 < len(bounds):
        slot += 1
        bounds[slot] = n
    return n


@kernel
def look_at(games, books, stats, index, observations, masks, hidden, pot_scale, owed_scale):
    """Write what the learner sees and may do in the listed games: anything where a walk stands, as samplers need one action.

    ``hidden`` has no columns unless asked for.
    """
    book = books[0]
    rows, choices = observations.reshape(-1), masks.reshape(-1)
    for k in range(len(index)):
        i = index[k]
        game = games[i]
        me = learner_position(game, stats[i]["role"])
        encode(game, book, me, rows, i, pot_scale, owed_scale)
        write_mask(game, book, choices, i)
        if game["over"]:
            write_every_action(book, choices, i)
        if hidden.shape[1]:
            reveal(game, book, me, hidden[i])


@kernel
def first_illegal_choice(games, books, index, actions):
    """The first k whose action the learner may not take in game ``index[k]``, or -1; where a walk stands it may take any."""
    book = books[0]
    for k in range(len(index)):
        game = games[index[k]]
        if not game["over"] and not allowed(game, book, actions[k]):
            return k
    return -1


@kernel
def write_choices(games, books, masks):
    """Write what the players to act may do: anything where a walk stands."""
    book, choices = books[0], masks.reshape(-1)
    for i in range(len(games)):
        write_mask(games[i], book, choices, i)
        if games[i]["over"]:
            write_every_action(book, choices, i)


@kernel
def replace_illegal(games, books, actions):
    """Put check, call or standing pat in place of each action that is not legal; a walk that stands takes any."""
    book = books[0]
    for i in range(len(games)):
        game = games[i]
        if not game["over"] and not allowed(game, book, actions[i]):
            actions[i] = DISCARD if game["phase"] & 1 else CALL


@kernel
def reveal(game, book, me, row):
    """The cards the player across from ``me`` holds now, which no player may see: for a critic while training."""
    for card in range(len(row)):
        row[card] = 0
    other, r = 1 - me, game["phase"] >> 1
    if game["phase"] & 1 and game["thrown"][other] >> COUNTS * r:  # committed: what it threw is gone, the new cards not dealt
        r += 1
    cards = game["held"][other, r]
    while cards:
        row[book["deck"][lowest(cards)]] = 1
        cards &= cards - ONE


@kernel
def show_ends(books, done, finals, observations, masks):
    """Where a hand has ended, show that end in place of the next hand, with any action legal."""
    choices = masks.reshape(-1)
    for i in range(len(done)):
        if done[i]:
            row, final = observations[i], finals[i]
            for k in range(len(row)):
                row[k] = final[k]
            write_every_action(books[0], choices, i)
