"""Round robins: every player against every other in duplicate matches, over processes, resumable.

python -m evaluation.tournament uniform call raise call_draw rule_based --deals 20000 --seed 1 --out results/scripted
python -m evaluation.tournament uniform call raise call_draw rule_based --deals 20000 --seed 1 --out results/scripted --resume

The deals of a cell follow from the seed and the two names.  Results depend neither on the number of jobs, nor on the order of
the names, nor on the other players, and a finished tournament can be resumed with more players.
"""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import arg

from agents import load
from archie_env.errors import ArchieError, described
from archie_env.files import atomic_write, check_replaceable, locked, make_folder
from archie_env.rules import as_rules
from archie_env.terminal.shell import INTERRUPTED, terminable
from archie_env.validation import positive, whole_number
from evaluation.command import (
    Agents,
    Jobs,
    OutFolder,
    Resume,
    RulesName,
    SecretSeed,
    Seed,
    TimeLimit,
    check_resume,
    interrupted,
    progress,
    run_command,
)
from evaluation.duplicate.deals import read_secret, secret_hash
from evaluation.duplicate.match import CHUNK, DEALS, MatchResult, check_chunk, play_match
from evaluation.duplicate.umpire import Faults
from evaluation.results import ResultFile, check_picture, check_resumed, check_text, manifest, read_json, weights_hash
from evaluation.speed.timing import one_thread
from evaluation.tournament.ratings import Table
from evaluation.tournament.standings import CELLS_HEADER, RANKING_HEADER, Standings

_LOG: Final = logging.getLogger(__name__)
CELLS: Final = "cells"
"""Subfolder of the matches."""
KEEP_EVERY: Final = 5.0
"""Seconds between two writings of an unfinished match."""
Cells = dict[tuple[str, str], MatchResult]
"""Results by the two names in alphabetical order; the first of them is ``a``."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Settings of every match of a tournament."""

    deals: int
    seed: int
    rules: str = "archie"
    chunk: int = CHUNK
    time_limit: float | None = None
    """Seconds that a player may take for one batch of decisions, see `evaluation.players.TimedCalls`."""
    error: float | None = None
    """Largest standard error in mbb per hand; matches continue beyond ``deals`` until they reach it."""
    secret: bytes | None = field(default=None, repr=False)
    """The secret seed that all cards follow from, beside ``seed``; results hold its SHA-256."""

    def check(self) -> None:
        """Raise `ArchieError` for invalid settings."""
        as_rules(self.rules)
        for name, least in (("deals", 2), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        check_chunk(self.chunk)
        if self.time_limit is not None:
            positive("time limit", self.time_limit, "seconds")
        if self.error is not None:
            positive("error", self.error, "mbb per hand")

    def cell_seed(self, a: str, b: str) -> int:
        """Return the seed of the match between two players, the same for (a, b) and (b, a)."""
        text = json.dumps([self.seed, *sorted((a, b))])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def manifest(self, players: Sequence[str], weights: Mapping[str, str | None] | None = None) -> dict[str, Any]:
        """Return everything that a result depends on; ``weights`` are the hashes of the players, by name."""
        return manifest(
            players,
            self.rules,
            weights=None if weights is None else [weights[name] for name in players],
            deals=self.deals,
            seed=self.seed,
            chunk=self.chunk,
            time_limit=self.time_limit,
            error=self.error,
            **({} if self.secret is None else {"secret_seed_sha256": secret_hash(self.secret)}),
        )


def cell_file(folder: Path, a: str, b: str) -> Path:
    """Return the file of a match: the plain letters of both names, and a hash that distinguishes equal ones."""
    plain = "-v-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", name)[-60:] for name in (a, b))
    return folder / CELLS / f"{plain}-{hashlib.sha256(json.dumps([a, b]).encode()).hexdigest()[:8]}.json"


def read_cell(path: Path, made: Mapping[str, Any]) -> tuple[MatchResult, bool] | None:
    """Return a match and whether it is finished, or None where none is kept.

    Raises:
        ArchieError: if its manifest differs, naming the differences, or it can't be read.
    """
    values = ResultFile(path, made).read()
    if values is None:
        return None
    try:
        return MatchResult.from_dict(values.get("result", {})), values.get("finished", True) is True
    except ArchieError as error:
        raise ArchieError(f"{path}: not the match of a tournament ({error}); delete it to play it again") from None


