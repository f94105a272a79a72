"""Luck-adjusted duplicate matches: the result of each hand, less its luck.

A value function estimates the worth of a hand at every point.  Whenever chance or a player of known probabilities decides,
the value that was expected less the value that came is added to the result: 0 on average whatever the value function, and the
opposite of the luck there was if it is good (AIVAT; Burch, Schmid, Moravcik, Morrill and Bowling, AAAI 2018).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archie_env._core.state import BIG_BLIND, DEALER, GAME
from archie_env.batch import Hands
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.policy import Policy
from archie_env.rules import Rules, as_rules
from archie_env.validation import whole_number
from evaluation.aivat import _kernels as kernels
from evaluation.aivat.form import TERMS, Played
from evaluation.aivat.value_function import Floats, Progress, ValueFunction, learn
from evaluation.duplicate.deals import DealPairs
from evaluation.duplicate.match import CHUNK, check_chunk
from evaluation.duplicate.umpire import Umpire, closing
from evaluation.estimates import Estimate
from evaluation.players import Guard, player_name

SAMPLES: Final = 128
"""Fresh deals and draws over which an expected value is a mean."""
_DEAL, _DRAWS, _BETTING = range(len(TERMS))
_UNKNOWN: Final = np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class AdjustedMatch:
    """The result of ``a`` against ``b``, raw and adjusted for luck."""

    a: str
    b: str
    rules: Rules
    seed: int
    known: tuple[bool, bool]
    """Whose decisions are corrected, of a and b."""
    value: ValueFunction
    samples: int
    raw: NDArray[np.int64]
    """``(deals, 2)``: chips a won as dealer and, with the same deal, as big blind."""
    corrections: Floats
    """``(deals, 2, terms)``: chips to add, by `TERMS`."""
    seconds: float

    @property
    def deals(self) -> int:
        """Deals, each played twice."""
        return len(self.raw)

    @property
    def adjusted(self) -> Floats:
        """``(deals, 2)``: as ``raw``, adjusted."""
        total: Floats = self.raw + self.corrections.sum(axis=2)
        return total

    def mbb(self, chips: NDArray[Any]) -> Estimate:
        """Thousandths of a big blind per hand from chips ``(deals, 2)``; the sample is the deal pair."""
        pairs = self.rules.mbb_per_chip * chips.mean(axis=1)
        return Estimate(float(pairs.mean()), float(pairs.std(ddof=1) / np.sqrt(self.deals)))

    def deviations(self, chips: NDArray[Any]) -> tuple[float, float]:
        """Standard deviations in mbb of one hand, either position as often, and of the mean of a deal pair."""
        hand = np.sqrt(chips.var(axis=0, ddof=1).mean())
        return float(self.rules.mbb_per_chip * hand), float(self.rules.mbb_per_chip * chips.mean(axis=1).std(ddof=1))

    @property
    def worth(self) -> float | None:
        """How many times the deals the raw pairs need for the same standard error; None if adjusted ones do not vary."""
        raw, adjusted = self.mbb(self.raw).standard_error, self.mbb(self.adjusted).standard_error
        return (raw / adjusted) ** 2 if adjusted else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        described = {}
        for name, chips in (("raw", self.raw), ("adjusted", self.adjusted)):
            of, (hand, pair) = self.mbb(chips), self.deviations(chips)
            described[name] = {
                "mbb_per_hand": of.mean,
                "mbb_standard_error": of.standard_error,
                "mbb_interval_95": list(of.interval),
                "mbb_deviation_of_a_hand": hand,
                "mbb_deviation_of_a_pair": pair,
            }
        return {
            "a": self.a,
            "b": self.b,
            "rules": self.rules.to_dict(),
            "seed": self.seed,
            "deals": self.deals,
            "decisions_corrected": dict(zip(("a", "b"), self.known, strict=True)),
            "samples": self.samples,
            "learnt_from": {
                "players": list(self.value.teachers),
                "deals": self.value.deals,
                "seed": self.value.seed,
            },
            **described,
            "corrections_mbb": {
                name: {"mean": of.mean, "standard_error": of.standard_error}
                for name, of in ((name, self.mbb(self.corrections[:, :, k])) for k, name in enumerate(TERMS))
            },
            "worth_times_the_deals": self.worth,
            "seconds": self.seconds,
        }


class AdjustedHands(Hands):
    """Hands that add up their luck while they are played.

    Args:
        indices, dealers, seed: as in `Hands`.
        value: the value function, whose rules are played.
        umpires: by seat, those that draw the actions of known players; None where probabilities are not known.
        samples: fresh deals and draws for each expected value.
        streams: ``(n,)`` uint64, from which these come.
    """

    def __init__(
        self,
        indices: ArrayLike,
        dealers: ArrayLike,
        seed: int,
        value: ValueFunction,
        umpires: Sequence[Umpire | None],
        samples: int,
        streams: NDArray[np.uint64],
    ) -> None:
        super().__init__(indices, dealers, value.rules, seed)
        n = len(self)
        self._value, self._tables, self._umpires, self._streams = value, value.tables, umpires, streams
        self._scratch = np.zeros(1, GAME)
        self._imagined = np.empty((2, n, samples), np.int8)
        self._luck = np.zeros((n, len(TERMS)))
        expected = np.empty(n)
        kernels.expected_deals(self.games, *self._tables, self._scratch, streams, samples, expected)
        self._luck[:, _DEAL] = expected - value(self.games)

    def play(self, places: NDArray[np.int64], actions: ArrayLike) -> None:
        """See `Hands.play`; all hands listed wait for the same seat, which was asked about just these."""
        before, places = self.games.copy(), places.copy()
        super().play(places, actions)  # refuses what is not legal
        if not len(places):
            return
        taken, turn = np.asarray(actions), before["turn"][places]
        umpire = self._umpires[int(turn[0] ^ before["dealer"][places[0]])]
        chances = _UNKNOWN if umpire is None else umpire.chances
        drawing = before["phase"][places] & 1 == 1
        betting = np.flatnonzero(~drawing)
        if umpire is not None and len(betting):
            luck = np.empty(len(betting))
            kernels.betting_luck(
                before, *self._tables, self._scratch, places[betting], chances[betting], taken[betting], luck
            )  # fmt: skip
            self._luck[places[betting], _BETTING] += luck
        for position in (DEALER, BIG_BLIND):
            which = np.flatnonzero(drawing & (turn == position))
            if len(which):
                rows = chances if umpire is None else chances[which]
                kernels.imagine_discards(
                    before, self._books, places[which], rows, taken[which], self._streams, self._imagined[position]
                )  # fmt: skip
                if position == DEALER:  # the last to discard: cards are dealt
                    self._correct_draws(before, places[which])

    def _correct_draws(self, before: NDArray[Any], places: NDArray[np.int64]) -> None:
        expected = np.empty(len(places))
        kernels.expected_draws(before, *self._tables, self._scratch, places, self._imagined, self._streams, expected)
        self._luck[places, _DRAWS] += expected - self._value(self.games, places)

    @property
    def corrections(self) -> Floats:
        """``(n, terms)``: chips to add to the result of seat 0; complete when every hand is over."""
        by_seat: Floats = np.where(self.games["dealer"] == 0, 1, -1)[:, None] * self._luck
        return by_seat


def tells_probabilities(policy: Policy, rules: Rules | str) -> bool:
    """Whether a policy returns probabilities for a decision."""
    _, rows, masks = Hands([0], [0], rules, 0).waiting(0)
    with Guard() as guard:
        try:
            policy.probabilities(rows, masks)
            told = True
        except PlayerLeftError:
            raise
        except BaseException:  # no such method, not implemented, not known: all the same here
            told = False
    guard.check()
    return told


def check_arguments(deals: int, seed: int, chunk: int, samples: int, learn_seed: int) -> None:
    """Raise `ArchieError` for arguments that make no match, or for a match on the deals that the values are learnt from."""
    for name, number, least in (("deals", deals, 2), ("seed", seed, 0), ("samples", samples, 1)):
        whole_number(name, number, least)
    check_chunk(chunk)
    if learn_seed == seed:
        raise ArchieError(f"a value function learnt under seed {seed}: expected another, as the result would be biased")


def play_adjusted(
    a: Policy,
    b: Policy,
    deals: int,
    seed: int = 0,
    rules: Rules | str = "archie",
    value: ValueFunction | None = None,
    *,
    known: tuple[bool, bool] | None = None,
    samples: int = SAMPLES,
    chunk: int = CHUNK,
    progress: Progress | None = None,
    earlier: Played | None = None,
    written: Callable[[Played], object] | None = None,
) -> AdjustedMatch:
    """Play the deals of a duplicate match, each twice, and adjust the results for luck.

    Players whose probabilities are known are asked for them and their actions drawn here: the raw result is that of
    `evaluation.duplicate.match.play_match` with ``probabilities=True``.

    Args:
        a: one player.
        b: its opponent; results are the winnings of a.
        deals: deal pairs, at least 2.
        seed: fixes everything, with ``chunk``.
        rules: a preset's name or a `Rules` value.
        value: learnt under another seed; None learns from the two players under the next one.
        known: of a and b, whose probabilities are asked for; None asks once to find out.
        samples: fresh deals and draws for each expected value.
        chunk: deals played side by side.
        progress: called with the number of deals played since it was last called.
        earlier: the first part of this very match, as ``written`` got it; the rest is played.
        written: called after each chunk with what was played so far; the arrays are overwritten by nothing later.

    Raises:
        ArchieError: for arguments that make no match, for a value function of other rules or of this seed, for a player said to
            be known that tells no probabilities, and for faults of a player, which end the match; and whatever a player raises.
    """
    rules, start = as_rules(rules), time.perf_counter()
    check_arguments(deals, seed, chunk, samples, seed + 1 if value is None else value.seed)
    if value is None:
        value = learn(a, b, seed=seed + 1, rules=rules, chunk=chunk, progress=progress)
    if value.rules != rules:
        raise ArchieError(f"a value function for rules {value.rules.name}: expected one for {rules.name}")
    if known is None:
        known = tells_probabilities(a, rules), tells_probabilities(b, rules)
    for player, is_known in zip((a, b), known, strict=True):
        if is_known and not callable(getattr(player, "probabilities", None)):
            raise ArchieError(f"{player_name(player)}: expected probabilities of a player that is said to be known")
    umpires = [
        Umpire(player, rules, strict=True, probabilities=is_known) for player, is_known in zip((a, b), known, strict=True)
    ]
    correcting = [umpire if is_known else None for umpire, is_known in zip(umpires, known, strict=True)]
    raw, corrections = np.empty((deals, 2), np.int64), np.empty((deals, 2, len(TERMS)))
    done, before = 0, 0.0
    if earlier is not None:
        done, before = len(earlier[0]), earlier[2]
        if done > deals or (done < deals and done % chunk):
            raise ArchieError(f"the earlier part has {done} deals: expected whole chunks of {chunk}, and at most {deals}")
        raw[:done], corrections[:done] = earlier[:2]
    with closing(umpires):
        for first in range(done, deals, chunk):
            n = min(chunk, deals - first)
            pairs = DealPairs(first, n, seed)
            streams = np.random.default_rng([seed, 2, first]).integers(0, 2**64, 2 * n, np.uint64)[pairs.order]
            hands = AdjustedHands(pairs.indices, pairs.dealers, pairs.seed, value, correcting, samples, streams)
            pairs.play_out(hands, umpires)
            raw[first : first + n] = pairs.paired(hands.net[:, 0])
            corrections[first : first + n] = pairs.paired(hands.corrections)
            if written:
                written((raw[: first + n], corrections[: first + n], before + time.perf_counter() - start))
            if progress:
                progress(n)
    seconds = before + time.perf_counter() - start
    return AdjustedMatch(umpires[0].name, umpires[1].name, rules, seed, known, value, samples, raw, corrections, seconds)
