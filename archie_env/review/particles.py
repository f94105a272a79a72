"""Particles: weighted guesses of the other seat's hidden cards, from what one seat has seen of a hand.

A particle is a whole hand in the engine, dealt per seat: the seat's own cards as it knows them, the other's cards and all cards
to come at random.  Each public action of the other weighs the particles by the probability that the reviewer's strategy gives
it; a draw weighs by the probability of the number of cards thrown, and samples which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core import table
from archie_env._core.state import DECK, DISCARD, MAX_HAND
from archie_env.batch import Hands
from archie_env.errors import ArchieError, described
from archie_env.policy import Masks, Observations, Policy, name_of, sample
from archie_env.rules import Rules

Floats = NDArray[np.float64]

DOUBT: Final = 0.001
"""Share of uniform play mixed into the reviewer's probabilities, so that one odd action does not rule out every particle."""
THROWN: Final = np.array([-1] * DISCARD + [mask.bit_count() for mask in range(2**MAX_HAND)])
"""Cards thrown by each action; -1 for a betting action."""


def checked_probabilities(reviewer: Policy, rows: Observations, masks: Masks) -> NDArray[np.floating[Any]]:
    """``(n, a)``: the reviewer's probabilities; raises `ArchieError` where it gives none for these rules."""
    where = f"reviewer {name_of(reviewer)!r}"
    try:
        answer = reviewer.probabilities(rows, masks)
    except Exception as error:
        raise ArchieError(f"{where}: probabilities raised {described(error)}: expected a player that gives them") from error
    p: NDArray[Any] = np.asarray(answer)
    if p.shape != masks.shape or not np.issubdtype(p.dtype, np.floating):
        raise ArchieError(f"{where}: probabilities {p.dtype}{p.shape}: expected floats of shape {masks.shape}")
    # not NaN either: every comparison with it is false
    if not (p.min(initial=0) >= 0 and (np.abs((p * masks).sum(axis=1) - 1) < 1e-3).all()):
        raise ArchieError(f"{where}: expected probabilities of legal actions, which sum to 1")
    return p


