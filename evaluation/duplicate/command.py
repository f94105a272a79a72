"""Duplicate matches and crosstables from the command line.

python -m evaluation.duplicate rule_based call_draw --deals 100000 --seed 1
python -m evaluation.duplicate rule_based call_draw --until 50 --json match.json            # killed? add --resume
python -m evaluation.duplicate uniform call raise call_draw --deals 20000 --json table.json
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agents import load, names
from agents.archive import digest
from archie_env import __version__
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.files import check_writable
from archie_env.policy import Policy
from archie_env.rules import PRESETS, Rules, as_rules
from evaluation.duplicate.match import CHUNK, Crosstable, MatchResult, crosstable, play_match
from evaluation.estimates import Estimate
from evaluation.results import check_manifest, write_json

SIGNIFICANT: Final = 4.0
"""Standard errors beyond which a cell of a table is marked."""
DEALS: Final = 20_000
MOST_DEALS: Final = 10_000_000
"""Where a match that is played until its interval is narrow ends in any case."""
WRITE_EVERY: Final = 2.0
"""Seconds between two writings of results so far."""


def _stop_text(result: MatchResult, until: float) -> str:
    low, high = result.anytime_interval
    reached = "narrower than" if high - low < until else "out of deals before it was narrower than"
    return (
        f"  anytime-valid 95 % interval {low:+.1f} to {high:+.1f} mbb/hand, {reached} {until:g}; "
        "the interval above is NOT valid, as the results decided when to stop"
    )


def format_match(result: MatchResult, until: float | None = None) -> str:
    """A match as a paragraph of text; ``until`` is the width it was to reach, if results decided when to stop."""
    mbb, chips, totals = result.mbb, result.chips, result.totals
    low, high = mbb.interval
    seats = [e * result.rules.mbb_per_chip for e in (totals.as_dealer, totals.as_big_blind)]
    (a_dealer, a_blind), (b_dealer, b_blind) = [[n / totals.deals for n in by_position] for by_position in result.folds]
    reduction = totals.variance_reduction
    return "\n".join(
        [
            f"{result.a} v {result.b}: {totals.deals:,} deals played twice, rules {result.rules.name}, seed {result.seed}",
            f"  {result.a} wins {mbb.mean:+.1f} mbb/hand, standard error {mbb.standard_error:.1f}, "
            f"95 % interval {low:+.1f} to {high:+.1f} ({chips.mean:+.4f} ± {chips.standard_error:.4f} chips/hand)",
            *([] if until is None else [_stop_text(result, until)]),
            f"  as dealer {_cell(seats[0], 1)} mbb/hand, as big blind {_cell(seats[1], 1)}",
            f"  hands shown down {result.shown_down:.1%}; {result.a} folds {result.folded[0]:.1%} "
            f"(as dealer {a_dealer:.1%}, as big blind {a_blind:.1%}), {result.b} {result.folded[1]:.1%} "
            f"(as dealer {b_dealer:.1%}, as big blind {b_blind:.1%})",
            "  the pairs do not vary at all"
            if reduction is None
            else f"  pairing is worth {reduction:.2f} times the hands of unpaired play",
            *format_faults(result),
            f"  {result.hands / result.seconds:,.0f} hands/s",
        ]
    )


def format_faults(result: MatchResult) -> list[str]:
    """The hands each player forfeited, by kind, and the first faults with their positions; nothing where there were none."""
    lines = []
    for name, faults in zip((result.a, result.b), result.faults, strict=True):
        if faults.total:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in faults.counts.items())
            lines.append(f"  FAULTS: {name} forfeited {faults.total:,} of {result.hands:,} hands: {kinds}")
            lines += [f"    {report}" for report in faults.reports]
    return lines


def _cell(value: Estimate | None, digits: int = 0) -> str:
    return "." if value is None else f"{value.mean:+.{digits}f} ± {value.standard_error:.{digits}f}"


def _marked(value: Estimate | None) -> str:
    mark = "*" if value is not None and abs(value.significance) > SIGNIFICANT else " "
    return _cell(value) + mark


def format_crosstable(table: Crosstable, markdown: bool = False) -> str:
    """Row against column: mbb per hand won by the row, ± one standard error; ``*`` beyond four of them."""
    n = len(table.names)
    rows = [["row v column", *table.names]]
    rows += [[table.names[i], *(_marked(table.cell(i, j)) for j in range(n))] for i in range(n)]
    widths = [max(len(row[c]) for row in rows) for c in range(n + 1)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[c].rjust(widths[c]) for c in range(1, n + 1))]
        lines.append("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
    if markdown:
        lines.insert(1, "|" + "|".join("-" * (w + 1) + (":" if c else "-") for c, w in enumerate(widths)) + "|")
    first = table.results[0]
    lines += [
        "",
        f"mbb/hand ± standard error, {first.totals.deals:,} deals played twice in each cell, rules {first.rules.name}, "
        f"seed {first.seed}; * beyond {SIGNIFICANT:g} standard errors.",
    ]
    for result in table.results:
        if faults := format_faults(result):
            lines += [f"{result.a} v {result.b}:", *faults]
    return "\n".join(lines)


def weights_hash(name: str, policy: Policy) -> str | None:
    """SHA-256 of what a policy was loaded from; None for one that has no weights.

    The file is that of the policy's ``path`` or of a name such as ``ppo:PATH``; without one, ``weights`` that are arrays by
    name are hashed themselves.
    """
    path = getattr(policy, "path", None) or name.partition(":")[2]
    if path and Path(path).is_file():
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    weights = getattr(policy, "weights", None)
    return digest(weights) if isinstance(weights, Mapping) else None


def manifest(
    agents: Sequence[str],
    rules: str,
    deals: int,
    seed: int,
    chunk: int,
    *,
    weights: Sequence[str | None] | None = None,
    until: float | None = None,
    time_limit: float | None = None,
    probabilities: bool = False,
    table: bool = False,
) -> dict[str, Any]:
    """All that a result depends on: arguments, weights and versions."""
    versions = {"archie-env": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "torch"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "agents": list(agents),
        "weights": list(weights or [None] * len(agents)),
        "rules": rules,
        "rules_hash": rules_hash(rules),
        "deals": deals,
        "until": until,
        "seed": seed,
        "chunk": chunk,
        "time_limit": time_limit,
        "probabilities": probabilities,
        "table": table,
        "versions": versions,
        "machine": platform.machine(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def rules_hash(rules: Rules | str) -> str:
    """SHA-256 of every option, so that a preset that has changed its meaning is noticed."""
    return hashlib.sha256(json.dumps(as_rules(rules).to_dict(), sort_keys=True).encode()).hexdigest()


class ResultFile:
    """Results so far, in a file that is replaced every few seconds.

    Args:
        path: the file, or None to keep nothing.
        made: its manifest.
        seconds: between two writings.
    """

    def __init__(self, path: Path | None, made: dict[str, Any], seconds: float = WRITE_EVERY) -> None:
        self._path, self._made, self._seconds = path, made, seconds
        self._written = -math.inf

    def read(self, resume: bool) -> MatchResult | Crosstable | None:
        """What there is to go on from.

        Raises:
            ArchieError: if that was made otherwise or can't be read, or if it is unfinished and not to be resumed.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            had, finished = dict(values["manifest"]), values.get("finished", True)
            kept = Crosstable.from_dict(values) if "results" in values else MatchResult.from_dict(values)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not resume:
                return None
            raise ArchieError(f"{self._path}: not a file of results ({type(error).__name__}: {error})") from None
        if resume:
            check_manifest(self._path, had, self._made)
            return kept
        if not finished:
            raise ArchieError(f"{self._path}: holds an unfinished match; --resume goes on with it, or delete the file")
        return None

    def keep(self, result: MatchResult | Crosstable) -> None:
        """Write results so far, unless that was done a moment ago."""
        if time.monotonic() - self._written >= self._seconds:
            self.write(result)

    def write(self, result: MatchResult | Crosstable, finished: bool = False) -> None:
        """Write now."""
        if self._path is None:
            return
        self._written = time.monotonic()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_json(self._path, {"manifest": self._made | {"written": stamp}, "finished": finished, **result.to_dict()})


