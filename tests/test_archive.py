"""Files of players: what is read, what is refused before it is read, and what copies and pickles of players hold."""

from __future__ import annotations

import copy
import io
import os
import pickle
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.archive import FilePolicy, read_archive, write_archive
from agents.cfr import CFRPolicy
from agents.ppo import PPOPolicy
from agents.registry import WEIGHTS
from agents.solution import SolutionPolicy
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.rules import PRESETS
from tests import tampering
from tests.tampering import many
from training.cfr.abstraction import AbstractionConfig, build

CFR = "archie-env cfr strategy"
KINDS: dict[str, tuple[type[Any], str, Path]] = {
    "strategy": (CFRPolicy, CFR, Path("small.npz")),
    "solution": (SolutionPolicy, "archie-env solution", WEIGHTS / "solution-mini.npz"),
    "policy": (PPOPolicy, "archie-env ppo policy", WEIGHTS / "ppo.npz"),
}


@cache
def positions(rules: str) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Decisions from every part of the game."""
    batch = Batch(16, PRESETS[rules], seed=3)
    found = []
    for _ in range(12):
        found.append((batch.observations.copy(), batch.masks.copy()))
        batch.step(batch.sample_actions())
    return tuple(found)


def play(player: Any) -> None:
    """What a file that is accepted must be able to do."""
    for rows, masks in positions(player.rules.name) if player.rules.name in PRESETS else ():
        try:
            chances = player.probabilities(rows, masks)
            actions = player.act(rows, masks, np.random.default_rng(1))
        except ArchieError:
            return  # rows that a solution has no entry for, weights whose outputs overflow
        assert np.isfinite(chances).all()
        assert ((actions >= 0) & (actions < masks.shape[1])).all()


@pytest.fixture(scope="module")
def strategy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small strategy."""
    path = tmp_path_factory.mktemp("strategy") / "small.npz"
    a = build(PRESETS["mini"], AbstractionConfig(pots=((2, 3),)))
    rng = np.random.default_rng(1)
    bets = rng.integers(0, 256, (a.bet_blocks, a.width), np.uint8)
    CFRPolicy(a, bets, rng.integers(0, 256, (a.draw_blocks, 8), np.uint8), {"seed": 1}).save(path)
    return path


def file_of(kind: str, strategy: Path) -> Path:
    path = KINDS[kind][2]
    return path if path.is_absolute() else strategy


@pytest.mark.parametrize("attack", tampering.ATTACKS, ids=lambda attack: attack.__name__)
def test_a_signed_strategy_whose_numbers_wrap_into_range_when_cast_is_refused(
    attack: Callable[..., Any], strategy: Path, tmp_path: Path
) -> None:
    arrays, meta = read_archive(strategy, CFR, 1)
    arrays = attack(arrays)
    write_archive(tmp_path / "it.npz", arrays, tampering.sign_tables(arrays, meta))
    with pytest.raises(ArchieError, match=r"it\.npz: (slots|pot|raiser|early) holds .*: expected 0 to"):
        CFRPolicy.load(tmp_path / "it.npz")


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("kind", "count"), [("strategy", many(900, 2000)), ("solution", many(400, 1200)), ("policy", many(200, 600))]
)
def test_of_tampered_files_only_archie_errors_come_out(kind: str, count: int, strategy: Path, tmp_path: Path) -> None:
    """Run under NUMBA_BOUNDSCHECK=1 too: what is accepted plays without a read or write outside of arrays."""
    cls, form, _ = KINDS[kind]
    source = read_archive(file_of(kind, strategy), form, 1)
    sign = tampering.sign_tables if kind == "strategy" else lambda arrays, meta: meta
    accepted = tampering.survive(source, cls.load, play, tmp_path / "it.npz", count, 11, sign)
    assert accepted > count // 50, "mutants that are all refused try nothing"


