"""Measure many loops in one run, in turns, on one core.

Rates are per second of this program's own processor time, so time given to other programs does not count; rates by the wall
clock are kept beside them.  Other programs still disturb caches and memory.  Every loop therefore has a turn in each round, and
the report gives the median over rounds with the slowest and the fastest.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from evaluation.command import progress

Loop = Callable[[], int]
"""Works for at most some tenths of a second and returns the number of units done."""

DECISIONS: Final = "decisions/s"
HANDS: Final = "hands/s"
BYTES: Final = "bytes/s"

_log = logging.getLogger(__name__)
_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu", "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}  # fmt: skip


class SkippedError(Exception):
    """A row cannot be measured here; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A loop to measure."""

    name: str
    """Name in ``--only`` and in the tables."""
    unit: str
    includes: str
    """The work behind one unit."""
    make: Callable[[], tuple[Loop, str]]
    """Returns the loop and a note found while making it; raises `SkippedError`."""
    cores: int = 1
    """With more than one, the row runs on all cores and is timed by the wall clock."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Rates of a row."""

    name: str
    unit: str
    includes: str
    note: str
    rates: tuple[float, ...]
    """Units per second of processor time in each round; of the wall clock for rows with several cores."""
    wall_rates: tuple[float, ...]
    """Units per second of the wall clock in each round."""
    cores: int = 1

    @property
    def median(self) -> float:
        """Median of `rates`."""
        return statistics.median(self.rates)

    @property
    def core(self) -> float:
        """Median share of a core that this row had; 1 on an idle machine."""
        return statistics.median(wall / rate for wall, rate in zip(self.wall_rates, self.rates, strict=True))

    def over(self, other: Measurement) -> tuple[float, float, float]:
        """Median, smallest and largest ratio to ``other``, taken round by round."""
        ratios = [rate / reference for rate, reference in zip(self.rates, other.rates, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`, with the median for readers."""
        return asdict(self) | {"median": self.median}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Measurement:
        """The inverse of `to_dict`."""
        numbers = {key: tuple(values[key]) for key in ("rates", "wall_rates")}
        return cls(**{key: value for key, value in values.items() if key != "median"} | numbers)


class OneCore:
    """Keeps this thread, and every thread it starts, on one core where the system lets us."""

    def __init__(self) -> None:
        self._all = os.sched_getaffinity(0) if sys.platform == "linux" else set()

    def __enter__(self) -> OneCore:
        self.use(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.use(len(self._all))

    def use(self, cores: int) -> None:
        """Stay on the last core, or with ``cores`` above 1 go back to all of them."""
        if sys.platform == "linux":
            os.sched_setaffinity(0, {max(self._all)} if cores == 1 else self._all)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit libraries loaded and programs started inside the context to one thread each, without greetings."""
    before = dict(os.environ)
    flags = f"{before.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1".strip()
    os.environ |= _ONE_THREAD | {"XLA_FLAGS": flags}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def spent(loop: Loop, seconds: float, cores: int = 1) -> tuple[float, float]:
    """Run a loop for so many seconds of processor time; return its rates by processor time and by the wall clock."""
    clock = time.process_time if cores == 1 else time.perf_counter
    done, wall, start = 0, time.perf_counter(), clock()
    while True:
        done += loop()
        if (elapsed := clock() - start) >= seconds:
            return done / elapsed, done / (time.perf_counter() - wall)


def measure(rows: Sequence[Row], seconds: float, repeats: int, core: OneCore) -> tuple[list[Measurement], dict[str, str]]:
    """Measure rows in turns.

    Args:
        rows: each is made and run once before the first round, to compile and to warm up caches.
        seconds: processor time of each row in each round.
        repeats: number of rounds; every second one runs in reverse order, so that no row always follows the same neighbour.
        core: the core for rows that use one.

    Returns:
        The measurements in the order of the rows, and the reasons for skipped rows by name.
    """
    made: list[tuple[Row, Loop, str]] = []
    skipped: dict[str, str] = {}
    for row in rows:
        _log.info(f"preparing {row.name}")
        core.use(row.cores)
        try:
            loop, note = row.make()
        except SkippedError as reason:
            skipped[row.name] = str(reason)
            continue
        loop()
        made.append((row, loop, note))
    taken: dict[str, list[tuple[float, float]]] = {row.name: [] for row, _, _ in made}
    gc.collect()
    gc.freeze()  # a collection during one row must not scan the objects that other libraries left in memory
    try:
        with progress(repeats * len(made), "turns") as advance:
            for turn in range(repeats):
                for row, loop, _ in made[:: -1 if turn % 2 else 1]:
                    core.use(row.cores)
                    taken[row.name].append(spent(loop, seconds, row.cores))
                    advance(1)
    finally:
        core.use(1)
        gc.unfreeze()
    measurements = []
    for row, _, note in made:
        rates, wall_rates = zip(*taken[row.name], strict=True)
        measurements.append(Measurement(row.name, row.unit, row.includes, note, rates, wall_rates, row.cores))
    return measurements, skipped
