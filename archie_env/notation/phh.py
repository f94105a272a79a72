r"""Hands in the Poker Hand History format (PHH, TOML), for tools that read it.

The format has no code for Archie.  Hands are written under ``FA``, with what the format can't say in fields that begin with an
underscore, as it asks; tools that know the format read the actions.  Under the code of another game they would be paid wrongly.
Player 1 of a file is the big blind, player 2 the dealer.

>>> game = Game(seed=7, dealer=0)
>>> game.apply(2); game.apply(0)
>>> from_phh(to_phh(game, ("Ann", "Bob"))) == game
True
>>> [line for line in to_phh(game, ("Ann", "Bob")).splitlines() if line.startswith(("actions", "players"))]
["actions = ['d dh p1 4s6s9cJsKd', 'd dh p2 2d2h3dJdAs', 'p2 cbr 4', 'p1 f']", 'players = ["Bob", "Ann"]']
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from archie_env.actions import CALL, FOLD, RAISE, discard
from archie_env.cards import DECK, format_cards, parse_cards
from archie_env.errors import ArchieError, NotationError, shown
from archie_env.events import SEATS, Event
from archie_env.game import Game
from archie_env.notation.text import format_rules, parse_rules
from archie_env.rules import Rules

VARIANT: Final = "FA"
"""No game of the format; a code would have to be given by its authors."""
VERSION: Final = 1
MOST_CHARACTERS: Final = 20_000_000
"""Of a text that is read; a hand takes about a thousand."""
_STACK: Final = 1000
"""Chips each player is said to start with: far above all that a hand can cost, as tools take a last chip for an all-in."""
_BETTING: Final = {"f": FOLD, "cc": CALL, "cbr": RAISE}
_ACTION: Final = re.compile(r"d dh p([12]) (\S+)|p([12]) (f|cc|sd|cbr \d{1,9}|sd \S+|sm \S+)")


def _check_full(rules: Rules) -> None:
    if rules.deck != DECK:
        raise NotationError(f"rules {rules.name!r}: expected a deck of 52 cards, the only one that the format knows")


def _action(event: Event, number: int) -> str:
    """One event as an action of player ``number``; nothing for what the format leaves out."""
    if event.kind == "deal":
        return f"d dh p{number} {format_cards(event.cards)}" if event.cards else ""
    if event.kind == "draw":
        return f"p{number} sd {format_cards(event.cards)}".rstrip()
    if event.kind == "forfeit":
        return f"p{number} f"
    if event.kind == "post":
        return ""
    return f"p{number} " + ("f", "cc", f"cbr {event.to}")[event.action or 0]


def _fields(game: Game, players: Sequence[str]) -> dict[str, Any]:
    """The fields of a hand in the order written."""
    order = 1 - game.dealer, game.dealer
    number = {seat: i for i, seat in enumerate(order, 1)}
    actions = [text for event in game.history if (text := _action(event, number[event.seat]))]
    if game.over and game.result.folded is None:
        actions += [f"p{number[seat]} sm {format_cards(game.hands[seat])}" for seat in order]
    stakes = game.rules.stakes
    fields: dict[str, Any] = {
        "variant": VARIANT,
        "antes": [0, 0],
        "blinds_or_straddles": list(stakes.blinds),
        "small_bet": stakes.bets[0],
        "big_bet": stakes.bets[-1],
        "starting_stacks": [_STACK, _STACK],
        "actions": actions,
        "players": [players[seat] for seat in order],
    }
    if game.over:
        fields["finishing_stacks"] = [_STACK + game.result.net[seat] for seat in order]
    fields |= {
        "_archie": VERSION,
        "_rules": format_rules(game.rules),
        "_replacements": game.replacements,
        "_dealer": SEATS[game.dealer],
        "_deck": format_cards(game.deck),
    }
    if game.history[-1].kind == "forfeit":
        fields["_forfeited"] = True
    return fields


def _toml(value: Any, name: str) -> str:
    if name == "actions":
        return f"[{', '.join(repr(action) for action in value)}]"
    return json.dumps(value, ensure_ascii=False)


def to_phh(game: Game, players: Sequence[str] = SEATS) -> str:
    """One hand, finished or not, as the text of a ``.phh`` file; `from_phh` makes an equal `Game` of it.

    Args:
        game: a hand of rules with a deck of 52 cards.
        players: names by seat.

    Raises:
        NotationError: for other decks, and names that are no printable text.
    """
    _check_full(game.rules)
    if isinstance(players, str) or len(players) != 2:
        raise NotationError(f"players {shown(players)}: expected two names")
    for name in players:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise NotationError(f"player {shown(name)}: expected a name that can be printed")
    return "".join(f"{name} = {_toml(value, name)}\n" for name, value in _fields(game, players).items())


def to_phhs(games: Sequence[Game], players: Sequence[str] = SEATS) -> str:
    """Several hands as the text of a ``.phhs`` file, in which each has a table of its own, numbered from 1."""
    return "\n".join(f"[{i}]\n{to_phh(game, players)}" for i, game in enumerate(games, 1))


def from_phh(text: str) -> Game:
    """The hand of a ``.phh`` file: its actions are played, and everything that it tells besides must follow from them.

    A file of another tool may leave out ``_deck``: the cards not dealt then follow in order, and replacements are shared.

    Raises:
        NotationError: for anything else than one hand of Archie, naming the field or the action.
    """
    return _game(_read(text))


def from_phhs(text: str) -> list[Game]:
    """The hands of a ``.phhs`` file, or the one of a ``.phh`` file; errors name the hand."""
    tables = _read(text)
    if "variant" in tables:
        return [_game(tables)]
    games = []
    for name, fields in tables.items():
        try:
            if not isinstance(fields, dict):
                raise NotationError(f"{shown(fields)}: expected a table")
            games.append(_game(fields))
        except NotationError as error:
            raise NotationError(f"hand [{shown(name)[1:-1]}]: {error}") from error
    if not games:
        raise NotationError("no hand in this text: expected a field 'variant', or tables [1], [2], ...")
    return games


def _read(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise NotationError(f"hand history: expected text, found {type(text).__name__}")
    if len(text) > MOST_CHARACTERS:
        raise NotationError(f"hand history of {len(text):,} characters: expected at most {MOST_CHARACTERS:,}")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:  # no TOML, a number of too many digits, tables in tables in tables
        raise NotationError(f"no TOML: {shown(str(error))[1:-1]}") from None


def _field(fields: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """A field of exactly that type; True is no number."""
    value = fields.get(name, default)
    if type(value) is not kind:
        found = f"{name} = {shown(value)}" if name in fields else f"no field {name!r}"
        raise NotationError(f"{found}: expected {'text' if kind is str else 'an array' if kind is list else 'a whole number'}")
    return value


def _game(fields: Mapping[str, Any]) -> Game:
    """Play a hand and compare all that the file tells with what came of it."""
    if fields.get("variant") != VARIANT or "_archie" not in fields:
        found = shown(fields.get("variant"))
        raise NotationError(f"variant {found}: expected {VARIANT!r} with a field '_archie': no game of the format is Archie")
    if _field(fields, "_archie", int) != VERSION:
        raise NotationError(f"_archie = {shown(fields['_archie'])}: expected {VERSION}")
    actions = [_canonical(i, action) for i, action in enumerate(_field(fields, "actions", list), 1)]
    rules = _parsed("_rules", parse_rules, _field(fields, "_rules", str))
    _check_full(rules)
    dealer = _field(fields, "_dealer", str, SEATS[0])
    if dealer not in SEATS:
        raise NotationError(f"_dealer = {shown(dealer)}: expected {' or '.join(SEATS)}")
    if "_deck" in fields:
        deck = _parsed("_deck", parse_cards, _field(fields, "_deck", str))
        if len(deck) != rules.deck_size:
            raise NotationError(f"_deck of {len(deck)} cards: expected all {rules.deck_size}")
        replacements = _field(fields, "_replacements", str)
    else:
        deck, replacements = _dealt(actions), "shared"
    try:
        game = Game(rules, dealer=SEATS.index(dealer), deck=deck, replacements=replacements)
    except ArchieError as error:
        raise NotationError(f"_deck and _replacements: {error}") from error
    _play(game, actions, fields.get("_forfeited") is True)
    _compare(fields, actions, game)
    return game


def _parsed(name: str, parse: Any, value: Any) -> Any:
    try:
        return parse(value)
    except ArchieError as error:
        raise NotationError(f"{name}: {error}") from error


def _canonical(number: int, action: object) -> str:
    """An action as it is written here: without its comment, cards ascending."""
    text = " ".join(action.partition("#")[0].split()) if isinstance(action, str) and len(action) <= 1000 else ""
    found = _ACTION.fullmatch(text)
    if found is None:
        expected = "'d dh p1 2s3c4cJhQs', 'p1 cc', 'p2 cbr 4' or 'p1 sd JhQs'"
        raise NotationError(f"action {number}, {shown(action)}: expected such as {expected}")
    if cards := found[2] or text.partition(" sd ")[2] or text.partition(" sm ")[2]:
        try:
            return text.removesuffix(cards) + format_cards(sorted(parse_cards(cards)))
        except ArchieError as error:
            raise NotationError(f"action {number}, {shown(action)}: {error}") from error
    return text


def _dealt(actions: Sequence[str]) -> tuple[int, ...]:
    """The cards that were dealt in the order of a deck: the first hands one card at a time, replacements in blocks."""
    blocks = [parse_cards(action.split()[3]) for action in actions if action.startswith("d dh ")]
    if len(blocks) < 2 or len(blocks[0]) != len(blocks[1]):
        raise NotationError("actions: expected to begin with 'd dh p1 ...' and 'd dh p2 ...'")
    return (*chain(*zip(*blocks[:2], strict=True)), *chain(*blocks[2:]))


def _play(game: Game, actions: Sequence[str], forfeited: bool) -> None:
    """Play what the players did; deals and shown hands follow from it."""
    order = 1 - game.dealer, game.dealer
    played = [(i, action.split()) for i, action in enumerate(actions, 1) if action[0] == "p" and action.split()[1] != "sm"]
    for i, (player, verb, *rest) in played:
        seat = order[int(player[1]) - 1]
        try:
            if forfeited and i == played[-1][0]:
                game.forfeit(seat)
            elif seat != game.to_act:
                due = "the hand is over" if game.to_act is None else f"expected p{order.index(game.to_act) + 1} to act"
                raise NotationError(due)
            elif verb == "sd":
                game.apply(discard(game.hands[seat], parse_cards(rest[0] if rest else "")))
            else:
                game.apply(_BETTING[verb])
        except ArchieError as error:
            raise NotationError(f"action {i}, {actions[i - 1]!r}: {error}") from error


def _compare(fields: Mapping[str, Any], actions: Sequence[str], game: Game) -> None:
    """Raise `NotationError` for the first thing that a file tells otherwise than it came out."""
    expected = _fields(game, SEATS)
    for i in range(max(len(actions), len(expected["actions"]))):
        found, right = (repr(texts[i]) if i < len(texts) else "the end" for texts in (actions, expected["actions"]))
        if found != right:
            raise NotationError(f"action {i + 1}: found {found}, but by the cards and actions before it this is {right}")
    for name in ("antes", "blinds_or_straddles", "small_bet", "big_bet"):
        if name in fields and _plain(fields[name]) != _plain(expected[name]):
            raise NotationError(f"{name} = {shown(fields[name])}: expected {expected[name]} under rules {game.rules.name!r}")
    for name in ("starting_stacks", "finishing_stacks"):
        if name in fields and not (isinstance(fields[name], list) and _plain(fields[name]) and len(fields[name]) == 2):
            raise NotationError(f"{name} = {shown(fields[name])}: expected two whole numbers")
    if "finishing_stacks" in fields:
        before, after = fields.get("starting_stacks", expected["starting_stacks"]), fields["finishing_stacks"]
        net = [game.result.net[seat] for seat in (1 - game.dealer, game.dealer)] if game.over else [0, 0]
        due = [chips + won for chips, won in zip(before, net, strict=True)]
        if after != due:
            raise NotationError(f"finishing_stacks = {shown(after)}: expected {due}")


def _plain(value: object) -> list[int] | None:
    """Whole numbers as a list; None for anything else, which equals no expected value."""
    numbers = value if isinstance(value, list) else [value]
    return [number for number in numbers if type(number) is int] if all(type(n) is int for n in numbers) else None
