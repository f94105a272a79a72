"""Hands as files: the project's own hand history, the Poker Hand History format for exchange, and events as JSON.

>>> from archie_env import Game
>>> game = Game(seed=7, dealer=0)
>>> game.apply(2); game.apply(0)
>>> parse(dump(game)) == from_phh(to_phh(game)) == game
True
"""

from archie_env.notation.data import schema, to_data, to_json
from archie_env.notation.phh import from_phh, from_phhs, to_phh, to_phhs
from archie_env.notation.text import describe_event, dump, parse, parse_all, transcript

__all__ = [
    "describe_event",
    "dump",
    "from_phh",
    "from_phhs",
    "parse",
    "parse_all",
    "schema",
    "to_data",
    "to_json",
    "to_phh",
    "to_phhs",
    "transcript",
]
