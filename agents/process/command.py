"""The command line of a bot: what stands after ``bot:``."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from archie_env.errors import ArchieError, shown


@dataclass(frozen=True, slots=True)
class Clock:
    """A bot's time, in seconds, as on a chess clock."""

    start: float = 30.0
    """For the answer to the first line; not taken from the bank."""
    each: float | None = 0.1
    """Added to the bank for each decision; None lets the bot think as long as it likes."""
    bank: float = 10.0
    """What it has at first, and at most."""


def parse_command(text: str) -> tuple[list[str], Clock, list[Path]]:
    """Split what stands after ``bot:`` into a command, its clock, and the files that it is known by.

    Options stand before the command: ``--start S``, ``--each S``, ``--bank S`` and ``--no-clock`` of the clock, and
    ``--hash FILE`` for each file beside the program and the script that is its first argument.

    Raises:
        ArchieError: for an unknown option, no command, or a program that is not there.
    """
    where = f"bot {shown(text)}"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArchieError(f"{where}: {error}: expected a command line") from None
    clock, files = Clock(), list[Path]()
    while words and words[0].startswith("--"):
        option = words.pop(0)
        if option == "--no-clock":
            clock = replace(clock, each=None)
        elif option in ("--start", "--each", "--bank") and words:
            clock = replace(clock, **{option[2:]: _seconds(f"{where}: {option}", words.pop(0))})
        elif option == "--hash" and words:
            files.append(Path(words.pop(0)))
        else:
            expected = "--start S, --each S, --bank S, --no-clock or --hash FILE, and a command"
            raise ArchieError(f"{where}: {option}: expected {expected}")
    if not words or not text.isprintable():
        raise ArchieError(f"{where}: expected a command, such as ./mybot or 'python3 mybot.py'")
    program = shutil.which(words[0])
    if program is None:
        raise ArchieError(f"{where}: {shown(words[0])} is no program: expected an executable file, or a name in PATH")
    scripts = [Path(word) for word in words[1:2] if Path(word).is_file()]
    return [program, *words[1:]], clock, [Path(program), *scripts, *files]


def _seconds(where: str, text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 1e6:
            return float(text)
    raise ArchieError(f"{where} {shown(text)}: expected seconds, 0 to a million")


def program_hash(text: str) -> str:
    """SHA-256 of the files that a command is known by; see `parse_command`."""
    total = hashlib.sha256()
    for path in parse_command(text)[2]:
        try:
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise ArchieError(f"bot {shown(text)}: {error.strerror or error}: {path}") from None
    return total.hexdigest()
