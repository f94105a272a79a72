"""The Gymnasium environment: one learner against a `Policy`, an episode a hand or a session of hands.

>>> import gymnasium
>>> env = gymnasium.make("Archie-v0", opponent="uniform")
>>> observation, info = env.reset(seed=1)
>>> observation.shape, info["action_mask"].shape
((388,), (35,))
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from archie_env._core import table
from archie_env.envs._base import (
    ENDED,
    RUNNING,
    UNSET,
    IllegalActions,
    MaskPlace,
    ObservationType,
    RenderMode,
    Table,
    bound,
    observation_space,
)
from archie_env.envs.learner import Seat
from archie_env.errors import IllegalActionError, OrderError
from archie_env.game import SEATS
from archie_env.policy import Policy, as_policy, name_of, private_generator
from archie_env.rules import Replacements, Rules
from archie_env.validation import action_number, one_of, whole_actions, whole_number


class ArchieEnv(Table, gymnasium.Env[Any, Any]):
    """One learner at the table; the opponent decides inside `reset` and `step`.

    Args:
        opponent: a `Policy`, or its name: ``uniform``, and in the checkout whatever ``agents.load`` knows.
        seat: ``alternate`` (positions swap from hand to hand), ``dealer`` or ``big_blind``.
        rules: a preset's name (archie, barge, pagat, mini, midi, maxi) or a `Rules` value.
        render_mode: ``ansi``, ``rgb_array``, ``human`` (prints after every step) or None; seen from the learner's chair.
        dtype: ``float32`` observations scaled to [0, 1], or ``int8`` as the engine writes them.
        replacements: ``shared`` or ``per_seat``, see `Batch`.
        illegal: ``raise`` an `IllegalActionError` that changes nothing, or ``replace`` by check, call or standing pat, for
            checkers that sample actions blindly.
        masks: ``info`` puts the mask into ``info["action_mask"]`` alone.  ``observation`` makes observations dicts of
            ``observation`` (d,) and ``action_mask`` (a,) as well, for libraries that keep observations and drop infos.
        hands: play a session of this many hands in one episode, each paid at its end; None plays one hand, or with ``stack``
            until a player can't cover the reserve.
        stack: chips each player starts a session with; the session ends when a player can't cover ``rules.reserve`` (R1.4).
            ``info["stacks"]`` then holds the chips of ``learner`` and ``opponent``.

    The reward is the learner's net chips, paid at the end of each hand.  Masks are in ``info["action_mask"]`` and from
    `action_masks`; at the end they are all ones, since samplers need a legal action.  When the opponent ends a hand before
    the learner could decide anything, `reset` returns that end, and the next step, whatever its action, pays it: so the
    episode returns are the results of all hands.

    A seed fixes the cards and the opponent's random choices; a `reset` without one goes on to the next hand.
    """

    _found: ClassVar[tuple[str, ...]] = (*Table._found, "_look_kernel", "_mask_kernel", "_look_across_kernel")
    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(get_args(RenderMode)), "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        opponent: Policy | str = "uniform",
        seat: Seat = "alternate",
        rules: Rules | str = "archie",
        render_mode: RenderMode | None = None,
        *,
        dtype: ObservationType = "float32",
        replacements: Replacements = "shared",
        illegal: IllegalActions = "raise",
        masks: MaskPlace = "info",
        hands: int | None = None,
        stack: int | None = None,
    ) -> None:
        self._sit_down(rules, replacements, dtype, render_mode)
        one_of("illegal", illegal, get_args(IllegalActions))
        one_of("masks", masks, get_args(MaskPlace))
        self.hands, self.stack = self._session(hands, stack)
        self.opponent = as_policy(opponent, self.rules)
        self.seat, self.illegal = seat, illegal
        self.observation_space = observation_space(self.rules, dtype, masks)
        self._mask_seen = masks == "observation"
        self.action_space = spaces.Discrete(self._n_actions)
        self._their_row = np.zeros((1, self._width), np.int8)
        self._masks = np.zeros((2, self._n_actions), np.int8)
        self._learner = 0

    @property
    def seat(self) -> Seat:
        """``alternate``, ``dealer`` or ``big_blind``; a change holds from the next `reset` on."""
        return self._seat

    @seat.setter
    def seat(self, seat: Seat) -> None:
        one_of("seat", seat, get_args(Seat))
        self._seat = seat

    def _find(self) -> None:
        super()._find()
        self._deal_kernel, self._mask_kernel = bound(table.deal_table), bound(table.look_masks)
        self._look_kernel = bound(table.look_seat, self._dtype.name)
        self._play_kernel, self._look_across_kernel = bound(table.play_and_mask), bound(table.look_seat, "int8")

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Deal the next hand, or the first of a seed; ``options``: ``dealer`` and ``deck``, as in `archie_v0`."""
        reseed = seed is not None or self._hand_number < 0
        seed = None if seed is None else whole_number("seed", seed, 0)
        fixed = self._next_hand(seed, options)
        if reseed:
            super().reset(seed=seed)
            self._choices = private_generator(seed, "opponent", 0)
        self._hands_left = 1 if self.hands is None and self.stack is None else self.hands
        self.stacks = None if self.stack is None else {"learner": self.stack, "opponent": self.stack}
        self._deal(*fixed)
        return self._seen()

    def _deal(self, *fixed: Any) -> None:
        """Deal a hand and let the opponent act until the learner may."""
        self._deal_kernel(self._games, self._books, self._hand_number, *fixed)
        dealer = int(self._games["dealer"][0])
        self._learner = 0 if self.seat == "alternate" else dealer if self.seat == "dealer" else 1 - dealer
        self._opponent_acts(self._mask_kernel(self._games, self._books, self._masks))
        self._stage = RUNNING

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's action and everything up to its next decision."""
        if self._stage != RUNNING:
            raise OrderError(f"step({action!r}): no episode is running, call reset() first")
        if not self._games["over"][0]:  # else the opponent had ended the hand before the learner could decide
            number = action_number(action)
            if self.illegal == "replace" and not (0 <= number < self._n_actions and self._masks[self._learner, number]):
                number = self._substitute()
            self._stage = UNSET  # until the opponent has answered: its fault leaves the hand half played
            seat = self._play_kernel(self._games, self._books, number, self._masks)
            if seat == table.ILLEGAL:
                self._stage = RUNNING
                raise self.game.illegal(action)
            self._history.append(number)
            seat = self._opponent_acts(seat)
            self._stage = RUNNING
            if seat != table.ENDED:
                observation, info = self._seen()
                return observation, 0.0, False, False, info
        reward = self._net()[self._learner]
        over = self._session_over(reward)
        if over:
            self._stage = ENDED
        else:
            if self.render_mode == "human":
                self.render()  # the end of this hand, before the next one covers it
            self._deal(*self._next_hand(None, None))
        observation, info = self._seen()
        return observation, reward, over, False, info

    def _session_over(self, reward: float) -> bool:
        """Pay a hand that has ended, and return whether the session ends with it."""
        if self.stacks is not None:
            self.stacks = {"learner": self.stacks["learner"] + int(reward), "opponent": self.stacks["opponent"] - int(reward)}
        if self._hands_left is not None:
            self._hands_left -= 1
        broke = self.stacks is not None and min(self.stacks.values()) < self.rules.reserve
        return broke or self._hands_left == 0

    def _opponent_acts(self, seat: int) -> int:
        """Let the opponent act until it is the learner's turn or the hand is over; returns whose turn it is."""
        while seat == 1 - self._learner:
            self._look_across_kernel(self._games, self._books, seat, self._their_row[0], 1, 1)
            masks = self._masks[seat : seat + 1].copy()  # without the learner's mask behind it
            acted = self.opponent.act(self._their_row.copy(), masks, self._choices)
            answer = whole_actions(acted, 1, f"opponent {name_of(self.opponent)!r}")[0].item()
            action = action_number(answer)
            seat = self._play_kernel(self._games, self._books, action, self._masks)
            if seat == table.ILLEGAL:
                error = self._readable().illegal(answer)
                raise IllegalActionError(f"opponent {name_of(self.opponent)!r}: {error}")
            self._history.append(action)
        return seat

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        """What the learner sees now, in new arrays."""
        row = np.empty(self._width, self._dtype)
        self._look_kernel(self._games, self._books, self._learner, row, self._pot_scale, self._owed_scale)
        if self.render_mode == "human":
            self.render()
        info: dict[str, Any] = {"action_mask": self.action_masks()}
        if self.stacks is not None:
            info["stacks"] = dict(self.stacks)
        return {"observation": row, "action_mask": self.action_masks()} if self._mask_seen else row, info

    def action_masks(self) -> NDArray[np.int8]:
        """``(a,)``: a new array, 1 = legal; all ones when the hand is over."""
        if self._games["over"][0]:
            return np.ones(self._n_actions, np.int8)
        mask: NDArray[np.int8] = self._masks[self._learner].copy()
        return mask

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table from the learner's chair: text (``ansi``), printed (``human``) or a picture ``(h, w, 3)`` uint8."""
        if self.stacks is None:
            return self._draw(self.game, self._learner)
        stacks = {SEATS[self._learner]: self.stacks["learner"], SEATS[1 - self._learner]: self.stacks["opponent"]}
        return self._draw(self.game, self._learner, stacks)
