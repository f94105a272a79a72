"""Train an opponent for one player: ``python -m training.cfr.best_response champion --seconds 600``.

The opponent learns by the traversals of `training.cfr` while the other player plays the target.  The result is a best response
within the abstraction of the opponent, which distinguishes more public histories than a target of `training.cfr`.  A target
that is no CFR strategy is replaced by an empirical policy, made from its observed actions.  The winnings are a lower bound on
the winnings of a best response; `evaluation.best_response` measures them on fresh deals.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import tyro
from numpy.typing import NDArray
from pydantic import Field
from tqdm import tqdm
from tyro.conf import Positional, arg

from agents import load as load_agent
from agents.archive import Header, Meta, check_archives, check_names, digest, read_archive, write_archive
from agents.cfr import FORMAT as STRATEGY_FORMAT
from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError
from archie_env.files import locked, make_folder
from archie_env.policy import Policy, name_of
from archie_env.rules import PRESETS, Rules, as_rules
from archie_env.terminal.shell import run
from archie_env.validation import whole_number
from training.cfr import trainer as cfr
from training.cfr._table_kernels import REGRETS
from training.cfr.abstraction import AbstractionConfig, build, config_meta
from training.cfr.config import with_new_names
from training.cfr.empirical import EmpiricalPolicy
from training.cfr.tables import Tables, check_header, strategy_tables
from training.command import STOPPED, AbandonedError, check_start, log_lines, uninterrupted
from training.monitoring import match
from training.settings import Settings

# Without a checkpoint, regrets begin as 100 chips times the probability of the action, at about constant weight: a few unlucky
# hands must not outweigh the strategy that the opponent starts from
_FIRST_TRAVERSALS: Final = 1_000_000
_FIRST_REGRET: Final = 100.0 * _FIRST_TRAVERSALS / cfr.WEIGHT
_EXPLORE: Final = 0.25
OBSERVED: Final = AbstractionConfig(cards="medium", pots=((2, 3, 4), (2, 3, 5), (3, 5, 8)), other_draws=1)
"""The abstraction of an empirical policy, and of the opponent trained against it."""
_TURNS: Final = 6
"""How often a player is observed: first against itself, then against the opponent as trained so far."""
_OBSERVING: Final = 0.25
"""Fraction of a budget in seconds that is spent on observation."""
RESPONSE: Final = "response.npz"
CHECKPOINT: Final = "response-checkpoint.npz"
FORMAT: Final = "archie-env responder checkpoint"
_SAVE_SECONDS: Final = 120.0
"""Between two checkpoints: the most training that SIGKILL can cost."""

_log = logging.getLogger("training.cfr.best_response")  # __name__ is __main__ in the command, whose lines nobody would print


def finer(config: AbstractionConfig) -> AbstractionConfig:
    """Return an abstraction of the same hands that distinguishes more public pasts."""
    pots = [sorted({*row, *more}) for row, more in zip(config.pots, ((2, 3, 4), (2, 3, 4, 6), (3, 5, 8, 12)), strict=False)]
    return config.model_copy(
        update={
            "pots": tuple(map(tuple, pots)),
            "raisers": min(3, config.raisers + 1),
            "own_draws": min(3, config.own_draws + 1),
            "other_draws": max(config.other_draws, min(2, config.other_draws + 1)),
        }
    )


def target_config(target: CFRPolicy) -> AbstractionConfig:
    """Return the abstraction that a strategy was trained with, from its file."""
    try:
        values = with_new_names(target.meta["config"])["stages"][-1]["abstraction"]
    except (KeyError, TypeError, IndexError):
        raise ArchieError("the target's file has no configuration: expected a strategy of training.cfr") from None
    return AbstractionConfig.from_values(values, "the target")


def target_tables(target: CFRPolicy, checkpoint: Path | None) -> tuple[Tables, int | None]:
    """Return the tables to begin with: the target's regrets and their traversals, or, without a checkpoint, its strategy."""
    if checkpoint is None:
        return strategy_tables(target.abstraction, target.bets, target.draws, _FIRST_REGRET), None
    tables = Tables.empty(target.abstraction)

    def check(headers: Mapping[str, Header], meta: Meta) -> None:
        try:
            for name, expected in (("bets", tables.bets), ("draws", tables.draws)):
                check_header(name, headers[name], expected)
            same = meta["abstraction"] == digest(target.abstraction.parts)
        except (KeyError, ArchieError):
            same = False
        if not same:
            raise ArchieError("not of the target's abstraction: expected the checkpoint that its run left")

    arrays, meta = read_archive(checkpoint, cfr.FORMAT, cfr.VERSION, check, most=cfr.MOST_BYTES)
    try:
        account = cfr.account_of(meta)
        return tables.filled(arrays), max(1, account.before + account.traversals)
    except ArchieError as error:
        raise ArchieError(f"{checkpoint}: {error}") from None


