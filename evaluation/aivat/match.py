"""Luck-adjusted duplicate matches: what each hand paid, less how lucky it was.

python -m evaluation.aivat rule_based call_draw --deals 20000 --seed 1

A value function says what a hand is worth at every point.  Whenever chance or a player whose probabilities are known decides,
the value that was expected less the value that came is added to the result: 0 on average whatever the value function, and the
opposite of the luck there was if it is good (AIVAT; Burch, Schmid, Moravcik, Morrill and Bowling, AAAI 2018).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents import load, names
from archie_env._core.state import BIG_BLIND, DEALER, GAME
from archie_env.batch import Hands
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.files import check_writable
from archie_env.policy import Policy
from archie_env.rules import PRESETS, Rules, as_rules
from archie_env.validation import whole_number
from evaluation.aivat import _kernels as kernels
from evaluation.aivat.value_function import DEALS as LEARN_DEALS
from evaluation.aivat.value_function import Floats, Progress, ValueFunction, learn
from evaluation.command import progress as progress_bar
from evaluation.duplicate.deals import DealPairs
from evaluation.duplicate.match import CHUNK, DEALS
from evaluation.duplicate.umpire import Umpire
from evaluation.estimates import Estimate
from evaluation.players import Guard, player_name
from evaluation.results import manifest, weights_hash, write_json

SAMPLES: Final = 128
"""Fresh deals and draws over which an expected value is a mean."""
TERMS: Final = ("deal", "draws", "betting")
"""Where luck is looked for: the first hands; what is thrown and dealt instead; betting actions."""
_DEAL, _DRAWS, _BETTING = range(len(TERMS))
_UNKNOWN: Final = np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class AdjustedMatch:
    """What ``a`` won from ``b``, raw and adjusted for luck."""

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
    """Hands that add up how lucky they are while they are played.

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
        """``(n, terms)``: chips to add to what seat 0 won; complete once every hand is over."""
        by_seat: Floats = np.where(self.games["dealer"] == 0, 1, -1)[:, None] * self._luck
        return by_seat


def tells_probabilities(policy: Policy, rules: Rules | str) -> bool:
    """Whether a policy answers when it is asked for the probabilities of one decision."""
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


def _check(deals: int, seed: int, chunk: int, samples: int, learn_seed: int) -> None:
    """Refuse what makes no match, or one of the deals that the values are learnt from."""
    for name, number, least in (("deals", deals, 2), ("seed", seed, 0), ("chunk", chunk, 1), ("samples", samples, 1)):
        whole_number(name, number, least)
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
) -> AdjustedMatch:
    """Play the deals of a duplicate match, each twice, and adjust what came of them for luck.

    Players whose probabilities are known are asked for them and their actions drawn here: the raw result is that of
    `evaluation.duplicate.match.play_match` with ``probabilities=True``.

    Args:
        a: one player.
        b: the other; the result is what a won from b.
        deals: deal pairs, at least 2.
        seed: fixes everything, with ``chunk``.
        rules: a preset's name or a `Rules` value.
        value: learnt under another seed; None learns from the two players under the next one.
        known: of a and b, whose probabilities are asked for; None asks once to find out.
        samples: fresh deals and draws for each expected value.
        chunk: deals played side by side.
        progress: called with the number of deals played since it was last called.

    Raises:
        ArchieError: for arguments that make no match, for a value function of other rules or of this seed, for a player said to
            be known that tells no probabilities, and for faults of a player, which end the match; and whatever a player raises.
    """
    rules, start = as_rules(rules), time.perf_counter()
    _check(deals, seed, chunk, samples, seed + 1 if value is None else value.seed)
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
    for first in range(0, deals, chunk):
        n = min(chunk, deals - first)
        pairs = DealPairs(first, n, seed)
        streams = np.random.default_rng([seed, 2, first]).integers(0, 2**64, 2 * n, np.uint64)[pairs.order]
        hands = AdjustedHands(pairs.indices, pairs.dealers, pairs.seed, value, correcting, samples, streams)
        pairs.play_out(hands, umpires)
        raw[first : first + n] = pairs.paired(hands.net[:, 0])
        corrections[first : first + n] = pairs.paired(hands.corrections)
        if progress:
            progress(n)
    seconds = time.perf_counter() - start
    return AdjustedMatch(umpires[0].name, umpires[1].name, rules, seed, known, value, samples, raw, corrections, seconds)


