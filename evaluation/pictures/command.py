"""The command ``python -m evaluation.pictures``.

python -m evaluation.pictures rule_based --out results/rule_based
python -m evaluation.pictures ppo:runs/first/policy.npz --against rule_based --deals 50000 --out results/first
python -m evaluation.pictures --curves runs/seed1 runs/seed2 runs/seed3 --out results/curves

The first two write ``play_style.png``, ``starting_hands.png`` and their counts, ``play_style.json``; the last one writes
``learning_curves.png`` from TensorBoard's event files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from agents import load
from archie_env.errors import ArchieError
from archie_env.files import check_replaceable, locked, make_folder
from evaluation.command import RulesName, Seed, run_command
from evaluation.pictures.charts import write_play_style, write_starting_hands
from evaluation.pictures.learning_curves import read_curves, write_curves
from evaluation.pictures.play_style import ITSELF, PlayStyle, watch
from evaluation.results import check_picture, write_json


@dataclass(frozen=True, kw_only=True)
class Options:
    """Draw how a player plays, or the learning curves of runs."""

    agent: Annotated[str | None, arg(metavar="AGENT", help_behavior_hint=""), Positional] = None
    """The player to draw."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Write the pictures to this folder."""
    against: Annotated[str | None, arg(metavar="AGENT", help_behavior_hint="")] = None
    """Its opponent; by default itself."""
    deals: int = 20_000
    """Deal pairs of the match."""
    seed: Seed = 0
    rules: RulesName = "archie"
    curves: Annotated[tuple[Path, ...], arg(metavar="RUN ...", help_behavior_hint="")] = ()
    """Folders of runs whose learning curves to draw."""


def draw(options: Options) -> None:
    """Print results and write counts before anything is drawn; a picture that fails does not stop the others."""
    if options.agent is None and not options.curves:
        raise ArchieError("nothing to draw: expected an AGENT or --curves with folders of runs")
    make_folder(options.out)
    with locked(options.out):
        _draw(options, options.out)


def _check(options: Options) -> None:
    """Raise `ArchieError` for files in the folder that would be lost."""
    names = ["learning_curves.png"] if options.curves else []
    if options.agent is not None:
        check_replaceable(
            options.out / "play_style.json", lambda path: PlayStyle.from_dict(json.loads(path.read_text("utf-8")))
        )
        names += ["play_style.png", "starting_hands.png"]
    for name in names:
        check_replaceable(options.out / name, check_picture)


def _draw(options: Options, out: Path) -> None:
    _check(options)
    pictures = dict[Path, Callable[[Path], None]]()
    if options.agent is not None:
        player = load(options.agent, options.rules)
        opponent = load(options.against, options.rules) if options.against else None
        found, result = watch(player, opponent, options.deals, options.seed, options.rules)
        # The names given to `load` distinguish players of one kind; their own names may not.
        style = replace(found, agent=options.agent, opponent=options.against or ITSELF)
        if style.opponent != ITSELF:
            print(f"{style.agent} v {style.opponent}: {result.mbb} mbb/hand (95 % interval)", flush=True)
        write_json(out / "play_style.json", {**style.to_dict(), "match": result.to_dict()["figures"]})
        print(out / "play_style.json", flush=True)
        pictures[out / "play_style.png"] = lambda path: write_play_style(style, path)
        pictures[out / "starting_hands.png"] = lambda path: write_starting_hands(style, path)
    if options.curves:
        curves = read_curves(options.curves)
        pictures[out / "learning_curves.png"] = lambda path: write_curves(curves, path)
    failed = []
    for path, write in pictures.items():
        try:
            write(path)
        except Exception as error:  # matplotlib raises anything: a missing font, an unfit rc file
            failed.append(str(error) if str(path) in str(error) else f"{path}: not drawn: {type(error).__name__}: {error}")
            continue
        print(path, flush=True)
    if failed:
        raise ArchieError("; ".join(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.pictures", draw, arguments, lambda options: "stopped")
