"""A slow referee for Archie, to be read beside the clauses it cites (`R1` .. `R6`).

It is an oracle: it shares no code with the environment and prefers the shortest way of saying a clause to any
fast way of computing it. A card is `4 * rank + suit` with rank 0 for the deuce up to 12 for the ace and the suits
in the order c, d, h, s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

RANKS = "23456789TJQKA"
SUITS = "cdhs"
ACE = RANKS.index("A")

FOLD = 0
CHECK_OR_CALL = 1
BET_OR_RAISE = 2
STAND_PAT = 3

(
    HIGH_CARD,
    ONE_PAIR,
    TWO_PAIR,
    THREE_OF_A_KIND,
    STRAIGHT,
    FLUSH,
    FULL_HOUSE,
    FOUR_OF_A_KIND,
    STRAIGHT_FLUSH,
) = range(9)

HighValue = tuple[int, tuple[int, ...]]
LowValue = tuple[int, ...]


class Stakes(Protocol):
    """The chips of a table (R1.2, R1.3)."""

    @property
    def blinds(self) -> tuple[int, int]:
        """The small and the big blind."""

    @property
    def bets(self) -> tuple[int, ...]:
        """The size of a bet or raise, one for every betting round."""


class Rules(Protocol):
    """What the referee needs to know of a set of rules (R6)."""

    @property
    def stakes(self) -> Stakes:
        """Blinds and bets."""

    @property
    def raise_cap(self) -> int:
        """The most wagers of a round: one bet and the raises after it."""

    @property
    def high_qualifier(self) -> str | None:
        """The rank of the lowest pair that qualifies for high, or None when nothing ever does."""

    @property
    def low_qualifier(self) -> str | None:
        """The highest rank a qualifying low may hold, or None when nothing ever qualifies."""

    @property
    def no_qualifier(self) -> str:
        """`best_high` or `equal_split`: who is paid when no hand qualifies."""

    @property
    def draw_order(self) -> str:
        """`simultaneous` or `sequential`: whether a discard is announced before the other player discards."""

    @property
    def draws(self) -> int:
        """The number of draws."""

    @property
    def max_discard(self) -> int:
        """The most cards a player may throw away in one draw."""

    @property
    def ranks(self) -> str:
        """The ranks in the deck."""

    @property
    def suits(self) -> str:
        """The suits in the deck."""

    @property
    def hand_size(self) -> int:
        """The number of cards in a hand."""

    @property
    def flushes(self) -> bool:
        """Whether five cards of one suit count for anything."""


# Cards


def rank_of(card: int) -> int:
    """The rank of a card, 0 for the deuce up to 12 for the ace."""
    return card // 4


def suit_of(card: int) -> int:
    """The suit of a card, 0 for clubs up to 3 for spades."""
    return card % 4


def card_name(card: int) -> str:
    """The usual two letters, such as `As`."""
    return RANKS[rank_of(card)] + SUITS[suit_of(card)]


def parse_cards(names: str) -> list[int]:
    """The cards named in text such as `As2d3c4h5s`, in the order written."""
    pairs = [names[start : start + 2] for start in range(0, len(names), 2)]
    return [4 * RANKS.index(pair[0]) + SUITS.index(pair[1]) for pair in pairs]


def full_deck(rules: Rules) -> list[int]:
    """Every card of the table's deck, ascending (R1.1, R6)."""
    return sorted(4 * RANKS.index(rank) + SUITS.index(suit) for rank in rules.ranks for suit in rules.suits)


# R3: the value of a hand


def straight_top(ranks: Sequence[int]) -> int | None:
    """The rank a five-card straight is named after, or None when there is no straight (R3.1).

    The ace may stand below the deuce, which makes the five the top of the lowest straight, but never in the middle.
    """
    present = set(ranks)
    if len(ranks) != 5 or len(present) != 5:
        return None
    if present == {ACE, 0, 1, 2, 3}:
        return 3
    if max(present) - min(present) == 4:
        return max(present)
    return None


