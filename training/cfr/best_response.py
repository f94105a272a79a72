"""Train an opponent for one player: ``python -m training.cfr.best_response champion --seconds 600``.

The opponent learns by the traversals of `training.cfr` while the other player plays the target.  The result is a best response
within the abstraction of the opponent, which distinguishes more public histories than a target of `training.cfr`.  A target
that is no CFR strategy is replaced by an empirical policy, made from its observed actions.  The winnings are a lower bound on
the winnings of a best response; `evaluation.best_response` measures them on fresh deals.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import tyro
from tqdm import tqdm
from tyro.conf import Positional, arg

from agents import load as load_agent
from agents.archive import Header, Meta, check_archives, digest, read_archive
from agents.cfr import FORMAT, CFRPolicy
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
from training.command import log_lines
from training.monitoring import match

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

_log = logging.getLogger(__name__)


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
    if isinstance(target, CFRPolicy):
        observed, table = None, target
        abstraction = abstraction or finer(target_config(target))
    elif checkpoint is not None:
        raise ArchieError(f"{checkpoint}: {name_of(target)} is no CFR strategy, so it has no regrets to begin with")
    else:
        observed = EmpiricalPolicy(target, as_rules(rules), OBSERVED, seed)
        table = observed.policy()  # without observations yet
        abstraction = abstraction or OBSERVED
    built = build(table.rules, abstraction)
    pool = cfr.TraversalPool(table.rules, threads, seed, _EXPLORE)
    warm = cfr.TraversalPool(table.rules, 1, 0, 0.0)
    warm.round(Tables.empty(built), table, 0.0)  # compile, or load the compiled code, outside of the budget
    if observed is not None:
        observed.observe(None, 1)
    turns = 1 if observed is None else _TURNS
    done, share, value, started = 0, 0.0, 0.0, time.perf_counter()

    def show() -> None:
        if progress:
            progress(min(share, 1.0), 2 * done, value * table.rules.mbb_per_chip)

    def observe(observed: EmpiricalPolicy, other: CFRPolicy | None) -> CFRPolicy:
        """Return the empirical policy after one more turn of observation."""
        observed.observe(other, -(-traversals // turns), seconds * _OBSERVING / turns, show)
        return observed.policy()

    if observed is not None:
        table = observe(observed, None)
    tables, gathered = target_tables(table, checkpoint)
    scale, begin = 1.0, _FIRST_TRAVERSALS
    if gathered:  # weights rise with time, so that gathered regrets rise with its square
        scale, begin = start**2, round(start * gathered)
    tables = tables.refined(built, scale)
    for turn in range(1, turns + 1):
        while share < turn / turns:
            value = float(pool.round(tables, table, (begin + done + pool.per_round) / cfr.WEIGHT).mean())
            done += pool.per_round
            spent = time.perf_counter() - started
            share = max(spent / seconds if seconds else 0.0, 2 * done / traversals if traversals else 0.0)
            show()
        if observed is not None and share < 1:
            table = observe(observed, CFRPolicy(built, *tables.strategy(1.0, REGRETS)))
    meta = {
        "config": config_meta(abstraction),
        "responds_to": table.meta.get("config", {}) if observed is None else name_of(target),
        "traversals": 2 * done,
        "seed": seed,
    }
    return CFRPolicy(built, *tables.strategy(1.0, REGRETS), meta)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    program = "python -m training.cfr.best_response"
    chosen = tyro.cli(Options, prog=program, args=arguments, config=(tyro.conf.FlagCreatePairsOff,))

    def work() -> None:
        whole_number("deals", chosen.deals, 2)
        if chosen.target == "human":
            raise ArchieError("agent human: expected a player that needs no terminal")
        target = load_agent(chosen.target, as_rules(chosen.rules))
        make_folder(chosen.out)
        with locked(chosen.out), log_lines():
            check_archives(chosen.out, response=FORMAT)
            _train(chosen, target)

    return run(work, stopped="stopped")


def _train(chosen: Options, target: Policy) -> None:
    with tqdm(total=1000, file=sys.stderr, leave=False, disable=None) as bar:

        def progress(share: float, done: int, value: float) -> None:
            bar.update(round(1000 * share) - bar.n)
            bar.set_postfix_str(f"{done:,} traversals, {value:+.0f} mbb/hand while learning")

        response = train_response(
            target, rules=chosen.rules, seconds=chosen.seconds, traversals=chosen.traversals, seed=chosen.seed,
            threads=chosen.threads, checkpoint=chosen.checkpoint, start=chosen.start, progress=progress,
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
