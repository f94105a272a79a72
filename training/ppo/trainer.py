"""Train a player by self-play: ``python -m training.ppo --config configs/ppo/smoke.toml``.

MaskablePPO of sb3-contrib, the learner in both seats of most games, past selves in the others.  What it needs of its own is
in `training.ppo.network` (the discard head), `training.ppo.opponents` (advantages for each player) and `training.ppo.state`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from stable_baselines3.common.logger import Logger, configure
from tqdm import tqdm

from agents.ppo import PPOPolicy
from archie_env.errors import ArchieError, ConfigError
from archie_env.files import make_folder
from training.command import Options, Word, train_from_command
from training.monitoring import format_scores, match, self_play_statistics
from training.ppo import checkpoint
from training.ppo.config import Config
from training.ppo.state import Totals, TrainingState, on_threads
from training.settings import differences

_log = logging.getLogger(__name__)
CHECKPOINT: Final = "checkpoint.npz"
POLICY: Final = "policy.npz"


def log(run: TrainingState, logger: Logger, before: Totals) -> None:
    """Write what the last update did to TensorBoard, beside the losses that MaskablePPO records."""
    now = Totals.of(run)
    elapsed = now.seconds - before.seconds
    logger.record("speed/hands_per_second", (now.hands - before.hands) / elapsed)
    logger.record("speed/decisions_per_second", (now.decisions - before.decisions) / elapsed)
    logger.record("train/kl_coef", run.model.ent_coef)
    if run.config.network.prior and "train/entropy_loss" in logger.name_to_value:  # what stands there in place of the entropy
        logger.record("train/kl_from_prior", logger.name_to_value["train/entropy_loss"])
    logger.record("pool/snapshots", len(run.snapshots.policies))
    if hands := now.hands_against_others - before.hands_against_others:
        mbb = run.rules.mbb_per_chip
        logger.record("pool/mbb_per_hand", (now.chips - before.chips) / hands * mbb)
    logger.dump(run.decisions)


def report(run: TrainingState, logger: Logger, last: bool) -> str:
    """Measure the learner, write it to TensorBoard and return it as one line."""
    policy, seed = run.policy(), run.config.seed + run.updates
    measured = self_play_statistics(policy, 2048, seed, run.rules)
    scores = {name: match(policy, other, run.config.report.last_deals if last else run.config.report.deals, seed, run.rules)
              for name, other in run.references.items()}  # fmt: skip
    for name, score in scores.items():
        logger.record(f"match/{name}_mbb_per_hand", score.mean)
        logger.record(f"match/{name}_standard_error", score.standard_error)
    logger.record("self_play/lows_kept", measured.lows_kept)
    logger.record("self_play/hands_per_second", measured.hands_per_second)
    for name, value in measured.entropy.items():
        logger.record(f"self_play/entropy_{name}", value)
    logger.dump(run.decisions)
    return f"{run.seconds:5.0f} s {run.decisions:>10,} decisions  lows kept {measured.lows_kept:.2f}  {format_scores(scores)}"


def resume_run(run: TrainingState, path: Path) -> None:
    """Go on from a checkpoint.

    Raises:
        ArchieError: for a file that is no whole checkpoint, or one of another configuration, naming the keys.
    """
    arrays, meta = checkpoint.load(path)
    values: Any = meta.get("config")
    trained = Config.from_values(values, str(path))
    compared = trained.model_copy(update={"budget": run.config.budget, "report": run.config.report})
    if compared != run.config:
        raise ConfigError(
            f"{path}: another configuration, there and here {'; '.join(differences(compared, run.config))}: "
            "only [budget] and [report] may differ to resume it"
        )
    try:
        run.restore(arrays, meta)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        words = " ".join(str(error).split())[:200]
        raise ArchieError(
            f"{path}: not a whole checkpoint ({type(error).__name__}: {words}): expected one to resume"
        ) from error


def train(config: Config, out: Path, resume: bool = False, quiet: bool = False) -> PPOPolicy:
    """Train until the budget is used; writes the checkpoint, TensorBoard points and the final policy into ``out``.

    Args:
        config: the run.
        out: a folder; what a run of the same place left there is overwritten, unless resumed.
        resume: go on from the checkpoint in ``out``.
        quiet: show no progress bar.

    Raises:
        ArchieError: before anything is trained, for a folder, player or checkpoint that can't be used; while training,
            for weights that are no longer finite.
    """
    with on_threads(config.threads):
        return _train(config, out, resume, quiet)


def _train(config: Config, out: Path, resume: bool, quiet: bool) -> PPOPolicy:
    run = TrainingState(config)
    if resume:
        resume_run(run, out / CHECKPOINT)
        _log.info(f"resumed at {run.decisions:,} decisions")
    make_folder(out)
    logger = configure(str(out), ["tensorboard"])
    run.model.set_logger(logger)
    done = round(1000 * run.progress)
    with tqdm(total=1000, initial=done, unit="‰", disable=True if quiet else None, file=sys.stderr, leave=False) as bar:
        while run.progress < 1:
            before = Totals.of(run)
            run.update()
            if run.updates % config.report.log_every == 0:
                log(run, logger, before)
            bar.update(round(1000 * run.progress) - bar.n)
            bar.set_postfix_str(f"{run.decisions:,} decisions in {run.seconds:.0f} s")
            if int(config.report.times * run.progress) > run.reports:
                run.reports = int(config.report.times * run.progress)
                _log.info(report(run, logger, last=run.progress >= 1))
            if run.updates % config.report.save_every == 0 or run.progress >= 1:
                run.save(out / CHECKPOINT)
    logger.close()
    policy = run.policy()
    policy.save(out / POLICY)
    if run.seconds:
        _log.info(
            f"{run.decisions:,} decisions in {run.seconds:.0f} s without reports: {run.decisions / run.seconds:,.0f} a second"
        )
    _log.info(f"{out / POLICY}: load it as ppo:{out / POLICY}")
    return policy


@dataclass(frozen=True, kw_only=True)
class TrainerOptions(Options):
    """Train a player by self-play."""

    short: ClassVar[Mapping[str, str]] = {"seed": "seed", "warm_start": "warm_start.policy"}
    warm_start: Word = None
    """Clone this player first; short for --set warm_start.policy=NAME."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return train_from_command(TrainerOptions, "python -m training.ppo", Config.load, train, CHECKPOINT, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
