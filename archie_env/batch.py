"""Many games at once, as arrays.

`Batch` is the fast interface: n games for both seats, dealt on without end.  `Hands` plays n single hands to their end,
whoever is to act; matches between policies are made of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archie_env._core import batch as loops
from archie_env._core import seats
from archie_env._core.state import GAME
from archie_env._core.workers import Workers
from archie_env.actions import describe_legal
from archie_env.errors import ArchieError, IllegalActionError, OrderError
from archie_env.observation import chip_scales, new_rows, plain_masks, width
from archie_env.policy import Policy
from archie_env.replay import MOST_HANDS, actions_of, check_types, columns, replayed
from archie_env.rulebook import ReadsRulebook
from archie_env.rules import Replacements, Rules
from archie_env.validation import game_number, seed_word, whole_actions, whole_number


def _seats_or_games(name: str, values: ArrayLike, least: int, most: int) -> NDArray[np.int64]:
    """``(n,)`` integers in a range."""
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or ((array < least) | (array > most)).any():
        raise ArchieError(f"{name} {values!r}: expected a one-dimensional array of whole numbers {least} to {most}")
    return array.astype(np.int64, copy=False)


_BY_GAME = ("games", "observations", "masks", "to_act", "rewards", "done", "_menus", "_actions", "_streams")
"""The arrays of a `Batch` that have a row for each game."""


class Batch(ReadsRulebook):
    """``n`` games in preallocated arrays; every array is overwritten by the next step.

    A game's cards are a function of (seed, game index, hand number) alone.  Finished hands pay and the next is dealt, with
    positions swapped.  If a step in several threads is interrupted, `step` asks for a `reset`; in one thread a step is played
    in all games or in none.

    Args:
        n: games.
        rules: a preset's name or a `Rules` value.
        seed: any non-negative int, or None for a fresh one.
        replacements: ``shared`` deals from one deck in order; ``per_seat`` fixes each position's replacement cards from the
            start, so that one player's discards never shift the other's cards.
        dtype: ``int8``, ``float32`` scaled to [0, 1], or ``packed``: seven uint64 of bits a row and one a mask, which
            `observation.unpack` and `observation.unpack_masks` read.
        first: index of the first game, so that batches can be parts of a larger one.
        threads: how many play at once, with the same results; more than one pays from some ten thousand games on.
    """

    def __init__(
        self,
        n: int,
        rules: Rules | str = "archie",
        seed: int | None = None,
        replacements: Replacements = "shared",
        dtype: str = "int8",
        first: int = 0,
        threads: int = 1,
    ) -> None:
        whole_number("n (games)", n, 1)
        whole_number("threads", threads, 1)
        game_number("first", first)
        self._read_rulebook(rules, replacements)
        self.games: NDArray[Any] = np.zeros(n, GAME)
        """``(n,)`` records of the games, unchecked when they are written to."""
        self.observations: NDArray[Any]
        """``(n, d)``: what the player to act has seen; packed, ``(n, 7)``."""
        self.masks: NDArray[Any]
        """``(n, a)``: 1 = legal; packed, ``(n, 1)``, bit a for action a."""
        self.observations, self.masks = new_rows(n, self.rules, dtype)
        self.to_act = np.zeros(n, np.int8)
        """``(n,)``: seat to act, 0 = player_0."""
        self.rewards = np.zeros((n, 2), np.int16)
        """``(n, 2)``: net chips by seat of the hand that ended in the last step, else 0."""
        self.done = np.zeros(n, np.bool_)
        """``(n,)``: whether a hand ended in the last step."""
        self._scales = chip_scales(self.rules, self.observations.dtype)
        self._menus = np.zeros(n, np.int8)
        self._actions = np.zeros(n, np.int64)
        self._streams = np.zeros(n, np.uint64)
        self._first = first
        self._cut(threads)
        self.reset(seed)

    def __len__(self) -> int:
        return len(self.games)

    def __getitem__(self, part: slice) -> Batch:
        """Some of the games as a batch of their own, on the same memory: a step of either shows in both."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise ArchieError(f"batch[{part!r}]: expected a slice of neighbouring games, such as batch[:100]")
        if part.indices(len(self))[0] >= part.indices(len(self))[1]:
            raise ArchieError(f"batch[{part.start}:{part.stop}]: no games, expected some of {len(self)}")
        some = Batch.__new__(Batch)
        some.__dict__.update(self.__dict__)
        for name in _BY_GAME:
            setattr(some, name, getattr(self, name)[part])
        some._first += part.indices(len(self))[0]
        some._cut(1)
        return some

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_workers": None}

    def _cut(self, threads: int) -> None:
        """Divide the games among threads; results do not depend on how."""
        ends = np.linspace(0, len(self), threads + 1).astype(int).tolist()
        self._parts = [slice(a, b) for a, b in pairwise(ends) if a < b]
        self._workers: Workers | None = None
        self._whole = True  # False while threads step: an interrupt may leave a step played in some games and not in others

    def _each_part(self, play: Callable[[slice], None]) -> None:
        if len(self._parts) == 1:
            play(self._parts[0])
            return
        if self._workers is None or not self._workers.present:
            self._workers = Workers(len(self._parts) - 1)
        self._whole = False
        self._workers.run([functools.partial(play, part) for part in self._parts])
        self._whole = True

    def reset(self, seed: int | None = None) -> None:
        """Deal the first hand of every game anew, from ``seed`` or, for None, from a fresh one."""
        word = seed_word(seed)
        if self._workers is not None and self._workers.present:
            self._workers.wait()  # an interrupted step may still be played there
        self._whole = False
        loops.open_games(self.games, self._books, word, self._first)
        with np.errstate(over="ignore"):
            numbers = np.arange(self._first, self._first + len(self), dtype=np.uint64)
            self._streams[:] = numbers * np.uint64(0xA0761D6478BD642F) ^ word
        self.rewards[:], self.done[:] = 0, False
        loops.look(self.games, self._books, self.to_act, self._menus, self.observations, self.masks, *self._scales)
        self._whole = True

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return everything that `restore` needs to continue as if never stopped.

        Returns:
            ``actions (n, columns)`` of the hands in progress, their numbers ``hands (n,)``, and the ``streams (n,)`` of
            `sample_actions`.
        """
        hands = self.games["hand_number"].astype(np.int64)
        return {"actions": actions_of(self.games, self.rules), "hands": hands, "streams": self._streams.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `snapshot` of a batch made with the same arguments and the same seed in the last `reset`.

        Hands are replayed by the engine, so that nothing in the arrays can bring a game into an impossible state.

        Raises:
            ArchieError: naming the array and what is wrong; nothing was changed.
        """
        n, games = len(self), self.games.copy()
        check_types(
            arrays,
            {
                "actions": (np.dtype(np.int8), (n, columns(self.rules))),
                "hands": (np.dtype(np.int64), (n,)),
                "streams": (np.dtype(np.uint64), (n,)),
            },
        )
        hands = arrays["hands"]
        if ((hands < 0) | (hands > MOST_HANDS)).any():
            raise ArchieError(f"hands {hands.min()} to {hands.max()}: expected 0 to {MOST_HANDS}")
        for _ in replayed(games, self._books, hands, arrays["actions"]):
            pass
        if games["over"].any():
            raise ArchieError(f"actions of game {games['over'].argmax()}: the hand is over: expected one in progress")
        self._whole = False
        self.games[:], self._streams[:] = games, arrays["streams"]
        self.rewards[:], self.done[:] = 0, False
        loops.look(self.games, self._books, self.to_act, self._menus, self.observations, self.masks, *self._scales)
        self._whole = True

    def sample_actions(self) -> NDArray[np.int64]:
        """``(n,)``: a uniformly random legal action in every game; the array is reused."""
        loops.random_legal(self._books, self._menus, self._streams, self._actions)
        return self._actions

    def seat(self, seat: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """What one seat sees in every game, whether or not it is to act.

        Returns:
            New arrays: observations ``(n, d)``, and masks ``(n, a)`` with zeros where the other seat is to act.
        """
        if seat not in (0, 1):
            raise ArchieError(f"seat {seat!r}: expected 0 or 1")
        observations, masks = np.empty_like(self.observations), self._legal_masks()
        loops.look_from(self.games, self._books, seat, observations, *self._scales)
        masks[self.games["turn"] ^ self.games["dealer"] != seat] = 0
        return observations, masks

    def _legal_masks(self) -> NDArray[Any]:
        """A new array like `masks`, from the games themselves: what callers wrote into `masks` does not show in it."""
        masks = np.empty_like(self.masks)
        seats.write_choices(self.games, self._books, masks)
        return masks

    def step(self, actions: ArrayLike) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Play one action in every game.

        Args:
            actions: ``(n,)`` integers.

        Returns:
            `rewards` and `done`.

        Raises:
            IllegalActionError: naming the game, the action and what is legal; nothing was played in any game.
            OrderError: an earlier step or reset was interrupted.
        """
        if not self._whole:
            raise OrderError("step: an earlier step was interrupted, call reset() first")
        checked = whole_actions(actions, len(self.games))
        bad = loops.first_illegal(self._books, self._menus, checked)
        if bad >= 0:
            legal = describe_legal(plain_masks(self._legal_masks()[bad], self.rules))
            raise IllegalActionError(
                f"game {bad}: action {np.asarray(actions)[bad]} is not legal; legal: {legal}. Nothing was played"
            )

        def play(part: slice) -> None:
            loops.step_games(
                self.games[part], self._books, checked[part], self.rewards[part], self.done[part], self.to_act[part],
                self._menus[part], self.observations[part], self.masks[part], *self._scales,
            )  # fmt: skip

        self._each_part(play)
        return self.rewards, self.done


class Hands(ReadsRulebook):
    """``n`` single hands, played to their end.

    Args:
        indices: ``(n,)`` game index of each hand: the same index under the same seed is the same deal.
        dealers: ``(n,)`` seat that deals.
        rules, seed, replacements: as in `Batch`; replacements are per seat by default, as duplicate matches need them.
    """

    def __init__(
        self,
        indices: ArrayLike,
        dealers: ArrayLike,
        rules: Rules | str = "archie",
        seed: int | None = None,
        replacements: Replacements = "per_seat",
    ) -> None:
        self._read_rulebook(rules, replacements)
        index, deals = _seats_or_games("indices", indices, 0, 2**62), _seats_or_games("dealers", dealers, 0, 1)
        if len(index) != len(deals):
            raise ArchieError(f"{len(index)} indices and {len(deals)} dealers: expected one of each for every hand")
        self.games: NDArray[Any] = np.zeros(len(index), GAME)
        loops.deal_hands(self.games, self._books, seed_word(seed), index, deals)
        self._index = np.zeros(len(index), np.int64)

    def __len__(self) -> int:
        return len(self.games)

    def waiting(self, seat: int) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int8]]:
        """The hands in which ``seat`` (0 or 1) is to act: their places ``(k,)``, observations ``(k, d)`` and masks ``(k, a)``.

        The arrays are new and own their memory, so that a policy may keep them and sees nothing of the other seat through them.
        """
        k = loops.list_waiting(self.games, seat, self._index)
        places = self._index[:k].copy()
        observations = np.empty((k, width(self.rules)), np.int8)
        masks = np.empty((k, self.rules.actions), np.int8)
        loops.look_at(self.games, self._books, places, observations, masks, 1, 1)
        return places, observations, masks

    def play(self, places: NDArray[np.int64], actions: ArrayLike) -> None:
        """Play ``actions[k]`` in hand ``places[k]``, places ascending; raises `ArchieError` before anything is played."""
        checked = whole_actions(actions, len(places))
        if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer) or not loops.ascending(places, len(self)):
            raise ArchieError(f"places: expected ascending whole numbers 0 to {len(self) - 1}, each at most once")
        bad = loops.first_illegal_at(self.games, self._books, places, checked)
        if bad >= 0:
            raise IllegalActionError(f"hand {places[bad]}: action {checked[bad]} is not legal. Nothing was played")
        loops.play_at(self.games, self._books, places, checked)

    def play_out(self, policies: Sequence[Policy], rngs: Sequence[np.random.Generator]) -> None:
        """Play every hand to its end.

        Args:
            policies: by seat; each is asked about all hands in which its seat is to act at once.
            rngs: by seat, handed to that policy (see `archie_env.policy.private_generator`).

        Raises:
            IllegalActionError: for an illegal action or a malformed answer; and whatever a policy raises.
        """

        def take_turn(seat: int) -> int:
            places, observations, masks = self.waiting(seat)
            if len(places):
                self.play(places, policies[seat].act(observations, masks, rngs[seat]))
            return len(places)

        self.take_turns(take_turn)

    def take_turns(self, take_turn: Callable[[int], int]) -> None:
        """Call ``take_turn(seat)`` for one seat after the other, until neither has a hand left to play.

        Each call plays an action in every hand in which the seat is to act and returns how many these were.
        """
        seat, idle = 0, 0
        while idle < 2:
            idle = 0 if take_turn(seat) else idle + 1
            seat = 1 - seat

    @property
    def over(self) -> bool:
        """Whether every hand has ended."""
        return bool(self.games["over"].all())

    @property
    def net(self) -> NDArray[np.int64]:
        """``(n, 2)``: net chips by seat; 0 while a hand goes on."""
        net, dealer = self.games["net"].astype(np.int64), self.games["dealer"]
        by_seat: NDArray[np.int64] = np.where(dealer[:, None] == np.arange(2), net[:, None], -net[:, None])
        return by_seat

    @property
    def folded(self) -> NDArray[np.bool_]:
        """``(n,)``: hands that ended by a fold."""
        folded: NDArray[np.bool_] = self.games["folded"] != 0
        return folded
