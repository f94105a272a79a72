"""What `archie bench` measures, on one core.

Rates are medians over repeats, with the slowest and the fastest beside them: a median that its own spread makes doubtful should
not be quoted.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from archie_env import __version__
from archie_env._core.jit import JIT_DISABLED, kernel
from archie_env._core.showdown import high_value, low_value
from archie_env._core.state import GAME
from archie_env.archie_v0 import env
from archie_env.batch import Batch
from archie_env.rulebook import rulebook
from archie_env.rules import Rules

_STEPS: Final = 1 if JIT_DISABLED else 50
"""Batch steps between two looks at the clock."""
_LABEL: Final = 64
_FIRST_STEP: Final = """
import time
start = time.perf_counter()
from archie_env import archie_v0
env = archie_v0.env()
env.reset(seed=0)
env.last()
env.step(1)
print(time.perf_counter() - start)
"""


@kernel
def _evaluate_all(book, hands):  # type: ignore[no-untyped-def]
    """The sum of the high and low values of all hands, so that no evaluation can be left out."""
    total = 0
    for i in range(len(hands)):
        total += high_value(book[0], hands[i]) + low_value(book[0], hands[i])
    return total


def report(seconds: float, games: int, repeats: int) -> Iterator[str]:
    """The lines of the table, each as soon as it is measured."""
    yield from _machine()
    yield ""
    yield f"{'':{_LABEL}}{'median':>12}{'slowest':>12}{'fastest':>12}"
    with _one_core():
        for dtype in ("int8", "float32"):
            batch = Batch(games, seed=1, dtype=dtype)
            yield _rate(
                f"batch of {games}: random action, step, mask, {dtype} observation", _batch_run(batch), seconds, repeats
            )
        yield _rate("PettingZoo: last(), random choice of mask.nonzero(), step()", _aec_run(), seconds, repeats)
        yield _rate("hands evaluated, high and low", _evaluation_run(), seconds, repeats, "hands/s")
        cold, cached = _first_steps(min(repeats, 3), repeats)
        yield _row("first import to first PettingZoo step, cold", cold, lambda t: f"{t:.2f} s")
        yield _row("first import to first PettingZoo step, from cache", cached, lambda t: f"{t:.2f} s")
    batch = Batch(1)
    yield f"{'memory of a game':{_LABEL}}{f'{GAME.itemsize} bytes':>12}"
    yield f"{'memory of its int8 observation and mask':{_LABEL}}{f'{batch.observations.nbytes + batch.masks.nbytes} bytes':>12}"


def _machine() -> Iterator[str]:
    yield (
        f"archie-env {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
        f"{' (JIT disabled)' if JIT_DISABLED else ''}"
    )
    yield f"{_processor()}, {os.cpu_count()} cores of which one is used; rates are decisions per second, rules archie"


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Stay on one core, where the system lets us, so that a measurement does not wander."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _batch_run(batch: Batch) -> Callable[[], int]:
    def run() -> int:
        for _ in range(_STEPS):
            batch.step(batch.sample_actions())
        return _STEPS * len(batch)

    return run


def _aec_run() -> Callable[[], int]:
    table = env()
    table.reset(seed=1)
    random = Random(1).random  # a number at a time, which NumPy's generators are slow to give

    def run() -> int:
        decisions = 0
        for _ in range(100):
            table.reset()
            while True:
                observation, _, over, _, _ = table.last()
                if over:
                    break
                legal = observation["action_mask"].nonzero()[0]
                table.step(legal[int(random() * len(legal))])
                decisions += 1
        return decisions

    return run


def _evaluation_run() -> Callable[[], int]:
    rules = Rules()
    random = np.random.default_rng(1)
    hands: NDArray[np.int8] = np.sort(
        np.argsort(random.random((10_000, rules.deck_size)), axis=1)[:, : rules.hand_size], axis=1
    )
    hands = hands.astype(np.int8)
    book: Any = rulebook(rules)

    def run() -> int:
        _evaluate_all(book, hands)
        return len(hands)

    return run


def _rate(label: str, run: Callable[[], int], seconds: float, repeats: int, unit: str = "/s") -> str:
    run()  # compiles, and warms the caches
    rates = []
    for _ in range(repeats):
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            done += run()
        rates.append(done / elapsed)
    return _row(label, rates, lambda rate: _short(rate) + unit[-2:])


def _short(rate: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g} "


def _row(label: str, values: list[float], text: Callable[[float], str]) -> str:
    return f"{label:{_LABEL}}" + "".join(f"{text(v):>12}" for v in (statistics.median(values), min(values), max(values)))


def _first_steps(cold_runs: int, cached_runs: int) -> tuple[list[float], list[float]]:
    """Seconds from import to first step in fresh interpreters: each with an empty compiler cache, then with a full one."""
    cold = []
    for _ in range(cold_runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_first_step(cache))
            if len(cold) == cold_runs:
                cached = [_first_step(cache) for _ in range(cached_runs)]
    return cold, cached


def _first_step(cache: str) -> float:
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths}
    ended = subprocess.run([sys.executable, "-c", _FIRST_STEP], env=environment, capture_output=True, text=True, check=True)
    return float(ended.stdout)
