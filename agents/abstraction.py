"""What a table strategy tells apart: classes of hands, of discards and of the public past, as plain arrays.

`training.cfr.abstraction` makes them, the file of a strategy carries them, and whoever plays it needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents import _cfr_kernels
from agents._cfr_kernels import (
    ABSTRACTION,
    CLASSES,
    CLOSED,
    FIRST,
    FOLDED,
    LAST_RAISERS,
    LATER,
    LEVELS,
    NO_SLOT,
    NODES,
    SHUT,
    SLOTS,
    THROWN,
)
from archie_env._core.state import BIG_BLIND, CALL, DEALER, FOLD, RAISE
from archie_env.errors import ArchieError
from archie_env.rules import Rules

Ints = NDArray[np.int64]

PARTS: Final[Mapping[str, tuple[int, ...]]] = {
    "early": (CLASSES,),
    "final": (CLASSES,),
    "slots": (CLASSES, SLOTS),
    "pot": (4, LEVELS),
    "raiser": (4, 2, LAST_RAISERS),
    "own": (4, THROWN),
    "other": (4, THROWN),
}
"""The arrays of an abstraction and their shapes.  All but ``slots`` hold classes from 0."""


def has_tables(rules: Rules) -> bool:
    """Whether table strategies have a place for these rules."""
    return rules.draws >= 1 and rules.draw_order == "simultaneous"


def check_rules(rules: Rules) -> None:
    """Raise `ArchieError` for rules that table strategies have no place for."""
    if not has_tables(rules):
        raise ArchieError(
            f"rules {rules.name}: draws {rules.draws}, draw_order {rules.draw_order!r}: expected simultaneous draws, at least 1"
        )


def betting(rules: Rules, kind: int) -> dict[str, Ints]:
    """The betting of one round as nodes, parents first.

    Args:
        rules: what is played.
        kind: ``FIRST`` (the big blind counts as a bet, the dealer begins) or ``LATER``.

    Returns:
        ``next (NODES, 3)``, ``actor``, ``place`` and ``wagers`` ``(NODES,)``; see `ABSTRACTION`.
    """
    table = {name: np.zeros(NODES, np.int64) for name in ("actor", "place", "wagers")}
    table["next"] = np.full((NODES, 3), SHUT, np.int64)
    first = DEALER if kind == FIRST else BIG_BLIND
    places = [0, 0]
    paths: list[tuple[int, ...]] = [()]
    for node, path in enumerate(paths):  # it grows
        actor = first if len(path) % 2 == 0 else 1 - first
        wagers = path.count(RAISE) + (kind == FIRST)
        owes = RAISE in path or (kind == FIRST and not path and rules.stakes.blinds[0] < rules.stakes.blinds[1])
        table["actor"][node], table["wagers"][node], table["place"][node] = actor, wagers, places[actor]
        places[actor] += 1
        if owes:
            table["next"][node, FOLD] = FOLDED
        following = {CALL: not path, RAISE: wagers < rules.raise_cap}
        table["next"][node, CALL] = CLOSED
        for action, goes_on in following.items():
            if goes_on:
                table["next"][node, action] = len(paths)
                paths.append((*path, action))
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Abstraction:
    """Arrays of `PARTS`, and the record of them that kernels read."""

    rules: Rules
    parts: Mapping[str, NDArray[Any]]
    record: NDArray[np.void]
    """``(1,)`` of `ABSTRACTION`."""
    bet_blocks: int
    draw_blocks: int

    @classmethod
    def of(cls, rules: Rules, parts: Mapping[str, NDArray[Any]]) -> Abstraction:
        """From arrays, checked: a kernel would read other memory through wrong ones.

        Raises:
            ArchieError: naming the array and what was expected.
        """
        check_rules(rules)
        for name, shape in PARTS.items():
            if name not in parts:
                raise ArchieError(f"{name} is missing: expected a whole abstraction")
            array = parts[name]
            if array.shape != shape or array.dtype.kind not in "iu":
                raise ArchieError(f"{name} {array.shape} of type {array.dtype}: expected whole numbers {shape}")
            if array.min() < 0:
                raise ArchieError(f"{name} holds {array.min()}: expected classes from 0")
        slots = parts["slots"].astype(np.int64)
        thrown = np.bitwise_count(slots)
        good = (slots == NO_SLOT) | ((slots < 2**rules.hand_size) & (thrown <= rules.max_discard))
        if not good.all() or slots[:, 0].any():
            raise ArchieError(
                f"slots: expected 0 (stand pat) first, then discards of at most {rules.max_discard} of {rules.hand_size} cards"
            )
        record = np.zeros(1, ABSTRACTION)
        a = record[0]
        a["rounds"], a["hand_size"], a["cap"] = rules.rounds, rules.hand_size, rules.raise_cap + 2
        a["suited"] = rules.flushes and rules.hand_size == 5
        a["blinds"], a["bet"][: rules.rounds] = rules.stakes.blinds, rules.stakes.bets
        for kind in (FIRST, LATER):
            for name, values in betting(rules, kind).items():
                a[name][kind] = values
            a["legal"][kind] = (a["next"][kind] != SHUT) @ (1 << np.arange(3))
            a["nodes"][kind] = np.count_nonzero(a["next"][kind, :, CALL] != SHUT)
        a["width"] = -(-3 * (a["place"].max() + 1) // 4) * 4
        for name in ("pot", "raiser", "own", "other"):
            a[name] = parts[name]
            a[f"{name}s"] = parts[name].reshape(4, -1).max(axis=1) + 1
        a["buckets"] = parts["early"].max() + 1, parts["final"].max() + 1
        blocks = 0
        for r in range(rules.rounds):
            a["bet_start"][r] = blocks
            own = 2 * int(a["pots"][r] * a["raisers"][r] * a["owns"][r] * a["others"][r])
            blocks += own * int(a["buckets"][int(r == rules.draws)])
        draw_blocks = 0
        for r in range(rules.draws):
            a["draw_start"][r] = draw_blocks
            own = 2 * int(a["pots"][r + 1] * a["raisers"][r + 1] * a["owns"][r] * a["others"][r])
            draw_blocks += own * int(a["buckets"][0])
        kept: dict[str, NDArray[Any]] = {
            "early": parts["early"].astype(np.int32),
            "final": parts["final"].astype(np.int32),
            "slots": parts["slots"].astype(np.uint8),
            **{name: parts[name].astype(np.int16) for name in ("pot", "raiser", "own", "other")},
        }
        return cls(rules, kept, record, blocks, draw_blocks)

    @property
    def width(self) -> int:
        """Entries of a betting block: fold, call, raise at each node of one player."""
        return int(self.record[0]["width"])

    @property
    def hands(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """``early``, ``final`` and ``slots``, as kernels take them."""
        return self.parts["early"], self.parts["final"], self.parts["slots"]

    @property
    def information_sets(self) -> int:
        """Decisions told apart; some are never reached."""
        nodes = 0
        a = self.record[0]
        for r in range(self.rules.rounds):
            kind = FIRST if r == 0 else LATER
            blocks = (a["bet_start"][r + 1] if r < self.rules.draws else self.bet_blocks) - a["bet_start"][r]
            nodes += int(blocks) // 2 * int(a["nodes"][kind])
        return nodes + self.draw_blocks


def classify(hands: NDArray[np.int64], rules: Rules) -> Ints:
    """``(n, 5)`` ascending hands, empty places 52 -> ``(n,)`` classes."""
    found = np.empty(len(hands), np.int64)
    _cfr_kernels.classify_hands(np.ascontiguousarray(hands), bool(rules.flushes and rules.hand_size == 5), found)
    return found
