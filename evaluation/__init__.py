"""Measure players: matches, round robins, exploitability and lower bounds on it.

The functions are imported on first use, so that one of them does not load the libraries of all:

>>> from agents import load
>>> from evaluation import play_match
>>> play_match(load("call_draw"), load("call"), deals=100, seed=1).hands
200
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from evaluation.aivat.match import play_adjusted
    from evaluation.best_response.bound import best_response as lower_bound
    from evaluation.duplicate.match import play_match
    from evaluation.exploitability.measure import measure as measure_exploitability
    from evaluation.tournament.round_robin import Conditions
    from evaluation.tournament.round_robin import play as round_robin

__all__ = ["Conditions", "lower_bound", "measure_exploitability", "play_adjusted", "play_match", "round_robin"]

_SOURCES: Final = {
    "Conditions": ("evaluation.tournament.round_robin", "Conditions"),
    "lower_bound": ("evaluation.best_response.bound", "best_response"),
    "measure_exploitability": ("evaluation.exploitability.measure", "measure"),
    "play_adjusted": ("evaluation.aivat.match", "play_adjusted"),
    "play_match": ("evaluation.duplicate.match", "play_match"),
    "round_robin": ("evaluation.tournament.round_robin", "play"),
}
"""Module and name of each function."""


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _SOURCES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return [*globals(), *_SOURCES]
