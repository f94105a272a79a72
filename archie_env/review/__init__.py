"""Review of a hand: what a reviewer's strategy does at each decision of a seat, and what each action was worth in chips.

A value is the mean net result of the hand when both play on as the reviewer does, over the cards that the seat could not see,
weighed by how the reviewer would have played them.  Only what the seat knew at the decision enters.

>>> from archie_env import Game
>>> game = Game("mini", seed=4, dealer=0)
>>> while not game.over:
...     game.apply(1 if not game.drawing else 3)
>>> review = review_hand(game, 0, "uniform", particles=500)
>>> [decision.kind for decision in review.decisions]
['bet', 'draw', 'bet']
>>> round(review.luck - review.given_up, 6) == game.result.net[0]
True
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from archie_env.errors import ArchieError
from archie_env.events import Event
from archie_env.game import Game
from archie_env.policy import Policy, as_policy, name_of
from archie_env.review.particles import Floats, Particles, checked_probabilities
from archie_env.validation import check_seat, whole_number

__all__ = ["ENOUGH", "PARTICLES", "ActionReview", "DecisionReview", "Review", "review_hand"]

PARTICLES: Final = 8192
"""Default number of particles of the first try."""
MORE: Final = 4
"""A decision with too few effective particles is tried once more, with this many times the particles."""
ENOUGH: Final = 50
"""Nothing is said about values below this effective number of particles."""
RUNOUTS: Final = 1024
"""Hands played on for each action."""
SHOWN: Final = 8
"""Most actions of a decision that are looked at."""
LEAST: Final = 0.01
"""Least probability of a draw that is looked at though it was not played; every legal betting action is."""

Verdict = Literal["best", "as good", "worse"]


@dataclass(frozen=True, slots=True)
class ActionReview:
    """One action at a decision."""

    action: int
    probability: float
    """What the reviewer's strategy gives it."""
    value: float | None
    """Expected net chips of the whole hand; None where too few particles remain."""
    loss: float | None
    """Chips behind the best action."""
    error: float | None
    """Half width of the 95 % interval of the loss."""
    verdict: Verdict | None
    """``as good`` where the interval of the loss reaches 0."""
    played: bool


@dataclass(frozen=True, slots=True)
class DecisionReview:
    """One decision of the seat."""

    move: int
    """Index of its event in `Game.history`."""
    round: int
    """Betting round from 1; a draw belongs to the round before it."""
    kind: Literal["bet", "draw"]
    effective: float
    """Effective number of particles."""
    equity: float | None
    """Expected share of the pot if nobody bet any more."""
    actions: tuple[ActionReview, ...]
    """The best first."""


@dataclass(frozen=True, slots=True)
class Review:
    """What a seat's decisions in one hand were worth."""

    reviewer: str
    seat: int
    decisions: tuple[DecisionReview, ...]
    given_up: float
    """Chips lost by actions that were worse than the best, beyond the error."""
    given_up_error: float
    """Half width of its 95 % interval."""
    luck: float
    """The net result is ``luck - given_up``: the result, had nothing been given up."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON holds them."""
        values = asdict(self)
        return values | {"decisions": [d | {"actions": list(d["actions"])} for d in values["decisions"]]}


