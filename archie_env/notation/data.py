"""A hand as plain data for JSON: what a page, a notebook or a database reads.  `schema` describes it.

>>> data = to_data(Game(seed=7, dealer=0))
>>> data["events"][2]
{'kind': 'deal', 'seat': 1, 'round': 1, 'cards': ['4s', '6s', '9c', 'Js', 'Kd']}
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Final

from archie_env.cards import format_card
from archie_env.events import SEATS, Award, Event
from archie_env.game import Game
from archie_env.rules import PRESETS

VERSION: Final = 1


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a file of hands, ``{"archie": 1, "hands": [...]}``."""
    text = resources.files("archie_env.notation").joinpath("hands.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_data(game: Game) -> dict[str, Any]:
    """One hand, finished or not, all cards open: rules, deck, events in order, and the result or None."""
    result = None
    if game.over:
        found = game.result
        awards = [_award(award) for award in found.awards]
        result = {"net": list(found.net), "paid": list(found.paid), "folded": found.folded, "awards": awards}
    return {
        "rules": game.rules.name if game.rules.name in PRESETS else game.rules.to_dict(),
        "replacements": game.replacements,
        "seats": list(SEATS),
        "dealer": game.dealer,
        "deck": [format_card(card) for card in game.deck],
        "events": [_event(event) for event in game.history],
        "result": result,
    }


def to_json(games: list[Game]) -> str:
    """A file of hands as text, a hand a line; see `schema`."""
    hands = ",\n".join(json.dumps(to_data(game)) for game in games)
    return f'{{"archie": {VERSION}, "hands": [\n{hands}\n]}}\n'


def _event(event: Event) -> dict[str, Any]:
    """What its kind has to tell; betting rounds and draws count from 1, as in every text."""
    told: dict[str, Any] = {"kind": event.kind, "seat": event.seat, "round": event.round + 1}
    if event.kind == "post":
        told["to"] = event.to
    elif event.kind == "bet":
        told |= {"action": event.action, "verb": event.verb, "owed": event.owed, "to": event.to}
    elif event.kind == "draw":
        told["action"] = event.action
    if event.kind in ("deal", "draw"):
        told["cards"] = [format_card(card) for card in event.cards]
    return told


def _award(award: Award) -> dict[str, Any]:
    return {
        "half": award.half,
        "chips": list(award.chips),
        "reason": award.reason,
        "winners": list(award.winners),
        "values": None if award.values is None else list(award.values),
    }
