"""The common base of the PettingZoo and the Gymnasium environment: one hand in progress, dealt from a stream of hands."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from archie_env._core import table
from archie_env._core.encode import WORDS
from archie_env._core.jit import entry_point
from archie_env._core.state import GAME
from archie_env.actions import CALL, STAND_PAT
from archie_env.errors import ArchieError, OrderError
from archie_env.game import ANY_DECK, SEATS, Game, dealt_order, deck_order
from archie_env.observation import chip_scales, highest, width
from archie_env.rendering.text import ansi, rgb_array
from archie_env.rulebook import ReadsRulebook, rulebook
from archie_env.rules import Replacements, Rules
from archie_env.validation import one_of, seed_word, whole_number

ObservationType = Literal["float32", "int8"]
RenderMode = Literal["human", "ansi", "rgb_array"]
IllegalActions = Literal["raise", "replace"]
MaskPlace = Literal["info", "observation"]


def row_space(rules: Rules, dtype: str) -> spaces.Box:
    """The space of one observation row in that dtype."""
    if dtype == "packed":
        return spaces.Box(np.uint64(0), np.uint64(2**64 - 1), (WORDS,), np.uint64)
    top = highest(rules).astype(np.int8) if dtype == "int8" else np.ones(width(rules), np.float32)
    return spaces.Box(np.zeros_like(top), top, dtype=top.dtype.type)


def observation_space(rules: Rules, dtype: str, masks: MaskPlace) -> spaces.Box | spaces.Dict:
    """The space of an observation of the Gymnasium environments: a row, or with ``masks="observation"`` a row and its mask."""
    row = row_space(rules, dtype)
    if masks == "info":
        return row
    packed = spaces.Box(np.uint64(0), np.uint64(2**rules.actions - 1), (1,), np.uint64)
    plain = spaces.Box(0, 1, (rules.actions,), np.int8)
    return spaces.Dict({"observation": row, "action_mask": packed if dtype == "packed" else plain})


NOTHING_FIXED: Final = -1, ANY_DECK, 0
"""Dealer and deck left to the seed."""


def new_arrays(*kinds: tuple[int, Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Endless new arrays, one of each length and type at a time.

    They are cut from blocks of sixteen, which is half the price of making each on its own.
    """
    return chain.from_iterable(zip(*(np.empty((16, n), dtype) for n, dtype in kinds), strict=True) for _ in count())


@functools.cache
def bound(kernel: Callable[..., Any], dtype: str = "int8") -> Callable[..., Any]:
    """Bind a kernel of `archie_env._core.table` to its types for rows of ``dtype``; callers must keep to them."""
    rules = Rules()
    books, games = rulebook(rules), np.zeros(1, GAME)
    row, masks = np.zeros(width(rules), dtype), np.zeros((2, rules.actions), np.int8)
    scales = chip_scales(rules, row.dtype)
    arguments: dict[Callable[..., Any], tuple[Any, ...]] = {
        table.deal_table: (games, books, 0, 0, ANY_DECK, 0),
        table.begin_table: (games, books, 0, 0, ANY_DECK, 0, row, masks[0], *scales),
        table.look_masks: (games, books, masks),
        table.look_seat: (games, books, 0, row, *scales),
        table.step_table: (games, books, 0, row, masks[0], *scales),
        table.play_and_mask: (games, books, 0, masks),
    }
    return entry_point(kernel, *arguments[kernel])


UNSET, RUNNING, ENDED = range(3)
"""Stages of an episode.  ``UNSET``: before `reset`, and while a call changes the hand, so that an interrupt or a fault in the
middle leaves an environment that asks for `reset`."""


