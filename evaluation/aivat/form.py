"""An adjusted match that is not finished, as a result file keeps it: exactly, so that it ends as if it had not been stopped."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat

from archie_env.errors import ArchieError
from evaluation.results import Form, checked

TERMS: Final = ("deal", "draws", "betting")
"""Sources of luck: the first hands; discards and their replacements; betting actions."""
Played = tuple[NDArray[np.int64], NDArray[np.float64], float]
"""Chips won ``(deals, 2)``, corrections ``(deals, 2, terms)``, and seconds, of the deals played so far."""


class PlayedForm(Form):
    """Arrays as base64 of their little-endian bytes."""

    raw: str
    corrections: str
    seconds: NonNegativeFloat


class FigureForm(Form):
    """A result in a finished file."""

    mbb_per_hand: float
    mbb_standard_error: NonNegativeFloat


class FinishedForm(Form):
    """What is shown of a finished file; further keys are for the reader."""

    raw: FigureForm
    adjusted: FigureForm


def kept(played: Played) -> dict[str, Any]:
    """Plain values; the inverse of `restored`."""
    raw, corrections, seconds = played
    encoded = (base64.b64encode(array.tobytes()).decode() for array in (raw.astype("<i8"), corrections.astype("<f8")))
    return dict(zip(("raw", "corrections"), encoded, strict=True)) | {"seconds": seconds}


def restored(values: Mapping[str, Any], most: int) -> Played:
    """Read the deals played so far.

    Args:
        values: from a file.
        most: chips that a hand can cost.

    Raises:
        ArchieError: for values that no match can have.
    """
    form = checked(PlayedForm, values)
    try:
        raw = np.frombuffer(base64.b64decode(form.raw, validate=True), "<i8").astype(np.int64)
        corrections = np.frombuffer(base64.b64decode(form.corrections, validate=True), "<f8").astype(np.float64)
    except ValueError as error:
        raise ArchieError(f"played: {error}: expected arrays as base64") from None
    if len(raw) % 2 or len(corrections) != len(TERMS) * len(raw):
        raise ArchieError(f"played: {len(raw)} results and {len(corrections)} corrections: expected two and six for each deal")
    if ((raw < -most) | (raw > most)).any() or not np.isfinite(corrections).all():
        raise ArchieError(f"played: expected results of at most {most} chips and finite corrections")
    return raw.reshape(-1, 2), corrections.reshape(-1, 2, len(TERMS)), form.seconds
