"""Small PPO runs that several test files share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.ppo import checkpoint
from training.ppo.config import Config
from training.ppo.state import TrainingState

ROOT = Path(__file__).parent.parent


SMALL: dict[str, Any] = {
    "seed": 3,
    "budget": {"decisions": 6 * 48 * 8},
    "rollout": {"num_envs": 48, "num_steps": 8},
    "learning": {"minibatch_size": 96},
    "network": {"widths": [24, 16], "bfloat16": "off"},
    "opponents": {"self_play": 0.5, "snapshots": 0.3, "snapshot_interval": 2, "snapshots_kept": 2, "named": {"call": 0.2}},
    "report": {"times": 1, "deals": 8, "last_deals": 8, "agents": ["uniform"], "log_every": 1, "save_every": 1},
}


def small(**sections: Any) -> Config:
    return Config.from_values(SMALL | sections, "small")


def state_of(run: TrainingState) -> dict[str, bytes]:
    """Everything that decides how a run goes on."""
    arrays = checkpoint.module_arrays(run.model.policy) | checkpoint.optimizer_arrays(run.model.policy.optimizer)
    arrays |= run.batch.snapshot()[0] | {f"snapshot{i}": p.weights["head.weight"] for i, p in enumerate(run.snapshots.policies)}
    return {name: array.tobytes() for name, array in arrays.items()}


def toml_of(values: dict[str, Any]) -> str:
    """Enough TOML for the tests' tables."""

    def value(v: Any) -> str:
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{k} = {value(x)}" for k, x in v.items()) + " }"
        return str(v).lower() if isinstance(v, bool) else repr(v).replace("'", '"')

    lines = []
    for section, table in values.items():
        if isinstance(table, dict):
            lines += [f"[{section}]", *(f"{k} = {value(v)}" for k, v in table.items())]
    return "\n".join(lines)


def warm(**options: Any) -> Config:
    return small(warm_start={"policy": "call_draw", "decisions": 200_000, **options}, rules="mini")
