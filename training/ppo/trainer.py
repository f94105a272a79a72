"""Train a policy by self-play: ``python -m training.ppo --config configs/ppo/smoke.toml``.

MaskablePPO of sb3-contrib: the learner plays both seats of most games, and snapshots of itself in the others.  The additions of
this project are in `training.ppo.network` (the discard head), `training.ppo.algorithm` (the loops, with advantages for each
player) and `training.ppo.opponents`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from stable_baselines3.common.logger import Logger, configure
from tqdm import tqdm
from tyro.conf import arg

from agents.archive import check_archives
from agents.ppo import FORMAT, PPOPolicy
from archie_env.files import locked, make_folder
from archie_env.terminal.shell import terminable
from training.command import AbandonedError, Options, train_from_command, uninterrupted
from training.monitoring import format_scores, match, self_play_statistics
from training.ppo import checkpoint
from training.ppo.config import Config
from training.ppo.state import Totals, TrainingState, on_threads

_log = logging.getLogger(__name__)
CHECKPOINT: Final = "checkpoint.npz"
POLICY: Final = "policy.npz"


def train(config: Config, out: Path, resume: bool = False, quiet: bool = False) -> PPOPolicy:
    """Train until the budget is used; writes the checkpoint, TensorBoard points and the final policy into ``out``.

    Ctrl-C and SIGTERM let the update finish and write a checkpoint; then `KeyboardInterrupt` is raised.

    Args:
        config: the run.
        out: a folder; files of an earlier run there are overwritten, unless it is resumed.
        resume: continue from the checkpoint in ``out``.
        quiet: show no progress bar.

    Raises:
        ArchieError: before anything is trained, for a folder, player or checkpoint that can't be used; while training,
            for weights that are no longer finite, and for a file that can't be written.
    """
    with on_threads(config.threads):
        state = TrainingState(config)
        if resume:
            checkpoint.resume(state, out / CHECKPOINT)
            _log.info(f"resumed at {state.decisions:,} decisions")
        make_folder(out)
        with locked(out):
            check_archives(out, checkpoint=checkpoint.FORMAT, policy=FORMAT)
            return _train(state, out, quiet)


def _train(state: TrainingState, out: Path, quiet: bool) -> PPOPolicy:
    logger = configure(str(out), ["tensorboard"])
    state.model.set_logger(logger)
    try:
        with terminable(), _bar(state, quiet) as bar:
            while state.progress < 1:
                _update(state, logger)
                bar.update(_amount(state) - bar.n)
                _report_when_due(state, logger)
                if state.updates % state.config.report.save_every == 0 or state.progress >= 1:
                    checkpoint.save(state, out / CHECKPOINT)
    except AbandonedError:
        raise  # in the middle of an update: only an earlier checkpoint is whole
    except KeyboardInterrupt:
        checkpoint.save(state, out / CHECKPOINT)
        raise
    finally:
        logger.close()
    policy = state.policy()
    policy.save(out / POLICY)
    if state.seconds:
        rate = state.decisions / state.seconds
        _log.info(f"{state.decisions:,} decisions in {state.seconds:.0f} s without reports: {rate:,.0f} a second")
    _log.info(f"{out / POLICY}: load it as ppo:{out / POLICY}")
    return policy


def _bar(state: TrainingState, quiet: bool) -> tqdm[Any]:
    """Return a progress bar over the seconds of the budget if they are limited, else over its decisions."""
    budget = state.config.budget
    total, unit = (budget.seconds, "s") if budget.seconds else (budget.decisions, " decisions")
    return tqdm(
        total=total, initial=_amount(state), unit=unit, unit_scale=True, disable=True if quiet else None,
        file=sys.stderr, leave=False,
    )  # fmt: skip


def _amount(state: TrainingState) -> float:
    budget = state.config.budget
    return min(state.seconds, budget.seconds) if budget.seconds else min(state.decisions, budget.decisions)


def _update(state: TrainingState, logger: Logger) -> None:
    before = Totals.of(state)
    with uninterrupted():
        state.update()
    if state.updates % state.config.report.log_every == 0:
        _log_update(state, logger, before)


def _log_update(state: TrainingState, logger: Logger, before: Totals) -> None:
    """Write the figures of the last update to TensorBoard, beside the losses that MaskablePPO records."""
    now = Totals.of(state)
    elapsed = now.seconds - before.seconds
    logger.record("speed/hands_per_second", (now.hands - before.hands) / elapsed)
    logger.record("speed/decisions_per_second", (now.decisions - before.decisions) / elapsed)
    logger.record("train/kl_coef", state.model.ent_coef)
    if state.config.network.prior and "train/entropy_loss" in logger.name_to_value:  # SB3's name for it
        logger.record("train/kl_from_prior", logger.name_to_value["train/entropy_loss"])
    logger.record("pool/snapshots", len(state.snapshots.policies))
    if hands := now.hands_against_others - before.hands_against_others:
        logger.record("pool/mbb_per_hand", (now.chips - before.chips) / hands * state.rules.mbb_per_chip)
    logger.dump(state.decisions)


def _report_when_due(state: TrainingState, logger: Logger) -> None:
    due = int(state.config.report.times * state.progress)
    if due > state.reports:
        _log.info(_report(state, logger, last=state.progress >= 1))
        state.reports = due


def _report(state: TrainingState, logger: Logger, last: bool) -> str:
    """Measure the learner, write the figures to TensorBoard and return them as one line."""
    policy, report, seed = state.policy(), state.config.report, state.config.seed + state.updates
    statistics = self_play_statistics(policy, 2048, seed, state.rules)
    deals = report.last_deals if last else report.deals
    scores = {name: match(policy, other, deals, seed, state.rules) for name, other in state.references.items()}
    for name, score in scores.items():
        logger.record(f"match/{name}_mbb_per_hand", score.mean)
        logger.record(f"match/{name}_standard_error", score.standard_error)
    logger.record("self_play/lows_kept", statistics.lows_kept)
    logger.record("self_play/hands_per_second", statistics.hands_per_second)
    for name, value in statistics.entropy.items():
        logger.record(f"self_play/entropy_{name}", value)
    logger.dump(state.decisions)
    return (
        f"{state.seconds:5.0f} s {state.decisions:>10,} decisions  lows kept {statistics.lows_kept:.2f}  "
        f"{format_scores(scores)}"
    )


@dataclass(frozen=True, kw_only=True)
class TrainerOptions(Options):
    """Options of this trainer."""

    short: ClassVar[Mapping[str, str]] = {**Options.short, "warm_start": "warm_start.policy"}
    warm_start: Annotated[str | None, arg(metavar="STR")] = None
    """Clone this player first; short for --set warm_start.policy=NAME."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return train_from_command(
        TrainerOptions, "python -m training.ppo", Config.load, train, CHECKPOINT, arguments, "Train a player by self-play."
    )
