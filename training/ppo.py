"""Train a player by self-play: ``python -m training.ppo --config configs/ppo/smoke.toml``.

MaskablePPO of sb3-contrib, the learner in both seats of most games, past selves in the others.  What it needs of its own is
in `training.network` (the discard head), `training.selfplay` (advantages for each player) and `training.checkpoint`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger, configure
from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

from agents.ppo import PPOPolicy
from archie_env._core.seats import BOTH
from archie_env.errors import ArchieError, ConfigError
from archie_env.learner import LearnerTables
from archie_env.policy import Policy
from training import checkpoint
from training.config import Config, config_from, load_config
from training.network import ArchiePolicy, cpu_has_bfloat16
from training.reference import Score, habits, match
from training.selfplay import Lineup, PastSelves, TwoSeatBuffer
from training.vec_env import TablesVecEnv

CHECKPOINT: Final = "checkpoint.npz"
POLICY: Final = "policy.npz"


class Run:
    """One training run: everything that changes while it goes on, and nothing else."""

    def __init__(self, config: Config) -> None:
        from agents import load  # names are resolved once the configuration is known to be good

        th.set_num_threads(config.threads)
        th.distributions.Distribution.set_default_validate_args(False)  # masks keep every distribution valid; 3 % of the time
        self.config, self.rules = config, config.played()
        self.references: dict[str, Policy] = {name: load(name, self.rules) for name in config.report.agents}
        named = {name: load(name, self.rules) for name in config.opponents.named}
        streams = np.random.SeedSequence(config.seed).spawn(2)
        self.past = PastSelves(config.opponents.past_kept, np.random.default_rng(streams[0]))
        self.lineup = Lineup(config.opponents, self.past, named)
        self.tables = LearnerTables(
            config.rollout.games, self.lineup.policies, self.lineup.shares, self.rules, config.seed,
            hidden=config.network.hidden_cards,
        )  # fmt: skip
        self.env = TablesVecEnv(self.tables, 1 / config.rollout.chips, quiet=True)
        self.shuffler = np.random.default_rng(streams[1])
        self.model = self._model()
        self.updates = 0
        self.reports = 0
        self.seconds = 0.0
        _, self._callback = self.model._setup_learn(config.budget.decisions)
        self.past.add(self.policy())

    def _model(self) -> MaskablePPO:
        learning, network, rollout = self.config.learning, self.config.network, self.config.rollout
        bfloat16 = network.bfloat16 == "on" or (network.bfloat16 == "auto" and cpu_has_bfloat16())
        self.env.seed(self.config.seed)
        return MaskablePPO(
            ArchiePolicy,
            self.env,
            learning_rate=lambda left: learning.rate * max(learning.last_rate, left),
            n_steps=rollout.steps,
            batch_size=learning.batch,
            n_epochs=learning.epochs,
            gamma=1.0,
            gae_lambda=rollout.decay,
            clip_range=learning.clip,
            vf_coef=learning.value_weight,
            max_grad_norm=learning.gradient_norm,
            rollout_buffer_class=TwoSeatBuffer,
            rollout_buffer_kwargs={"tables": self.tables, "generator": self.shuffler},
            policy_kwargs={
                "rules": self.rules.to_dict(),
                "widths": network.widths,
                "hand_features": network.hand_features,
                "slots": network.slots,
                "bias": network.bias,
                "prior": network.prior,
                "bfloat16": bfloat16,
            },
            seed=self.config.seed,
            device="cpu",
        )

    @property
    def decisions(self) -> int:
        """Decisions of the learner so far, both seats counted."""
        return int(self.model.num_timesteps)

    @property
    def progress(self) -> float:
        """The share of the budget that is used, 0 to 1."""
        budget = self.config.budget
        by_time = self.seconds / budget.seconds if budget.seconds else 0.0
        return min(1.0, max(self.decisions / budget.decisions, by_time))

    def policy(self) -> PPOPolicy:
        """The learner as it is now."""
        network = self.config.network
        meta = {
            "hand_features": network.hand_features,
            "slots": network.slots,
            "config": self.config.to_dict(),
            "decisions": self.decisions,
            "versions": {name: version(name) for name in ("numpy", "torch", "stable-baselines3", "sb3-contrib")},
        }
        return PPOPolicy(self.model.policy.exported(), meta, self.rules)

    def update(self) -> None:
        """Play one rollout and learn from it."""
        started = time.perf_counter()
        learning, left = self.config.learning, 1 - self.progress
        self.model._current_progress_remaining = left
        self.model.ent_coef = learning.prior_weight * max(learning.last_prior_weight, left)
        self.lineup.redraw(self.tables)
        self.model.collect_rollouts(self.env, self._callback, self.model.rollout_buffer, self.config.rollout.steps)
        self.model.train()
        self.updates += 1
        if self.updates % self.config.opponents.past_every == 0:
            self.past.add(self.policy())
        self.seconds += time.perf_counter() - started

    def save(self, path: Path) -> None:
        """Write everything that `restore` needs to go on to the same weights."""
        tables, generators = self.tables.snapshot()
        arrays = checkpoint.prefixed(checkpoint.module_arrays(self.model.policy), "network")
        arrays |= checkpoint.prefixed(checkpoint.optimizer_arrays(self.model.policy.optimizer), "optimizer")
        arrays |= checkpoint.prefixed(tables, "tables")
        for i, policy in enumerate(self.past.policies):
            arrays |= checkpoint.prefixed(policy.weights, f"past{i}")
        arrays["torch_generator"] = th.get_rng_state().numpy()
        arrays["episode_starts"] = np.asarray(self.model._last_episode_starts)
        meta = {
            "config": self.config.to_dict(),
            "updates": self.updates,
            "reports": self.reports,
            "seconds": self.seconds,
            "decisions": self.decisions,
            "past": [policy.meta for policy in self.past.policies],
            "generators": {
                "tables": generators,
                "past": self.past.generator.bit_generator.state,
                "shuffler": self.shuffler.bit_generator.state,
            },
        }
        checkpoint.save(path, arrays, meta)

    def restore(self, arrays: checkpoint.Arrays, meta: dict[str, Any]) -> None:
        """Go on from a checkpoint of a run with the same configuration."""
        checkpoint.load_module(self.model.policy, checkpoint.grouped(arrays, "network"))
        checkpoint.load_optimizer(self.model.policy.optimizer, checkpoint.grouped(arrays, "optimizer"))
        self.past.policies = [
            PPOPolicy(checkpoint.grouped(arrays, f"past{i}"), past, self.rules) for i, past in enumerate(meta["past"])
        ]
        self.past.generator.bit_generator.state = meta["generators"]["past"]
        self.shuffler.bit_generator.state = meta["generators"]["shuffler"]
        self.tables.restore(checkpoint.grouped(arrays, "tables"), meta["generators"]["tables"])
        self.model._last_obs = self.env._observe()
        self.model._last_episode_starts = arrays["episode_starts"]
        self.model.num_timesteps = meta["decisions"]
        self.updates, self.reports, self.seconds = meta["updates"], meta["reports"], meta["seconds"]
        th.set_rng_state(th.from_numpy(arrays["torch_generator"]))


@dataclass(frozen=True, slots=True)
class Account:
    """What a run has played so far, to take differences of."""

    seconds: float
    decisions: int
    hands: int
    hands_against_others: int
    chips: int
    """Won from others: past selves and named policies."""

    @classmethod
    def of(cls, run: Run) -> Account:
        """The run's account now."""
        ledgers = run.tables.ledgers
        others = ledgers["hands"][ledgers["role"] != BOTH].sum()
        return cls(run.seconds, run.decisions, int(ledgers["hands"].sum()), int(others), int(ledgers["chips"].sum()))


