"""Archie played in PokerKit: a second opinion that shares no rule code with the referee or the environment.

PokerKit has no Archie, but has the parts: fixed-limit betting, triple draw, a standard high hand and an
eight-or-better low. What it lacks is added here, each time out of PokerKit's own comparisons:

- the high qualifier is a subclass of its high hand that refuses anything worse than the lowest qualifying pair;
- PokerKit does not count the big blind as a bet, so the first street allows one wager fewer (R1.3);
- when nobody qualifies, PokerKit would have no hand type to divide the pot by. The hand types are consulted for the
  first time at the showdown, so they are changed just before it: to the plain high hand (R4.3), or to a hand that
  equals every other when the pot is divided equally.

PokerKit seats the big blind at index 0 and the dealer at index 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from pokerkit import (
    Automation,
    BettingStructure,
    Card,
    CardsLike,
    EightOrBetterLowHand,
    Entry,
    Hand,
    Label,
    Opening,
    StandardHighHand,
    State,
    Street,
)
from pokerkit import Deck as PokerKitDeck

if TYPE_CHECKING:
    from tests.referee import Rules

RANKS = "23456789TJQKA"
SUITS = "cdhs"

FOLD = 0
CHECK_OR_CALL = 1
BET_OR_RAISE = 2
STAND_PAT = 3

BIG_BLIND = 0
DEALER = 1

# Far more than 48, because PokerKit treats a player who puts in the last chip as all-in and Archie never does (R1.4).
STACK = 1_000_000


@cache
def poker_kit_card(card: int) -> Card:
    """The PokerKit card of a card number."""
    return next(Card.parse(RANKS[card // 4] + SUITS[card % 4]))


def card_number(card: Card) -> int:
    """The card number of a PokerKit card."""
    return 4 * RANKS.index(card.rank.value) + SUITS.index(card.suit.value)


@cache
def qualified_high_hand(pair: str) -> type[StandardHighHand]:
    """PokerKit's standard high hand, valid only from the lowest pair of the given rank upwards (R3.2)."""
    kickers = [rank for rank in RANKS if rank != pair][:3]
    lowest = StandardHighHand("".join([pair + "c", pair + "d", kickers[0] + "h", kickers[1] + "s", kickers[2] + "c"]))

    class QualifiedHighHand(StandardHighHand):  # type: ignore[misc, unused-ignore]
        """A high hand at or above the qualifier."""

        def __init__(self, cards: CardsLike) -> None:
            """Refuse the hands that do not qualify, as PokerKit's eight-or-better low does."""
            super().__init__(cards)
            if StandardHighHand(self.cards) < lowest:
                raise ValueError(f"{cards!r} does not reach {lowest!r}")

    return QualifiedHighHand


class AnyHand(StandardHighHand):  # type: ignore[misc, unused-ignore]
    """Five cards that are worth what any other five cards are worth."""

    @property
    def entry(self) -> Entry:
        """One and the same entry for every hand."""
        return Entry(0, Label.HIGH_CARD)


