"""The benchmark card: its parts as plain values, as Markdown, and as a row of the leaderboard."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from archie_env.files import atomic_write, check_replaceable
from evaluation.benchmark.protocol import BATCH, FULL_GAME, SMALL, Protocol
from evaluation.command import table
from evaluation.estimates import Estimate
from evaluation.results import check_text, check_values, write_json


@dataclass(frozen=True, slots=True)
class Card:
    """Results of a benchmark.  A part that could not be measured is ``{"missing": reason}``."""

    agent: str
    players: Mapping[str, str]
    """Name of the loaded policy, by rules."""
    protocol: Protocol
    exact: Mapping[str, Mapping[str, Any]]
    """`evaluation.exploitability.measure.Measurement` as plain values, by rules."""
    table: Mapping[str, Any]
    """``row``: winnings of the agent from each other player, ``total``: their mean, ``faults`` of the agent."""
    bound: Mapping[str, Any]
    """`evaluation.best_response.bound.Bound` as plain values, with its ``text``."""
    speed: Mapping[str, Any]
    """``batch`` and ``single``: decisions per second of processor time, one per round."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """Versions, machine and time limit."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def command(self) -> str:
        """The command that makes this card again."""
        quick = " --quick" if self.protocol.name == "quick" else ""
        seed = "" if self.protocol.seed == 1 else f" --seed {self.protocol.seed}"
        limit = "" if self.made.get("time_limit") is None else f" --time-limit {self.made['time_limit']:g}"
        return f"python -m evaluation.benchmark {shlex.quote(self.agent)}{quick}{seed}{limit}"

    def leaderboard_row(self) -> list[str]:
        """Return the card as a row under the headers `LEADERBOARD`."""
        exact = ["—" if "missing" in self.exact[r] else f"{self.exact[r]['exploitability_mbb']:,.1f}" for r in SMALL]
        table = ["—"] * 2
        if "missing" not in self.table:
            best = self.table["row"].get("rule_based")
            table = [_estimate(self.table["total"]), "." if best is None else _estimate(best)]
        bound = "—"
        if "missing" not in self.bound:
            values = self.bound["lower_bound"]
            bound = f"{_estimate(values)} by {self.bound['chosen']}"
        speed = "—" if "missing" in self.speed else f"{_rate(self.speed['batch'])}, {_rate(self.speed['single'])}"
        return [self.agent, *exact, *table, bound, speed, f"`{self.command}`"]

    def markdown(self) -> str:
        """Format the card as Markdown."""
        protocol = self.protocol
        rows = [["part", "rules", "result"]]
        for rules in SMALL:
            values = self.exact[rules]
            text = f"not measured: {values['missing']}" if "missing" in values else _exact_text(values)
            rows.append(["exploitability, exact", rules, text])
        if "missing" in self.table:
            rows.append(["crosstable", FULL_GAME, f"not measured: {self.table['missing']}"])
        else:
            for other, value in self.table["row"].items():
                rows.append([f"winnings from {other}", FULL_GAME, f"{_estimate(value)} mbb/hand"])
            rows.append(["mean over these", FULL_GAME, f"{_estimate(self.table['total'])} mbb/hand"])
        if "missing" in self.bound:
            rows.append(["best response, lower bound", FULL_GAME, f"not measured: {self.bound['missing']}"])
        else:
            value = self.bound["lower_bound"]
            text = f"wins at least {_estimate(value)} mbb/hand: {self.bound['chosen']}"
            rows.append(["best response, lower bound", FULL_GAME, text])
        for part, what in (("batch", f"batches of {BATCH:,}"), ("single", "one by one")):
            if "missing" in self.speed:
                text = f"not measured: {self.speed['missing']}"
            else:
                rounds = self.speed[part]
                text = f"{_rate(rounds)} decisions/s ({min(rounds):,.0f} .. {max(rounds):,.0f})"
            rows.append([f"speed, {what}", FULL_GAME, text])
        versions = ", ".join(f"{name} {version}" for name, version in self.made["versions"].items())
        lines = [
            f"# {self.agent}",
            "",
            f"`{self.command}`: protocol {protocol.name}, version {protocol.version}, seed {protocol.seed}; {versions}; "
            f"{self.made['machine']}.",
            "",
            *table(rows, markdown=True, text=(0, 1, 2)),
            "",
            "± is the 95 % interval. Speed: decisions per second of processor time on one core, median of five rounds (slowest "
            ".. fastest). The lower bound is the result of one opponent on fresh deals: a best response wins at least as much.",
            "",
            "## Leaderboard row",
            "",
            *table([list(LEADERBOARD), self.leaderboard_row()], markdown=True, text=(0, 5, 6, 7)),
        ]
        if "missing" not in self.bound:
            lines += ["", "## Lower bound", "", self.bound["text"]]
        if self.table.get("faults"):
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.table["faults"]["counts"].items())
            lines += ["", "## Faults", "", f"Hands forfeited in the crosstable: {kinds}.", ""]
            lines += [f"* {report}" for report in self.table["faults"]["reports"]]
        return "\n".join(lines) + "\n"

    @classmethod
    def check_outputs(cls, folder: Path) -> None:
        """Raise `ArchieError` for files in a folder that `write` would lose."""
        check_replaceable(folder / "card.md", partial(check_text, beginning=r"# .*\n\n`python -m evaluation\.benchmark "))
        check_replaceable(folder / "card.json", partial(check_values, names=[part.name for part in fields(cls)]))

    def write(self, folder: Path) -> None:
        """Write ``card.md`` and ``card.json`` into a folder."""
        atomic_write(folder / "card.md", self.markdown())
        write_json(folder / "card.json", self.to_dict())


LEADERBOARD: Final = (
    "agent", "exploitability in mini", "in midi", "crosstable, mean", "v rule_based", "best response wins at least",
    f"decisions/s in batches of {BATCH:,}, one by one", "command",
)  # fmt: skip
"""Headers of the leaderboard; numbers are mbb/hand unless the header names another unit."""


def _estimate(values: Mapping[str, float]) -> str:
    return str(Estimate(values["mbb_per_hand"], values["standard_error"]))


def _exact_text(values: Mapping[str, Any]) -> str:
    form = values["form"].replace("_", "-")
    return f"{values['exploitability_mbb']:,.3f} mbb/hand ({form} form, {values['rows_asked']:,} rows asked)"


def _rate(rounds: Sequence[float]) -> str:
    return f"{float(f'{statistics.median(rounds):.3g}'):,.0f}"
