"""Positions of a hand as plain data for the page: what a `View` holds, and its sentences in one language.

A frame is made from `Game.view` of one seat and nothing else, so it holds no card that this seat may not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from archie_env.actions import DISCARD, discards, format_action
from archie_env.cards import format_card, format_cards
from archie_env.events import View
from archie_env.game import Game
from archie_env.hands import HandValues
from archie_env.rendering import wording
from archie_env.rendering.wording import Names
from archie_env.words import YOU, Words

Frame = dict[str, Any]
MOVES: Final = ("bet", "draw", "forfeit")
"""Kinds of events that a player decides."""


def moves(game: Game) -> int:
    """How many decisions were made: the number of a position."""
    return sum(event.kind in MOVES for event in game.history)


def frame(game: Game, seat: int | None, names: Names, words: Words) -> Frame:
    """The present position as a seat knows it, or, for None, with both hands open."""
    view, rules = game.view(seat), game.rules
    values = HandValues(rules)
    return {
        "move": moves(game),
        "names": [words.say("terminal.yourself") if name == YOU else name for name in names],
        "size": rules.hand_size,
        "dealer": view.dealer,
        "to_act": view.to_act,
        "drawing": view.drawing,
        "phase": wording.phase(view, rules, words),
        "turn": _turn(view, names, words),
        "paid": list(view.paid),
        "hands": [None if hand is None else [format_card(card) for card in hand] for hand in view.hands],
        "values": [None if hand is None else values.summary(hand, words) for hand in view.hands],
        "draws": [list(draws) for draws in view.draws],
        "log": _log(view, names, words),
        "choices": [list(choice) for choice in wording.choices(view, words)],
        "discards": [action for action in view.legal if action >= DISCARD],
        "result": _result(game, view, names, words),
    }


def _turn(view: View, names: Names, words: Words) -> str:
    if view.to_act is None:
        return ""
    return words.about(f"terminal.to_{'draw' if view.drawing else 'act'}", names[view.to_act])


def _log(view: View, names: Names, words: Words) -> list[dict[str, Any]]:
    """The public course of the hand: a heading and its lines for each round and draw."""
    drawn = wording.drawing(view, names, words)
    told: list[dict[str, Any]] = []
    for number, lines in enumerate(wording.betting(view, names, words)):
        told.append({"title": words.say("terminal.round", n=number + 1), "lines": lines})
        if number < len(drawn):
            told.append({"title": words.say("terminal.draw", n=number + 1), "lines": drawn[number]})
    return [part for part in told if part["lines"]]


def _result(game: Game, view: View, names: Names, words: Words) -> dict[str, Any] | None:
    result = view.result
    if result is None:
        return None
    lines = []
    for award in result.awards:
        reasons = wording.award_reasons(award, game.rules, names, words)
        lines.append(f"{wording.award_words(award, names, words)}: {'; '.join(reasons)}")
    division = wording.division_words(result, names, words)
    return {
        "net": list(result.net),
        "shown": result.folded is None,
        "text": wording.net_words(view, names, words),
        "lines": [*lines, division] if division else lines,
    }


def positions(game: Game) -> Iterator[Game]:
    """The hand before its first decision and after each, always the same object."""
    again = Game(game.rules, dealer=game.dealer, deck=game.deck, replacements=game.replacements)
    yield again
    for event in game.history:
        if event.kind not in MOVES:
            continue
        if event.action is None:
            again.forfeit(event.seat)
        else:
            again.apply(event.action)
        yield again


def replay(game: Game, seat: int | None, names: Names, words: Words) -> list[Frame]:
    """A frame for each position of a hand, as a seat knew it then, or, for None, with both hands open."""
    return [frame(position, seat, names, words) for position in positions(game)]


def reviewed(game: Game, review: dict[str, Any], words: Words) -> dict[str, Any]:
    """A review, as `Review.to_dict` gives it, with the number of each position and each action in words."""
    before = {}
    events = iter([at for at, event in enumerate(game.history) if event.kind in MOVES])
    for number, position in enumerate(positions(game)):
        at = next(events, None)
        if at is not None:
            before[at] = (number, dict(wording.choices(position.view(), words)), position.hands[review["seat"]])
    decisions = []
    for decision in review["decisions"]:
        number, choices, hand = before[decision["move"]]
        actions = [action | {"text": _text(action["action"], choices, hand, words)} for action in decision["actions"]]
        title = words.say(f"terminal.{'draw' if decision['kind'] == 'draw' else 'round'}", n=decision["round"])
        cards = [format_card(card) for card in hand]
        decisions.append(decision | {"at": number, "title": title, "hand": cards, "actions": actions})
    return review | {"decisions": decisions}


def _text(action: int, choices: dict[int, str], hand: tuple[int, ...], words: Words) -> str:
    if action in choices:
        return choices[action]
    if action < DISCARD:
        return format_action(action)
    thrown = discards(action, hand)
    return words.say("table.discard", cards=format_cards(thrown, " ")) if thrown else words.say("action.pat")
