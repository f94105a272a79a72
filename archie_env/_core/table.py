"""One game at a time, for callers in Python: an array of length 1 is handed over faster than a record."""

from __future__ import annotations

from archie_env._core.encode import encode, write_mask
from archie_env._core.jit import inner, kernel
from archie_env._core.play import allowed, deal_hand, open_game, settle_through, step

ILLEGAL = -1
ENDED = 2


# What several kernels do is `inner`: an entrance from Python would be compiled for each of them, and taken for few.


@inner
def deal_one(game, book, hand_number, dealer, deck, given):
    """Deal a hand.  ``dealer``: a seat, or -1 for the key's.  ``deck``: all cards, the first ``given`` of them fixed."""
    if dealer >= 0:
        game["first_dealer"] = dealer ^ (hand_number & 1)
    if given > 0:
        for i in range(book["deck_size"]):
            game["deck"][i] = deck[i]
    deal_hand(game, book, hand_number, given)


@inner
def seat_to_act(game):
    """The seat to act, or ``ENDED``."""
    return ENDED if game["over"] else game["turn"] ^ game["dealer"]


@inner
def write_masks(game, book, masks):
    """Write what each seat may do, ``(2, a)``: zeros for a seat that is not to act.  Returns the seat to act or ``ENDED``."""
    seat, choices = seat_to_act(game), masks.reshape(-1)
    for s in range(2):
        if s == seat:
            write_mask(game, book, choices, s)
        else:
            for a in range(book["actions"]):
                masks[s, a] = 0
    return seat


@inner
def play_one(game, book, action):
    """Play an action; returns the seat to act next or ``ENDED``, or ``ILLEGAL``, and nothing played, if it is not legal."""
    if not allowed(game, book, action):
        return ILLEGAL
    step(game, book, action)
    return seat_to_act(game)


@kernel
def open_table(games, seed, index):
    """Give the game its key; nothing is dealt yet."""
    open_game(games[0], seed, index)


@kernel
def deal_table(games, books, hand_number, dealer, deck, given):
    """See `deal_one`."""
    deal_one(games[0], books[0], hand_number, dealer, deck, given)


@kernel
def settle_table(games, books):
    """Fix the order of all cards to come, as they would come anyway."""
    game, book = games[0], books[0]
    if not book["per_seat"]:  # those out already are settled; per seat, all that can be needed were settled at the deal
        game["given"] = max(game["given"], game["next"][0])
    settle_through(game, book, book["deck_size"])


@kernel
def play_table(games, books, action):
    """See `play_one`."""
    return play_one(games[0], books[0], action)


@kernel
def look_seat(games, books, seat, row, pot_scale, owed_scale):
    """Write what one seat sees, ``(d,)``."""
    game = games[0]
    encode(game, books[0], seat ^ game["dealer"], row, 0, pot_scale, owed_scale)


@kernel
def look_masks(games, books, masks):
    """See `write_masks`."""
    return write_masks(games[0], books[0], masks)


@kernel
def begin_table(games, books, hand_number, dealer, deck, given, row, mask, pot_scale, owed_scale):
    """Deal as `deal_one` does, then write what the seat to act sees and may do; returns that seat."""
    game, book = games[0], books[0]
    deal_one(game, book, hand_number, dealer, deck, given)
    encode(game, book, game["turn"], row, 0, pot_scale, owed_scale)
    write_mask(game, book, mask, 0)
    return seat_to_act(game)


@kernel
def step_table(games, books, action, row, mask, pot_scale, owed_scale):
    """Play as `play_one` does, then write what the seat to act sees and may do, or seat 0 where the hand has ended.

    One call for a whole environment step.
    """
    game, book = games[0], books[0]
    seat = play_one(game, book, action)
    if seat != ILLEGAL:
        encode(game, book, game["dealer"] if seat == ENDED else game["turn"], row, 0, pot_scale, owed_scale)
        write_mask(game, book, mask, 0)
    return seat


@kernel
def play_and_mask(games, books, action, masks):
    """Play as `play_one` does, then write what each seat may do."""
    seat = play_one(games[0], books[0], action)
    if seat != ILLEGAL:
        write_masks(games[0], books[0], masks)
    return seat
