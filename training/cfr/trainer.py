"""Train a player by counterfactual regret minimisation: ``python -m training.cfr --config configs/cfr/small.toml``.

External-sampling MCCFR on an abstraction of the game, coarse first and then finer.  The result is the average strategy.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from agents import load as load_agent
from agents._cfr_kernels import OPTIONS
from agents.abstraction import Abstraction
from agents.archive import (
    Header,
    Meta,
    check_archives,
    check_names,
    digest,
    found,
    frozen,
    read_archive,
    write_archive,
)
from agents.cfr import FORMAT as STRATEGY_FORMAT
from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError, ConfigError
from archie_env.files import locked, make_folder
from archie_env.rulebook import rulebook
from archie_env.rules import Rules
from archie_env.terminal.shell import terminable
from training.cfr._kernels import TRAVERSAL, traverse_many
from training.cfr.abstraction import build
from training.cfr.config import Config
from training.cfr.tables import Tables, check_header
from training.command import AbandonedError, Options, train_from_command, uninterrupted
from training.monitoring import Score, format_scores, match
from training.settings import differences

_log = logging.getLogger(__name__)
CHECKPOINT: Final = "checkpoint.npz"
STRATEGY: Final = "strategy.npz"
FORMAT: Final = "archie-env cfr checkpoint"
VERSION: Final = 1
ROUND: Final = 1000
"""Traversals for each position in a round of one thread; weights increase from round to round."""
_LONG_ROUND: Final = 20 * ROUND  # with several threads, as each round waits for the slowest
MOST_BYTES: Final = 1 << 40
"""Maximum size of a checkpoint; the configuration, not the file, determines the size of its tables."""
_MOST: Final = 1 << 53
WEIGHT: Final = 1e5
"""Traversals for each position that add 1 to the weight of an update."""


class TraversalPool:
    """Threads that traverse the game on shared tables.

    Args:
        rules: the rules of the game.
        threads: number of threads.
        seed: seed of the random numbers, which differ between threads.
        explore: how often an action of probability 0 is visited.
    """

    def __init__(self, rules: Rules, threads: int, seed: int, explore: float) -> None:
        self.traversals = np.zeros((threads, 1), TRAVERSAL)
        self.traversals["bits"][:, 0] = np.random.SeedSequence(seed).generate_state(threads, np.uint64)
        self._books, self._explore = rulebook(rules), explore
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._share = ROUND if threads == 1 else _LONG_ROUND
        self.per_round = self._share * threads
        """Traversals for each position in a round."""

    @property
    def nodes(self) -> int:
        """Number of decisions visited so far."""
        return int(self.traversals["nodes"].sum())

    def restore(self, records: NDArray[np.uint8]) -> None:
        """Continue with the random numbers and counts of a pool of as many threads, from the bytes of its ``traversals``."""
        traversals = records.view(TRAVERSAL).reshape(self.traversals.shape)
        for name in ("bits", "count", "nodes"):  # the other fields are scratch space
            self.traversals[name] = traversals[name]

    def round(self, tables: Tables, target: CFRPolicy | None, weight: float) -> NDArray[np.float64]:
        """Run one round of every thread.

        Args:
            tables: updated for the traverser, and for the other player too unless there is a target.
            target: strategy of the other player, which is then fixed.
            weight: weight of the updates.

        Returns:
            Mean value of a hand to the traverser in chips, ``(2,)``, dealer first.
        """
        a = tables.abstraction
        own = a.record, *a.hands, tables.bets, tables.draws
        if target is None:
            # The same types as a target's tables; others would compile the kernel again
            none = frozen(np.zeros((1, a.width), np.uint8)), frozen(np.zeros((1, OPTIONS), np.uint8))
            other = False, a.record, *a.hands, *none
        else:
            b = target.abstraction
            other = True, b.record, *b.hands, target.bets, target.draws

        def go(traversal: NDArray[np.void]) -> tuple[float, float]:
            sums: tuple[float, float] = traverse_many(traversal, self._books, *own, *other, self._share, self._explore, weight)
            return sums

        sums = map(go, self.traversals) if self._pool is None else self._pool.map(go, self.traversals)
        result: NDArray[np.float64] = np.array(list(sums)).mean(axis=0) / self._share
        return result


@dataclass(slots=True)
class Account:
    """Traversals and seconds of a run so far, as stored in its checkpoint."""

    stage: int = 0
    traversals: int = 0
    """For each position, in this stage."""
    seconds: float = 0.0
    """Training time in this stage."""
    before: int = 0
    """Traversals for each position in the stages before."""
    spent: float = 0.0
    """Training time in the stages before."""


def account_of(meta: Meta, stages: int = 1 << 32) -> Account:
    """Read the account of a checkpoint; raises `ArchieError` for numbers impossible in a run of this many stages."""
    values = meta.get("account")
    if not isinstance(values, dict) or set(values) != set(Account.__slots__):
        raise ArchieError(f"account {found(meta, 'account')}: expected {', '.join(Account.__slots__)}")
    for name, most in (("stage", stages - 1), ("traversals", _MOST), ("before", _MOST)):
        if type(values[name]) is not int or not 0 <= values[name] <= most:
            raise ArchieError(f"account.{name} {found(values, name)}: expected a whole number 0 to {most}")
    for name in ("seconds", "spent"):
        if type(values[name]) not in (int, float) or not 0 <= values[name] <= _MOST:
            raise ArchieError(f"account.{name} {found(values, name)}: expected a number of seconds")
    return Account(**values)


class Run:
    """The state of one training run."""

    def __init__(self, config: Config) -> None:
        self.config, self.rules = config, config.resolved_rules()
        self.references = {name: load_agent(name, self.rules) for name in config.report.agents}
        self.abstractions = [build(self.rules, stage.abstraction) for stage in config.stages]
        self.pool = TraversalPool(self.rules, config.threads, config.seed, config.explore)
        self.account = Account()
        self.tables = Tables.empty(self.abstractions[0])

    @property
    def traversals(self) -> int:
        """Traversals for each position in all stages so far."""
        return self.account.before + self.account.traversals

    @property
    def seconds(self) -> float:
        """Training time in all stages so far."""
        return self.account.spent + self.account.seconds

    @property
    def abstraction(self) -> Abstraction:
        """The abstraction of this stage."""
        return self.tables.abstraction

    @property
    def progress(self) -> float:
        """Fraction of the stage's budget that is used, 0 to 1."""
        stage = self.config.stages[self.account.stage]
        by_count = 2 * self.account.traversals / stage.traversals if stage.traversals else 0.0
        by_time = self.account.seconds / stage.seconds if stage.seconds else 0.0
        return min(1.0, max(by_count, by_time))

    @property
    def over(self) -> bool:
        """Whether the last stage is done."""
        return self.account.stage + 1 == len(self.config.stages) and self.progress >= 1

    def advance(self) -> None:
        """Run one round of traversals; after the end of a stage, first refine the tables for the next one."""
        if self.progress >= 1:
            self.account = Account(self.account.stage + 1, 0, 0.0, self.traversals, self.seconds)
            stage = self.config.stages[self.account.stage]
            finer = self.abstractions[self.account.stage]
            share = self.abstraction.information_sets / finer.information_sets  # of the visits of an old one, to a new one
            self.tables = self.tables.refined(finer, stage.keep * share)
        started = time.perf_counter()
        self.pool.round(self.tables, None, (self.traversals + self.pool.per_round) / WEIGHT)
        self.account.traversals += self.pool.per_round
        self.account.seconds += time.perf_counter() - started

    def policy(self) -> CFRPolicy:
        """Return the average strategy so far."""
        meta = {
            "config": self.config.model_dump(),
            "traversals": 2 * self.traversals,
            "seconds": round(self.seconds, 1),
            "versions": {name: version(name) for name in ("numpy", "numba")},
        }
        tables = self.tables.strategy(self.config.min_probability, quantization_levels=self.config.quantization_levels)
        return CFRPolicy(self.abstraction, *tables, meta)

    def save(self, path: Path) -> None:
        """Write the checkpoint atomically."""
        account = {name: getattr(self.account, name) for name in Account.__slots__}
        meta = {"format": FORMAT, "version": VERSION, "config": self.config.model_dump(), "account": account}
        meta["abstraction"] = digest(self.abstraction.parts)
        write_archive(path, {"walks": self._record_bytes(), "bets": self.tables.bets, "draws": self.tables.draws}, meta)

    def restore(self, path: Path) -> None:
        """Continue from a checkpoint.

        Raises:
            ArchieError: for a file that is not a whole checkpoint, or one of another configuration, naming the keys.
        """
        tables = self.tables

        def check(headers: Mapping[str, Header], meta: Meta) -> None:
            nonlocal tables
            self._check_config(meta)
            account = account_of(meta, len(self.abstractions))
            abstraction = self.abstractions[account.stage]
            if meta.get("abstraction") != digest(abstraction.parts):
                raise ArchieError("its classes are not those that this version makes: expected its own checkpoint")
            tables = Tables.empty(abstraction)  # zeros, which take no memory yet
            expected: dict[str, NDArray[Any]] = {"walks": self._record_bytes(), "bets": tables.bets, "draws": tables.draws}
            check_names(headers, expected, "a whole checkpoint")
            for name, array in expected.items():
                check_header(name, headers[name], array)

        arrays, meta = read_archive(path, FORMAT, VERSION, check, most=MOST_BYTES)
        try:
            self.tables = tables.filled(arrays)
        except ArchieError as error:
            raise ArchieError(f"{path}: {error}") from None
        self.account = account_of(meta, len(self.abstractions))
        self.pool.restore(arrays["walks"])

    def _record_bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.pool.traversals.tobytes(), np.uint8)

    def _check_config(self, meta: Meta) -> None:
        """Raise `ConfigError` unless a checkpoint has this configuration, except for keys that may differ."""
        trained = Config.from_meta(meta.get("config"), "its config")
        after = {name: getattr(self.config, name) for name in ("report", "min_probability", "quantization_levels")}
        compared = _with_budgets_of(self.config, trained.model_copy(update=after))
        if compared != self.config:
            raise ConfigError(
                f"another configuration, there and here {'; '.join(differences(compared, self.config))}: only "
                "min_probability, quantization_levels, [report] and the last stage's budget may differ to resume it"
            )


