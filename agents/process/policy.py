"""Players that are programs: ``bot:COMMAND`` starts a command and asks it by the protocol "archie 1" (docs/bots.md).

The process is started when the policy is made, and again when it is asked after `close` or after it ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.process import wire
from agents.process.call import Call, Sheet, quoted
from agents.process.child import Child, EndedError, LateError
from agents.process.command import parse_command
from agents.rows import checked_rows
from archie_env.errors import DISQUALIFIED, EXCEPTION, ILLEGAL, TIME_LIMIT, ArchieError, BotError, described, printable, shown
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, StochasticPolicy
from archie_env.rules import Rules, as_rules

RESTARTS: Final = 20
"""How often a process that ended is started again before its policy is disqualified."""


class Bot:
    """A command that answers lines of the protocol, whether with actions or with probabilities.

    Args:
        command: what stands after ``bot:``.
        rules: a preset's name or a `Rules` value.
        now: seconds, from which the clock is read.

    Raises:
        ArchieError: if it can't be started, or does not answer the first line as the protocol says.
    """

    def __init__(self, command: str, rules: Rules | str = "archie", now: Callable[[], float] = time.monotonic) -> None:
        self.name, self.rules = f"bot:{command}", as_rules(rules)
        self.command, self.clock, _ = parse_command(command)
        self._now, self._child, self._asking = now, None, threading.Lock()
        self._reset()
        try:
            self._child = self._start()
        except LateError:
            raise ArchieError(f"{self.name}: no answer to the first line within {self.clock.start:g} s") from None
        except EndedError as error:
            raise ArchieError(f"{self.name}: {error.reason}: expected an answer to the first line") from None

    _child: Child | None

    def __reduce__(self) -> tuple[type[Bot], tuple[str, Rules]]:
        """Copies and pickles start a process of their own."""
        return Bot, (self.name.removeprefix("bot:"), self.rules)

    def _reset(self) -> None:
        self.bank, self._ends, self._last_end = self.clock.bank, 0, ""
        self._noise, self._first_noise = 0, ""
        self._next, self._owed = 0, set[int]()

    def close(self) -> None:
        """End the process; the next call starts it again, with a full clock.

        A call that another thread waits for ends with a `BotError`.
        """
        child, self._child = self._child, None
        if not self._asking.acquire(blocking=False):
            if child is not None:
                child.stop()
            return
        try:
            if child is not None:
                child.close()
            self._reset()
        finally:
            self._asking.release()

    def remarks(self) -> tuple[str, ...]:
        """What is worth telling of the process since it was opened, though no hand was forfeited for it."""
        noise = self._noise + (self._child.noise if self._child else 0)
        first = self._first_noise or (self._child.first_noise if self._child else "")
        found = []
        if self._ends:
            found.append(f"ended {self._ends} times and was started again, at last: {self._last_end}")
        if noise:
            found.append(f"printed {noise:,} lines that are no answers, the first: {first}")
        return tuple(printable(f"{self.name}: {remark}") for remark in found)

    def ask(self, observations: Observations, masks: Masks, chances: NDArray[np.int64], told: bool) -> Sheet:
        """Ask about every row; raises `BotError` if the whole call failed.

        Args:
            observations: ``(n, d)``.
            masks: ``(n, a)``.
            chances: ``(n,)`` billionths.
            told: take probabilities.
        """
        rows = checked_rows(observations, masks, self.rules)
        sheet = Sheet(rows, masks, chances, told)
        at = 0
        with self._asking:
            while at < len(rows):
                at += self._ask_batch(sheet, at)
        return sheet

    def _ask_batch(self, sheet: Sheet, at: int) -> int:
        """Ask about as many rows at once as the bot takes; if its process ends, ask the others of them one by one."""
        child = self._running()
        n = min(self.batch, len(sheet.rows) - at)
        answered, error = self._call(child, sheet, at, n)
        for k in np.flatnonzero(~answered).tolist():
            if n > 1:
                (got,), error = self._call(self._running(), sheet, at + k, 1)
                if got:
                    continue
            assert error is not None
            sheet.failures[at + k] = error.kind, error.reason
        return n

    def _call(self, child: Child, sheet: Sheet, at: int, n: int) -> tuple[NDArray[np.bool_], EndedError | None]:
        """Ask about ``n`` rows; returns which were answered, and how the process ended if it did."""
        part, seconds = slice(at, at + n), None
        if self.clock.each is not None:
            seconds = self.bank = min(self.clock.bank, self.bank + self.clock.each * n)
        call = Call(sheet, at, n, self.rules, child, self._next, self._owed)
        lines = wire.messages(sheet.rows[part], sheet.masks[part], self.rules, self._next, sheet.chances[part])
        self._next += n
        start = self._now()
        try:
            child.talk(lines, call.take, seconds)
        except LateError:
            self._drop(child)
            done = f"{n - call.left} of {n} answered: are its answers flushed?"
            raise BotError(TIME_LIMIT, f"no answer within {seconds:.3g} s, {done}", self.name) from None
        except EndedError as error:
            closed = self._child is not child
            self._drop(child)
            if closed:
                raise BotError(EXCEPTION, "closed while it was asked", self.name) from None
            self._ends, self._last_end = self._ends + 1, error.reason
            return call.answered, error
        except BaseException:  # an answer that nobody waits for any more must not be taken for that to a later question
            self._drop(child)
            raise
        self.bank -= self._now() - start
        return call.answered, None

    def _drop(self, child: Child) -> None:
        if self._child is child:
            self._child = None
        child.kill()
        self._noise, self._first_noise = self._noise + child.noise, self._first_noise or child.first_noise

    def _running(self) -> Child:
        """The process, started again if it ended; raises `BotError` if that is not possible any more."""
        if self._child is not None:
            return self._child
        if self._ends > RESTARTS:
            reason = f"ended {self._ends} times, expected at most {RESTARTS}; at last {self._last_end}"
            raise BotError(DISQUALIFIED, reason, self.name)
        try:
            self._child = self._start()
        except LateError:
            reason = f"no answer to the first line within {self.clock.start:g} s, when it was started again"
            raise BotError(TIME_LIMIT, reason, self.name) from None
        except (EndedError, ArchieError) as error:
            raise BotError(DISQUALIFIED, f"could not be started again: {error}", self.name) from None
        return self._child

    def _start(self) -> Child:
        """Start the process and read what it says of itself; raises `EndedError`, `LateError` or `ArchieError`."""
        try:
            child = Child(self.command)
        except OSError as error:
            raise ArchieError(f"{self.name}: {error.strerror or error}: expected a program that can be started") from None
        times = asdict(self.clock) if self.clock.each is not None else {"start": self.clock.start}
        hello = {
            "archie": wire.VERSION,
            "rules": wire.rules_value(self.rules),
            "actions": self.rules.actions,
            "batch": wire.BATCH,
            "seconds": times,
        }
        said: list[bytes] = []

        def take(buffer: bytes) -> tuple[int, bool]:
            at = 0
            while not said and (end := buffer.find(b"\n", at)) >= 0:
                line, at = buffer[at:end].strip(), end + 1
                if line.startswith(b"{"):
                    said.append(line)
                else:
                    child.add_noise(line)
            return at, bool(said)

        try:
            child.talk(wire.canonical(hello), take, self.clock.start)
            self._read_hello(said[0])
        except BaseException:
            child.kill()
            raise
        self._owed.clear()
        return child

    def _read_hello(self, line: bytes) -> None:
        where = f"{self.name}: answered the first line with {quoted(line)}"
        try:
            values = wire.read_object(line)
        except ValueError as error:
            raise ArchieError(f"{where}: {described(error, place=False)}: expected {{'archie':1,'name':...}}") from None
        version = values.get("archie")
        if type(version) is not int or version != wire.VERSION:
            raise ArchieError(f"{where}: version {shown(version)}: expected 'archie':{wire.VERSION}")
        called, batch, told = values.get("name", ""), values.get("batch", wire.BATCH), values.get("probabilities", False)
        if not isinstance(called, str) or len(called) > wire.MOST_NAME or not called.isprintable():
            raise ArchieError(f"{where}: name {shown(called)}: expected at most {wire.MOST_NAME} printable letters")
        if type(batch) is not int or batch < 1:
            raise ArchieError(f"{where}: batch {shown(batch)}: expected a whole number of at least 1")
        if not isinstance(told, bool):
            raise ArchieError(f"{where}: probabilities {shown(told)}: expected true or false")
        self.called, self.batch, self.gives_probabilities = called, min(batch, wire.BATCH), told


class BotPlayer:
    """Base of the policies that ask a bot."""

    def __init__(self, bot: Bot) -> None:
        self.name, self.bot = bot.name, bot

    def close(self) -> None:
        """See `Bot.close`."""
        self.bot.close()


class BotPolicy(BotPlayer):
    """Plays the actions that a bot names; its chance comes from the number ``u`` that each message holds."""

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`; raises `BotError`, where rows are at fault with the actions of the others."""
        chances = (rng.random(len(observations)) * wire.BILLION).astype(np.int64)
        sheet = self.bot.ask(observations, masks, chances, told=False)
        _raise_failures(sheet, self.name, sheet.actions)
        return sheet.actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """Not known of this bot."""
        raise ArchieError(f"{self.name}: gives no probabilities: expected 'probabilities':true in its first line")