class PokerKitHand:
    """One hand of Archie in PokerKit, with the interface of the referee."""

    def __init__(self, rules: Rules, deck: Sequence[int], dealer: int) -> None:
        """Post the blinds and deal the first hands (R5.3)."""
        full_game = len(rules.ranks) == 13 and len(rules.suits) == 4 and rules.hand_size == rules.max_discard == 5
        if not full_game or not rules.flushes or rules.low_qualifier != "8" or rules.high_qualifier is None:
            raise ValueError("PokerKit plays the full game only")
        self.rules = rules
        self.high_hand = qualified_high_hand(rules.high_qualifier)
        self.seats = (1 - dealer, dealer)
        """The seat behind each PokerKit index."""
        self._deck = list(deck)
        small, big = rules.stakes.blinds
        self.state = State(
            (
                Automation.ANTE_POSTING,
                Automation.BET_COLLECTION,
                Automation.BLIND_OR_STRADDLE_POSTING,
                Automation.HAND_KILLING,
                Automation.CHIPS_PUSHING,
                Automation.CHIPS_PULLING,
            ),
            PokerKitDeck.STANDARD,
            (self.high_hand, EightOrBetterLowHand),
            tuple(
                Street(
                    False,
                    () if number else (False,) * rules.hand_size,
                    0,
                    number > 0,
                    Opening.POSITION,
                    bet,
                    rules.raise_cap if number else rules.raise_cap - 1,
                )
                for number, bet in enumerate(rules.stakes.bets)
            ),
            BettingStructure.FIXED_LIMIT,
            True,
            0,
            (small, big),
            0,
            STACK,
            2,
        )
        for number in range(2 * rules.hand_size):
            expected = (BIG_BLIND, DEALER)[number % 2]
            assert self.state.hole_dealee_index == expected, "PokerKit deals the first hands in another order"
            self.state.deal_hole((self._next_card(),))

    def _next_card(self) -> Card:
        return poker_kit_card(self._deck.pop(0))

    def _hand(self, index: int) -> list[int]:
        return sorted(card_number(card) for card in self.state.hole_cards[index])

    @property
    def over(self) -> bool:
        """Whether the chips have been paid out."""
        return not self.state.status

    @property
    def to_act(self) -> int | None:
        """The seat that has to act."""
        index = self.state.stand_patter_or_discarder_index
        if index is None:
            index = self.state.actor_index
        return None if index is None else self.seats[index]

    @property
    def hands(self) -> list[list[int]]:
        """The cards each seat holds."""
        hands: list[list[int]] = [[], []]
        for index, seat in enumerate(self.seats):
            hands[seat] = self._hand(index)
        return hands

    def legal_actions(self) -> list[int]:
        """What PokerKit would accept from the player to act."""
        if self.state.stand_patter_or_discarder_index is not None:
            # PokerKit accepts any part of the five cards.
            return [STAND_PAT + mask for mask in range(2**self.rules.hand_size)]
        possible = {
            FOLD: self.state.can_fold(),
            CHECK_OR_CALL: self.state.can_check_or_call(),
            BET_OR_RAISE: self.state.can_complete_bet_or_raise_to(),
        }
        return [action for action, can in possible.items() if can]

    def apply(self, action: int) -> None:
        """Carry out an action of the player to act, and whatever follows it without a decision."""
        if action == FOLD:
            self.state.fold()
        elif action == CHECK_OR_CALL:
            self.state.check_or_call()
        elif action == BET_OR_RAISE:
            self.state.complete_bet_or_raise_to()
        else:
            self._discard(action - STAND_PAT)
        if self.state.showdown_index is not None:
            self._show()

    def _discard(self, mask: int) -> None:
        index = self.state.stand_patter_or_discarder_index
        assert index is not None
        discards = [card for position, card in enumerate(self._hand(index)) if mask >> position & 1]
        self.state.stand_pat_or_discard(tuple(poker_kit_card(card) for card in discards))
        if self.state.stand_patter_or_discarder_index is not None:
            return
        # R2.3: both have committed, and the big blind is the first to be served.
        served: list[int] = []
        while (dealee := self.state.hole_dealee_index) is not None:
            served.append(dealee)
            self.state.deal_hole((self._next_card(),))
        assert served == sorted(served), "PokerKit serves the dealer before the big blind"

    def _show(self) -> None:
        # PokerKit divides a pot by the hand types that somebody holds, so one of them has to be held.
        if all(self.state.get_hand(index, 0, kind) is None for index in (BIG_BLIND, DEALER) for kind in (0, 1)):
            fallback: type[Hand] = AnyHand if self.rules.no_qualifier == "equal_split" else StandardHighHand
            self.state.hand_types = (fallback,)
        elif self._everything_is_tied() and -self.state.payoffs[BIG_BLIND] % 2:
            raise ValueError("PokerKit would give both odd chips to one player, which R4.4 forbids")
        while self.state.showdown_index is not None:
            self.state.show_or_muck_hole_cards(True)

    def _everything_is_tied(self) -> bool:
        pairs = [(self.state.get_hand(BIG_BLIND, 0, kind), self.state.get_hand(DEALER, 0, kind)) for kind in (0, 1)]
        return all(first is not None and first == second for first, second in pairs)

    @property
    def net(self) -> tuple[int, int]:
        """The result of each seat once the hand is over (R4.5)."""
        assert self.over
        net = [0, 0]
        for index, seat in enumerate(self.seats):
            net[seat] = self.state.payoffs[index]
        return net[0], net[1]


def play(
    rules: Rules,
    deck: Sequence[int],
    dealer: int,
    actions: Sequence[int],
    actors: Sequence[int] | None = None,
    legal: Sequence[Sequence[int]] | None = None,
) -> tuple[int, int]:
    """Play one whole hand in PokerKit and return the net chips of each seat.

    Raise AssertionError where PokerKit finds an action illegal, takes the hand to be over too early or too late, or,
    when `actors` or `legal` say who acted and what was legal before each action, sees either otherwise.
    """
    hand = PokerKitHand(rules, deck, dealer)
    for number, action in enumerate(actions):
        assert not hand.over, f"PokerKit is through before action {number}"
        possible = hand.legal_actions()
        assert action in possible, f"PokerKit allows {possible} as action {number}, not {action}"
        if actors is not None:
            assert hand.to_act == actors[number], f"PokerKit lets seat {hand.to_act} make action {number}"
        if legal is not None:
            assert possible == sorted(legal[number]), f"PokerKit allows {possible} as action {number}"
        hand.apply(action)
    assert hand.over, "PokerKit waits for another action"
    return hand.net