def _with_budgets_of(config: Config, trained: Config) -> Config:
    """Return ``trained`` with the last stage's budget of ``config``, if both have as many stages."""
    if len(config.stages) != len(trained.stages):
        return trained
    budget = {"traversals": config.stages[-1].traversals, "seconds": config.stages[-1].seconds}
    last = trained.stages[-1].model_copy(update=budget)
    return trained.model_copy(update={"stages": (*trained.stages[:-1], last)})


def line(run: Run, nodes: int, since: float, last: bool) -> str:
    """Format the speed of a run and the results of its strategy in one line."""
    deals = run.config.report.last_deals if last else run.config.report.deals
    policy = run.policy()
    scores: Mapping[str, Score] = {
        name: match(policy, other, deals, run.config.seed, run.rules) for name, other in run.references.items()
    }
    return (
        f"{run.seconds:6.0f} s  stage {run.account.stage + 1}/{len(run.config.stages)}  {2 * run.traversals:>13,} traversals  "
        f"{nodes / max(since, 1e-9) / 1e6:4.1f} M nodes/s  {format_scores(scores)}"
    )


def train(config: Config, out: Path, resume: bool = False, quiet: bool = False) -> CFRPolicy:
    """Train until the budget of the last stage is used; writes the checkpoint and the strategy into ``out``.

    Ctrl-C and SIGTERM write a checkpoint.

    Args:
        config: the run.
        out: a folder; files of an earlier run there are overwritten, unless it is resumed.
        resume: continue from the checkpoint in ``out``.
        quiet: show no progress bar.

    Raises:
        ArchieError: before anything is trained, for a folder, player or checkpoint that can't be used, and for a folder in
            which another process trains.
    """
    run = Run(config)
    if resume:
        run.restore(out / CHECKPOINT)
        _log.info(f"resumed at {2 * run.traversals:,} traversals")
    make_folder(out)
    with terminable(), locked(out):
        check_archives(out, checkpoint=FORMAT, strategy=STRATEGY_FORMAT)
        try:
            _train(run, out, quiet)
        except AbandonedError:  # in the middle of a round: the tables already include traversals that the account does not
            raise
        except KeyboardInterrupt:
            run.save(out / CHECKPOINT)
            raise
        policy = run.policy()
        policy.save(out / STRATEGY)
    _log.info(f"{out / STRATEGY}: load it as cfr:{out / STRATEGY}")
    return policy


