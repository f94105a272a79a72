"""Games of at most one draw as lists: hands, discards, private histories, betting lines, and what a showdown pays.

Betting trees are walked and hands are valued by the engine itself, so no rule is stated here a second time.

Cards that no player can tell apart form a *kind*.  In full form every card is its own kind; in class form a rank is, which is
exact for policies that ignore suits where flushes do not count.  A hand is how many cards of each kind it holds.  A *private
history* is what one player knows of its own cards at the end: the first hand, what it threw, what it was dealt instead.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from archie_env._core.showdown import award, high_value, low_value
from archie_env._core.state import BIG_BLIND, DEALER, DISCARD, MAX_HAND, NO_CARD
from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.observation import rulebook
from archie_env.rules import Rules, as_rules
from evaluation.betting import Betting, Floats, Ints, walk

Form = Literal["class", "full"]
"""What counts as one card: a rank, or a card."""

MOST_HISTORIES: Final = 1_000_000
"""Private histories of a player beyond which a game is refused: a million of them need some ten gigabytes."""


def multisets(total: int, limits: Sequence[int]) -> NDArray[np.int8]:
    """``(n, kinds)``: every choice of ``total`` cards with at most ``limits[k]`` of kind k, the first kinds rising last."""

    def choose(k: int, left: int) -> Iterator[tuple[int, ...]]:
        if k == len(limits):
            if left == 0:
                yield ()
            return
        for n in range(min(limits[k], left), -1, -1):
            for rest in choose(k + 1, left - n):
                yield (n, *rest)

    return np.array(list(choose(0, total)), np.int8).reshape(-1, len(limits))


@dataclass(frozen=True)
class Histories:
    """Private histories, ascending by hand, then discard: arrays ``(histories,)``."""

    hand: NDArray[np.int32]
    discard: NDArray[np.int32]
    """Among the discards of that hand."""
    thrown: NDArray[np.int8]
    """Cards thrown."""
    replacement: NDArray[np.int8]
    """``(histories, kinds)``: the cards dealt instead."""
    final: NDArray[np.int32]
    """The hand held in the last betting round."""
    seen: NDArray[np.int32]
    """Which set of cards, first hand and replacements together: all that card removal depends on."""
    ways: Floats
    """1 over the orders in which one kind's cards can be divided between hand and replacements."""
    group: Ints
    """``(groups,)``: first history of each pair of hand and discard."""

    def __len__(self) -> int:
        return len(self.hand)


