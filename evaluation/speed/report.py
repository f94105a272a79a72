"""The report of a run of `evaluation.speed`, as tables and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from archie_env.errors import ArchieError
from evaluation.command import table
from evaluation.results import write_json
from evaluation.speed.timing import BYTES, DECISIONS, Measurement
from evaluation.speed.workloads import FAR, GAMES, REFERENCE

_FORMAT: Final = 1
_UNITS: Final = {BYTES: "B/s"}
AIMS: Final = (
    (REFERENCE, "pgx-leduc", 5), (REFERENCE, "openspiel-holdem-tensor", 80), (REFERENCE, "rlcard-holdem", 240),
    ("aec", "pettingzoo-holdem", 25), ("aec", "openspiel-holdem-tensor", 1),
)  # fmt: skip
"""(row, other row, factor): the row should be this many times as fast as the other."""
_FLOORS: Final = ((REFERENCE, 12e6), ("vector-next-step", 2e6), ("single", 100e3))
"""(row, rate): the row should reach this many decisions per second on a core such as the one in docs/results/speed.md."""


@dataclass(frozen=True, slots=True)
class Report:
    """Results of one run."""

    machine: dict[str, str]
    versions: dict[str, str]
    seconds: float
    repeats: int
    against: str
    load: tuple[float, float]
    """Load average of the machine over a minute, before and after the run."""
    measurements: tuple[Measurement, ...]
    skipped: dict[str, str]
    """Reasons by name of the row."""
    memory: dict[str, int]
    """Bytes of a game in a batch."""
    first_step: dict[str, tuple[float, ...]]
    """Seconds of fresh interpreters, by clock and state of the cache; empty if not timed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        found = {"measurements": [m.to_dict() for m in self.measurements]}
        return {"format": _FORMAT} | {**asdict(self), **found}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`, before or after JSON."""
        if values.get("format") != _FORMAT:
            raise ArchieError(f"report of format {values.get('format')!r}: expected {_FORMAT}")
        rest = {key: value for key, value in values.items() if key != "format"}
        rest["load"] = tuple(rest["load"])
        rest["measurements"] = tuple(Measurement.from_dict(m) for m in rest["measurements"])
        rest["first_step"] = {name: tuple(seconds) for name, seconds in rest["first_step"].items()}
        return cls(**rest)

    def find(self, name: str) -> Measurement | None:
        """Return the measurement of that name, or None."""
        return next((m for m in self.measurements if m.name == name), None)


def tables(report: Report) -> list[tuple[str, list[list[str]]]]:
    """Return titles and tables as cells; the first row of a table is its header, and empty tables are left out."""
    small = [[f"memory of a game in a batch: {what}", f"{size} bytes"] for what, size in report.memory.items()]
    for name, seconds in report.first_step.items():
        middle, least, most = _spread(seconds, lambda s: f"{s:.2f}")
        small.append([f"first import to first PettingZoo step, {name}", f"{middle} s ({least} .. {most})"])
    includes = [[m.name, f"{m.includes}{f' ({m.note})' if m.note else ''}"] for m in report.measurements]
    found = [
        ("Rates", [["row", "median", "slowest", "fastest", "the reference is", "from .. to", "core"], *_rates(report)]),
        ("Ratios, floors and the memory's limit", [["", "median", "from", "to", "aim"], *_comparisons(report)]),
        ("Memory and start", [["", "median (from .. to)"], *small]),
        ("What one unit of each row includes", [["row", "work"], *includes]),
        ("Skipped", [["row", "reason"], *([name, why] for name, why in report.skipped.items())]),
    ]
    return [(title, cells) for title, cells in found if len(cells) > 1]


def _rates(report: Report) -> list[list[str]]:
    """One line per row; each unit is compared with `Report.against`, or else with the first row of that unit."""
    lines = []
    for m in report.measurements:
        reference = report.find(report.against)
        if reference is None or reference.unit != m.unit:
            reference = next(other for other in report.measurements if other.unit == m.unit)
        ratio = ["(reference)", ""]
        if m is not reference:
            middle, least, most = reference.over(m)
            ratio = [_times(middle), f"{_times(least)} .. {_times(most)}"]
        lines.append([m.name, *_spread(m.rates, _rate(m.unit)), *ratio, f"{m.core:.0%}" if m.cores == 1 else "wall"])
    return lines


def _comparisons(report: Report) -> list[list[str]]:
    lines = []
    for name, floor in _FLOORS:
        if m := report.find(name):
            lines.append([name, *_spread(m.rates, _rate(m.unit)), f">= {_rate(DECISIONS)(floor)}"])
    for name, other, aim in AIMS:
        mine, its = report.find(name), report.find(other)
        if mine and its:
            lines.append([f"{name} : {other}", *map(_times, mine.over(its)), f">= {aim}x"])
    row = report.memory["int8 observation"]
    for games, fill in ((GAMES, "fill-near"), (FAR, "fill-far")):
        batch, limit = report.find(f"batch-{games}-int8"), report.find(fill)
        if batch and limit:
            shares = [f"{row * ratio:.1%}" for ratio in batch.over(limit)]
            lines.append([f"observation bytes of batch-{games}-int8 : {fill}", *shares, ""])
    return lines


def _rate(unit: str) -> Callable[[float], str]:
    """Return a function that writes a rate with three digits and a prefix of its unit."""
    short = _UNITS.get(unit, "/s")

    def text(rate: float) -> str:
        for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if rate >= size:
                return f"{rate / size:.3g} {prefix}{short}"
        return f"{rate:.3g} {short}"

    return text


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:,.0f}x"


def _spread(values: Sequence[float], text: Callable[[float], str]) -> list[str]:
    return [text(value) for value in (statistics.median(values), min(values), max(values))]


def heading(report: Report) -> list[str]:
    """Describe machine, versions and protocol."""
    before, after = report.load
    return [
        f"{report.machine['processor']}; {report.machine['system']}; Python {report.machine['python']}",
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        f"{report.machine['date']}; load average {before:.1f} before, {after:.1f} after",
        f"{report.repeats} rounds of {report.seconds:g} s a row; rates per second of processor time, with two cores "
        "per second of the wall clock; core: processor time by wall clock",
    ]


def as_text(report: Report, markdown: bool = False) -> str:
    """Format the whole report for a terminal or as Markdown."""
    parts = ["\n".join(f"- {line}" if markdown else line for line in heading(report))]
    for title, cells in tables(report):
        words = range(len(cells[0])) if len(cells[0]) == 2 else (0,)
        if markdown:
            cells = [[cell.replace("|", "\\|") for cell in row] for row in cells]
        rows = "\n".join(table(cells, markdown, words))
        parts.append(f"### {title}\n\n{rows}" if markdown else f"{title}\n{rows}")
    return "\n\n".join(parts)


def save(report: Report, file: Path) -> None:
    """Write the report as JSON, atomically."""
    write_json(file, report.to_dict())
