"""Bots for tests: the odd one of `tests/odd_bot.py`, the same player in this process, and what came of them."""

from __future__ import annotations

import functools
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents import load
from archie_env.actions import CALL, STAND_PAT
from archie_env.batch import Batch
from archie_env.cards import format_cards
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from archie_env.rules import Rules
from evaluation.duplicate.match import MatchResult, play_match

CALLER = load("call_draw")
ODD = Path(__file__).parent / "odd_bot.py"


PATIENT = "--start 600 --bank 600 "
"""For machines that are busy."""


def odd(oddity: str, *arguments: object, options: str = PATIENT) -> str:
    """The name of the bot of `tests/odd_bot.py` with an oddity; isolated Python starts fastest."""
    return f"bot:{options}{shlex.join([sys.executable, '-I', '-S', str(ODD), oddity, *map(str, arguments)])}"


def decisions(rules: Rules, n: int = 300) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Rows and masks of random play."""
    batch = Batch(60, rules, seed=1)
    rows, masks = list[NDArray[np.int8]](), list[NDArray[np.int8]]()
    while 60 * len(rows) < n:
        rows.append(batch.observations.copy())
        masks.append(batch.masks.copy())
        for _ in range(3):
            batch.step(batch.sample_actions())
    return np.concatenate(rows), np.concatenate(masks)


class Passive(UniformPolicy):
    """Plays as `tests/odd_bot.py`: in this process, with the same faults where ``spoiled`` says so."""

    name = "passive"

    def __init__(self, spoiled: Callable[[list[str]], bool] = lambda held: False) -> None:
        self.spoiled = spoiled

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        actions = np.where(masks[:, CALL] != 0, CALL, STAND_PAT)
        held = [[format_cards(hand) for hand in decode(row).held] for row in observations]
        return np.where([self.spoiled(hands) for hands in held], 99, actions)


@functools.cache
def passive_match() -> MatchResult:
    """What `play` gives without an oddity."""
    return play_match(Passive(), CALLER, 40, seed=1, chunk=16)


@functools.cache
def deuce_match() -> MatchResult:
    """What `play` gives if every hand with the deuce of clubs is forfeited."""
    return play_match(Passive(lambda held: "2c" in held[0]), CALLER, 40, seed=1, chunk=16)


def play(name: str, deals: int = 40, **conduct: Any) -> MatchResult:
    """Play a bot against `CALLER`."""
    return play_match(load(name), CALLER, deals, seed=1, chunk=16, **conduct)


def _runs(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def gone(numbers: list[int]) -> bool:
    """Whether none of these processes runs any more, within a minute."""
    for _ in range(600):
        if not any(map(_runs, numbers)):
            return True
        time.sleep(0.1)
    return False
