"""Standings of a tournament: the crosstable, two rankings and ratings, as Markdown, JSON and CSV.

Everything is derived from the table, so a file read back gives the same standings; nothing depends on time or machine.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import Field

from agents.archive import rules_of
from archie_env.errors import ArchieError
from evaluation.command import table as table_lines
from evaluation.duplicate.form import HASH, FaultsForm
from evaluation.estimates import Estimate
from evaluation.results import Form, checked
from evaluation.tournament.ratings import SESSION, Floats, Standing, Table, adjusted_p_values, ratings, run_off, totals

FORMAT: Final = 1
"""Version of the JSON files."""
MARKS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Adjusted p values below which a cell gets each mark."""
CELLS_HEADER: Final = (
    "row", "column", "deals", "mbb_per_hand", "standard_error", "low_95", "high_95", "adjusted_p_value", "mark",
)  # fmt: skip
RANKING_HEADER: Final = (
    "player", "total_place", "total_mbb_per_hand", "total_standard_error", "run_off_place", "run_off_mbb_per_hand",
    "run_off_standard_error", "rating", "rating_standard_error",
)  # fmt: skip


def mark(adjusted: float) -> str:
    """Return the stars of an adjusted p value, or an empty string."""
    return next((stars for level, stars in MARKS if adjusted < level), "")


def correction(table: Table) -> str:
    """Describe the correction of the marks for multiple comparisons."""
    cells = len(table.pairs())
    return f"corrected for all {cells} cells together by Holm's method" if cells > 1 else "of this one cell"


def crosstable_rows(table: Table, order: Sequence[int], digits: int = 1, aligned: bool = False) -> list[list[str]]:
    """Return the rows of a crosstable, the header first: ``mean ± half width`` and the mark of each cell.

    Args:
        table: the round robin.
        order: indices of the players from the top and from the left.
        digits: decimals of means and half widths.
        aligned: pad the marks, so that numbers line up in plain text.
    """
    adjusted = adjusted_p_values(table)
    marks = {(i, j): mark(adjusted[i, j]) for i in order for j in order}
    width = max(map(len, marks.values())) if aligned else 0

    def cell(i: int, j: int) -> str:
        if i == j:
            return "." + " " * (width + 1) if aligned else ""
        text = f"{table.cell(i, j):+,.{digits}f} {marks[i, j].ljust(width)}"
        return text if aligned else text.rstrip()

    header = ["row v column", *(f"{table.names[j]}{' ' * (width + 1 if aligned else 0)}" for j in order)]
    return [header, *([table.names[i], *(cell(i, j) for j in order)] for i in order)]


