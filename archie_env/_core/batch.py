"""Loops over many games: the whole of a step without returning to Python."""

from __future__ import annotations

import numpy as np

from archie_env._core.encode import encode, write_mask, write_menu
from archie_env._core.jit import kernel
from archie_env._core.play import allowed, deal_hand, menu, open_game, step
from archie_env._core.rng import GOLDEN, ONE, below, mix
from archie_env._core.state import MAX_ACTIONS


@kernel
def open_games(games, books, seed, first):
    """Open game i as game ``first + i`` of the seed."""
    book = books[0]
    for i in range(len(games)):
        open_game(games[i], seed, first + i)
        deal_hand(games[i], book, 0, 0)


@kernel
def deal_numbered(games, books, hand_numbers):
    """Deal hand ``hand_numbers[i]`` of game i, which has its key."""
    book = books[0]
    for i in range(len(games)):
        deal_hand(games[i], book, hand_numbers[i], 0)


@kernel
def look(games, books, to_act, menus, observations, masks, pot_scale, owed_scale):
    """Write what each player to act sees and may do."""
    book = books[0]
    rows, choices = observations.reshape(-1), masks.reshape(-1)
    for i in range(len(games)):
        game = games[i]
        to_act[i] = game["turn"] ^ game["dealer"]
        menus[i] = choice = menu(game, book)
        encode(game, book, game["turn"], rows, i, pot_scale, owed_scale)
        write_menu(book, choice, choices, i)


@kernel
def look_from(games, books, seat, observations, pot_scale, owed_scale):
    """Write what one seat sees in every game."""
    book, rows = books[0], observations.reshape(-1)
    for i in range(len(games)):
        game = games[i]
        encode(game, book, seat ^ game["dealer"], rows, i, pot_scale, owed_scale)


@kernel
def first_illegal(books, menus, actions):
    """The first game whose action is not on its menu, or -1; checked before anything is played."""
    book = books[0]
    for i in range(len(actions)):
        a = np.uint64(actions[i])  # a negative one is beyond all others
        if a >= MAX_ACTIONS or not book["legal_bits"][np.uint64(menus[i])] >> a & ONE:
            return i
    return -1


@kernel
def step_games(games, books, actions, rewards, done, to_act, menus, observations, masks, pot_scale, owed_scale):
    """Play one checked action in every game; a finished hand pays by seat and the next one is dealt."""
    book = books[0]
    rows, choices = observations.reshape(-1), masks.reshape(-1)
    for i in range(len(games)):
        game = games[i]
        step(game, book, actions[i])
        rewards[i, game["dealer"]] = game["net"]
        rewards[i, 1 - game["dealer"]] = -game["net"]
        done[i] = game["over"]
        if game["over"]:
            deal_hand(game, book, game["hand_number"] + 1, 0)
        to_act[i] = game["turn"] ^ game["dealer"]
        menus[i] = choice = menu(game, book)
        encode(game, book, game["turn"], rows, i, pot_scale, owed_scale)
        write_menu(book, choice, choices, i)


@kernel
def random_legal(books, menus, streams, actions):
    """A uniformly random legal action for every game, each game from its own stream."""
    book = books[0]
    for i in range(len(menus)):
        streams[i] += GOLDEN
        m = np.uint64(menus[i])
        actions[i] = book["legal_list"][m, below(mix(streams[i]), book["legal_count"][m])]


@kernel
def deal_hands(games, books, seed, indices, dealers):
    """Deal the first hand of game ``indices[i]`` of the seed, with the given seat as dealer."""
    book = books[0]
    for i in range(len(games)):
        open_game(games[i], seed, indices[i])
        games[i]["first_dealer"] = dealers[i]
        deal_hand(games[i], book, 0, 0)


@kernel
def list_waiting(games, seat, index):
    """List the games that wait for ``seat``; returns how many."""
    n = 0
    for i in range(len(games)):
        if not games[i]["over"] and (games[i]["turn"] ^ games[i]["dealer"]) == seat:
            index[n] = i
            n += 1
    return n


@kernel
def look_at(games, books, index, observations, masks, pot_scale, owed_scale):
    """Write what the players to act see and may do, row k for game ``index[k]``."""
    book = books[0]
    rows, choices = observations.reshape(-1), masks.reshape(-1)
    for k in range(len(index)):
        game = games[index[k]]
        encode(game, book, game["turn"], rows, k, pot_scale, owed_scale)
        write_mask(game, book, choices, k)


@kernel
def first_illegal_at(games, books, index, actions):
    """The first k whose action is not legal in game ``index[k]``, or -1."""
    book = books[0]
    for k in range(len(index)):
        if not allowed(games[index[k]], book, actions[k]):
            return k
    return -1


@kernel
def play_at(games, books, index, actions):
    """Play checked actions, ``actions[k]`` in game ``index[k]``; finished hands stay as they are."""
    book = books[0]
    for k in range(len(index)):
        step(games[index[k]], book, actions[k])


@kernel
def ascending(places, n):
    """Whether these are places among ``n``, ascending and each at most once."""
    before = -1
    for place in places:
        if not before < place < n:
            return False
        before = place
    return True
