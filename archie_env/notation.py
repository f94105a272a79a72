r"""Hand histories as text, with an exact inverse.

``dump`` writes every card and action of a hand; ``parse`` plays it again and checks every line of the text against what
happened, so a history can't lie.  Several hands in one text are separated by blank lines.

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

from archie_env._core.state import CALL, FOLD
from archie_env.actions import discard
from archie_env.cards import format_cards, parse_cards
from archie_env.errors import ArchieError, CardError, NotationError, RulesError
from archie_env.game import SEATS, Event, Game
from archie_env.rendering.wording import short
from archie_env.rules import PRESETS, Rules

_TITLE = "Archie hand history 1"
_ACTS = re.compile(r"(player_[01]) (folds|checks|calls|bets|raises|stands pat|discards)(.*)")


def _format_rules(rules: Rules) -> str:
    return rules.name if rules.name in PRESETS else json.dumps(rules.to_dict())


def _parse_rules(text: str) -> Rules:
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
    raise RulesError(f"rules {short(text, 200)!r}: expected one of {', '.join(PRESETS)}, or the options as JSON")


def describe_event(event: Event, owed: int = 0, wager: int = 0) -> str:
    """One event in words.

    Args:
        event: what happened.
        owed: chips the player owed before a betting action: it tells a call from a check.
        wager: chips of the highest wager of this round before the action: it tells a raise from a bet.
    """
    who = SEATS[event.seat]
    if event.kind == "deal":
        return f"{who} is dealt {format_cards(event.cards, ' ')}"
    if event.kind == "draw":
        return f"{who} discards {format_cards(event.cards, ' ')}" if event.cards else f"{who} stands pat"
    if event.action == FOLD:
        return f"{who} folds"
    if event.action == CALL:
        return f"{who} calls {owed}" if owed else f"{who} checks"
    return f"{who} raises to {event.wager}" if wager else f"{who} bets {event.wager}"


def transcript(game: Game) -> Iterator[str]:
    """The hand in words, a line at a time, all cards open."""
    heading, wagers = "", [0, 0]
    for event in game.history:
        stages = {"bet": f"-- betting round {event.round + 1} --", "draw": f"-- draw {event.round + 1} --"}
        stage = stages.get(event.kind, heading)
        if stage != heading:
            heading = stage
            wagers = wagers if event.round == 0 else [0, 0]  # the blinds count in the first round (R1.2)
            yield stage
        if event.kind == "deal" and not event.cards:
            continue
        if event.kind == "post":
            blind = "small" if event.seat == game.dealer else "big"
            yield f"{SEATS[event.seat]} posts the {blind} blind {event.wager}"
        else:
            yield describe_event(event, wagers[1 - event.seat] - wagers[event.seat], max(wagers))
        if event.kind in ("post", "bet"):
            wagers[event.seat] = event.wager
    if game.over:
        for part in game.result.awards:
            winners = " and ".join(f"{SEATS[s]} wins {chips}" for s, chips in enumerate(part.chips) if chips)
            yield f"{winners or 'nobody wins anything'}{'' if part.half == 'pot' else f' for {part.half}'}: {part.reason}"
        net = game.result.net
        yield f"net {SEATS[0]} {net[0]:+d}, {SEATS[1]} {net[1]:+d}"


def dump(game: Game) -> str:
    """A hand, finished or not, as text; `parse` makes an equal `Game` of it."""
    head = (
        _TITLE,
        f"rules {_format_rules(game.rules)}",
        f"replacements {game.replacements}",
        f"deck {format_cards(game.deck)}",
    )
    return "\n".join((*head, *transcript(game))) + "\n"


def _header(lines: list[str], place: int, word: str) -> str:
    if place >= len(lines) or not lines[place].startswith(f"{word} "):
        found = repr(lines[place]) if place < len(lines) else "the end of the text"
        raise NotationError(f"line {place + 1}: expected '{word} ...', found {found}")
    return lines[place][len(word) + 1 :]


def _action(game: Game, line: str) -> int | None:
    """The action a line reports, or None for a line that only tells what follows from the actions."""
    match = _ACTS.fullmatch(line)
    if match is None:
        return None
    who, verb, rest = match.groups()
    seat = SEATS.index(who)
    if verb in ("stands pat", "discards"):
        return discard(game.hands[seat], parse_cards(rest))
    return {"folds": 0, "checks": 1, "calls": 1, "bets": 2, "raises": 2}[verb]


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise NotationError(f"hand history: expected text, found {type(text).__name__}")


def parse(text: str) -> Game:
    """The hand that `dump` wrote.

    Raises:
        NotationError: naming the line that does not parse, is illegal, or tells something else than what the cards and the
            actions before it lead to.
    """
    _check_text(text)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    if not lines or lines[0] != _TITLE:
        raise NotationError(f"line 1: expected {_TITLE!r}, found {lines[0] if lines else 'the end of the text'!r}")
    place = 1
    try:
        rules = _parse_rules(_header(lines, 1, "rules"))
        replacements = _header(lines, place := 2, "replacements")
        deck = parse_cards(_header(lines, place := 3, "deck"))
        first = "player_0" if lines[4:5] and lines[4].startswith("player_0") else "player_1"
        _header(lines, place := 4, first)
        if len(deck) != rules.deck_size:
            place = 3
            raise CardError(f"deck of {len(deck)} cards: expected all {rules.deck_size}")
        game = Game(rules, dealer=SEATS.index(first), deck=deck, replacements=replacements)  # type: ignore[arg-type]
        for place in range(5, len(lines)):
            action = _action(game, lines[place])
            if action is not None:
                game.apply(action)
    except NotationError:
        raise
    except ArchieError as error:
        raise NotationError(f"line {place + 1}: {error}") from error
    for place, (told, happened) in enumerate(zip(lines, dump(game).splitlines(), strict=False)):
        if told != happened:
            raise NotationError(f"line {place + 1}: the text says {told!r}, but what happened is {happened!r}")
    missing = len(dump(game).splitlines()) - len(lines)
    if missing:
        where, what = (len(lines), "ends early") if missing > 0 else (len(dump(game).splitlines()), "goes on after the hand")
        raise NotationError(f"line {where + 1}: the text {what}")
    return game


def parse_all(text: str) -> list[Game]:
    """Every hand of a text in which blank lines separate them; errors name the line of the whole text."""
    _check_text(text)
    games: list[Game] = []
    block: list[str] = []
    start = 0
    lines = text.splitlines()
    for place, line in enumerate([*lines, ""]):
        if line.strip():
            start = start if block else place
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
