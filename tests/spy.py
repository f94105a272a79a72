"""A player that walks through everything reachable from what it is handed."""

from __future__ import annotations

import gc
import inspect
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.validation import seed_word

_LEAVES = ModuleType | type | FunctionType | BuiltinFunctionType | MethodType | FrameType | CodeType


def reachable(*roots: object) -> list[object]:
    """What attributes, items and references lead to; not classes and functions, through which every module is reached."""
    found: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in found or isinstance(one, _LEAVES):
            continue
        found[id(one)] = one
        if isinstance(one, np.ndarray):
            waiting.append(one.base)
        elif isinstance(one, memoryview):
            waiting.append(one.obj)
        else:
            waiting += gc.get_referents(one)
            for name in ("bit_generator", "seed_seq", "state", "entropy", "spawn_key", "pool", "lock", "_legacy_seeding"):
                part = inspect.getattr_static(one, name, None)
                waiting.append(getattr(one, name, None) if part is not None else None)
            if isinstance(one, np.random.BitGenerator | np.random.Generator | np.random.SeedSequence):
                waiting.append(one.__reduce__())
    return list(found.values())


class Spy:
    """Checks or calls, and keeps the numbers and arrays that it can reach."""

    name = "spy"

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.arrays: list[np.ndarray] = []
        self.generators = 0

    def look(self, *handed: Any) -> None:
        given = {id(one) for one in handed}
        for one in reachable(*handed):
            if isinstance(one, np.ndarray) and id(one) not in given:
                self.arrays.append(one)
                self.numbers.update(map(int, one.ravel().tolist()))
            elif isinstance(one, int) and not isinstance(one, bool):
                self.numbers.update((one, one & (2**64 - 1), one >> 64))
            elif isinstance(one, bytes):
                self.numbers.add(int.from_bytes(one, "big"))

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.look(observations, masks, rng)
        self.generators += 1
        return np.where(masks[:, 1] == 1, 1, 3)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        self.look(observations, masks)
        chances = np.zeros(masks.shape, np.float32)
        chances[np.arange(len(masks)), np.where(masks[:, 1] == 1, 1, 3)] = 1
        return chances

    def check(self, seeds: set[int]) -> None:
        """Assert that it found no seed in these, nothing from which one follows, and no memory but its own rows'."""
        words = {int(seed_word(seed)) for seed in seeds}
        assert not self.numbers & (seeds | words)
        assert not {int(seed_word(number)) for number in self.numbers if number >= 0} & words
        rows = [array for array in self.arrays if array.dtype in (np.int8, np.float32) or array.size > 100]
        assert not rows