class Table(ReadsRulebook):
    """A base: the record of a hand, the stream it was dealt from, and its picture."""

    options_known: ClassVar[tuple[str, ...]] = ("dealer", "deck")
    render_mode: str | None
    _found: ClassVar[tuple[str, ...]] = ("_books", "_deal_kernel", "_play_kernel")

    def _sit_down(
        self, rules: Rules | str, replacements: Replacements, dtype: ObservationType, render_mode: RenderMode | None
    ) -> None:
        one_of("render_mode", render_mode, (None, *get_args(RenderMode)))
        one_of("dtype", dtype, get_args(ObservationType))
        self._dtype = np.dtype(dtype)
        self._read_rulebook(rules, replacements)
        self.render_mode = render_mode
        self._pot_scale, self._owed_scale = chip_scales(self.rules, self._dtype)
        self._width, self._n_actions = width(self.rules), self.rules.actions
        self._games: NDArray[Any] = np.zeros(1, GAME)
        self._stage = UNSET
        self._hand_number = -1
        self._history: list[int] = []

    def _session(self, hands: int | None, stack: int | None) -> tuple[int | None, int | None]:
        """Check the length of a session and the chips each player brings."""
        return (
            None if hands is None else whole_number("hands", hands, 1),
            None if stack is None else whole_number("stack", stack, self.rules.reserve),
        )

    def _next_hand(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[int, NDArray[np.int8], int]:
        """Turn to hand 0 of a seed, or to the next of the present stream; bad input changes nothing.

        Returns:
            What the dealing kernels take: a seat or -1, the deck, and how many of its cards are fixed.
        """
        fixed = self._read_options(options) if options else NOTHING_FIXED
        word = seed_word(seed) if seed is not None or self._hand_number < 0 else None
        self._stage = UNSET
        if word is not None:
            self._hand_number = -1
            table.open_table(self._games, word, 0)
        self._hand_number += 1
        self._history = []
        return fixed

    def _read_options(self, options: Mapping[str, Any]) -> tuple[int, NDArray[np.int8], int]:
        if not isinstance(options, Mapping):
            raise ArchieError(f"options {options!r}: expected a mapping with {' or '.join(self.options_known)}")
        for name in options:
            if name not in self.options_known:  # PettingZoo's own tests pass unknown keys, so this can't be an error
                known = " or ".join(self.options_known)
                warnings.warn(f"options: unknown key {name!r} is ignored, expected {known}", stacklevel=4)
        dealer = options.get("dealer")
        if dealer is not None and (not isinstance(dealer, str) or dealer not in SEATS):
            raise ArchieError(f"options: dealer {dealer!r}, expected one of {', '.join(SEATS)}")
        return -1 if dealer is None else SEATS.index(dealer), *deck_order(self.rules, options.get("deck"))

    def _substitute(self) -> int:
        """Check, call or standing pat: what replaces an illegal action."""
        return STAND_PAT if self._games["phase"][0] & 1 else CALL

    def _net(self) -> tuple[float, float]:
        """Net chips of the finished hand, by seat."""
        net = float(self._games["net"].item())
        return (-net, net) if self._games["dealer"].item() else (net, -net)

    @property
    def game(self) -> Game:
        """A readable copy of the hand, with its history; playing on it does not touch the environment."""
        self._check_begun("game")
        return self._readable()

    def _readable(self) -> Game:
        settled = self._games.copy()
        table.settle_table(settled, self._books)
        deck = dealt_order(settled, self.rules)
        game = Game(self.rules, dealer=int(settled["dealer"][0]), deck=deck, replacements=self.replacements)
        for action in self._history:
            game.apply(action)
        return game

    def _check_begun(self, call: str) -> None:
        if self._stage == UNSET:
            raise OrderError(f"{call}: call reset() first")

    def _draw(self, game: Game, seat: int | None, stacks: Mapping[str, int] | None = None) -> str | NDArray[np.uint8] | None:
        """The table in the render mode, seen by a seat or, for None, from above."""
        if self.render_mode is None:
            raise OrderError(f"render: no render_mode was given; make the environment with one of {get_args(RenderMode)}")
        view = game.view(seat)
        if self.render_mode == "rgb_array":
            return rgb_array(view, self.rules, stacks)
        text = ansi(view, self.rules, stacks)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None
