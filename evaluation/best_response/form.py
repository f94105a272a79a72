"""The forms of attempts and bounds in their files, against which every value that is read is checked."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, NonNegativeFloat

from evaluation.duplicate.match import MatchResult
from evaluation.results import Form, Line


def _match(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse a match that has not been played: it says nothing about its opponent."""
    if MatchResult.from_dict(values).totals.deals < 2:
        raise ValueError("expected a match of at least 2 deals")
    return values


Match = Annotated[dict[str, Any], AfterValidator(_match)]
"""See `MatchResult.to_dict`."""


class AttemptForm(Form):
    """See `evaluation.best_response.bound.Attempt`; further keys are for the reader."""

    name: Line
    how: Line
    seconds: NonNegativeFloat
    result: Match | None
    weights: str | None


class BoundForm(Form):
    """The part of ``bound.json`` that a resumed bound is read from."""

    chosen: Line
    result: Match
