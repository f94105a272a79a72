"""Round robins: every player against every other in duplicate matches, over processes, resumable.

python -m evaluation.tournament uniform call raise call_draw rule_based --deals 20000 --seed 1 --out results/scripted
python -m evaluation.tournament uniform call raise call_draw rule_based --deals 20000 --seed 1 --out results/scripted --resume

Each cell has deals of its own, fixed by the seed and the two names: results don't depend on the number of jobs, on the order of
the names or on who else takes part, and a finished tournament can be resumed with more players.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agents import load, names, weights_file
from archie_env import __version__
from archie_env.errors import ArchieError
from archie_env.files import atomic_write, make_folder
from archie_env.rules import PRESETS, as_rules
from evaluation.duplicate.match import CHUNK, MatchResult, play_match
from evaluation.duplicate.umpire import Faults
from evaluation.results import check_manifest, write_json
from evaluation.speed.timing import one_thread
from evaluation.tournament.ratings import Table
from evaluation.tournament.standings import Standings

CELLS: Final = "cells"
"""The folder of matches."""
KEEP_EVERY: Final = 5.0
"""Seconds between two writings of a match that goes on."""
Cells = dict[tuple[str, str], MatchResult]
"""By the two names in alphabetical order: what the first won from the second."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What every match of a tournament is played under."""

    deals: int
    seed: int
    rules: str = "archie"
    chunk: int = CHUNK
    time_limit: float | None = None
    """Seconds a player may take for one batch of decisions, see `evaluation.duplicate.umpire.TimedCalls`."""
    error: float | None = None
    """Matches go on beyond ``deals`` until their standard error is at most so many mbb per hand."""

    def check(self) -> None:
        """Raise `ArchieError` for what no match could be played under."""
        as_rules(self.rules)
        for name, least in (("deals", 2), ("chunk", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ArchieError(f"{name} {getattr(self, name)}: expected at least {least}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ArchieError(f"time limit {self.time_limit}: expected more than 0 seconds")
        if self.error is not None and not self.error > 0:
            raise ArchieError(f"error {self.error}: expected more than 0 mbb per hand")

    def cell_seed(self, a: str, b: str) -> int:
        """The seed of the match between two players, the same for (a, b) and (b, a)."""
        text = json.dumps([self.seed, *sorted((a, b))])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def manifest(self, players: Sequence[str]) -> dict[str, Any]:
        """All that a result depends on."""
        versions = {"archie-env": __version__}
        for package in ("numpy", "numba"):
            versions[package] = importlib.metadata.version(package)
        return {
            "players": {name: _weights(name) for name in players},
            "deals": self.deals,
            "seed": self.seed,
            "chunk": self.chunk,
            "time_limit": self.time_limit,
            "error": self.error,
            "rules": as_rules(self.rules).to_dict(),
            "versions": versions,
        }


def _weights(name: str) -> str:
    """The hash of the file a player is read from, or what says that there is none."""
    path = weights_file(name)
    if path is None:
        return "no file"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ArchieError(f"agent {name!r}: {error.strerror or error}: {path}") from None


def cell_file(folder: Path, a: str, b: str) -> Path:
    """Where the match of two players is kept: names without what file systems dislike, and a hash to tell them apart."""
    plain = "-v-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", name)[-60:] for name in (a, b))
    return folder / CELLS / f"{plain}-{hashlib.sha256(json.dumps([a, b]).encode()).hexdigest()[:8]}.json"


def read_cell(path: Path, manifest: Mapping[str, Any]) -> MatchResult:
    """A match, finished or not.

    Raises:
        ArchieError: if it was played under another manifest, naming the differences, or can't be read.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        kept, result = values["manifest"], MatchResult.from_dict(values["result"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArchieError(f"{path}: not the match of a tournament ({error}); remove it to play it again") from None
    check_manifest(path, kept, manifest)
    return result


def write_cell(path: Path, manifest: Mapping[str, Any], result: MatchResult) -> None:
    """The inverse of `read_cell`."""
    write_json(path, {"manifest": manifest, "result": result.to_dict()})


def part_file(path: Path) -> Path:
    """Where the part of a match is kept whose end will be in ``path``."""
    return path.with_suffix(".part")


def _die_with_parent() -> None:
    """A killed tournament leaves no workers behind, which would otherwise wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


def _play(a: str, b: str, conditions: Conditions, part: Path | None) -> dict[str, Any]:
    """One match in a worker, from what ``part`` holds of it; what is played is kept there every few seconds.

    Players are loaded here, as not all of them can be sent from one process to another.
    """
    manifest = conditions.manifest((a, b))
    kept_at = time.monotonic()

    def keep(result: MatchResult) -> None:
        nonlocal kept_at
        if part is not None and time.monotonic() - kept_at > KEEP_EVERY:
            write_cell(part, manifest, result)
            kept_at = time.monotonic()

    rules = conditions.rules
    result = play_match(
        load(a, rules), load(b, rules), conditions.deals, conditions.cell_seed(a, b), rules, conditions.chunk,
        time_limit=conditions.time_limit, error=conditions.error, written=keep,
        earlier=read_cell(part, manifest) if part is not None and part.exists() else None,
    )  # fmt: skip
    return result.to_dict()


def play(
    players: Sequence[str],
    conditions: Conditions,
    folder: Path | None = None,
    jobs: int = 1,
    resume: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Standings:
    """Play a round robin.

    Args:
        players: names that `agents.load` takes, at least 2, each once.
        conditions: of every match.
        folder: where each match is written as it ends, and the standings in the end; None: nothing is written.
        jobs: processes that play at once, each with one thread; results don't depend on it.
        resume: use the matches that ``folder`` holds; without it, a folder that holds some is refused.
        tell: called with a line on each match.

    Raises:
        ArchieError: for players that can't be loaded, a match that failed, and matches in ``folder`` played under other
            conditions; finished matches are kept.
    """
    conditions.check()
    if len(players) < 2:
        raise ArchieError(f"{len(players)} players: expected at least 2")
    if twice := sorted({name for name in players if list(players).count(name) > 1}):
        raise ArchieError(f"players {', '.join(twice)}: named twice")
    if jobs < 1:
        raise ArchieError(f"jobs {jobs}: expected at least 1")
    if "human" in players:
        raise ArchieError("player human: expected players that need no terminal")
    for name in players:
        load(name, conditions.rules)  # what can't be played is found out before anything is
    pairs = [(a, b) for i, a in enumerate(players) for b in players[i + 1 :]]
    waiting = [(min(pair), max(pair)) for pair in pairs]
    count, cells = len(waiting), Cells()
    if folder is not None:
        make_folder(folder / CELLS)
        if not resume and (found := [*(folder / CELLS).glob("*.json"), *(folder / CELLS).glob("*.part")]):
            raise ArchieError(f"{folder}: holds {len(found)} matches; resume to go on with them, or choose another folder")
        for pair in waiting:
            path = cell_file(folder, *pair)
            if path.exists():
                cells[pair] = read_cell(path, conditions.manifest(pair))
            elif part_file(path).exists():
                read_cell(part_file(path), conditions.manifest(pair))  # refused now and not by a worker in an hour
        waiting = [pair for pair in waiting if pair not in cells]
        if cells:
            tell(f"{len(cells)} of {count} matches were there already")

    def finished(pair: tuple[str, str], result: MatchResult) -> None:
        cells[pair] = result
        if folder is not None:
            path = cell_file(folder, *pair)
            write_cell(path, conditions.manifest(pair), result)
            part_file(path).unlink(missing_ok=True)
        tell(f"{len(cells)} of {count}: {pair[0]} v {pair[1]} {result.mbb} mbb/hand, {result.seconds:.1f} s")

    if waiting:
        _play_all(waiting, conditions, folder, jobs, finished)
    standings = Standings(_table(players, cells), conditions.manifest(players), faults_of(players, cells))
    if folder is not None:
        write(standings, folder)
    return standings


def _play_all(
    pairs: Sequence[tuple[str, str]],
    conditions: Conditions,
    folder: Path | None,
    jobs: int,
    finished: Callable[[tuple[str, str], MatchResult], None],
) -> None:
    # Workers even for one job: a library's threads may add up in another order, and a sampled action may turn on it.
    context = multiprocessing.get_context("spawn")
    with one_thread(), ProcessPoolExecutor(min(jobs, len(pairs)), context, _die_with_parent) as pool:
        parts = [None if folder is None else part_file(cell_file(folder, *pair)) for pair in pairs]
        matches = {pool.submit(_play, *pair, conditions, part): pair for pair, part in zip(pairs, parts, strict=True)}
        try:
            for match in as_completed(matches):
                pair = matches[match]
                try:
                    values = match.result()
                except BrokenProcessPool:
                    raise ArchieError("a worker was killed; finished matches are kept") from None
                except Exception as error:
                    kind = "" if isinstance(error, ArchieError) else f"{type(error).__name__}: "
                    raise ArchieError(f"{pair[0]} v {pair[1]}: {kind}{error}") from error
                finished(pair, MatchResult.from_dict(values))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def _table(players: Sequence[str], cells: Cells) -> Table:
    place = {name: i for i, name in enumerate(players)}
    return Table.of(players, {(place[a], place[b]): (cell.mbb, cell.totals.deals) for (a, b), cell in cells.items()})


def faults_of(players: Sequence[str], cells: Cells) -> dict[str, dict[str, Any]]:
    """The faults over all matches of each player that had some; the reports are those of its first matches by name."""
    found = {}
    for name in players:
        matches = sorted(pair for pair in cells if name in pair)
        faults = Faults()
        for pair in matches:
            more = cells[pair].faults[pair.index(name)]
            kinds = (kind for kind, count in sorted(more.counts.items()) for _ in range(count))
            faults = faults.with_more(kinds, more.reports)
        if faults.total:
            found[name] = faults.to_dict()
    return found


def write(standings: Standings, folder: Path) -> list[Path]:
    """Write ``table.md``, ``table.json``, ``cells.csv``, ``ranking.csv`` and, where matplotlib is installed, ``table.png``."""
    texts = {
        "table.md": standings.markdown(),
        "table.json": json.dumps(standings.to_dict(), indent=1) + "\n",
        "cells.csv": standings.cells_csv(),
        "ranking.csv": standings.ranking_csv(),
    }
    for name, text in texts.items():
        atomic_write(folder / name, text)
    written = [folder / name for name in texts]
    try:
        from evaluation.tournament.heat_map import write_crosstable  # matplotlib is not needed by the rest
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "PIL"):
            raise
    else:
        write_crosstable(standings, folder / "table.png")
        written.append(folder / "table.png")
    return written


def read(folder: Path) -> Standings:
    """The standings that `write` left in a folder."""
    return Standings.from_dict(json.loads((folder / "table.json").read_text(encoding="utf-8")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.tournament",
        description="Round robin of duplicate matches: crosstable, rankings and ratings.",
        epilog=f"agents: {', '.join(name for name in names() if name != 'human')}",
    )
    parser.add_argument("agents", nargs="+", metavar="AGENT")
    parser.add_argument("--deals", type=int, default=20_000, help="deal pairs in each match (default 20000)")
    parser.add_argument("--error", type=float, metavar="MBB", help="go on until no standard error is larger than this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", default="archie", choices=list(PRESETS))
    parser.add_argument("--chunk", type=int, default=CHUNK, help=f"deals played side by side (default {CHUNK})")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write matches, tables and picture here")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="a player's time for one batch of decisions")
    parser.add_argument("--jobs", type=int, default=1, help="processes that play at once (default 1)")
    parser.add_argument("--resume", action="store_true", help="go on with the matches in --out")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    conditions = Conditions(options.deals, options.seed, options.rules, options.chunk, options.time_limit, options.error)
    try:
        if options.resume and options.out is None:
            raise ArchieError("--resume: expected --out with the folder to go on with")
        standings = play(
            options.agents, conditions, options.out, options.jobs, options.resume,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
    except ArchieError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished matches are kept where --out was given, go on with --resume", file=sys.stderr)
        return 130
    print(standings.markdown(), end="")
    if options.out is not None and not (options.out / "table.png").exists():
        print("no picture: it needs matplotlib, pip install 'archie-env[plot]'", file=sys.stderr)
    return 0