def log(run: Run, logger: Logger, before: Account) -> None:
    """Write what the last update did to TensorBoard, beside the losses that MaskablePPO records."""
    now = Account.of(run)
    elapsed = now.seconds - before.seconds
    logger.record("speed/hands_per_second", (now.hands - before.hands) / elapsed)
    logger.record("speed/decisions_per_second", (now.decisions - before.decisions) / elapsed)
    logger.record("train/prior_weight", run.model.ent_coef)
    logger.record("pool/past_selves", len(run.past.policies))
    if hands := now.hands_against_others - before.hands_against_others:
        mbb = 1000 / run.rules.stakes.blinds[1]
        logger.record("pool/mbb_per_hand", (now.chips - before.chips) / hands * mbb)
    logger.dump(run.decisions)


def report(run: Run, logger: Logger, last: bool) -> str:
    """Measure the learner, write it to TensorBoard and return it as one line."""
    policy, seed = run.policy(), run.config.seed + run.updates
    measured = habits(policy, 2048, seed, run.rules)
    scores = {name: match(policy, other, run.config.report.last_deals if last else run.config.report.deals, seed, run.rules)
              for name, other in run.references.items()}  # fmt: skip
    for name, score in scores.items():
        logger.record(f"match/{name}_mbb_per_hand", score.mean)
        logger.record(f"match/{name}_standard_error", score.error)
    for name, value in asdict(measured).items():
        logger.record(f"habits/{name}", value)
    logger.dump(run.decisions)

    def words(name: str, score: Score) -> str:
        return f"{name} {score.mean:+.0f} ({score.error:.0f})"

    against = ", ".join(words(name, score) for name, score in scores.items())
    return (
        f"{run.seconds:5.0f} s {run.decisions:>10,} decisions  lows kept {measured.lows_kept:.2f}  "
        f"mbb/hand (SE) v {against or 'nobody'}"
    )


