"""The abstraction of a table strategy as plain arrays: classes of hands, discard options and classes of the public past.

`training.cfr.abstraction` builds the arrays, and the file of a strategy holds them, so that nothing else is needed to play it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents import _cfr_kernels
from agents._cfr_kernels import (
    ABSTRACTION,
    CLASSES,
    CLOSED,
    DISCARD_HISTORIES,
    FIRST,
    FOLDED,
    LATER,
    NO_OPTION,
    NODES,
    OPTIONS,
    POT_LEVELS,
    RAISER_HISTORIES,
    SHUT,
)
from agents.archive import Header, frozen
from archie_env._core.state import CALL, DISCARD, RAISE
from archie_env.betting_tree import NO_CHILD, walk
from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.rules import Rules

Ints = NDArray[np.int64]

PARTS: Final[Mapping[str, tuple[int, ...]]] = {
    "early": (CLASSES,),
    "final": (CLASSES,),
    "slots": (CLASSES, OPTIONS),
    "pot": (4, POT_LEVELS),
    "raiser": (4, 2, RAISER_HISTORIES),
    "own": (4, DISCARD_HISTORIES),
    "other": (4, DISCARD_HISTORIES),
}
"""The arrays of an abstraction in its file, with their shapes.

``early`` and ``final`` hold the buckets of hands before a draw and at the showdown, ``slots`` the discard options of a hand as
bits.  The others hold classes of the public past: of pots, last raisers, own and other discard counts.
"""
_MOST: Final[Mapping[str, int]] = {
    "early": CLASSES - 1,
    "final": CLASSES - 1,
    "slots": NO_OPTION,
    "pot": POT_LEVELS - 1,
    "raiser": RAISER_HISTORIES - 1,
    "own": DISCARD_HISTORIES - 1,
    "other": DISCARD_HISTORIES - 1,
}
"""The largest value of each array: there can't be more classes than entries."""
_KINDS: Final[Mapping[str, type[np.integer[Any]]]] = {
    "early": np.int32,
    "final": np.int32,
    "slots": np.uint8,
    "pot": np.int16,
    "raiser": np.int16,
    "own": np.int16,
    "other": np.int16,
}
"""The type of each array in memory."""


def has_tables(rules: Rules) -> bool:
    """Whether table strategies can hold these rules."""
    return rules.draws >= 1 and rules.draw_order == "simultaneous"


def check_rules(rules: Rules) -> None:
    """Raise `ArchieError` for rules that table strategies can't hold."""
    if not has_tables(rules):
        raise ArchieError(
            f"rules {rules.name}: draws {rules.draws}, draw_order {rules.draw_order!r}: expected simultaneous draws, at least 1"
        )


@functools.cache
def betting(rules: Rules, kind: int) -> dict[str, Ints]:
    """Number the nodes of a betting round, which the engine plays out, breadth first.

    Args:
        rules: the rules of the game.
        kind: ``FIRST`` (the big blind counts as a bet, the dealer begins) or ``LATER``.

    Returns:
        ``next (NODES, 3)``, ``actor``, ``place`` and ``wagers`` ``(NODES,)``; see `ABSTRACTION`.  Not to be written to.
    """
    game = Game(rules, seed=0, dealer=0)
    if kind == LATER:
        while game.round == 0 or game.drawing:
            game.apply(DISCARD if game.drawing else CALL)
    tree = walk(game, 0)
    order = sorted(range(len(tree.path)), key=lambda node: (len(tree.path[node]), tree.path[node]))
    number = {node: n for n, node in enumerate(order)}
    table = {name: np.zeros(NODES, np.int64) for name in ("actor", "index", "wagers")}
    table["next"] = np.full((NODES, 3), SHUT, np.int64)
    for n, node in enumerate(order):
        table["actor"][n] = tree.player[node]
        table["index"][n] = np.count_nonzero(tree.player[order[:n]] == tree.player[node])
        table["wagers"][n] = tree.path[node].count(RAISE) + (kind == FIRST)
        for action in np.flatnonzero(tree.child[node] != NO_CHILD):
            child = int(tree.child[node, action])
            if child >= 0:
                table["next"][n, action] = number[child]
            else:
                table["next"][n, action] = FOLDED if tree.folder[-1 - child] >= 0 else CLOSED
    return table


def check_header(name: str, header: Header | NDArray[Any]) -> None:
    """Raise `ArchieError` unless an array of `PARTS` has its shape and a type of whole numbers."""
    if header.shape != PARTS[name] or header.dtype.kind not in "iu":
        raise ArchieError(f"{name} {header.shape} of type {header.dtype}: expected whole numbers {PARTS[name]}")


