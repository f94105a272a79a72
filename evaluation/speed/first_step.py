"""Time from the first import to the first step, in fresh interpreters with an empty and with a filled compiler cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_PROGRAM: Final = """
import time
start = time.perf_counter()
from archie_env import archie_v0
env = archie_v0.env()
env.reset(seed=0)
env.last()
env.step(1)
print(time.perf_counter() - start)
"""


def first_step(cache: str) -> float:
    """Return the seconds of one fresh interpreter whose compiler cache is the folder ``cache``."""
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths}
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return float(ended.stdout)


def first_steps(cold: int, cached: int) -> dict[str, tuple[float, ...]]:
    """Time ``cold`` interpreters, each with an empty compiler cache, then ``cached`` ones with the last of these caches."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(cold + cached):
            state = "cold" if number < cold else "cached"
            before = os.times()
            wall = first_step(str(Path(folder) / str(min(number, cold - 1))))
            after = os.times()
            processor = after.children_user - before.children_user + after.children_system - before.children_system
            found.setdefault(f"{state}, by the wall clock", []).append(wall)
            found.setdefault(f"{state}, processor time with the interpreter's start", []).append(processor)
    return {name: tuple(seconds) for name, seconds in found.items()}