def high_value(hand: Sequence[int], flushes: bool = True) -> HighValue:
    """The category and the ranks that decide within it; the greater tuple is the better high hand (R3.1).

    Groups come largest first and then highest first, so the ranks compare "from largest and highest down, then
    kickers". Straights and flushes are categories of five-card hands only (R6).
    """
    ranks = [rank_of(card) for card in hand]
    groups = sorted(((size, rank) for rank, size in Counter(ranks).items()), reverse=True)
    sizes = [size for size, _ in groups]
    order = tuple(rank for _, rank in groups)
    one_suit = flushes and len(hand) == 5 and len({suit_of(card) for card in hand}) == 1
    top = straight_top(ranks)
    if top is not None and one_suit:
        return STRAIGHT_FLUSH, (top,)
    if sizes[0] == 4:
        return FOUR_OF_A_KIND, order
    if sizes == [3, 2]:
        return FULL_HOUSE, order
    if one_suit:
        return FLUSH, order
    if top is not None:
        return STRAIGHT, (top,)
    if sizes[0] == 3:
        return THREE_OF_A_KIND, order
    if sizes[:2] == [2, 2]:
        return TWO_PAIR, order
    if sizes[0] == 2:
        return ONE_PAIR, order
    return HIGH_CARD, order


def low_rank(rank: int) -> int:
    """How high a rank stands in a low: 1 for the ace, 2 for the deuce, up to 13 for the king (R3.3)."""
    return 1 if rank == ACE else rank + 2


def low_value(hand: Sequence[int], highest: str | None) -> LowValue | None:
    """The value of a qualifying low, the greater tuple being the better low, or None (R3.3).

    Negated, because ranks are compared from the highest card down and the lower one is better.
    """
    if highest is None:
        return None
    ranks = {low_rank(rank_of(card)) for card in hand}
    if len(ranks) < len(hand) or max(ranks) > low_rank(RANKS.index(highest)):
        return None
    return tuple(-rank for rank in sorted(ranks, reverse=True))


def qualifies_high(hand: Sequence[int], rules: Rules) -> bool:
    """Whether a hand holds the qualifying pair or better (R3.2)."""
    if rules.high_qualifier is None:
        return False
    category, order = high_value(hand, rules.flushes)
    if category == ONE_PAIR:
        return order[0] >= RANKS.index(rules.high_qualifier)
    return category > ONE_PAIR


def qualifies_low(hand: Sequence[int], rules: Rules) -> bool:
    """Whether a hand qualifies for low (R3.3)."""
    return low_value(hand, rules.low_qualifier) is not None


# R4: the pot


@dataclass(frozen=True)
class Showdown:
    """How the pot was divided between the two seats when both hands were shown."""

    awards: tuple[int, int]
    """Chips each seat takes out of the pot (R4)."""
    high_winners: frozenset[int]
    """Seats holding the best qualifying high; empty when no high qualifies (R4.1, R4.2)."""
    low_winners: frozenset[int]
    """Seats holding the best qualifying low; empty when no low qualifies (R4.1, R4.2)."""
    unqualified_winners: frozenset[int]
    """Seats paid because nobody qualified in either direction; empty otherwise (R4.3)."""


def best_seats(values: dict[int, HighValue] | dict[int, LowValue]) -> frozenset[int]:
    """The seats whose value is the greatest."""
    return frozenset(seat for seat in values if values[seat] == max(values.values()))


