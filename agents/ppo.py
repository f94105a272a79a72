"""A trained network as a player: weights from a small file, inference in NumPy, so that playing needs no torch.

The file is an ``.npz`` archive of float32 arrays and one JSON text; no pickle is ever read.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.hand_features import FEATURES, KEEPS, HandReader
from archie_env._core.state import DISCARD
from archie_env._jit import kernel
from archie_env.errors import ArchieError
from archie_env.observation import highest, unscaled, width
from archie_env.policy import Actions, Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rules import Rules, as_rules

FORMAT: Final = "archie-env ppo policy"
VERSION: Final = 1
_ROWS = 4096
"""Decisions computed at a time: what they need stays in the cache."""

Weights = Mapping[str, NDArray[np.float32]]
"""``layer0.weight (inputs, units)``, ``layer0.bias``, ..., ``head.weight (units, actions + slots)``, ``head.bias``."""


@kernel
def masked_softmax(logits: Any, keeps: Any, masks: Any, probabilities: Any) -> None:
    """Add each slot's logit to the discard it names, then the softmax over legal actions.

    ``logits`` ``(n, actions + slots)`` is written to; ``keeps`` ``(n, slots)`` holds discard bits.
    """
    actions = masks.shape[1]
    for i in range(len(logits)):
        for k in range(keeps.shape[1]):
            logits[i, DISCARD + keeps[i, k]] += logits[i, actions + k]
        top = np.float32(-np.inf)
        for a in range(actions):
            if masks[i, a]:
                top = max(top, logits[i, a])
        total = np.float32(0)
        for a in range(actions):
            probabilities[i, a] = np.exp(logits[i, a] - top) if masks[i, a] else np.float32(0)
            total += probabilities[i, a]
        for a in range(actions):
            probabilities[i, a] /= total


class PPOPolicy(StochasticPolicy):
    """A network's decisions.

    Args:
        weights: see `Weights`.
        meta: ``hand_features`` and ``slots`` (bool) say what the network is built of; anything else is kept for the reader.
        rules: what it plays.
        greedy: take the likeliest action instead of drawing one.
    """

    name = "ppo"

    def __init__(self, weights: Weights, meta: Mapping[str, Any], rules: Rules | str = "archie", greedy: bool = False) -> None:
        self.rules = as_rules(rules)
        self.meta = dict(meta)
        self.greedy = greedy
        self.weights = {name: np.ascontiguousarray(array, np.float32) for name, array in weights.items()}
        self._reader = HandReader(self.rules)
        self._features, self._slots = bool(self.meta["hand_features"]), bool(self.meta["slots"])
        self._scale = (1 / highest(self.rules)).astype(np.float32)
        self._layers = [
            (self.weights[f"layer{i}.weight"], self.weights[f"layer{i}.bias"])
            for i in range(sum(name.startswith("layer") for name in self.weights) // 2)
        ]
        self._head = self.weights["head.weight"], self.weights["head.bias"]
        self._check_shapes()

    def _check_shapes(self) -> None:
        inputs = width(self.rules) + FEATURES * self._features
        for weight, bias in [*self._layers, self._head]:
            if weight.ndim != 2 or len(weight) != inputs or bias.shape != weight.shape[1:]:
                raise ArchieError(f"weights {weight.shape} and {bias.shape}: expected ({inputs}, units) and (units,)")
            inputs = weight.shape[1]
        outputs = self.rules.actions + len(KEEPS) * self._slots
        if inputs != outputs:
            raise ArchieError(f"the head has {inputs} outputs: expected {outputs}")

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        rows = unscaled(observations, self.rules)
        result = np.empty(masks.shape, np.float32)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            self._fill(rows[part], masks[part], result[part])
        if self.greedy:
            best = result.argmax(axis=1)
            result[:] = 0
            result[np.arange(len(result)), best] = 1
        return result

    def _fill(self, rows: NDArray[np.int8], masks: Masks, result: Probabilities) -> None:
        features, keeps = self._reader(rows)
        x = np.empty((len(rows), len(self._layers[0][0])), np.float32)
        np.multiply(rows, self._scale, out=x[:, : rows.shape[1]])
        if self._features:
            x[:, rows.shape[1] :] = features
        for weight, bias in self._layers:
            x = x @ weight
            x += bias
            np.maximum(x, 0, out=x)
        logits = x @ self._head[0] + self._head[1]
        masked_softmax(logits, keeps if self._slots else keeps[:, :0], masks, result)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        if self.greedy:
            best: Actions = self.probabilities(observations, masks).argmax(axis=1)
            return best
        return super().act(observations, masks, rng)

    def save(self, path: str | Path) -> None:
        """Write the file `load` reads, whole or not at all."""
        meta = self.meta | {"format": FORMAT, "version": VERSION, "rules": self.rules.to_dict()}
        write_archive(path, self.weights, meta)

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str | None = None, greedy: bool = False) -> PPOPolicy:
        """A policy from its file.

        Args:
            path: what `save` wrote.
            rules: what will be played; the file must be for the same.  None takes the file's.
            greedy: take the likeliest action instead of drawing one.

        Raises:
            ArchieError: for a file that is not ours, broken, of another version or for other rules.
        """
        arrays, meta = read_archive(path, FORMAT, VERSION)
        trained = Rules.from_dict(meta["rules"])
        if rules is not None and as_rules(rules) != trained:
            raise ArchieError(f"{path}: trained for rules {trained.name}, expected {as_rules(rules).name}")
        try:
            return cls(arrays, meta, trained, greedy)
        except KeyError as missing:
            raise ArchieError(f"{path}: {missing} is missing, expected the weights of a ppo policy") from None
        except ArchieError as error:
            raise ArchieError(f"{path}: {error}") from None


def write_archive(path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write arrays and a JSON-able ``meta`` as ``.npz``, whole or not at all: a reader never sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{"meta": text, **arrays})  # type: ignore[arg-type]  # savez's stub takes no keyword arrays
    temporary = path.with_name(f".{path.name}.partial")  # one name, so that what a killed writer left is written over
    try:
        with temporary.open("wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_archive(path: str | Path, form: str, version: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the ``meta`` of a file of `write_archive`, refused unless it is whole and of this form and version."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        found = meta["format"], meta["version"]
    except FileNotFoundError:
        raise ArchieError(f"{path}: no such file, expected one of {form!r}") from None
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise ArchieError(f"{path}: not a whole file of {form!r} ({type(error).__name__}: {error})") from None
    if found != (form, version):
        raise ArchieError(f"{path}: {found[0]!r} version {found[1]!r}, expected {form!r} version {version}")
    return arrays, meta