def train(config: Config, out: Path, resume: bool = False, quiet: bool = False) -> PPOPolicy:
    """Train until the budget is used; writes the checkpoint, TensorBoard points and the final policy into ``out``.

    Args:
        config: the run.
        out: a folder; what a run of the same place left there is overwritten, unless resumed.
        resume: go on from the checkpoint in ``out``.
        quiet: print nothing.
    """
    run = Run(config)
    if resume:
        arrays, meta = checkpoint.load(out / CHECKPOINT)
        trained = config_from(meta["config"], str(out / CHECKPOINT))
        if replace(trained, budget=config.budget, report=config.report) != config:
            raise ConfigError(f"{out / CHECKPOINT}: another configuration; only [budget] and [report] may differ to resume it")
        run.restore(arrays, meta)
    logger = configure(str(out), ["tensorboard"])
    run.model.set_logger(logger)

    def say(text: str) -> None:
        if not quiet:
            tqdm.write(text)
            sys.stdout.flush()  # a file or pipe would see it at the end only

    done = round(1000 * run.progress)
    with tqdm(total=1000, initial=done, unit="‰", disable=True if quiet else None, file=sys.stderr, leave=False) as bar:
        while run.progress < 1:
            before = Account.of(run)
            run.update()
            if run.updates % config.report.log_every == 0:
                log(run, logger, before)
            bar.update(round(1000 * run.progress) - bar.n)
            if int(config.report.times * run.progress) > run.reports:
                run.reports = int(config.report.times * run.progress)
                say(report(run, logger, last=run.progress >= 1))
            if run.updates % config.report.save_every == 0 or run.progress >= 1:
                run.save(out / CHECKPOINT)
    logger.close()
    policy = run.policy()
    policy.save(out / POLICY)
    say(f"{out / POLICY}: load it as ppo:{out / POLICY}")
    return policy


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m training.ppo", description="Train a player by self-play.")
    parser.add_argument("--config", required=True, help="a TOML file, such as configs/ppo/smoke.toml")
    parser.add_argument("--out", type=Path, help="folder of the run; runs/ppo-CONFIG-SEED by default")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in that folder")
    parser.add_argument("--overwrite", action="store_true", help="start anew where a checkpoint is")
    parser.add_argument("--seed", type=int, help="in place of the file's")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as learning.rate=3e-4")
    chosen = parser.parse_args(arguments)
    try:
        overrides = [*chosen.set, *([] if chosen.seed is None else [f"seed={chosen.seed}"])]
        config = load_config(chosen.config, overrides)
        out: Path = chosen.out or Path("runs") / f"ppo-{Path(chosen.config).stem}-{config.seed}"
        if (out / CHECKPOINT).exists() and not (chosen.resume or chosen.overwrite):
            raise ConfigError(f"{out / CHECKPOINT} exists: expected --resume, --overwrite or another --out")
        train(config, out, chosen.resume)
    except ArchieError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; --resume goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
