"""The PettingZoo environment: one hand, or a session of hands with stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from archie_env._core.table import ENDED, ILLEGAL
from archie_env.envs._base import ObservationType, RenderMode, Table, bound, new_arrays, row_space
from archie_env.errors import ArchieError, OrderError
from archie_env.game import SEATS, Game
from archie_env.observation import width
from archie_env.rules import Replacements, Rules
from archie_env.validation import action_number, one_of, whole_number

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
        viewpoint: whose cards `render` shows: a seat's, those of whoever is to act, or None for both.

    Observations are dicts of ``observation`` (d,) and ``action_mask`` (a,) int8, 1 = legal, zeros for whoever is not to act.
    Rewards are net chips, paid at the end of each hand.  An illegal action raises `IllegalActionError` and changes nothing.
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
        viewpoint: Viewpoint | None = None,
    ) -> None:
        super().__init__()
        self._sit_down(rules, replacements, dtype, render_mode)
        one_of("viewpoint", viewpoint, (None, *get_args(Viewpoint)))
        if hands is not None:
            whole_number("hands", hands, 1)
        if stack is not None:
            whole_number("stack", stack, self.rules.reserve)
        self.viewpoint, self.hands, self.stack = viewpoint, hands, stack
        self.possible_agents = list(SEATS)
        self.agents: list[str] = []
        masks = spaces.Box(0, 1, (self._n_actions,), np.int8)
        self.observation_spaces = {
            agent: spaces.Dict({"observation": row_space(self.rules, dtype), "action_mask": masks}) for agent in SEATS
        }
        self.action_spaces = {agent: spaces.Discrete(self._n_actions) for agent in SEATS}
        self._running = False  # whether a hand is being played
        self._row: NDArray[Any] | None = None  # what `agent_selection` sees, None once an agent has left
        self._infos: dict[str, dict[str, Any]] | None = None  # None until someone asks

    def _find(self) -> None:
        super()._find()
        self._new = new_arrays((width(self.rules), self._dtype), (self.rules.actions, np.int8))
        self._deal_kernel, self._play_kernel = (bound(name, self._dtype.name) for name in ("begin_table", "step_table"))

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent; always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent; always the same object."""
        return self.action_spaces[agent]

    # ---- a hand

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Deal the first hand; see the class for ``seed`` and ``options``."""
        fixed = self._next_hand(seed, options)
        self.agents = [_FIRST, _SECOND]
        self.rewards, self._paid = {_FIRST: 0.0, _SECOND: 0.0}, False
        self._cumulative_rewards = {_FIRST: 0.0, _SECOND: 0.0}
        self.terminations = {_FIRST: False, _SECOND: False}
        self.truncations = {_FIRST: False, _SECOND: False}
        self._hands_left = 1 if self.hands is None and self.stack is None else self.hands
        self.stacks = None if self.stack is None else dict.fromkeys(SEATS, self.stack)
        self._skip_agent_selection = None
        self._finished: Game | None = None
        self._running = True
        self._deal(*fixed)

    def _deal(self, dealer: int, order: NDArray[np.int8], given: int) -> None:
        row, mask = next(self._new)
        seat = self._deal_kernel(
            self._games, self._books, self._hand_number, dealer, order, given, row, mask, self._pot_scale, self._owed_scale
        )
        self._turn_to(seat, row, mask)

    def _turn_to(self, seat: int, row: NDArray[Any], mask: NDArray[np.int8]) -> None:
        """Turn to a seat, for what it sees and may do; the other seat's is made when asked for."""
        self.agent_selection = SEATS[seat]
        self._row, self._mask = row, mask
        self._info: dict[str, Any] = {"action_mask": mask}
        self._infos = None
        if self.stacks is not None:
            self._info["stacks"] = dict(self.stacks)
        if self.render_mode == "human":
            self.render()

    @property
    def infos(self) -> dict[str, dict[str, Any]]:
        """By agent: ``action_mask``, and in a session with stacks ``stacks``."""
        if self._infos is None:
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
        look = bound("look_seat", self._dtype.name)  # few ask for more than the row of the seat to act
        look(self._games, self._books, SEATS.index(agent), row, self._pot_scale, self._owed_scale)
        info = self.infos.get(agent)  # none once its episode is over
        return {"observation": row, "action_mask": info["action_mask"] if info else np.zeros(self._n_actions, np.int8)}

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation, reward since its last turn, terminated, truncated and info of the agent to act."""
        if not self.agents:
            raise OrderError("last: no episode is running, call reset() first")
        agent = self.agent_selection
        if not observe:
            seen = None
        elif self._row is None:
            seen = self.observe(agent)
        else:
            seen = {"observation": self._row, "action_mask": self._mask}
        return seen, self._cumulative_rewards[agent], self.terminations[agent], self.truncations[agent], self._info

    def action_masks(self) -> NDArray[np.int8]:
        """``(a,)``: the legal actions of the agent to act, where sb3-contrib looks for them."""
        self._check_begun("action_masks")
        return self._mask

    def step(self, action: int | None) -> None:
        """Play an action of ``agent_selection``; None for an agent whose episode has ended."""
        if not self._running:
            self._step_after_the_end(action)
            return
        number = action_number(action)
        row, mask = next(self._new)
        seat = self._play_kernel(self._games, self._books, number, row, mask, self._pot_scale, self._owed_scale)
        if seat == ILLEGAL:
            raise self.game.illegal(action)
        self._history.append(number)
        if self._paid:
            self._forget_rewards()
        if seat == ENDED:
            self._end_hand(row, mask)
        else:
            self._turn_to(seat, row, mask)

    def _step_after_the_end(self, action: int | None) -> None:
        if not self.agents:
            raise OrderError(f"step({action!r}): no episode is running, call reset() first")
        if action is not None:
            raise OrderError(
                f"step({action!r}): the episode of {self.agent_selection} has ended, the only valid action is None"
            )
        infos = self.infos
        self._was_dead_step(action)
        self._row, self._info = None, infos.get(self.agent_selection, {})

    def _forget_rewards(self) -> None:
        """Rewards are of the last step alone, and an agent's own sum ends with its next action."""
        self.rewards = {_FIRST: 0.0, _SECOND: 0.0}
        self._cumulative_rewards[self.agent_selection] = 0.0
        self._paid = any(self._cumulative_rewards.values())

    def _end_hand(self, row: NDArray[Any], mask: NDArray[np.int8]) -> None:
        """Pay the hand; deal the next one of the session, or end the episode."""
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
            self._running = False
            self.terminations = {_FIRST: True, _SECOND: True}
            self._turn_to(0, row, mask)
        else:
            if self.render_mode == "human":
                self.render()  # the end of this hand, before the next one covers it
            self._finished = self.game
            self._deal(*self._next_hand(None, None))

    # ---- looking

    @property
    def finished_game(self) -> Game | None:
        """In a session, the hand before the present one, as it ended; None in the first."""
        return self._finished

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table seen from ``viewpoint``: text (``ansi``), printed (``human``) or a picture ``(height, width, 3)`` uint8."""
        self._check_begun("render")
        if self.viewpoint != "to_act":
            return self._draw(self.game, None if self.viewpoint is None else SEATS.index(self.viewpoint), self.stacks)
        game = self.game
        return self._draw(game, game.history[-1].seat if game.to_act is None else game.to_act, self.stacks)

    def close(self) -> None:
        """Nothing to release."""