def showdown(hands: Sequence[Sequence[int]], paid_each: int, rules: Rules, dealer: int) -> Showdown:
    """Divide a pot to which both seats have paid `paid_each` chips (R4.1 to R4.4)."""
    seats = (0, 1)
    high_values = {seat: high_value(hands[seat], rules.flushes) for seat in seats}
    high_winners = best_seats({seat: high_values[seat] for seat in seats if qualifies_high(hands[seat], rules)})
    lows = {seat: low_value(hands[seat], rules.low_qualifier) for seat in seats}
    low_winners = best_seats({seat: low for seat, low in lows.items() if low is not None})
    unqualified_winners: frozenset[int] = frozenset()

    pot = 2 * paid_each
    if high_winners and low_winners:
        # R4.4 gives an odd chip of the whole pot to high. Two equal payments leave none, but the clause is kept.
        parts = [(pot - pot // 2, high_winners), (pot // 2, low_winners)]
    elif high_winners or low_winners:
        parts = [(pot, high_winners or low_winners)]
    else:
        unqualified_winners = frozenset(seats) if rules.no_qualifier == "equal_split" else best_seats(high_values)
        parts = [(pot, unqualified_winners)]

    awards = [0, 0]
    given_an_odd_chip: set[int] = set()
    clockwise = (1 - dealer, dealer)
    for chips, winners in parts:
        for seat in winners:
            awards[seat] += chips // len(winners)
        if chips % len(winners):
            # R4.4: the first winner clockwise from the dealer, but nobody gets more than one odd chip.
            lucky = next(seat for seat in clockwise if seat in winners and seat not in given_an_odd_chip)
            awards[lucky] += 1
            given_an_odd_chip.add(lucky)
    return Showdown((awards[0], awards[1]), high_winners, low_winners, unqualified_winners)


# R2: the course of a hand


class Referee:
    """One hand of Archie from a given order of the deck, one decision at a time."""

    def __init__(self, rules: Rules, deck: Sequence[int], dealer: int, replacements: str = "shared") -> None:
        """Post the blinds and deal the first hands.

        `replacements` is `shared` when the replacements of both seats come off the one remaining deck (R5.3), and
        `per_seat` when each seat has replacements of its own set aside: `draws * max_discard` cards for the big blind
        straight after the first hands, and as many for the dealer after those.
        """
        if dealer not in (0, 1):
            raise ValueError(f"the dealer is seat 0 or seat 1, not {dealer}")
        if len(set(deck)) < len(deck) or not set(deck) <= set(full_deck(rules)):
            raise ValueError("the deck repeats a card or holds a card that is not in the game")
        self.rules = rules
        self.dealer = dealer
        self.big_blind = 1 - dealer

        small, big = rules.stakes.blinds
        self.paid: list[int] = [0, 0]
        self.paid[self.dealer] = small
        self.paid[self.big_blind] = big

        # R5.3: one card at a time, the big blind's first.
        first_cards = deck[: 2 * rules.hand_size]
        rest = list(deck[2 * rules.hand_size :])
        self.hands: list[list[int]] = [[], []]
        self.hands[self.big_blind] = sorted(first_cards[0::2])
        self.hands[self.dealer] = sorted(first_cards[1::2])

        self._stocks: dict[int, list[int]]
        if replacements == "shared":
            self._stocks = {self.big_blind: rest, self.dealer: rest}
        elif replacements == "per_seat":
            block = rules.draws * rules.max_discard
            self._stocks = {self.big_blind: rest[:block], self.dealer: rest[block : 2 * block]}
        else:
            raise ValueError(f"replacements are shared or per_seat, not {replacements!r}")

        self.round = 0
        """The betting round that is on, or that was on last while a draw is."""
        self.drawing = False
        self.wagers: list[list[int]] = [[] for _ in rules.stakes.bets]
        self.draw_counts: list[list[int]] = [[], []]
        self.folded: int | None = None
        self.showdown: Showdown | None = None
        self.over = False
        # R2.1: the dealer speaks first before the first draw.
        self.to_act: int | None = self.dealer
        self._acted: set[int] = set()
        self._committed: dict[int, list[int]] = {}

    # What may be done

    def owes(self, seat: int) -> int:
        """Chips a seat must add to match the other."""
        return max(self.paid) - self.paid[seat]

    def wager_count(self) -> int:
        """Bets and raises made in this round; the big blind is the bet of the first round (R1.3)."""
        return self.wagers[self.round].count(BET_OR_RAISE) + (1 if self.round == 0 else 0)

    def legal_actions(self) -> list[int]:
        """The legal actions of the player to act, ascending; none once the hand is over."""
        if self.to_act is None:
            return []
        if self.drawing:
            size = self.rules.hand_size
            return [STAND_PAT + mask for mask in range(2**size) if mask.bit_count() <= self.rules.max_discard]
        actions = [CHECK_OR_CALL]
        if self.owes(self.to_act) > 0:
            actions.insert(0, FOLD)
        if self.wager_count() < self.rules.raise_cap:
            actions.append(BET_OR_RAISE)
        return actions

    def apply(self, action: int) -> None:
        """Carry out an action of the player to act."""
        if self.to_act is None or action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal here")
        if self.drawing:
            self._discard(self.to_act, action - STAND_PAT)
        else:
            self._wager(self.to_act, action)

    # Betting

    def _wager(self, seat: int, action: int) -> None:
        self.wagers[self.round].append(action)
        if action == FOLD:
            self.folded = seat
            self._end()
            return
        if action == BET_OR_RAISE:
            self.paid[seat] = max(self.paid) + self.rules.stakes.bets[self.round]
            # A wager gives the other player a new chance to act.
            self._acted = {seat}
        else:
            self.paid[seat] = max(self.paid)
            self._acted.add(seat)
        # R2.4: a round ends when both have had the chance to act and the wagers match.
        if self._acted == {0, 1} and self.paid[0] == self.paid[1]:
            self._end_round()
        else:
            self.to_act = 1 - seat

    def _end_round(self) -> None:
        if self.round == self.rules.draws:
            self._end()
            return
        self.drawing = True
        self.to_act = self.big_blind

    # Drawing

    def _discard(self, seat: int, mask: int) -> None:
        self._committed[seat] = [card for index, card in enumerate(self.hands[seat]) if mask & (1 << index)]
        if seat == self.big_blind:
            self.to_act = self.dealer
            return
        # R2.3: both players commit before anything is replaced, and the big blind is served first.
        for player in (self.big_blind, self.dealer):
            self._replace(player, self._committed[player])
        self._committed = {}
        self.drawing = False
        self.round += 1
        self._acted = set()
        # R2.2: the big blind speaks first in every round after a draw.
        self.to_act = self.big_blind

    def _replace(self, seat: int, discards: list[int]) -> None:
        stock = self._stocks[seat]
        if len(stock) < len(discards):
            raise ValueError("the deck is too short for this draw")
        kept = [card for card in self.hands[seat] if card not in discards]
        self.hands[seat] = sorted(kept + stock[: len(discards)])
        del stock[: len(discards)]
        self.draw_counts[seat].append(len(discards))

    def known_draw_counts(self, viewer: int) -> list[list[int]]:
        """For each seat, the sizes of its draws that `viewer` may know at this moment (R5.1).

        Dealt draws are public. A discard that is committed but not yet replaced is known to the player who made it,
        and to the other one only when discards are made in turn and announced.
        """
        known = [list(counts) for counts in self.draw_counts]
        for seat, discards in self._committed.items():
            if seat == viewer or self.rules.draw_order == "sequential":
                known[seat].append(len(discards))
        return known

    # The end

    def _end(self) -> None:
        self.over = True
        self.to_act = None
        if self.folded is None:
            self.showdown = showdown(self.hands, self.paid[0], self.rules, self.dealer)

    @property
    def awards(self) -> tuple[int, int]:
        """Chips each seat takes out of the pot once the hand is over (R2.5, R4)."""
        if not self.over:
            raise ValueError("the hand is not over")
        if self.showdown is not None:
            return self.showdown.awards
        pot = sum(self.paid)
        return (0, pot) if self.folded == 0 else (pot, 0)

    @property
    def net(self) -> tuple[int, int]:
        """The result of each seat once the hand is over: the award less what was paid (R4.5)."""
        awards = self.awards
        return awards[0] - self.paid[0], awards[1] - self.paid[1]
