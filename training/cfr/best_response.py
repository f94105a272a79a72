"""Train an opponent for one player: ``python -m training.cfr.best_response champion --seconds 600``.

The same traversals as in `training.cfr`, but the other player plays the target and learns nothing, so that what is learnt is a
best response to it, up to the detail of the responder's own abstraction, which sees more of the public past than a target of
`training.cfr`.  In place of any other player its imitation is traversed, which is made of what it is seen to do.
What the responder wins is a lower bound on what a best response wins: `evaluation.best_response` measures it on fresh deals.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tqdm import tqdm

from agents import load as load_agent
from agents.archive import Header, Meta, digest, read_archive
from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError
from archie_env.files import make_folder
from archie_env.policy import Policy, name_of
from archie_env.rules import PRESETS, Rules, as_rules
from archie_env.terminal.shell import run
from archie_env.validation import whole_number
from training.cfr import trainer as cfr
from training.cfr._kernels import REGRETS
from training.cfr.abstraction import Detail, build, detail_config
from training.cfr.empirical import Imitation
from training.cfr.tables import Tables, check_header, strategy_tables
from training.monitoring import match

# Where only a strategy is known of the target, regrets begin as 100 chips times the probability, at about constant weight, so
# that a few unlucky hands don't make the opponent forget what it started from
_FIRST_TRAVERSALS: Final = 1_000_000
_FIRST_REGRET: Final = 100.0 * _FIRST_TRAVERSALS / cfr.WEIGHT
_EXPLORE: Final = 0.25
WATCHED: Final = Detail(cards="medium", pots=((2, 3, 4), (2, 3, 5), (3, 5, 8)), other_draws=1)
"""What an imitation of a player that is no CFR strategy tells apart, and its opponent too."""
_TURNS: Final = 6
"""How often such a player is watched: first against itself, then against what has been learnt by then."""
_WATCHING: Final = 0.25
"""The share of a budget in seconds that goes into watching."""
RESPONSE: Final = "response.npz"


def finer(detail: Detail) -> Detail:
    """What a responder tells apart: the target's hands, and more of the public past."""
    pots = [sorted({*line, *more}) for line, more in zip(detail.pots, ((2, 3, 4), (2, 3, 4, 6), (3, 5, 8, 12)), strict=False)]
    changes = {
        "pots": tuple(map(tuple, pots)),
        "raisers": min(3, detail.raisers + 1),
        "own_draws": min(3, detail.own_draws + 1),
        "other_draws": max(detail.other_draws, min(2, detail.other_draws + 1)),
    }
    return detail.model_copy(update=changes)


def target_detail(target: CFRPolicy) -> Detail:
    """The detail a strategy was trained with, from what its file says."""
    try:
        return Detail.from_values(target.meta["config"]["stages"][-1]["detail"], "the target")
    except (KeyError, TypeError, IndexError):
        raise ArchieError("the target does not say how it was trained: expected a strategy of training.cfr") from None


def target_tables(target: CFRPolicy, checkpoint: Path | None) -> tuple[Tables, int | None]:
    """What to begin with: the target's regrets and the traversals they come from, or, without a checkpoint, its strategy."""
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


