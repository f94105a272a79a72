"""Duplicate matches and crosstables from the command line.

python -m evaluation.duplicate rule_based call_draw --deals 100000 --seed 1
python -m evaluation.duplicate uniform call raise call_draw --deals 20000 --json table.json
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from agents import load, names
from agents.human import PlayerLeftError
from archie_env import __version__
from archie_env.errors import ArchieError
from archie_env.rules import PRESETS
from evaluation.match import CHUNK, Crosstable, MatchResult, crosstable, play_match
from evaluation.stats import Estimate

SIGNIFICANT: Final = 4.0
"""Standard errors beyond which a cell of a table is marked."""


def format_match(result: MatchResult) -> str:
    """A match as a paragraph of text."""
    mbb, chips, totals = result.mbb, result.chips, result.totals
    low, high = mbb.interval
    seats = [e * result.mbb_per_chip for e in (totals.as_dealer, totals.as_big_blind)]
    (a_dealer, a_blind), (b_dealer, b_blind) = [[n / totals.deals for n in by_position] for by_position in result.folds]
    reduction = totals.variance_reduction
    return "\n".join(
        [
            f"{result.a} v {result.b}: {totals.deals:,} deals played twice, rules {result.rules.name}, seed {result.seed}",
            f"  {result.a} wins {mbb.mean:+.1f} mbb/hand, standard error {mbb.standard_error:.1f}, "
            f"95 % interval {low:+.1f} to {high:+.1f} ({chips.mean:+.4f} ± {chips.standard_error:.4f} chips/hand)",
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


def manifest(agents: Sequence[str], rules: str, deals: int, seed: int, chunk: int) -> dict[str, Any]:
    """All that a result depends on: arguments and versions."""
    versions = {"archie-env": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "torch"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "agents": list(agents),
        "rules": rules,
        "deals": deals,
        "seed": seed,
        "chunk": chunk,
        "versions": versions,
        "machine": platform.machine(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write beside the place and then move there, so that a reader never finds half a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


class ProgressLine:
    """Hands played so far as one line on stderr, shown after the first second; nothing where stderr is no terminal."""

    def __init__(self, deals: int) -> None:
        self._deals, self._done = deals, 0
        self._start = self._shown = time.perf_counter()
        self._live = sys.stderr.isatty()

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
    parser.add_argument("--deals", type=int, default=20_000, help="deal pairs in each match (default 20000)")
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results and manifest here")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    n = len(options.agents)
    progress = ProgressLine(options.deals * n * (n - 1) // 2)
    try:
        players = [load(name, options.rules) for name in options.agents]
        settings = (options.deals, options.seed, options.rules, options.chunk, progress)
        conduct = {"strict": options.strict, "time_limit": options.time_limit, "probabilities": options.probabilities}
        result: MatchResult | Crosstable
        if n == 2 and not options.crosstable:
            result = play_match(players[0], players[1], *settings, **conduct)
        else:
            result = crosstable(players, *settings, **conduct)
    except (ArchieError, PlayerLeftError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        progress.close()
    if isinstance(result, MatchResult):
        print(format_match(result))
    else:
        print(format_crosstable(result, options.markdown))
    if options.json:
        made = manifest(options.agents, options.rules, options.deals, options.seed, options.chunk)
        write_json(options.json, {"manifest": made, **result.to_dict()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
