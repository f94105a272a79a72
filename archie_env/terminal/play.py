"""Hands of a person against a policy at the terminal, as `archie play` deals them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from archie_env.errors import PlayerLeftError, described, printable
from archie_env.events import SEATS
from archie_env.game import Game
from archie_env.policy import Policy, private_generator
from archie_env.rendering import wording
from archie_env.rules import Rules
from archie_env.terminal.console import Console
from archie_env.validation import whole_actions, whole_number
from archie_env.words import YOU

Position = Literal["dealer", "big_blind", "alternate"]
PERSON, OPPONENT = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """The settings of a session at the table."""

    rules: Rules
    opponent: Policy
    seed: int
    position: Position = "alternate"
    """The person's position; ``alternate`` swaps positions from hand to hand (R1.5)."""
    hands: int | None = None
    """Hands to play, or None to go on until the person leaves."""
    stack: int | None = None
    """Chips each player starts with; the session ends when a player can't cover ``rules.reserve`` (R1.4).  None: no limit."""
    open_cards: bool = False
    """Whether the opponent's cards are shown."""
    keep: Callable[[Game], None] | None = None
    """Called with every finished hand."""

    def __post_init__(self) -> None:
        if self.stack is not None:
            whole_number("stack", self.stack, self.rules.reserve)


def play(sitting: Sitting, console: Console) -> int:
    """Play until all hands are played, a player can't cover the next one, or the person leaves.

    Leaving gives up a hand in progress, and so does Ctrl-C.

    Returns:
        The person's net chips.
    """
    table = _Table(sitting, console)
    say = console.words.say
    console.say(say("terminal.welcome", opponent=table.names[OPPONENT], rules=sitting.rules.name, seed=sitting.seed))
    try:
        table.play_hands()
    except (PlayerLeftError, KeyboardInterrupt) as error:
        console.say("")
        table.leave()
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        console.say(table.counted("terminal.goodbye"))
    return table.total


class _Table:
    """A session: the hand in progress, and the hands and chips so far."""

    def __init__(self, sitting: Sitting, console: Console) -> None:
        self.sitting, self.console = sitting, console
        self.names = (YOU, printable(str(sitting.opponent.name)))
        self.played = self.total = 0
        self._rng = private_generator(sitting.seed, "opponent", 0)
        self._game: Game | None = None
        self._asked = PERSON  # the seat that leaves when an answer ends the session

    def play_hands(self) -> None:
        """Play the hands of the session, with a pause after each."""
        while self.sitting.hands is None or self.played < self.sitting.hands:
            if self.played:
                self.console.ask(self.console.words.say("terminal.next_hand"))
            self._play_hand()
            short = [name for name, chips in zip(self.names, self._chips(), strict=True) if not self._covers(chips)]
            if short:
                reserve = self.sitting.rules.reserve
                self.console.say(self.console.words.about("terminal.short", short[0], reserve=reserve))
                return

    def leave(self) -> None:
        """Give up the hand in progress, if there is one, for the player who left."""
        if self._game is None:
            return
        interrupted = self._game
        game = Game(interrupted.rules, dealer=interrupted.dealer, deck=interrupted.deck)
        for action in interrupted.actions:  # an interrupt may have come in the middle of an action
            game.apply(action)
        if not game.over:
            game.forfeit(self._asked)
        self._finish(game)

    def counted(self, key: str) -> str:
        """Say something of the hands played and the chips won."""
        return self.console.words.count(key, self.played, hands=self.played, chips=wording.signed(self.total))

    def _chips(self) -> tuple[int, int]:
        stack = self.sitting.stack or 0
        return stack + self.total, stack - self.total

    def _covers(self, chips: int) -> bool:
        return self.sitting.stack is None or chips >= self.sitting.rules.reserve

    def _play_hand(self) -> None:
        sitting = self.sitting
        dealer = {"dealer": PERSON, "big_blind": OPPONENT, "alternate": None}[sitting.position]
        game = self._game = Game(sitting.rules, seed=sitting.seed, hand=self.played, dealer=dealer)
        self.console.say("\n" + self.console.words.say("terminal.hand", n=self.played + 1))
        while not game.over:
            self._asked = game.to_act or 0
            if self._asked == PERSON:
                self._show(game)
                game.apply(self.console.decide(game.view(PERSON), sitting.rules))
            else:
                self._play_opponent(game)
        self._finish(game)

    def _play_opponent(self, game: Game) -> None:
        """Play the opponent's action; an opponent that fails loses the hand."""
        name = self.names[OPPONENT]
        try:
            row, mask = game.observation(OPPONENT)[None].copy(), game.mask(OPPONENT)[None].copy()
            answer = self.sitting.opponent.act(row, mask, self._rng)
            action = int(whole_actions(answer, 1)[0])
        except (KeyboardInterrupt, PlayerLeftError):
            raise
        except BaseException as error:  # whatever a bot raises, SystemExit included, ends no session
            fault = described(error)
        else:
            if action in game.legal_actions():
                game.apply(action)
                return
            fault = f"action {action} is not legal here"
        self.console.say(self.console.words.say("terminal.failed", name=name, fault=fault))
        game.forfeit(OPPONENT)

    def _finish(self, game: Game) -> None:
        """Count and keep a hand that is over, and show its result."""
        self._game = None
        self.played += 1
        self.total += game.result.net[PERSON]
        if self.sitting.keep:
            self.sitting.keep(game)
        self._show(game)
        self.console.say(self.counted("terminal.total"))

    def _show(self, game: Game) -> None:
        stacks = None if self.sitting.stack is None else dict(zip(SEATS, self._chips(), strict=True))
        view = game.view(None if self.sitting.open_cards else PERSON)
        self.console.show(view, game.rules, self.names, stacks)
