"""The play style of a player: counts of its actions by position and round, and of the cards kept at the first draw.

>>> HandKinds("archie").names[:3]
('six low or better', 'seven low', 'eight low')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import CALL, DISCARD, FOLD, RAISE
from archie_env.cards import RANKS
from archie_env.observation import field, unscaled
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities
from archie_env.rulebook import highest_low_rank
from archie_env.rules import Rules, as_rules
from evaluation.duplicate.match import MatchResult, play_match

Counts = NDArray[np.int64]
Rows = NDArray[np.int8]

ITSELF: Final = "itself"
POSITIONS: Final = ("dealer", "big blind")
FACING: Final = ("free to check", "facing a wager")
BETTING: Final = ("fold", "check or call", "bet or raise")
KEPT: Final = (
    "everything",
    "four low cards",
    "three low cards",
    "two low cards",
    "one low card",
    "a pair or more, alone",
    "a pair and more cards",
    "draw to a flush",
    "draw to a straight",
    "other cards",
    "nothing",
)
"""The rest of a hand after a discard.  Low cards differ in rank; a draw is three or four cards that are not all low."""
_EVERYTHING, _FOUR, _, _, _ONE, _GROUPS, _WITH_GROUP, _FLUSH, _STRAIGHT, _OTHER, _NOTHING = range(len(KEPT))
_LOW_NAMES: Final = ("ace", "deuce", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king")
_PLURALS: Final = (
    "deuces", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines", "tens", "jacks", "queens", "kings", "aces",
)  # fmt: skip
_WINDOWS: Final = np.array([[(top - k) % len(RANKS) for k in range(5)] for top in range(3, len(RANKS))])
"""``(10, 5)``: the ranks of each straight, the wheel first."""


class HandKinds:
    """Classifies whole hands, and the cards kept of them, into the kinds that players name."""

    def __init__(self, rules: Rules | str) -> None:
        self.rules = as_rules(rules)
        limit = highest_low_rank(self.rules)
        self._limit = -1 if limit is None else limit
        size = self.rules.hand_size
        self._ace_low = (np.arange(len(RANKS)) + 1) % len(RANKS)
        self._low = self._ace_low <= self._limit
        tops = [t for t in (self._limit - 2, self._limit - 1, self._limit) if t >= size - 1]
        better = [" or better" if i == 0 and t > size - 1 else "" for i, t in enumerate(tops)]
        lows = [f"{_LOW_NAMES[t]} low{more}" for t, more in zip(tops, better, strict=True)]
        draws = [f"one card short of {'an' if text[0] in 'ae' else 'a'} {text}" for text in lows]
        self._tops = tops
        few = [("no low card", "one low card", "two low cards", "three low cards")[k] for k in range(size - 2, -1, -1)]
        made = ["full house or better", "straight or flush", "three of a kind", "two pair"]
        pairs = list(_PLURALS[::-1])
        self._paired_draw = "and a draw to a low"
        self.sections: list[tuple[str, list[str]]] = [
            ("made", lows + made),
            ("a pair", [self._paired_draw, *pairs]),
            ("no pair", [*draws, "one card short of a straight or flush", *few]),
        ]
        self.names: tuple[str, ...] = tuple(name for _, names in self.sections for name in names)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._lows, self._draws, self._few = lows, draws, few

    def cards(self, rows: Rows) -> NDArray[np.int64]:
        """Read the hands before the first draw ``(n, size)``, sorted, from rows ``(n, d)`` with whole hands."""
        deck = np.array(self.rules.deck)
        columns = np.nonzero(field(self.rules, "held").of(rows)[:, 0])[1]
        hands: NDArray[np.int64] = deck[columns].reshape(len(rows), self.rules.hand_size)
        return hands

    def _ranks(self, hands: NDArray[np.int64], kept: NDArray[np.bool_]) -> Counts:
        """Count the kept cards of each rank: ``(n, 13)``."""
        counts = np.zeros((len(hands), len(RANKS)), np.int64)
        np.add.at(counts, (np.arange(len(hands))[:, None], hands >> 2), kept)
        return counts

    @staticmethod
    def _suited(hands: NDArray[np.int64], kept: NDArray[np.bool_]) -> Counts:
        """Count the kept cards of the longest suit: ``(n,)``."""
        most: Counts = np.stack([((hands & 3 == suit) & kept).sum(axis=1) for suit in range(4)]).max(axis=0)
        return most

    def _straight(self, counts: Counts) -> Counts:
        """Count the ranks of the best straight ``(n,)``; 0 in games of short hands, which have none."""
        if self.rules.hand_size < 5:
            return np.zeros(len(counts), np.int64)
        most: Counts = (counts[:, _WINDOWS] > 0).sum(axis=2).max(axis=1)
        return most

    def kinds(self, hands: NDArray[np.int64]) -> Counts:
        """Return the index in `names` ``(n,)`` of the kind of each hand ``(n, size)``."""
        size, index = self.rules.hand_size, self._index
        whole = np.ones(hands.shape, np.bool_)
        counts, suited = self._ranks(hands, whole), self._suited(hands, whole)
        straight, biggest = self._straight(counts), counts.max(axis=1)
        pairs = (counts == 2).sum(axis=1)
        lows = ((counts > 0) & self._low).sum(axis=1)
        ranks = np.sort(np.where((counts > 0) & self._low, self._ace_low, 99), axis=1)  # low ranks held, lowest first
        flush = (suited == size) & bool(self.rules.flushes and size == 5)
        found = np.full(len(hands), -1)

        def put(where: NDArray[np.bool_], name: str) -> None:
            found[where & (found < 0)] = index[name]

        for i, (top, name) in enumerate(zip(self._tops, self._lows, strict=True)):
            put((lows == size) & ((ranks[:, size - 1] <= top) if i == 0 else (ranks[:, size - 1] == top)), name)
        if size == 5:
            put((biggest == 4) | ((biggest == 3) & (pairs == 1)), "full house or better")
            put((straight == 5) | flush, "straight or flush")
        put(biggest >= 3, "three of a kind")
        put(pairs == 2, "two pair")
        if size > 2:
            put((pairs == 1) & (lows == size - 1), self._paired_draw)
        for rank in range(len(RANKS)):
            put(counts[:, rank] == 2, _PLURALS[rank])
        for i, (top, name) in enumerate(zip(self._tops, self._draws, strict=True)):
            put((lows == size - 1) & ((ranks[:, size - 2] <= top) if i == 0 else (ranks[:, size - 2] == top)), name)
        if size == 5:
            put((straight == 4) | ((suited == 4) & self.rules.flushes), "one card short of a straight or flush")
        for k in range(size - 2, -1, -1):
            put(lows == k, self._few[size - 2 - k])
        put(lows == size - 1, self._few[0] if self._few else self.names[-1])  # cannot happen if no low qualifies
        return found

    def kept(self, hands: NDArray[np.int64], actions: Actions) -> Counts:
        """Return the index in `KEPT` ``(n,)`` of the cards left by each discard ``(n,)`` of hands ``(n, size)``."""
        size = self.rules.hand_size
        kept = (actions[:, None] - DISCARD >> np.arange(size) & 1) == 0
        counts, cards = self._ranks(hands, kept), kept.sum(axis=1)
        groups = np.where(counts > 1, counts, 0).sum(axis=1)
        lows = ((counts > 0) & self._low).sum(axis=1)
        found = np.full(len(hands), _OTHER)
        found[(cards >= 3) & (self._straight(counts) == cards)] = _STRAIGHT
        if self.rules.flushes:
            found[(cards >= 3) & (self._suited(hands, kept) == cards)] = _FLUSH
        for k in range(1, min(size, 5)):
            found[(lows == k) & (cards == k)] = _ONE + 1 - k
        found[groups > 0] = _WITH_GROUP
        found[(groups > 0) & (groups == cards)] = _GROUPS
        found[cards == 0] = _NOTHING
        found[cards == size] = _EVERYTHING
        return found


@dataclass(frozen=True)
class PlayStyle:
    """Counts of a player's decisions."""

    agent: str
    opponent: str
    rules: Rules
    deals: int
    seed: int
    betting: Counts
    """``(positions, rounds, facing, actions)``: by `POSITIONS`, `FACING`, `BETTING`."""
    drawing: Counts
    """``(positions, draws, cards discarded)``."""
    opening: Counts
    """``(kinds, actions)``: the first decision of a hand, by kind."""
    keeping: Counts
    """``(kinds, kept)``: the first draw, by kind of the hand and of the cards kept, see `KEPT`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values with the names of their axes; the inverse of `from_dict`."""
        return {
            **{name: getattr(self, name) for name in ("agent", "opponent", "deals", "seed")},
            "rules": self.rules.to_dict(),
            "axes": {
                "betting": [POSITIONS, self.rules.rounds, FACING, BETTING],
                "drawing": [POSITIONS, self.rules.draws, self.rules.hand_size + 1],
                "opening": [HandKinds(self.rules).names, BETTING],
                "keeping": [HandKinds(self.rules).names, KEPT],
            },
            **{name: getattr(self, name).tolist() for name in ("betting", "drawing", "opening", "keeping")},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PlayStyle:
        """The inverse of `to_dict`."""
        agent, opponent, deals, seed = (values[name] for name in ("agent", "opponent", "deals", "seed"))
        counts = (np.array(values[name], np.int64) for name in ("betting", "drawing", "opening", "keeping"))
        return cls(agent, opponent, Rules.from_dict(values["rules"]), deals, seed, *counts)


class Watched:
    """A policy that plays like another and counts its actions."""

    def __init__(self, policy: Policy, rules: Rules | str) -> None:
        self.policy, self.name, self.rules = policy, policy.name, as_rules(rules)
        self.kinds = HandKinds(self.rules)
        rounds, draws, size = self.rules.rounds, self.rules.draws, self.rules.hand_size
        self.betting = np.zeros((2, rounds, 2, len(BETTING)), np.int64)
        self.drawing = np.zeros((2, draws, size + 1), np.int64)
        self.opening = np.zeros((len(self.kinds.names), len(BETTING)), np.int64)
        self.keeping = np.zeros((len(self.kinds.names), len(KEPT)), np.int64)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`; nothing is counted."""
        return self.policy.probabilities(observations, masks)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; the actions are counted."""
        actions = self.policy.act(observations, masks, rng)
        whole = np.asarray(actions)
        if (
            whole.shape == (len(masks),)
            and np.issubdtype(whole.dtype, np.integer)
            and np.isin(whole, range(masks.shape[1])).all()
        ):
            self._count(unscaled(observations, self.rules), whole)  # the match reports other answers
        return actions

    def _count(self, rows: Rows, actions: Actions) -> None:
        phase = field(self.rules, "phase").of(rows).argmax(axis=1)
        position = 1 - field(self.rules, "dealer").of(rows).astype(np.int64)
        owes = (field(self.rules, "owed").of(rows) > 0).astype(np.int64)
        bets, draws = phase % 2 == 0, phase % 2 == 1
        np.add.at(self.betting, (position[bets], phase[bets] // 2, owes[bets], actions[bets]), 1)
        discarded = np.bitwise_count(np.maximum(actions - DISCARD, 0))
        np.add.at(self.drawing, (position[draws], phase[draws] // 2, discarded[draws]), 1)
        opens = (phase == 0) & (
            field(self.rules, "wagers").of(rows).sum(axis=(1, 2, 3)) < 2
        )  # the dealer's first and the big blind's
        if opens.any():
            np.add.at(self.opening, (self.kinds.kinds(self.kinds.cards(rows[opens])), actions[opens]), 1)
        first = phase == 1
        if first.any():
            hands = self.kinds.cards(rows[first])
            np.add.at(self.keeping, (self.kinds.kinds(hands), self.kinds.kept(hands, actions[first])), 1)


def watch(
    agent: Policy, opponent: Policy | None = None, deals: int = 20_000, seed: int = 0, rules: Rules | str = "archie"
) -> tuple[PlayStyle, MatchResult]:
    """Count the actions of ``agent`` in a duplicate match against ``opponent``, or against itself."""
    rules = as_rules(rules)
    watched = Watched(agent, rules)
    result = play_match(watched, watched if opponent is None else opponent, deals, seed, rules, strict=True)
    other = ITSELF if opponent is None else opponent.name
    counts = watched.betting, watched.drawing, watched.opening, watched.keeping
    return PlayStyle(agent.name, other, rules, deals, seed, *counts), result


assert (FOLD, CALL, RAISE) == (0, 1, 2)  # the order of `BETTING`
