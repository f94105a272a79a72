"""Faults of a player in a match: a late, malformed or illegal answer forfeits the hand, and the match continues.

The player at fault loses the chips that it has paid into the pot, and the opponent wins them.  To check, stand pat and fold to
the first wager never costs more, so a player can't gain by a fault.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.process import BotPlayer
from archie_env._core.state import DEALER
from archie_env.batch import Hands
from archie_env.errors import (
    DISQUALIFIED,
    EXCEPTION,
    FAULT_KINDS,
    ILLEGAL,
    MALFORMED,
    PROBABILITIES,
    TIME_LIMIT,
    BotError,
    IllegalActionError,
    PlayerLeftError,
    described,
    printable,
)
from archie_env.policy import Policy, StochasticPolicy, sample
from archie_env.rules import Rules
from evaluation.players import (
    Guard,
    ProbabilityError,
    TimedCalls,
    TimeLimitError,
    malformed,
    own_array,
    player_name,
    position_text,
    probability_text,
    unplayable,
)

REPORTS: Final = 5
"""Number of faults of each player that are reported with their position; all are counted."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The hands that one player forfeited."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Hands by kind, those of `archie_env.errors.FAULT_KINDS` that occurred."""
    reports: tuple[str, ...] = ()
    """Descriptions of the first `REPORTS` faults, each with its position."""
    remarks: tuple[str, ...] = field(default=(), compare=False)
    """What else is worth telling of a player that is a process, such as how often it was started again."""

    @property
    def total(self) -> int:
        """Number of hands forfeited."""
        return sum(self.counts.values())

    @property
    def disqualified(self) -> bool:
        """Whether the player ran out of time or failed too often, after which it forfeits every hand at its first turn."""
        return TIME_LIMIT in self.counts or DISQUALIFIED in self.counts

    def __add__(self, more: Faults) -> Faults:
        counts = dict(self.counts)
        for kind, count in more.counts.items():
            counts[kind] = counts.get(kind, 0) + count
        reports, remarks = (*self.reports, *more.reports)[:REPORTS], (*self.remarks, *more.remarks)[:REPORTS]
        return Faults(counts, reports, remarks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        remarks = {"remarks": list(self.remarks)} if self.remarks else {}
        return {"counts": dict(self.counts), "reports": list(self.reports), **remarks}


class _Raised(NamedTuple):
    """An exception that a policy raised, and its description."""

    error: BaseException
    text: str


class Failure(NamedTuple):
    """The reason that an answer can't be played."""

    kind: str
    reason: str


class _Partly(NamedTuple):
    """An answer that can be played in some rows."""

    answer: NDArray[Any]
    failures: dict[int, Failure]


def forfeit(hands: Hands, places: NDArray[np.int64]) -> None:
    """End hands as forfeits of the player to act, which loses the chips that it has paid."""
    games = hands.games
    turn = games["turn"][places]
    paid = games["paid"][places, turn]
    games["net"][places] = np.where(turn == DEALER, -paid, paid)
    games["over"][places] = 1


