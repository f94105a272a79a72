"""Estimate a tabular model of an arbitrary policy from its observed actions.

An opponent is trained against the model and then measured against the policy itself.  Errors of the model can only cost
winnings; they are smallest where the policy was observed against that opponent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.cfr import CFRPolicy
from archie_env._core.batch import first_illegal_at
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.policy import Policy, name_of, private_generator
from archie_env.rulebook import rulebook
from archie_env.rules import Rules
from archie_env.validation import whole_actions
from training.cfr._table_kernels import AVERAGES, count_actions
from training.cfr.abstraction import AbstractionConfig, build, config_meta
from training.cfr.tables import Tables
from training.settings import Generator, Settings, Several

_GAMES: Final = 1024
_EXPLORE: Final = 0.1
"""How often a random action replaces the player's, so that it is observed where its own play does not lead."""
_KINDS: Final = ("outline", "observed")
"""Tables of counts, by their names in a snapshot."""
_OUTLINE: Final = 1e-6
"""Weight of an action counted in the outline, with coarser hands and a shorter past: it decides where nothing else was seen."""


class Observed(Settings):
    """How far a player was observed."""

    decisions: int = Field(ge=0, le=10**15)
    generators: Several[Generator]
    """Of actions that replace the player's, and those handed to the player and to its opponent."""


class EmpiricalPolicy:
    """Counts of a player's actions.

    Args:
        target: plays ``rules``; only its actions are used.
        rules: the rules of the game, which must fit table strategies.
        abstraction: of the counts.
        seed: of the cards and all samples.

    Raises:
        ArchieError: for other rules.
    """

    def __init__(self, target: Policy, rules: Rules, abstraction: AbstractionConfig, seed: int) -> None:
        self._target, self._abstraction = target, abstraction
        # Exact hands have discard options of their own; an outline with those of other hands would confuse them
        outline = AbstractionConfig(cards="exact" if abstraction.cards == "exact" else "coarse")
        self._tables = [Tables.empty(build(rules, config)) for config in (outline, abstraction)]
        self._index = [CFRPolicy(table.abstraction, *table.strategy(0.0)).index for table in self._tables]
        self._books = rulebook(rules)
        self._batch, self._generator = Batch(_GAMES, rules, seed), np.random.default_rng(seed)
        self._handed = [private_generator(seed, "player", who) for who in ("target", "other")]
        self._seat = np.arange(_GAMES) % 2
        self.decisions = 0
        """Counted decisions of the player."""

    def observe(
        self, other: Policy | None, decisions: int = 0, seconds: float = 0.0, progress: Callable[[], None] | None = None
    ) -> None:
        """Count the player's actions in games.

        Args:
            other: its opponent; None = itself.
            decisions: to count at least; 0 = as many as the time allows.
            seconds: wall time; 0 = no limit.
            progress: called after each step of all games.

        Raises:
            ArchieError: for no budget, and a player that plays illegal actions.
        """
        if not (decisions > 0 or seconds > 0):
            raise ArchieError("no budget: expected decisions or seconds above 0")
        batch, enough, started = self._batch, self.decisions + decisions, time.perf_counter()
        while (not decisions or self.decisions < enough) and (not seconds or time.perf_counter() - started < seconds):
            own = np.ones(_GAMES, np.bool_) if other is None else batch.to_act == self._seat
            actions = batch.sample_actions().copy()
            stray = self._generator.random(_GAMES) < _EXPLORE
            players = zip((self._target, other), (np.flatnonzero(own), np.flatnonzero(~own)), self._handed, strict=True)
            for player, index, generator in players:
                if player is None or not len(index):
                    continue
                rows, masks = batch.observations[index], batch.masks[index]
                chosen = whole_actions(player.act(rows.copy(), masks.copy(), generator), len(index), name_of(player))
                bad = first_illegal_at(batch.games, self._books, index, chosen)
                if bad >= 0:
                    raise ArchieError(f"{name_of(player)} plays {chosen[bad]}, which is not legal: it can't be modelled")
                if player is self._target:
                    self._count(rows, masks, chosen)
                actions[index] = np.where(stray[index], actions[index], chosen)
            batch.step(actions)
            if progress:
                progress()

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return everything that `restore` needs to continue as if never stopped: arrays, and plain values."""
        arrays = {f"batch/{name}": array for name, array in self._batch.snapshot().items()}
        for kind, table in zip(_KINDS, self._tables, strict=True):
            arrays |= {f"{kind}/bets": table.bets[:, AVERAGES], f"{kind}/draws": table.draws[:, AVERAGES]}
        generators = tuple(map(Generator.of, (self._generator, *self._handed)))
        return arrays, Observed(decisions=self.decisions, generators=generators).model_dump(mode="json")

    def restore(self, arrays: Mapping[str, NDArray[Any]], values: Any) -> None:
        """Continue from a `snapshot` of an empirical policy made with the same arguments; its arrays have these shapes.

        Raises:
            ArchieError: for values that no observation can leave.
        """
        observed = Observed.from_values(values, "observed")
        if len(observed.generators) != 1 + len(self._handed):
            raise ArchieError(f"observed: {len(observed.generators)} generators: expected {1 + len(self._handed)}")
        for kind, table in zip(_KINDS, self._tables, strict=True):
            for name, counts in (("bets", table.bets), ("draws", table.draws)):
                found = arrays[f"{kind}/{name}"]
                if not (np.isfinite(found).all() and (found >= 0).all()):
                    raise ArchieError(f"{kind}/{name} holds nan, infinite or negative values: expected counts")
                counts[:, AVERAGES] = found
        self._batch.restore({name: arrays[f"batch/{name}"] for name in self._batch.snapshot()})
        for generator, state in zip((self._generator, *self._handed), observed.generators, strict=True):
            generator.bit_generator.state = state.model_dump()
        self.decisions = observed.decisions

    def _count(self, rows: NDArray[np.int8], masks: NDArray[np.int8], actions: NDArray[np.int64]) -> None:
        for table, index in zip(self._tables, self._index, strict=True):
            options = table.abstraction.hands[2]
            count_actions(index(rows, masks), actions, options, table.bets[:, AVERAGES], table.draws[:, AVERAGES])
        self.decisions += len(rows)

    def policy(self) -> CFRPolicy:
        """Return the table of the observed frequencies; where nothing was observed, those of the outline.

        A discard that is not among the options of a hand counts for the most similar option.
        """
        outline, whole = self._tables
        result = outline.refined(whole.abstraction, _OUTLINE)
        result.bets[:] += whole.bets
        result.draws[:] += whole.draws
        meta = {"imitates": name_of(self._target), "decisions": self.decisions, "config": config_meta(self._abstraction)}
        return CFRPolicy(whole.abstraction, *result.strategy(0.0), meta)
