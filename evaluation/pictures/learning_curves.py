"""Learning curves with bands, from the event files that training writes for TensorBoard."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from numpy.typing import NDArray
from scipy.stats import t as student

from archie_env.errors import ArchieError
from evaluation.estimates import NORMAL_95
from evaluation.plotting import FAINT, PAPER, STYLE, picture, save

Floats = NDArray[np.float64]
MATCH: Final = "match/"
RESULT: Final = "_mbb_per_hand"
ERROR: Final = "_standard_error"
_COLOURS: Final = ("#1b6ca8", "#d1495b", "#2e933c", "#8e5ea2", "#e08e0b", "#4b5563", "#12908e", "#b5651d")


@dataclass(frozen=True, slots=True)
class Curve:
    """Results of one run against one opponent."""

    run: str
    opponent: str
    decisions: Floats
    """``(points,)``, ascending."""
    means: Floats
    """``(points,)``: mbb per hand."""
    errors: Floats
    """``(points,)``: their standard errors, 0 if not recorded."""


def _scalars(folder: Path) -> Mapping[str, dict[int, float]]:
    """Read every scalar of a run by step; later events win, as a resumed run repeats the steps it lost."""
    try:
        # By name, as TensorBoard has no types and only training installs it.
        loader = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
        tensors = importlib.import_module("tensorboard.util.tensor_util")
    except ModuleNotFoundError as error:
        raise ArchieError(f"learning curves: {error.name} is not installed, pip install 'archie-env[train]'") from None
    files = sorted(folder.glob("events.out.tfevents.*"))
    if not files:
        raise ArchieError(f"{folder}: no event files, expected the folder of a run")
    found: dict[str, dict[int, float]] = {}
    for file in files:
        for event in loader.EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                if value.HasField("tensor"):
                    found.setdefault(value.tag, {})[event.step] = float(tensors.make_ndarray(value.tensor))
    return found


def read_curves(folders: Sequence[Path]) -> list[Curve]:
    """Read the matches against reference agents of every run, in the order of the folders.

    Raises:
        ArchieError: for a folder without event files, or without any match in them.
    """
    curves = []
    for folder in folders:
        scalars = _scalars(folder)
        tags = [tag for tag in sorted(scalars) if tag.startswith(MATCH) and tag.endswith(RESULT)]
        if not tags:
            raise ArchieError(f"{folder}: no match in the event files, expected scalars {MATCH}NAME{RESULT}")
        for tag in tags:
            name = tag.removeprefix(MATCH).removesuffix(RESULT)
            points, errors = scalars[tag], scalars.get(f"{MATCH}{name}{ERROR}", {})
            steps = sorted(points)
            curves.append(
                Curve(
                    folder.name,
                    name,
                    np.array(steps, np.float64),
                    np.array([points[step] for step in steps]),
                    np.array([errors.get(step, 0.0) for step in steps]),
                )
            )
    return curves


def band(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats]:
    """Return steps, mean over runs and half width of its 95 % interval.

    The interval of one run comes from its matches, that of several runs from their spread.  Runs measured at other steps than
    the first are interpolated linearly, within the range of all runs.
    """
    if len(curves) == 1:
        return curves[0].decisions, curves[0].means, NORMAL_95 * curves[0].errors
    first, last = max(c.decisions[0] for c in curves), min(c.decisions[-1] for c in curves)
    steps = curves[0].decisions[(curves[0].decisions >= first) & (curves[0].decisions <= last)]
    if len(steps) == 0:
        raise ArchieError(f"runs {', '.join(c.run for c in curves)}: no step that all of them have measured")
    values = np.stack([np.interp(steps, c.decisions, c.means) for c in curves])
    n = len(curves)
    factor = float(student.ppf(0.975, n - 1))  # a few runs say little about how runs differ
    return steps, values.mean(axis=0), factor * values.std(axis=0, ddof=1) / math.sqrt(n)


def write_curves(curves: Sequence[Curve], path: Path) -> None:
    """Draw a line with a band for each opponent, thin lines for single runs, and names at the ends of lines."""
    opponents = list(dict.fromkeys(curve.opponent for curve in curves))
    runs = len({curve.run for curve in curves})
    with rc_context(STYLE):
        figure = picture(9.0, 5.4)
        axes = figure.add_axes((0.1, 0.13, 0.72, 0.68))
        ends: list[tuple[float, str, str]] = []
        last = max(float(curve.decisions[-1]) for curve in curves)
        unit, word = (1e6, "million ") if last >= 2e6 else (1e3, "thousand ")
        for k, opponent in enumerate(opponents):
            these = [curve for curve in curves if curve.opponent == opponent]
            colour = _COLOURS[k % len(_COLOURS)]
            steps, mean, reach = band(these)
            axes.fill_between(steps / unit, mean - reach, mean + reach, color=colour, alpha=0.18, linewidth=0)
            if len(these) > 1:
                for curve in these:
                    axes.plot(curve.decisions / unit, curve.means, color=colour, alpha=0.35, linewidth=0.7)
            axes.plot(steps / unit, mean, color=colour, linewidth=2, marker="o" if len(steps) < 12 else "", markersize=4)
            ends.append((float(mean[-1]), f"{opponent}  {mean[-1]:+,.0f}".replace("-", "\N{MINUS SIGN}"), colour))
        axes.axhline(0, color=FAINT, linewidth=0.8)
        axes.grid(axis="y", color="#e4e7eb", linewidth=0.7)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_xlabel(f"{word}decisions of the learner")
        axes.set_ylabel("mbb per hand won from the opponent")
        axes.margins(x=0.01)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:+,.0f}".replace("-", "\N{MINUS SIGN}") if value else "0")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high)
        _name_ends(axes, ends, 0.052 * (high - low))
        figure.text(0.02, 0.945, "Learning curves", fontsize=14, weight="bold", va="center")
        names = list(dict.fromkeys(curve.run for curve in curves))
        what = (
            f"run {names[0]}; band: 95 % interval of each duplicate match"
            if runs == 1
            else f"mean of {runs} runs, thin lines: each of them; band: 95 % interval of the mean over runs (Student's t)"
        )
        figure.text(0.02, 0.895, what, color=FAINT, fontsize=9, va="center")
        figure.set_facecolor(PAPER)
        save(figure, path)


def _name_ends(axes: Any, ends: list[tuple[float, str, str]], apart: float) -> None:
    """Write the name of each line at its end, moved up where two would touch."""
    before = -math.inf
    for value, text, colour in sorted(ends):
        y = max(value, before + apart)
        axes.annotate(
            text, (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", color=colour,
            va="center", fontsize=9, weight="bold", annotation_clip=False,
        )  # fmt: skip
        before = y
