"""Players from strategies of counterfactual regret minimisation over an abstraction.

The file is an ``.npz`` archive of `agents.archive`: probabilities in 255ths, the abstraction that indexes them, and one JSON
text.  `training.cfr` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents import _cfr_kernels
from agents._cfr_kernels import NODES, OPTIONS
from agents.abstraction import PARTS, Abstraction, check_header
from agents.archive import (
    Arrays,
    FilePolicy,
    Header,
    Meta,
    check_names,
    digest,
    found,
    frozen,
    load_player,
    rules_of,
    write_archive,
)
from agents.rows import checked_rows, layout
from archie_env.errors import ArchieError
from archie_env.observation import field
from archie_env.policy import Actions, Masks, Observations, Probabilities
from archie_env.rules import Rules

FORMAT: Final = "archie-env cfr strategy"
VERSION: Final = 1
STEPS: Final = 255
"""Probabilities are kept in 255ths."""


class CFRPolicy(FilePolicy):
    """Plays by tables of probabilities.

    Args:
        abstraction: the index of the tables.
        bets: ``(bet_blocks, width)`` uint8: 255ths of fold, call and raise for each of the player's nodes in the round.
        draws: ``(draw_blocks, 8)`` uint8: 255ths of the discard options of the hand's class.
        meta: further values for the file.

    Raises:
        ArchieError: for tables that do not fit the abstraction.
    """

    name = "cfr"

    def __init__(
        self, abstraction: Abstraction, bets: NDArray[Any], draws: NDArray[Any], meta: Mapping[str, Any] | None = None
    ) -> None:
        self.abstraction, self.rules, self.meta = abstraction, abstraction.rules, dict(meta or {})
        expected = {"bets": (abstraction.bet_blocks, abstraction.width), "draws": (abstraction.draw_blocks, OPTIONS)}
        for name, table in (("bets", bets), ("draws", draws)):
            if table.shape != expected[name] or table.dtype != np.uint8:
                raise ArchieError(f"{name} {table.shape} of type {table.dtype}: expected uint8 {expected[name]}")
        self.bets, self.draws = frozen(bets), frozen(draws)
        own_draws = field(self.rules, "own_draws").start
        self._tables = layout(self.rules), abstraction.record, own_draws, *abstraction.hands, self.bets, self.draws

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `archie_env.policy.Policy.probabilities`."""
        rows = checked_rows(observations, masks, self.rules)
        probabilities = np.empty(masks.shape, np.float32)
        _cfr_kernels.fill_probabilities(*self._tables, rows, masks, probabilities)
        return probabilities

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `archie_env.policy.Policy.act`."""
        rows = checked_rows(observations, masks, self.rules)
        actions = np.empty(len(rows), np.int64)
        _cfr_kernels.choose_actions(*self._tables, rows, masks, rng.random(len(rows)), actions)
        return actions

    def _by_value(self, protocol: Any) -> Any:
        return type(self), (self.abstraction, self.bets, self.draws, self.meta), {"name": self.name}

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """All arrays of the player by name."""
        return {"bets": self.bets, "draws": self.draws, **self.abstraction.parts}

    def index(self, observations: Observations, masks: Masks) -> NDArray[np.int64]:
        """Return the index of each row, ``(n, 4)``: 1 for a draw, block of ``bets`` or ``draws``, node, class of the hand."""
        rows = checked_rows(observations, masks, self.rules)
        index = np.empty((len(rows), 4), np.int64)
        _cfr_kernels.find_decisions(*self._tables[:5], rows, index)
        return index

    def save(self, path: str | Path) -> None:
        """Write the file `load` reads, whole or not at all."""
        own = {"format": FORMAT, "version": VERSION, "rules": self.rules.to_dict(), "hash": digest(self.weights)}
        meta = {**self.meta, **own}
        write_archive(path, self.weights, meta, compressed=True)

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str | None = None) -> CFRPolicy:
        """Read a strategy from its file.

        Raises:
            ArchieError: for a file that is damaged, of another form or version, or for other rules.
        """

        def make(arrays: Arrays, meta: Meta) -> CFRPolicy:
            parts = {name: arrays[name] for name in PARTS}
            policy = cls(Abstraction.of(rules_of(meta), parts), arrays["bets"], arrays["draws"], meta)
            expected = digest(policy.weights)
            if meta.get("hash") != expected:
                raise ArchieError(f"hash {found(meta, 'hash')}: expected {expected}, the hash of the tables")
            return policy

        return load_player(path, FORMAT, VERSION, rules, make, _check)


def _check(headers: Mapping[str, Header], meta: Meta) -> None:
    """Raise `ArchieError` unless the headers describe a strategy."""
    check_names(headers, dict.fromkeys(("bets", "draws", *PARTS)), "a whole strategy")
    for name in PARTS:
        check_header(name, headers[name])
    for name, width in (("bets", 3 * NODES), ("draws", OPTIONS)):
        header = headers[name]
        if len(header.shape) != 2 or header.shape[1] > width or header.dtype != np.uint8:
            raise ArchieError(f"{name} {header}: expected uint8 (blocks, at most {width})")
