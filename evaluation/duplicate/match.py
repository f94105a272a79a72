"""Duplicate matches: every deal is played twice, with seats swapped and per-seat replacement cards.

Each position gets the same cards in both hands of a deal, whatever the discards, so most of the luck cancels.  The deal pair is
the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env.batch import Hands
from archie_env.errors import ArchieError
from archie_env.policy import Policy
from archie_env.rules import Rules, as_rules
from archie_env.validation import positive, whole_number
from evaluation.duplicate.deals import DealPairs, secret_hash
from evaluation.duplicate.form import MatchForm
from evaluation.duplicate.umpire import Faults, Umpire, closing
from evaluation.estimates import Estimate, PairSequence, PairTotals
from evaluation.players import player_name
from evaluation.results import checked

DEALS = 20_000
"""Default number of deal pairs in a match."""
CHUNK = 1024
"""Deals played side by side."""
MOST_AT_ONCE: Final = 1_000_000
"""Largest chunk, and number of particles: more games side by side only exhaust the memory."""

Folds = tuple[tuple[int, int], tuple[int, int]]
"""Hands folded by (a, b), each as (dealer, big blind)."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The result of ``a`` against ``b``."""

    a: str
    b: str
    rules: Rules
    seed: int
    totals: PairTotals
    """Sums of a's net chips."""
    folds: Folds
    seconds: float = field(compare=False)
    faults: tuple[Faults, Faults] = (Faults(), Faults())
    """Faults of a and of b."""
    sequence: PairSequence | None = field(default=None, compare=False)
    """State of the anytime-valid interval, which depends slightly on the chunk size; None in files of version 0.1."""
    secret: str | None = None
    """SHA-256 of the secret seed; None if ``seed`` alone determines the cards."""

    @property
    def hands(self) -> int:
        """Number of hands, two for each deal."""
        return 2 * self.totals.deals

    @property
    def chips(self) -> Estimate:
        """Winnings of a in chips per hand."""
        return self.totals.per_hand

    @property
    def mbb(self) -> Estimate:
        """Winnings of a in thousandths of a big blind per hand."""
        return self.chips * self.rules.mbb_per_chip

    @property
    def anytime_interval(self) -> tuple[float, float]:
        """95 % interval in mbb per hand that is valid at all times at once, so that results may decide when to stop.

        It is wider than ``mbb.interval``, which is valid for a number of deals fixed in advance.
        """
        if self.sequence is None:
            raise ArchieError(
                "this result has no state of the anytime-valid interval, which version 0.1 did not write: play the match again"
            )
        low, high = self.sequence.interval()
        return low * self.rules.mbb_per_chip, high * self.rules.mbb_per_chip

    @property
    def folded(self) -> tuple[float, float]:
        """Fractions of all hands that a and b folded."""
        a, b = (sum(by_position) / self.hands for by_position in self.folds)
        return a, b

    @property
    def shown_down(self) -> float:
        """Fraction of hands that reached showdown."""
        return 1 - (sum(map(sum, self.folds)) + self.faults[0].total + self.faults[1].total) / self.hands

    def to_dict(self) -> dict[str, Any]:
        """Plain values.  `from_dict` ignores the ``figures``, which are for people and missing before the second deal."""
        return {
            "a": self.a,
            "b": self.b,
            "rules": self.rules.to_dict(),
            "seed": self.seed,
            "secret_seed_sha256": self.secret,
            "totals": asdict(self.totals),
            "folds": [list(by_position) for by_position in self.folds],
            "seconds": self.seconds,
            "faults": [faults.to_dict() for faults in self.faults],
            "sequence": asdict(self.sequence) if self.sequence else None,
            "figures": self._figures() if self.totals.deals > 1 else None,
        }

    def _figures(self) -> dict[str, Any]:
        return {
            "hands": self.hands,
            "chips_per_hand": self.chips.mean,
            "mbb_per_hand": self.mbb.mean,
            "mbb_standard_error": self.mbb.standard_error,
            "mbb_interval_95": list(self.mbb.interval),
            "mbb_anytime_interval_95": list(self.anytime_interval) if self.sequence else None,
            "shown_down": self.shown_down,
            "variance_reduction": self.totals.variance_reduction,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MatchResult:
        """The inverse of `to_dict`; raises `ArchieError` for values that are impossible in a match."""
        form = checked(MatchForm, values)
        a, b = (Faults(faults.counts, tuple(faults.reports), faults.remarks) for faults in form.faults)
        return cls(
            form.a, form.b, form.rules, form.seed, form.totals, form.folds, form.seconds, (a, b), form.sequence,
            form.secret_seed_sha256,
        )  # fmt: skip


def check_chunk(chunk: int) -> None:
    """Raise `ArchieError` for a number of deals that can't be played side by side, which is better known than tried."""
    whole_number("chunk", chunk, 1)
    if chunk > MOST_AT_ONCE:
        raise ArchieError(f"chunk {chunk}: expected at least 1 deal and at most {MOST_AT_ONCE:,}")


def _play_chunk(umpires: Sequence[Umpire], pairs: DealPairs, rules: Rules) -> tuple[PairTotals, NDArray[np.int64]]:
    """Play one chunk; return the totals of seat 0, and the folds ``(2, 2)`` by seat and position."""
    hands = Hands(pairs.indices, pairs.dealers, rules, pairs.seed)
    pairs.play_out(hands, umpires)
    won, folded = pairs.paired(hands.net[:, 0]), pairs.paired(hands.games["folded"])  # folded: position + 1, or 0
    folds = np.array([[np.sum(folded[:, p ^ seat] == p + 1) for p in (0, 1)] for seat in (0, 1)])
    return PairTotals.of(won[:, 0], won[:, 1]), folds


def play_match(
    a: Policy,
    b: Policy,
    deals: int,
    seed: int = 0,
    rules: Rules | str = "archie",
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    *,
    strict: bool = False,
    time_limit: float | tuple[float | None, float | None] | None = None,
    probabilities: bool = False,
    until: float | None = None,
    error: float | None = None,
    secret: bytes | None = None,
    earlier: MatchResult | None = None,
    written: Callable[[MatchResult], None] | None = None,
) -> MatchResult:
    """Play a duplicate match.

    Args:
        a: the player whose winnings are reported.
        b: its opponent.
        deals: deal pairs, at least 2.
        seed: determines the cards and, together with ``chunk``, the players' random numbers.
        rules: a preset's name or a `Rules` value.
        chunk: deals played side by side; stochastic players play differently under another value.
        progress: called with the number of deals played since its last call.
        strict: raise at a player's first fault, instead of forfeiting the hand, counting the fault and continuing (see
            `evaluation.duplicate.umpire`).
        time_limit: seconds for one call of a player, or None (see `evaluation.players.TimedCalls` for its limits); a pair gives
            a's and b's.
        probabilities: ask for probabilities and sample the actions here, instead of asking for actions.
        until: stop as soon as the anytime-valid 95 % interval, from end to end, is narrower than this many mbb per hand;
            ``deals`` is then the maximum.
        error: continue beyond ``deals``, in whole chunks, until the standard error is at most this many mbb per hand.  The stop
            depends on the variance of the results and not on their mean, so with thousands of deals ordinary intervals remain
            valid (Chow and Robbins 1965).
        secret: secret bytes that determine the cards and the players' random numbers together with ``seed``; the result holds
            their SHA-256.  Without them the seed alone determines the cards, as in the environments.
        earlier: the first part of this match, as ``written`` received it; the result is the same as without an interruption.
        written: called with the intermediate result after each chunk.

    Raises:
        IllegalActionError: if strict, naming the player and the position.
        ArchieError: for invalid arguments, and if strict for other faults.
    """
    rules = as_rules(rules)
    for name, number, least in (("deals", deals, 2), ("seed", seed, 0)):
        whole_number(name, number, least)
    check_chunk(chunk)
    for name, target in (("until", until), ("error", error)):
        if target is not None:
            positive(name, target, "mbb per hand")
    if until is not None and error is not None:
        raise ArchieError(
            "until and error: expected at most one of them, as deals is the maximum for one and the minimum for the other"
        )
    nothing = MatchResult(player_name(a), player_name(b), rules, seed, PairTotals(0, 0, 0, 0, 0, 0), ((0, 0), (0, 0)), 0.0)
    if secret is not None:
        nothing = replace(nothing, secret=secret_hash(secret))
    if earlier is None:
        earlier = replace(nothing, sequence=PairSequence(rules.reserve))
    _check_earlier(earlier, nothing, deals, chunk, error is not None)
    result, start = earlier, time.perf_counter()
    limits = time_limit if isinstance(time_limit, tuple) else (time_limit, time_limit)
    umpires = [
        Umpire(player, rules, strict, limit, probabilities, faults)
        for player, limit, faults in zip((a, b), limits, earlier.faults, strict=True)
    ]
    with closing(umpires):
        while not _enough(result, deals, error) and not _narrower(result, until):
            first = result.totals.deals
            n = chunk if error is not None else min(chunk, deals - first)
            more, folds = _play_chunk(umpires, DealPairs(first, n, seed, secret), rules)
            (ad, ab), (bd, bb) = (folds + result.folds).tolist()
            result = MatchResult(
                umpires[0].name,
                umpires[1].name,
                rules,
                seed,
                result.totals + more,
                ((ad, ab), (bd, bb)),
                earlier.seconds + time.perf_counter() - start,
                (umpires[0].faults, umpires[1].faults),
                result.sequence and result.sequence.after(more),
                earlier.secret,
            )
            if written:
                written(result)
            if progress:
                progress(n)
    return result


def _enough(result: MatchResult, deals: int, error: float | None) -> bool:
    """Whether a match has enough deals and, if a standard error is asked for, a standard error small enough."""
    return result.totals.deals >= deals and (error is None or result.mbb.standard_error <= error)


def _check_earlier(earlier: MatchResult, expected: MatchResult, deals: int, chunk: int, beyond: bool) -> None:
    """Raise `ArchieError` unless ``earlier`` is a first part of this match."""
    for name in ("a", "b", "rules", "seed", "secret"):
        had, wanted = getattr(earlier, name), getattr(expected, name)
        if had != wanted:
            raise ArchieError(f"the earlier part of the match has {name} {had!r}: expected {wanted!r}")
    done = earlier.totals.deals
    if (done > deals and not beyond) or ((done < deals or beyond) and done % chunk):
        most = "" if beyond else f", and at most {deals}"
        raise ArchieError(f"the earlier part has {done} deals: expected whole chunks of {chunk}{most}")
    if earlier.sequence is None:
        raise ArchieError("the earlier part has no sequence, which version 0.1 did not write: play the match from the start")


def _narrower(result: MatchResult, width: float | None) -> bool:
    """Whether the anytime-valid interval is narrower than ``width`` mbb per hand."""
    if width is None or result.totals.deals < 2:
        return False
    low, high = result.mbb.interval
    if high - low >= width:  # cheaper to compute, and never wider than the anytime-valid interval
        return False
    low, high = result.anytime_interval
    return high - low < width
