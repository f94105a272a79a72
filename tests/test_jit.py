"""Compiled kernels: no stale machine code, and a cache that can neither break a program nor touch files of others."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archie_env._core.jit import JIT_DISABLED

ROOT = Path(__file__).parents[1]
OWN = "archie-env-kernels"
PLAY = """
from archie_env.game import Game
game = Game(seed=7, dealer=0)
while not game.over:
    game.apply(3 if game.drawing else 1)
print(game.result.net)
"""
PROGRAM = """
import numpy as np
from archie_env._core.sample import sample_rows
actions = np.zeros(2, np.int64)
sample_rows(np.array([[0, 0.5, 0.5], [1, 0, 0]], np.float32), np.array([0.9, 0.5]), actions)
print(actions.tolist())
"""
COUNT_HITS = """
print(sum(sample_rows.stats.cache_hits.values()))
"""
READ_ONLY = """
import errno, os, sys
def refuse(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.rename", "os.utime", "os.remove", "os.rmdir"):
        if "KERNELS" in str(arguments[0]):
            raise OSError(errno.EROFS, "Read-only file system", str(arguments[0]))
sys.addaudithook(refuse)
"""
FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""
NO_HOME = """
import os, pwd
os.environ.pop("HOME", None)
def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = unknown
"""
GONE = """
import shutil, archie_env._core.sample
shutil.rmtree("KERNELS", ignore_errors=True)
"""

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


def start(program: str, root: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-B", "-c", program],
        cwd=root,
        env={**inherited, "PYTHONPATH": str(root), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def run(program: str = PROGRAM, root: Path = ROOT, **environment: str) -> str:
    return output(start(program, root, **environment))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds all that `PROGRAM` runs; not to be written to."""
    cache = tmp_path_factory.mktemp("warm")
    run(NUMBA_CACHE_DIR=str(cache))
    return cache


@pytest.fixture
def cache(warm: Path, tmp_path: Path) -> Path:
    """A copy of the warm cache."""
    return Path(shutil.copytree(warm, tmp_path / "cache"))


def test_an_edited_kernel_never_runs_stale_code(tmp_path: Path) -> None:
    """A kernel is edited; kernels of *other* files that call it must change too, though their own files did not."""
    shutil.copytree(ROOT / "archie_env", tmp_path / "archie_env", ignore=shutil.ignore_patterns("__pycache__"))
    cache = str(tmp_path / "cache")
    first = run(PLAY, tmp_path, NUMBA_CACHE_DIR=cache)
    assert run(PLAY, tmp_path, NUMBA_CACHE_DIR=cache) == first
    edited = tmp_path / "archie_env" / "_core" / "showdown.py"
    before = edited.read_text()
    after = before.replace("return for_high + for_low + divided - paid", "return for_high + for_low + divided - paid + 77")
    assert after != before
    edited.write_text(after)
    net = eval(first)[0]
    assert run(PLAY, tmp_path, NUMBA_CACHE_DIR=cache) == str((net + 77, -net - 77))


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    """Neither folders beside ours, nor those in ours that lack its mark, nor foreign files in a marked one."""
    a_year_ago = time.time() - 366 * 24 * 3600
    foreign = [tmp_path / f"photographs{i:05}" for i in range(80)]
    inside = [tmp_path / OWN / f"unmarked{i:08}" for i in range(140)]
    for folder in (*foreign, *inside):
        folder.mkdir(parents=True)
        (folder / "kept.txt").write_text("kept")
        os.utime(folder, (a_year_ago, a_year_ago))
    assert run(NUMBA_CACHE_DIR=str(tmp_path))
    assert [p for p in (*foreign, *inside) if not (p / "kept.txt").exists()] == []


def test_folders_of_ours_go_once_unused_for_a_month(cache: Path) -> None:
    (made,) = (cache / OWN).iterdir()
    ages = {"old": 31, "recent": 29, "shared": 31}
    for name, days in ages.items():
        folder = Path(shutil.copytree(made, cache / OWN / name))
        if name == "shared":
            (folder / "notes.txt").write_text("not ours")
        then = time.time() - days * 24 * 3600
        os.utime(folder, (then, then))
    shutil.rmtree(made)  # so that one has to be made, which is when old ones go
    run(NUMBA_CACHE_DIR=str(cache))
    assert sorted(p.name for p in (cache / OWN).iterdir()) == sorted([made.name, "recent", "shared"])
    assert [p.name for p in (cache / OWN / "shared").iterdir()] == ["notes.txt"]


def test_a_warm_cache_is_used_and_not_written_to(warm: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in warm.rglob("*.kernel")}
    assert run(PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(warm)).splitlines()[1] == "1"
    assert {p: p.stat().st_mtime_ns for p in warm.rglob("*.kernel")} == before


def test_a_warm_cache_on_a_read_only_disk_is_used(warm: Path) -> None:
    refuse = READ_ONLY.replace("KERNELS", str(warm))
    assert run(refuse + PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(warm)).splitlines()[1] == "1"


@pytest.mark.parametrize("trouble", ["read-only", "full", "no home", "no folder", "gone"])
def test_where_nothing_can_be_kept_everything_still_runs(trouble: str, warm: Path, tmp_path: Path) -> None:
    place = {"no home": {}, "no folder": {"NUMBA_CACHE_DIR": "/dev/null/nowhere"}}
    environment = place.get(trouble, {"NUMBA_CACHE_DIR": str(tmp_path)})
    before = {"read-only": READ_ONLY, "full": FULL_DISK, "no home": NO_HOME, "no folder": "", "gone": GONE}[trouble]
    expected = run(NUMBA_CACHE_DIR=str(warm))
    assert run(before.replace("KERNELS", str(tmp_path)) + PROGRAM, ROOT, **environment) == expected
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_damaged_file_is_compiled_anew(cache: Path) -> None:
    """Cut short, emptied, other bytes, or one bit flipped anywhere: never a crash, never other results."""
    (file,) = cache.rglob("sample.sample_rows-*.kernel")
    stored, chance = file.read_bytes(), random.Random(1)
    damaged = [b"", stored[: len(stored) // 2], chance.randbytes(len(stored))]
    for place in (0, len(stored) // 3, len(stored) - 1):
        damaged.append(stored[:place] + bytes([stored[place] ^ 4]) + stored[place + 1 :])
    for content in damaged:
        file.write_bytes(content)
        assert run(PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(cache)).splitlines() == ["[2, 0]", "0"]
        assert file.read_bytes() != content
    file.unlink()
    file.mkdir()
    assert run(NUMBA_CACHE_DIR=str(cache)) == "[2, 0]"


def test_six_processes_start_at_once(tmp_path: Path) -> None:
    started = [start(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(6)]
    assert {output(process) for process in started} == {"[2, 0]"}
    assert not list(tmp_path.rglob("*.tmp"))
    assert run(PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(tmp_path)).splitlines() == ["[2, 0]", "1"]


def test_two_versions_of_python_share_a_folder(cache: Path) -> None:
    other = "import sys; sys.implementation.cache_tag = 'cpython-399'\n"
    assert run(other + PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(cache)).splitlines() == ["[2, 0]", "0"]
    assert len(list((cache / OWN).iterdir())) == 2
    assert run(PROGRAM + COUNT_HITS, NUMBA_CACHE_DIR=str(cache)).splitlines() == ["[2, 0]", "1"]


def test_importing_compiles_nothing_and_leaves_the_heavy_libraries_out() -> None:
    program = (
        "import sys, archie_env; from archie_env import archie_v0\n"
        "from archie_env._core import play, batch, table\n"
        "assert not any(k.signatures for k in (table.step_table, batch.step_games))\n"
        "print([m for m in ('torch', 'stable_baselines3', 'PIL', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    assert run(program) == "[]"


def test_importing_the_package_leaves_the_engine_out_until_a_name_needs_it() -> None:
    program = (
        "import sys, archie_env\n"
        "assert not {'numba', 'pettingzoo', 'archie_env.policy'} & set(sys.modules)\n"
        "assert {'Batch', 'Policy', 'Rules', 'game'} <= set(dir(archie_env))\n"
        "for name in ('nonsense', 'agents'):\n"
        "    assert not hasattr(archie_env, name)\n"
        "import gymnasium\n"
        "gymnasium.make('Archie-v0')\n"
        "from archie_env import *\n"
        "assert archie_env.batch.Batch is Batch and archie_env.policy.Policy is Policy\n"
        "print(Game().to_act, sorted(archie_env.__all__)[:2])"
    )
    assert run(program) in ("0 ['ArchieError', 'Batch']", "1 ['ArchieError', 'Batch']")