class ExactGame:
    """The information sets of a game of at most one draw.

    Args:
        rules: a preset's name or a `Rules` value.
        form: ``class`` treats the cards of a rank as one kind, ``full`` every card.

    Raises:
        ArchieError: for rules this cannot measure, naming what is not supported.
    """

    def __init__(self, rules: Rules | str = "mini", form: Form = "class") -> None:
        self.rules = rules = as_rules(rules)
        self.form: Form = form
        if form not in ("class", "full"):
            raise ArchieError(f"form {form!r}: expected 'class' or 'full'")
        if rules.draws > 1:
            raise ArchieError(f"draws {rules.draws}: games of at most one draw can be measured exactly, such as mini and midi")
        if form == "class" and rules.hand_size == MAX_HAND and rules.flushes:
            raise ArchieError("form 'class': flushes count under these rules, so suits matter; expected form 'full'")
        self.multiplicity = len(rules.suits) if form == "class" else 1
        """Cards of a kind."""
        self.kinds = rules.deck_size // self.multiplicity
        self.counts = rules.max_discard + 1 if rules.draws else 1
        """Numbers of cards a player may throw, from none."""
        self._refuse_the_large()
        self.hands = multisets(rules.hand_size, [self.multiplicity] * self.kinds)
        """``(hands, kinds)``."""
        self._list_discards()
        self._list_histories()
        self._list_betting()
        self._value_hands()
        pairs = comb(rules.deck_size, rules.hand_size) * comb(rules.deck_size - rules.hand_size, rules.hand_size)
        rest = rules.deck_size - 2 * rules.hand_size
        self.deal_chance = np.array(
            [[1 / (pairs * comb(rest, a) * comb(rest - a, b)) for b in range(self.counts)] for a in range(self.counts)]
        )
        """``(counts, counts)``: chance of one deal of certain cards, by how many each player throws."""
        self.told = (self.counts if rules.draw_order == "sequential" else 1, 1)
        """By player: how many things it may have heard about the other's discard before its own."""

    def _refuse_the_large(self) -> None:
        rules, m, kinds = self.rules, self.multiplicity, self.kinds
        hands = _count_multisets(rules.hand_size, m, kinds)
        histories = sum(
            hands * comb(min(rules.hand_size, kinds), a) * _count_multisets(a, m, max(1, kinds - rules.hand_size // m))
            for a in range(self.counts)
        )
        if histories > 4 * MOST_HISTORIES:
            raise ArchieError(
                f"rules {rules.name!r} in {self.form} form: about {histories:,} private histories, "
                f"more than can be measured exactly"
            )

    def _list_discards(self) -> None:
        lists = [np.concatenate([multisets(a, hand.tolist()) for a in range(self.counts)]) for hand in self.hands]
        self.discards = max(map(len, lists))
        """Most discards of a hand."""
        self.discard = np.zeros((len(self.hands), self.discards, self.kinds), np.int8)
        """``(hands, discards, kinds)``: the cards thrown; from the lists' ends on zeros."""
        self.legal_discard = np.zeros((len(self.hands), self.discards), np.bool_)
        """``(hands, discards)``."""
        subsets = 1 << self.rules.hand_size
        self.discard_of_subset = np.full((len(self.hands), subsets), -1, np.int64)
        """``(hands, 2^cards)``: the discard that throws the ascending hand's cards of these bits, -1 for too many."""
        for i, discards in enumerate(lists):
            self.discard[i, : len(discards)] = discards
            self.legal_discard[i, : len(discards)] = True
            number = {tuple(d): j for j, d in enumerate(discards.tolist())}
            slots = np.repeat(np.arange(self.kinds), self.hands[i])
            for bits in range(subsets):
                thrown = slots[[bits >> s & 1 == 1 for s in range(len(slots))]]
                self.discard_of_subset[i, bits] = number.get(tuple(np.bincount(thrown, minlength=self.kinds).tolist()), -1)

    def _list_histories(self) -> None:
        m, size = self.multiplicity, self.rules.hand_size
        self.base = (m + 1) ** np.arange(self.kinds, dtype=np.int64)
        """``(kinds,)``: a set of cards has the number ``counts @ base``."""
        seen = [multisets(size + a, [m] * self.kinds) for a in range(self.counts)]
        self.seen = np.concatenate(seen)
        """``(seen, kinds)``: sets of cards that a player can have seen, by size."""
        self.seen_start = np.cumsum([0, *map(len, seen)])
        """``(counts + 1,)``: where those begin that go with a number of cards thrown."""
        hand_at, seen_at = _finder(self.hands @ self.base), _finder(self.seen @ self.base)
        hands, discards, thrown, replacements = [], [], [], []
        for i, hand in enumerate(self.hands):
            left = (m - hand).tolist()
            new = [multisets(a, left) for a in range(self.counts)]
            for j in np.flatnonzero(self.legal_discard[i]):
                a = int(self.discard[i, j].sum())
                hands.append(np.full(len(new[a]), i, np.int32))
                discards.append(np.full(len(new[a]), j, np.int32))
                thrown.append(np.full(len(new[a]), a, np.int8))
                replacements.append(new[a])
        hand, discard, replacement = np.concatenate(hands), np.concatenate(discards), np.concatenate(replacements)
        if len(hand) > MOST_HISTORIES:
            raise ArchieError(f"rules {self.rules.name!r} in {self.form} form: {len(hand):,} private histories, too many")
        orders = np.array([factorial(n) for n in range(m + 1)], float)
        self.histories = Histories(
            hand=hand,
            discard=discard,
            thrown=np.concatenate(thrown),
            replacement=replacement,
            final=hand_at((self.hands[hand] - self.discard[hand, discard] + replacement) @ self.base),
            seen=seen_at((self.hands[hand] + replacement) @ self.base),
            ways=1 / (orders[self.hands[hand]] * orders[replacement]).prod(axis=1),
            group=np.cumsum([0, *map(len, hands[:-1])]),
        )
        self.hand_ways = 1 / orders[self.hands].prod(axis=1)
        """``(hands,)``: as `Histories.ways`, before any replacement."""

    def _list_betting(self) -> None:
        start = Game(self.rules, seed=0, dealer=0)
        self.first: Betting | None = walk(start, 0) if self.rules.draws else None
        """The betting round before the draw; None in a game without one."""
        if self.first is None:
            self.lines: tuple[tuple[int, ...], ...] = ((),)
            """Betting of the first round in all ways that lead to the draw."""
            self.line_paid: Ints = np.zeros(1, np.int64)
            """``(lines,)``: chips that each player has paid by then."""
            self.last = walk(start, 0)
            """The betting round before the showdown, the same after every line."""
            return
        folds = self.first.folds
        self.lines, self.line_paid = self.first.end_path[folds:], self.first.paid[folds:, 0]
        trees = []
        for line, paid in zip(self.lines, self.line_paid.tolist(), strict=True):
            game = start.clone()
            for action in (*line, DISCARD, DISCARD):
                game.apply(action)
            trees.append(walk(game, paid))
        self.last = trees[0]
        if not all(tree.same_tree(self.last) for tree in trees):
            raise ArchieError("the last betting round depends on the first: not supported")

    def _value_hands(self) -> None:
        book = rulebook(self.rules)[0]
        values = np.array([self._engine_values(book, hand) for hand in self.hands])
        classes, strength = np.unique(values, axis=0, return_inverse=True)
        self.strength = strength.reshape(-1).astype(np.int32)
        """``(hands,)``: hands of equal strength win the same against everything."""
        self.classes = classes
        """``(strengths, 2)``: high and low value, as the engine numbers them."""

        def won(paid: int) -> Floats:
            """What a dealer's strength wins from a big blind's, in shares of what each paid."""
            chips = [[sum(award(book, paid, h, g, w, v, False)) - paid for g, v in classes] for h, w in classes]
            return np.array(chips, float) / paid

        self.pays = won(2)
        """``(strengths, strengths)``: dealer's net at showdown against the big blind's strength, times what each paid."""
        chips = self.line_paid[:, None] + self.last.paid[self.last.folds :, 0]
        if (chips % 2).any() and not np.array_equal(won(1), self.pays):
            raise ArchieError("an odd chip can fall to a tied part of the pot under these rules: not supported")

    def _engine_values(self, book: Any, hand: NDArray[np.int8]) -> tuple[int, int]:
        places = np.full(MAX_HAND, NO_CARD, np.int8)
        places[: self.rules.hand_size] = self.cards_of(hand)
        return int(high_value(book, places)), int(low_value(book, places))

    def cards_of(self, counts: NDArray[np.int8]) -> list[int]:
        """Cards with these counts of each kind, ascending, the lowest suits of a rank."""
        deck = np.array(self.rules.deck).reshape(self.kinds, self.multiplicity)
        return [int(card) for kind, n in enumerate(counts) for card in deck[kind, :n]]

    @functools.cached_property
    def information_sets(self) -> int:
        """Decisions a player can tell apart, of both players."""
        cells = len(self.lines) * len(self.histories) * self.counts
        sets = cells * len(self.last.player)
        if self.first is not None:
            sets += len(self.first.player) * len(self.hands) + (self.told[DEALER] + self.told[BIG_BLIND]) * len(
                self.lines
            ) * len(self.hands)
        return sets


def _finder(numbers: Ints) -> Any:
    """A function from the numbers of sets of cards to their places."""
    order = np.argsort(numbers)

    def find(wanted: Ints) -> NDArray[np.int32]:
        return order[np.searchsorted(numbers, wanted, sorter=order)].astype(np.int32)

    return find


def _count_multisets(total: int, limit: int, kinds: int) -> int:
    """How many choices of ``total`` cards of ``kinds`` kinds there are with at most ``limit`` of each."""
    ways = [1] + [0] * total
    for _ in range(kinds):
        ways = [sum(ways[n - k] for k in range(min(limit, n) + 1)) for n in range(total + 1)]
    return ways[total]