def _check_parts(rules: Rules, parts: Mapping[str, NDArray[Any]]) -> None:
    """Raise `ArchieError` for values out of range; this must precede a cast, which would wrap them into it."""
    for name in PARTS:
        if name not in parts:
            raise ArchieError(f"{name} is missing: expected a whole abstraction")
        array = parts[name]
        check_header(name, array)
        least, most = int(array.min()), int(array.max())
        if least < 0 or most > _MOST[name]:
            raise ArchieError(f"{name} holds {least} to {most}: expected 0 to {_MOST[name]}")
    slots = parts["slots"].astype(np.uint8)
    fits = (slots == NO_OPTION) | ((slots < 2**rules.hand_size) & (np.bitwise_count(slots) <= rules.max_discard))
    if not fits.all() or slots[:, 0].any():
        raise ArchieError(
            f"slots: expected 0 (stand pat) first, then discards of at most {rules.max_discard} of {rules.hand_size} cards"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Abstraction:
    """Checked arrays of `PARTS`, and the record of them that kernels read; all are read-only."""

    rules: Rules
    parts: Mapping[str, NDArray[Any]]
    record: NDArray[np.void]
    """``(1,)`` of `ABSTRACTION`."""
    bet_blocks: int
    draw_blocks: int

    @classmethod
    def of(cls, rules: Rules, parts: Mapping[str, NDArray[Any]]) -> Abstraction:
        """Check arrays and make an abstraction of them.

        Files may come from strangers, and a wrong index would let kernels read foreign memory.  So every value is checked
        before it is cast, and products are computed in Python ints.

        Raises:
            ArchieError: naming the array and what was expected.
        """
        check_rules(rules)
        _check_parts(rules, parts)
        kept = {name: frozen(parts[name].astype(kind)) for name, kind in _KINDS.items()}
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
        a["width"] = -(-3 * (a["index"].max() + 1) // 4) * 4
        sizes: dict[str, list[int]] = {}
        for name in ("pot", "raiser", "own", "other"):
            a[name] = kept[name]
            sizes[name] = [int(classes.max()) + 1 for classes in kept[name]]
            a[f"{name}s"] = sizes[name]
        buckets = int(kept["early"].max()) + 1, int(kept["final"].max()) + 1
        a["buckets"] = buckets

        def blocks(r: int, after: int, buckets: int) -> int:
            """Number of blocks of a decision after r draws, with the pots and raisers of round ``after``, in Python ints."""
            return 2 * sizes["pot"][after] * sizes["raiser"][after] * sizes["own"][r] * sizes["other"][r] * buckets

        bet_blocks = [blocks(r, r, buckets[r == rules.draws]) for r in range(rules.rounds)]
        draw_blocks = [blocks(r, r + 1, buckets[0]) for r in range(rules.draws)]
        a["bet_start"][: rules.rounds] = [0, *accumulate(bet_blocks[:-1])]
        a["draw_start"][: rules.draws] = [0, *accumulate(draw_blocks[:-1])]
        record.setflags(write=False)
        return cls(rules, kept, record, sum(bet_blocks), sum(draw_blocks))

    def __deepcopy__(self, memo: dict[int, Any]) -> Abstraction:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return Abstraction.of, (self.rules, dict(self.parts))  # unpickled arrays are writable and unchecked

    @property
    def width(self) -> int:
        """Entries of a betting block: fold, call, raise at each node of one player."""
        return int(self.record[0]["width"])

    @property
    def hands(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Draw buckets ``(classes,)``, showdown buckets ``(classes,)`` and discard options ``(classes, 8)``, for kernels."""
        return self.parts["early"], self.parts["final"], self.parts["slots"]

    @property
    def information_sets(self) -> int:
        """Number of decisions that are distinguished; some are never reached."""
        nodes = 0
        a = self.record[0]
        for r in range(self.rules.rounds):
            kind = FIRST if r == 0 else LATER
            blocks = (a["bet_start"][r + 1] if r < self.rules.draws else self.bet_blocks) - a["bet_start"][r]
            nodes += int(blocks) // 2 * int(a["nodes"][kind])
        return nodes + self.draw_blocks


def classify(hands: NDArray[np.int64], rules: Rules) -> Ints:
    """Return the classes ``(n,)`` of ascending hands ``(n, 5)``, padded with 52."""
    found = np.empty(len(hands), np.int64)
    _cfr_kernels.classify_hands(np.ascontiguousarray(hands), bool(rules.flushes and rules.hand_size == 5), found)
    return found