def format_adjusted(of: AdjustedMatch) -> str:
    """A match as a paragraph of text."""
    raw, adjusted, value = of.mbb(of.raw), of.mbb(of.adjusted), of.value
    (raw_hand, raw_pair), (hand, pair) = of.deviations(of.raw), of.deviations(of.adjusted)
    players = [name for name, is_known in zip((of.a, of.b), of.known, strict=True) if is_known]
    unknown = [name for name, is_known in zip((of.a, of.b), of.known, strict=True) if not is_known]
    low, high = adjusted.interval
    ratios = f"; {raw_hand / hand:.2f} and {raw_pair / pair:.2f} times smaller" if pair and raw_pair else ""
    return "\n".join(
        [
            f"{of.a} v {of.b}: {of.deals:,} deals played twice, rules {of.rules.name}, seed {of.seed}",
            f"  value function learnt from {value.teachers[0]} v {value.teachers[1]}, {value.deals:,} deals played twice, "
            f"seed {value.seed}; {of.samples} samples for each expected value",
            f"  corrected: chance{''.join(f', the decisions of {name}' for name in players)}",
            *(f"  not corrected: the decisions of {name}, whose probabilities are not known" for name in unknown),
            f"  raw       {raw.mean:+9.1f} mbb/hand, standard error {raw.standard_error:.1f}",
            f"  adjusted  {adjusted.mean:+9.1f} mbb/hand, standard error {adjusted.standard_error:.1f}, "
            f"95 % interval {low:+.1f} to {high:+.1f}",
            f"  standard deviation of a hand {raw_hand:,.0f} raw, {hand:,.0f} adjusted; "
            f"of a pair {raw_pair:,.0f} raw, {pair:,.0f} adjusted{ratios}",
            f"  adjusting is worth {of.worth:.2f} times the deals"
            if of.worth
            else f"  the {'adjusted' if of.worth is None else 'raw'} pairs do not vary at all",
            f"  {of.seconds:.1f} s",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.aivat",
        description="Play every deal twice with seats swapped, and adjust the results for luck.",
        epilog=f"agents: {', '.join(names())}",
    )
    parser.add_argument("agents", nargs=2, metavar="AGENT")
    parser.add_argument("--deals", type=int, default=DEALS, help="deal pairs (default %(default)d)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", default="archie", choices=list(PRESETS))
    parser.add_argument("--chunk", type=int, default=CHUNK, help="deals played side by side (default %(default)d)")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="for each expected value (default %(default)d)")
    parser.add_argument(
        "--learn-deals",
        type=int,
        default=LEARN_DEALS,
        help="deal pairs the value function is learnt from (default %(default)d)",
    )
    parser.add_argument("--learn-seed", type=int, help="of those deals (default: one more than the seed)")
    parser.add_argument(
        "--teachers", nargs=2, metavar="AGENT", help="who plays those deals (default: the two players themselves)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result and its manifest here")
    return parser


def _play(options: argparse.Namespace) -> AdjustedMatch:
    check_writable(options.json)
    a, b = (load(name, options.rules) for name in options.agents)
    one, other = (load(name, options.rules) for name in options.teachers or options.agents)
    learn_seed = options.seed + 1 if options.learn_seed is None else options.learn_seed
    _check(options.deals, options.seed, options.chunk, options.samples, learn_seed)
    made = manifest(
        options.agents,
        options.rules,
        deals=options.deals,
        seed=options.seed,
        chunk=options.chunk,
        weights=[weights_hash(name, player) for name, player in zip(options.agents, (a, b), strict=True)],
        probabilities=True,
    )
    with progress_bar(options.deals + options.learn_deals, "deals") as progress:
        value = learn(one, other, options.learn_deals, learn_seed, options.rules, options.chunk, progress)
        result = play_adjusted(
            a,
            b,
            options.deals,
            options.seed,
            options.rules,
            value,
            samples=options.samples,
            chunk=options.chunk,
            progress=progress,
        )
    if options.json is not None:
        teachers_of = {"teachers": list(options.teachers or options.agents)}
        write_json(options.json, {"manifest": made | teachers_of, **result.to_dict()})
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        result = _play(options)
    except (ArchieError, PlayerLeftError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(format_adjusted(result))
    return 0
