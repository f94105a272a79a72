"""The shell around every command: exit codes, one-line errors, interrupts, closed or full outputs, missing characters."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from archie_env.errors import ArchieError, PlayerLeftError, printable

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
_WRITE_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def run(work: Callable[[], object], program: str = "error", stopped: str = "interrupted") -> int:
    """Do the work of a command and return its exit status; SIGTERM is taken as Ctrl-C.

    Args:
        work: prints its result to standard output.
        program: stands before the colon of an error line.
        stopped: printed when the user interrupts, such as a hint how to go on.

    Returns:
        0; 2 after bad input or a failed write, with one line on standard error; 130 after an interrupt; 141 when the reader
        of the output has gone.
    """
    _open_streams()
    try:
        with terminable():
            work()
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except (ArchieError, OSError, MemoryError, PlayerLeftError) as error:
        _complain(f"{program}: {_write_error(error) or error_line(error)}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _complain(f"\n{stopped}")
        return INTERRUPTED
    return 0


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise `KeyboardInterrupt`, as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(stop, signal.SIGTERM):
        yield


@contextlib.contextmanager
def handled(handler: Callable[[int, FrameType | None], Any], *signals: signal.Signals) -> Iterator[None]:
    """Handle signals for the duration of a block, except those that are ignored; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in signals if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def error_line(error: BaseException) -> str:
    """The message of an error on one line, its type where it has none; never raises."""
    try:
        text = printable("; ".join(str(error).splitlines()))
    except Exception:
        text = ""
    return text or type(error).__name__


def _write_error(error: BaseException) -> str:
    """The message for output that could not be written, which is an error without a file name; else nothing."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _WRITE_ERRORS:
        return f"standard output: {os.strerror(error.errno)}"
    return ""


def _complain(line: str) -> None:
    """Print the last line of a command that failed, after its output; a closed or full stream is passed over."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    _discard_output()
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Send standard output to the null device, so that the interpreter's last flush can't fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _open_streams() -> None:
    """Open closed streams on the null device, and make no byte or character an error.

    Input that is not of the encoding becomes a replacement character, output that it lacks an escape.
    """
    for name, mode, descriptor in (("stdin", "r", 0), ("stdout", "w", 1), ("stderr", "w", 2)):
        stream = getattr(sys, name)
        if stream is None:  # closed before the program began
            _occupy(descriptor)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (for the rest of the process)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if name == "stdin" else "backslashreplace")


def _occupy(descriptor: int) -> None:
    """Keep a free standard descriptor from going to the next file opened, which stray output would then end up in."""
    try:
        os.fstat(descriptor)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)
