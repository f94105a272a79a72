"""Many games from the learner's seat: `SingleAgentBatch`, the one core of every vector interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archie_env._core import batch as loops
from archie_env._core import seats
from archie_env._core.state import GAME
from archie_env.actions import describe_legal
from archie_env.cards import DECK
from archie_env.envs._replay import KEPT, restore_hands
from archie_env.errors import ArchieError, IllegalActionError, OrderError
from archie_env.observation import chip_scales, new_rows, plain_masks, width
from archie_env.policy import Policy, name_of, private_generator
from archie_env.replay import actions_of
from archie_env.rulebook import ReadsRulebook
from archie_env.rules import Replacements, Rules
from archie_env.validation import seed_word, whole_actions, whole_number

Seat = Literal["alternate", "dealer", "big_blind"]
_ROLES: Final = {"alternate": seats.ALTERNATE, "dealer": seats.ALWAYS_DEALER, "big_blind": seats.ALWAYS_BIG_BLIND}

_MOST_ROUND_TRIPS: Final = 10_000
"""Round trips of opponents before a step gives up: far above what hands that end before the learner decides can take."""


def divide_games(n: int, shares: Sequence[float]) -> NDArray[np.int16]:
    """``(n,)``: ascending slots, each holding its share of the games to the nearest game."""
    ends = np.rint(np.cumsum(shares) / np.sum(shares) * n).astype(np.int64)
    return np.searchsorted(ends, np.arange(n), side="right").astype(np.int16)


class SingleAgentBatch(ReadsRulebook):
    """``n`` games in which one learner decides and opponents answer inside `step`; the next step overwrites every array.

    A step plays the learner's action in each game, then lets every opponent act for all its games at once, round trip after
    round trip, until the learner is to decide everywhere.  Finished hands pay and the next is dealt.  A hand may end before
    the learner has decided anything: such a *walk* is no episode, as there is no decision to credit, and its chips go to
    `chips`, `hands` and `walks` alone; with ``keep_walks`` it is one, of a single action that changes nothing.

    A game's cards are a function of (seed, game index, hand number) alone.

    Args:
        n: games.
        opponents: policies, each holding a share of the games; None means that the learner plays the other seat too.  There
            the hand pays the player whose action ended it, and the other player's result is the negative of that.
        shares: relative shares of the games, equal by default.
        rules: a preset's name or a `Rules` value.
        seed: any non-negative int, or None for a fresh one; also seeds what opponents draw at random.
        seat: ``alternate`` (the position swaps from hand to hand), ``dealer`` or ``big_blind``.
        dtype: of `observations`: ``int8``, ``float32`` scaled to [0, 1], or ``packed`` as in `Batch`; opponents see int8.
        replacements: as in `Batch`.
        keep_walks: show the learner hands that ended before it could decide, with an all-ones mask; its next action, whatever
            it is, pays them.  So episode returns are the results of all hands, where trainers rather skip what teaches nothing.
        hidden: also write the other player's cards into `hidden`, for a critic while training.
        fresh: give `observations` and `masks` new arrays at each step, for callers that hand them out: cheaper than a copy.
    """

    def __init__(
        self,
        n: int,
        opponents: Sequence[Policy | None],
        shares: Sequence[float] | None = None,
        rules: Rules | str = "archie",
        seed: int | None = None,
        seat: Seat = "alternate",
        dtype: str = "int8",
        replacements: Replacements = "shared",
        keep_walks: bool = False,
        hidden: bool = False,
        fresh: bool = False,
    ) -> None:
        whole_number("n (games)", n, 1)
        if seat not in _ROLES:
            raise ArchieError(f"seat {seat!r}: expected one of {', '.join(map(repr, get_args(Seat)))}")
        shares = [1.0] * len(opponents) if shares is None else shares
        if not opponents or len(shares) != len(opponents) or min(shares) < 0 or sum(shares) <= 0:
            raise ArchieError(f"shares {shares!r}: expected one non-negative number for each of {len(opponents)} opponents")
        self._read_rulebook(rules, replacements)
        self.opponents: list[Policy | None] = list(opponents)
        """One per slot; a policy may be replaced by another between steps, None by nothing else."""
        self.games: NDArray[Any] = np.zeros(n, GAME)
        self.stats: NDArray[Any] = np.zeros(n, seats.LEARNER_STATS)
        """``(n,)`` accounts of the learner; see `archie_env._core.seats.LEARNER_STATS`."""
        self.observations: NDArray[Any]
        """``(n, d)``: what the learner sees where it is to act; packed, ``(n, 7)``."""
        self.masks: NDArray[Any]
        """``(n, a)``: 1 = legal; packed, ``(n, 1)``, bit a for action a."""
        self.observations, self.masks = new_rows(n, self.rules, dtype)
        self.final_observations = np.zeros_like(self.observations)
        """``(n, d)``: what the learner saw at the end of the hand, where `done`."""
        self.hidden = np.zeros((n, len(DECK) if hidden else 0), np.int8)
        """``(n, 52)``: 1 for each card, by its id, that the other player holds; no columns unless asked for."""
        self.final_hidden = np.zeros_like(self.hidden)
        self.stats["slot"] = divide_games(n, shares)
        alone = np.array([policy is None for policy in self.opponents])
        self.stats["role"] = np.where(alone[self.stats["slot"]], seats.BOTH, _ROLES[seat])
        self._scales = chip_scales(self.rules, self.observations.dtype)
        self._fresh, self.keep_walks = fresh, keep_walks
        self._all = np.arange(n)
        self._waiting = np.zeros(n, np.int64)
        self._bounds = np.zeros(len(self.opponents) + 1, np.int64)
        self._their_observations = np.zeros((n, width(self.rules)), np.int8)
        self._their_masks = np.zeros((n, self.rules.actions), np.int8)
        self._their_actions = np.zeros(n, np.int64)
        self.reset(seed)

    def __len__(self) -> int:
        return len(self.games)

    # Columns of the stats are looked up, not kept: a view that is kept would come loose in a copy.

    @property
    def rewards(self) -> NDArray[np.int16]:
        """``(n,)``: the learner's net chips for the hand that ended in the last step, else 0."""
        column: NDArray[np.int16] = self.stats["reward"]
        return column

    @property
    def done(self) -> NDArray[np.bool_]:
        """``(n,)``: whether a hand in which the learner had decided ended in the last step."""
        return self.stats["done"].view(np.bool_)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """``(n,)``: the learner's decisions in the hand that ended last."""
        column: NDArray[np.int32] = self.stats["length"]
        return column

    @property
    def hands(self) -> NDArray[np.int64]:
        """``(n,)``: hands finished."""
        column: NDArray[np.int64] = self.stats["hands"]
        return column

    @property
    def walks(self) -> NDArray[np.int64]:
        """``(n,)``: of those, hands in which the learner had no decision."""
        column: NDArray[np.int64] = self.stats["walks"]
        return column

    @property
    def chips(self) -> NDArray[np.int64]:
        """``(n,)``: net chips the learner has won in all of them."""
        column: NDArray[np.int64] = self.stats["chips"]
        return column

    def reset(self, seed: int | None = None) -> None:
        """Deal every game anew and forget all accounts."""
        word = seed_word(seed)
        self._halted = True  # until every opponent has answered and the arrays are written
        self._generators = [private_generator(seed, "opponent", slot) for slot in range(len(self.opponents))]
        loops.open_games(self.games, self._books, word, 0)
        seats.clear_stats(self.stats)
        self._opponents_act(self._all)
        seats.clear_rewards(self.stats)
        self._look(self._renewed() if self._fresh else self._all)
        self._halted = False

    def step(self, actions: ArrayLike, where: NDArray[np.bool_] | None = None) -> None:
        """Play the learner's actions and everything up to its next decisions.

        Args:
            actions: ``(n,)`` integers.
            where: ``(n,)``: the games to play in; the others stand still and show no reward.  All by default.

        Raises:
            IllegalActionError: naming the game, the action and what is legal; nothing was played in any game.
        """
        if self._halted:
            raise OrderError("step: an interrupt or an opponent's fault left a hand half played, call reset() first")
        chosen = whole_actions(actions, len(self.games))
        index = self._all
        if where is not None:
            index = np.flatnonzero(where)
            chosen = chosen[index]
        bad = seats.first_illegal_choice(self.games, self._books, index, chosen)
        if bad >= 0:
            legal = describe_legal(plain_masks(self.legal_masks()[index[bad]], self.rules))
            raise IllegalActionError(
                f"game {index[bad]}: action {chosen[bad]} is not legal; legal: {legal}. Nothing was played"
            )
        self._halted = True
        seats.clear_rewards(self.stats)
        self._play(index, chosen, True)
        self._opponents_act(index)
        self._look(self._renewed() if self._fresh else self._all)
        self._halted = False

    def legal_masks(self) -> NDArray[Any]:
        """A new array like `masks`, from the games themselves: what callers wrote into `masks` does not show in it."""
        masks = np.empty_like(self.masks)
        seats.write_choices(self.games, self._books, masks)
        return masks

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
        """Return everything that `restore` needs to continue as if never stopped: arrays, and the state of each generator.

        The arrays are the actions of the hands in progress ``(n, columns)`` and the statistics ``(n,)``, a field each.
        """
        arrays = {"actions": actions_of(self.games, self.rules), **{name: self.stats[name].copy() for name in KEPT}}
        return arrays, [dict(g.bit_generator.state) for g in self._generators]

    def restore(self, arrays: Mapping[str, NDArray[Any]], generators: Sequence[Mapping[str, Any]]) -> None:
        """Continue from a `snapshot` of a batch made with the same arguments and the same seed in the last `reset`.

        Hands are replayed by the engine, so that nothing in the arrays can bring a game into an impossible state.

        Raises:
            ArchieError: naming the array and what is wrong; nothing was changed.
        """
        games, stats = self.games.copy(), self.stats.copy()
        restore_hands(games, stats, self._books, self.rules, self.keep_walks, arrays)
        restored = [np.random.default_rng(0) for _ in self._generators]
        for generator, state in zip(restored, generators, strict=True):
            generator.bit_generator.state = dict(state)
        self.games[:], self.stats[:], self._generators = games, stats, restored
        self._halted = False
        self._look(self._all)

    def _renewed(self) -> NDArray[np.int64]:
        """Leave the arrays to whoever holds them; the games to be written into the new ones, which is all."""
        self.observations, self.masks = np.empty_like(self.observations), np.empty_like(self.masks)
        return self._all

    def _look(self, index: NDArray[np.int64]) -> None:
        seats.look_at(self.games, self._books, self.stats, index, self.observations, self.masks, self.hidden, *self._scales)

    def _play(self, index: NDArray[np.int64], actions: NDArray[np.int64], learner: bool) -> None:
        seats.play_seats(
            self.games, self._books, self.stats, index, actions, learner, self.keep_walks,
            self.final_observations, self.final_hidden, *self._scales,
        )  # fmt: skip

    def _opponents_act(self, candidates: NDArray[np.int64]) -> None:
        """Let the opponents act in these games until the learner is to decide in each."""
        for _ in range(_MOST_ROUND_TRIPS):
            n = seats.wait_for_opponents(
                self.games, self._books, self.stats, candidates, self._waiting, self._bounds,
                self._their_observations, self._their_masks,
            )  # fmt: skip
            if n == 0:
                return
            candidates, chosen = self._waiting[:n], self._their_actions[:n]
            for slot, policy in enumerate(self.opponents):
                part = slice(self._bounds[slot], self._bounds[slot + 1])
                if policy is not None and part.start < part.stop:
                    rows, masks = self._their_observations[part].copy(), self._their_masks[part].copy()  # its own alone
                    acted = policy.act(rows, masks, self._generators[slot])
                    chosen[part] = whole_actions(acted, part.stop - part.start, f"opponent {name_of(policy)!r}")
            bad = loops.first_illegal_at(self.games, self._books, candidates, chosen)
            if bad >= 0:
                name = name_of(self.opponents[self.stats["slot"][candidates[bad]]])
                raise IllegalActionError(
                    f"opponent {name!r}, game {candidates[bad]}: action {chosen[bad]} is not legal; "
                    f"legal: {describe_legal(self._their_masks[bad])}"
                )
            self._play(candidates, chosen, False)
        raise ArchieError(
            f"game {candidates[0]}: {_MOST_ROUND_TRIPS} decisions of opponents in a row and none for the learner: "
            "an opponent that folds every hand it opens leaves nothing to learn from this seat"
        )
