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
_ROWS = 4096
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
        slots, ranks = self._slot_block.of(rows) != 0, len(self.rules.ranks)
        whole = (slots[:, :, :ranks].sum(axis=2) == 1) & (slots[:, :, ranks:].sum(axis=2) == 1)
        if not whole.all():
            row = int(whole.all(axis=1).argmin())
            raise ArchieError(f"observations[{row}]: no row of rules {self.rules.name!r}: expected one card in each slot")

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
