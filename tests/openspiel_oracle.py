"""Archie with at most one draw as an OpenSpiel game, written from the clauses of docs/rules.md.

Nothing but the `Rules` values comes from the environment.  Chance deals whole hands at once, which changes no probability:
first the big blind's, then the dealer's, and the replacements in the same order.  Player 0 is the dealer.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pyspiel

from archie_env.rules import Rules

DEALER, BIG_BLIND = 0, 1
FOLD, CALL, RAISE, THROW = 0, 1, 2, 3
"""Actions; ``THROW + bits`` throws the cards of the ascending hand whose bits are set."""

_ORDER = "23456789TJQKA"
Card = tuple[int, int]
"""Rank 2 to 14, the ace high, and suit."""
Cards = tuple[Card, ...]
Event = tuple[Any, ...]
"""What one player is told: dealt cards, a betting action, its own discard, the number the other threw."""


def deck(rules: Rules) -> Cards:
    """The cards in play, ascending."""
    return tuple((2 + _ORDER.index(rank), suit) for rank in rules.ranks for suit in range(len(rules.suits)))


# ---- R3: hand values


def high(rules: Rules, hand: Cards) -> tuple[list[int], list[int]]:
    """R3.1: compares as the hands do; the first part is its kind."""
    groups = sorted(((n, rank) for rank, n in Counter(rank for rank, _ in hand).items()), reverse=True)
    shape, ranks = [n for n, _ in groups], [rank for _, rank in groups]
    flush = straight = False
    if len(hand) == 5:
        flush = rules.flushes and len({suit for _, suit in hand}) == 1
        if ranks == [14, 5, 4, 3, 2]:
            straight, ranks = True, [5, 4, 3, 2, 1]
        straight = straight or (shape == [1] * 5 and ranks[0] - ranks[4] == 4)
    if straight or flush:  # between three of a kind and a full house; together above four of a kind
        shape = [5] if straight and flush else [3, 1, 2] if flush else [3, 1, 1, 1]
    return shape, ranks


def qualifies_high(rules: Rules, hand: Cards) -> bool:
    """R3.2."""
    shape, ranks = high(rules, hand)
    if rules.high_qualifier is None or shape[0] == 1:
        return False
    lowest = 2 + _ORDER.index(rules.high_qualifier)
    return shape > [2, 1, 1, 1] or ranks[0] >= lowest


def low(rules: Rules, hand: Cards) -> list[int] | None:
    """R3.3: descending ranks, less is better; None for no low."""
    if rules.low_qualifier is None:
        return None
    ranks = sorted({rank % 13 if rank == 14 else rank for rank, _ in hand}, reverse=True)
    return ranks if len(ranks) == len(hand) and ranks[0] <= _low_rank(rules.low_qualifier) else None


def _low_rank(rank: str) -> int:
    return 1 if rank == "A" else 2 + _ORDER.index(rank)


# ---- R4: the pot


def results(rules: Rules, hands: tuple[Cards, Cards], paid: int) -> list[int]:
    """R4: net chips of a showdown for which each has paid the same."""
    highs, lows = [high(rules, hand) for hand in hands], [low(rules, hand) for hand in hands]
    qualified = [p for p in (DEALER, BIG_BLIND) if qualifies_high(rules, hands[p])]
    best_high = [p for p in qualified if highs[p] == max(highs[q] for q in qualified)]
    some_low = [value for value in lows if value is not None]
    best_low = [p for p in (DEALER, BIG_BLIND) if some_low and lows[p] == min(some_low)]
    if best_high and best_low:
        parts = [(paid, best_high), (paid, best_low)]
    elif best_high or best_low:
        parts = [(2 * paid, best_high or best_low)]
    elif rules.no_qualifier == "best_high":
        parts = [(2 * paid, [p for p in (DEALER, BIG_BLIND) if highs[p] == max(highs)])]
    else:
        parts = [(2 * paid, [DEALER, BIG_BLIND])]
    net, odd = [-paid, -paid], [BIG_BLIND, DEALER]
    for chips, winners in parts:
        for p in winners:
            net[p] += chips // len(winners)
        if chips % len(winners):
            net[odd.pop(0)] += 1
    return net


# ---- R2: the course of a hand


@dataclass(frozen=True, eq=False)
class Node:
    """A point of the course of a hand; pairs are by position."""

    rules: Rules
    paid: tuple[int, int]
    deals: tuple[tuple[int, int], ...]
    """Position and number of cards that chance deals next."""
    turn: int = DEALER
    left: Cards = ()
    """The cards never dealt."""
    hands: tuple[Cards, Cards] = ((), ())
    thrown: tuple[int, ...] = ()
    """Cards thrown in the draw in progress, the big blind's first."""
    drawing: bool = False
    round: int = 0
    moves: int = 0
    """Betting actions in this round."""
    wagers: int = 1
    """Bets and raises in this round, the big blind being one (R1.3)."""
    told: tuple[tuple[Event, ...], tuple[Event, ...]] = ((), ())
    net: tuple[int, int] | None = None
    """Net chips by position once the hand is over."""

    def __deepcopy__(self, _: Any) -> Node:
        return self  # nothing in it ever changes, and OpenSpiel copies states all the time

    @functools.cached_property
    def children(self) -> dict[int, Node]:
        """By outcome of chance or action of the player to act."""
        if self.net is not None:
            return {}
        if self.deals:
            (position, n), *later = self.deals
            return {i: self._dealt(position, new, tuple(later)) for i, new in enumerate(combinations(self.left, n))}
        if self.drawing:
            size = self.rules.hand_size
            sets = [bits for bits in range(1 << size) if bits.bit_count() <= self.rules.max_discard]
            return {THROW + bits: self._threw(bits) for bits in sets}
        me, other = self.turn, 1 - self.turn
        owes = self.paid[other] > self.paid[me]
        actions = [FOLD] * owes + [CALL] + [RAISE] * (self.wagers < self.rules.raise_cap)  # R2.4
        return {action: self._bet(action) for action in actions}

    def _tell(self, event: Event, to: int | None = None) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
        mine, others = ((*part, event) if to in (None, p) else part for p, part in enumerate(self.told))
        return mine, others

    def _dealt(self, position: int, new: Cards, later: tuple[tuple[int, int], ...]) -> Node:
        hands = list(self.hands)
        hands[position] = tuple(sorted(hands[position] + new))
        return replace(
            self,
            deals=later,
            left=tuple(card for card in self.left if card not in new),
            hands=(hands[0], hands[1]),
            told=self._tell(("dealt", new), position),
        )

    def _threw(self, bits: int) -> Node:
        me, hand = self.turn, self.hands[self.turn]
        gone = tuple(card for i, card in enumerate(hand) if bits >> i & 1)
        hands = list(self.hands)
        hands[me] = tuple(card for card in hand if card not in gone)
        node = replace(self, hands=(hands[0], hands[1]), thrown=(*self.thrown, len(gone)), told=self._tell(("threw", gone), me))
        if me == BIG_BLIND:
            node = replace(node, turn=DEALER)
            return node._announce(BIG_BLIND) if self.rules.draw_order == "sequential" else node  # R5.1
        if self.rules.draw_order == "simultaneous":
            node = node._announce(BIG_BLIND)
        node = node._announce(DEALER)
        deals = tuple((p, n) for p, n in zip((BIG_BLIND, DEALER), node.thrown, strict=True) if n)  # R2.3
        return replace(node, deals=deals, turn=BIG_BLIND, drawing=False, round=self.round + 1, moves=0, wagers=0)

    def _announce(self, who: int) -> Node:
        return replace(self, told=self._tell(("other threw", self.thrown[1 - who]), 1 - who))

    def _bet(self, action: int) -> Node:
        me, other = self.turn, 1 - self.turn
        paid = list(self.paid)
        told = self._tell(("bet", self.round, action))
        if action == FOLD:  # R2.5
            net = (-paid[DEALER], paid[DEALER]) if me == DEALER else (paid[BIG_BLIND], -paid[BIG_BLIND])
            return replace(self, net=net, told=told)
        paid[me] = max(paid)
        if action == RAISE:
            paid[me] += self.rules.stakes.bets[self.round]
        node = replace(
            self, paid=(paid[0], paid[1]), turn=other, moves=self.moves + 1, wagers=self.wagers + (action == RAISE), told=told
        )
        if action == RAISE or node.moves < 2:
            return node
        if self.round < self.rules.draws:
            return replace(node, drawing=True, turn=BIG_BLIND)
        won = results(self.rules, self.hands, paid[me])  # R2.6
        return replace(node, net=(won[0], won[1]))


