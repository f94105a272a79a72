"""One hand, checked and readable: legal actions, `Game.apply`, the view of a seat, and the result with its reasons.

Seats are 0 (``player_0``) and 1 (``player_1``).  `Game` adds no rule: every answer comes from the engine's record.

>>> game = Game(seed=7, dealer=0)
>>> game.apply(RAISE); game.apply(FOLD)
>>> game.result.net
(2, -2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import table
from archie_env._core.showdown import award
from archie_env._core.state import DECK, DISCARD, FOLD, GAME, RAISE
from archie_env.actions import describe_legal, discards, format_action
from archie_env.cards import check_cards, format_cards
from archie_env.errors import IllegalActionError, OrderError
from archie_env.events import SEATS, Award, Event, Half, Reason, Result, View
from archie_env.hands import HandValues
from archie_env.observation import width
from archie_env.rulebook import ReadsRulebook
from archie_env.rules import Replacements, Rules
from archie_env.validation import action_number, check_seat, game_number, seed_word

__all__ = ["FOLD", "RAISE", "SEATS", "Award", "Event", "Game", "Result", "View"]


class Game(ReadsRulebook):
    """One hand of Archie.

    Args:
        rules: a preset's name or a `Rules` value.
        seed: any non-negative int, or None for a fresh one.
        index, hand: which game of that seed, and which hand of that game: the same cards as `Batch` and the environments.
        dealer: seat that deals; None leaves it to the seed.
        deck: cards in the order they are dealt, a whole deck or its beginning: initial cards one at a time, big blind first;
            replacements as a block, the big blind's block first (R5.3).  With ``per_seat`` replacements the big blind's future
            cards follow the initial ones, then the dealer's.
        replacements: ``shared`` or ``per_seat``, as in `Batch`.
    """

    def __init__(
        self,
        rules: Rules | str = "archie",
        *,
        seed: int | None = None,
        index: int = 0,
        hand: int = 0,
        dealer: int | None = None,
        deck: str | Sequence[Any] | None = None,
        replacements: Replacements = "shared",
    ) -> None:
        self._read_rulebook(rules, replacements)
        self._games: NDArray[Any] = np.zeros(1, GAME)
        if dealer is not None:
            check_seat("dealer", dealer, ", or None to leave it to the seed")
        game_number("index", index)
        game_number("hand", hand)
        order, given = deck_order(self.rules, deck)
        table.open_table(self._games, seed_word(seed), index)
        table.deal_table(self._games, self._books, hand, -1 if dealer is None else dealer, order, given)
        table.settle_table(self._games, self._books)
        self.deck: tuple[int, ...] = dealt_order(self._games, self.rules)
        """All cards in the order they are dealt."""
        self._events: list[Event] = []
        self._actions: list[int] = []
        self._paid_before = 0  # chips of each player when this betting round began
        self._open()

    def _open(self) -> None:
        big_blind = 1 - self.dealer
        for seat in (self.dealer, big_blind):
            self._events.append(Event("post", seat, 0, to=self.paid[seat]))
        for seat in (big_blind, self.dealer):
            self._events.append(Event("deal", seat, 0, cards=self._cards(seat, 0)))

    # ---- the position

    def _field(self, name: str) -> int:
        return int(self._games[name][0])

    def _by_seat(self, pair: NDArray[Any]) -> NDArray[Any]:
        """From positions to seats."""
        return pair[::-1] if self.dealer else pair

    def _cards(self, seat: int, betting_round: int) -> tuple[int, ...]:
        held = int(self._games["held"][0, seat ^ self.dealer, betting_round])
        return tuple(card for i, card in enumerate(self.rules.deck) if held >> i & 1)

    @property
    def dealer(self) -> int:
        """Seat that deals and posts the small blind."""
        return self._field("dealer")

    @property
    def over(self) -> bool:
        """Whether the hand has ended."""
        return bool(self._field("over"))

    @property
    def to_act(self) -> int | None:
        """Seat to act, or None when the hand is over."""
        return None if self.over else self._field("turn") ^ self.dealer

    @property
    def round(self) -> int:
        """Betting round from 0; during a draw, the round before it."""
        return self._field("phase") >> 1

    @property
    def drawing(self) -> bool:
        """Whether players are discarding."""
        return bool(self._field("phase") & 1)

    @property
    def paid(self) -> tuple[int, int]:
        """Chips in the pot, by seat."""
        first, second = self._by_seat(self._games["paid"][0]).tolist()
        return first, second

    @property
    def hands(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Cards by seat, ascending; a committed discard is still in the hand until the replacements are dealt."""
        return self._cards(0, self.round), self._cards(1, self.round)

    @property
    def actions(self) -> tuple[int, ...]:
        """Every action so far, of both players in the order played."""
        return tuple(self._actions)

    @property
    def history(self) -> tuple[Event, ...]:
        """Every event so far in order, all cards open."""
        return tuple(self._events)

    def owes(self, seat: int) -> int:
        """Chips this seat must add to call."""
        check_seat("seat", seat)
        return max(0, self.paid[1 - seat] - self.paid[seat])

    # ---- acting

    def mask(self, seat: int) -> NDArray[np.int8]:
        """``(a,)``: 1 = legal; zeros for a seat that is not to act."""
        check_seat("seat", seat)
        masks = np.zeros((2, self.rules.actions), np.int8)
        table.look_masks(self._games, self._books, masks)
        mask: NDArray[np.int8] = masks[seat].copy()
        return mask

    def observation(self, seat: int) -> NDArray[np.int8]:
        """``(d,)``: the information state of a seat, see `archie_env.observation`."""
        check_seat("seat", seat)
        row = np.zeros(width(self.rules), np.int8)
        table.look_seat(self._games, self._books, seat, row, 1, 1)
        return row

    def legal_actions(self) -> tuple[int, ...]:
        """Legal actions of the seat to act, ascending; empty when the hand is over."""
        seat = self.to_act
        return () if seat is None else tuple(np.flatnonzero(self.mask(seat)).tolist())

    def apply(self, action: int) -> None:
        """Play an action of the seat to act.

        Raises:
            IllegalActionError: naming the action, the legal ones and the position; nothing was played.
            OrderError: the hand is over.
        """
        seat, betting_round, drawing = self.to_act, self.round, self.drawing
        if seat is None:
            raise OrderError(f"action {action!r}: the hand is over ({self.position(None)})")
        number = action_number(action)
        owed, wagers = self.owes(seat), self._field("wagers")
        if table.play_table(self._games, self._books, number) == table.ILLEGAL:
            raise self.illegal(action)
        self._actions.append(number)
        if not drawing:
            verb = format_action(number, owes=bool(wagers if number == RAISE else owed))
            to = self.paid[seat] - self._paid_before
            self._events.append(Event("bet", seat, betting_round, number, verb, owed, to))
            return
        discarded = discards(number, self._cards(seat, betting_round))
        self._events.append(Event("draw", seat, betting_round, number, cards=discarded))
        if self.round > betting_round:
            self._paid_before = self.paid[0]
            for position in (1, 0):
                seat = position ^ self.dealer
                kept = set(self._cards(seat, betting_round))
                new = tuple(c for c in self._cards(seat, betting_round + 1) if c not in kept)
                self._events.append(Event("deal", seat, betting_round + 1, cards=new))

    def forfeit(self, seat: int) -> None:
        """End the hand as lost by a seat, at any turn: it loses the chips it has paid, and the other takes the pot.

        For a player that left or failed: folding is an action of the game, and legal only in front of a wager.
        """
        check_seat("seat", seat)
        if self.over:
            raise OrderError(f"forfeit: the hand is over ({self.position(None)})")
        position = seat ^ self.dealer
        paid = self.paid[seat]
        self._games["over"], self._games["folded"] = 1, position + 1
        self._games["net"] = paid if position else -paid  # of the dealer
        self._events.append(Event("forfeit", seat, self.round))

    def illegal(self, action: object) -> IllegalActionError:
        """The error for an action that is not legal here."""
        seat = self.to_act
        legal = "none" if seat is None else describe_legal(self.mask(seat))
        return IllegalActionError(f"illegal action {action!r}; legal: {legal}; {self.position(seat)}")

    def position(self, seat: int | None) -> str:
        """Where the hand stands, in one line, showing the cards of one seat (or of both, for None)."""
        phase = f"draw {self.round + 1}" if self.drawing else f"betting round {self.round + 1}"
        turn = "hand over" if self.over else f"{SEATS[self.to_act or 0]} to act in {phase}"
        seats = (0, 1) if seat is None else (seat,)
        cards = ", ".join(f"{SEATS[s]} holds {format_cards(self.hands[s], ' ')}" for s in seats)
        owed = "" if self.to_act is None else f", {self.owes(self.to_act)} to call"
        return (
            f"{turn}, {cards}, pot {sum(self.paid)}{owed}, rules {self.rules.name}, dealer {SEATS[self.dealer]}, "
            f"actions so far: {' '.join(self._known_actions(seat)) or 'none'}"
        )

    def _known_actions(self, seat: int | None) -> list[str]:
        """The actions so far as a seat may know them: the other's discards as counts, once public."""
        known = []
        for event in self._events:
            if event.kind == "bet" or (event.kind == "draw" and seat in (None, event.seat)):
                known.append(str(event.action))
            elif event.kind == "draw":
                known.append(f"({len(event.cards)} discarded)" if self._public(event) else "(committed)")
        return known

    def _public(self, event: Event) -> bool:
        """Whether a discard's count is known to the other seat: dealt, or announced in sequential order (R5.1)."""
        return event.round < self.round or self.rules.draw_order == "sequential"

    # ---- looking

    def view(self, seat: int | None = None) -> View:
        """The hand as a seat knows it; None looks from above and sees every card."""
        if seat is not None:
            check_seat("seat", seat, ", or None to see both hands")
        result = self.result if self.over else None
        shown = result is not None and result.folded is None
        draws: tuple[list[int], list[int]] = ([], [])
        committed = [False, False]
        betting: list[list[Event]] = [[] for _ in range(self.round + 1)]
        for event in self._events:
            if event.kind in ("post", "bet"):
                betting[event.round].append(event)
            elif event.kind == "draw" and (seat in (None, event.seat) or self._public(event)):
                draws[event.seat].append(len(event.cards))
                committed[event.seat] = event.round == self.round
        hands = tuple(h if seat in (None, s) or shown else None for s, h in enumerate(self.hands))
        legal = self.legal_actions() if seat in (None, self.to_act) else ()
        return View(
            seat=seat,
            dealer=self.dealer,
            to_act=self.to_act,
            round=self.round,
            drawing=self.drawing,
            paid=self.paid,
            wagered=(self.paid[0] - self._paid_before, self.paid[1] - self._paid_before),
            hands=(hands[0], hands[1]),
            draws=(tuple(draws[0]), tuple(draws[1])),
            committed=(committed[0], committed[1]),
            betting=tuple(map(tuple, betting)),
            legal=legal,
            choices=tuple(self._event_of(action) for action in legal if action < DISCARD),
            result=result,
        )

    def _event_of(self, action: int) -> Event:
        """The event that a legal betting action would be."""
        after = self.clone()
        after.apply(action)
        return after._events[-1]

    @property
    def result(self) -> Result:
        """The result of the finished hand; raises `OrderError` before its end."""
        if not self.over:
            raise OrderError(f"result: the hand is not over ({self.position(None)})")
        net = self._field("net")
        by_seat = (-net, net) if self.dealer else (net, -net)
        folded = self._field("folded") - 1
        if folded < 0:
            return Result(by_seat, self.paid, None, self._awards())
        loser = folded ^ self.dealer
        pot = (sum(self.paid), 0) if loser else (0, sum(self.paid))
        reason: Reason = "fold" if self._forfeited is None else "forfeit"
        return Result(by_seat, self.paid, loser, (Award("pot", pot, reason, (1 - loser,)),))

    def _awards(self) -> tuple[Award, ...]:
        """The parts of the pot after a showdown (R4)."""
        values = HandValues(self.rules)
        (high_0, low_0), (high_1, low_1) = values.of(self.hands[0]), values.of(self.hands[1])
        paid, big_blind, book = self.paid[0], 1 - self.dealer, self._books[0]
        mine = [int(x) for x in award(book, paid, high_0, high_1, low_0, low_1, big_blind == 0)]
        other = [int(x) for x in award(book, paid, high_1, high_0, low_1, low_0, big_blind == 1)]
        for_high, for_low, divided = zip(mine, other, strict=True)
        highs, lows = (high_0, high_1), (low_0, low_1)
        if any(divided):
            return (Award("pot", divided, "equal_split", (0, 1)),)
        if any(for_high) and any(for_low):
            return _part("high", for_high, "half", highs), _part("low", for_low, "half", lows)
        if any(for_low):
            return (_part("pot", for_low, "only_low", lows),)
        return (_part("pot", for_high, "only_high" if values.qualifies_high(max(highs)) else "best_high", highs),)

    # ---- copies

    def clone(self) -> Game:
        """A copy with the same future, independent of this game."""
        copy = Game.__new__(Game)
        copy.__dict__.update(self.__dict__)
        copy._games = self._games.copy()
        copy._events, copy._actions = self._events.copy(), self._actions.copy()
        return copy

    def __copy__(self) -> Game:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.clone()

    def __eq__(self, other: object) -> bool:
        """The same rules, cards and actions: the same position, with the same history and future."""
        if not isinstance(other, Game):
            return NotImplemented
        return self._identity() == other._identity()

    __hash__ = None  # type: ignore[assignment]  # a game changes as it is played

    def _identity(self) -> tuple[object, ...]:
        return self.rules, self.replacements, self.dealer, self.deck, tuple(self._actions), self._forfeited

    @property
    def _forfeited(self) -> int | None:
        return self._events[-1].seat if self._events[-1].kind == "forfeit" else None

    def __repr__(self) -> str:
        return f"<Game: {self.position(None)}>"