class Umpire:
    """Asks one policy for its actions in one match, checks the answers and plays them.

    Args:
        policy: the player.
        rules: the rules of the game.
        strict: raise at the first fault instead of forfeiting the hand.
        time_limit: seconds for one call, or None; a player that exceeds it forfeits all hands from then on.
        probabilities: ask for probabilities, check them and sample the action here, instead of calling ``act``.  This is always
            done for policies that inherit ``act`` from `StochasticPolicy`, which samples with the same random numbers.
        faults: faults in an earlier part of the match.
    """

    def __init__(
        self,
        policy: Policy,
        rules: Rules,
        strict: bool = False,
        time_limit: float | None = None,
        probabilities: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self.policy, self.name, self.rules, self.strict = policy, player_name(policy), rules, strict
        self._faults = faults or Faults()
        self.chances: NDArray[np.float32] = np.empty((0, 0), np.float32)
        """``(n, a)``: the probabilities from which the last actions were sampled, if they were sampled here."""
        self._probabilities = probabilities or getattr(type(policy), "act", None) is StochasticPolicy.act
        self._disqualified = self._faults.disqualified
        self._timed = None if time_limit is None else TimedCalls(time_limit)

    @property
    def faults(self) -> Faults:
        """Faults so far."""
        if isinstance(self.policy, BotPlayer) and (remarks := self.policy.bot.remarks()):
            return replace(self._faults, remarks=(*self._faults.remarks, *remarks)[:REPORTS])
        return self._faults

    def close(self) -> None:
        """Let go of the thread that timed calls run in, and end the process of a bot."""
        if self._timed is not None:
            self._timed.close()
        if isinstance(self.policy, BotPlayer):
            self.policy.close()

    def play(self, hands: Hands, seat: int, numbers: NDArray[np.int64], rng: np.random.Generator) -> int:
        """Play one action in each hand in which ``seat`` is to act, or forfeit the hand.

        Args:
            hands: hands in any order.
            seat: the seat of the policy.
            numbers: index of each hand in the match; hand h belongs to deal ``h // 2``.
            rng: the generator passed to the policy.

        Returns:
            The number of hands in which the seat was to act.

        Raises:
            IllegalActionError, ProbabilityError, TimeLimitError: if strict, and any exception of the policy.
            PlayerLeftError: if a person left, which is not a fault.
        """
        places, rows, masks = hands.waiting(seat)
        if not len(places):
            return 0
        legal = masks.copy()  # the policy may write into its arguments
        outcome = self._outcome(rows, masks, rng)
        if isinstance(outcome, Failure):
            _, rows, _ = hands.waiting(seat)
            actions, failures = self._sift(rows, legal, rng, outcome)
        elif not self._probabilities and not isinstance(outcome, _Partly) and self._played(hands, places, outcome):
            return len(places)
        else:
            actions, failures = self._inspect(outcome, legal, rng)
        if failures:
            _, rows, _ = hands.waiting(seat)
            self._record(failures, rows, legal, numbers[places])
            forfeit(hands, places[list(failures)])
        played = np.ones(len(places), np.bool_)
        played[list(failures)] = False
        hands.play(places[played], actions[played])
        return len(places)

    @staticmethod
    def _played(hands: Hands, places: NDArray[np.int64], actions: NDArray[Any]) -> bool:
        """Play the actions if all are legal; the engine checks that fastest."""
        try:
            hands.play(places, actions)
        except IllegalActionError:
            return False
        return True

    def _ask(self, rows: NDArray[np.int8], masks: NDArray[np.int8], rng: np.random.Generator) -> NDArray[Any] | _Raised:
        """Ask the policy under a `Guard`; raises KeyboardInterrupt only for a real Ctrl-C or SIGTERM."""
        policy = self.policy

        def call() -> NDArray[Any] | _Raised:
            try:
                with np.errstate():  # each thread has its own
                    return own_array(policy.probabilities(rows, masks) if self._probabilities else policy.act(rows, masks, rng))
            except PlayerLeftError:
                raise
            except BaseException as error:
                return _Raised(error, described(error, folder=False))

        with Guard() as guard:
            answer: NDArray[Any] | _Raised = call() if self._timed is None else self._timed(call)
        guard.check()
        return answer

    def _outcome(
        self, rows: NDArray[np.int8], masks: NDArray[np.int8], rng: np.random.Generator
    ) -> NDArray[Any] | _Partly | Failure:
        """The policy's answer as an array of the right shape and kind, in all rows or in some, or why there is none."""
        if self._disqualified:
            return Failure(DISQUALIFIED, "disqualified before")
        verb = "probabilities" if self._probabilities else "act"
        try:
            answer = self._ask(rows, masks, rng)
        except TimeLimitError as error:
            if self.strict:
                raise TimeLimitError(f"{self.name}: {verb} gave {error}") from None
            self._disqualified = True
            return Failure(TIME_LIMIT, f"{verb} gave {error}")
        if isinstance(answer, _Raised) and isinstance(answer.error, BotError) and (told := self._told(answer.error, masks)):
            return told
        if isinstance(answer, _Raised):
            if self.strict and isinstance(answer.error, Exception):
                raise answer.error
            kind, reason = EXCEPTION, f"{verb} raised {answer.text}"
        elif wrong := malformed(answer, masks, self._probabilities):
            kind, reason = MALFORMED, wrong
        else:
            return answer
        if self.strict:
            raise IllegalActionError(f"{self.name}: {reason}")
        return Failure(kind, reason)

    def _told(self, error: BotError, masks: NDArray[np.int8]) -> _Partly | Failure | None:
        """What a policy says itself of its faults; None if it can't be used, or if this is strict and all rows are at fault."""
        try:
            if error.rows is None:
                if self.strict or error.kind not in FAULT_KINDS:
                    return None
                self._disqualified |= error.kind in (TIME_LIMIT, DISQUALIFIED)
                return Failure(error.kind, str(error.reason))
            answer = own_array(error.answer)
            failures = {k: Failure(kind, str(reason)) for k, (kind, reason) in error.rows.items()}
            fine = all(type(k) is int and 0 <= k < len(masks) and why.kind in FAULT_KINDS for k, why in failures.items())
        except Exception:  # a policy of anybody may raise this error, with anything in it
            return None
        return _Partly(answer, failures) if fine and not malformed(answer, masks, self._probabilities) else None

    def _sift(
        self,
        rows: NDArray[np.int8],
        masks: NDArray[np.int8],
        rng: np.random.Generator,
        outcome: NDArray[Any] | _Partly | Failure,
    ) -> tuple[NDArray[np.int64], dict[int, Failure]]:
        """Return actions ``(n,)``, and the failures by row.

        If the whole batch failed, the policy is asked again about each half, down to the rows at fault.
        """
        n = len(rows)
        if not isinstance(outcome, Failure):
            return self._inspect(outcome, masks, rng)
        if n == 1 or outcome.kind in (TIME_LIMIT, DISQUALIFIED):
            return np.zeros(n, np.int64), dict.fromkeys(range(n), outcome)
        actions, failures = [], dict[int, Failure]()
        for part in (slice(0, n // 2), slice(n // 2, n)):
            more, why = self._sift(rows[part], masks[part], rng, self._outcome(rows[part].copy(), masks[part].copy(), rng))
            actions.append(more)
            failures |= {part.start + k: failure for k, failure in why.items()}
        return np.concatenate(actions), failures

    def _inspect(
        self, outcome: NDArray[Any] | _Partly, masks: NDArray[np.int8], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], dict[int, Failure]]:
        """Return the same as `_sift`, for an answer of the right shape and type."""
        answer, told = outcome if isinstance(outcome, _Partly) else (outcome, {})
        n, failures = len(masks), dict[int, Failure]()
        if self._probabilities:
            bad = unplayable(answer, masks)
            bad[list(told)] = True
            for k in np.flatnonzero(bad).tolist():
                failures[k] = Failure(PROBABILITIES, probability_text(answer[k], masks[k]))
            with np.errstate(over="ignore"):
                self.chances = answer.astype(np.float32)
            self.chances[bad] = masks[bad]  # any distribution: one random number per row, so that a fault shifts no other row
            return sample(self.chances, rng), failures | told
        inside = (answer >= 0) & (answer < masks.shape[1])
        actions = np.where(inside, answer, 0).astype(np.int64)
        for k in np.flatnonzero(~inside | (masks[np.arange(n), actions] == 0)).tolist():
            failures[k] = Failure(ILLEGAL, f"action {answer[k]} is not legal")
        return actions, failures | told

    def _record(
        self,
        failures: dict[int, Failure],
        rows: NDArray[np.int8],
        masks: NDArray[np.int8],
        numbers: NDArray[np.int64],
    ) -> None:
        """Count faults and describe the first ones, in the order of deals; raise the first if strict."""
        kinds, reports = list[str](), list[str]()
        for k in sorted(failures, key=lambda k: int(numbers[k])):
            failure = failures[k]
            kinds.append(failure.kind)
            if len(self._faults.reports) + len(reports) >= REPORTS:
                continue
            where = position_text(rows[k], masks[k], self.rules)
            report = printable(f"{self.name}: {failure.reason} in deal {numbers[k] // 2} as {where}")
            if self.strict:
                raise (ProbabilityError if failure.kind == PROBABILITIES else IllegalActionError)(report)
            reports.append(report)
        self._faults += Faults(Counter(kinds), tuple(reports))


@contextlib.contextmanager
def closing(umpires: Sequence[Umpire]) -> Iterator[None]:
    """Close umpires at the end of their match, however it ends."""
    try:
        yield
    finally:
        for umpire in umpires:
            umpire.close()
