"""The PettingZoo environment: one hand, or a session of hands with stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from archie_env._core import table
from archie_env._core.state import NO_CARD
from archie_env.envs._base import (
    ENDED,
    RUNNING,
    UNSET,
    IllegalActions,
    ObservationType,
    RenderMode,
    Table,
    bound,
    new_arrays,
    row_space,
)
from archie_env.errors import ArchieError, OrderError
from archie_env.game import SEATS, Game
from archie_env.observation import width
from archie_env.rules import Replacements, Rules
from archie_env.validation import action_number, one_of

Viewpoint = Literal["player_0", "player_1", "to_act"]
_FIRST, _SECOND = SEATS


class raw_env(Table, AECEnv[str, dict[str, NDArray[Any]], int]):  # type: ignore[misc]  # noqa: N801  (PettingZoo's name)
    """Heads-up Archie as an AEC environment.

    Args:
        rules: a preset's name (archie, barge, pagat, mini, midi, maxi) or a `Rules` value.
        render_mode: ``ansi`` for text, ``rgb_array`` for a picture, ``human`` to print the text after every step, or None.
        hands: play a session of this many hands, positions swapping; None plays one hand, or with ``stack`` until a player
            can't cover the reserve.
        stack: chips each player starts a session with; the session ends when a player can't cover ``rules.reserve`` (R1.4).
        dtype: ``float32`` observations scaled to [0, 1], or ``int8`` as the engine writes them.
        replacements: ``shared`` or ``per_seat``, see `Batch`.
        illegal: ``raise`` an `IllegalActionError` that changes nothing, or ``replace`` by check, call or standing pat, for
            checkers that sample actions blindly.
        viewpoint: whose cards `render` shows: those of a seat, of the seat to act, or None for both.

    Observations are dicts of ``observation`` (d,) and ``action_mask`` (a,) int8, 1 = legal, zeros for the seat not to act.
    Rewards are net chips, paid at the end of each hand.
    After an interrupt or a fault inside a call, the next one raises `OrderError` until `reset`.
    ``reset`` takes a seed and ``options``: ``dealer`` (``player_0`` or ``player_1``) and ``deck`` (cards in the order they are
    dealt, whole or a beginning) for the first hand.  A reset without a seed goes on to the next hand, the other player dealing.
    """

    _found: ClassVar[tuple[str, ...]] = (*Table._found, "_new")
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
        dtype: ObservationType = "float32",
        replacements: Replacements = "shared",
        illegal: IllegalActions = "raise",
        viewpoint: Viewpoint | None = None,
    ) -> None:
        super().__init__()
        self._sit_down(rules, replacements, dtype, render_mode)
        one_of("viewpoint", viewpoint, (None, *get_args(Viewpoint)))
        one_of("illegal", illegal, get_args(IllegalActions))
        self.viewpoint, self.illegal = viewpoint, illegal
        self.hands, self.stack = self._session(hands, stack)
        self.possible_agents = list(SEATS)
        self.agents: list[str] = []
        masks = spaces.Box(0, 1, (self._n_actions,), np.int8)
        self.observation_spaces = {
            agent: spaces.Dict({"observation": row_space(self.rules, dtype), "action_mask": masks}) for agent in SEATS
        }
        self.action_spaces = {agent: spaces.Discrete(self._n_actions) for agent in SEATS}
        deck = np.full(self.rules.deck_size, 1 if dtype == "float32" else NO_CARD - 1, self._dtype)
        row = row_space(self.rules, dtype).high
        self.state_space = spaces.Box(self._dtype.type(0), np.concatenate((row, row, deck)), dtype=self._dtype.type)
        self._row: NDArray[Any] | None = None  # observation of `agent_selection`, None once an agent has left
        self._infos: dict[str, dict[str, Any]] | None = None  # None until `infos` is read

    def _find(self) -> None:
        super()._find()
        self._new = self._new_arrays()
        self._deal_kernel = bound(table.begin_table, self._dtype.name)
        self._play_kernel = bound(table.step_table, self._dtype.name)

    def _new_arrays(self) -> Iterator[tuple[NDArray[Any], ...]]:
        return new_arrays((width(self.rules), self._dtype), (self.rules.actions, np.int8))

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent; always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent; always the same object."""
        return self.action_spaces[agent]

    # ---- a hand

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Deal the first hand; see the class for ``seed`` and ``options``."""
        torn = self._stage == UNSET
        fixed = self._next_hand(seed, options)
        if torn:
            self._new = self._new_arrays()  # an interrupt ends a generator
        self.agents = [_FIRST, _SECOND]
        self.rewards, self._paid = {_FIRST: 0.0, _SECOND: 0.0}, False
        self._cumulative_rewards = {_FIRST: 0.0, _SECOND: 0.0}
        self.terminations = {_FIRST: False, _SECOND: False}
        self.truncations = {_FIRST: False, _SECOND: False}
        self._hands_left = 1 if self.hands is None and self.stack is None else self.hands
        self.stacks = None if self.stack is None else dict.fromkeys(SEATS, self.stack)
        self._skip_agent_selection = None
        self._finished: Game | None = None
        self._deal(*fixed)
        self._stage = RUNNING
        if self.render_mode == "human":
            self.render()

    def _deal(self, dealer: int, order: NDArray[np.int8], given: int) -> None:
        row, mask = next(self._new)
        seat = self._deal_kernel(
            self._games, self._books, self._hand_number, dealer, order, given, row, mask, self._pot_scale, self._owed_scale
        )
        self._turn_to(seat, row, mask)

    def _turn_to(self, seat: int, row: NDArray[Any], mask: NDArray[np.int8]) -> None:
        """Turn to a seat with its observation and mask; the other seat's are made when they are read."""
        self.agent_selection = SEATS[seat]
        self._row, self._mask = row, mask
        self._info: dict[str, Any] = {"action_mask": mask}
        self._infos = None
        if self.stacks is not None:
            self._info["stacks"] = dict(self.stacks)

    @property
    def infos(self) -> dict[str, dict[str, Any]]:
        """By agent: ``action_mask``, and in a session with stacks ``stacks``."""
        if self._infos is None:
            self._check_begun("infos")
            none = {**self._info, "action_mask": np.zeros(self._n_actions, np.int8)}
            self._infos = {agent: self._info if agent == self.agent_selection else none for agent in SEATS}
        return self._infos

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """What an agent sees and may do now."""
        if agent not in self.possible_agents:
            raise ArchieError(f"agent {agent!r}: expected one of {', '.join(SEATS)}")
        if self._row is not None and agent == self.agent_selection:
            return {"observation": self._row, "action_mask": self._mask}
        self._check_begun("observe")
        row = np.empty(self._width, self._dtype)
        self._look(SEATS.index(agent), row)
        info = self.infos.get(agent)  # none once its episode is over
        return {"observation": row, "action_mask": info["action_mask"] if info else np.zeros(self._n_actions, np.int8)}

    def _look(self, seat: int, row: NDArray[Any]) -> None:
        look = bound(table.look_seat, self._dtype.name)  # looked up here, as few read more than the row of the seat to act
        look(self._games, self._books, seat, row, self._pot_scale, self._owed_scale)

    def state(self) -> NDArray[Any]:
        """The whole hidden state ``(2 d + deck_size,)``, for centralised critics in training only: no player may see it.

        Observation of player_0, observation of player_1, and all cards in the order they are dealt, as ids (divided by 51 in
        float32).
        """
        self._check_begun("state")
        state = np.empty(self.state_space.shape or (), self._dtype)
        for seat in (0, 1):
            self._look(seat, state[seat * self._width : (seat + 1) * self._width])
        deck = np.array(self.game.deck, self._dtype)
        state[2 * self._width :] = deck / (NO_CARD - 1) if self._dtype.kind == "f" else deck
        return state

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward since its last turn, terminated, truncated and info of the agent to act."""
        if self._stage != RUNNING:
            self._check_agents("last")
        agent = self.agent_selection
        if not observe:
            seen = None
        elif self._row is None:
            seen = self.observe(agent)
        else:
            seen = {"observation": self._row, "action_mask": self._mask}
        return seen, self._cumulative_rewards[agent], self.terminations[agent], self.truncations[agent], self._info

    def action_masks(self) -> NDArray[np.int8]:
        """``(a,)``: a new array, the legal actions of the agent to act, where sb3-contrib looks for them."""
        self._check_begun("action_masks")
        masks = np.empty((2, self._n_actions), np.int8)
        seat = bound(table.look_masks)(self._games, self._books, masks)
        mask: NDArray[np.int8] = masks[0 if seat == table.ENDED else seat]
        return mask

    def step(self, action: int | None) -> None:
        """Play an action of ``agent_selection``; None for an agent whose episode has ended."""
        if self._stage != RUNNING:
            self._step_after_the_end(action)
            return
        number = action_number(action)
        self._stage = UNSET
        row, mask = next(self._new)
        seat = self._play_kernel(self._games, self._books, number, row, mask, self._pot_scale, self._owed_scale)
        if seat == table.ILLEGAL:
            if self.illegal == "raise":
                self._stage = RUNNING
                raise self.game.illegal(action)
            number = self._substitute()
            seat = self._play_kernel(self._games, self._books, number, row, mask, self._pot_scale, self._owed_scale)
        self._history.append(number)
        if self._paid:
            self._forget_rewards()
        if seat != table.ENDED:
            self._turn_to(seat, row, mask)
            self._stage = RUNNING
        else:
            self._stage = self._end_hand(row, mask)
        if self.render_mode == "human":
            self.render()

    def _check_agents(self, call: str) -> None:
        if self._stage == UNSET or not self.agents:
            raise OrderError(f"{call}: no episode is running, call reset() first")

    def _step_after_the_end(self, action: int | None) -> None:
        self._check_agents(f"step({action!r})")
        if action is not None:
            raise OrderError(
                f"step({action!r}): the episode of {self.agent_selection} has ended, the only valid action is None"
            )
        infos = self.infos
        self._stage = UNSET
        self._was_dead_step(action)
        self._row, self._info = None, infos.get(self.agent_selection, {})
        self._stage = ENDED

    def _forget_rewards(self) -> None:
        """Rewards are of the last step alone, and an agent's own sum ends with its next action."""
        self.rewards = {_FIRST: 0.0, _SECOND: 0.0}
        self._cumulative_rewards[self.agent_selection] = 0.0
        self._paid = any(self._cumulative_rewards.values())

    def _end_hand(self, row: NDArray[Any], mask: NDArray[np.int8]) -> int:
        """Pay the hand; deal the next one of the session, or end the episode.  Return the stage."""
        first, second = self._net()
        self.rewards, self._paid = {_FIRST: first, _SECOND: second}, True
        self._cumulative_rewards[_FIRST] += first
        self._cumulative_rewards[_SECOND] += second
        if self.stacks is not None:
            self.stacks = {agent: chips + int(self.rewards[agent]) for agent, chips in self.stacks.items()}
        if self._hands_left is not None:
            self._hands_left -= 1
        broke = self.stacks is not None and min(self.stacks.values()) < self.rules.reserve
        if broke or self._hands_left == 0:
            self.terminations = {_FIRST: True, _SECOND: True}
            self._turn_to(0, row, mask)
            return ENDED
        if self.render_mode == "human":
            self._render()  # the end of this hand, before the next one covers it
        self._finished = self._readable()
        self._deal(*self._next_hand(None, None))
        return RUNNING

    # ---- looking

    @property
    def finished_game(self) -> Game | None:
        """In a session, the hand before the present one, as it ended; None in the first."""
        return self._finished

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table seen from ``viewpoint``: text (``ansi``), printed (``human``) or a picture ``(height, width, 3)`` uint8."""
        self._check_begun("render")
        return self._render()

    def _render(self) -> str | NDArray[np.uint8] | None:
        game = self._readable()
        if self.viewpoint != "to_act":
            return self._draw(game, None if self.viewpoint is None else SEATS.index(self.viewpoint), self.stacks)
        return self._draw(game, game.history[-1].seat if game.to_act is None else game.to_act, self.stacks)

    def close(self) -> None:
        """Nothing to release."""
