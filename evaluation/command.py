"""The shell of every evaluation command: options, errors, progress, log lines, tables.

A command is a frozen dataclass of options and a function that does the work:

    @dataclass(frozen=True, kw_only=True)
    class Options:
        \"\"\"The description in --help.\"\"\"

        agents: Agents
        deals: int = 20_000
        \"\"\"Deal pairs in each match.\"\"\"
        seed: Seed = 0

    def main(arguments: Sequence[str] | None = None) -> int:
        return run_command(Options, "evaluation.example", work, arguments)
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import tyro
from tabulate import tabulate
from tqdm import tqdm
from tyro.conf import Positional, arg

from agents import names
from archie_env.errors import ArchieError
from archie_env.rules import PRESETS
from archie_env.terminal.shell import run
from training.command import log_lines

_NAMES: Final = f"Known agents: {', '.join(name for name in names() if name != 'human')}, module:Name."
Agent = Annotated[str, arg(metavar="AGENT", help=_NAMES), Positional]
Agents = Annotated[tuple[str, ...], arg(metavar="AGENT", help=_NAMES, help_behavior_hint=""), Positional]
RulesName = Annotated[str, arg(metavar="|".join(PRESETS), help="Preset of the rules to play.")]
Seed = Annotated[int, arg(help="Seed of the deals and of the players' random numbers.")]
SecretSeed = Annotated[
    Path | None,
    arg(
        metavar="FILE",
        help="32 random bytes from which the cards follow, beside the seed; their SHA-256 is printed before the match.",
        help_behavior_hint="",
    ),
]
TimeLimit = Annotated[
    float | None, arg(metavar="SECONDS", help="A player's time for one batch of decisions.", help_behavior_hint="")
]
JsonFile = Annotated[
    Path | None, arg(metavar="FILE", help="Write the result and its manifest to this file.", help_behavior_hint="")
]
OutFolder = Annotated[Path | None, arg(metavar="FOLDER", help="Write results to this folder.", help_behavior_hint="")]
Resume = Annotated[bool, arg(help="Continue from the results in --out or --json.", help_behavior_hint="")]
Jobs = Annotated[int, arg(help="Processes that work at once.")]

DELAY: Final = 1.0
"""Seconds before a bar is shown."""
Options = TypeVar("Options")
_BOX: Final = "│╭╮╰╯─|+- "
"""Letters that tyro draws boxes with, by the encoding of the terminal."""


def run_command(
    options: type[Options],
    module: str,
    work: Callable[[Options], object],
    arguments: Sequence[str] | None = None,
    stopped: Callable[[Options], str] = lambda chosen: "interrupted",
) -> int:
    """Parse the command line, do the work and return the exit status.

    Args:
        options: a frozen dataclass; the docstrings under its fields are the help.
        module: the command's name is ``python -m MODULE``.
        work: prints its result to standard output; what it logs goes to standard error.
        arguments: replace those of the program.
        stopped: the line printed at Ctrl-C, such as how to continue.

    Returns:
        As `archie_env.terminal.shell.run`: 0; 2 after one line ``error: ...``; 130 at Ctrl-C; 141 without a reader.
    """
    chosen: list[Options] = []

    def logged() -> None:
        with log_lines(sys.stderr, "evaluation"), log_lines(sys.stderr, "training"):
            work(chosen[0])

    status = run(lambda: chosen.append(parse(options, module, arguments)))
    return status or run(logged, stopped=stopped(chosen[0]))


def parse(options: type[Options], module: str, arguments: Sequence[str] | None = None) -> Options:
    """Read options from a command line.

    Raises:
        ArchieError: for arguments that make no options, in one line.
        SystemExit: after ``--help``.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(options, prog=f"python -m {module}", args=arguments, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as end:
        if not end.code:
            raise
        raise ArchieError(f"{_one_line(said.getvalue())} (--help lists the options)") from None


def _one_line(message: str) -> str:
    """Take the first sentences out of tyro's box."""
    lines = [line.strip("│| ") for line in message.splitlines()[1:]]  # the first is a headline
    text = " ".join(line for line in lines if line.strip(_BOX))
    for more in ("For full helptext", "Got errors:", "Argument helptext:", "Perhaps you meant:"):
        text = text.partition(f" {more}")[0]
    wrong = re.fullmatch(r"Error parsing (--\S+): no type matching .*\|(\S+) could be instantiated from \['(.*)'\]\.", text)
    return f"{wrong[1]} {wrong[3]}: expected {wrong[2]}" if wrong else text


def check_resume(resume: bool, option: str, place: Path | None) -> None:
    """Raise `ArchieError` for ``--resume`` without the option that names the file or folder to continue from."""
    if resume and place is None:
        raise ArchieError(f"--resume: expected {option} beside it, to continue from")


def interrupted(place: Path | None) -> str:
    """Return the line printed at Ctrl-C by a command that keeps its results in a file or folder, if it was given one."""
    return "interrupted" if place is None else f"interrupted; --resume continues from {place}"


@contextlib.contextmanager
def progress(total: int, unit: str, done: int = 0) -> Iterator[Callable[[int], object]]:
    """Show a bar with rate and time left on standard error if that is a terminal, and nothing otherwise.

    Args:
        total: how much there is to do.
        unit: such as ``deals``.
        done: how much of it was done by an earlier run.

    Yields:
        A function to call with the amount done since its last call.
    """
    tqdm.monitor_interval = 0  # no thread beside those of the players
    with tqdm(
        total=total, initial=done, unit=f" {unit}", unit_scale=True, disable=None, leave=False, delay=DELAY, dynamic_ncols=True
    ) as bar:
        yield bar.update


def table(rows: Sequence[Sequence[str]], markdown: bool = False, text: Sequence[int] = (0,)) -> list[str]:
    """Lines of a table whose first row is the header.

    Args:
        rows: of equal lengths.
        markdown: as Markdown instead of plain text.
        text: columns aligned to the left; all others are aligned to the right.
    """
    align = ["left" if column in text else "right" for column in range(len(rows[0]))]
    style = "pipe" if markdown else "plain"
    lines = tabulate(rows, tablefmt=style, disable_numparse=True, preserve_whitespace=True, colalign=align).splitlines()
    if markdown:
        rule, header, *rest = lines
        return [header, rule.replace("|:-", "|--"), *rest]
    return [line.rstrip() for line in lines]
