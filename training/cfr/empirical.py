"""A table that plays like another player, from watching it: what the responder needs where the target is no table.

An opponent learns against the imitation and is then measured against the player itself.  So what the imitation gets wrong
costs winnings and never adds any; it is least wrong where the player was watched against that opponent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.cfr import CFRPolicy
from archie_env._core.batch import first_illegal_at
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.policy import Policy, name_of
from archie_env.rulebook import rulebook
from archie_env.rules import Rules
from archie_env.validation import whole_actions
from training.cfr._kernels import AVERAGES, count_actions
from training.cfr.abstraction import Detail, build, detail_config
from training.cfr.tables import Tables

_GAMES: Final = 1024
_EXPLORE: Final = 0.1
"""How often a random action is played in place of the player's, so that it is seen where its own play does not lead."""
_OUTLINE: Final = 1e-6
"""What an action counts that was seen in outline, with coarser hands and a shorter past: all where nothing else is known."""


class Imitation:
    """Counts of what a player does.

    Args:
        target: asked for actions only; it must play ``rules``.
        rules: what is played; ones that tables have a place for.
        detail: what is told apart.
        seed: of the cards and everything drawn.

    Raises:
        ArchieError: for other rules.
    """

    def __init__(self, target: Policy, rules: Rules, detail: Detail, seed: int) -> None:
        self._target, self._detail = target, detail
        # Exact hands have discards of their own, which those of others would be mistaken for
        outline = Detail(cards="exact" if detail.cards == "exact" else "coarse")
        self._tables = [Tables.empty(build(rules, kept)) for kept in (outline, detail)]
        self._places = [CFRPolicy(table.abstraction, *table.strategy(0.0)).places for table in self._tables]
        self._books = rulebook(rules)
        self._batch, self._generator = Batch(_GAMES, rules, seed), np.random.default_rng(seed)
        self._seat = np.arange(_GAMES) % 2
        self.decisions = 0
        """Of the player, counted."""

    def watch(
        self, other: Policy | None, decisions: int = 0, seconds: float = 0.0, progress: Callable[[], None] | None = None
    ) -> None:
        """Let the player play and count what it does.

        Args:
            other: against whom; None = itself.
            decisions: how many to count at least; 0 = as many as the time allows.
            seconds: wall time; 0 = no limit.
            progress: called now and then.

        Raises:
            ArchieError: for no budget, and a player that plays what is not legal.
        """
        if not (decisions > 0 or seconds > 0):
            raise ArchieError("no budget: expected decisions or seconds above 0")
        batch, enough, started = self._batch, self.decisions + decisions, time.perf_counter()
        while (not decisions or self.decisions < enough) and (not seconds or time.perf_counter() - started < seconds):
            own = np.ones(_GAMES, np.bool_) if other is None else batch.to_act == self._seat
            actions = batch.sample_actions().copy()
            stray = self._generator.random(_GAMES) < _EXPLORE
            for player, places in ((self._target, np.flatnonzero(own)), (other, np.flatnonzero(~own))):
                if player is None or not len(places):
                    continue
                rows, masks = batch.observations[places], batch.masks[places]
                chosen = whole_actions(player.act(rows, masks, self._generator), len(places), name_of(player))
                bad = first_illegal_at(batch.games, self._books, places, chosen)
                if bad >= 0:
                    raise ArchieError(f"{name_of(player)} plays {chosen[bad]}, which is not legal: it can't be imitated")
                if player is self._target:
                    self._count(rows, masks, chosen)
                actions[places] = np.where(stray[places], actions[places], chosen)
            batch.step(actions)
            if progress:
                progress()

    def _count(self, rows: NDArray[np.int8], masks: NDArray[np.int8], actions: NDArray[np.int64]) -> None:
        for table, place in zip(self._tables, self._places, strict=True):
            slots, bets, draws = table.abstraction.parts["slots"], table.bets[:, AVERAGES], table.draws[:, AVERAGES]
            count_actions(place(rows, masks), actions, slots, bets, draws)
        self.decisions += len(rows)

    def policy(self) -> CFRPolicy:
        """The table as it is now: shares of the actions seen, where none were those of the outline.

        A discard that the table has no slot for counts for the slot that throws the most similar cards.
        """
        outline, whole = self._tables
        result = outline.grown(whole.abstraction, _OUTLINE)
        result.bets[:] += whole.bets
        result.draws[:] += whole.draws
        meta = {"imitates": name_of(self._target), "decisions": self.decisions, "config": detail_config(self._detail)}
        return CFRPolicy(whole.abstraction, *result.strategy(0.0), meta)
