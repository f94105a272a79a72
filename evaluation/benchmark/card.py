"""The whole card of an agent, or of a trainer: exact exploitability, crosstable, lower bound of a best response, speed.

python -m evaluation.benchmark rule_based --quick --out results/card-rule_based
python -m evaluation.benchmark ppo:runs/first/policy.npz --out results/card-first            # killed? add --resume
python -m evaluation.benchmark 'solution:agents/weights/solution-{rules}.npz' --quick        # a file for each set of rules
python -m evaluation.benchmark configs/ppo/smoke.toml --out results/card-smoke               # trained for each set of rules

docs/benchmark.md states the protocol.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import statistics
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from agents import load, names
from archie_env.batch import Batch
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.files import atomic_write, make_folder
from archie_env.policy import Policy
from archie_env.validation import whole_number
from evaluation.best_response.bound import best_response, format_bound
from evaluation.best_response.exploiters import Budget, Settings
from evaluation.duplicate.command import manifest, weights_hash
from evaluation.estimates import Estimate
from evaluation.exploitability.game import Form
from evaluation.exploitability.measure import measure
from evaluation.exploitability.policy_strategy import LooksAtSuitsError
from evaluation.results import read_kept, write_json
from evaluation.tournament import round_robin as tournament
from evaluation.tournament.standings import grid

VERSION: Final = 2
"""Of the protocol: raised whenever numbers of the same name would no longer be comparable."""
REFERENCES: Final = ("uniform", "call", "raise", "call_draw", "raise_draw", "rule_based")
"""The players of the crosstable besides the agent."""
SMALL: Final = ("mini", "midi")
"""The rules of the exact part."""
FULL_GAME: Final = "archie"
BATCH: Final = 1024
"""Decisions in a call when speed is measured, beside single ones."""
_SNAPSHOTS = 8
"""Batches of positions that speed is measured on."""
_STEPS = 7
"""Decisions of random play between two of them: about half a hand."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What every card of this name was measured with."""

    name: str
    deals: int
    """Deal pairs in each match of the crosstable."""
    bound: Settings
    """Of the lower bound."""
    midi: Form | Literal["auto"]
    """The form `midi` is measured in; ``class`` refuses what looks at suits."""
    speed_seconds: float
    """Processor time of each of the five rounds of a speed."""
    version: int = VERSION
    seed: int = 1


QUICK: Final = Protocol("quick", 10_000, Settings(Budget(600_000), 10_000, 1_000), "class", 0.2)
FULL: Final = Protocol("full", 50_000, Settings(Budget(4_000_000), 50_000, 10_000), "auto", 1.0)


@dataclass(frozen=True, slots=True)
class Card:
    """What was measured.  A part that could not be is ``{"missing": reason}``."""

    agent: str
    players: Mapping[str, str]
    """What was loaded under each rules."""
    protocol: Protocol
    exact: Mapping[str, Mapping[str, Any]]
    """By rules: a `Measurement` as plain values."""
    table: Mapping[str, Any]
    """``row``: what the agent won from each other player, ``total``: their mean, ``faults`` of the agent."""
    bound: Mapping[str, Any]
    """A `Bound` as plain values, and as ``text``."""
    speed: Mapping[str, Any]
    """``batch`` and ``single``: decisions per second of processor time in each round."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """Versions, machine and time limit."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def command(self) -> str:
        """What makes this card again."""
        quick = " --quick" if self.protocol.name == "quick" else ""
        seed = "" if self.protocol.seed == 1 else f" --seed {self.protocol.seed}"
        limit = "" if self.made.get("time_limit") is None else f" --time-limit {self.made['time_limit']:g}"
        return f"python -m evaluation.benchmark {shlex.quote(self.agent)}{quick}{seed}{limit}"

    def leaderboard_row(self) -> list[str]:
        """The card in a line, as `LEADERBOARD` heads it."""
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
        """The card for reading."""
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
                rows.append([f"wins from {other}", FULL_GAME, f"{_estimate(value)} mbb/hand"])
            rows.append(["mean over these", FULL_GAME, f"{_estimate(self.table['total'])} mbb/hand"])
        if "missing" in self.bound:
            rows.append(["best response, lower bound", FULL_GAME, f"not measured: {self.bound['missing']}"])
        else:
            value = self.bound["lower_bound"]
            text = f"loses at least {_estimate(value)} mbb/hand, to {self.bound['chosen']}"
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
            *grid(rows, text=(0, 1, 2)),
            "",
            "± reaches to the 95 % interval. Decisions per second of one core's processor time, median of five rounds (slowest "
            ".. fastest). The lower bound is what one opponent wins on fresh deals: a best response wins at least as much.",
            "",
            "## Leaderboard row",
            "",
            *grid([list(LEADERBOARD), self.leaderboard_row()], text=(0, 5, 6, 7)),
        ]
        if "missing" not in self.bound:
            lines += ["", "## Lower bound", "", self.bound["text"]]
        if self.table.get("faults"):
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.table["faults"]["counts"].items())
            lines += ["", "## Faults", "", f"Hands forfeited in the crosstable: {kinds}.", ""]
            lines += [f"* {report}" for report in self.table["faults"]["reports"]]
        return "\n".join(lines) + "\n"


