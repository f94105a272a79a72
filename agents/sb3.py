"""Models saved by stable-baselines3 and sb3-contrib as players, read without unpickling.

``model.save`` writes a zip.  Of its member ``data``, a JSON text, only the readable entries are used, never the pickles beside
them; ``policy.pth`` is read by torch with ``weights_only``.  Inference is in NumPy.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import stat
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.archive import FilePolicy, note_file, version_of
from agents.ppo import finite, masked_softmax
from agents.rows import checked_rows
from archie_env.errors import ArchieError, described, shown
from archie_env.observation import scaled, width
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rules import Rules, as_rules

_LARGEST: Final = {"data": 1 << 26, "policy.pth": 1 << 28}
"""Members that are read, and the bytes that each may have."""
_MEMBERS: Final = (
    *_LARGEST, "policy.optimizer.pth", "pytorch_variables.pth", "_stable_baselines3_version", "system_info.txt",
)  # fmt: skip
_WEIGHTS_MEMBER: Final = re.compile(
    r"[^/]+/(data\.pkl|data/\d+|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id)"
)
"""Members of ``policy.pth``, itself a zip; code of TorchScript is none of them."""
_ROWS: Final = 4096
"""Decisions computed at a time."""

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Network:
    """The part of a policy class that chooses actions, by the names of its weights."""

    layers: str
    """Prefix of the numbered layers; every other number is an activation."""
    head: tuple[str, ...]
    """Output layer; empty where the last numbered layer is the output."""
    unused: tuple[str, ...]
    """Prefixes of weights that no decision depends on."""
    activation: str
    """Default activation of the class."""
    greedy: bool
    """Outputs are action values: play the largest.  Otherwise they are logits: sample."""


_ACTOR: Final = Network(
    "mlp_extractor.policy_net.", ("action_net",), ("mlp_extractor.value_net.", "value_net."), "Tanh", greedy=False
)
NETWORKS: Final = {
    "stable_baselines3.common.policies.ActorCriticPolicy": _ACTOR,  # of PPO, A2C and TRPO
    "sb3_contrib.common.maskable.policies.MaskableActorCriticPolicy": _ACTOR,
    "stable_baselines3.dqn.policies.DQNPolicy": Network("q_net.q_net.", (), ("q_net_target.",), "ReLU", greedy=True),
    "sb3_contrib.qrdqn.policies.QRDQNPolicy": Network(
        "quantile_net.quantile_net.", (), ("quantile_net_target.",), "ReLU", greedy=True
    ),
}
"""Policy classes that can be played."""
ACTIVATIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "LeakyReLU": lambda x: np.maximum(x, np.float32(0.01) * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}
"""Classes of ``torch.nn`` with their default arguments."""


class SB3Policy(FilePolicy, StochasticPolicy):
    """A model of stable-baselines3 or sb3-contrib that was trained on observations of this project.

    Actor-critic models sample from the softmax of their logits over the legal actions; DQN and QR-DQN play the legal action
    with the largest value.

    Args:
        data: the JSON of the file.
        weights: the state of its policy, by name.
        rules: the rules of the game; the model must have their observations and actions.

    Raises:
        ArchieError: for another kind of model, other observations or actions, and weights that do not fit together.
    """

    name = "sb3"

    def __init__(self, data: Mapping[str, Any], weights: Mapping[str, Array], rules: Rules | str = "archie") -> None:
        self.rules = as_rules(rules)
        self.weights = dict(weights)
        self._network = _network(data)
        self._activation = _activation(data, self._network)
        self._integers = _observes_integers(data, self.rules)
        *self._layers, self._head = _layers(self._network, self.weights, width(self.rules), self.rules.actions)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        rows = checked_rows(observations, masks, self.rules)
        result = np.zeros(masks.shape, np.float32)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            outputs, legal = self._outputs(rows[part]), masks[part]
            if self._network.greedy:
                best = np.where(legal != 0, outputs, -np.inf).argmax(axis=1)
                result[part][np.arange(len(best)), best] = 1
            else:
                masked_softmax(outputs, np.zeros((len(outputs), 0), np.int64), legal, result[part])
        return result

    def _outputs(self, rows: NDArray[np.int8]) -> Array:
        """``(n, d) -> (n, a)``: logits or values."""
        x = rows.astype(np.float32) if self._integers else scaled(rows, self.rules)
        with np.errstate(over="ignore", invalid="ignore"):  # found in the result
            for weight, bias in self._layers:
                x = ACTIVATIONS[self._activation](x @ weight + bias)
            outputs: Array = x @ self._head[0] + self._head[1]
        if not np.isfinite(outputs).all():
            raise ArchieError("the network's outputs overflow: expected weights of a size training gives")
        return outputs

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str = "archie") -> SB3Policy:
        """Load a file written by ``model.save(path)``.

        Args:
            path: the zip.
            rules: the rules of the game.

        Raises:
            ArchieError: naming the file, the part at fault and what was expected; nothing in the file is executed.
        """
        rules, now = as_rules(rules), version_of(path)
        try:
            data, weights = _read(Path(path))
            policy = cls(data, weights, rules)
        except ArchieError as error:
            raise ArchieError(f"{path}: {error}") from error.__cause__
        policy.name = f"sb3:{path}"
        note_file(policy, path, now)
        return policy


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON and the weights of a file."""
    expected = "expected a zip that model.save of stable-baselines3 wrote"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ArchieError(f"not a file: {expected}")
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist())
            text, weights = (archive.read(name) for name in _LARGEST)
    except ArchieError:
        raise
    except FileNotFoundError:
        raise ArchieError(f"no such file: {expected}") from None
    except Exception as error:  # a damaged archive fails in more ways than zipfile documents
        raise ArchieError(f"{described(error, place=False)}: {expected}") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArchieError(f"data: {described(error, place=False)}: expected JSON") from None
    if not isinstance(data, dict):
        raise ArchieError(f"data {shown(data)}: expected a table")
    return data, read_weights(weights)


