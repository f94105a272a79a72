"""The command: choose rows, measure them in one run on one core, and print or save the report."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from archie_env._core.jit import JIT_DISABLED
from archie_env.errors import ArchieError
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


def _tell(news: str) -> None:
    print(news, file=sys.stderr, flush=True)


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def run(only: Sequence[str] = (), seconds: float = 0.1, repeats: int = 21, against: str = REFERENCE) -> Report:
    """Measure the rows named by ``only``, or all of them; progress goes to standard error."""
    rows, with_first_steps = _chosen(only)
    if against not in {row.name for row in all_rows()}:
        raise ArchieError(f"row {against!r}: nothing of this name to compare with")
    before, date = _load(), time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    with one_thread(), OneCore() as core:
        measurements, skipped = measure(rows, seconds, repeats, core, _tell)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.speed", description="Measure our paths and the peers on one core."
    )
    parser.add_argument("--seconds", type=float, default=0.1, help="of processor time for a row in a round (default 0.1)")
    parser.add_argument("--repeats", type=int, default=21, help="rounds (default 21)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="rows, by name or the beginning of names")
    parser.add_argument(
        "--against", default=REFERENCE, metavar="NAME", help=f"the row of the ratio column (default {REFERENCE})"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to this file")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    chosen = parser.parse_args(arguments)
    if chosen.seconds <= 0 or chosen.repeats < 1:
        parser.error("expected --seconds above 0 and --repeats of at least 1")
    try:
        report = run(chosen.only, chosen.seconds, chosen.repeats, chosen.against)
        if chosen.json:
            save(report, chosen.json)
    except (ArchieError, OSError) as wrong:
        print(f"speed: {wrong}", file=sys.stderr)
        return 2
    print(as_text(report, chosen.markdown))
    return 0
