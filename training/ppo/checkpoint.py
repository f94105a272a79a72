"""Checkpoints of a run: an ``.npz`` file of arrays and a JSON text, written atomically and without pickle.

A checkpoint may come from a stranger: every array is checked before it is used, and hands in progress are stored as actions
that the engine replays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch as th
from numpy.typing import NDArray
from pydantic import Field

from agents.archive import Header, read_archive, write_archive
from agents.ppo import PPOPolicy
from archie_env.errors import ArchieError, ConfigError, described, shown
from training.ppo.config import Config
from training.ppo.state import TrainingState
from training.settings import Generator, Settings, Several, differences

FORMAT: Final = "archie-env ppo checkpoint"
VERSION: Final = 3

Arrays = dict[str, NDArray[Any]]


class Generators(Settings):
    """Every generator of a run."""

    batch: Several[Generator]
    """One for each opponent."""
    snapshots: Generator
    learner: Generator


class Progress(Settings):
    """How far a run has come."""

    updates: int = Field(ge=0, le=10**12)
    reports: int = Field(ge=0, le=10**12)
    seconds: float = Field(ge=0.0, le=1e12)
    decisions: int = Field(ge=0, le=10**15)


class Meta(Settings):
    """Contents of a checkpoint beside arrays and the configuration."""

    progress: Progress
    generators: Generators


def save(state: TrainingState, path: Path) -> None:
    """Write everything that `resume` needs to continue to the same weights."""
    batch, generators = state.batch.snapshot()
    arrays = _prefixed("network", module_arrays(state.model.policy)) | _prefixed("batch", batch)
    arrays |= _prefixed("optimizer", optimizer_arrays(state.model.policy.optimizer))
    for i, policy in enumerate(state.snapshots.policies):
        arrays |= _prefixed(f"snapshot{i}", policy.weights)
    arrays["episode_starts"] = np.asarray(state.model._last_episode_starts, np.bool_)
    progress = Progress(updates=state.updates, reports=state.reports, seconds=state.seconds, decisions=state.decisions)
    random = Generators(
        batch=tuple(Generator.model_validate(generator) for generator in generators),
        snapshots=Generator.of(state.snapshots.generator),
        learner=Generator.of(state.generator),
    )
    meta = Meta(progress=progress, generators=random).model_dump(mode="json")
    write_archive(path, arrays, {**meta, "config": state.config.model_dump(), "format": FORMAT, "version": VERSION})


def resume(state: TrainingState, path: Path) -> None:
    """Continue from a checkpoint.

    Args:
        state: a new one.
        path: a checkpoint of the same configuration; only ``[budget]`` and ``[report]`` may differ.

    Raises:
        ArchieError: for a file that is not a whole checkpoint, or is one of another configuration, naming the keys.
    """

    def check(headers: Mapping[str, Header], meta: dict[str, Any]) -> None:
        _check_config(state.config, meta)
        _check_headers(headers, state)

    arrays, meta = read_archive(path, FORMAT, VERSION, check)
    try:
        _restore(state, arrays, meta)
    except ArchieError as error:
        raise ArchieError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ArchieError(
            f"{path}: not a whole checkpoint ({described(error, place=False)}): expected one to resume"
        ) from error


def _restore(state: TrainingState, arrays: Arrays, meta: dict[str, Any]) -> None:
    checked = Meta.from_values({name: meta[name] for name in Meta.model_fields if name in meta}, "meta")
    progress, random = checked.progress, checked.generators
    rollout = state.config.rollout
    if progress.decisions != progress.updates * rollout.num_envs * rollout.num_steps:
        raise ArchieError(f"progress.decisions = {progress.decisions}: expected those of {progress.updates} updates")
    if len(random.batch) != len(state.batch.opponents):
        raise ArchieError(f"generators.batch has {len(random.batch)} items: expected {len(state.batch.opponents)}")
    for name, array in arrays.items():
        _check_values(name, array)
    load_module(state.model.policy, _grouped("network", arrays))
    load_optimizer(state.model.policy.optimizer, _grouped("optimizer", arrays))
    built = {"hand_features": state.config.network.hand_features, "slots": state.config.network.slots}
    count = len({name.partition("/")[0] for name in arrays if name.startswith("snapshot")})
    state.snapshots.policies = [
        PPOPolicy(_grouped(f"snapshot{i}", arrays), built, state.rules) for i in range(count)
    ]  # fmt: skip
    state.batch.restore(_grouped("batch", arrays), [generator.model_dump() for generator in random.batch])
    state.snapshots.generator.bit_generator.state = random.snapshots.model_dump()
    state.generator.bit_generator.state = random.learner.model_dump()
    state.model._last_episode_starts = arrays["episode_starts"]
    state.model.num_timesteps = progress.decisions
    state.updates, state.reports, state.seconds = progress.updates, progress.reports, progress.seconds


# Checks of a file, before anything of it is used


def _check_config(config: Config, meta: Mapping[str, Any]) -> None:
    trained = Config.from_values(meta.get("config"), "config")
    compared = trained.model_copy(update={"budget": config.budget, "report": config.report})
    if compared != config:
        raise ConfigError(
            f"another configuration, there and here {'; '.join(differences(compared, config))}: "
            "only [budget] and [report] may differ to resume it"
        )


def _check_headers(headers: Mapping[str, Header], state: TrainingState) -> None:
    """Refuse names, shapes and types that a checkpoint of this configuration can't have."""
    required, optional = _headers(state)
    for name, header in headers.items():
        expected = required.get(name) or optional.get(name)
        if expected is None:
            raise ArchieError(f"unknown array {shown(name)}: expected those of a checkpoint of this configuration")
        if header != expected:
            raise ArchieError(f"{name} {header}: expected {expected}")
    groups = {name.rpartition("/")[0] for name in headers} - {""}
    count = sum(group.startswith("snapshot") for group in groups)
    expected_groups = groups | {f"snapshot{i}" for i in range(max(1, count))}
    for name in [*required, *(name for name in optional if name.rpartition("/")[0] in expected_groups)]:
        if name not in headers:
            raise ArchieError(f"{name} is missing: expected a whole checkpoint")