@pytest.mark.parametrize("kind", ["strategy", "solution"])
def test_of_damaged_bytes_only_archie_errors_come_out(kind: str, strategy: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.npz"
    for data in tampering.spoilt_bytes(file_of(kind, strategy).read_bytes(), 400, 12):
        path.write_bytes(data)
        tampering.refused_or_used(KINDS[kind][0].load, path, play)


# -- what an archive may hold


def member(name: str, data: bytes) -> Callable[[zipfile.ZipFile], None]:
    return lambda archive: archive.writestr(name, data)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


def declared(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (member("x.npy", npy(np.zeros(3))), "unknown array 'x'"),
        (member("bets.npy", npy(np.zeros(3))), r"member 'bets\.npy': expected arrays of different names"),
        (member("x.txt", b"hello"), r"member 'x\.txt': expected arrays"),
        (member("x.npy", b"hello"), "not a whole file"),
        (member("x.npy", declared((1 << 40,))), r"expected a member of that size"),
        (member("x.npy", declared((-2, -3)) + bytes(24)), "expected an array of numbers"),
        (member("x.npy", npy(np.array(["a"]))), "expected an array of numbers"),
        (member("x.npy", npy(np.zeros(2, [("a", "i4")]))), "expected an array of numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_a_member_of_another_kind_is_refused(
    add: Callable[[zipfile.ZipFile], None], words: str, strategy: Path, tmp_path: Path
) -> None:
    shutil.copy(strategy, path := tmp_path / "it.npz")
    with zipfile.ZipFile(path, "a") as archive:
        add(archive)
    with pytest.raises(ArchieError, match=rf"it\.npz: .*{words}"):
        CFRPolicy.load(path)


def test_a_small_file_that_declares_gigabytes_is_refused_before_it_is_read(strategy: Path, tmp_path: Path) -> None:
    shutil.copy(strategy, path := tmp_path / "it.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", declared((3 << 28,)))
        archive.infolist()[-1].file_size = 128 + (3 << 30)  # what the directory of a file of 3 MB says, if all of it is 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArchieError, match="bytes: expected at most"):
        CFRPolicy.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kilobytes"


def test_a_pipe_or_folder_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ArchieError, match="expected a regular file"):
            CFRPolicy.load(path)


def test_errors_about_long_values_are_short(strategy: Path, tmp_path: Path) -> None:
    arrays, meta = read_archive(strategy, CFR, 1)
    for changes in (
        {"format": "x" * 10**6},
        {"rules": {"y" * 10**6: 1}},
        {"rules": {"ranks": "2" * 10**6}},
        {"hash": ["z"] * 10**5},
    ):
        write_archive(tmp_path / "it.npz", arrays, meta | changes)
        with pytest.raises(ArchieError) as caught:
            CFRPolicy.load(tmp_path / "it.npz")
        assert len(str(caught.value)) < 2000


# -- copies and pickles


@pytest.mark.parametrize("kind", list(KINDS))
def test_copies_share_the_tables_and_pickles_name_their_file(kind: str, strategy: Path) -> None:
    player = KINDS[kind][0].load(file_of(kind, strategy))
    assert isinstance(player, FilePolicy)
    player.name = "somebody"
    large = max((array for array in arrays_of(player)), key=lambda array: array.nbytes)
    assert not large.flags.writeable
    for other in (copy.copy(player), copy.deepcopy(player), pickle.loads(pickle.dumps(player))):
        assert other is not player
        assert other.name == "somebody"
        assert any(np.shares_memory(large, array) for array in arrays_of(other))
        other.name = "another"
        assert player.name == "somebody"
        play(other)
    assert len(pickle.dumps(player)) < 1000


def arrays_of(player: Any) -> list[np.ndarray]:
    return list(player._tables if isinstance(player, SolutionPolicy) else player.weights.values())


def test_a_greedy_policy_stays_greedy_in_its_pickle() -> None:
    assert pickle.loads(pickle.dumps(PPOPolicy.load(WEIGHTS / "ppo.npz", greedy=True))).greedy is True


def test_a_pickle_is_read_in_another_process(strategy: Path) -> None:
    player = CFRPolicy.load(strategy)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).bets.sum())"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(player), capture_output=True, check=True)
    assert int(done.stdout) == int(player.bets.sum())


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_pickle_holds_the_tables_of_a_player_whose_file_is_gone_or_changed(kind: str, strategy: Path, tmp_path: Path) -> None:
    cls = KINDS[kind][0]
    shutil.copy(file_of(kind, strategy), path := tmp_path / "it.npz")
    player = cls.load(path)
    path.unlink()
    other = pickle.loads(pickle.dumps(player))
    rows, masks = positions(player.rules.name)[0]
    np.testing.assert_array_equal(other.probabilities(rows, masks), player.probabilities(rows, masks))


def test_a_pickle_whose_file_has_changed_since_is_refused(strategy: Path, tmp_path: Path) -> None:
    shutil.copy(strategy, path := tmp_path / "it.npz")
    data = pickle.dumps(player := CFRPolicy.load(path))
    CFRPolicy(player.abstraction, np.zeros_like(player.bets), player.draws).save(path)
    del player
    with pytest.raises(ArchieError, match="changed since this player was pickled"):
        pickle.loads(data)