class StochasticBotPolicy(BotPlayer, StochasticPolicy):
    """Plays a bot that gives probabilities, from which the host draws."""

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`; raises `BotError`, where rows are at fault with the probabilities of the others."""
        sheet = self.bot.ask(observations, masks, np.zeros(len(observations), np.int64), told=True)
        assert sheet.told is not None
        for k in np.flatnonzero(sheet.actions >= 0).tolist():  # a certain action
            action = int(sheet.actions[k])
            if action < masks.shape[1] and masks[k, action]:
                sheet.told[k, action] = 1
            else:
                sheet.failures[k] = ILLEGAL, f"action {action} is not legal"
        with np.errstate(over="ignore"):
            told: Probabilities = sheet.told.astype(np.float32)
        _raise_failures(sheet, self.name, told)
        return told


def _raise_failures(sheet: Sheet, name: str, answer: NDArray[Any]) -> None:
    if sheet.failures:
        kind, reason = next(iter(sheet.failures.values()))
        raise BotError(kind, reason, name, sheet.failures, answer)


def load_bot(command: str, rules: Rules) -> Policy:
    """Start a bot and return its policy; see `Bot`."""
    bot = Bot(command, rules)
    return StochasticBotPolicy(bot) if bot.gives_probabilities else BotPolicy(bot)
