"""What happens in a match when a policy does not answer as it should: the hand is forfeited and the match goes on.

A forfeited hand costs the player at fault what it has paid into the pot so far, and the other player wins just that.  Checking,
standing pat and folding to the first wager never costs more, so no fault earns what legal play could not have had.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archie_env._core.state import DEALER
from archie_env.actions import describe_legal
from archie_env.batch import Hands
from archie_env.cards import format_cards
from archie_env.errors import ArchieError, IllegalActionError, PlayerLeftError
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, StochasticPolicy, sample
from archie_env.rules import Rules

ILLEGAL: Final = "illegal action"
MALFORMED: Final = "malformed answer"
PROBABILITIES: Final = "bad probabilities"
EXCEPTION: Final = "exception"
TIME_LIMIT: Final = "time limit"
DISQUALIFIED: Final = "disqualified"
KINDS: Final = (ILLEGAL, MALFORMED, PROBABILITIES, EXCEPTION, TIME_LIMIT, DISQUALIFIED)
"""Why a hand can be forfeited."""
REPORTS: Final = 5
"""Faults of each player that are told with their position; all are counted."""
SUM_TOLERANCE: Final = 1e-4
"""How far from 1 the sum of a row of probabilities may be, as in `evaluation.exploitability.policy_strategy`."""
_LETTERS = 200
"""Of an exception's message that are kept."""


class ProbabilityError(ArchieError):
    """Probabilities that are not finite, negative, positive for an illegal action, or don't sum to 1; names the position."""