LEADERBOARD: Final = (
    "agent", "exploitability in mini", "in midi", "crosstable, mean", "v rule_based", "best response wins at least",
    f"decisions/s in batches of {BATCH:,}, one by one", "command",
)  # fmt: skip
"""Headers of a row of the leaderboard; mbb/hand where not said otherwise."""


def _estimate(values: Mapping[str, float]) -> str:
    return str(Estimate(values["mbb_per_hand"], values["standard_error"]))


def _exact_text(values: Mapping[str, Any]) -> str:
    return f"{values['exploitability_mbb']:,.3f} mbb/hand ({values['form']} form, {values['rows_asked']:,} rows asked)"


def _rate(rounds: Sequence[float]) -> str:
    return f"{float(f'{statistics.median(rounds):.3g}'):,.0f}"


def measure_speed(policy: Policy, protocol: Protocol) -> dict[str, Any]:
    """Decisions per second of processor time, five rounds each: ``batch`` in calls of `BATCH` rows, ``single`` in calls of one.

    The rows are those of random legal play on the full game.
    """
    games = Batch(BATCH, FULL_GAME, seed=protocol.seed)
    rows = []
    for _ in range(_SNAPSHOTS):
        for _ in range(_STEPS):
            games.step(games.sample_actions())
        rows.append((games.observations.copy(), games.masks.copy()))
    singles = [(o[k : k + 1], m[k : k + 1]) for o, m in rows for k in range(0, BATCH, 32)]
    rng = np.random.default_rng(protocol.seed)

    def rate(calls: Sequence[tuple[Any, Any]]) -> float:
        done, start, at = 0, time.process_time(), 0
        while (spent := time.process_time() - start) < protocol.speed_seconds:
            observations, masks = calls[at % len(calls)]
            done += len(policy.act(observations, masks, rng))
            at += 1
        return done / spent

    found: dict[str, Any] = {}
    for part, calls in (("batch", rows), ("single", singles)):
        policy.act(*calls[0], rng)  # compile, and load what is loaded at the first call
        found[part] = [rate(calls) for _ in range(5)]
    return found


def train(path: Path, rules: str, out: Path, tell: Tell) -> str:
    """Train what a configuration says under other rules, or go on with it; returns what `agents.load` calls the result.

    Raises:
        ArchieError: for a configuration that can't be used, with these rules or at all.
    """
    try:
        stages = "stages" in tomllib.loads(path.read_text(encoding="utf-8"))  # only those of training.cfr have some
    except (OSError, ValueError) as error:
        raise ArchieError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a TOML file of a trainer") from None
    from training.command import log_lines

    change = [f'rules="{rules}"']
    trainer: Any
    if stages:
        from training.cfr import trainer
        from training.cfr.config import Config as CFRConfig

        config: Any = CFRConfig.load(path, change)
        kind, result = "cfr", out / trainer.STRATEGY
    else:
        from training.ppo import trainer
        from training.ppo.config import Config

        config = Config.load(path, change)
        kind, result = "ppo", out / trainer.POLICY
    if not result.exists():
        tell(f"training {path} under rules {rules}: {out}")
        with log_lines(sys.stderr):  # the card goes to standard output
            trainer.train(config, out, resume=(out / trainer.CHECKPOINT).exists())
    return f"{kind}:{result}"


