"""The command: choose rows, measure them in one run on one core, and print or save the report."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from tyro.conf import arg

from archie_env._core.jit import JIT_DISABLED
from archie_env.errors import ArchieError
from archie_env.files import locked
from archie_env.validation import positive, whole_number
from evaluation.command import JsonFile, run_command
from evaluation.results import check_new
from evaluation.speed.first_step import first_steps
from evaluation.speed.peers import DISTRIBUTIONS, hand_rows, peer_rows
from evaluation.speed.report import Report, as_text, save
from evaluation.speed.timing import OneCore, Row, measure, one_thread
from evaluation.speed.workloads import REFERENCE, bytes_per_game, memory_rows, own_hand_rows, path_rows

_FIRST: Final = "first-step"
_COLD_STARTS: Final = 3
_CACHED_STARTS: Final = 7
_LIBRARIES: Final = ("archie-env", "numpy", "numba", "gymnasium", "pettingzoo", *DISTRIBUTIONS)


def all_rows() -> list[Row]:
    """Return every row that can be measured, in the order of the table."""
    return [*path_rows(), *peer_rows(), *own_hand_rows(), *hand_rows(), *memory_rows()]


def _chosen(only: Sequence[str]) -> tuple[list[Row], bool]:
    """Return the rows whose name starts with one of ``only``, and whether to time first steps too."""
    rows = all_rows()
    names = [*(row.name for row in rows), _FIRST]
    for name in only:
        if not any(known.startswith(name) for known in names):
            raise ArchieError(f"row {name!r}: expected a name, or a beginning of names, out of {', '.join(names)}")
    if not only:
        return rows, True
    prefixes = tuple(only)
    return [row for row in rows if row.name.startswith(prefixes)], _FIRST.startswith(prefixes)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def run(only: Sequence[str] = (), seconds: float = 0.1, repeats: int = 21, against: str = REFERENCE) -> Report:
    """Measure the rows whose names start with one of ``only``, or all of them."""
    rows, with_first_steps = _chosen(only)
    if against not in {row.name for row in all_rows()}:
        raise ArchieError(f"row {against!r}: nothing of this name to compare with")
    before, date = _load(), time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    with one_thread(), OneCore() as core:
        measurements, skipped = measure(rows, seconds, repeats, core)
        first = first_steps(min(repeats, _COLD_STARTS), min(repeats, _CACHED_STARTS)) if with_first_steps else {}
    machine = {
        "processor": f"{_processor()}, {os.cpu_count()} cores of which one is used",
        "system": platform.platform(),
        "python": platform.python_version() + (" (JIT disabled)" if JIT_DISABLED else ""),
        "date": date,
    }
    versions = {name: _version(name) for name in _LIBRARIES}
    found = tuple(measurements)
    return Report(machine, versions, seconds, repeats, against, (before, _load()), found, skipped, bytes_per_game(), first)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure our paths and their peers in one run on one core."""

    seconds: float = 0.1
    """Processor time of a row in a round."""
    repeats: int = 21
    """Number of rounds."""
    only: Annotated[tuple[str, ...], arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """Rows to measure, by name or beginning of names."""
    against: Annotated[str, arg(metavar="NAME")] = REFERENCE
    """The row of the ratio column."""
    json: JsonFile = None
    markdown: bool = False
    """Print the tables as Markdown."""


def measure_rows(options: Options) -> None:
    """Measure the rows, print the report and write it."""
    positive("--seconds", options.seconds)
    whole_number("--repeats", options.repeats, 1)
    with locked(options.json):
        check_new(options.json)
        report = run(options.only, options.seconds, options.repeats, options.against)
        print(as_text(report, options.markdown), flush=True)
        if options.json:
            save(report, options.json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.speed", measure_rows, arguments)
