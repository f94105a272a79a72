"""The form of a match in a result file; every value read from a file is checked against it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PlainValidator, model_validator

from agents.archive import rules_of
from archie_env.rules import Rules
from evaluation.estimates import PairSequence, PairTotals
from evaluation.results import Form, Line

_MOST_DEALS = 2**53
HASH = r"^[0-9a-f]{64}$"
"""Of a secret seed."""


class FaultsForm(Form):
    """See `evaluation.duplicate.umpire.Faults`."""

    counts: dict[Line, NonNegativeInt]
    reports: list[Line]
    remarks: tuple[Line, ...] = ()


class MatchForm(Form):
    """See `evaluation.duplicate.match.MatchResult`; other keys are ignored."""

    a: Line
    b: Line
    rules: Annotated[Rules, PlainValidator(lambda values: rules_of({"rules": values}))]
    seed: NonNegativeInt
    totals: PairTotals
    folds: tuple[tuple[NonNegativeInt, NonNegativeInt], tuple[NonNegativeInt, NonNegativeInt]]
    seconds: float
    faults: tuple[FaultsForm, FaultsForm] = (FaultsForm(counts={}, reports=[]), FaultsForm(counts={}, reports=[]))
    sequence: PairSequence | None = None
    secret_seed_sha256: str | None = Field(default=None, pattern=HASH)

    @model_validator(mode="after")
    def _possible(self) -> MatchForm:
        """Refuse numbers that are impossible in a match under these rules."""
        most, totals, sequence = self.rules.reserve, self.totals, self.sequence
        if not 0 <= totals.deals <= _MOST_DEALS or self.seconds < 0:
            raise ValueError(f"totals.deals {totals.deals}, seconds {self.seconds}: expected 0 or more")
        if not totals.possible(most):
            raise ValueError(f"totals {totals}: expected sums of {totals.deals} deals of at most {most} chips each")
        gone = sum(map(sum, self.folds)) + sum(sum(faults.counts.values()) for faults in self.faults)
        if gone > 2 * totals.deals:
            raise ValueError(f"{gone} hands folded or forfeited: expected at most {2 * totals.deals}")
        if sequence and (sequence.reserve, sequence.deals, sequence.total, sequence.spread >= 0) != (
            most, totals.deals, totals.dealer + totals.big_blind, True
        ):  # fmt: skip
            raise ValueError(f"{sequence}: expected one that agrees with the totals")
        return self
