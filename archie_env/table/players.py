"""Players at the table: a policy that is asked in a thread of its own, so that one that hangs holds nobody up for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from archie_env.errors import EXCEPTION, ILLEGAL, TIME_LIMIT, ArchieError, BotError, described, printable
from archie_env.game import Game
from archie_env.policy import Policy, name_of, private_generator
from archie_env.validation import whole_actions

LOADING: Final = 120.0
"""Seconds a player may take to load; the first time, its code may have to be compiled."""
Answer = TypeVar("Answer")


class Player:
    """One seat of one sitting.

    Args:
        name: the name it is loaded by.
        load: makes the policy.
        seed: of the player's own randomness, which leads to no card.
        seat: 0 or 1.
        seconds: limit of one decision.
    """

    def __init__(self, name: str, load: Callable[[str], Policy], seed: int, seat: int, seconds: float) -> None:
        self._seconds = seconds
        self._rng = private_generator(seed, "table", seat)
        self._left_behind = False
        self._policy = self._within(LOADING, lambda: load(name))
        self.name = printable(name_of(self._policy))

    def _within(self, seconds: float, work: Callable[[], Answer]) -> Answer:
        """Do the work in a thread; whatever it raises is raised here as a `BotError`."""
        if self._left_behind:
            raise BotError(TIME_LIMIT, "it has not come back from an earlier decision")
        answers: list[Answer] = []
        faults: list[BaseException] = []

        def call() -> None:
            try:
                answers.append(work())
            except BaseException as error:  # whatever a bot raises, SystemExit included, ends no sitting
                faults.append(error)

        thread = threading.Thread(target=call, daemon=True)  # a thread can't be stopped: it must not hold up the program's end
        thread.start()
        thread.join(seconds)
        if answers:
            return answers[0]
        if faults:
            fault = faults[0]
            raise BotError(EXCEPTION, str(fault) if isinstance(fault, ArchieError) else described(fault, folder=False))
        self._left_behind = True
        raise BotError(TIME_LIMIT, f"no answer within {seconds:g} s")

    def act(self, game: Game, seat: int) -> int:
        """A legal action for the seat to act, or a `BotError`."""
        row, mask = game.observation(seat)[None], game.mask(seat)[None]
        legal = game.legal_actions()
        action = int(self._within(self._seconds, lambda: whole_actions(self._policy.act(row, mask, self._rng), 1))[0])
        if action not in legal:
            raise BotError(ILLEGAL, f"action {action} is not legal here")
        return action
