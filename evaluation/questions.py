"""Every information set of an exact game as the row a player sees there, written by the engine playing a hand up to it.

A row shows nothing of the other's cards, so any deal that agrees with the player's own history will do.  In class form the
cards of each history are one of many assignments of suits, drawn anew at each call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import BIG_BLIND, DEALER, DISCARD, GAME
from archie_env.actions import describe_legal
from archie_env.cards import format_cards
from archie_env.observation import decode, rulebook, width
from archie_env.rules import Rules
from evaluation import _kernels
from evaluation.betting import Ints
from evaluation.exact_game import ExactGame


@dataclass(frozen=True)
class Rows:
    """What a player sees and may do in ``n`` information sets."""

    observations: NDArray[np.int8]
    """``(n, d)``."""
    masks: NDArray[np.int8]
    """``(n, a)``."""


@dataclass(frozen=True)
class Deal:
    """Hands dealt so that one player has certain histories, and what both throw."""

    player: int
    decks: NDArray[np.int8]
    """``(n, 52)``, in the order dealt."""
    throws: NDArray[np.int16]
    """``(n, 2)``: discard actions by position."""


class Questions:
    """Makes rows for the information sets of a game.

    Args:
        game: any exact game.
        seed: of the suits in class form.
    """

    def __init__(self, game: ExactGame, seed: int = 0) -> None:
        self.game, self.rules = game, game.rules
        self._rng = np.random.default_rng(seed)
        self._record = np.zeros(1, GAME)
        self._books = rulebook(self.rules)
        self._places = [self._dealing_order(player) for player in (DEALER, BIG_BLIND)]
        table = game.discard_of_subset
        matches = table[:, None, :] == np.arange(game.discards)[None, :, None]
        self._ways = matches.sum(axis=2)  # (hands, discards): subsets of the hand that are this discard
        self._subsets = np.argsort(~matches, axis=2, kind="stable")  # those subsets first

    def _dealing_order(self, player: int) -> Ints:
        """``(counts, counts, deck)``, by own and other's cards thrown: which of "own hand, own new cards, rest" comes when."""
        game, size = self.game, self.rules.hand_size
        order = np.empty((game.counts, game.counts, self.rules.deck_size), np.int64)
        for a in range(game.counts):
            rest = size + a
            for b in range(game.counts):
                hands = [0] * (2 * size)
                hands[1 - player :: 2] = range(size)  # one at a time, the big blind first
                hands[player::2] = range(rest, rest + size)
                mine, other = list(range(size, rest)), list(range(rest + size, rest + size + b))
                new = mine + other if player == BIG_BLIND else other + mine
                order[a, b] = [*hands, *new, *range(rest + size + b, self.rules.deck_size)]
        return order

    def deal(self, player: int, histories: Ints, other_throws: Ints) -> Deal:
        """Deals ``(n,)`` in which a player has these histories and the other throws so many cards."""
        game, lists, size = self.game, self.game.histories, self.rules.deck_size
        hand, discard = lists.hand[histories], lists.discard[histories]
        order = np.broadcast_to(np.arange(game.multiplicity), (len(histories), game.kinds, game.multiplicity))
        if game.multiplicity > 1:
            order = self._rng.permuted(order, axis=2)
        held = game.hands[hand][:, :, None]
        seen = held + lists.replacement[histories][:, :, None]
        owner = 2 - (order < held).astype(np.int8) - (order < seen)
        cards = np.argsort(owner.reshape(len(histories), size), axis=1, kind="stable")
        places = self._places[player][lists.thrown[histories], other_throws]
        decks = np.zeros((len(histories), 52), np.int8)
        decks[:, :size] = np.array(self.rules.deck, np.int8)[np.take_along_axis(cards, places, axis=1)]
        choice = self._rng.integers(self._ways[hand, discard])
        throws = np.empty((len(histories), 2), np.int16)
        throws[:, player] = DISCARD + self._subsets[hand, discard, choice]
        throws[:, 1 - player] = DISCARD + (1 << other_throws) - 1
        return Deal(player, decks, throws)

    def deal_hands(self, player: int) -> Deal:
        """A deal for every first hand; both stand pat."""
        pat = np.flatnonzero(self.game.histories.thrown == 0)
        return self.deal(player, pat, np.zeros(len(pat), np.int64))

    def first(self, node: int) -> Rows:
        """The first round's node, for every hand."""
        tree = self.game.first
        assert tree is not None
        return self._play(self.deal_hands(int(tree.player[node])), tree.path[node])

    def draw(self, player: int, line: int, told: int) -> Rows:
        """The discard after one line of the first round, for every hand; ``told``: the other's count where that is known."""
        deal = self.deal_hands(player)
        deal.throws[:, BIG_BLIND] = DISCARD + (1 << told) - 1
        return self._play(deal, self.game.lines[line], (BIG_BLIND,) if player == DEALER else ())

    def last(self, deal: Deal, line: int, node: int) -> Rows:
        """The last round's node after one line of the first, for every deal."""
        thrown = (BIG_BLIND, DEALER) if self.rules.draws else ()
        return self._play(deal, self.game.lines[line], thrown, self.game.last.path[node])

    def _play(self, deal: Deal, line: tuple[int, ...], throwers: tuple[int, ...] = (), path: tuple[int, ...] = ()) -> Rows:
        n = len(deal.decks)
        paths = np.empty((n, len(line) + len(throwers) + len(path)), np.int16)
        paths[:, : len(line)] = line
        paths[:, len(line) : len(line) + len(throwers)] = deal.throws[:, throwers]
        paths[:, len(line) + len(throwers) :] = path
        rows = Rows(np.empty((n, width(self.rules)), np.int8), np.empty((n, self.rules.actions), np.int8))
        bad = _kernels.play_paths(self._record, self._books, deal.decks, paths, rows.observations, rows.masks)
        assert bad < 0, f"deck {deal.decks[bad]}: {paths[bad]} cannot be played"
        return rows


def position_text(row: NDArray[np.int8], mask: NDArray[np.int8], rules: Rules) -> str:
    """An information set in one line."""
    seen = decode(row, rules)
    phase = f"{'draw' if seen.phase & 1 else 'round'} {seen.phase // 2 + 1}"
    held = ", then ".join(format_cards(cards, " ") for cards in seen.held)
    wagers = ", ".join(" ".join(("check/call", "bet/raise")[w - 1] for w in betting) or "none" for betting in seen.wagers)
    drawn = f", threw {seen.own_draws[0]}" if seen.own_draws else ""
    if seen.other_draws:
        drawn += f", the other threw {seen.other_draws[0]}"
    return (
        f"{'small blind' if seen.dealer else 'big blind'}, {phase}, held {held}{drawn}, "
        f"betting by round: {wagers}; pot {seen.pot}, {seen.owed} to call; legal: {describe_legal(mask)}"
    )
