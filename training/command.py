"""The command lines of trainers: common options, log lines and signals."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, ClassVar, Final, Protocol, TextIO, TypeVar

import tyro
from tqdm import tqdm
from tyro.conf import UseAppendAction, arg

from archie_env.errors import ConfigError
from archie_env.terminal.shell import handled, run


class Seeded(Protocol):
    """A configuration with a seed."""

    @property
    def seed(self) -> int:
        """The seed of everything random in the run."""
        ...


STOPPED: Final = "stopped; --resume continues from the last checkpoint, if one was written"
Config = TypeVar("Config", bound=Seeded)
Number = Annotated[int | None, arg(metavar="INT")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every trainer."""

    short: ClassVar[Mapping[str, str]] = {"seed": "seed", "threads": "threads"}
    """The key of the file that an option replaces."""

    config: Annotated[str, arg(metavar="FILE")]
    """A TOML file, such as those in configs/."""
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Folder of the run; runs/TRAINER-CONFIG-SEED by default."""
    resume: bool = False
    """Continue from the checkpoint in that folder."""
    fresh: bool = False
    """Start anew even if there is a checkpoint."""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="KEY=VALUE")] = ()
    """Change one value of the file, such as seed=7 or report.agents=[]."""
    seed: Number = None
    """Replaces the seed of the file."""
    threads: Number = None
    """Replaces the number of threads of the file."""


def train_from_command(
    options: type[Options],
    program: str,
    load: Callable[[str, Sequence[str]], Config],
    train: Callable[[Config, Path, bool], object],
    checkpoint: str,
    arguments: Sequence[str] | None,
    about: str,
) -> int:
    """Run the command line of a trainer.

    Args:
        options: its options.
        program: ``python -m training.NAME``.
        load: reads a configuration file, with changes.
        train: trains a configuration in a folder, from the start or resumed.
        checkpoint: name of the checkpoint in that folder.
        arguments: replace those of the program.
        about: the description in ``--help``.

    Returns:
        The exit status.
    """
    chosen = tyro.cli(options, prog=program, description=about, args=arguments, config=(tyro.conf.FlagCreatePairsOff,))

    def work() -> None:
        given = {key: getattr(chosen, name) for name, key in chosen.short.items()}
        changes = [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]
        config = load(chosen.config, [*chosen.set, *changes])
        trainer = program.rpartition(".")[2]
        out = chosen.out or Path("runs") / f"{trainer}-{Path(chosen.config).stem}-{config.seed}"
        check_start(out / checkpoint, chosen.resume, chosen.fresh)
        with log_lines():
            train(config, out, chosen.resume)

    return run(work, stopped=STOPPED)


def check_start(checkpoint: Path, resume: bool, fresh: bool) -> None:
    """Raise `ConfigError` for a start that would lose a checkpoint, and for one that is asked to be both."""
    if resume and fresh:
        raise ConfigError("--resume and --fresh: expected at most one of them")
    if os.path.exists(checkpoint) and not (resume or fresh):
        raise ConfigError(f"{checkpoint} exists: expected --resume, --fresh or another --out")


class _Lines(logging.Handler):
    """Prints lines above a progress bar, and flushes them at once for a file or pipe."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=self._stream)
        self._stream.flush()


@contextlib.contextmanager
def log_lines(stream: TextIO | None = None, name: str = "training") -> Iterator[None]:
    """Print the log records of a package, to standard output by default."""
    logger, handler = logging.getLogger(name), _Lines(stream or sys.stdout)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class AbandonedError(KeyboardInterrupt):
    """A second interrupt during `uninterrupted`: the work inside is incomplete."""


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block is done; a second one raises `AbandonedError` at once."""
    pending = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending:
            raise AbandonedError
        pending = True

    with handled(note, signal.SIGINT, signal.SIGTERM):
        yield
    if pending:
        raise KeyboardInterrupt
