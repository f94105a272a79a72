"""A person at a terminal: shows the table and asks for one action after another."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TextIO

from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.events import View
from archie_env.rendering.text import ansi
from archie_env.rules import Rules
from archie_env.terminal.answers import prompt, read_action
from archie_env.words import ENGLISH, Words

_LEAVE: Final = ("quit", "q", "exit", "sair", "salir")
_BRIGHT: Final = ("terminal.hand", "terminal.result", "terminal.total.one", "terminal.may")
_HELP: Final = ("help", "?", "h", "ajuda", "ayuda")


@dataclass(slots=True)
class Console:
    """The two streams of a terminal."""

    answers: TextIO | None = None
    """Answers are read from here, line by line; None reads standard input."""
    screen: TextIO | None = None
    """Questions are written here; None writes to standard output."""
    color: bool = False
    words: Words = ENGLISH
    """The language of everything that is said."""

    def say(self, text: str, end: str = "\n") -> None:
        """Print a line, or the beginning of one, at once."""
        print(colored(text, self.words) if self.color else text, end=end, file=self.screen or sys.stdout, flush=True)

    def ask(self, question: str) -> str:
        """Return the line that a person types, in lower case; raises `PlayerLeftError`."""
        self.say(question, end="")
        answer = (self.answers or sys.stdin).readline()
        text = " ".join(answer.split()).lower()
        if not answer or text in _LEAVE:
            raise PlayerLeftError("the player left the table")
        return text

    def show(self, view: View, rules: Rules, names: tuple[str, str], stacks: Mapping[str, int] | None = None) -> None:
        """Print the table, without its list of legal actions."""
        self.say(ansi(replace(view, legal=(), choices=()), rules, stacks, names, self.words))

    def decide(self, view: View, rules: Rules) -> int:
        """Ask the seat to act until it answers with a legal action, which is returned; raises `PlayerLeftError`."""
        choices = prompt(view, rules, self.words)
        self.say(self.words.say("terminal.may", choices=choices))
        while True:
            text = self.ask("> ")
            if text in _HELP:
                self.say(self.words.say("terminal.help"))
                continue
            try:
                return read_action(text, view, rules, self.words)
            except ArchieError as error:
                self.say(self.words.say("error.again", error=error, choices=choices))


def colored(text: str, words: Words = ENGLISH) -> str:
    """Red suits red, lines and face-down cards faint, the turn and the result bright: for terminals only."""
    text = re.sub(r"\b[2-9TJQKA][dh]\b", "\033[31m\\g<0>\033[0m", text)
    text = re.sub(r"(?m)^-+$|\?\?( \?\?)*", "\033[2m\\g<0>\033[0m", text)
    heads = "|".join(re.escape(re.split("(?<=:)|{", words.catalogue()[key])[0].strip()) for key in _BRIGHT)
    return re.sub(rf"(?m)^(({heads})( \d+)?|>)", "\033[1m\\g<0>\033[0m", text)
