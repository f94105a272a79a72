"""The forms of a card's parts in their files, against which every value that is read is checked."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from archie_env.errors import ArchieError
from evaluation.duplicate.form import FaultsForm
from evaluation.results import Form, Line, checked

Rates = Annotated[list[NonNegativeFloat], Field(min_length=1)]
"""Decisions per second."""


class _Missing(Form):
    missing: Line


class _Estimate(Form):
    mbb_per_hand: float
    standard_error: NonNegativeFloat


class _Exact(Form):
    exploitability_mbb: float
    form: Line
    rows_asked: NonNegativeInt


class _Table(Form):
    row: dict[Line, _Estimate]
    total: _Estimate
    faults: FaultsForm | None


class _Bound(Form):
    lower_bound: _Estimate
    chosen: Line
    text: str


class _Speed(Form):
    batch: Rates
    single: Rates


_FORMS: Final[dict[str, type[Form]]] = {"exact": _Exact, "crosstable": _Table, "bound": _Bound, "speed": _Speed}


def checked_part(name: str, part: Any) -> dict[str, Any]:
    """Return a part of a card as it is; raises `ArchieError` for values that no part of this name has."""
    if not isinstance(part, dict):
        raise ArchieError("no part of a card")
    if form := _FORMS.get(name.partition("-")[0]):
        checked(_Missing if "missing" in part else form, part)
    return part