class TimeLimitError(ArchieError):
    """A policy that did not answer in time; names the limit."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The hands one player forfeited."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Hands by kind, those of `KINDS` that occurred."""
    reports: tuple[str, ...] = ()
    """The first `REPORTS` in words, each with its position."""

    @property
    def total(self) -> int:
        """Hands forfeited."""
        return sum(self.counts.values())

    @property
    def disqualified(self) -> bool:
        """Whether the player ran out of time once, after which it forfeits every hand at its first turn."""
        return TIME_LIMIT in self.counts

    def with_more(self, kinds: Iterable[str], reports: Iterable[str]) -> Faults:
        """These and as many more as there are kinds."""
        counts = dict(self.counts)
        for kind in kinds:
            counts[kind] = counts.get(kind, 0) + 1
        return Faults(counts, (*self.reports, *reports)[:REPORTS])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        return {"counts": dict(self.counts), "reports": list(self.reports)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Faults:
        """The inverse of `to_dict`."""
        return cls(dict(values["counts"]), tuple(values["reports"]))


class TimedCalls:
    """Calls made in a thread of their own, waited for no longer than so many seconds.

    A thread can't be stopped from outside: after a `TimeLimitError` it is left behind, keeps its core busy until the call
    returns, and does not hold up the end of the program.  A call that never releases the interpreter's lock, such as a loop
    in compiled code, can't be timed at all, as the waiting thread does not run either.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ArchieError(f"time limit {seconds}: expected more than 0 seconds")
        self.seconds = seconds
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="timed calls").start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                self._outcomes.put((call(), None))
            except BaseException as error:  # raised again where the call is waited for
                self._outcomes.put((None, error))

    def __call__(self, call: Callable[[], Any]) -> Any:
        """What ``call()`` returns or raises.

        Raises:
            TimeLimitError: it took too long; this object can't be used again.
        """
        self._calls.put(call)
        try:
            value, error = self._outcomes.get(timeout=self.seconds)
        except queue.Empty:
            self.close()
            raise TimeLimitError(f"no answer within {self.seconds:g} s") from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let the thread end, at once or when its call returns."""
        self._calls.put(None)


class TimedPolicy:
    """A policy that is asked outside of a match, each call waited for no longer than so many seconds, as `TimedCalls` does.

    Nothing is forfeited here: who asks gets the `TimeLimitError`, and this object can't be used again.
    """

    def __init__(self, policy: Policy, seconds: float) -> None:
        self.name, self._policy, self._timed = policy.name, policy, TimedCalls(seconds)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`; raises `TimeLimitError`."""
        rows, legal = observations.copy(), masks.copy()  # a thread left behind must not write where others read
        answer: Probabilities = self._call("probabilities", lambda: self._policy.probabilities(rows, legal))
        return answer

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; raises `TimeLimitError`."""
        rows, legal = observations.copy(), masks.copy()
        actions: Actions = self._call("act", lambda: self._policy.act(rows, legal, rng))
        return actions

    def _call(self, verb: str, call: Callable[[], Any]) -> Any:
        try:
            return self._timed(call)
        except TimeLimitError as error:
            raise TimeLimitError(f"{self.name}: {verb} gave {error}") from None

    def close(self) -> None:
        """Let go of the thread that calls run in."""
        self._timed.close()


class Failure(NamedTuple):
    """Why an answer can't be played."""

    kind: str
    reason: str


def position_text(row: NDArray[np.int8], mask: NDArray[np.int8], rules: Rules) -> str:
    """What a player faces, in words: ``dealer, round 1, holding ..., pot 3, 1 to call; legal: ...``."""
    seen = decode(row, rules)
    phase = f"{'draw' if seen.phase & 1 else 'round'} {seen.phase // 2 + 1}"
    seat = "dealer" if seen.dealer else "big blind"
    return (
        f"{seat}, {phase}, holding {format_cards(seen.hand, ' ')}, pot {seen.pot}, {seen.owed} to call; "
        f"legal: {describe_legal(mask)}"
    )


def exception_text(error: BaseException) -> str:
    """``ValueError: message (file.py:12)``, the place being where it was raised."""
    message = " ".join(str(error).split())
    steps = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(steps[-1].filename).name}:{steps[-1].lineno})" if steps else ""
    return f"{type(error).__name__}{': ' if message else ''}{message[:_LETTERS]}{place}"


def unplayable(chances: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.bool_]:
    """``(n, a) -> (n,)``: rows with a probability that is NaN, negative or of an illegal action, or that don't sum to 1."""
    fine = (chances >= 0).all(axis=1)  # NaN is not
    fine &= np.abs(chances.sum(axis=1, dtype=np.float64) - 1) <= SUM_TOLERANCE
    fine &= ~((chances > 0) & (masks == 0)).any(axis=1)
    bad: NDArray[np.bool_] = ~fine
    return bad


def _probability_text(chances: NDArray[Any], mask: NDArray[np.int8]) -> str:
    """What is wrong with one row ``(a,)`` of probabilities."""
    given = ", ".join(f"{a}: {p:g}" for a, p in enumerate(chances.tolist()) if p != 0) or "all 0"
    if np.isnan(chances).any():
        return f"NaN probabilities ({given})"
    if np.isinf(chances).any():
        return f"a probability is infinite ({given})"
    if (chances < 0).any():
        return f"a probability is negative ({given})"
    if ((chances > 0) & (mask == 0)).any():
        return f"an illegal action has a probability ({given})"
    return f"the probabilities sum to {float(chances.sum(dtype=np.float64)):.6g} ({given})"


def forfeit(hands: Hands, places: NDArray[np.int64]) -> None:
    """End hands as lost by the player to act: it pays what it has put into the pot, which the other wins."""
    games = hands.games
    turn = games["turn"][places]
    paid = games["paid"][places, turn]
    games["net"][places] = np.where(turn == DEALER, -paid, paid)
    games["over"][places] = 1


class Umpire:
    """Asks one policy for its actions through one match, and rules on what comes back.

    Args:
        policy: the player.
        rules: what is played.
        strict: raise at the first fault instead of forfeiting the hand.
        time_limit: seconds a call may take, or None; whoever takes longer forfeits every hand from then on.
        probabilities: ask for probabilities, check them and draw the action here, instead of calling ``act``.  Always done for
            policies whose ``act`` is that of `StochasticPolicy`, which does the same with the same random numbers.
        faults: those of an earlier part of the match.
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
        self.policy, self.rules, self.strict = policy, rules, strict
        self.faults = faults or Faults()
        """So far."""
        self._probabilities = probabilities or getattr(type(policy), "act", None) is StochasticPolicy.act
        self._disqualified = self.faults.disqualified
        self._timed = None if time_limit is None else TimedCalls(time_limit)

    def close(self) -> None:
        """Let go of the thread that timed calls run in."""
        if self._timed is not None:
            self._timed.close()

    def play(self, hands: Hands, seat: int, numbers: NDArray[np.int64], rng: np.random.Generator) -> int:
        """Play one action in each hand in which ``seat`` is to act, or forfeit it.

        Args:
            hands: in any order.
            seat: the policy's.
            numbers: of the hands in the match, two for each deal: hand h belongs to deal ``h // 2``.
            rng: what the policy draws from.

        Returns:
            How many hands were waiting.

        Raises:
            IllegalActionError, ProbabilityError, TimeLimitError: if strict; and whatever the policy raises.
            PlayerLeftError: the person left, which is no fault.
        """
        places, rows, masks = hands.waiting(seat)
        if not len(places):
            return 0
        legal = masks.copy()  # the policy may write into the arrays that it is handed
        outcome = self._outcome(rows, masks, rng)
        if isinstance(outcome, Failure):
            _, rows, _ = hands.waiting(seat)
            actions, failures = self._sift(rows, legal, rng, outcome)
        elif not self._probabilities and self._played(hands, places, outcome):
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
        """Play actions if all are legal, which the engine finds out fastest."""
        try:
            hands.play(places, actions)
        except IllegalActionError:
            return False
        return True

    def _ask(self, rows: NDArray[np.int8], masks: NDArray[np.int8], rng: np.random.Generator) -> NDArray[Any]:
        policy, probabilities = self.policy, self._probabilities

        def call() -> NDArray[Any]:
            return np.asarray(policy.probabilities(rows, masks) if probabilities else policy.act(rows, masks, rng))

        if self._timed is None:
            return call()
        answer: NDArray[Any] = self._timed(call)
        return answer

    def _outcome(self, rows: NDArray[np.int8], masks: NDArray[np.int8], rng: np.random.Generator) -> NDArray[Any] | Failure:
        """The policy's answer as an array of the right shape and kind, or why there is none."""
        if self._disqualified:
            return Failure(DISQUALIFIED, "disqualified for running out of time")
        verb = "probabilities" if self._probabilities else "act"
        try:
            answer = self._ask(rows, masks, rng)
        except PlayerLeftError:
            raise
        except TimeLimitError as error:
            if self.strict:
                raise TimeLimitError(f"{self.policy.name}: {verb} gave {error}") from None
            self._disqualified = True
            return Failure(TIME_LIMIT, f"{verb} gave {error}")
        except (Exception, SystemExit) as error:
            if self.strict:
                raise
            return Failure(EXCEPTION, f"{verb} raised {exception_text(error)}")
        expected = masks.shape if self._probabilities else (len(masks),)
        kind: Any = np.floating if self._probabilities else np.integer
        if answer.shape == expected and np.issubdtype(answer.dtype, kind):
            return answer
        reason = (
            f"{'probabilities' if self._probabilities else 'actions'} of shape {answer.shape} and dtype {answer.dtype}: "
            f"expected {expected} {'floats' if self._probabilities else 'integers'}"
        )
        if self.strict:
            raise IllegalActionError(f"{self.policy.name}: {reason}")
        return Failure(MALFORMED, reason)

    def _sift(
        self,
        rows: NDArray[np.int8],
        masks: NDArray[np.int8],
        rng: np.random.Generator,
        outcome: NDArray[Any] | Failure,
    ) -> tuple[NDArray[np.int64], dict[int, Failure]]:
        """Actions ``(n,)``, and by row why some have none.

        An outcome that is useless as a whole is asked for again in halves, down to the rows that are to blame.
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
        self, answer: NDArray[Any], masks: NDArray[np.int8], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], dict[int, Failure]]:
        """As `_sift`, for an answer of the right shape and kind."""
        n, failures = len(masks), dict[int, Failure]()
        if self._probabilities:
            bad = unplayable(answer, masks)
            for k in np.flatnonzero(bad).tolist():
                failures[k] = Failure(PROBABILITIES, _probability_text(answer[k], masks[k]))
            chances = answer.astype(np.float32)
            chances[bad] = masks[bad]  # any row will do: one number is drawn for each, so that no fault shifts the others
            return sample(chances, rng), failures
        inside = (answer >= 0) & (answer < masks.shape[1])
        actions = np.where(inside, answer, 0).astype(np.int64)
        for k in np.flatnonzero(~inside | (masks[np.arange(n), actions] == 0)).tolist():
            failures[k] = Failure(ILLEGAL, f"action {answer[k]} is not legal")
        return actions, failures

    def _record(
        self,
        failures: dict[int, Failure],
        rows: NDArray[np.int8],
        masks: NDArray[np.int8],
        numbers: NDArray[np.int64],
    ) -> None:
        """Count faults and put the first into words, by deal; raise the first if strict."""
        kinds, reports = list[str](), list[str]()
        for k in sorted(failures, key=lambda k: int(numbers[k])):
            failure = failures[k]
            kinds.append(failure.kind)
            if len(self.faults.reports) + len(reports) >= REPORTS:
                continue
            where = position_text(rows[k], masks[k], self.rules)
            report = f"{self.policy.name}: {failure.reason} in deal {numbers[k] // 2} as {where}"
            if self.strict:
                raise (ProbabilityError if failure.kind == PROBABILITIES else IllegalActionError)(report)
            reports.append(report)
        self.faults = self.faults.with_more(kinds, reports)
