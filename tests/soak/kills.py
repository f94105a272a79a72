"""Kill commands at random moments, resume them until they end, and compare the result with that of an undisturbed run.

python -m tests.soak.kills --seconds 3600 --seed 1
python -m tests.soak.kills --kills 50 --only tournament

Moments are uniform over the duration of an undisturbed run, the start of the process included.  After each kill no process may
be left and every file must load.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.command import progress, table

ROOT: Final = Path(__file__).parents[2]
SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PATIENCE: Final = 120.0
"""Seconds for a process that was sent a signal to end, with all that it started; an update of a trainer is finished first."""
CHAIN: Final = 6
"""Kills after which a run is left to end: one that is not resumed never would."""
CLOCKS: Final = {"seconds", "written", "speed", "weights"}
"""Keys of results that depend on the clock: durations, the time of writing, the part of a card that measures speed, and hashes
of files with trained weights, which hold the duration of their training."""
DURATION: Final = re.compile(r" in \d+ s\b")
"""The same in a sentence: how long an opponent was trained."""


@dataclass(frozen=True)
class Command:
    """A command with a result of some seconds."""

    start: str
    """Arguments of Python; ``OUT`` is a new folder."""
    results: tuple[str, ...]
    """Files to compare, in that folder."""
    checkpoint: str = ""
    """A trainer is resumed from this file, and started anew where there is none yet."""


COMMANDS: Final = {
    "ppo": Command(
        "-m training.ppo --config configs/ppo/smoke.toml --out OUT --set budget.decisions=24000 --set rollout.num_envs=64 "
        "--set network.widths=[32,32] --set 'report={times=1,agents=[\"call\"],save_every=2}' "
        "--set 'opponents={self_play=0.6,snapshots=0.2,snapshot_interval=4,snapshots_kept=3,named={call=0.2}}'",
        ("policy.npz",), "checkpoint.npz",
    ),
    "cfr": Command("-m training.cfr --config tests/soak/mini.toml --out OUT", ("strategy.npz",), "checkpoint.npz"),
    "respond": Command(
        "-m training.cfr.best_response rule_based --rules mini --traversals 200000 --deals 2000 --out OUT",
        ("response.npz",), "response-checkpoint.npz",
    ),
    "duplicate": Command(
        "-m evaluation.duplicate uniform call_draw rule_based --deals 30000 --chunk 256 --write-every 0.3 --json OUT/all.json",
        ("all.json",),
    ),
    "tournament": Command(
        "-m evaluation.tournament uniform call raise --deals 30000 --jobs 2 --out OUT",
        ("table.json", "table.md", "cells.csv", "ranking.csv", "cells/*.json"),
    ),
    "aivat": Command(
        "-m evaluation.aivat rule_based call_draw --deals 4000 --learn-deals 1000 --chunk 256 --json OUT/adjusted.json",
        ("adjusted.json",),
    ),
    "benchmark": Command(
        "-m tests.soak.card tests/soak/card.toml --quick --jobs 2 --out OUT",
        ("card.json", "crosstable/table.json", "bound/bound.json", "bound/*.npz", "training/*/strategy.npz"),
    ),
}  # fmt: skip


class FaultError(Exception):
    """A command that did not do as it should."""


@dataclass
class Tally:
    """What was done to a command."""

    seconds: float = 0.0
    """Duration of an undisturbed run."""
    spent: float = 0.0
    """Seconds on kills."""
    kills: Counter[signal.Signals] = field(default_factory=Counter)
    """By signal."""
    restarts: int = 0
    compared: int = 0
    """Results compared with the undisturbed one."""
    fault: str = ""


def without_clocks(value: Any) -> Any:
    """Leave out what depends on the clock."""
    if isinstance(value, dict):
        return {key: without_clocks(item) for key, item in value.items() if key not in CLOCKS}
    if isinstance(value, list):
        return [without_clocks(item) for item in value]
    return DURATION.sub("", value) if isinstance(value, str) else value


def read(path: Path) -> Any:
    """Read a file of results whole; raises whatever is wrong with it."""
    if path.suffix == ".json":
        return without_clocks(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = without_clocks(json.loads(arrays.pop("meta").tobytes()))
        return meta, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return path.read_bytes()


def check_files(out: Path, kills: list[signal.Signals]) -> None:
    """Raise `FaultError` unless every file in a folder loads, and temporary files are left by SIGKILL alone."""
    left = list(out.rglob(".*.tmp"))
    if left and signal.SIGKILL not in kills:
        raise FaultError(f"temporary files left: {', '.join(map(str, left))}")
    for path in (path for path in out.rglob("*") if path.suffix in (".json", ".npz")):
        try:
            read(path)
        except Exception as error:
            raise FaultError(f"{path}: {type(error).__name__}: {error}") from None


def run(arguments: list[str], moment: float | None, number: signal.Signals, log: Path) -> bool:
    """Run a command, and send it a signal after some seconds if it still runs; return whether it came to its end.

    Raises:
        FaultError: for another exit status than those of an end and of a signal, and for a process that is left.
    """
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    output, said = b"", "not killed"
    try:
        try:
            output, _ = process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            said = f"{number.name} after {moment:.2f} s"
            send = os.killpg if number == signal.SIGINT else os.kill  # a terminal interrupts workers too
            send(process.pid, number)
            output, _ = process.communicate(timeout=PATIENCE)  # until no process has the pipe
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        raise FaultError(f"{said}: a process is left after {PATIENCE:.0f} s; output {error.output!r}") from None
    finally:
        with log.open("ab") as file:
            file.write(f"$ {' '.join(arguments)}\n".encode() + output + f"[{said}: {process.returncode}]\n".encode())
    expected = {0} if moment is None else {0, -number, -signal.SIGINT, 130}  # Python's own 130 is a SIGINT to itself
    if number == signal.SIGINT and b"KeyboardInterrupt" in output:
        expected.add(1)  # imports were interrupted, some of which raise an error of their own from it
    if process.returncode not in expected:
        raise FaultError(f"{said}: exit status {process.returncode}")
    return process.returncode == 0


def chain(name: str, folder: Path, chance: random.Random, tally: Tally, until: float) -> None:
    """Run a command that is killed and started again until it ends; compare its result with that of the first run.

    Args:
        name: of `COMMANDS`.
        folder: of this command.
        chance: draws moments and signals.
        tally: of this command; gains what is done.
        until: when no more kills are made, by the monotonic clock, unless there was none.

    Raises:
        FaultError: for any difference and whatever else is wrong.
    """
    command, out, whole = COMMANDS[name], folder / "run", folder / "undisturbed"
    start = shlex.split(command.start.replace("OUT", shlex.quote(str(out))))
    out.mkdir(parents=True)
    kills: list[signal.Signals] = []
    ended = False
    while not ended:
        resumed = kills and (not command.checkpoint or (out / command.checkpoint).exists())
        number, moment = chance.choice(SIGNALS), chance.uniform(0.0, tally.seconds)
        disturbed = whole.exists() and len(kills) < CHAIN and (time.monotonic() < until or not tally.kills)
        begun = time.monotonic()
        arguments = [*start, *(["--resume"] if resumed else [])]
        ended = run(arguments, moment if disturbed else None, number, folder / "log.txt")
        tally.restarts += bool(kills)
        if not ended:
            kills.append(number)
            tally.kills[number] += 1
        check_files(out, kills)
    if not kills:  # the first run may have compiled
        tally.seconds = min(tally.seconds or math.inf, time.monotonic() - begun)
    if locks := list(out.rglob(".*lock")):
        raise FaultError(f"locks left: {', '.join(map(str, locks))}")
    if not whole.exists():
        out.rename(whole)
        return
    compare(command, whole, out)
    tally.compared += 1
    shutil.rmtree(out)


def compare(command: Command, whole: Path, out: Path) -> None:
    """Raise `FaultError` unless two folders hold the same results."""
    for pattern in command.results:
        names, others = (sorted(path.relative_to(root) for path in root.glob(pattern)) for root in (whole, out))
        if not names or names != others:
            raise FaultError(f"{pattern}: {list(map(str, others))}, undisturbed {list(map(str, names))}")
        for path in names:
            if read(whole / path) != read(out / path):
                raise FaultError(f"{path} differs from that of the undisturbed run")


def soak(name: str, folder: Path, seed: int, seconds: float, kills: int) -> Tally:
    """Run one command undisturbed, then kill it for some seconds, or so many times, and at least once."""
    tally, chance = Tally(), random.Random(f"{seed} {name}")
    try:
        chain(name, folder, chance, tally, 0.0)
        begun = time.monotonic()
        while not tally.kills or (tally.spent < seconds and tally.kills.total() < kills):
            chain(name, folder, chance, tally, begun + seconds)
            tally.spent = time.monotonic() - begun
    except FaultError as fault:
        tally.fault = str(fault)
        print(f"{name}: {fault}", file=sys.stderr)
    return tally


def main() -> int:
    """Run the command line; returns 1 after a fault."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would all commands
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3600.0, help="to spend on kills, in all; undisturbed runs come on top")
    parser.add_argument("--kills", type=int, default=1_000_000, help="enough of them for each command")
    parser.add_argument("--seed", type=int, default=1, help="of moments and signals")
    parser.add_argument(
        "--only", choices=COMMANDS, action="append", help="this command instead of all; more than once for several"
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="archie-soak-"))
    names, left, rows, faults = options.only or list(COMMANDS), options.seconds, [], 0
    with progress(len(names), "commands") as tell:
        for k, name in enumerate(names):
            tally = soak(name, folder / name, options.seed, left / (len(names) - k), options.kills)
            left = max(0.0, left - tally.spent)
            result = "FAULT" if tally.fault else "equal" if tally.compared else "not compared"
            counts = *(tally.kills[number] for number in SIGNALS), tally.restarts, tally.compared
            rows.append([name, f"{tally.seconds:.1f}", *map(str, counts), result])
            faults += bool(tally.fault)
            tell(1)
    head = ["command", "seconds", *(number.name for number in SIGNALS), "started again", "compared", "result"]
    print("\n".join(table([head, *rows], text=(0, len(head) - 1))))
    if faults:
        print(f"files and logs: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