@dataclass(frozen=True)
class _Seen:
    """A finished hand as one seat saw it."""

    game: Game
    seat: int
    reviewer: Policy
    particles: int
    seed: int

    def decisions(self, only: frozenset[int] | None = None, more: int = 1) -> list[DecisionReview]:
        """Review the decisions at the moves in ``only``, by default all, with ``more`` times the particles."""
        game, history = self.game, self.game.history
        number = {card: i for i, card in enumerate(game.rules.deck)}
        dealt = {e.round: [number[card] for card in e.cards] for e in history if e.kind == "deal" and e.seat == self.seat}
        rng = np.random.default_rng((self.seed, more))
        guesses = Particles(self.particles * more, game.rules, game.dealer, self.seat, dealt[0], rng)
        secret: int | None = None  # cards that the other has committed to throw, while their number is not public
        reviews: list[DecisionReview] = []
        at = Game(game.rules, dealer=game.dealer, deck=game.deck, replacements=game.replacements)
        last = max(only, default=-1) if only is not None else len(history)
        for move, event in enumerate(history):
            if event.action is None or move > last:
                continue
            if event.seat == self.seat:
                if only is None or move in only:
                    reviews.append(self._decision(move, event, at, guesses, secret is not None, more))
                if event.kind == "draw":
                    if event.round + 1 in dealt:
                        guesses.own_cards(dealt[event.round + 1])
                    if secret is not None:
                        guesses.other_draws(secret, self.reviewer)
                        secret = None
                guesses.own_acts(event.action)
            elif event.kind == "bet":
                guesses.other_bets(event.action, self.reviewer)
            elif game.rules.draw_order == "simultaneous" and not self._drew(move, event):
                secret = len(event.cards)
            else:
                guesses.other_draws(len(event.cards), self.reviewer)
            at.apply(event.action)
        return reviews

    def _drew(self, move: int, event: Event) -> bool:
        """Whether this seat has drawn in the same draw before ``move``."""
        return any(e.kind == "draw" and (e.seat, e.round) == (self.seat, event.round) for e in self.game.history[:move])

    def _decision(self, move: int, event: Event, at: Game, guesses: Particles, committed: bool, more: int) -> DecisionReview:
        """Review one decision; ``at`` stands before it."""
        assert event.action is not None
        rng = np.random.default_rng((self.seed, more, move))
        effective = guesses.effective
        mask = at.mask(self.seat)[None]
        p = checked_probabilities(self.reviewer, at.observation(self.seat)[None], mask)[0]
        ranked = [int(a) for a in np.argsort(-p, kind="stable") if mask[0, a] and a != event.action]
        actions = [event.action, *[a for a in ranked if event.kind == "bet" or p[a] >= LEAST][: SHOWN - 1]]
        kind: Literal["bet", "draw"] = "draw" if event.kind == "draw" else "bet"
        if effective < ENOUGH:
            silent = [ActionReview(a, float(p[a]), None, None, None, None, a == event.action) for a in actions]
            silent.sort(key=lambda action: -action.probability)
            return DecisionReview(move, event.round + 1, kind, effective, None, tuple(silent))
        some = guesses.drawn(RUNOUTS, rng)
        if committed:
            some.other_commits(self.reviewer)
        results = [self._results(some, action, rng) for action in actions]
        best = max(range(len(actions)), key=lambda k: results[k].mean())
        reviews = []
        for action, result in zip(actions, results, strict=True):
            behind = results[best] - result
            loss, error = float(behind.mean()), 1.96 * _standard_error(behind, some.families)
            verdict: Verdict = "best" if action == actions[best] else "as good" if loss <= error else "worse"
            reviews.append(
                ActionReview(action, float(p[action]), float(result.mean()), loss, error, verdict, action == event.action)
            )
        reviews.sort(key=lambda action: (action.loss or 0.0, -action.probability))
        return DecisionReview(move, event.round + 1, kind, effective, self._equity(some, rng), tuple(reviews))

    def _results(self, some: Particles, action: int, rng: np.random.Generator) -> Floats:
        """``(m,)``: net chips of the seat when it takes an action and both play on as the reviewer does."""
        hands = some.copied()
        hands.own_acts(action)
        hands.play_out([self.reviewer, self.reviewer], [rng, rng])
        return hands.net[:, self.seat].astype(np.float64)

    def _equity(self, some: Particles, rng: np.random.Generator) -> float:
        """The seat's share of the pot if both only check and call from here, and draw as the reviewer does."""
        hands = some.copied()

        def take_turn(seat: int) -> int:
            places, rows, masks = hands.waiting(seat)
            if len(places):
                drawing = masks[0, 3:].any()
                hands.play(places, self.reviewer.act(rows, masks, rng) if drawing else np.ones(len(places), np.int64))
            return len(places)

        hands.take_turns(take_turn)
        paid = hands.games["paid"].astype(np.float64)
        return float(((hands.net[:, self.seat] + paid[:, 0]) / paid.sum(axis=1)).mean())  # both have paid the same


def _standard_error(values: Floats, families: NDArray[np.int64]) -> float:
    """Standard error of a mean whose values are independent between families only."""
    sums = np.bincount(np.unique(families, return_inverse=True)[1], values - values.mean())
    return float(np.sqrt((sums**2).sum())) / len(values)


def review_hand(
    game: Game,
    seat: int,
    reviewer: Policy | str,
    *,
    particles: int = PARTICLES,
    seed: int = 0,
    moves: Collection[int] | None = None,
) -> Review:
    """Review the decisions of one seat in a finished hand.

    Args:
        game: the hand, at its end.
        seat: whose decisions.
        reviewer: a policy that gives probabilities, or its name; the other is taken to play as it does.
        particles: guesses of the other's cards in the first try; decisions where few of them fit get `MORE` times as many.
        seed: of the guesses and of the hands played on.
        moves: review only the decisions at these indices of `Game.history`.

    Raises:
        OrderError: the hand is not over.
        ArchieError: the reviewer gives no probabilities, or plays other rules.
    """
    check_seat("seat", seat)
    whole_number("particles", particles, ENOUGH)
    whole_number("seed", seed, 0)
    if particles > 2**20:
        raise ArchieError(f"particles {particles}: expected at most {2**20}")
    net = game.result.net[seat]
    policy = as_policy(reviewer, game.rules)
    seen = _Seen(game, seat, policy, particles, seed)
    decisions = {d.move: d for d in seen.decisions(None if moves is None else frozenset(moves))}
    few = frozenset(move for move, d in decisions.items() if d.effective < 2 * ENOUGH)
    if few:
        decisions.update((d.move, d) for d in seen.decisions(few, MORE))
    lost = [a for d in decisions.values() for a in d.actions if a.played and a.verdict == "worse"]
    given_up = float(sum(a.loss or 0.0 for a in lost))
    error = float(np.sqrt(sum((a.error or 0.0) ** 2 for a in lost)))
    return Review(name_of(policy), seat, tuple(decisions[m] for m in sorted(decisions)), given_up, error, net + given_up)
