"""A bot's process: started, written to and read from at once, and ended with its whole process group."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Final

from agents.process.wire import MOST_LINE
from archie_env.errors import EXCEPTION, MALFORMED, printable

MOST_NOISE: Final = 10_000
"""Lines that are no answers, after which a process is ended."""
ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""Variables that a bot inherits."""
_GRACE: Final = 2.0
"""Seconds that a bot has to end by itself once its input is closed."""
_PIECE: Final = 1 << 16
_KEPT: Final = 8192
"""Bytes of standard error that are kept."""
_LETTERS: Final = 200
_EXIT: Final = 5.0
"""Seconds that a process has to end once its output has ended."""
_PATIENCE: Final = 1.0
"""Seconds after which a process that says nothing is looked at: its own children may hold its output open."""
_LAUNCH: Final = '( (read -r _ < "/dev/fd/$0"; kill -KILL 0) & ) </dev/null >/dev/null 2>&1; exec "$@"'
"""Runs in a process group of its own.  The first part waits for the end of a pipe that only the host holds open, and then kills
the group: that is how a bot ends that does not notice that its host was killed."""

Take = Callable[[bytes], tuple[int, bool]]
"""Reads whole lines from the start of a buffer; returns the bytes read, and whether no more is wanted."""


class EndedError(Exception):
    """A process that can't go on, with the kind of the fault and the reason."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason


class LateError(Exception):
    """A process that did not answer in time."""


class Child:
    """A process in a group of its own, with a small environment.

    Args:
        command: program and arguments; no shell reads them.

    Raises:
        OSError: if nothing can be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        watched, held = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LAUNCH, str(watched), *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env=environment | {"PYTHONUNBUFFERED": "1"}, start_new_session=True, pass_fds=[watched],
            )  # fmt: skip
        except BaseException:
            os.close(held)
            raise
        finally:
            os.close(watched)
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe is not None)
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe, False)
        self._rest, self._skipping, self._said = b"", False, b""
        self.noise, self.first_noise = 0, ""
        self._held, self._owner = held, os.getpid()
        self._finalizer = weakref.finalize(self, _end, self._process, held, self._owner, _GRACE)

    @property
    def pid(self) -> int:
        """Number of the process and of its group."""
        return self._process.pid

    def close(self) -> None:
        """Close the standard input, wait until the process has ended or kill it, and kill what is left of its group."""
        self._finalizer()

    def kill(self) -> None:
        """Kill the whole group at once."""
        if self._finalizer.detach() is not None:
            _end(self._process, self._held, self._owner, 0)

    def stop(self) -> None:
        """Kill the whole group and leave the pipes to the thread that reads them."""
        _kill_group(self._process)

    def add_noise(self, line: bytes) -> None:
        """Count a line that is no answer; raises `EndedError` after `MOST_NOISE`."""
        if not self.noise:
            self.first_noise = _text(line)
        self.noise += 1
        if self.noise > MOST_NOISE:
            raise EndedError(MALFORMED, f"more than {MOST_NOISE:,} lines that are no answers, the first {self.first_noise!r}")

    def talk(self, message: bytes, take: Take, seconds: float | None) -> None:
        """Write a message and read until ``take`` wants no more, both at once, so that no full pipe stops the two.

        What is read beyond that is kept for the next call.

        Raises:
            EndedError: the process ended, or was told to for what it said.
            LateError: it took longer than so many seconds.
        """
        end = None if seconds is None else time.monotonic() + seconds
        poll = select.poll()
        for pipe in (self._out, self._err):
            poll.register(pipe, select.POLLIN)
        unsent, writing = memoryview(message), False
        done = self._taken(take)
        while True:
            unsent = self._send(unsent)
            if done and not unsent:
                return
            if bool(unsent) is not writing:
                writing = not writing
                poll.register(self._in, select.POLLOUT) if writing else poll.unregister(self._in)
            left = _PATIENCE if end is None else min(_PATIENCE, end - time.monotonic())
            if left <= 0:
                raise LateError
            ready = {pipe for pipe, _ in poll.poll(1000 * left)}
            if self._err in ready and not self._listen():
                poll.unregister(self._err)
            if self._out in ready:
                chunk = self._read(self._out, 4 * _PIECE)
                if chunk == b"":
                    raise self._ended()
                if chunk:
                    self._add(chunk)
                    done = done or self._taken(take)
            elif not ready and self._process.poll() is not None:
                raise self._ended()

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            while unsent:
                unsent = unsent[os.write(self._in, unsent[:_PIECE]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # what the process said before it ended may still be read
            return unsent[:0]
        return unsent

    @staticmethod
    def _read(pipe: int, most: int) -> bytes | None:
        """What there is; None for nothing yet, empty at the end."""
        try:
            return os.read(pipe, most)
        except BlockingIOError:
            return None

    def _add(self, chunk: bytes) -> None:
        """Add to what was read; of a line that is too long, only so much that this is seen."""
        if self._skipping:
            _, newline, chunk = chunk.partition(b"\n")
            if not newline:
                self.add_noise(b"(a long line)")
                return
            self._skipping = False
        self._rest += chunk
        last = self._rest.rfind(b"\n") + 1
        if len(self._rest) - last > MOST_LINE:
            self._skipping, self._rest = True, self._rest[: last + MOST_LINE + 1] + b"\n"

    def _taken(self, take: Take) -> bool:
        used, done = take(self._rest)
        self._rest = self._rest[used:]
        return done

    def _listen(self) -> bool:
        """Read standard error; returns whether it is still open."""
        said = self._read(self._err, _PIECE)
        self._said = (self._said + (said or b""))[-_KEPT:]
        return said != b""

    def _ended(self) -> EndedError:
        """What became of the process, with the last lines of its standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT)
        code = self._process.returncode
        for _ in range(64):  # at most; its own children may go on writing
            said = self._said
            if not self._listen() or self._said == said:
                break
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was ended by {_signal(-code)}"
        else:
            how = f"ended with status {code}"
        last = " | ".join(_text(line) for line in self._said.splitlines()[-3:] if line.strip())
        return EndedError(EXCEPTION, f"the process {how}{f'; its last words: {last}' if last else ''}")


def _text(line: bytes) -> str:
    """A line as printable text, cut."""
    text = line.decode("utf-8", "replace").strip()
    return printable(text[:_LETTERS]) + ("..." if len(text) > _LETTERS else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Until this, the group has the member that waits for the host's end, so its number can't belong to anybody else.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], held: int, owner: int, grace: float) -> None:
    """End a process and what it started; in a fork of its host, only let go of it."""
    pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            pipes[0].close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
        _kill_group(process)
        process.wait()
    for pipe in pipes:
        with contextlib.suppress(OSError):
            pipe.close()
    os.close(held)
