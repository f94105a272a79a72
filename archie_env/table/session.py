"""A sitting without any transport: takes a message, plays, and answers with plain data.

A message names the position that it was sent from, so that a double click or a late tap never lands in the next one.
Whatever is refused plays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from archie_env.errors import ArchieError, BotError, shown
from archie_env.events import SEATS
from archie_env.game import Game
from archie_env.notation import from_phhs, parse_all
from archie_env.policy import Policy
from archie_env.rendering.wording import Names
from archie_env.rules import Rules
from archie_env.table.frames import Frame, frame, moves, replay, reviewed
from archie_env.table.players import Player
from archie_env.words import LANGUAGES, YOU, Words, words

PERSON, OPPONENT = 0, 1
POSITIONS: Final = {"alternate": None, "dealer": PERSON, "big_blind": OPPONENT}
MOST_HANDS: Final = 2_000
"""Hands that a sitting keeps, and that a file may hold."""
MOST_CHIPS: Final = 10**9

Reply = dict[str, Any]
Reviewer = Callable[[Game, int], dict[str, Any]]


class MessageError(ArchieError):
    """A message that can't be done; nothing was played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person who started the program decided; no message can change it."""

    rules: Rules
    players: tuple[str, ...]
    """Names that a message may ask for."""
    load: Callable[[str], Policy]
    """Loads a player of `players`."""
    new_seed: Callable[[], int]
    """The seed of each sitting."""
    seconds: float = 30.0
    """Limit of a player's decision."""
    open_cards: bool = False
    """Whether the person sees the opponent's cards."""
    review: Reviewer | None = None
    """Judges the decisions of a seat in a finished hand, as a `Review.to_dict`; None: there is none."""


