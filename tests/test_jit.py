"""The compiler's door: no stale machine code, no need for a writable disk, kernels pure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archie_env._core.jit import JIT_DISABLED

ROOT = Path(__file__).parents[1]
PROGRAM = """
from archie_env.game import Game
game = Game(seed=7, dealer=0)
while not game.over:
    game.apply(3 if game.drawing else 1)
print(game.result.net)
"""

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


def run(root: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_edited_kernel_never_runs_stale_code(tmp_path: Path) -> None:
    """A kernel is edited; those of *other* files that call it must notice, though their own files did not change."""
    shutil.copytree(ROOT / "archie_env", tmp_path / "archie_env", ignore=shutil.ignore_patterns("__pycache__"))
    cache = str(tmp_path / "cache")
    first = run(tmp_path, NUMBA_CACHE_DIR=cache)
    assert run(tmp_path, NUMBA_CACHE_DIR=cache) == first
    edited = tmp_path / "archie_env" / "_core" / "showdown.py"
    before = edited.read_text()
    after = before.replace("return for_high + for_low + divided - paid", "return for_high + for_low + divided - paid + 77")
    assert after != before
    edited.write_text(after)
    net = eval(first)[0]
    assert run(tmp_path, NUMBA_CACHE_DIR=cache) == str((net + 77, -net - 77))
    assert any((tmp_path / "cache").rglob("*.nbi"))


def test_without_a_writable_cache_everything_still_runs() -> None:
    assert run(ROOT, NUMBA_CACHE_DIR="/dev/null/nowhere") == run(ROOT)


def test_importing_compiles_nothing_and_leaves_the_heavy_libraries_out() -> None:
    program = (
        "import sys, archie_env; from archie_env import archie_v0\n"
        "from archie_env._core import play, batch, table\n"
        "assert not any(k.signatures for k in (table.step_table, batch.step_games))\n"
        "print([m for m in ('torch', 'stable_baselines3', 'PIL', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
