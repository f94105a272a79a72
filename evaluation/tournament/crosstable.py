"""Crosstables: a match between every two players, all on the same deals, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from archie_env.errors import ArchieError
from archie_env.policy import Policy
from archie_env.rules import Rules
from evaluation.command import table as table_lines
from evaluation.duplicate.match import CHUNK, MatchResult, play_match
from evaluation.duplicate.report import format_faults
from evaluation.players import player_name
from evaluation.tournament.ratings import Table
from evaluation.tournament.standings import MARKS, correction, crosstable_rows


@dataclass(frozen=True, slots=True)
class Crosstable:
    """The matches of a round robin."""

    names: tuple[str, ...]
    results: tuple[MatchResult, ...]
    """Matches of i against j > i, in order: (0, 1), (0, 2), ..., (1, 2), ..."""

    @property
    def table(self) -> Table:
        """Means and standard errors in mbb per hand; a second player of the same name is listed as ``NAME (2)``."""
        seen = [self.names[: i + 1].count(name) for i, name in enumerate(self.names)]
        names = [name if k == 1 else f"{name} ({k})" for name, k in zip(self.names, seen, strict=True)]
        pairs = [(i, j) for i in range(len(self.names)) for j in range(i + 1, len(self.names))]
        cells = {pair: (result.mbb, result.totals.deals) for pair, result in zip(pairs, self.results, strict=False)}
        return Table.of(names, cells)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        return {"names": list(self.names), "results": [result.to_dict() for result in self.results]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Crosstable:
        """The inverse of `to_dict`; raises `ArchieError` for values that are no crosstable."""
        names, results = values.get("names"), values.get("results")
        if not isinstance(names, list) or not isinstance(results, list) or not all(isinstance(name, str) for name in names):
            raise ArchieError("names, results: expected a list of strings and a list of matches")
        if len(results) > len(names) * (len(names) - 1) // 2:
            raise ArchieError(f"{len(results)} results of {len(names)} players: expected one for every two players")
        return cls(tuple(names), tuple(MatchResult.from_dict(result) for result in results))


def crosstable(
    policies: Sequence[Policy],
    deals: int,
    seed: int = 0,
    rules: Rules | str = "archie",
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    *,
    earlier: Sequence[MatchResult] = (),
    written: Callable[[Crosstable], None] | None = None,
    **conduct: Any,
) -> Crosstable:
    """Play a match between every two players.

    Args:
        policies: at least 2.
        deals: deal pairs in each match.
        seed: the same in each match, so that all are played on the same deals.
        rules: a preset's name or a `Rules` value.
        chunk: deals played side by side.
        progress: called with the number of deals played since it was last called.
        earlier: results of an interrupted crosstable as ``written`` received them, one for each match begun.
        written: called with the intermediate crosstable after each chunk.
        conduct: further keywords of `evaluation.duplicate.match.play_match`, such as ``strict`` and ``time_limit``.
    """
    if len(policies) < 2:
        raise ArchieError(f"{len(policies)} players: expected at least 2")
    pairs = [(a, b) for i, a in enumerate(policies) for b in policies[i + 1 :]]
    if len(earlier) > len(pairs):
        raise ArchieError(f"{len(earlier)} earlier results: expected at most {len(pairs)}")
    names, results = tuple(player_name(p) for p in policies), list(earlier)

    def keep(index: int, result: MatchResult) -> None:
        results[index : index + 1] = [result]
        if written:
            written(Crosstable(names, tuple(results)))

    for index, (a, b) in enumerate(pairs):
        begun = earlier[index] if index < len(earlier) else None
        match = play_match(
            a, b, deals, seed, rules, chunk, progress, earlier=begun, written=partial(keep, index), **conduct
        )  # fmt: skip
        keep(index, match)
    return Crosstable(names, tuple(results))


def format_crosstable(of: Crosstable, markdown: bool = False) -> str:
    """Format the winnings of the row against the column, with the significance marks of tournaments."""
    values, first = of.table, of.results[0]
    rows = crosstable_rows(values, range(len(values)), digits=0, aligned=not markdown)
    levels = ", ".join(f"{stars} p < {level:g}" for level, stars in reversed(MARKS))
    lines = [
        *table_lines(rows, markdown),
        "",
        f"mbb/hand ± 95 % interval, {first.totals.deals:,} duplicate deals in each cell, rules {first.rules.name}, "
        f"seed {first.seed}; {levels}, {correction(values)}.",
    ]
    for result in of.results:
        if faults := format_faults(result):
            lines += [f"{result.a} v {result.b}:", *faults]
    return "\n".join(lines)
