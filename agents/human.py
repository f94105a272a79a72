"""A person at the terminal as a policy: one decision at a time, in words.

Reads ``call``, ``raise``, ``discard 9h Js``, ``pat``, the number of a bet, ``?`` for help or ``quit``.
"""

from __future__ import annotations

import sys
from typing import Final, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from agents.rows import checked_rows
from archie_env.actions import DISCARD, RAISE, STAND_PAT, format_action, parse_action
from archie_env.cards import format_cards
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.hands import HandValues
from archie_env.observation import Seen, decode
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rules import Rules, as_rules

_SHORT: Final = {"f": "fold", "k": "check", "c": "call", "b": "bet", "r": "raise", "pat": "stand pat", "p": "stand pat"}
_HELP: Final = """\
  fold, check, call, bet, raise    or their first letter (k for check)
  pat                              keep all cards
  discard 9h Js                    throw these cards (d 9h Js is enough)
  a number                         the bet of that number
  ?                                this help
  quit                             leave the table"""


def describe_hand(cards: tuple[int, ...], rules: Rules) -> str:
    """What a hand is worth either way: ``pair of nines``, ``jack high, seven-five low``."""
    values = HandValues(rules)
    high, low = values.of(cards)
    words = [values.high_name(high) + (" (qualifies)" if high >= values.high_qualifier else "")]
    if low:
        words.append(f"{values.low_name(low)} (qualifies)")
    return ", ".join(words)


def _word(action: int, r: int, owes: bool) -> str:
    return format_action(action, owes=owes or (r == 0 and action == RAISE))  # the big blind is round 1's bet (R1.3)


def describe_betting(seen: Seen) -> list[str]:
    """One line for each betting round so far, as ``round 2: they check, you bet, they call``."""
    lines = []
    for r, wagers in enumerate(seen.wagers[: seen.phase // 2 + 1]):
        mine = seen.dealer if r == 0 else not seen.dealer  # the dealer opens round 1 only (R2.1, R2.2)
        owes, words = r == 0, []
        for action in wagers:
            words.append(f"{'you' if mine else 'they'} {_word(action, r, owes)}")
            owes = action == RAISE
            mine = not mine
        if words:
            lines.append(f"round {r + 1}: {', '.join(words)}")
    return lines


def describe_draws(seen: Seen) -> str:
    """Cards thrown so far, ``you drew 3, 1; they drew 2``; empty before the first draw."""
    parts = [
        f"{who} drew {', '.join(map(str, counts))}"
        for who, counts in (("you", seen.own_draws), ("they", seen.other_draws))
        if counts
    ]
    return "; ".join(parts)


def read_answer(answer: str, hand: tuple[int, ...]) -> int:
    """The action an answer means: the texts of `archie_env.actions`, a bet's number, and the short forms of the help."""
    words = answer.split()
    if not words:
        raise ArchieError("nothing entered")
    verb = words[0].lower()
    if len(words) == 1 and verb.isascii() and verb.isdigit():
        if int(verb) < DISCARD:
            return int(verb)
        raise ArchieError(f"{verb}: name the cards to throw, or pat")  # numbers of discards are easily taken for counts
    if verb in ("d", "discard"):
        letters = "".join(words[1:])
        cards = "".join(letters[i : i + 1].upper() + letters[i + 1 : i + 2].lower() for i in range(0, len(letters), 2))
        return parse_action(f"discard {cards}", hand)
    return parse_action(_SHORT.get(" ".join(words).lower(), " ".join(words).lower()), hand)


class HumanPolicy:
    """Asks a person for every action.

    Args:
        rules: a preset's name or a `Rules` value.
        answers: where answers are read, line by line; the terminal by default.
        screen: where questions are written; the terminal by default.
    """

    name = "human"

    def __init__(self, rules: Rules | str = "archie", answers: TextIO | None = None, screen: TextIO | None = None) -> None:
        self.rules = as_rules(rules)
        self._answers, self._screen = answers, screen

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator | None = None) -> Actions:
        """See `archie_env.policy.Policy.act`; asks about one row after the other.

        Raises:
            PlayerLeftError: the person left.
        """
        rows = checked_rows(observations, masks, self.rules)
        return np.array([self._ask(row, mask) for row, mask in zip(rows, masks, strict=True)], np.int64)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """Not known of a person."""
        raise ArchieError("a human's probabilities are not known: call act")

    def _say(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._screen or sys.stdout, flush=True)

    def _leave(self) -> NoReturn:
        self._say("")
        raise PlayerLeftError("the player left the table")

    def _ask(self, row: NDArray[np.generic], mask: NDArray[np.int8]) -> int:
        seen = decode(row, self.rules)
        self._show(seen, mask)
        while True:
            self._say("> ", end="")
            answer = (self._answers or sys.stdin).readline()
            if not answer or answer.strip().lower() in ("quit", "exit", "q"):
                self._leave()
            if answer.strip().lower() in ("?", "h", "help"):
                self._say(_HELP)
                continue
            try:
                action = read_answer(answer, seen.hand)
                if 0 <= action < len(mask) and mask[action]:
                    return action
                self._say(f"not possible here; {self._menu(seen, mask)}")
            except ArchieError as error:
                self._say(f"{error}; ? for help")

    def _show(self, seen: Seen, mask: NDArray[np.int8]) -> None:
        when = f"{'Draw' if seen.phase & 1 else 'Round'} {seen.phase // 2 + 1}"
        seat = "you deal" if seen.dealer else "you are the big blind"
        owed = f", {seen.owed} to call" if seen.owed else ""
        self._say(f"\n{when}: {seat}, pot {seen.pot}{owed}")
        for line in (*describe_betting(seen), describe_draws(seen)):
            if line:
                self._say(f"  {line}")
        self._say(f"  your hand  {format_cards(seen.hand, ' ')}   {describe_hand(seen.hand, self.rules)}")
        self._say(f"  {self._menu(seen, mask)}")

    def _menu(self, seen: Seen, mask: NDArray[np.int8]) -> str:
        legal = [int(a) for a in np.flatnonzero(mask)]
        words = [f"{a} {_word(a, seen.phase // 2, seen.owed > 0)}" for a in legal if a < DISCARD]
        if STAND_PAT in legal:
            most = max(int(a - DISCARD).bit_count() for a in legal)
            words.append(f"pat, or discard up to {most} of {format_cards(seen.hand, ' ')}")
        return f"you may: {', '.join(words)}"