def start(rules: Rules) -> Node:
    """Blinds are posted, nothing is dealt."""
    n = rules.hand_size
    return Node(rules, rules.stakes.blinds, ((BIG_BLIND, n), (DEALER, n)), left=deck(rules))


# ---- OpenSpiel


class ArchieState(pyspiel.State):  # type: ignore[misc]
    """A node, as OpenSpiel asks for it."""

    def __init__(self, game: ArchieGame) -> None:
        super().__init__(game)
        self.node = game.root

    def current_player(self) -> int:
        node = self.node
        if node.net is not None:
            return int(pyspiel.PlayerId.TERMINAL)
        return int(pyspiel.PlayerId.CHANCE) if node.deals else node.turn

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.node.children)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        outcomes = self.node.children
        return [(i, 1 / len(outcomes)) for i in outcomes]

    def _apply_action(self, action: int) -> None:
        self.node = self.node.children[action]

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{player}: {action}"

    def information_state_string(self, player: int | None = None) -> str:
        player = self.node.turn if player is None else player
        return f"{player} {self.node.told[player]}"

    def is_terminal(self) -> bool:
        return self.node.net is not None

    def returns(self) -> list[float]:
        return list(map(float, self.node.net or (0, 0)))

    def __str__(self) -> str:
        return str(self.node.told)