def respond(
    target: Policy,
    *,
    rules: Rules | str = "archie",
    seconds: float = 0.0,
    traversals: int = 0,
    seed: int = 1,
    threads: int = 1,
    detail: Detail | None = None,
    checkpoint: Path | None = None,
    start: float = 1.0,
    progress: Callable[[float, int, float], None] | None = None,
) -> CFRPolicy:
    """An opponent trained against a player.

    Args:
        target: whom to win from: a CFR strategy, or anybody, who is asked for actions only.
        rules: what is played, where the target is no CFR strategy, which has rules of its own.
        seconds: budget of wall time; 0 = no limit.
        traversals: budget of traversals, both positions counted; 0 = no limit.  With one thread it gives the same opponent
            each time.  Of a player that is no CFR strategy as many decisions are watched.  Several threads do tens of thousands
            in a round.
        seed: of the hands to learn from.
        threads: on shared tables.
        detail: what the opponent tells apart; `finer` than a CFR strategy by default, `WATCHED` for others.
        checkpoint: of the run that made the target: the opponent begins with its regrets instead of its strategy.  Which
            wins more depends on the target: try both.
        start: the share of the traversals behind those regrets that they are to count for.  With little left of them the
            opponent learns faster where it comes often, and forgets what it knew where it does not.
        progress: called now and then with the share of the budget, the traversals, and what the last were worth in mbb per
            hand.

    Returns:
        A strategy that takes the action of largest regret, one for each information set.

    Raises:
        ArchieError: for a target that does not say how it was trained, a checkpoint of another, no budget, numbers that
            can't be, rules that tables have no place for, and a player that plays what is not legal.
    """
    if not (seconds > 0 or traversals > 0):
        raise ArchieError("no budget: expected seconds or traversals above 0")
    for name, number, least in (("seed", seed, 0), ("threads", threads, 1), ("traversals", traversals, 0)):
        whole_number(name, number, least)
    if not 0 <= start <= 1:
        raise ArchieError(f"start {start}: expected 0 to 1")
    if isinstance(target, CFRPolicy):
        watched, table = None, target
        detail = detail or finer(target_detail(target))
    elif checkpoint is not None:
        raise ArchieError(f"{checkpoint}: {name_of(target)} is no CFR strategy, so it has no regrets to begin with")
    else:
        watched = Imitation(target, as_rules(rules), WATCHED, seed)
        table = watched.policy()  # until it is watched
        detail = detail or WATCHED
    abstraction = build(table.rules, detail)
    walkers = cfr.Walkers(table.rules, threads, seed, _EXPLORE)
    warm = cfr.Walkers(table.rules, 1, 0, 0.0)
    warm.round(Tables.empty(abstraction), table, 0.0)  # compile, or load what was compiled, outside the budget
    if watched is not None:
        watched.watch(None, 1)
    turns = 1 if watched is None else _TURNS
    done, share, worth, started = 0, 0.0, 0.0, time.perf_counter()

    def tell() -> None:
        if progress:
            progress(min(share, 1.0), 2 * done, worth * table.rules.mbb_per_chip)

    def imitated(watched: Imitation, other: CFRPolicy | None) -> CFRPolicy:
        """The imitation after one more turn of watching."""
        watched.watch(other, -(-traversals // turns), seconds * _WATCHING / turns, tell)
        return watched.policy()

    if watched is not None:
        table = imitated(watched, None)
    tables, gathered = target_tables(table, checkpoint)
    scale, begin = 1.0, _FIRST_TRAVERSALS
    if gathered:  # weights rise with time, so what is gathered rises with its square
        scale, begin = start**2, round(start * gathered)
    tables = tables.grown(abstraction, scale)
    for turn in range(1, turns + 1):
        while share < turn / turns:
            worth = float(walkers.round(tables, table, (begin + done + walkers.traversals) / cfr.WEIGHT).mean())
            done += walkers.traversals
            spent = time.perf_counter() - started
            share = max(spent / seconds if seconds else 0.0, 2 * done / traversals if traversals else 0.0)
            tell()
        if watched is not None and share < 1:
            table = imitated(watched, CFRPolicy(abstraction, *tables.strategy(1.0, REGRETS)))
    meta = {
        "config": detail_config(detail),
        "responds_to": table.meta.get("config", {}) if watched is None else name_of(target),
        "traversals": 2 * done,
        "seed": seed,
    }
    return CFRPolicy(abstraction, *tables.strategy(1.0, REGRETS), meta)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.cfr.best_response", description="Train an opponent for one player."
    )
    parser.add_argument("target", help="champion, cfr:PATH, rule_based, ppo:PATH, ...")
    parser.add_argument("--rules", default="archie", choices=list(PRESETS))
    parser.add_argument("--checkpoint", type=Path, help="of the run that made the target")
    parser.add_argument("--out", type=Path, default=Path("runs/response"))
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--traversals", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=float, default=1.0, help="share of its traversals that its regrets count for")
    parser.add_argument("--deals", type=int, default=20_000, help="of the match afterwards, each dealt twice")
    chosen = parser.parse_args(arguments)

    def work() -> None:
        whole_number("deals", chosen.deals, 2)
        if chosen.target == "human":
            raise ArchieError("agent human: expected a player that needs no terminal")
        target = load_agent(chosen.target, chosen.rules)
        make_folder(chosen.out)
        with tqdm(total=1000, file=sys.stderr, leave=False, disable=None) as bar:

            def progress(share: float, done: int, worth: float) -> None:
                bar.update(round(1000 * share) - bar.n)
                bar.set_postfix_str(f"{done:,} traversals, worth {worth:+.0f} mbb while learning")

            response = respond(
                target, rules=chosen.rules, seconds=chosen.seconds, traversals=chosen.traversals, seed=chosen.seed,
                threads=chosen.threads, checkpoint=chosen.checkpoint, start=chosen.start, progress=progress,
            )  # fmt: skip
        response.save(chosen.out / RESPONSE)
        score = match(response, target, chosen.deals, chosen.seed + 1_000_000, response.rules)
        print(f"{response.meta['traversals']:,} traversals; wins {score.mean:+.1f} mbb/hand (SE {score.standard_error:.1f}), "
              f"{chosen.deals:,} deals played twice, seed {chosen.seed + 1_000_000}")  # fmt: skip
        print(f"{chosen.out / RESPONSE}: load it as cfr:{chosen.out / RESPONSE}")

    return run(work, stopped="stopped")


if __name__ == "__main__":
    raise SystemExit(main())