def _start_worker() -> None:
    """End this worker when its tournament is killed, as it would wait for work forever; leave Ctrl-C to the tournament."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


def _play(a: str, b: str, conditions: Conditions, path: Path | None, made: Mapping[str, Any]) -> dict[str, Any]:
    """Play one match in a worker, continuing from the part in ``path``; SIGTERM ends the process once open files are closed."""
    try:
        with terminable():
            return _play_from(path, a, b, conditions, made)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)  # an exception would count as the result of the match, and the next one would begin


def _play_from(path: Path | None, a: str, b: str, conditions: Conditions, made: Mapping[str, Any]) -> dict[str, Any]:
    """Play one match, continuing from the part in ``path``, where intermediate results are written.

    Players are loaded here because some can't be pickled.
    """
    file, rules = ResultFile(path, made, KEEP_EVERY), conditions.rules
    kept = None if path is None else read_cell(path, made)

    def written(result: MatchResult) -> None:
        file.keep(lambda: {"result": result.to_dict()})

    result = play_match(
        load(a, rules), load(b, rules), conditions.deals, conditions.cell_seed(a, b), rules, conditions.chunk,
        time_limit=conditions.time_limit, error=conditions.error, secret=conditions.secret,
        written=written, earlier=kept[0] if kept else None,
    )  # fmt: skip
    file.write({"result": result.to_dict()})
    return result.to_dict()


def play(
    players: Sequence[str],
    conditions: Conditions,
    folder: Path | None = None,
    jobs: int = 1,
    resume: bool = False,
    progress: Callable[[int], object] = lambda matches: None,
) -> Standings:
    """Play a round robin.

    Args:
        players: names that `agents.load` takes, at least 2, each once.
        conditions: settings of every match.
        folder: matches are written here while they are played; None writes nothing.  `write` adds the standings.
        jobs: number of worker processes, each with one thread; results don't depend on it.
        resume: continue from the matches in ``folder``; otherwise a folder that holds some is refused.
        progress: called with the number of matches finished since its last call.

    Raises:
        ArchieError: for players that can't be loaded, a failed match, matches in ``folder`` of other conditions, and a folder
            that another process writes to.  Finished matches are kept.
    """
    _check(players, conditions, jobs)
    weights = {name: weights_hash(name, load(name, conditions.rules)) for name in players}
    pairs = [(min(a, b), max(a, b)) for i, a in enumerate(players) for b in players[i + 1 :]]
    cells, made = Cells(), {pair: conditions.manifest(pair, weights) for pair in pairs}
    if folder is not None:
        make_folder(folder / CELLS)
    with locked(folder):
        if folder is not None:
            cells = _kept(pairs, made, folder, resume)
        waiting = [pair for pair in pairs if pair not in cells]
        if cells:
            progress(len(cells))
            _LOG.info("%d of %d matches were finished before", len(cells), len(pairs))

        def finished(pair: tuple[str, str], result: MatchResult) -> None:
            cells[pair] = result
            _LOG.info("%d of %d: %s v %s %s mbb/hand, %.1f s", len(cells), len(pairs), *pair, result.mbb, result.seconds)
            progress(1)

        if waiting:
            _play_all(waiting, conditions, folder, made, jobs, finished)
    return Standings(_table(players, cells), conditions.manifest(players, weights), faults_of(players, cells))


def _check(players: Sequence[str], conditions: Conditions, jobs: int) -> None:
    """Raise `ArchieError` for invalid arguments of `play`."""
    conditions.check()
    whole_number("jobs", jobs, 1)
    if len(players) < 2:
        raise ArchieError(f"{len(players)} players: expected at least 2")
    if twice := sorted({name for name in players if list(players).count(name) > 1}):
        raise ArchieError(f"players {', '.join(twice)}: named twice")
    if "human" in players:
        raise ArchieError("player human: expected players that need no terminal")


def _kept(
    pairs: Sequence[tuple[str, str]], made: Mapping[tuple[str, str], Mapping[str, Any]], folder: Path, resume: bool
) -> Cells:
    """Return the finished matches of a folder; unfinished ones are checked now rather than when their turn comes."""
    check_resumed(folder / CELLS, resume)
    kept = {pair: read_cell(cell_file(folder, *pair), made[pair]) for pair in pairs}
    return {pair: cell[0] for pair, cell in kept.items() if cell is not None and cell[1]}


def _play_all(
    pairs: Sequence[tuple[str, str]],
    conditions: Conditions,
    folder: Path | None,
    made: Mapping[tuple[str, str], Mapping[str, Any]],
    jobs: int,
    finished: Callable[[tuple[str, str], MatchResult], None],
) -> None:
    # Workers even for one job: multi-threaded BLAS may sum in another order, which can change a sampled action.
    context = multiprocessing.get_context("spawn")
    with one_thread(), ProcessPoolExecutor(min(jobs, len(pairs)), context, _start_worker) as pool:
        files = {pair: None if folder is None else cell_file(folder, *pair) for pair in pairs}
        matches = {pool.submit(_play, *pair, conditions, files[pair], made[pair]): pair for pair in pairs}
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
    """Return what is to be told of each player that had faults or remarks, over all its matches, the first by name first."""
    found = {}
    for name in players:
        matches = sorted(pair for pair in cells if name in pair)
        faults = Faults()
        for pair in matches:
            more = cells[pair].faults[pair.index(name)]
            faults += replace(more, counts=dict(sorted(more.counts.items())))
        if faults.total or faults.remarks:
            found[name] = faults.to_dict()
    return found


def check_outputs(folder: Path) -> None:
    """Raise `ArchieError` for files in a folder that `write` would overwrite without having read them."""
    if not folder.exists():
        return
    for name, reader in (
        ("table.json", lambda path: read(path.parent)),
        ("table.md", partial(check_text, beginning="# Tournament\n\n[0-9,]+ (to [0-9,]+ )?duplicate deals in each cell, ")),
        ("cells.csv", partial(check_text, beginning=",".join(CELLS_HEADER))),
        ("ranking.csv", partial(check_text, beginning=",".join(RANKING_HEADER))),
        ("table.png", check_picture),
    ):
        check_replaceable(folder / name, reader)


def write(standings: Standings, folder: Path) -> list[Path]:
    """Write ``table.md``, ``table.json``, ``cells.csv``, ``ranking.csv`` and ``table.png``; returns the files written.

    The picture is optional: a failure to draw it is logged.

    Raises:
        ArchieError: naming the file, if another file can't be written.
    """
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

        write_crosstable(standings, folder / "table.png")
    except ModuleNotFoundError as error:
        _LOG.warning("no picture: it needs %s, pip install 'archie-env[plot]'", error.name)
    except Exception as error:  # matplotlib, a missing font, a full disk
        _LOG.warning("no picture: %s", error if isinstance(error, ArchieError) else described(error))
    else:
        written.append(folder / "table.png")
    return written


def read(folder: Path) -> Standings:
    """Read the standings that `write` left in a folder; raises `ArchieError` naming the file."""
    path = folder / "table.json"
    values = read_json(path)
    try:
        return Standings.from_dict(values)
    except ArchieError as error:
        raise ArchieError(f"{path}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Options:
    """Round robin of duplicate matches: crosstable, rankings and ratings."""

    agents: Agents
    deals: int = DEALS
    """Deal pairs in each match."""
    error: Annotated[float | None, arg(metavar="MBB", help_behavior_hint="")] = None
    """Continue beyond --deals until no standard error is larger than this."""
    seed: Seed = 0
    secret_seed: SecretSeed = None
    rules: RulesName = "archie"
    chunk: int = CHUNK
    """Deals played side by side."""
    out: OutFolder = None
    time_limit: TimeLimit = None
    jobs: Jobs = 1
    resume: Resume = False


def _run(options: Options) -> None:
    check_resume(options.resume, "--out FOLDER", options.out)
    secret = None if options.secret_seed is None else read_secret(options.secret_seed)
    conditions = Conditions(
        options.deals, options.seed, options.rules, options.chunk, options.time_limit, options.error, secret
    )  # fmt: skip
    if secret is not None:
        _LOG.info("secret seed with SHA-256 %s", secret_hash(secret))
    if options.out is not None:
        make_folder(options.out)
        check_outputs(options.out)
    with progress(len(options.agents) * (len(options.agents) - 1) // 2, "matches") as advance:
        standings = play(options.agents, conditions, options.out, options.jobs, options.resume, advance)
    print(standings.markdown(), end="", flush=True)
    if options.out is not None:
        write(standings, options.out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.tournament", _run, arguments, lambda options: interrupted(options.out))
