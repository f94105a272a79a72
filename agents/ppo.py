"""Trained networks as policies.  Inference is in NumPy, so playing needs no torch.

Weights come from an ``.npz`` archive of float32 arrays and one JSON string; pickles are never read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.archive import FilePolicy, Header, Meta, found, frozen, load_player, rules_of, write_archive
from agents.hand_features import FEATURES, KEEPS, HandReader
from agents.rows import checked_rows
from archie_env._core.jit import kernel
from archie_env._core.state import DISCARD
from archie_env.errors import ArchieError, shown
from archie_env.observation import field, highest, width
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rules import Rules, as_rules

FORMAT: Final = "archie-env ppo policy"
VERSION: Final = 1
_ROWS = 512
"""Decisions computed at a time, so that their activations stay in the cache."""

Weights = Mapping[str, NDArray[np.float32]]
"""``layer0.weight (inputs, units)``, ``layer0.bias``, ..., ``head.weight (units, actions + slots)``, ``head.bias``."""


@kernel
def masked_softmax(logits: Any, keeps: Any, masks: Any, probabilities: Any) -> None:
    """Add each slot's logit to its discard, then write the softmax over legal actions into ``probabilities``.

    ``logits`` ``(n, actions + slots)`` is modified; ``keeps`` ``(n, slots)`` holds the discard bits of each slot.
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


@kernel
def sparse_layer(rows: Any, scale: Any, features: Any, weight: Any, bias: Any, outputs: Any) -> None:
    """Write the first layer and its ReLU into ``outputs`` ``(n, units)``.

    Inputs are the rows times ``scale``, then the features.  Nine of ten are 0, so the weights of the others are gathered, eight
    at a time, where a product of matrices would read all.
    """
    entries, units = rows.shape[1], weight.shape[1]
    index, value = np.empty(len(weight) + 7, np.int32), np.empty(len(weight) + 7, np.float32)
    total = np.empty(units, np.float32)  # an array of its own, which the compiler knows to share no memory
    for i in range(len(rows)):
        row, n = rows[i], np.int64(0)
        for j in range(entries):  # written always, and kept where the entry is not 0: a branch costs more
            index[n] = j
            n += np.int64(row[j] != 0)
        for q in range(n):
            value[q] = row[index[q]] * scale[index[q]]
        for j in range(features.shape[1]):
            index[n], value[n] = entries + j, features[i, j]
            n += np.int64(features[i, j] != 0)
        while n % 8:
            index[n], value[n] = 0, 0
            n += 1
        for k in range(units):
            total[k] = bias[k]
        for q in range(0, n, 8):
            v0, v1, v2, v3 = value[q], value[q + 1], value[q + 2], value[q + 3]
            v4, v5, v6, v7 = value[q + 4], value[q + 5], value[q + 6], value[q + 7]
            w0, w1, w2, w3 = weight[index[q]], weight[index[q + 1]], weight[index[q + 2]], weight[index[q + 3]]
            w4, w5, w6, w7 = weight[index[q + 4]], weight[index[q + 5]], weight[index[q + 6]], weight[index[q + 7]]
            for k in range(units):
                first, second = (v0 * w0[k] + v1 * w1[k]) + (v2 * w2[k] + v3 * w3[k]), v4 * w4[k] + v5 * w5[k]
                total[k] += first + (second + (v6 * w6[k] + v7 * w7[k]))
        for k in range(units):
            outputs[i, k] = np.float32(0) if total[k] <= 0 else total[k]  # NaN stays, to be found


@kernel
def first_without_card(slots: Any, ranks: Any) -> Any:
    """Index of the first row of ``slots`` ``(n, slots, ranks + suits)`` that shows no one rank and suit in each slot, or -1."""
    for i in range(len(slots)):
        for slot in range(slots.shape[1]):
            entries, shown = slots[i, slot], 0
            for j in range(len(entries)):
                shown += (entries[j] != 0) << (8 * (j >= ranks))
            if shown != 0x101:
                return i
    return -1


