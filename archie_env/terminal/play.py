"""A person against a policy at the terminal: hands of `archie play`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TextIO

import numpy as np

from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.game import Game
from archie_env.policy import Policy
from archie_env.rendering import wording
from archie_env.rendering.text import ansi
from archie_env.rules import Rules
from archie_env.terminal.answers import HELP, menu, read_action

Place = Literal["dealer", "big_blind", "alternate"]
PERSON, OPPONENT = 0, 1
_LEAVE: Final = ("quit", "q", "exit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """What a session at the table is played by."""

    rules: Rules
    opponent: Policy
    seed: int
    place: Place = "alternate"
    """Where the person sits; ``alternate`` swaps positions from hand to hand (R1.5)."""
    hands: int | None = None
    """Hands to play, or None to go on until the person leaves."""
    open_cards: bool = False
    """Whether the opponent's cards are shown."""
    keep: Callable[[Game], None] | None = None
    """Called with every finished hand."""
    color: bool = False


def play(sitting: Sitting, answers: TextIO, screen: TextIO) -> int:
    """Play until the hands are played or the person leaves; returns the person's net chips."""
    table = _Table(sitting, answers, screen)
    table.say(f"You play {sitting.opponent.name}, rules {sitting.rules.name}, seed {sitting.seed}. help explains what to type.")
    try:
        while sitting.hands is None or table.played < sitting.hands:
            table.play_hand()
            if sitting.hands is None or table.played < sitting.hands:
                table.ask("Enter for the next hand, quit to leave: ")
    except PlayerLeftError:
        table.say("")
    table.say(f"{_hands(table.played)} played; you are at {wording.signed(table.total)} chips.")
    return table.total


class _Table:
    def __init__(self, sitting: Sitting, answers: TextIO, screen: TextIO) -> None:
        self.sitting, self._answers, self._screen = sitting, answers, screen
        self._names = (wording.YOU, sitting.opponent.name)
        self._rng = np.random.default_rng(sitting.seed)
        self.played = self.total = 0

    def say(self, text: str, end: str = "\n") -> None:
        print(colored(text) if self.sitting.color else text, end=end, file=self._screen, flush=True)

    def ask(self, question: str) -> str:
        """A line typed by the person, in lower case; raises `PlayerLeftError`."""
        self.say(question, end="")
        answer = self._answers.readline()
        text = " ".join(answer.split()).lower()
        if not answer or text in _LEAVE:
            raise PlayerLeftError
        return text

    def play_hand(self) -> None:
        """Deal a hand, play it to its end and tell what it paid."""
        sitting = self.sitting
        dealer = {"dealer": PERSON, "big_blind": OPPONENT, "alternate": None}[sitting.place]
        game = Game(sitting.rules, seed=sitting.seed, hand=self.played, dealer=dealer)
        self.say(f"\nHand {self.played + 1}")
        while not game.over:
            if game.to_act == PERSON:
                self._show(game)
                game.apply(self._decide(game))
            else:
                rows, masks = game.observation(OPPONENT)[None], game.mask(OPPONENT)[None]
                game.apply(int(sitting.opponent.act(rows, masks, self._rng)[0]))
        self._show(game)
        self.played += 1
        self.total += game.result.net[PERSON]
        if sitting.keep:
            sitting.keep(game)
        self.say(f"Total:  you {wording.signed(self.total)} chips after {_hands(self.played)}")

    def _show(self, game: Game) -> None:
        view = game.view(None if self.sitting.open_cards else PERSON)
        self.say(ansi(replace(view, legal=()), game.rules, names=self._names))

    def _decide(self, game: Game) -> int:
        choices = menu(game)
        self.say(f"You may {choices}")
        while True:
            text = self.ask("> ")
            if text in ("help", "?", "h"):
                self.say(HELP)
                continue
            try:
                return read_action(text, game)
            except ArchieError as error:
                self.say(f"{error}. You may {choices}")


def _hands(n: int) -> str:
    return f"{n} hand{'s' * (n != 1)}"


def colored(text: str) -> str:
    """Red suits red, lines and face-down cards faint, the turn and the result bright: for terminals only."""
    text = re.sub(r"\b[2-9TJQKA][dh]\b", "\033[31m\\g<0>\033[0m", text)
    text = re.sub(r"(?m)^-+$|\?\?( \?\?)*", "\033[2m\\g<0>\033[0m", text)
    return re.sub(r"(?m)^(Hand \d+|>|Result:|Total:|You may)", "\033[1m\\g<0>\033[0m", text)