class _Parts:
    """Parts of a card in a folder, each written as it is finished.

    Args:
        folder: the folder, in which ``parts`` is made.
        made: what the card depends on; kept at once, as a trainer may be stopped before there is any part.
        resume: use what is there.
    """

    def __init__(self, folder: Path, made: Mapping[str, Any], resume: bool, tell: Tell) -> None:
        self.folder, self._made, self._tell = folder / "parts", json.loads(json.dumps(made)), tell
        make_folder(self.folder)
        if not resume and any(self.folder.iterdir()):
            raise ArchieError(f"{folder}: holds a card; resume to go on with it, or choose another folder")
        if self._read("made") is None:
            self._keep("made", 0.0, {})

    def depend_on(self, weights: Mapping[str, str | None]) -> None:
        """What the parts depend on besides: the hash of each player's weights."""
        self._made |= {"weights": dict(weights)}

    def _read(self, name: str) -> dict[str, Any] | None:
        values = read_kept(self.folder / f"{name}.json", self._made)
        return None if values is None else values["part"]

    def _keep(self, name: str, seconds: float, part: Mapping[str, Any]) -> None:
        write_json(self.folder / f"{name}.json", {"manifest": self._made, "seconds": seconds, "part": part})

    def get(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A part from its file, or made and kept; what can't be made says why instead, and is tried again another time."""
        kept = self._read(name)
        if kept is not None and "missing" not in kept:
            self._tell(f"{name}: kept")
            return kept
        self._tell(f"{name} ...")
        start = time.perf_counter()
        try:
            part: dict[str, Any] = json.loads(json.dumps(make()))  # as it would be read
        except ArchieError as error:
            part = {"missing": str(error)}
        self._keep(name, time.perf_counter() - start, part)
        self._tell(f"{name}: {part.get('missing') or f'{time.perf_counter() - start:.0f} s'}")
        return part


def benchmark(
    agent: str,
    folder: Path,
    protocol: Protocol = FULL,
    resume: bool = False,
    jobs: int = 1,
    time_limit: float | None = None,
    tell: Tell = lambda text: None,
) -> Card:
    """Measure an agent, or what a trainer makes, and write ``card.md`` and ``card.json`` into ``folder``.

    Args:
        agent: a name that `agents.load` takes, in which ``{rules}`` stands for the rules, or the path of a trainer's TOML file,
            which is trained under each of the rules.
        folder: where parts, matches and weights are kept.
        protocol: deals, seeds and budgets.
        resume: go on with what is in ``folder``.
        jobs: processes of the crosstable; results don't depend on it.
        time_limit: seconds the agent may take for one call, see `evaluation.duplicate.umpire.TimedCalls`.
        tell: called with a line on each part.

    Raises:
        ArchieError: for an agent that can't be played under any of the rules, numbers that can't be, and a folder of another
            card.
    """
    settings = replace(protocol.bound, seed=protocol.seed, time_limit=time_limit)
    settings.check()
    whole_number("jobs", jobs, 1)
    if agent == "human":
        raise ArchieError("agent human: expected a player that needs no terminal")
    trained = agent.endswith(".toml")
    if trained and not Path(agent).is_file():
        raise ArchieError(f"{agent}: no such file, expected a TOML file of a trainer")
    versions = manifest([agent], FULL_GAME, 0, protocol.seed, 0)
    made = {"agent": agent, "protocol": asdict(protocol), "time_limit": time_limit, "versions": versions["versions"]}
    if trained:
        parts = _Parts(folder, made | {"configuration": Path(agent).read_text(encoding="utf-8")}, resume, tell)
        players, absent, weights = _players(
            agent, lambda rules: train(Path(agent), rules, folder / "training" / rules, tell)
        )  # fmt: skip
    else:
        players, absent, weights = _players(agent, lambda rules: agent.replace("{rules}", rules))
        parts = _Parts(folder, made, resume, tell)
    parts.depend_on(weights)

    def under(rules: str, make: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        if rules in absent:
            raise ArchieError(absent[rules])
        return make(players[rules])

    def exact(rules: str) -> Callable[[str], dict[str, Any]]:
        form: Form | Literal["auto"] = protocol.midi if rules == "midi" else "auto"

        def make(name: str) -> dict[str, Any]:
            try:
                return measure(load(name, rules), rules, form, time_limit=time_limit).to_dict()
            except LooksAtSuitsError:
                raise ArchieError(f"looks at suits, which protocol {protocol.name} does not measure in {rules}") from None

        return make

    def table(name: str) -> dict[str, Any]:
        conditions = tournament.Conditions(protocol.deals, protocol.seed, FULL_GAME, time_limit=time_limit)
        standings = tournament.play(
            list(dict.fromkeys((name, *REFERENCES))), conditions, folder / "crosstable", jobs, True, tell
        )
        values, place = standings.table, standings.table.names.index(name)
        row = {values.names[j]: _plain(values.cell(place, j)) for j in range(len(values.names)) if j != place}
        total = _plain(values.total(place, range(len(values.names))))
        return {"row": row, "total": total, "faults": standings.faults.get(name)}

    def bound(name: str) -> dict[str, Any]:
        found = best_response(name, FULL_GAME, settings, folder / "bound", True)
        return found.to_dict() | {"text": format_bound(found)}

    def speed(name: str) -> dict[str, Any]:
        return measure_speed(load(name, FULL_GAME), protocol)

    card = Card(
        agent, players, protocol,
        {rules: parts.get(f"exact-{rules}", partial(under, rules, exact(rules))) for rules in SMALL},
        parts.get("crosstable", lambda: under(FULL_GAME, table)),
        parts.get("bound", lambda: under(FULL_GAME, bound)),
        parts.get("speed", lambda: under(FULL_GAME, speed)),
        {"versions": versions["versions"], "machine": versions["machine"], "time_limit": time_limit},
    )  # fmt: skip
    atomic_write(folder / "card.md", card.markdown())
    write_json(folder / "card.json", card.to_dict())
    return card


def _players(agent: str, name_under: Callable[[str], str]) -> tuple[dict[str, str], dict[str, str], dict[str, str | None]]:
    """By rules: who plays, why nobody does, and the hash of the weights; raises `ArchieError` where nobody ever does."""
    players, absent, weights = dict[str, str](), dict[str, str](), dict[str, str | None]()
    for rules in (*SMALL, FULL_GAME):
        try:
            name = name_under(rules)
            policy = load(name, rules)
        except ArchieError as error:
            absent[rules] = str(error)
            continue
        players[rules], weights[rules] = name, weights_hash(name, policy)
    if not players:
        raise ArchieError(f"{agent}: can be played under none of the rules: {'; '.join(dict.fromkeys(absent.values()))}")
    return players, absent, weights


def _plain(value: Estimate) -> dict[str, Any]:
    return {"mbb_per_hand": value.mean, "standard_error": value.standard_error, "interval_95": list(value.interval)}


def default_folder(agent: str, protocol: Protocol) -> Path:
    """Where a card goes unless said otherwise."""
    return Path("results") / f"card-{protocol.name}-{re.sub(r'[^A-Za-z0-9_.]+', '-', agent)[-60:].strip('-')}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.benchmark",
        description="The whole card of an agent or a trainer.",
        epilog=f"agents: {', '.join(name for name in names() if name != 'human')}; trainers: TOML files as in configs",
    )
    parser.add_argument("agent", metavar="AGENT_OR_TRAINER", help="{rules} in it stands for mini, midi and archie")
    parser.add_argument("--quick", action="store_true", help="small budgets: a few minutes instead of the full protocol")
    parser.add_argument("--seed", type=int, default=FULL.seed)
    parser.add_argument("--jobs", type=int, default=1, help="processes of the crosstable (default 1)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="the agent's time for one batch of decisions")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default results/card-PROTOCOL-AGENT")
    parser.add_argument("--resume", action="store_true", help="go on with what is in --out")
    options = parser.parse_args(arguments)
    chosen = QUICK if options.quick else FULL
    protocol = replace(chosen, seed=options.seed)
    out = options.out or default_folder(options.agent, protocol)
    try:
        card = benchmark(
            options.agent, out, protocol, options.resume, options.jobs, options.time_limit,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
    except (ArchieError, PlayerLeftError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; --resume goes on with {out}", file=sys.stderr)
        return 130
    print(card.markdown(), end="")
    print(f"\n{out / 'card.md'}, {out / 'card.json'}", file=sys.stderr)
    return 0