def _check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    for member in members:
        name = shown(member.filename)
        if member.filename not in _MEMBERS or stat.S_ISLNK(member.external_attr >> 16):
            raise ArchieError(f"member {name}: expected plain members {', '.join(_MEMBERS)}")
        if names.count(member.filename) > 1:
            raise ArchieError(f"member {name} is there twice: expected it once")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise ArchieError(f"member {name} is compressed: expected it stored, as model.save does")
        if member.file_size > _LARGEST.get(member.filename, member.file_size):
            raise ArchieError(f"member {name} of {member.file_size:,} bytes: expected at most {_LARGEST[member.filename]:,}")
    for name in _LARGEST:
        if name not in names:
            raise ArchieError(f"no member {name!r}: expected a file written by model.save of stable-baselines3")


def read_weights(content: bytes) -> dict[str, Array]:
    """Return the tensors in the bytes of ``policy.pth`` as float32 arrays by name."""
    try:
        import torch
    except ImportError as error:
        raise ArchieError(f"policy.pth needs torch ({error}): expected pip install 'archie-env[train]'") from error
    expected = "expected a table of float32 tensors, nothing that needs unpickling"
    try:
        _check_records(content)
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        kinds = {(type(tensor), tensor.dtype) for tensor in state.values()}
        if kinds - {(torch.Tensor, torch.float32)}:
            raise ArchieError(f"{shown(kinds)}")
        if sum(tensor.numel() * tensor.element_size() for tensor in state.values()) > len(content):
            raise ArchieError("tensors larger than the file")  # a stride of 0 repeats a number
        arrays = {str(name): tensor.numpy() for name, tensor in state.items()}
    except Exception as error:
        found = error if isinstance(error, ArchieError) else described(error, place=False)
        raise ArchieError(f"policy.pth: {found}: {expected}") from None
    return {name: finite(f"of policy.pth, {name}", array) for name, array in arrays.items()}


