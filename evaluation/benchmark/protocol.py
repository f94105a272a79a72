"""The protocol of the benchmark: everything that two cards must share to be comparable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from evaluation.best_response.exploiters import Budget, Settings
from evaluation.exploitability.game import Form

VERSION: Final = 2
"""Raised whenever numbers of the same name are no longer comparable."""
REFERENCES: Final = ("uniform", "call", "raise", "call_draw", "raise_draw", "rule_based")
"""Players of the crosstable beside the agent."""
SMALL: Final = ("mini", "midi")
"""Rules of the exact part."""
FULL_GAME: Final = "archie"
"""Rules of all other parts."""
BATCH: Final = 1024
"""Decisions in one call when speed is measured in batches."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Deals, budgets and seed of a card."""

    name: str
    deals: int
    """Deal pairs in each match of the crosstable."""
    bound: Settings
    """Settings of the lower bound."""
    midi: Form | Literal["auto"]
    """Form in which `midi` is measured; ``rank_isomorphic`` refuses policies that depend on suits."""
    speed_seconds: float
    """Processor time of each of the five rounds of a speed measurement."""
    version: int = VERSION
    seed: int = 1


QUICK: Final = Protocol("quick", 10_000, Settings(Budget(600_000), 10_000, 1_000), "rank_isomorphic", 0.2)
FULL: Final = Protocol("full", 50_000, Settings(Budget(4_000_000), 50_000, 10_000), "auto", 1.0)
