"""A training run on disk: one ``.npz`` of arrays and a JSON text, written whole or not at all; no pickle anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch as th
from numpy.typing import NDArray

from agents.archive import read_archive, write_archive

FORMAT: Final = "archie-env ppo checkpoint"
VERSION: Final = 2

Arrays = dict[str, NDArray[Any]]


def grouped(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The arrays whose names begin with ``prefix/``, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def prefixed(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The inverse of `grouped`."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def module_arrays(module: th.nn.Module) -> Arrays:
    """Weights by name."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def load_module(module: th.nn.Module, arrays: Arrays) -> None:
    """Put weights back; every name and shape must fit."""
    module.load_state_dict({name: th.from_numpy(array) for name, array in arrays.items()})


def optimizer_arrays(optimizer: th.optim.Optimizer) -> Arrays:
    """The optimiser's memory of each parameter, as ``parameter/quantity``; rates are set anew in each update."""
    state = optimizer.state_dict()["state"]
    return {f"{k}/{name}": np.asarray(value) for k, entry in state.items() for name, value in entry.items()}


def load_optimizer(optimizer: th.optim.Optimizer, arrays: Arrays) -> None:
    """Put the optimiser's memory back."""
    state: dict[int, dict[str, th.Tensor]] = {}
    for path, array in arrays.items():
        parameter, name = path.split("/")
        state.setdefault(int(parameter), {})[name] = th.from_numpy(array)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def save(path: str | Path, arrays: Arrays, meta: Mapping[str, Any]) -> None:
    """Write a checkpoint in place of the one before it."""
    write_archive(path, arrays, {**meta, "format": FORMAT, "version": VERSION})


def load(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """Read a checkpoint; raises `ArchieError` unless it is whole and of this version."""
    return read_archive(path, FORMAT, VERSION)
