"""Atomic writes, checks that a place can be written to, and locks against a second run in the same place.

A symbolic link keeps pointing to the file that is replaced, a FIFO or a device receives the bytes, and ``/dev/stdout`` is the
standard output of this process.
"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from archie_env.errors import ArchieError, ConfigError, described

_STALE: Final = 3600.0
"""Seconds after which an unfinished temporary file counts as left by a killed process, and is removed."""

Content = str | bytes | Callable[[IO[bytes]], object]
"""A string (written as UTF-8), bytes, or a function that writes to the open file."""


def atomic_write(path: str | Path, content: Content) -> None:
    """Write a file under a temporary name in the same folder, flush it to the disk, then rename it.

    A reader never finds half a file, and a failed write leaves the former file untouched.

    Raises:
        ArchieError: naming the file, if it can't be written.
    """
    path = Path(path)
    try:
        if is_special(path):
            with _open_special(path) as file:
                _write(file, content)
            return
        target = Path(os.path.realpath(path))
        _remove_stale(target)
        temporary = _beside(target)
        try:
            with temporary.open("xb") as file:
                _write(file, content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def check_writable(path: str | Path | None) -> None:
    """Raise `ArchieError` for a file that could not be written, which is better known before hours of work than after.

    None stands for no file and is always fine.
    """
    if path is None:
        return
    path = Path(path)
    try:
        if path.is_dir():
            raise ArchieError(f"{path}: is a folder: expected a file that can be written")
        if is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(0, "Permission denied")
            return
        temporary = _beside(Path(os.path.realpath(path)))
        temporary.touch()
        temporary.unlink()
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def check_replaceable(path: str | Path | None, read: Callable[[Path], object]) -> None:
    """Raise `ArchieError` for a file that can't be written, and for one of another kind than is written, which would be lost.

    Args:
        path: None, a file that is missing or empty, and what `is_special` are always fine.
        read: reads a file of the kind that is written; raises anything for all others.
    """
    check_writable(path)
    if path is None or is_special(Path(path)) or not (found := _stat(Path(path))) or not found.st_size:
        return
    try:
        read(Path(path))
    except Exception as error:
        reason = described(error, place=False) if not isinstance(error, ArchieError) else str(error).removeprefix(f"{path}: ")
        raise ArchieError(
            f"{path}: is not what this command writes there ({reason}): expected another place, or that it be deleted"
        ) from None


def make_folder(folder: Path) -> None:
    """Make the folder of a run and try that it can be written to; raises `ConfigError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{folder}: {reason}: expected a folder that can be made and written to") from None


def is_special(path: Path) -> bool:
    """Whether a path names something to be written to and never replaced or read: a FIFO, a device, an open descriptor."""
    if _descriptor(path) is not None:
        return True
    found = _stat(path)
    return found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)


@contextlib.contextmanager
def locked(path: str | Path | None) -> Iterator[None]:
    """Refuse a second process that writes to the same place while the block runs.

    The lock belongs to the process: it ends with it, even by SIGKILL.  Where the system or the file system has no locks, there
    is none.

    Args:
        path: an existing folder, or a file to be written; None, and what `is_special`, need no lock.

    Raises:
        ArchieError: naming the other process.
    """
    lock = None if path is None or sys.platform == "win32" else _lock_file(Path(path))
    if path is None or lock is None:
        yield
        return
    descriptor = _lock(Path(path), lock)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _lock_file(path: Path) -> Path | None:
    try:
        if is_special(path):
            return None
        return path / ".lock" if path.is_dir() else path.with_name(f".{path.name[:60]}.lock")
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def _lock(path: Path, lock: Path) -> int:
    """Take the lock and return the open descriptor that holds it."""
    import fcntl  # not on Windows

    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _refused(path, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(lock, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()} on {platform.node()}".encode())
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise ArchieError(
                f"{path}: process {holder} writes there now: expected another place, or wait for its end"
            ) from None
        except OSError:  # a file system without locks
            return descriptor
        os.close(descriptor)  # the former holder removed the file in between


def _same(lock: Path, descriptor: int) -> bool:
    found = _stat(lock)
    return found is not None and os.path.samestat(found, os.fstat(descriptor))


def _write(file: IO[bytes], content: Content) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def _stat(path: Path) -> os.stat_result | None:
    """The file behind a path, or None where there is none; other errors, such as a name that is too long, are raised."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _descriptor(path: Path) -> int | None:
    """The open descriptor that a path names: 1 for ``/dev/stdout`` and ``/dev/fd/1``; None for all others."""
    for _ in range(2):
        if os.path.realpath(path.parent) == f"/proc/{os.getpid()}/fd" and path.name.isdigit():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _open_special(path: Path) -> IO[bytes]:
    descriptor = _descriptor(path)
    if descriptor is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        return os.fdopen(os.dup(descriptor), "wb")
    # Without O_NONBLOCK, a FIFO that nobody reads would be waited for without end.
    opened = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(opened, True)
    return os.fdopen(opened, "wb")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:60]}.{uuid.uuid4().hex[:12]}.tmp")


def _remove_stale(path: Path) -> None:
    with contextlib.suppress(OSError):
        for left in path.parent.glob(f".{glob.escape(path.name[:60])}.????????????.tmp"):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()


def _refused(path: Path, error: Exception) -> ArchieError:
    if isinstance(error, ArchieError):
        return error
    return ArchieError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a file that can be written")
