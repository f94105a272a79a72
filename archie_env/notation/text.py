r"""Hand histories as text, with an exact inverse.

``dump`` writes every card and action of a hand; ``parse`` plays the hand again and refuses a string that differs in any line.
Several hands in one text are separated by blank lines.

>>> game = Game(seed=7, dealer=0)
>>> game.apply(2); game.apply(0)
>>> print("\n".join(transcript(game)))
player_0 posts the small blind 1
player_1 posts the big blind 2
player_1 is dealt 4s 6s 9c Js Kd
player_0 is dealt 2d 2h 3d Jd As
-- betting round 1 --
player_0 raises to 4
player_1 folds
player_0 wins 6: player_1 folded
net player_0 +2, player_1 -2
>>> parse(dump(game)) == game
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from archie_env.actions import CALL, FOLD, RAISE, discard
from archie_env.cards import format_cards, parse_cards
from archie_env.errors import ArchieError, CardError, NotationError, RulesError
from archie_env.events import SEATS, Award, Event
from archie_env.game import Game
from archie_env.rendering import wording
from archie_env.rules import PRESETS, Rules

_TITLE = "Archie hand history 1"
_ACTS = re.compile(r"(player_[01]) (folds|checks|calls|bets|raises|stands pat|discards|gives the hand up)(.*)")
_WITH_CARDS = re.compile(r"(deck |player_[01] is dealt |player_[01] discards )(.*)")


def format_rules(rules: Rules) -> str:
    """The name of a preset, or the options of any other rules as JSON."""
    return rules.name if rules.name in PRESETS else json.dumps(rules.to_dict())


def parse_rules(text: str) -> Rules:
    """The inverse of `format_rules`; raises `RulesError`."""
    if text in PRESETS:
        return PRESETS[text]
    try:
        values = json.loads(text)
        if isinstance(values, dict):
            return Rules.from_dict(values)
    except RulesError:
        raise
    except (ValueError, TypeError, RecursionError):  # no JSON, or a number or depth beyond what Python reads or prints
        pass
    raise RulesError(f"rules {wording.short(text, 200)!r}: expected one of {', '.join(PRESETS)}, or the options as JSON")


def describe_event(event: Event) -> str:
    """One event in words, all cards open."""
    name = SEATS[event.seat]
    if event.kind == "deal":
        return f"{name} is dealt {format_cards(event.cards, ' ')}"
    if event.kind == "draw":
        return f"{name} discards {format_cards(event.cards, ' ')}" if event.cards else f"{name} stands pat"
    if event.kind == "forfeit":
        return f"{name} gives the hand up"
    return wording.event_words(event) + (f" {event.owed}" if event.verb == "call" else "")


def _describe_award(award: Award, rules: Rules) -> str:
    shares = " and ".join(f"{SEATS[s]} wins {chips}" for s, chips in enumerate(award.chips) if chips)
    reasons = wording.award_reasons(award, rules)
    if award.values is not None and len(award.winners) == 1:  # "player_0 has a wheel, player_1 no low"
        winner, loser, *others = reasons
        reasons = [f"{winner}, {loser.replace(' has ', ' ', 1)}", *others]
    return f"{shares}{'' if award.half == 'pot' else f' for {award.half}'}: {'; '.join(reasons)}"


def _lines(game: Game) -> Iterator[str]:
    """The lines of a history after its head."""
    heading = ""
    for event in game.history:
        if event.kind in ("bet", "draw"):
            stage = f"-- {'betting round' if event.kind == 'bet' else 'draw'} {event.round + 1} --"
            if stage != heading:
                yield stage
            heading = stage
        if event.kind == "post":
            yield f"{SEATS[event.seat]} posts the {'small' if event.seat == game.dealer else 'big'} blind {event.to}"
        elif event.kind != "deal" or event.cards:
            yield describe_event(event)
    if game.over:
        for award in game.result.awards:
            yield _describe_award(award, game.rules)
        net = game.result.net
        yield f"net {SEATS[0]} {net[0]:+d}, {SEATS[1]} {net[1]:+d}"


def transcript(game: Game) -> Iterator[str]:
    """The hand in words for a reader, a line at a time, all cards open.

    The lines of `dump` after its head, and before the last one the name of a scoop or a quarter, which the file leaves out.
    """
    lines = list(_lines(game))
    division = wording.division_words(game.result) if game.over else ""
    if division:
        lines.insert(-1, division)
    yield from lines


def dump(game: Game) -> str:
    """A hand, finished or not, as text; `parse` makes an equal `Game` of it."""
    head = (
        _TITLE,
        f"rules {format_rules(game.rules)}",
        f"replacements {game.replacements}",
        f"deck {format_cards(game.deck)}",
    )
    return "\n".join((*head, *_lines(game))) + "\n"


def _header(lines: list[str], i: int, word: str) -> str:
    if i >= len(lines) or not lines[i].startswith(f"{word} "):
        found = repr(lines[i]) if i < len(lines) else "the end of the text"
        raise NotationError(f"line {i + 1}: expected '{word} ...', found {found}")
    return lines[i][len(word) + 1 :]


def _play_line(game: Game, line: str) -> None:
    """Play the action that a line reports; other lines follow from the actions."""
    match = _ACTS.fullmatch(line)
    if match is None:
        return
    name, verb, rest = match.groups()
    seat = SEATS.index(name)
    if verb == "gives the hand up":
        game.forfeit(seat)
    elif verb in ("stands pat", "discards"):
        game.apply(discard(game.hands[seat], parse_cards(rest)))
    else:
        game.apply({"folds": FOLD, "checks": CALL, "calls": CALL, "bets": RAISE, "raises": RAISE}[verb])


def _check_text(text: object) -> str:
    """The text without a byte order mark."""
    if not isinstance(text, str):
        raise NotationError(f"hand history: expected text, found {type(text).__name__}")
    return text.removeprefix("\ufeff")


def _canonical(line: str) -> str:
    """The line with its cards written as `dump` writes them."""
    match = _WITH_CARDS.fullmatch(line)
    if match is None:
        return line
    start, cards = match.groups()
    try:
        return start + format_cards(parse_cards(cards), "" if start == "deck " else " ")
    except CardError:
        return line  # refused where it is read


def _play_lines(lines: list[str]) -> Game:
    """The game of a history, its head checked and its actions played; errors name the line."""
    if not lines or lines[0] != _TITLE:
        raise NotationError(f"line 1: expected {_TITLE!r}, found {lines[0] if lines else 'the end of the text'!r}")
    i = 1
    try:
        rules = parse_rules(_header(lines, 1, "rules"))
        replacements = _header(lines, i := 2, "replacements")
        deck = parse_cards(_header(lines, i := 3, "deck"))
        first = "player_0" if lines[4:5] and lines[4].startswith("player_0") else "player_1"
        _header(lines, i := 4, first)
        if len(deck) != rules.deck_size:
            i = 3
            raise CardError(f"deck of {len(deck)} cards: expected all {rules.deck_size}")
        game = Game(rules, dealer=SEATS.index(first), deck=deck, replacements=replacements)  # type: ignore[arg-type]
        for i in range(5, len(lines)):
            _play_line(game, lines[i])
    except NotationError:
        raise
    except ArchieError as error:
        raise NotationError(f"line {i + 1}: {error}") from error
    return game


def parse(text: str) -> Game:
    """The hand that `dump` wrote.  Cards may be written in any form that `parse_cards` reads.

    Raises:
        NotationError: naming the first line that does not parse, is illegal, or differs from the hand that the cards and the
            actions before it lead to.
    """
    lines = [_canonical(line.rstrip()) for line in _check_text(text).strip().splitlines()]
    game = _play_lines(lines)
    expected = dump(game).splitlines()
    for i, (found, line) in enumerate(zip(lines, expected, strict=False)):
        if found != line:
            raise NotationError(f"line {i + 1}: found {found!r}, but by the cards and actions before it this is {line!r}")
    if len(lines) < len(expected):
        raise NotationError(f"line {len(lines) + 1}: the text ends early")
    if len(lines) > len(expected):
        raise NotationError(f"line {len(expected) + 1}: the text goes on after the hand")
    return game


def parse_all(text: str) -> list[Game]:
    """Every hand of a text in which blank lines separate them; errors name the line of the whole text."""
    games: list[Game] = []
    block: list[str] = []
    start = 0
    for i, line in enumerate([*_check_text(text).splitlines(), ""]):
        if line.strip():
            start = start if block else i
            block.append(line)
        elif block:
            try:
                games.append(parse("\n".join(block)))
            except NotationError as error:
                raise NotationError(f"hand {len(games) + 1}, which begins in line {start + 1}: {error}") from error
            block = []
    if not games:
        raise NotationError("line 1: no hand history in this text")
    return games