@dataclass(frozen=True)
class Standings:
    """A table in milli-big-blinds per hand, with the rankings and ratings derived from it."""

    table: Table
    manifest: Mapping[str, Any]
    """Everything that the results depend on, see `evaluation.results.manifest`."""
    faults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """``{"counts", "reports", "remarks"}`` (see `Faults`) of each player that has any, over all its matches."""

    @cached_property
    def adjusted(self) -> Floats:
        """See `adjusted_p_values`."""
        return adjusted_p_values(self.table)

    @cached_property
    def totals(self) -> list[Standing]:
        """See `evaluation.tournament.ratings.totals`."""
        return totals(self.table)

    @cached_property
    def run_off(self) -> list[Standing]:
        """See `evaluation.tournament.ratings.run_off`."""
        return run_off(self.table)

    @cached_property
    def ratings(self) -> list[Standing]:
        """See `evaluation.tournament.ratings.ratings`."""
        return ratings(self.table)

    @cached_property
    def order(self) -> list[int]:
        """Indices of the players, the best total first: the order of rows and columns wherever the table is shown."""
        return [self.table.names.index(standing.name) for standing in self.totals]

    @property
    def conditions(self) -> str:
        """Deals, rules and seed in one line."""
        deals = sorted({int(self.table.deals[i, j]) for i, j in self.table.pairs()})
        count = f"{deals[0]:,}" if len(deals) == 1 else f"{deals[0]:,} to {deals[-1]:,}"
        secret = self.manifest.get("secret_seed_sha256")
        seeds = f"seed {self.manifest['seed']}" + (f", secret seed with SHA-256 {secret}" if secret else "")
        return f"{count} duplicate deals in each cell, rules {self.manifest['rules']}, {seeds}"

    def markdown(self) -> str:
        """Crosstable, rankings and ratings, for reading."""
        rows = crosstable_rows(self.table, self.order)
        everyone = range(len(self.table))
        ends = ["total", *(str(self.table.total(i, everyone)) for i in self.order)]
        rows = [[*row, end] for row, end in zip(rows, ends, strict=True)]
        lines = ["# Tournament", "", f"{self.conditions}.", "", *table_lines(rows, markdown=True), ""]
        lines += [
            "Winnings of the row against the column, milli-big-blinds per hand ± 95 % interval; cells have deals of their own. "
            f"Stars: p < 0.05 \\*, < 0.01 \\*\\*, < 0.001 \\*\\*\\*, two-sided, {correction(self.table)}; a "
            "cell without stars may be luck. Total: the mean over opponents.",
            "",
            "## Rankings",
            "",
        ]
        off = {standing.name: (place, standing.value) for place, standing in enumerate(self.run_off, 1)}
        elo = {standing.name: standing.value for standing in self.ratings}
        rows = [["place", "player", "total, mbb/hand", "run-off place", "total when eliminated", "rating"]]
        for place, standing in enumerate(self.totals, 1):
            off_place, off_value = off[standing.name]
            rows.append([str(place), standing.name, str(standing.value)])
            rows[-1] += [str(off_place), str(off_value), f"{elo[standing.name]:,.0f}"]
        lines += [*table_lines(rows, markdown=True, text=(1,)), ""]
        lines += [
            "± is the 95 % interval. Run-off: the player with the worst total is eliminated until one is left, whose total is "
            f"against the last one eliminated. Rating: Bradley-Terry; 400 points mean odds of 10 to 1 to be ahead after "
            f"{2 * SESSION} hands. A rating can't show which player beats which: see the crosstable.",
        ]
        if self.faults:
            lines += [
                "",
                "## Faults",
                "",
                "A player whose answer is late, malformed or illegal forfeits the hand and the chips it has paid.",
            ]
        for name, faults in self.faults.items():
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in faults["counts"].items())
            hands = f"{sum(faults['counts'].values()):,} hands: {kinds}" if kinds else "no hand"
            lines += ["", f"* **{name}** forfeited {hands}"]
            lines += [f"  * {text}" for text in (*faults["reports"], *faults.get("remarks", ()))]
        return "\n".join(lines) + "\n"

    def cells_csv(self) -> str:
        """One line for each ordered pair of players."""
        rows = []
        for i in self.order:
            for j in self.order:
                if i != j:
                    cell, p = self.table.cell(i, j), float(self.adjusted[i, j])
                    rows.append([self.table.names[i], self.table.names[j], int(self.table.deals[i, j])])
                    rows[-1] += [cell.mean, cell.standard_error, *cell.interval, p, mark(p)]
        return _csv(CELLS_HEADER, rows)

    def ranking_csv(self) -> str:
        """One line for each player, the best total first."""
        off = {standing.name: (place, standing.value) for place, standing in enumerate(self.run_off, 1)}
        elo = {standing.name: standing.value for standing in self.ratings}
        rows = []
        for place, standing in enumerate(self.totals, 1):
            name, value, (off_place, off_value), rating = standing.name, standing.value, off[standing.name], elo[standing.name]
            rows.append([name, place, value.mean, value.standard_error])
            rows[-1] += [off_place, off_value.mean, off_value.standard_error, rating.mean, rating.standard_error]
        return _csv(RANKING_HEADER, rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` reads manifest, names, cells and faults, the rest is for people."""
        cells = []
        for i, j in self.table.pairs():
            names, deals = {"a": self.table.names[i], "b": self.table.names[j]}, {"deals": int(self.table.deals[i, j])}
            p_value = {"adjusted_p_value": float(self.adjusted[i, j])}
            cells.append(names | deals | self.table.cell(i, j).to_dict() | p_value)
        return {
            "format": FORMAT,
            "manifest": dict(self.manifest),
            "names": list(self.table.names),
            "cells": cells,
            "totals": [_plain(standing) for standing in self.totals],
            "run_off": [_plain(standing) for standing in self.run_off],
            "ratings": [_plain(standing) for standing in self.ratings],
            "faults": {name: dict(faults) for name, faults in self.faults.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Standings:
        """The inverse of `to_dict`; raises `ArchieError` for invalid values."""
        form = checked(_Form, values)
        index = {name: i for i, name in enumerate(form.names)}
        cells = {}
        for cell in form.cells:
            if cell.a not in index or cell.b not in index:
                raise ArchieError(f"cell {cell.a} v {cell.b}: expected two of the players {', '.join(form.names)}")
            cells[index[cell.a], index[cell.b]] = Estimate(cell.mbb_per_hand, cell.standard_error), cell.deals
        rules = form.manifest.rules
        name = rules if isinstance(rules, str) else rules_of({"rules": rules}).name  # version 0.1 wrote all options
        return cls(Table.of(form.names, cells), {**values["manifest"], "rules": name}, values["faults"])


class _Cell(Form):
    a: str
    b: str
    deals: int = Field(ge=1, le=2**53)
    mbb_per_hand: float
    standard_error: float = Field(ge=0)


class _Manifest(Form):
    rules: str | dict[str, Any]
    seed: int
    secret_seed_sha256: str | None = Field(default=None, pattern=HASH)


class _Form(Form):
    """The part of ``table.json`` from which the rest is derived."""

    format: Literal[1]
    manifest: _Manifest
    names: list[str]
    cells: list[_Cell]
    faults: dict[str, FaultsForm]


def _plain(standing: Standing) -> dict[str, Any]:
    return {"name": standing.name, **standing.value.to_dict("value")}


def _csv(header: Sequence[str], rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()
