"""How speed is measured: many loops in one run, in turns, on one core.

Rates are per second of this program's own processor time, so that a machine busy with other work slows no row down by being
away from it; the wall clock is kept beside it.  What the neighbours do to caches and memory remains: hence the medians over
rounds in which every loop has its turn, with the slowest and the fastest.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

Loop = Callable[[], int]
"""Plays a little, at most some tenths of a second, and returns how much was done."""

DECISIONS: Final = "decisions/s"
HANDS: Final = "hands/s"
BYTES: Final = "bytes/s"

_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu", "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}  # fmt: skip


class SkippedError(Exception):
    """A row that can't be measured here; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """Something to measure."""

    name: str
    """What ``--only`` calls it."""
    unit: str
    includes: str
    """What the work for one of these units consists of."""
    make: Callable[[], tuple[Loop, str]]
    """The loop and a note that only making it could tell; raises `SkippedError`."""
    cores: int = 1
    """More than one: on all cores, by the wall clock."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a row reached."""

    name: str
    unit: str
    includes: str
    note: str
    rates: tuple[float, ...]
    """Units per second of processor time, one for each round (of the wall clock with several cores)."""
    wall_rates: tuple[float, ...]
    """Units per second of the wall clock."""
    cores: int = 1

    @property
    def median(self) -> float:
        """Of `rates`."""
        return statistics.median(self.rates)

    @property
    def core(self) -> float:
        """The share of a core this row had, by its median; 1 on a machine with nothing else to do."""
        return statistics.median(wall / rate for wall, rate in zip(self.wall_rates, self.rates, strict=True))

    def over(self, other: Measurement) -> tuple[float, float, float]:
        """Median, least and greatest of the ratios to ``other`` within each round."""
        ratios = [mine / its for mine, its in zip(self.rates, other.rates, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` needs no median, it is for the reader."""
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
    """Ask the libraries loaded meanwhile, and programs started meanwhile, for one thread each and no greetings."""
    before = dict(os.environ)
    flags = f"{before.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1".strip()
    os.environ |= _ONE_THREAD | {"XLA_FLAGS": flags}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def spent(loop: Loop, seconds: float, cores: int = 1) -> tuple[float, float]:
    """Run a loop for that many seconds of processor time; its rate by that time and by the wall clock."""
    clock = time.process_time if cores == 1 else time.perf_counter
    done, wall, start = 0, time.perf_counter(), clock()
    while True:
        done += loop()
        if (elapsed := clock() - start) >= seconds:
            return done / elapsed, done / (time.perf_counter() - wall)


def measure(
    rows: Sequence[Row], seconds: float, repeats: int, core: OneCore, tell: Callable[[str], None]
) -> tuple[list[Measurement], dict[str, str]]:
    """Measure rows in turns.

    Args:
        rows: each is made and run once before the first round, which compiles and warms what there is to.
        seconds: of processor time for each row in each round.
        repeats: rounds; every second one in reverse order, so that no row always follows the same neighbour.
        core: where rows of one core run.
        tell: called with what is being done.

    Returns:
        The measurements in the order of the rows, and the reasons of those that were skipped by name.
    """
    made: list[tuple[Row, Loop, str]] = []
    skipped: dict[str, str] = {}
    for row in rows:
        tell(f"preparing {row.name}")
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
    gc.freeze()  # what one library left in memory must not be searched through in another's turn
    try:
        for turn in range(repeats):
            tell(f"round {turn + 1} of {repeats}")
            for row, loop, _ in made[:: -1 if turn % 2 else 1]:
                core.use(row.cores)
                taken[row.name].append(spent(loop, seconds, row.cores))
    finally:
        core.use(1)
        gc.unfreeze()
    measurements = []
    for row, _, note in made:
        rates, wall_rates = zip(*taken[row.name], strict=True)
        measurements.append(Measurement(row.name, row.unit, row.includes, note, rates, wall_rates, row.cores))
    return measurements, skipped