def _train(run: Run, out: Path, quiet: bool) -> None:
    config = run.config
    sizes = " -> ".join(f"{a.information_sets / 1e6:.2f}" for a in run.abstractions)
    _log.info(f"{sizes} million information sets, {config.threads} thread{'s' * (config.threads > 1)}")
    if not run.traversals:
        warm = TraversalPool(run.rules, 1, 0, 0.0)
        warm.round(Tables.empty(run.abstraction), None, 1.0)  # compile, or load the compiled code, outside of the budget
    reported, saved, nodes = run.seconds, run.seconds, run.pool.nodes
    with tqdm(total=1000, disable=True if quiet else None, file=sys.stderr, leave=False) as bar:
        while not run.over:
            with uninterrupted():
                run.advance()
            bar.update(round(1000 * (run.account.stage + run.progress) / len(config.stages)) - bar.n)
            bar.set_postfix_str(f"{2 * run.traversals:,} traversals, {2 * run.traversals / run.seconds:,.0f}/s")
            if run.over or run.seconds - saved >= config.report.save_seconds:
                run.save(out / CHECKPOINT)
                saved = run.seconds
            if run.over or run.seconds - reported >= config.report.seconds:
                seen = run.pool.nodes
                _log.info(line(run, seen - nodes, run.seconds - reported, run.over))
                reported, nodes = run.seconds, seen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return train_from_command(
        Options, "python -m training.cfr", Config.load, train, CHECKPOINT, arguments,
        "Train a player by counterfactual regret minimisation.",
    )  # fmt: skip