class Particles(Hands):
    """``n`` hands that a seat can't tell apart, with weights.

    Args:
        n: number of particles.
        rules: the rules of the hand.
        dealer: seat that deals.
        seat: seat that looks.
        own: its first cards, as the engine counts them.
        rng: the source of all cards that the seat does not know.
    """

    def __init__(self, n: int, rules: Rules, dealer: int, seat: int, own: Sequence[int], rng: np.random.Generator) -> None:
        super().__init__(np.zeros(n, np.int64), np.full(n, dealer), rules, 0)
        self.seat, self.rng = seat, rng
        self._mine, self._other = seat ^ dealer, 1 - seat ^ dealer  # positions
        self.weights: Floats = np.full(n, 1 / n)
        """``(n,)``: they sum to 1, or are all 0 when no particle fits what was seen."""
        self.families = np.arange(n)
        """``(n,)``: the first deal from which each particle descends."""
        size, hand = rules.deck_size, rules.hand_size
        firsts = np.arange(2 * hand)
        theirs = firsts[firsts % 2 != self._own_parity]
        order = np.full(DECK, 0, np.int8)
        order[:size][firsts[firsts % 2 == self._own_parity]] = own
        order[:size][np.setdiff1d(np.arange(size), firsts[firsts % 2 == self._own_parity])] = [
            card for card in range(size) if card not in own
        ]
        table.deal_table(self.games[:1], self._books, 0, dealer, order, size)
        table.settle_table(self.games[:1], self._books)
        self.games[:] = self.games[0]
        self._shuffle(np.concatenate([theirs, self._to_come()]), hand)
        held = np.left_shift(np.uint64(1), self.games["deck"][:, theirs].astype(np.uint64))
        self.games["held"][:, self._other, 0] = np.bitwise_or.reduce(held, axis=1)

    @property
    def _own_parity(self) -> int:
        """First cards are dealt in turn, the big blind's first (R5.3)."""
        return 0 if self._mine else 1

    def _to_come(self) -> NDArray[np.int64]:
        """Places in the deck of cards that nobody holds or has held; the same in every particle."""
        hand, reach = self.rules.hand_size, self.rules.draws * self.rules.max_discard
        dealer, big_blind = self.games["next"][0].tolist()
        seen = [*range(2 * hand), *range(2 * hand, big_blind), *range(2 * hand + reach, dealer)]
        return np.setdiff1d(np.arange(self.rules.deck_size), seen)

    def _shuffle(self, places: NDArray[np.int64], first: int) -> None:
        """Put cards at random, out of those at ``places``, in the ``first`` of these places."""
        deck, every = self.games["deck"], np.arange(len(self))
        for k, place in enumerate(places[:first]):
            at = places[self.rng.integers(k, len(places), len(self))]
            card = deck[every, at]
            deck[every, at] = deck[:, place]
            deck[:, place] = card

    def _weigh(self, likelihood: Floats) -> None:
        """Multiply the weights, and draw the particles anew where few of them carry most."""
        self.weights = self.weights * likelihood
        total = self.weights.sum()
        if total <= 0:
            self.weights[:] = 0
            return
        self.weights /= total
        if 1 / (self.weights**2).sum() < len(self) / 2:
            pick = self.pick(len(self), self.rng)
            self.games[:], self.families = self.games[pick], self.families[pick]
            self.weights[:] = 1 / len(self)

    def pick(self, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``(m,)``: particles drawn by weight, evenly (systematic resampling)."""
        ends = self.weights.cumsum()
        places: NDArray[np.int64] = np.searchsorted(ends, (rng.random() + np.arange(m)) / m * ends[-1]).clip(max=len(self) - 1)
        return places

    @property
    def effective(self) -> float:
        """Effective number of independent particles: one over the sum of squares of the families' weights."""
        squares = float((np.bincount(self.families, self.weights) ** 2).sum())
        return 1 / squares if squares else 0.0

    def other_bets(self, action: int, reviewer: Policy) -> None:
        """The other seat takes a betting action."""
        places, rows, masks = self.waiting(1 - self.seat)
        p = checked_probabilities(reviewer, rows, masks)[:, action]
        self.play(places, np.full(len(self), action))
        self._weigh((1 - DOUBT) * p + DOUBT / masks[0].sum())  # the same actions are legal in every particle

    def other_draws(self, count: int, reviewer: Policy) -> None:
        """The other seat throws a number of cards that is known by now."""
        places, rows, masks = self.waiting(1 - self.seat)
        p = self._believed(reviewer, rows, masks)
        p[:, THROWN[: p.shape[1]] != count] = 0
        self.play(places, sample(p, self.rng))
        self._weigh(p.sum(axis=1, dtype=np.float64))

    def other_commits(self, reviewer: Policy) -> None:
        """The other seat throws cards, and nobody knows how many yet."""
        places, rows, masks = self.waiting(1 - self.seat)
        self.play(places, sample(self._believed(reviewer, rows, masks), self.rng))

    def own_acts(self, action: int) -> None:
        """The seat itself acts."""
        self.play(np.arange(len(self)), np.full(len(self), action))

    def own_cards(self, cards: Sequence[int]) -> None:
        """The seat's next replacement cards will be these: particles in which the other has had one of them are ruled out."""
        free = self._to_come()
        next_ = int(self.games["next"][0, self._other])
        theirs = free[(free >= next_) & (free < next_ + self.rules.max_discard)]
        self._shuffle(np.concatenate([theirs, np.setdiff1d(free, theirs)]), len(theirs))
        deck, every = self.games["deck"], np.arange(len(self))
        possible = np.ones(len(self))
        start = int(self.games["next"][0, self._mine])
        for place, card in enumerate(cards, start):
            at = (deck == card)[:, : self.rules.deck_size].argmax(axis=1)
            fits = np.isin(at, free)
            possible[~fits] = 0
            rows, found = every[fits], at[fits]
            deck[rows, found] = deck[rows, place]
            deck[rows, place] = card
        self._weigh(possible)

    def drawn(self, m: int, rng: np.random.Generator) -> Particles:
        """``m`` particles of equal weight, with the cards to come shuffled once more."""
        pick = self.pick(m, rng)
        some = Particles.__new__(Particles)
        some.__dict__.update(self.__dict__)
        some.rng, some.games, some.families = rng, self.games[pick], self.families[pick]
        some.weights, some._index = np.full(m, 1 / m), np.zeros(m, np.int64)
        free = some._to_come()
        some._shuffle(free, len(free))
        return some

    def copied(self) -> Particles:
        """The same particles, to be played on independently of these."""
        copy = Particles.__new__(Particles)
        copy.__dict__.update(self.__dict__)
        copy.games, copy._index = self.games.copy(), self._index.copy()
        return copy

    @staticmethod
    def _believed(reviewer: Policy, rows: Observations, masks: Masks) -> NDArray[np.floating[Any]]:
        p = checked_probabilities(reviewer, rows, masks)
        return (1 - DOUBT) * p + np.float32(DOUBT / masks[0].sum()) * masks
