"""Charts of how a player plays: its betting and drawing, and its starting hands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from evaluation.pictures.play_style import FACING, KEPT, POSITIONS, HandKinds, PlayStyle
from evaluation.plotting import FAINT, INK, PAPER, STYLE, picture, save, short_names

BETTING_COLOURS: Final = ("#b8c1cc", "#8fc1e3", "#d1495b")
"""Fold, check or call, bet or raise: distinguishable in grey and by the colour-blind."""
_SHORT_KEPT: Final = (
    "all", "4 low", "3 low", "2 low", "1 low", "pair+", "pair+\nand more", "to a\nflush", "to a\nstraight", "other\ncards",
    "nothing",
)  # fmt: skip


def _ink(colour: Any) -> str:
    red, green, blue = colour[:3]
    return PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.57 else INK


def _stack(
    axes: Axes, y: float, counts: NDArray[np.int64], colours: Sequence[Any], height: float = 0.8, least: float = 0.07
) -> None:
    """Draw one bar of shares, with percentages where there is room for them."""
    total, left = int(counts.sum()), 0.0
    if total == 0:
        axes.text(0.5, y, "never", ha="center", va="center", color=FAINT, fontsize=8)
        return
    for count, colour in zip(counts, colours, strict=True):
        share = int(count) / total
        axes.barh(y, share, left=left, height=height, color=colour, edgecolor=PAPER, linewidth=0.8)
        if share >= least:
            axes.text(left + share / 2, y, f"{share:.0%}", ha="center", va="center", fontsize=8, color=_ink(to_rgb(colour)))
        left += share


def _bars(axes: Axes) -> None:
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _played(style: PlayStyle) -> str:
    hands = style.deals * 2
    return f"{hands:,} hands against {short_names([style.opponent])[0]}, rules {style.rules.name}, seed {style.seed}"


def write_play_style(style: PlayStyle, path: Path) -> None:
    """Draw betting and drawing by position and round as shares, with the number of decisions beside each bar."""
    rounds, draws = style.rules.rounds, style.rules.draws
    rows = 2 * rounds
    betting, drawing = 0.3 * rows + 0.12 * (rounds - 1), 0.36 * draws
    top, gap, bottom = 1.4, 0.7, 0.2
    width, height = 11.0, top + betting + gap + drawing + bottom
    shades = [colormaps["YlGnBu"](0.12 + 0.76 * k / style.rules.hand_size) for k in range(style.rules.hand_size + 1)]
    with rc_context(STYLE):
        figure = picture(width, height)
        figure.text(
            0.02, 1 - 0.32 / height, f"How {short_names([style.agent])[0]} plays", fontsize=14, weight="bold", va="center"
        )
        figure.text(0.02, 1 - 0.6 / height, _played(style), color=FAINT, fontsize=9, va="center")
        for position, name in enumerate(POSITIONS):
            left = 0.165 if position == 0 else 0.575
            axes = figure.add_axes((left, (bottom + drawing + gap) / height, 0.355, betting / height))
            _bars(axes)
            positions = [r * 2.4 + f for r in range(rounds) for f in (0, 1)]
            for r in range(rounds):
                for f in (0, 1):
                    counts, y = style.betting[position, r, f], r * 2.4 + f
                    _stack(axes, y, counts, BETTING_COLOURS)
                    axes.text(1.01, y, f"{counts.sum():,}", va="center", fontsize=7.5, color=FAINT)
            labels = [f"round {r + 1}, {FACING[f]}" for r in range(rounds) for f in (0, 1)]
            axes.set_yticks(positions, labels if position == 0 else [""] * rows, fontsize=9)
            axes.set_ylim(positions[-1] + 0.5, -0.5)
            axes.set_title(f"as {name}", pad=6)
            if position == 0:
                _legend_above(
                    figure, axes, height, 1 - 0.92 / height, BETTING_COLOURS, ("fold", "check or call", "bet or raise")
                )
            axes = figure.add_axes((left, bottom / height, 0.355, drawing / height))
            _bars(axes)
            for d in range(draws):
                counts = style.drawing[position, d]
                _stack(axes, d, counts, shades)
                axes.text(1.01, d, f"{counts.sum():,}", va="center", fontsize=7.5, color=FAINT)
            axes.set_yticks(
                range(draws), [f"draw {d + 1}" for d in range(draws)] if position == 0 else [""] * draws, fontsize=9
            )
            axes.set_ylim(draws - 0.5, -0.5)
            if position == 0:
                labels = ["stands pat", "discards 1", *(str(k) for k in range(2, style.rules.hand_size + 1))]
                _legend_above(figure, axes, height, (bottom + drawing + 0.25) / height, shades, labels)
        save(figure, path)


def _legend_above(figure: Any, axes: Axes, height: float, y: float, colours: Sequence[Any], labels: Sequence[str]) -> None:
    patches = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours]
    axes.legend(
        patches, labels, loc="center left", bbox_to_anchor=(0.158, y), bbox_transform=figure.transFigure, ncols=len(labels),
        frameon=False, fontsize=9, handlelength=1.0, handleheight=1.0, columnspacing=1.4, handletextpad=0.5, borderaxespad=0,
    )  # fmt: skip


def write_starting_hands(style: PlayStyle, path: Path) -> None:
    """Draw by kind of the first hand: the first betting decision, and the cards kept at the first draw, with counts."""
    kinds = HandKinds(style.rules)
    index = {name: i for i, name in enumerate(kinds.names)}
    sections = [
        (title, [index[name] for name in names if style.opening[index[name]].any() or style.keeping[index[name]].any()])
        for title, names in kinds.sections
    ]
    sections = [(title, rows) for title, rows in sections if rows]
    columns = [k for k in range(len(KEPT)) if style.keeping[:, k].any()]
    lines = sum(len(rows) for _, rows in sections) + 0.9 * len(sections)
    line, top, bottom = 0.255, 1.5, 0.55
    cell = 0.66
    left, bars, gap = 2.75, 2.7, 0.75
    width, height = left + bars + gap + cell * len(columns) + 0.75, top + line * lines + bottom
    with rc_context(STYLE):
        figure = picture(width, height)
        axes_at = bottom / height, line * lines / height
        opening = figure.add_axes((left / width, axes_at[0], bars / width, axes_at[1]))
        keeping = figure.add_axes(((left + bars + gap) / width, axes_at[0], cell * len(columns) / width, axes_at[1]))
        _bars(opening)
        _bars(keeping)
        keeping.set_xlim(0, len(columns))
        colours = colormaps["YlGnBu"]
        y, positions, labels = 0.0, [], []
        for title, rows in sections:
            opening.text(-0.02, y + 0.1, title, ha="right", va="center", fontsize=9, weight="bold", color=INK, clip_on=False)
            y += 0.9
            for row in rows:
                _stack(opening, y, style.opening[row], BETTING_COLOURS, height=0.86, least=0.1)
                first = style.opening[row].sum()
                opening.text(1.015, y, f"{first:,}", va="center", fontsize=7.5, color=FAINT)
                counts = style.keeping[row, columns]
                total = int(counts.sum())
                for x, count in enumerate(counts):
                    share = int(count) / total if total else 0.0
                    colour = colours(0.95 * share) if share else (0.945, 0.953, 0.961, 1.0)
                    keeping.add_patch(Rectangle((x + 0.03, y - 0.43), 0.94, 0.86, color=colour, linewidth=0))
                    if count:
                        text = f"{share:.0%}" if share >= 0.005 else "<1%"
                        keeping.text(x + 0.5, y, text, ha="center", va="center", fontsize=8, color=_ink(colour))
                keeping.text(len(columns) + 0.08, y, f"{total:,}", va="center", fontsize=7.5, color=FAINT)
                positions.append(y)
                labels.append(kinds.names[row])
                y += 1
        for axes in (opening, keeping):
            axes.set_ylim(y - 0.4, -0.4)
        opening.set_yticks(positions, labels, fontsize=9)
        keeping.set_yticks([])
        keeping.set_xticks([x + 0.5 for x in range(len(columns))], [_SHORT_KEPT[k] for k in columns], fontsize=8.5)
        keeping.xaxis.tick_top()
        opening.set_title("the first bet", pad=30)
        keeping.set_title("kept at the first draw", pad=30)
        _legend_above(figure, opening, height, 0, BETTING_COLOURS, ("fold", "check or call", "bet or raise"))
        legend = opening.get_legend()
        assert legend is not None
        legend.set_bbox_to_anchor((-0.005, 1 + 0.19 / (line * lines)), transform=opening.transAxes)
        title = f"Starting hands of {short_names([style.agent])[0]}"
        figure.text(0.2 / width, 1 - 0.32 / height, title, fontsize=14, weight="bold", va="center")
        figure.text(0.2 / width, 1 - 0.6 / height, _played(style), color=FAINT, fontsize=9, va="center")
        note = (
            "Grey numbers: decisions counted. First bet: the dealer's to open and the big blind's to answer it. "
            "Low cards: of different ranks that a qualifying low may hold."
        )
        figure.text(0.2 / width, 0.25 / height, note, color=FAINT, fontsize=8, va="center")
        save(figure, path)
