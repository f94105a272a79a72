"""The crosstable of a tournament as a heat map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.colors import SymLogNorm
from matplotlib.patches import Rectangle

from evaluation.estimates import Estimate
from evaluation.plotting import FAINT, INK, PAPER, STYLE, picture, save, short_names
from evaluation.tournament.standings import MARKS, Standings, correction, mark


def _number(value: float) -> str:
    return f"{round(value):{'+' if round(value) else ''},d}".replace("-", "\N{MINUS SIGN}")


def write_crosstable(standings: Standings, path: Path) -> None:
    """Draw the crosstable, best total first, with the totals at the right."""
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

        def box(x: float, y: float, value: Estimate, stars: str) -> None:
            red, green, blue, _ = colours(float(norm(value.mean)))
            axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=(red, green, blue), linewidth=0))
            ink = PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.57 else INK
            weight = "bold" if stars else "normal"
            axes.text(x, y - 0.13, _number(value.mean), ha="center", va="center", color=ink, fontsize=10.5, weight=weight)
            reach = f"± {value.half_width:,.0f} {stars}".rstrip()
            axes.text(x, y + 0.23, reach, ha="center", va="center", color=ink, fontsize=8)

        for y, i in enumerate(order):
            for x, j in enumerate(order):
                if i == j:
                    axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color="#eef1f4", linewidth=0))
                    continue
                box(x, y, table.cell(i, j), mark(standings.adjusted[i, j]))
            box(n + 0.25, y, table.total(i, order), "")
        axes.set_xlim(-0.5, n + 0.75)
        axes.set_ylim(n - 0.5, -0.5)
        axes.set_xticks([*range(n), n + 0.25], [*(labels[j] for j in order), "total"])
        axes.set_yticks(range(n), [labels[i] for i in order])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, pad=4)
        if turned:
            for text in axes.get_xticklabels():
                text.set(rotation=30, ha="left", rotation_mode="anchor")
        figure.text(0.02, 1 - 0.3 / height, "Crosstable", fontsize=14, weight="bold", va="center")
        line = "Winnings of the row against the column, milli-big-blinds per hand ± 95 % interval"
        figure.text(0.02, 1 - 0.58 / height, line, color=FAINT, fontsize=9, va="center")
        levels = ", ".join(f"< {level:g} {stars}" for level, stars in reversed(MARKS))
        note = f"{standings.conditions}.\nBold: significant, p {levels}, {correction(standings.table)}."
        figure.text(0.02, 0.33 / height, note, color=FAINT, fontsize=8, va="center", linespacing=1.5)
        save(figure, path)
