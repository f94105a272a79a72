"""Measuring the parts of a card, each kept in a file as it is finished."""

from __future__ import annotations

import json
import logging
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from agents import load
from agents.process import BotPlayer
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.files import locked, make_folder
from archie_env.policy import Policy, private_generator
from archie_env.validation import whole_number
from evaluation.benchmark.card import Card
from evaluation.benchmark.form import checked_part
from evaluation.benchmark.protocol import BATCH, FULL, FULL_GAME, REFERENCES, SMALL, Protocol
from evaluation.best_response.bound import best_response, format_bound
from evaluation.best_response.exploiters import Settings
from evaluation.exploitability.game import Form
from evaluation.exploitability.measure import measure
from evaluation.exploitability.policy_strategy import SuitDependentPolicyError
from evaluation.results import ResultFolder, manifest, weights_hash
from evaluation.tournament import round_robin as tournament

_SNAPSHOTS: Final = 8
"""Batches of positions on which speed is measured."""
_STEPS: Final = 7
"""Decisions of random play between two snapshots: about half a hand."""

_log = logging.getLogger(__name__)


def measure_speed(policy: Policy, protocol: Protocol) -> dict[str, Any]:
    """Measure decisions per second of processor time, or of a bot's waiting, on rows of random legal play of the full game.

    Returns:
        Five rounds each of ``batch``, in calls of `BATCH` rows, and of ``single``, in calls of one row.
    """
    games = Batch(BATCH, FULL_GAME, seed=protocol.seed)
    rows = []
    for _ in range(_SNAPSHOTS):
        for _ in range(_STEPS):
            games.step(games.sample_actions())
        rows.append((games.observations.copy(), games.masks.copy()))
    singles = [(o[k : k + 1].copy(), m[k : k + 1].copy()) for o, m in rows for k in range(0, BATCH, 32)]
    rng = private_generator(protocol.seed, "speed")
    now = time.perf_counter if isinstance(policy, BotPlayer) else time.process_time  # a bot works in another process

    def rate(calls: Sequence[tuple[Any, Any]]) -> float:
        done, start, call = 0, now(), 0
        while (spent := now() - start) < protocol.speed_seconds:
            observations, masks = calls[call % len(calls)]
            done += len(policy.act(observations, masks, rng))
            call += 1
        return done / spent

    found: dict[str, Any] = {}
    for part, calls in (("batch", rows), ("single", singles)):
        policy.act(*calls[0], rng)  # the first call may compile and load
        found[part] = [rate(calls) for _ in range(5)]
    return found


def train(path: Path, rules: str, out: Path) -> str:
    """Train by a configuration under the given rules, or resume that; return the name of the result for `agents.load`.

    Raises:
        ArchieError: for a configuration that cannot be used, with these rules or at all.
    """
    try:
        stages = "stages" in tomllib.loads(path.read_text(encoding="utf-8"))  # only configurations of training.cfr have stages
    except (OSError, ValueError) as error:
        raise ArchieError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a TOML file of a trainer") from None
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
        _log.info(f"training {path} under rules {rules}: {out}")
        trainer.train(config, out, resume=(out / trainer.CHECKPOINT).exists())
    return f"{kind}:{result}"