class Progress(Settings):
    """How far a run has come, as its checkpoint has it."""

    turn: int = Field(ge=1, le=_TURNS)
    """Which share of the budget is used, of `_TURNS` against a player that is observed and of one against tables."""
    observed: int = Field(ge=0, le=_TURNS)
    """Turns that the player was observed before."""
    done: int = Field(ge=0, le=10**15)
    """Traversals for each position."""
    gathered: float = Field(ge=0.0, le=1e15)
    """Traversals that the first tables count for."""
    value: float
    """Chips won in the last traversals."""
    spent: float = Field(ge=0.0, le=1e12)
    """Seconds."""


class Responder:
    """The state of one run; the arguments are those of `train_response`."""

    def __init__(
        self,
        target: Policy,
        rules: Rules,
        seconds: float,
        traversals: int,
        seed: int,
        threads: int,
        abstraction: AbstractionConfig | None,
        checkpoint: Path | None,
        start: float,
        progress: Callable[[float, int, float], None] | None,
    ) -> None:
        self._target, self._seconds, self._traversals, self._seed = target, seconds, traversals, seed
        self._checkpoint, self._start, self._tell = checkpoint, start, progress
        if isinstance(target, CFRPolicy):
            self._observed, self.table = None, target
            self._abstraction = abstraction or finer(target_config(target))
        elif checkpoint is not None:
            raise ArchieError(f"{checkpoint}: {name_of(target)} is no CFR strategy, so it has no regrets to begin with")
        else:
            self._observed = EmpiricalPolicy(target, rules, OBSERVED, seed)
            self.table = self._observed.policy()  # without observations yet
            self._abstraction = abstraction or OBSERVED
        self._built = build(self.table.rules, self._abstraction)
        self._pool = cfr.TraversalPool(self.table.rules, threads, seed, _EXPLORE)
        warm = cfr.TraversalPool(self.table.rules, 1, 0, 0.0)
        warm.round(Tables.empty(self._built), self.table, 0.0)  # compile, or load the compiled code, outside of the budget
        if self._observed is not None:
            self._observed.observe(None, 1)
        self._turns = 1 if self._observed is None else _TURNS
        self._turn, self._times, self._done = 1, 0, 0
        self._gathered, self._value, self._spent, self._share = 0.0, 0.0, 0.0, 0.0
        self._observing = False
        self._tables = Tables.empty(self._built)
        self._resumed = self._saved = time.perf_counter()
        if self._observed is None:
            self._begin()
        # What a checkpoint must agree in, beside the shapes of its arrays
        made = {
            "target": name_of(target), "weights": _weights(target), "rules": self.table.rules.to_dict(), "seconds": seconds,
            "traversals": traversals, "seed": seed, "threads": threads, "start": start,
            "abstraction": self._abstraction.model_dump(mode="json"), "begun": None if checkpoint is None else str(checkpoint),
        }  # fmt: skip
        self._made = json.loads(json.dumps(made))

    def run(self, path: Path | None = None) -> CFRPolicy:
        """Train until the budget is used.

        Args:
            path: of the checkpoint, written before the player is observed, every two minutes, and at Ctrl-C or SIGTERM.

        Returns:
            See `train_response`.
        """
        self._resumed = self._saved = time.perf_counter()
        try:
            self._train(path)
        except AbandonedError:  # in the middle of a round: its traversals are in the tables and are not counted
            raise
        except KeyboardInterrupt:
            if not self._observing:
                self._save(path)
            raise
        self._save(path)
        meta = {
            "config": config_meta(self._abstraction),
            "responds_to": self.table.meta.get("config", {}) if self._observed is None else name_of(self._target),
            "traversals": 2 * self._done,
            "seed": self._seed,
        }
        return CFRPolicy(self._built, *self._tables.strategy(1.0, REGRETS), meta)

    def _train(self, path: Path | None) -> None:
        while True:
            if self._observed is not None and self._times < self._turn:
                self._save(path)  # an interrupted observation is made again from here
                self._observe(self._observed)
            while self._share < self._turn / self._turns:
                with uninterrupted():
                    self._round()
                self._show()
                if path is not None and time.perf_counter() - self._saved > _SAVE_SECONDS:
                    self._save(path)
            if self._turn == self._turns or self._share >= 1:
                return
            self._turn += 1

    @property
    def _seconds_spent(self) -> float:
        return self._spent + time.perf_counter() - self._resumed

    def _used(self, spent: float) -> float:
        """Share of the budget after some seconds."""
        by_time = spent / self._seconds if self._seconds and self._done else 0.0
        return max(by_time, 2 * self._done / self._traversals if self._traversals else 0.0)

    def _begin(self) -> None:
        """Make the tables to begin with."""
        tables, gathered = target_tables(self.table, self._checkpoint)
        scale, self._gathered = 1.0, float(_FIRST_TRAVERSALS)
        if gathered:  # weights rise with time, so that gathered regrets rise with its square
            scale, self._gathered = self._start**2, float(round(self._start * gathered))
        self._tables = tables.refined(self._built, scale)

    def _observe(self, observed: EmpiricalPolicy) -> None:
        """Observe the player for one more turn, at first against itself, then against the opponent as trained so far."""
        self._observing = True
        other = CFRPolicy(self._built, *self._tables.strategy(1.0, REGRETS)) if self._times else None
        observed.observe(other, -(-self._traversals // self._turns), self._seconds * _OBSERVING / self._turns, self._show)
        self.table = observed.policy()
        if not self._times:
            self._begin()
        self._times = self._turn
        self._observing = False

    def _round(self) -> None:
        pool, weight = self._pool, (self._gathered + self._done + self._pool.per_round) / cfr.WEIGHT
        self._value = float(pool.round(self._tables, self.table, weight).mean())
        self._done += pool.per_round
        self._share = self._used(self._seconds_spent)

    def _show(self) -> None:
        if self._tell:
            self._tell(min(self._share, 1.0), 2 * self._done, self._value * self.table.rules.mbb_per_chip)

    def _arrays(self) -> tuple[dict[str, NDArray[Any]], Any]:
        arrays, observed = ({}, None) if self._observed is None else self._observed.snapshot()
        records = np.frombuffer(self._pool.traversals.tobytes(), np.uint8)
        return arrays | {"walks": records, "bets": self._tables.bets, "draws": self._tables.draws}, observed

    def _save(self, path: Path | None) -> None:
        if path is None:
            return
        arrays, observed = self._arrays()
        progress = Progress(
            turn=self._turn, observed=self._times, done=self._done, gathered=self._gathered, value=self._value,
            spent=self._seconds_spent,
        )  # fmt: skip
        meta = {"format": FORMAT, "version": 1, "made": self._made, "progress": progress.model_dump(), "player": observed}
        write_archive(path, arrays, meta)
        self._saved = time.perf_counter()

    def restore(self, path: Path) -> None:
        """Continue from a checkpoint of a run with the same arguments.

        Raises:
            ArchieError: for a file that is not a whole checkpoint, or one of a run with other arguments, naming them.
        """
        expected, _ = self._arrays()

        def check(headers: Mapping[str, Header], meta: Meta) -> None:
            made = meta.get("made")
            other = [key for key, value in self._made.items() if not isinstance(made, dict) or made.get(key) != value]
            if other:
                raise ArchieError(f"made otherwise ({', '.join(other)}): expected the same arguments to resume it")
            check_names(headers, expected, "a whole checkpoint")
            for name, array in expected.items():
                check_header(name, headers[name], array)

        arrays, meta = read_archive(path, FORMAT, 1, check, most=cfr.MOST_BYTES)
        try:
            progress = Progress.from_values(meta.get("progress"), "progress")
            if progress.turn > self._turns or not progress.turn - 1 <= progress.observed * (self._turns > 1) <= progress.turn:
                raise ArchieError(f"turn {progress.turn}, observed {progress.observed}: expected those of such a run")
            self._tables = Tables.empty(self._built).filled(arrays)
            if self._observed is not None:
                self._observed.restore(arrays, meta.get("player"))
                self.table = self._observed.policy()
        except ArchieError as error:
            raise ArchieError(f"{path}: {error}") from None
        self._pool.restore(arrays["walks"])
        self._turn, self._times, self._done = progress.turn, progress.observed, progress.done
        self._gathered, self._value, self._spent = progress.gathered, progress.value, progress.spent
        self._share = self._used(self._spent)


def _weights(target: Policy) -> str | None:
    weights = getattr(target, "weights", None)
    return digest(weights) if isinstance(weights, Mapping) else None


def train_response(
    target: Policy,
    *,
    rules: Rules | str = "archie",
    seconds: float = 0.0,
    traversals: int = 0,
    seed: int = 1,
    threads: int = 1,
    abstraction: AbstractionConfig | None = None,
    checkpoint: Path | None = None,
    start: float = 1.0,
    progress: Callable[[float, int, float], None] | None = None,
    keep: Path | None = None,
    resume: bool = False,
) -> CFRPolicy:
    """Train an opponent against a player.

    Args:
        target: a CFR strategy, or any other player, of which only actions are used.
        rules: the rules of the game if the target is not a CFR strategy, which has rules of its own.
        seconds: budget of wall time; 0 = no limit.
        traversals: budget of traversals for both positions together; 0 = no limit.  On one thread the result is reproducible.
            A player that is not a CFR strategy is observed for the same number of decisions.  Several threads run tens of
            thousands of traversals in a round.
        seed: seed of the hands to learn from.
        threads: threads on shared tables.
        abstraction: of the opponent; by default `finer` than a CFR strategy, and `OBSERVED` for other players.
        checkpoint: checkpoint of the run that made the target.  The opponent starts from its regrets instead of its strategy;
            which of the two wins more depends on the target.
        start: weight of those regrets, as a fraction of the traversals behind them.  With a small weight the opponent learns
            faster where it plays often, and unlearns the rest.
        progress: called with the fraction of the budget used, the traversals, and the mean value of the last ones in mbb/hand.
        keep: file of this run's own checkpoint, see `Responder.run`; None keeps nothing.
        resume: continue from that file.

    Returns:
        A strategy that takes the action with the largest regret at each information set.

    Raises:
        ArchieError: for a target without a configuration, a checkpoint of another target, no budget, numbers out of range,
            rules that tables can't hold, and a player that plays illegal actions.
    """
    if not (seconds > 0 or traversals > 0):
        raise ArchieError("no budget: expected seconds or traversals above 0")
    for name, number, least in (("seed", seed, 0), ("threads", threads, 1), ("traversals", traversals, 0)):
        whole_number(name, number, least)
    if not 0 <= start <= 1:
        raise ArchieError(f"start {start}: expected 0 to 1")
    responder = Responder(
        target, as_rules(rules), seconds, traversals, seed, threads, abstraction, checkpoint, start, progress
    )  # fmt: skip
    if resume and keep is not None:
        responder.restore(keep)
    return responder.run(keep)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train an opponent for one player."""

    target: Annotated[str, arg(metavar="AGENT"), Positional]
    """champion, cfr:PATH, rule_based, ppo:PATH, ..."""
    rules: Annotated[str, arg(metavar="|".join(PRESETS))] = "archie"
    """Preset of the rules to play."""
    checkpoint: Annotated[Path | None, arg(metavar="FILE")] = None
    """Checkpoint of the run that made the target."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/response")
    """Folder of the result."""
    seconds: float = 0.0
    """Budget of wall time; 0 = no limit."""
    traversals: int = 0
    """Budget of traversals, both positions counted; 0 = no limit."""
    threads: int = 1
    seed: int = 1
    start: float = 1.0
    """Share of its traversals that the checkpoint's regrets count for."""
    deals: int = 20_000
    """Deals of the match afterwards, each played twice with seats swapped."""
    resume: bool = False
    """Continue from the checkpoint in that folder."""
    fresh: bool = False
    """Start anew even if there is a checkpoint."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    program = "python -m training.cfr.best_response"
    chosen = tyro.cli(Options, prog=program, args=arguments, config=(tyro.conf.FlagCreatePairsOff,))

    def work() -> None:
        whole_number("deals", chosen.deals, 2)
        if chosen.target == "human":
            raise ArchieError("agent human: expected a player that needs no terminal")
        check_start(chosen.out / CHECKPOINT, chosen.resume, chosen.fresh)
        target = load_agent(chosen.target, as_rules(chosen.rules))
        make_folder(chosen.out)
        with locked(chosen.out), log_lines():
            check_archives(chosen.out, **{"response": STRATEGY_FORMAT, "response-checkpoint": FORMAT})
            _train(chosen, target)

    return run(work, stopped=STOPPED)


def _train(chosen: Options, target: Policy) -> None:
    with tqdm(total=1000, file=sys.stderr, leave=False, disable=None) as bar:

        def progress(share: float, done: int, value: float) -> None:
            bar.update(round(1000 * share) - bar.n)
            bar.set_postfix_str(f"{done:,} traversals, {value:+.0f} mbb/hand while learning")

        response = train_response(
            target, rules=chosen.rules, seconds=chosen.seconds, traversals=chosen.traversals, seed=chosen.seed,
            threads=chosen.threads, checkpoint=chosen.checkpoint, start=chosen.start, progress=progress,
            keep=chosen.out / CHECKPOINT, resume=chosen.resume,
        )  # fmt: skip
    response.save(chosen.out / RESPONSE)
    score = match(response, target, chosen.deals, chosen.seed + 1_000_000, response.rules)
    _log.info(
        f"{response.meta['traversals']:,} traversals; wins {score.mean:+.1f} mbb/hand (SE {score.standard_error:.1f}), "
        f"{chosen.deals:,} deals played twice, seed {chosen.seed + 1_000_000}"
    )
    _log.info(f"{chosen.out / RESPONSE}: load it as cfr:{chosen.out / RESPONSE}")


if __name__ == "__main__":
    raise SystemExit(main())
