"""Decisions that a bot is asked about, and its answers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.process import wire
from agents.process._kernels import read_answers
from agents.process.child import Child
from archie_env.errors import (
    ILLEGAL,
    MALFORMED,
    PROBABILITIES,
    ArchieError,
    IllegalActionError,
    described,
    printable,
    shown,
)
from archie_env.observation import decode
from archie_env.policy import Masks
from archie_env.rules import Rules

_OWED: Final = 100_000
"""Answers that may still come for questions that another line was taken for, at most."""


class Sheet:
    """Decisions in one call, and what was answered."""

    def __init__(self, rows: NDArray[np.int8], masks: Masks, chances: NDArray[np.int64], told: bool) -> None:
        self.rows, self.masks, self.chances = rows, masks, chances
        self.actions = np.full(len(rows), -1, np.int64)
        self.told = np.zeros(masks.shape) if told else None
        """``(n, a)``: the probabilities, of a bot that gives them."""
        self.failures: dict[int, tuple[str, str]] = {}


class Call:
    """Lines of consecutive indices that a process was sent, and their answers as they come in."""

    def __init__(self, sheet: Sheet, at: int, n: int, rules: Rules, child: Child, first: int, owed: set[int]) -> None:
        self.actions = sheet.actions[at : at + n]
        self.answered = np.zeros(n, np.bool_)
        self.left = n
        self._sheet, self._at, self._rules = sheet, at, rules
        self._child, self._first, self._owed = child, first, owed

    def take(self, buffer: bytes) -> tuple[int, bool]:
        """Read whole lines until every question is answered; see `agents.process.child.Take`."""
        data, at = np.frombuffer(buffer, np.uint8), 0
        while self.left:
            at, more = read_answers(data, at, self._first, self.actions, self.answered, self.left)
            self.left -= more
            end = buffer.find(b"\n", at)
            if not self.left or end < 0:
                break
            self._read(buffer[at:end].strip())  # no canonical answer
            at = end + 1
        return at, self.left == 0

    def _read(self, line: bytes) -> None:
        """Read one line in any form."""
        if not line.startswith(b"{"):
            self._child.add_noise(line)
            return
        try:
            values = wire.read_object(line)
        except ValueError as error:
            self._blame(f"{quoted(line)}: {described(error, place=False)}: expected an answer")
            return
        index = values.get("i")
        if type(index) is int and index in self._owed:
            self._owed.discard(index)  # an answer was taken for another one before
            return
        n = len(self.actions)
        if type(index) is not int or not 0 <= index - self._first < n:
            asked = f"{self._first}" if n == 1 else f"{self._first} to {self._first + n - 1}"
            self._blame(f"{quoted(line)}: answers {shown(index)}, but was asked {asked}")
            return
        k = index - self._first
        if self.answered[k]:
            self._fail(k, MALFORMED, f"{quoted(line)}: answers {index} twice")
            return
        self.answered[k] = True
        self.left -= 1
        self._decide(k, line, values)

    def _blame(self, reason: str) -> None:
        """Take a line that answers nothing for the first answer that is missing."""
        k = int(self.answered.argmin())
        self.answered[k] = True
        self.left -= 1
        if len(self._owed) < _OWED:
            self._owed.add(self._first + k)
        self._fail(k, MALFORMED, reason)

    def _fail(self, k: int, kind: str, reason: str) -> None:
        self.actions[k] = -1
        self._sheet.failures[self._at + k] = kind, reason

    def _decide(self, k: int, line: bytes, values: dict[str, Any]) -> None:
        told = self._sheet.told
        if told is not None and "p" in values:
            self._read_probabilities(k, line, values["p"], told[self._at + k])
            return
        try:
            hand = decode(self._sheet.rows[self._at + k], self._rules).hand if isinstance(values.get("a"), str) else ()
            action = wire.action_of(values.get("a"), hand)
        except IllegalActionError as error:
            self._fail(k, ILLEGAL, str(error))
        except ArchieError as error:
            self._fail(k, MALFORMED, f"{quoted(line)}: {error}")
        else:
            if 0 <= action < self._rules.actions:
                self.actions[k] = action
            else:
                self._fail(k, ILLEGAL, f"action {shown(action, 40)} is not legal")

    def _read_probabilities(self, k: int, line: bytes, given: object, row: NDArray[np.float64]) -> None:
        if not isinstance(given, dict):
            self._fail(k, MALFORMED, f"{quoted(line)}: expected probabilities by action, such as {{'1':0.5,'2':0.5}}")
            return
        for key, value in given.items():
            if not (key.isascii() and key.isdigit()) or isinstance(value, bool) or not isinstance(value, (int, float)):
                self._fail(k, MALFORMED, f"{quoted(line)}: p {shown(key)} {shown(value)}: expected numbers by action")
                return
            if len(key) > 3 or int(key) >= len(row):
                self._fail(k, PROBABILITIES, f"an illegal action has a probability ({shown(key)}: {shown(value)})")
                return
            row[int(key)] = np.copysign(np.inf, value) if abs(value) > 1e300 else float(value)


def quoted(line: bytes) -> str:
    """A line of a bot for an error message."""
    return shown(printable(line.decode("utf-8", "replace")), 80)
