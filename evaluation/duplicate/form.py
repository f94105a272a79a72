"""The form of a match in a result file, against which every value that is read is checked."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

from agents.archive import rules_of
from evaluation.estimates import PairSequence, PairTotals

_MOST_DEALS = 2**53
HASH = r"^[0-9a-f]{64}$"
"""Of a secret seed."""


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters")
    return text


Line = Annotated[str, AfterValidator(_line)]
"""A text that is printed as part of a line, so that it can't move a cursor."""


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class FaultsForm(_Form):
    """See `evaluation.duplicate.umpire.Faults`."""

    counts: dict[Line, NonNegativeInt]
    reports: list[Line]
    remarks: list[str] = []


class MatchForm(_Form):
    """See `evaluation.duplicate.match.MatchResult`; further keys are for the reader."""

    a: Line
    b: Line
    rules: dict[str, Any]
    seed: NonNegativeInt
    totals: PairTotals
    folds: tuple[tuple[NonNegativeInt, NonNegativeInt], tuple[NonNegativeInt, NonNegativeInt]]
    seconds: float
    faults: tuple[FaultsForm, FaultsForm] = (FaultsForm(counts={}, reports=[]), FaultsForm(counts={}, reports=[]))
    sequence: PairSequence | None = None
    secret_seed_sha256: str | None = Field(default=None, pattern=HASH)

    @model_validator(mode="after")
    def _possible(self) -> MatchForm:
        """Refuse numbers that no match under these rules can have."""
        most = rules_of({"rules": self.rules}).reserve
        totals, sequence = self.totals, self.sequence
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