class ArchieGame(pyspiel.Game):  # type: ignore[misc]
    """The game of one rules value."""

    def __init__(self, rules: Rules) -> None:
        self.root = start(rules)
        kind = pyspiel.GameType(
            short_name="python_archie",
            long_name="Archie",
            dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
            chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
            information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
            utility=pyspiel.GameType.Utility.ZERO_SUM,
            reward_model=pyspiel.GameType.RewardModel.TERMINAL,
            max_num_players=2,
            min_num_players=2,
            provides_information_state_string=True,
            provides_information_state_tensor=False,
            provides_observation_string=False,
            provides_observation_tensor=False,
        )
        most = float(rules.reserve)
        info = pyspiel.GameInfo(
            num_distinct_actions=THROW + (1 << rules.hand_size),
            max_chance_outcomes=comb(rules.deck_size, rules.hand_size),
            num_players=2,
            min_utility=-most,
            max_utility=most,
            utility_sum=0.0,
            max_game_length=2 * (rules.raise_cap + 2) * rules.rounds,
        )
        super().__init__(kind, info, {})

    def new_initial_state(self) -> ArchieState:
        return ArchieState(self)

    def make_py_observer(self, kind: Any = None, parameters: Any = None) -> ArchieObserver:
        return ArchieObserver()


class ArchieObserver:
    """Information states as text; the compiled best response insists on an observer that also has numbers."""

    def __init__(self) -> None:
        self.tensor, self.dict = np.zeros(0, np.float32), dict[str, Any]()

    def set_from(self, state: ArchieState, player: int) -> None:
        """There are no numbers."""

    def string_from(self, state: ArchieState, player: int) -> str:
        return state.information_state_string(player)
