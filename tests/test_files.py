"""Files written whole or not at all, what is no plain file, and locks."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from agents.archive import read_archive, write_archive
from archie_env.errors import ArchieError
from archie_env.files import atomic_write, check_writable, locked


def test_a_file_is_replaced_whole_with_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    path, plain = tmp_path / "a.txt", tmp_path / "plain"
    plain.touch()
    for content in ("é\n", b"\xff", lambda file: file.write(b"called")):
        atomic_write(path, content)
    assert path.read_bytes() == b"called"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "plain"]


def test_a_character_that_utf_8_lacks_is_escaped(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", "\udcff")
    assert (tmp_path / "a").read_bytes() == b"\\udcff"


def test_a_failed_write_leaves_the_former_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    atomic_write(path, "former")

    def fail(file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ArchieError, match="a: No space left on device: expected a file that can be written"):
        atomic_write(path, fail)
    with pytest.raises(ArchieError, match="No such file or directory"):
        atomic_write(tmp_path / "none" / "a", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ArchieError, match="folder: Is a directory"):
        atomic_write(tmp_path / "folder", "")
    assert path.read_text() == "former"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "folder"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_names_the_file() -> None:
    with pytest.raises(ArchieError, match="/dev/full: No space left on device"):
        atomic_write("/dev/full", "text")


def test_bytes_reach_the_disk_before_the_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    replace, fsync = Path.replace, os.fsync

    def noted_fsync(descriptor: int) -> None:
        done.append("fsync")
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    atomic_write(tmp_path / "a", "text")
    assert done == ["fsync", "rename"]


def test_writers_of_one_file_never_share_a_temporary_file(tmp_path: Path) -> None:
    """Two `write_archive` of one file used to write to the same ``.partial``, and readers found broken archives."""
    path, stop = tmp_path / "a.npz", threading.Event()
    failed: list[BaseException] = []
    arrays = {"x": np.arange(20_000)}

    def write() -> None:
        try:
            while not stop.is_set():
                write_archive(path, arrays, {"format": "test", "version": 1})
        except BaseException as error:
            failed.append(error)

    write_archive(path, arrays, {"format": "test", "version": 1})
    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(200):
            assert len(read_archive(path, "test", 1)[0]["x"]) == 20_000
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not failed
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_what_a_killed_writer_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    old, new = tmp_path / ".a[1].0123456789ab.tmp", tmp_path / ".a[1].ba9876543210.tmp"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    atomic_write(tmp_path / "a[1]", "text")
    assert sorted(file.name for file in tmp_path.iterdir()) == [new.name, "a[1]"]


def test_a_symbolic_link_stays_one_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_text("former")
    link.symlink_to(target)
    dangling.symlink_to("folder/new")
    for path in (link, dangling):
        check_writable(path)
        atomic_write(path, "text")
        assert path.is_symlink()
    assert target.read_text() == (tmp_path / "folder" / "new").read_text() == "text"


def test_a_fifo_receives_the_bytes_and_stays_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    check_writable(fifo)
    with pytest.raises(ArchieError, match="fifo: No such device or address"):  # nobody reads: an error and no endless wait
        atomic_write(fifo, "text")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        atomic_write(fifo, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert [file.name for file in tmp_path.iterdir()] == ["fifo"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_in_order_even_when_it_is_a_file(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"from archie_env.files import *; print('a'); check_writable({name!r}); atomic_write({name!r}, 'b\\n'); print('c')"
    with out.open("wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert out.read_text() == "a\nb\nc\n"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"a\nb\nc\n"


def test_a_place_that_cannot_be_written_is_refused_beforehand_and_left_as_it_was(tmp_path: Path) -> None:
    check_writable(None)
    check_writable(tmp_path / "new")
    (tmp_path / "old").write_text("text")
    check_writable(tmp_path / "old")
    for path, words in (
        (tmp_path, "is a folder: expected a file that can be written"),
        (tmp_path / "none" / "x", "No such file or directory: expected a file that can be written"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path(f"{tmp_path}/a\0b"), "expected a file that can be written"),
    ):
        with pytest.raises(ArchieError, match=words):
            check_writable(path)
    assert (tmp_path / "old").read_text() == "text"
    assert [file.name for file in tmp_path.iterdir()] == ["old"]


HOLD = """
import sys, time
from archie_env.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("folder", [True, False])
def test_a_second_process_is_refused_until_the_first_is_gone_even_by_sigkill(folder: bool, tmp_path: Path) -> None:
    path = tmp_path if folder else tmp_path / "results.json"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ArchieError, match=f"process {holder.pid} on .* writes there"), locked(path):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with locked(path), pytest.raises(ArchieError, match=f"process {os.getpid()} on"), locked(path):
        pass
    assert not list(tmp_path.iterdir())


def test_one_lock_is_never_held_twice(tmp_path: Path) -> None:
    """The lock file is removed by its holder, at which moment others may have it open."""
    held, most, errors = 0, 0, list[BaseException]()
    end = time.monotonic() + 1

    def take() -> None:
        nonlocal held, most
        while time.monotonic() < end:
            try:
                with locked(tmp_path):
                    held += 1
                    most = max(most, held)
                    time.sleep(0)
                    held -= 1
            except ArchieError:
                pass
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, errors) == (1, [])


def test_no_lock_is_taken_of_what_many_may_write_to(tmp_path: Path) -> None:
    for path in (None, "/dev/null", "/dev/stdout"):
        with locked(path), locked(path):
            pass