def _headers(state: TrainingState) -> tuple[dict[str, Header], dict[str, Header]]:
    """Return the required arrays of a checkpoint, and the optional ones of the optimizer and of snapshots."""
    required = _prefixed("network", module_arrays(state.model.policy)) | _prefixed("batch", state.batch.snapshot()[0])
    required["episode_starts"] = np.zeros(len(state.batch), np.bool_)
    optional: Arrays = {}
    for k, weights in enumerate(state.model.policy.parameters()):
        moment, step = weights.detach().numpy(), np.zeros((), np.float32)
        optional |= _prefixed(f"optimizer/{k}", {"step": step, "exp_avg": moment, "exp_avg_sq": moment})
    for i in range(state.config.opponents.snapshots_kept):
        optional |= _prefixed(f"snapshot{i}", state.model.policy.exported())
    first, second = ({name: Header(a.shape, a.dtype) for name, a in arrays.items()} for arrays in (required, optional))
    return first, second


def _check_values(name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind != "f":
        return
    if not np.isfinite(array).all():
        raise ArchieError(f"{name}: {int((~np.isfinite(array)).sum())} are nan or infinite: expected finite numbers")
    if name.endswith("/exp_avg_sq") and (array < 0).any():
        raise ArchieError(f"{name}: {int((array < 0).sum())} are negative: expected mean squares")
    if name.endswith("/step") and not array >= 1:
        raise ArchieError(f"{name} {array}: expected 1 or more")


# Arrays by name


def _prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def _grouped(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays whose names begin with ``prefix/``, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def module_arrays(module: th.nn.Module) -> Arrays:
    """Return the weights of a module by name."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def load_module(module: th.nn.Module, arrays: Arrays) -> None:
    """Put weights back; every name and shape must fit."""
    module.load_state_dict({name: th.from_numpy(array) for name, array in arrays.items()})


def optimizer_arrays(optimizer: th.optim.Optimizer) -> Arrays:
    """Return the moments and step of each parameter that has been updated, as ``parameter/quantity``."""
    state = optimizer.state_dict()["state"]
    return {f"{k}/{name}": np.asarray(value) for k, entry in state.items() for name, value in entry.items()}


def load_optimizer(optimizer: th.optim.Optimizer, arrays: Arrays) -> None:
    """Put moments and steps back; learning rates are set anew in each update."""
    state: dict[int, dict[str, th.Tensor]] = {}
    for path, array in arrays.items():
        parameter, name = path.split("/")
        state.setdefault(int(parameter), {})[name] = th.from_numpy(array)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
