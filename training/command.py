"""What the command lines of trainers have in common: their options, their words, and how they end."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from tqdm import tqdm

from archie_env.errors import ConfigError
from archie_env.terminal.shell import run


class Seeded(Protocol):
    """A configuration of a run."""

    @property
    def seed(self) -> int:
        """Of everything that is random."""
        ...


Config = TypeVar("Config", bound=Seeded)


def speaker(quiet: bool) -> Callable[[str], None]:
    """Prints lines beside a progress bar, at once; nothing if quiet."""

    def say(text: str) -> None:
        if not quiet:
            tqdm.write(text)
            sys.stdout.flush()  # a file or pipe would see it at the end only

    return say


def train_from_command(
    parser: argparse.ArgumentParser,
    short: Mapping[str, str],
    example: str,
    read: Callable[[str, Sequence[str]], Config],
    train: Callable[[Config, Path, bool], object],
    checkpoint: str,
    arguments: Sequence[str] | None,
) -> int:
    """Run the command line of a trainer.

    Args:
        parser: named ``python -m training.NAME``, with the trainer's own options.
        short: those of them that stand for a key of the configuration, and that key.
        example: of ``--set``.
        read: the configuration of a file, with changes.
        train: from a configuration, the folder of the run, and whether to resume it.
        checkpoint: the file in that folder that a run goes on from.
        arguments: in place of the program's own.

    Returns:
        The exit status.
    """
    trainer = parser.prog.rpartition(".")[2]
    parser.add_argument("--config", required=True, help=f"a TOML file out of configs/{trainer}")
    parser.add_argument("--out", type=Path, help=f"folder of the run; runs/{trainer}-CONFIG-SEED by default")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in that folder")
    parser.add_argument("--fresh", action="store_true", help="start anew where a checkpoint is")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"such as {example}")
    chosen = parser.parse_args(arguments)

    def work() -> None:
        given = {key: getattr(chosen, option) for option, key in short.items()}
        changes = [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]
        config = read(chosen.config, [*chosen.set, *changes])
        out: Path = chosen.out or Path("runs") / f"{trainer}-{Path(chosen.config).stem}-{config.seed}"
        if os.path.exists(out / checkpoint) and not (chosen.resume or chosen.fresh):
            raise ConfigError(f"{out / checkpoint} exists: expected --resume, --fresh or another --out")
        train(config, out, chosen.resume)

    return run(work, stopped="stopped; --resume goes on from the last checkpoint")
