"""The PettingZoo environment: one hand, or a session of hands with stacks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from archie_env._core import table
from archie_env._core.state import GAME
from archie_env.batch import chip_scales, seed_word
from archie_env.errors import ArchieError, OrderError, RulesError
from archie_env.game import SEATS, Game, action_number, deck_order
from archie_env.observation import ReadsRulebook, highest, width
from archie_env.render import ansi, rgb_array
from archie_env.rules import Replacements, Rules

RenderMode = Literal["human", "ansi", "rgb_array"]
Viewpoint = Literal["player_0", "player_1", "to_act"]
_OPTIONS = ("dealer", "deck")


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise ArchieError(f"{name} {value!r}: expected one of {', '.join(map(repr, allowed))}")


def _at_least(name: str, value: object, least: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise RulesError(f"{name} {value!r}: expected a whole number of at least {least}, or None")


class raw_env(ReadsRulebook, AECEnv[str, dict[str, NDArray[Any]], int]):  # type: ignore[misc]  # noqa: N801  (PettingZoo's name)
    """Heads-up Archie as an AEC environment.

    Args:
        rules: a preset's name (archie, barge, pagat, mini, midi) or a `Rules` value.
        render_mode: ``ansi`` for text, ``rgb_array`` for a picture, ``human`` to print the text after every step, or None.
        hands: play a session of this many hands, positions swapping; None plays one hand, or with ``stack`` until a player
            can't cover the reserve.
        stack: chips each player starts a session with; the session ends when a player can't cover ``rules.reserve`` (R1.4).
        dtype: ``float32`` observations scaled to [0, 1], or ``int8`` as the engine writes them.
        replacements: ``shared`` or ``per_seat``, see `Batch`.
        viewpoint: whose cards `render` shows: a seat's, those of whoever is to act, or None for both.

    Observations are dicts of ``observation`` (d,) and ``action_mask`` (a,) int8, 1 = legal, zeros for whoever is not to act.
    Rewards are net chips, paid at the end of each hand.  An illegal action raises `IllegalActionError` and changes nothing.
    ``reset`` takes a seed and ``options``: ``dealer`` (``player_0`` or ``player_1``) and ``deck`` (cards in the order they are
    dealt, whole or a beginning) for the first hand.  A reset without a seed goes on to the next hand, the other player dealing.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "archie_v0",
        "render_modes": list(get_args(RenderMode)),
        "is_parallelizable": False,
        "render_fps": 1,
    }

    def __init__(
        self,
        rules: Rules | str = "archie",
        render_mode: RenderMode | None = None,
        *,
        hands: int | None = None,
        stack: int | None = None,
        dtype: Literal["float32", "int8"] = "float32",
        replacements: Replacements = "shared",
        viewpoint: Viewpoint | None = None,
    ) -> None:
        super().__init__()
        self._read_rulebook(rules, replacements)
        _one_of("render_mode", render_mode, (None, *get_args(RenderMode)))
        _one_of("dtype", dtype, ("float32", "int8"))
        _one_of("viewpoint", viewpoint, (None, *get_args(Viewpoint)))
        _at_least("hands", hands, 1)
        _at_least("stack", stack, self.rules.reserve)
        self.render_mode, self.viewpoint = render_mode, viewpoint
        self.hands, self.stack = hands, stack
        self.possible_agents = list(SEATS)
        self.agents: list[str] = []
        self._dtype = np.dtype(dtype)
        self._scales = chip_scales(self.rules, self._dtype)
        self._width, self._n_actions = width(self.rules), self.rules.actions
        top = highest(self.rules).astype(self._dtype) if dtype == "int8" else np.ones(self._width, np.float32)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(np.zeros_like(top), top, dtype=self._dtype.type),
                    "action_mask": spaces.Box(0, 1, (self._n_actions,), np.int8),
                }
            )
            for agent in SEATS
        }
        self.action_spaces = {agent: spaces.Discrete(self._n_actions) for agent in SEATS}
        self._games: NDArray[Any] = np.zeros(1, GAME)
        self._hand_number = -1
        self._history: list[int] = []
        self._rows: list[NDArray[Any] | None] = [None, None]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent; always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent; always the same object."""
        return self.action_spaces[agent]

    # ---- a hand

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Deal the first hand; see the class for ``seed`` and ``options``."""
        dealer, deck = self._read_options(options or {})
        order, given = deck_order(self.rules, deck)
        if seed is not None or self._hand_number < 0:
            table.open_table(self._games, seed_word(seed), 0)
            self._hand_number = -1
        self._deal(dealer, order, given)
        self.agents = list(SEATS)
        self.rewards = dict.fromkeys(SEATS, 0.0)
        self._cumulative_rewards = dict.fromkeys(SEATS, 0.0)
        self.terminations = dict.fromkeys(SEATS, False)
        self.truncations = dict.fromkeys(SEATS, False)
        self._hands_left = 1 if self.hands is None and self.stack is None else self.hands
        self.stacks = None if self.stack is None else dict.fromkeys(SEATS, self.stack)
        self._skip_agent_selection = None
        masks = np.empty((2, self._n_actions), np.int8)
        self.agent_selection = SEATS[table.look_masks(self._games, self._books, masks)]
        self._take(masks)

    def _read_options(self, options: Mapping[str, Any]) -> tuple[int, Any]:
        for name in options:
            if name not in _OPTIONS:  # PettingZoo's own tests pass unknown keys, so this can't be an error
                warnings.warn(f"options: unknown key {name!r} is ignored, expected {' or '.join(_OPTIONS)}", stacklevel=3)
        dealer = options.get("dealer")
        if dealer is not None and dealer not in SEATS:
            raise ArchieError(f"options: dealer {dealer!r}, expected one of {', '.join(SEATS)}")
        return -1 if dealer is None else SEATS.index(dealer), options.get("deck")

    def _deal(self, dealer: int, order: NDArray[np.int8], given: int) -> None:
        self._hand_number += 1
        self._history = []
        table.deal_table(self._games, self._books, self._hand_number, dealer, order, given)

    def _take(self, masks: NDArray[np.int8]) -> None:
        """Hand out new masks; the observations of the last position are forgotten."""
        self._masks = masks[0], masks[1]
        self._rows = [None, None]
        self.infos = {agent: {"action_mask": mask} for agent, mask in zip(SEATS, self._masks, strict=True)}
        if self.stacks is not None:
            for info in self.infos.values():
                info["stacks"] = dict(self.stacks)
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """What an agent sees and may do now."""
        if agent not in SEATS:
            raise ArchieError(f"agent {agent!r}: expected one of {', '.join(SEATS)}")
        if self._hand_number < 0:
            raise OrderError("observe: call reset() first")
        seat = 1 if agent == SEATS[1] else 0
        row = self._rows[seat]
        if row is None:
            row = self._rows[seat] = np.empty(self._width, self._dtype)
            table.look_seat(self._games, self._books, seat, row, *self._scales)
        return {"observation": row, "action_mask": self._masks[seat]}

    def action_masks(self) -> NDArray[np.int8]:
        """``(a,)``: the legal actions of the agent to act, where sb3-contrib looks for them."""
        mask: NDArray[np.int8] = self._masks[SEATS.index(self.agent_selection)]
        return mask

    def step(self, action: int | None) -> None:
        """Play an action of ``agent_selection``; None for an agent whose episode has ended."""
        if not self.agents:
            raise OrderError(f"step({action!r}): no episode is running, call reset() first")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        number = action_number(action)
        row, masks = np.empty(self._width, self._dtype), np.empty((2, self._n_actions), np.int8)
        seat = (
            table.ILLEGAL if number is None else table.step_table(self._games, self._books, number, row, masks, *self._scales)
        )
        if seat == table.ILLEGAL:
            raise self.game.illegal(action)
        self._history.append(number)  # type: ignore[arg-type]
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(SEATS, 0.0)
        if seat == table.ENDED:
            self._end_hand(masks)
            return
        self.agent_selection = SEATS[seat]
        self._take(masks)
        self._rows[seat] = row

    def _end_hand(self, masks: NDArray[np.int8]) -> None:
        """Pay the hand; deal the next one of the session, or end the episode."""
        net, dealer = float(self._games["net"][0]), int(self._games["dealer"][0])
        self.rewards = {SEATS[dealer]: net, SEATS[1 - dealer]: -net}
        self._accumulate_rewards()
        if self.stacks is not None:
            self.stacks = {agent: chips + int(self.rewards[agent]) for agent, chips in self.stacks.items()}
        if self._hands_left is not None:
            self._hands_left -= 1
        broke = self.stacks is not None and min(self.stacks.values()) < self.rules.reserve
        if broke or self._hands_left == 0:
            self.terminations = dict.fromkeys(SEATS, True)
            self.agent_selection = SEATS[0]
        else:
            self._deal(-1, *deck_order(self.rules, None))
            self.agent_selection = SEATS[table.look_masks(self._games, self._books, masks)]
        self._take(masks)

    # ---- looking

    @property
    def game(self) -> Game:
        """A readable copy of the hand, with its history; playing on it does not touch the environment."""
        if self._hand_number < 0:
            raise OrderError("game: call reset() first")
        settled = self._games.copy()
        table.settle_table(settled, self._books)
        deck = settled["deck"][0, : self.rules.deck_size].tolist()
        game = Game(self.rules, dealer=int(settled["dealer"][0]), deck=deck, replacements=self.replacements)
        for action in self._history:
            game.apply(action)
        return game

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table seen from ``viewpoint``: text (``ansi``), printed (``human``) or a picture ``(height, width, 3)`` uint8."""
        if self.render_mode is None:
            raise OrderError(f"render: no render_mode was given; make the environment with one of {get_args(RenderMode)}")
        game = self.game
        seat = game.to_act if self.viewpoint == "to_act" else None if self.viewpoint is None else SEATS.index(self.viewpoint)
        if self.render_mode == "rgb_array":
            return rgb_array(game.view(seat), self.rules, self.stacks)
        text = ansi(game.view(seat), self.rules, self.stacks)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Nothing to release."""
