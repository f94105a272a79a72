"""The shell around every command: exit codes, one-line errors, interrupts, closed pipes, encodings that lack a character."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Final

from archie_env.errors import ArchieError, PlayerLeftError

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


def run(work: Callable[[], object], program: str = "error", stopped: str = "interrupted") -> int:
    """Do the work of a command and return its exit status.

    Args:
        work: prints its result to standard output.
        program: stands before the colon of an error line.
        stopped: printed when the user interrupts, such as how to go on.

    Returns:
        0; 2 after bad input, with one line on standard error; 130 after an interrupt; 141 when nobody reads the output.
    """
    _open_streams()
    try:
        work()
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # the interpreter's last flush goes nowhere
            output = sys.stdout.fileno()
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        return BROKEN_PIPE
    except (ArchieError, OSError, MemoryError, PlayerLeftError) as error:
        print(f"{program}: {'; '.join(str(error).splitlines()) or type(error).__name__}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"\n{stopped}", file=sys.stderr)
        return INTERRUPTED
    return 0


def _open_streams() -> None:
    """Give closed streams somewhere to go, and print characters that the encoding lacks as escapes instead of failing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed before the program began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (for the rest of the process)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
