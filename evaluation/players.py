"""Calls of players: time limits, checks of answers, and descriptions of positions.

A player may be anybody's program.  Its answer is converted to an array once and copied; everything else uses that copy.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archie_env._core.sample import find_unplayable
from archie_env.actions import describe_legal
from archie_env.cards import format_cards
from archie_env.errors import ArchieError, printable
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, name_of
from archie_env.rules import Rules
from archie_env.validation import positive

SUM_TOLERANCE: Final = 1e-4
"""How far from 1 the sum of a row of probabilities may be."""
_LETTERS: Final = 200
"""Longest part of an exception's message that is kept."""


class ProbabilityError(ArchieError):
    """Probabilities that are not finite, negative, positive for an illegal action, or don't sum to 1; names the position."""


class TimeLimitError(ArchieError):
    """A policy that did not answer in time; names the limit."""


class TimedCalls:
    """Calls in a thread of their own, with a time limit in seconds.

    A thread can't be stopped from outside: after a `TimeLimitError` it keeps its core busy until the call returns, but does not
    delay the end of the program.  A call that never releases the interpreter's lock, such as a loop in compiled code, can't be
    timed, because the waiting thread does not run either.
    """

    def __init__(self, seconds: float) -> None:
        positive("time limit", seconds, "seconds")
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
        """Return the result of ``call()``, or raise its exception.

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
    """A policy whose calls outside of matches have a time limit in seconds, see `TimedCalls`.

    After a `TimeLimitError` this object can't be used again.
    """

    def __init__(self, policy: Policy, seconds: float) -> None:
        self.name, self._policy, self._timed = policy.name, policy, TimedCalls(seconds)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`; raises `TimeLimitError`."""
        rows, legal = observations.copy(), masks.copy()  # a thread left behind must not write where others read
        answer: Probabilities = self._call("probabilities", lambda: own_array(self._policy.probabilities(rows, legal)))
        return answer

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; raises `TimeLimitError`."""
        rows, legal = observations.copy(), masks.copy()
        actions: Actions = self._call("act", lambda: own_array(self._policy.act(rows, legal, rng)))
        return actions

    def _call(self, verb: str, call: Callable[[], Any]) -> Any:
        try:
            return self._timed(call)
        except TimeLimitError as error:
            raise TimeLimitError(f"{self.name}: {verb} gave {error}") from None

    def close(self) -> None:
        """End the thread of the calls."""
        self._timed.close()


class Guard:
    """A context around one call of a player that restores process-wide settings and records Ctrl-C and SIGTERM.

    Restored are NumPy's handling of floating-point errors, the filters of warnings, the recursion limit and the handlers of
    both signals.  Without that, one player could turn the harmless warnings of the other into exceptions.
    """

    interrupted = False
    """Whether Ctrl-C or SIGTERM came during the call, even if the player caught the KeyboardInterrupt."""

    def __enter__(self) -> Guard:
        self._recursion, self._filters = sys.getrecursionlimit(), warnings.filters
        self._saved = list(warnings.filters)
        self._errors = np.errstate()
        self._errors.__enter__()
        in_main = threading.current_thread() is threading.main_thread()
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
        for number, handler in self._handlers.items():
            if callable(handler):
                signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        handler = self._handlers[signal.Signals(number)]
        assert callable(handler)
        try:
            handler(number, frame)
        except KeyboardInterrupt:
            self.interrupted = True
            raise

    def __exit__(self, *raised: object) -> None:
        try:
            self._errors.__exit__(None, None, None)
            if sys.getrecursionlimit() != self._recursion:
                sys.setrecursionlimit(self._recursion)
            if warnings.filters is not self._filters or list(self._filters) != self._saved:
                warnings.filters = self._filters
                warnings.simplefilter("default")  # makes the module notice the change
                self._filters[:] = self._saved  # type: ignore[index]
        finally:
            for number, handler in self._handlers.items():
                if handler is not None:  # one that was not set from Python
                    signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a person stopped the process."""
        if self.interrupted:
            raise KeyboardInterrupt


def own_array(answer: Any) -> NDArray[Any]:
    """Convert a player's answer to an array, once, and copy it: nothing that the player keeps can change it later."""
    return np.array(answer)


def malformed(answer: NDArray[Any], masks: Masks, probabilities: bool) -> str | None:
    """Describe a wrong shape or type of an answer to decisions ``masks (n, a)``; None if both are right."""
    expected = masks.shape if probabilities else (len(masks),)
    if answer.shape == expected and answer.dtype.kind in ("f" if probabilities else "iu"):
        return None
    what, numbers = ("probabilities", "floats") if probabilities else ("actions", "integers")
    return f"{what} of shape {answer.shape} and dtype {printable(str(answer.dtype))}: expected {expected} {numbers}"


def asked_probabilities(policy: Policy, observations: Observations, masks: Masks) -> NDArray[np.float64]:
    """``(n, d), (n, a) -> (n, a)``: a policy's probabilities, of the right shape; rows may still be `unplayable`.

    Raises:
        ArchieError: for a malformed answer; exceptions of the policy pass through.
    """
    answer = own_array(policy.probabilities(observations.copy(), masks.copy()))
    if reason := malformed(answer, masks, probabilities=True):
        raise ArchieError(f"{player_name(policy)}: {reason}")
    with np.errstate(over="ignore"):
        return answer.astype(np.float64)


def unplayable(chances: NDArray[Any], masks: Masks) -> NDArray[np.bool_]:
    """``(n, a) -> (n,)``: rows with a probability that is NaN, negative or of an illegal action, or that don't sum to 1."""
    if chances.dtype not in (np.float32, np.float64):  # the compiler knows no other floats
        with np.errstate(over="ignore"):
            chances = chances.astype(np.float64)
    bad = np.empty(len(chances), np.bool_)
    find_unplayable(chances, masks, SUM_TOLERANCE, bad)
    return bad


def probability_text(chances: NDArray[Any], mask: NDArray[np.int8]) -> str:
    """Describe the fault of one row ``(a,)`` of probabilities."""
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


def position_text(row: NDArray[np.int8], mask: NDArray[np.int8], rules: Rules, history: bool = False) -> str:
    """Describe a decision: ``dealer, round 1, holding ..., pot 3, 1 to call; legal: ...``.

    Args:
        row: ``(d,)``.
        mask: ``(a,)``.
        rules: of the row.
        history: include everything that the player has seen, so that different information sets have different texts.
    """
    seen = decode(row, rules)
    words = ["dealer" if seen.dealer else "big blind", f"{'draw' if seen.phase & 1 else 'round'} {seen.phase // 2 + 1}"]
    if history:
        words.append(f"held {', then '.join(format_cards(cards, ' ') for cards in seen.held)}")
        if seen.own_draws:
            words.append(f"discarded {', '.join(map(str, seen.own_draws))}")
        if seen.other_draws:
            words.append(f"the opponent discarded {', '.join(map(str, seen.other_draws))}")
        rounds = (" ".join(("check/call", "bet/raise")[w - 1] for w in betting) or "none" for betting in seen.wagers)
        words.append(f"betting by round: {'; '.join(rounds)}")
    else:
        words.append(f"holding {format_cards(seen.hand, ' ')}")
    return f"{', '.join(words)}, pot {seen.pot}, {seen.owed} to call; legal: {describe_legal(mask)}"


def player_name(policy: object) -> str:
    """The name of a player for tables and reports, on one line."""
    try:
        name = name_of(policy)
    except Exception:
        name = type(policy).__name__
    return printable(name)[:_LETTERS]