def _part(parts: ResultFolder, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Read a part from its file, or make and keep it; the reason for a failure is kept instead, and retried on resume."""
    kept = parts.read(name, lambda values: checked_part(name, values.get("part")))
    if kept is not None and "missing" not in kept["part"]:
        _log.info(f"{name}: kept")
        found: dict[str, Any] = kept["part"]
        return found
    _log.info(f"{name} ...")
    start = time.perf_counter()
    try:
        part: dict[str, Any] = json.loads(json.dumps(make()))  # the values that reading the file would give
    except ArchieError as error:
        part = {"missing": str(error)}
    seconds = time.perf_counter() - start
    parts.file(name).write({"seconds": seconds, "part": part})
    _log.info(f"{name}: {part.get('missing') or f'{seconds:.0f} s'}")
    return part


def benchmark(
    agent: str,
    folder: Path,
    protocol: Protocol = FULL,
    resume: bool = False,
    jobs: int = 1,
    time_limit: float | None = None,
) -> Card:
    """Measure an agent, or the agent that a trainer makes.

    Args:
        agent: a name for `agents.load`, in which ``{rules}`` stands for the rules, or the path of a trainer's TOML file, which
            is trained under each of the rules.
        folder: keep parts, matches and weights here; `Card.write` adds the card.
        protocol: deals, seeds and budgets.
        resume: continue from the parts in ``folder``.
        jobs: processes of the crosstable; results do not depend on it.
        time_limit: seconds the agent may take for one call, see `evaluation.players.TimedCalls`.

    Raises:
        ArchieError: for an agent that cannot be loaded under any of the rules, invalid numbers, and a folder of another card.
    """
    settings = replace(protocol.bound, seed=protocol.seed, time_limit=time_limit)
    settings.check()
    whole_number("jobs", jobs, 1)
    if agent == "human":
        raise ArchieError("agent human: expected a player that needs no terminal")
    trained = agent.endswith(".toml") and not agent.startswith("bot:")
    if trained and not Path(agent).is_file():
        raise ArchieError(f"{agent}: no such file, expected a TOML file of a trainer")
    loaded = None if trained else _players(agent, lambda rules: agent.replace("{rules}", rules))  # before anything is written
    make_folder(folder / "parts")
    make_folder(folder / "crosstable")
    with locked(folder):
        Card.check_outputs(folder)
        tournament.check_outputs(folder / "crosstable")
        return _measured(agent, loaded, folder, protocol, settings, resume, jobs)


def _measured(
    agent: str, loaded: _Players | None, folder: Path, protocol: Protocol, settings: Settings, resume: bool, jobs: int
) -> Card:
    """Measure the parts that the folder does not hold; ``loaded`` is None for an agent that is trained first."""
    versions, time_limit = manifest([], FULL_GAME), settings.time_limit
    made = {"agent": agent, "protocol": asdict(protocol), "time_limit": time_limit, "versions": versions["versions"]}
    if loaded is None:
        made["configuration"] = Path(agent).read_text(encoding="utf-8")
    parts = ResultFolder(folder / "parts", made, resume)
    if parts.file("made").read() is None:  # at once, as a trainer may be stopped before the first part
        parts.file("made").write({"seconds": 0.0, "part": {}})
    players, absent, weights = loaded or _players(
        agent, lambda rules: train(Path(agent), rules, folder / "training" / rules)
    )  # fmt: skip
    parts.manifest["weights"] = weights

    def under(rules: str, make: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        if rules in absent:
            raise ArchieError(absent[rules])
        return make(players[rules])

    def exact(rules: str) -> Callable[[str], dict[str, Any]]:
        form: Form | Literal["auto"] = protocol.midi if rules == "midi" else "auto"

        def make(name: str) -> dict[str, Any]:
            try:
                return measure(load(name, rules), rules, form, time_limit=time_limit).to_dict()
            except SuitDependentPolicyError:
                raise ArchieError(f"depends on suits, which protocol {protocol.name} does not measure in {rules}") from None

        return make

    def table(name: str) -> dict[str, Any]:
        conditions = tournament.Conditions(protocol.deals, protocol.seed, FULL_GAME, time_limit=time_limit)
        field = list(dict.fromkeys((name, *REFERENCES)))
        standings = tournament.play(field, conditions, folder / "crosstable", jobs, resume=True)
        tournament.write(standings, folder / "crosstable")
        values, place = standings.table, standings.table.names.index(name)
        row = {values.names[j]: values.cell(place, j).to_dict() for j in range(len(values.names)) if j != place}
        total = values.total(place, range(len(values.names))).to_dict()
        return {"row": row, "total": total, "faults": standings.faults.get(name)}

    def bound(name: str) -> dict[str, Any]:
        found = best_response(name, FULL_GAME, settings, folder / "bound", True)
        return found.to_dict() | {"text": format_bound(found)}

    def speed(name: str) -> dict[str, Any]:
        return measure_speed(load(name, FULL_GAME), protocol)

    return Card(
        agent, players, protocol,
        {rules: _part(parts, f"exact-{rules}", partial(under, rules, exact(rules))) for rules in SMALL},
        _part(parts, "crosstable", lambda: under(FULL_GAME, table)),
        _part(parts, "bound", lambda: under(FULL_GAME, bound)),
        _part(parts, "speed", lambda: under(FULL_GAME, speed)),
        {"versions": versions["versions"], "machine": versions["machine"], "time_limit": time_limit},
    )  # fmt: skip


_Players = tuple[dict[str, str], dict[str, str], dict[str, str | None]]
"""By rules: names of the policies, reasons for failures, and hashes of the weights."""


def _players(agent: str, name_under: Callable[[str], str]) -> _Players:
    """Load the agent under each of the rules.

    Raises:
        ArchieError: if it cannot be loaded under any of the rules.
    """
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
        raise ArchieError(f"{agent}: cannot be loaded under any of the rules: {'; '.join(dict.fromkeys(absent.values()))}")
    return players, absent, weights