class ProgressLine:
    """Hands played so far as one line on stderr, shown after the first second; nothing where stderr is no terminal."""

    def __init__(self, deals: int = 0) -> None:
        self._deals, self._done = deals, 0
        self._start = self._shown = time.perf_counter()
        self._live = sys.stderr.isatty()

    def expect(self, deals: int) -> None:
        """Say how many deals there will be."""
        self._deals = deals

    def __call__(self, deals: int) -> None:
        """Count so many deals more."""
        self._done += deals
        now = time.perf_counter()
        if self._live and now - self._shown > 1:
            self._shown = now
            left = (now - self._start) * (self._deals - self._done) / self._done
            share = self._done / self._deals
            bar = ("#" * round(30 * share)).ljust(30, ".")
            speed = 2 * self._done / (now - self._start)
            print(f"\r{bar} {share:4.0%}  {speed:,.0f} hands/s  {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.duplicate",
        description="Play every deal twice with seats swapped; the sample is the deal pair.",
        epilog=f"agents: {', '.join(names())}",
    )
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="two for a match, more for a crosstable")
    parser.add_argument(
        "--deals", type=int, help=f"deal pairs in each match (default {DEALS}; with --until at most {MOST_DEALS})"
    )
    parser.add_argument(
        "--until",
        type=float,
        metavar="W",
        help="stop when the anytime-valid 95 %% interval, from end to end, is narrower than W mbb/hand",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", default="archie", choices=list(PRESETS))
    parser.add_argument("--chunk", type=int, default=CHUNK, help=f"deals played side by side (default {CHUNK})")
    parser.add_argument("--crosstable", action="store_true", help="print a table even for two agents")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--strict", action="store_true", help="stop at a player's first fault instead of forfeiting the hand")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="a player's time for one batch of decisions")
    parser.add_argument(
        "--probabilities", action="store_true", help="ask players for probabilities, check them and draw the actions here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results and manifest here, every few seconds")
    parser.add_argument(
        "--write-every", type=float, default=WRITE_EVERY, metavar="SECONDS", help="how often (default %(default)g)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the file of --json, if there is one")
    return parser


def _play(options: argparse.Namespace, progress: ProgressLine) -> MatchResult | Crosstable:
    n, single = len(options.agents), len(options.agents) == 2 and not options.crosstable
    if options.resume and options.json is None:
        raise ArchieError("--resume: expected --json FILE beside it, the file to go on from")
    if options.until is not None and not single:
        raise ArchieError("--until: expected two agents and no --crosstable")
    deals = options.deals if options.deals is not None else DEALS if options.until is None else MOST_DEALS
    check_writable(options.json)
    players = [load(name, options.rules) for name in options.agents]
    made = manifest(
        options.agents,
        options.rules,
        deals,
        options.seed,
        options.chunk,
        weights=[weights_hash(name, player) for name, player in zip(options.agents, players, strict=True)],
        until=options.until,
        time_limit=options.time_limit,
        probabilities=options.probabilities,
        table=not single,
    )
    file = ResultFile(options.json, made, options.write_every)
    kept = file.read(options.resume)
    settings = (deals, options.seed, options.rules, options.chunk, progress)
    conduct = {"strict": options.strict, "time_limit": options.time_limit, "probabilities": options.probabilities}
    so_far: MatchResult | Crosstable | None = None

    def written(result: MatchResult | Crosstable) -> None:
        nonlocal so_far
        so_far = result
        file.keep(result)

    try:
        result: MatchResult | Crosstable
        if single:
            earlier = kept if isinstance(kept, MatchResult) else None
            progress.expect(deals - (earlier.totals.deals if earlier else 0))
            result = play_match(
                players[0], players[1], *settings, **conduct, until=options.until, earlier=earlier, written=written
            )
        else:
            begun = kept.results if isinstance(kept, Crosstable) else ()
            progress.expect(deals * n * (n - 1) // 2 - sum(part.totals.deals for part in begun))
            result = crosstable(players, *settings, **conduct, earlier=begun, written=written)
    except BaseException:
        if so_far is not None:
            file.write(so_far)
        raise
    file.write(result, finished=True)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    progress = ProgressLine()
    try:
        result = _play(options, progress)
    except (ArchieError, PlayerLeftError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = f"; --resume goes on from {options.json}" if options.json else ""
        print(f"interrupted{kept}", file=sys.stderr)
        return 130
    finally:
        progress.close()
    if isinstance(result, MatchResult):
        print(format_match(result, options.until))
    else:
        print(format_crosstable(result, options.markdown))
    return 0