class Session:
    """One sitting: a person against a player, two players watched, or a file of hands."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._forget()

    def _forget(self) -> None:
        self.mode = "lobby"
        self._players: dict[int, Player] = {}
        self._names: Names = SEATS
        self._games: list[Game] = []
        self._total = 0
        self._stack: int | None = None
        self._dealer: int | None = None
        self._seed = 0
        self._notice: tuple[str, dict[str, object]] | None = None
        self._reviews: dict[tuple[int, int], dict[str, Any]] = {}

    def handle(self, message: object) -> Reply:
        """Do what a message asks; raises `ArchieError` where it can't be done, and nothing was played then."""
        if not isinstance(message, dict):
            raise MessageError("message: expected an object")
        language = message.get("lang", "en")
        if not isinstance(language, str) or language not in LANGUAGES:
            raise MessageError(f"lang: expected one of {', '.join(LANGUAGES)}")
        does: dict[str, Callable[[dict[str, Any], Words], Reply]] = {
            "look": self._look,
            "play": self._play,
            "watch": self._watch,
            "open": self._open,
            "deal": self._deal,
            "act": self._act,
            "next": self._next,
            "replay": self._replay,
            "review": self._review,
            "leave": self._leave,
        }
        do = message.get("do")
        if not isinstance(do, str) or do not in does:
            raise MessageError(f"do: expected one of {', '.join(does)}")
        return does[do](message, words(language))

    # ---- beginning

    def _look(self, message: dict[str, Any], spoken: Words) -> Reply:
        return self._table([self._frame(spoken)] if self._games and self.mode != "file" else [], spoken)

    def _leave(self, message: dict[str, Any], spoken: Words) -> Reply:
        self._forget()
        return self._table([], spoken)

    def _player(self, message: dict[str, Any], key: str, seed: int, seat: int) -> Player:
        name = message.get(key)
        if not isinstance(name, str) or name not in self.settings.players:
            raise MessageError(f"{key}: expected one of the players that the program was started with")
        try:
            return Player(name, self.settings.load, seed, seat, self.settings.seconds)
        except BotError as error:
            raise MessageError(f"{name}: {error}") from None

    def _play(self, message: dict[str, Any], spoken: Words) -> Reply:
        position, stack = message.get("position", "alternate"), message.get("stack")
        if not isinstance(position, str) or position not in POSITIONS:
            raise MessageError(f"position: expected one of {', '.join(POSITIONS)}")
        reserve = self.settings.rules.reserve
        if stack is not None and (type(stack) is not int or not reserve <= stack <= MOST_CHIPS):
            raise MessageError(f"stack {shown(stack, 40)}: expected at least {reserve} chips, or none")
        seed = self.settings.new_seed()
        player = self._player(message, "opponent", seed, OPPONENT)
        self._forget()
        self.mode, self._seed, self._stack, self._dealer = "play", seed, stack, POSITIONS[position]
        self._players, self._names = {OPPONENT: player}, (YOU, player.name)
        return self._deal(message, spoken)

    def _watch(self, message: dict[str, Any], spoken: Words) -> Reply:
        seed = self.settings.new_seed()
        first, second = self._player(message, "first", seed, 0), self._player(message, "second", seed, 1)
        self._forget()
        self.mode, self._seed, self._players = "watch", seed, {0: first, 1: second}
        same = first.name == second.name
        self._names = (f"{first.name} 1", f"{second.name} 2") if same else (first.name, second.name)
        return self._deal(message, spoken)

    def _open(self, message: dict[str, Any], spoken: Words) -> Reply:
        text = message.get("text")
        if not isinstance(text, str):
            raise MessageError("text: expected the text of a file of hands")
        text = text.removeprefix("\ufeff")
        games = (parse_all if text.lstrip().startswith("Archie hand history") else from_phhs)(text)
        if not 0 < len(games) <= MOST_HANDS:
            raise MessageError(f"{len(games)} hands: expected 1 to {MOST_HANDS}")
        self._forget()
        self.mode, self._games = "file", games
        return self._replay({"hand": 0}, spoken)

    # ---- playing

    @property
    def _game(self) -> Game:
        if not self._games or self.mode == "file":
            raise MessageError("there is no hand in progress")
        return self._games[-1]

    def _chips(self) -> list[int] | None:
        return None if self._stack is None else [self._stack + self._total, self._stack - self._total]

    def _short(self) -> str | None:
        """The player who can't cover another hand (R1.4)."""
        chips, reserve = self._chips(), self.settings.rules.reserve
        return next((name for name, left in zip(self._names, chips or [], strict=False) if left < reserve), None)

    def _deal(self, message: dict[str, Any], spoken: Words) -> Reply:
        if self.mode not in ("play", "watch"):
            raise MessageError("deal: nobody sits at the table")
        if self._games and not self._games[-1].over:
            raise MessageError("deal: the hand is not over")
        if self._short() is not None or len(self._games) == MOST_HANDS:
            raise MessageError("deal: the sitting is over")
        self._notice = None
        hand = len(self._games)
        self._games.append(Game(self.settings.rules, seed=self._seed, hand=hand, dealer=self._dealer))
        return self._others([self._frame(spoken)], spoken)

    def _expect(self, message: dict[str, Any]) -> Game:
        """The hand in progress, if the message was sent from its present position."""
        game = self._game
        hand, move = message.get("hand"), message.get("move")
        if type(hand) is not int or type(move) is not int:
            raise MessageError("hand and move: expected whole numbers")
        if hand != len(self._games) - 1 or move != moves(game) or game.over:
            raise MessageError("that position is past")
        return game

    def _act(self, message: dict[str, Any], spoken: Words) -> Reply:
        game, action = self._expect(message), message.get("action")
        if self.mode != "play" or game.to_act != PERSON:
            raise MessageError("it is not your turn")
        if type(action) is not int or action not in game.legal_actions():
            raise MessageError("action: not legal here")
        game.apply(action)
        return self._others([self._frame(spoken)], spoken)

    def _next(self, message: dict[str, Any], spoken: Words) -> Reply:
        game = self._expect(message)
        if self.mode != "watch":
            raise MessageError("next: nobody is watched")
        self._ask(game)
        return self._table([self._frame(spoken)], spoken)

    def _ask(self, game: Game) -> None:
        """Let the player to act play; one that fails loses the hand."""
        seat = game.to_act
        assert seat is not None
        try:
            game.apply(self._players[seat].act(game, seat))
        except BotError as error:
            self._notice = "terminal.failed", {"name": self._names[seat], "fault": error.reason}
            game.forfeit(seat)

    def _others(self, frames: list[Frame], spoken: Words) -> Reply:
        """Play on to the person's next decision."""
        game = self._game
        while self.mode == "play" and game.to_act == OPPONENT:
            self._ask(game)
            frames.append(self._frame(spoken))
        if self.mode == "play" and game.over:
            self._total += game.result.net[PERSON]
        return self._table(frames, spoken)

    # ---- showing

    def _seat(self) -> int | None:
        """The seat whose knowledge may leave the sitting; None for everything."""
        return PERSON if self.mode == "play" and not self.settings.open_cards else None

    def _frame(self, spoken: Words) -> Frame:
        told = frame(self._game, self._seat(), self._names, spoken)
        if self.mode != "play" or told["to_act"] != PERSON:
            told["choices"], told["discards"] = [], []
        return told

    def _table(self, frames: list[Frame], spoken: Words) -> Reply:
        over = bool(self._games) and self._games[-1].over
        notice = "" if self._notice is None else spoken.say(self._notice[0], **self._notice[1])
        short = self._short() if over else None
        if short is not None:
            notice = spoken.about("terminal.short", short, reserve=self.settings.rules.reserve)
        return {
            "is": "table",
            "mode": self.mode,
            "hand": len(self._games) - 1,
            "total": self._total,
            "stacks": self._chips(),
            "frames": frames,
            "notice": notice,
            "ended": short is not None,
            "review": self.settings.review is not None,
            "players": list(self.settings.players),
        }

    def _finished(self, message: dict[str, Any]) -> tuple[int, Game]:
        hand = message.get("hand")
        if type(hand) is not int or not 0 <= hand < len(self._games):
            raise MessageError(f"hand: expected a whole number from 0, below {len(self._games)}")
        return hand, self._games[hand]

    def _replay(self, message: dict[str, Any], spoken: Words) -> Reply:
        hand, game = self._finished(message)
        frames = replay(game, self._seat(), self._names, spoken)
        for told in frames:
            told["choices"], told["discards"] = [], []
        return {
            "is": "replay",
            "mode": self.mode,
            "hand": hand,
            "hands": len(self._games),
            "frames": frames,
            "review": self.settings.review is not None and game.over,
        }

    def _review(self, message: dict[str, Any], spoken: Words) -> Reply:
        hand, game = self._finished(message)
        seat = message.get("seat", PERSON)
        if type(seat) is not int or seat not in (0, 1):
            raise MessageError("seat: expected 0 or 1")
        if self._seat() is not None and seat != self._seat():
            raise MessageError("review: the cards of the other seat are not yours to see")
        if not game.over:
            raise MessageError("review: the hand is not over")
        if self.settings.review is None:
            raise MessageError("review: there is no reviewer")
        if (hand, seat) not in self._reviews:
            self._reviews[hand, seat] = self.settings.review(game, seat)
        return {"is": "review", "hand": hand, "review": reviewed(game, self._reviews[hand, seat], spoken)}
