"""The picture of a tournament, and the look all pictures here share."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from archie_env.files import atomic_write
from evaluation.estimates import NORMAL_95
from evaluation.tournament.standings import MARKS, Standings, mark

INK: Final = "#1f2933"
FAINT: Final = "#7b8794"
PAPER: Final = "#ffffff"
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#cbd2d9",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
}
_DOTS: Final = 150


def picture(width: float, height: float) -> Figure:
    """An empty figure of that many inches that needs no display."""
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, whole or not at all."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=_DOTS)
    with Image.open(memory) as drawn:  # a palette is enough for flat colours, and a third of the size
        flat = drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    atomic_write(path, lambda file: flat.save(file, format="png", optimize=True))


def short_names(names: Sequence[str]) -> list[str]:
    """Names for pictures: ``ppo:runs/first/policy.npz`` becomes ``ppo first`` where that still tells them apart."""
    short = []
    for name in names:
        kind, colon, path = name.partition(":")
        if not colon:
            short.append(name)
            continue
        parts = Path(path).with_suffix("").parts
        words = [part for part in parts[-2:] if part not in ("policy", "weights", "/")] or list(parts[-1:])
        short.append(f"{kind} {words[-1]}")
    return short if len(set(short)) == len(names) else list(names)


def _number(value: float) -> str:
    return f"{round(value):{'+' if round(value) else ''},d}".replace("-", "\N{MINUS SIGN}")


def write_crosstable(standings: Standings, path: Path) -> None:
    """Row against column, best total first, with the totals at the right."""
    table, order = standings.table, standings.order
    labels, n = short_names(table.names), len(order)
    longest = max(map(len, labels))
    left, cell = 0.35 + 0.085 * longest, 1.02
    turned = longest > 11
    top, bottom = 0.95 + (0.07 * longest if turned else 0.2), 0.78
    right = 0.25
    width, height = max(left + cell * (n + 1.25) + right, 6.9), top + 0.68 * cell * n + bottom
    with rc_context(STYLE):
        figure = picture(width, height)
        axes = figure.add_axes(
            (left / width, bottom / height, cell * (n + 1.25) / width, 0.68 * cell * n / height), frame_on=False
        )
        largest = max(100.0, float(np.abs(table.means).max()))
        norm = SymLogNorm(linthresh=100, vmin=-largest, vmax=largest)  # a close match and a rout in one picture
        colours = colormaps["RdBu"]

        def box(x: float, y: float, mean: float, error: float, stars: str, sure: bool) -> None:
            red, green, blue, _ = colours(float(norm(mean)))
            axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=(red, green, blue), linewidth=0))
            ink = PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.57 else INK
            weight = "bold" if sure else "normal"
            axes.text(x, y - 0.13, _number(mean), ha="center", va="center", color=ink, fontsize=10.5, weight=weight)
            reach = f"± {NORMAL_95 * error:,.0f} {stars}".rstrip()
            axes.text(x, y + 0.23, reach, ha="center", va="center", color=ink, fontsize=8)

        for y, i in enumerate(order):
            for x, j in enumerate(order):
                if i == j:
                    axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color="#eef1f4", linewidth=0))
                    continue
                stars = mark(standings.adjusted[i, j])
                box(x, y, table.means[i, j], table.errors[i, j], stars, bool(stars))
            total = table.total(i, order)
            box(n + 0.25, y, total.mean, total.standard_error, "", False)
        axes.set_xlim(-0.5, n + 0.75)
        axes.set_ylim(n - 0.5, -0.5)
        axes.set_xticks([*range(n), n + 0.25], [*(labels[j] for j in order), "total"])
        axes.set_yticks(range(n), [labels[i] for i in order])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, pad=4)
        if turned:
            for text in axes.get_xticklabels():
                text.set(rotation=30, ha="left", rotation_mode="anchor")
        figure.text(0.02, 1 - 0.3 / height, "Who beats whom", fontsize=14, weight="bold", va="center")
        line = "What the row won from the column, milli-big-blinds per hand ± 95 % interval"
        figure.text(0.02, 1 - 0.58 / height, line, color=FAINT, fontsize=9, va="center")
        levels = ", ".join(f"< {level:g} {stars}" for level, stars in reversed(MARKS))
        note = f"{standings.conditions}.\nBold: significant, p {levels}, {standings.correction}."
        figure.text(0.02, 0.33 / height, note, color=FAINT, fontsize=8, va="center", linespacing=1.5)
        save(figure, path)
