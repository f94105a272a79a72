"""A PPO policy trained against one fixed policy: its winnings are a lower bound on the winnings of a best response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agents.ppo import PPOPolicy
from archie_env.errors import ConfigError, shown
from archie_env.policy import Policy
from archie_env.rules import Rules, as_rules
from training.ppo.config import Config
from training.ppo.state import TrainingState, on_threads

TARGET: Final = "target"
START: Final = "start"
Progress = Callable[[float, int, float], None]
"""Called after each update with the fraction of the budget used, the decisions so far, and the mbb/hand of the last rollout."""


def train_best_response(
    target: Policy,
    rules: Rules | str = "archie",
    seconds: float = 75.0,
    decisions: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    start: Policy | None = None,
) -> PPOPolicy:
    """Train a new policy against ``target`` alone, from both positions, on one core.

    The target never changes, and only its ``act`` is called.  Learning rate and KL coefficient anneal over the budget.

    Args:
        target: the policy to exploit; it must play ``rules``.
        rules: a preset's name or a `Rules` value.
        seconds: wall time of the training.  It depends on the machine, so no two such runs are equal.
        decisions: decisions of the learner, in place of ``seconds``: the same arguments then give the same weights.
        seed: 0 to 4,294,967,295; seeds weights, cards and everything random.
        progress: see `Progress`; may raise to stop.
        start: a policy to clone first, such as the target or a strong one, if training from nothing finds too little.

    Returns:
        The policy after the last update.  Measure its winnings on held-out seeds.

    Raises:
        ArchieError: for an impossible budget or seed, and for a target that plays an illegal action.
    """
    config = best_response_config(rules, seconds, decisions, seed, start is not None)
    mbb = config.resolved_rules().mbb_per_chip
    with on_threads(config.threads):
        run = TrainingState(config, {TARGET: target} if start is None else {TARGET: target, START: start})
        while run.progress < 1:
            chips, hands = run.batch.chips.sum(), run.batch.hands.sum()
            run.update()
            if progress:
                won = (run.batch.chips.sum() - chips) / max(1, run.batch.hands.sum() - hands)
                progress(run.progress, run.decisions, float(won * mbb))
        return run.policy()


def best_response_config(rules: Rules | str, seconds: float, decisions: int | None, seed: int, started: bool = False) -> Config:
    """Return the configuration of `train_best_response`; raises `ConfigError`."""
    if decisions is None and not seconds > 0:
        raise ConfigError(f"best response: seconds = {shown(seconds)}: expected a number above 0")
    values = {
        "seed": seed,
        "rules": as_rules(rules).to_dict(),
        "budget": {"decisions": 10**13, "seconds": seconds} if decisions is None else {"decisions": decisions},
        "opponents": {"self_play": 0.0, "snapshots": 0.0, "named": {TARGET: 1.0}},
        # smaller steps and a weaker prior, so that training does not undo the cloning
        "learning": {"learning_rate": 5e-4, "kl_coef": 0.01} if started else {},
        "warm_start": {"policy": START if started else "", "critic_updates": 8},
        "report": {"times": 0, "agents": []},
    }
    return Config.from_values(values, "best response")