def _part(half: Half, chips: tuple[int, int], reason: Reason, values: tuple[int, int]) -> Award:
    """A part of the pot that the better of two hand values wins, or that equal ones share."""
    first, second = values
    return Award(half, chips, reason, (0, 1) if first == second else (int(second > first),), values)


ANY_DECK: Final[NDArray[np.int8]] = np.zeros(DECK, np.int8)
"""Stands for a deck of which no card is given: the engine shuffles its own."""


def deck_order(rules: Rules, deck: str | Sequence[Any] | None) -> tuple[NDArray[np.int8], int]:
    """A whole deck ``(52,)`` that begins with the given cards, and how many were given; raises `CardError`.

    Cards are the engine's: indices in the deck in play.
    """
    if deck is None:
        return ANY_DECK, 0
    number = {card: i for i, card in enumerate(rules.deck)}
    given = [number[card] for card in check_cards(deck, number, "deck")]
    taken = set(given)
    order = np.zeros(DECK, np.int8)
    order[: len(number)] = (*given, *(i for i in range(len(number)) if i not in taken))
    return order, len(given)


def dealt_order(games: NDArray[Any], rules: Rules) -> tuple[int, ...]:
    """The cards of one game in the order they are dealt, all of them settled."""
    return tuple(rules.deck[i] for i in games["deck"][0, : rules.deck_size].tolist())