class PPOPolicy(FilePolicy, StochasticPolicy):
    """Samples actions from the output of a network.

    Args:
        weights: see `Weights`.
        meta: ``hand_features`` and ``slots`` (bool) give the architecture; other entries are kept as they are.
        rules: the rules of the game.
        greedy: take the most probable action instead of sampling.

    Raises:
        ArchieError: for a ``meta`` without the architecture, and for weights that are not finite or do not fit it.
    """

    name = "ppo"
    _own = ("name", "greedy")

    def __init__(self, weights: Weights, meta: Mapping[str, Any], rules: Rules | str = "archie", greedy: bool = False) -> None:
        self.rules = as_rules(rules)
        self.meta = dict(meta)
        self.greedy = greedy
        for name in ("hand_features", "slots"):
            if not isinstance(self.meta.get(name), bool):
                raise ArchieError(f"{name} {found(self.meta, name)}: expected true or false")
        self.weights = {name: finite(name, array) for name, array in weights.items()}
        self._reader = HandReader(self.rules)
        self._features, self._slots = self.meta["hand_features"], self.meta["slots"]
        self._slot_block = field(self.rules, "slots")
        self._scale = (1 / highest(self.rules)).astype(np.float32)
        stages = [f"layer{i}" for i in range(max(1, (len(self.weights) - 1) // 2))] + ["head"]
        expected = [f"{stage}.{part}" for stage in stages for part in ("weight", "bias")]
        if set(self.weights) != set(expected):
            raise ArchieError(f"weights {', '.join(sorted(self.weights)) or 'none'}: expected {', '.join(expected)}")
        *self._layers, self._head = [(self.weights[f"{s}.weight"], self.weights[f"{s}.bias"]) for s in stages]
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
        """See `Policy.probabilities`; raises `ArchieError` for rows of other rules and masks without a legal action."""
        rows = checked_rows(observations, masks, self.rules)
        self._check_slots(rows)
        result = np.empty(masks.shape, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # found in the result
            for start in range(0, len(rows), _ROWS):
                part = slice(start, start + _ROWS)
                self._fill(rows[part], masks[part], result[part])
        if not np.isfinite(result).all():
            raise ArchieError("NaN probabilities, the network's outputs overflow: expected weights of a size training gives")
        if self.greedy:
            best = result.argmax(axis=1)
            result[:] = 0
            result[np.arange(len(result)), best] = 1
        return result

    def _check_slots(self, rows: NDArray[np.int8]) -> None:
        """Raise `ArchieError` unless every slot shows exactly one card: the kernels index tables by the cards."""
        row = first_without_card(self._slot_block.of(rows), len(self.rules.ranks))
        if row >= 0:
            raise ArchieError(f"observations[{row}]: no row of rules {self.rules.name!r}: expected one card in each slot")

    def _fill(self, rows: NDArray[np.int8], masks: Masks, result: Probabilities) -> None:
        features, keeps = self._reader(rows)
        (weight, bias), *others = self._layers
        x = np.empty((len(rows), weight.shape[1]), np.float32)
        sparse_layer(rows, self._scale, features if self._features else features[:, :0], weight, bias, x)
        for weight, bias in others:
            x = x @ weight
            x += bias
            np.maximum(x, 0, out=x)
        logits = x @ self._head[0] + self._head[1]
        masked_softmax(logits, keeps if self._slots else keeps[:, :0], masks, result)

    def save(self, path: str | Path) -> None:
        """Write a file for `load`, atomically."""
        meta = self.meta | {"format": FORMAT, "version": VERSION, "rules": self.rules.to_dict()}
        write_archive(path, self.weights, meta)

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str | None = None, greedy: bool = False) -> PPOPolicy:
        """Load a policy from its file.

        Args:
            path: a file that `save` wrote.
            rules: the rules of the game, which must be those of the file; None takes the rules of the file.
            greedy: take the most probable action instead of sampling.

        Raises:
            ArchieError: for a file of another kind or version, a damaged file, or one for other rules.
        """
        return load_player(path, FORMAT, VERSION, rules, lambda arrays, meta: cls(arrays, meta, rules_of(meta), greedy), _check)


def _check(headers: Mapping[str, Header], meta: Meta) -> None:
    """Raise `ArchieError` for the headers of a file that is no policy."""
    for name, header in headers.items():
        if not re.fullmatch(r"(layer\d{1,3}|head)\.(weight|bias)", name):
            raise ArchieError(f"unknown array {shown(name)}: expected layer0.weight, layer0.bias, ..., head.weight, head.bias")
        if header.dtype.kind not in "fiu" or len(header.shape) > 2:
            raise ArchieError(f"weights {name} {header}: expected float32 (inputs, units) or (units,)")


def finite(name: str, array: Any) -> NDArray[np.float32]:
    """Return weights as float32; raises `ArchieError` for anything but finite numbers."""
    found = np.asarray(array)
    if found.dtype.kind not in "fiu":
        raise ArchieError(f"weights {name} of type {found.dtype}: expected float32")
    with np.errstate(over="ignore"):
        weights = np.ascontiguousarray(found, np.float32)
    if not np.isfinite(weights).all():
        raise ArchieError(f"weights {name}: {int((~np.isfinite(weights)).sum())} are nan or infinite: expected finite numbers")
    return frozen(weights)