def _check_records(content: bytes) -> None:
    """Raise `ArchieError` unless the bytes are a plain zip of tensors whose storages have the declared sizes.

    For anything else torch falls back on older formats; torch before 2.6 runs what it finds in some of them, and reads beyond
    the end of a storage that is smaller than it claims.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename.partition("/")[2]: member for member in archive.infolist()}
        for member in members.values():
            stored = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
            if not (_WEIGHTS_MEMBER.fullmatch(member.filename) and stored):
                raise ArchieError(f"member {shown(member.filename)}")
        if not content.startswith(b"PK\3\4") or archive.read(members["byteorder"]).decode() != sys.byteorder:
            raise ArchieError("not written by torch.save on such a machine")
        program = archive.read(members["data.pkl"])
    pushed: list[tuple[str, Any]] = [
        (code.name, value) for code, value, _ in pickletools.genops(program) if "PUT" not in code.name
    ]
    for i, (code, _) in enumerate(pushed):
        if code == "BINPERSID":  # of a tuple that ends with the key of a storage, its device and its length
            (of_key, key), _, (of_length, length), (of_tuple, _) = pushed[i - 4 : i]
            if (of_key, of_length[:6], of_tuple) != ("BINUNICODE", "BININT", "TUPLE"):
                raise ArchieError("a storage without a key and a length")
            size = members[f"data/{key}"].file_size
            if size != 4 * length:
                raise ArchieError(f"storage {shown(key)} has {size:,} bytes for {length:,} numbers")


def _entry(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    entry = data.get(name)
    if not isinstance(entry, dict):
        raise ArchieError(f"data: {name} {shown(entry)}: expected a table")
    return entry


def _network(data: Mapping[str, Any]) -> Network:
    """Return the network of the policy class, which the JSON names by its module and its ``__init__``."""
    entry = _entry(data, "policy_class")
    match = re.match(r"<function (\w+)\.__init__ at ", str(entry.get("__init__")))
    name = f"{entry.get('__module__')}.{match[1] if match else '(no __init__)'}"
    if name not in NETWORKS:
        raise ArchieError(f"data: policy_class {shown(name)}: expected MlpPolicy, one of {', '.join(NETWORKS)}")
    extractor = _entry(data, "policy_kwargs").get("features_extractor_class", "FlattenExtractor'>")
    if not str(extractor).endswith("FlattenExtractor'>"):
        raise ArchieError(f"data: features_extractor_class {shown(extractor)}: expected none, or FlattenExtractor")
    return NETWORKS[name]


def _activation(data: Mapping[str, Any], network: Network) -> str:
    found = _entry(data, "policy_kwargs").get("activation_fn")
    name = network.activation if found is None else str(found).removeprefix("<class 'torch.nn.modules.activation.")[:-2]
    if name not in ACTIVATIONS:
        raise ArchieError(f"data: activation_fn {shown(found)}: expected one of {', '.join(ACTIVATIONS)} of torch.nn")
    return name


def _observes_integers(data: Mapping[str, Any], rules: Rules) -> bool:
    """Check both spaces of the model; return whether it was trained on int8 observations."""
    space, actions = _entry(data, "observation_space"), _entry(data, "action_space")
    kinds = [str(entry.get(":type:")).rpartition(".")[2].removesuffix("'>") for entry in (space, actions)]
    shape = re.fullmatch(r"[\[(](\d{1,9}),?[\])]", str(space.get("_shape")))
    if kinds[0] != "Box" or shape is None or int(shape[1]) != width(rules):
        found = f"{kinds[0]} of shape {shown(space.get('_shape'))}"
        raise ArchieError(
            f"data: observation_space {found}: expected Box of shape ({width(rules)},) under rules {rules.name!r}"
        )
    if space.get("dtype") not in ("float32", "int8"):
        raise ArchieError(f"data: observation_space of dtype {shown(space.get('dtype'))}: expected float32 or int8")
    if kinds[1] != "Discrete" or str(actions.get("n")) != str(rules.actions) or str(actions.get("start", 0)) != "0":
        found = f"{kinds[1]} of {shown(actions.get('n'))} from {shown(actions.get('start'))}"
        raise ArchieError(f"data: action_space {found}: expected Discrete of {rules.actions} from 0 under rules {rules.name!r}")
    return bool(space["dtype"] == "int8")


def _layers(network: Network, weights: Mapping[str, Array], inputs: int, actions: int) -> list[tuple[Array, Array]]:
    """Return ``(inputs, units)`` weights and ``(units,)`` biases of each layer; quantiles are averaged to values."""
    used = {name for name in weights if not name.startswith(network.unused)}
    hidden = sum(name.startswith(network.layers) for name in used) // 2
    stages = [*(f"{network.layers}{2 * i}" for i in range(hidden)), *network.head]
    expected = [f"{stage}.{part}" for stage in stages for part in ("weight", "bias")]
    if not stages or used != set(expected):
        odd = ", ".join(sorted(used ^ set(expected))[:3]) or "none"
        raise ArchieError(f"policy.pth: weights {shown(odd)}: expected a perceptron {network.layers}0, 2, ... {network.head}")
    layers = []
    for stage in stages:
        weight, bias = weights[f"{stage}.weight"], weights[f"{stage}.bias"]
        if weight.ndim != 2 or weight.shape[1] != inputs or bias.shape != weight.shape[:1]:
            raise ArchieError(f"policy.pth: {stage} {weight.shape} and {bias.shape}: expected (units, {inputs}) and (units,)")
        inputs = len(weight)
        layers.append((np.ascontiguousarray(weight.T), bias))
    quantiles, rest = divmod(inputs, actions)
    if rest or not quantiles or (quantiles > 1 and "quantile" not in network.layers):
        raise ArchieError(f"policy.pth: {stages[-1]} has {inputs} outputs: expected {actions}")
    weight, bias = layers.pop()
    means = weight.reshape(-1, quantiles, actions).mean(axis=1), bias.reshape(quantiles, actions).mean(axis=0)
    return [*layers, means]
