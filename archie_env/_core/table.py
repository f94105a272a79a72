"""One game at a time, for callers in Python: an array of length 1 is handed over faster than a record."""

from __future__ import annotations

from archie_env._core.encode import encode, write_mask
from archie_env._core.play import allowed, deal_hand, open_game, settle_through, step
from archie_env._jit import kernel

ILLEGAL = -1
ENDED = 2


@kernel
def open_table(games, seed, index):
    """Give the game its key; nothing is dealt yet."""
    open_game(games[0], seed, index)


@kernel
def deal_table(games, books, hand_number, dealer, deck, given):
    """Deal a hand.  ``dealer``: a seat, or -1 for the key's.  ``deck``: all cards, the first ``given`` of them fixed."""
    game, book = games[0], books[0]
    if dealer >= 0:
        game["first_dealer"] = dealer ^ (hand_number & 1)
    if given > 0:
        for i in range(book["deck_size"]):
            game["deck"][i] = deck[i]
    deal_hand(game, book, hand_number, given)


@kernel
def settle_table(games, books):
    """Fix the order of all cards to come, as they would come anyway."""
    game, book = games[0], books[0]
    if not book["per_seat"]:  # those out already are settled; per seat, all that can be needed were settled at the deal
        game["given"] = max(game["given"], game["next"][0])
    settle_through(game, book, book["deck_size"])


@kernel
def seat_to_act(games):
    """The seat to act, or ``ENDED``."""
    game = games[0]
    return ENDED if game["over"] else game["turn"] ^ game["dealer"]


@kernel
def play_table(games, books, action):
    """Play an action and return the seat to act next or ``ENDED``; ``ILLEGAL``, and nothing played, if it is not legal."""
    game, book = games[0], books[0]
    if not allowed(game, book, action):
        return ILLEGAL
    step(game, book, action)
    return seat_to_act(games)


@kernel
def look_seat(games, books, seat, row, pot_scale, owed_scale):
    """Write what one seat sees, ``(d,)``."""
    game = games[0]
    encode(game, books[0], seat ^ game["dealer"], row, pot_scale, owed_scale)


@kernel
def look_masks(games, books, masks):
    """Write what each seat may do, ``(2, a)``: zeros for a seat that is not to act.  Returns the seat to act or ``ENDED``."""
    game, book = games[0], books[0]
    seat = seat_to_act(games)
    for s in range(2):
        if s == seat:
            write_mask(game, book, masks[s])
        else:
            for a in range(book["actions"]):
                masks[s, a] = 0
    return seat


@kernel
def begin_table(games, books, hand_number, dealer, deck, given, row, masks, pot_scale, owed_scale):
    """`deal_table`, then write what the seat to act sees and may do; returns that seat."""
    deal_table(games, books, hand_number, dealer, deck, given)
    seat = look_masks(games, books, masks)
    look_seat(games, books, seat, row, pot_scale, owed_scale)
    return seat


@kernel
def step_table(games, books, action, row, masks, pot_scale, owed_scale):
    """`play_table`, then write what the seat to act sees and may do: one call for a whole environment step."""
    seat = play_table(games, books, action)
    if seat != ILLEGAL:
        look_masks(games, books, masks)
        if seat != ENDED:
            look_seat(games, books, seat, row, pot_scale, owed_scale)
    return seat


@kernel
def play_and_mask(games, books, action, masks):
    """`play_table`, then write what each seat may do."""
    seat = play_table(games, books, action)
    if seat != ILLEGAL:
        look_masks(games, books, masks)
    return seat
