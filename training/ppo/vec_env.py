"""`SingleAgentBatch` as a stable-baselines3 ``VecEnv``, for MaskablePPO and other algorithms that take one."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from archie_env._core.seats import BOTH
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.observation import highest

Indices = None | int | Iterable[int]


class SingleAgentVecEnv(VecEnv):
    """One sub-environment for each game of ``batch``; an episode is a hand.

    If the batch writes hidden cards, an observation is the row followed by 52 entries for the other player's cards: the first
    ``width(rules)`` entries are the information state, the rest is for a critic while training.

    Args:
        batch: the games; nothing else may step them.  Unless ``quiet``, it keeps walks, as episode returns without them are a
            chip a hand too high, and has an opponent everywhere, as the loops of stable-baselines3 take both players for one.
        reward_scale: multiplies net chips.  Rewards in ``info["episode"]["r"]`` stay chips times this, as SB3's Monitor has.
        quiet: leave ``infos`` empty, for a trainer that reads ``batch`` itself, as `training.ppo` does.  Building them
            costs more than playing.

    Raises:
        ArchieError: for a batch that the loops of stable-baselines3 would learn from or measure wrongly.
    """

    def __init__(self, batch: SingleAgentBatch, reward_scale: float = 1.0, quiet: bool = False) -> None:
        if not quiet and (batch.stats["role"] == BOTH).any():
            raise ArchieError(
                "batch: the learner plays both seats (an opponent None), whose decisions stable-baselines3 would credit to one "
                "player: expected an opponent everywhere, such as frozen copies of the learner"
            )
        if not quiet and not batch.keep_walks:
            raise ArchieError(
                "batch: without walks, hands that end before the learner decides, episode returns are too high: "
                "expected SingleAgentBatch(..., keep_walks=True)"
            )
        self.batch = batch
        self.reward_scale = np.float32(reward_scale)
        self.quiet = quiet
        self.render_mode = None
        integer = np.issubdtype(batch.observations.dtype, np.integer)
        high = highest(batch.rules) if integer else np.ones(batch.observations.shape[1])
        high = np.concatenate([high, np.ones(batch.hidden.shape[1])]).astype(batch.observations.dtype)
        super().__init__(
            len(batch),
            spaces.Box(np.zeros_like(high), high, dtype=batch.observations.dtype.type),
            spaces.Discrete(batch.rules.actions),
        )
        self._started = time.time()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # games of its own

    def _observe(self, final: bool = False) -> NDArray[Any]:
        """A new array ``(n, width)``, or ``(n, width + 52)`` with hidden cards."""
        batch = self.batch
        rows = batch.final_observations if final else batch.observations
        if not batch.hidden.shape[1]:
            return rows.copy()
        hidden = batch.final_hidden if final else batch.hidden
        return np.concatenate([rows, hidden.astype(rows.dtype, copy=False)], axis=1)

    def reset(self) -> NDArray[Any]:
        """Deal every game anew; with ``seed(s)`` called before, from that seed, else from a fresh one."""
        self.batch.reset(self._seeds[0])
        self.reset_infos = [{"action_mask": mask} for mask in self.batch.masks.copy()]
        self._reset_seeds()
        self._reset_options()
        self._started = time.time()
        return self._observe()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._chosen = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the learner's actions and everything up to its next decisions."""
        batch = self.batch
        batch.step(self._chosen)
        rewards = batch.rewards.astype(np.float32) * self.reward_scale
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if not self.quiet:
            self._describe(infos, rewards)
        return self._observe(), rewards, batch.done.copy(), infos

    def _describe(self, infos: list[dict[str, Any]], rewards: NDArray[np.float32]) -> None:
        masks = self.batch.masks.copy()
        for info, mask in zip(infos, masks, strict=True):
            info["action_mask"] = mask
        final = self._observe(final=True)
        elapsed = round(time.time() - self._started, 6)
        for i in np.flatnonzero(self.batch.done):
            infos[i]["terminal_observation"] = final[i]
            infos[i]["TimeLimit.truncated"] = False
            infos[i]["episode"] = {"r": float(rewards[i]), "l": int(self.batch.lengths[i]), "t": elapsed}

    def action_masks(self) -> NDArray[np.int8]:
        """A new array ``(n, a)``: 1 = legal."""
        return self.batch.masks.copy()

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """``action_masks`` of each sub-environment; there is nothing else to call."""
        if method_name != "action_masks":
            raise AttributeError(f"method {method_name!r}: a game at a table has action_masks only")
        masks = self.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The same attribute for every sub-environment."""
        if attr_name == "action_masks":
            masks = self.action_masks()
            return [lambda i=i: masks[i] for i in self._get_indices(indices)]
        if attr_name not in ("render_mode", "spec", "action_space", "observation_space"):
            raise AttributeError(f"attribute {attr_name!r}: a game at a table has none such")
        return [getattr(self, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sub-environments have no attributes of their own."""
        raise AttributeError(f"attribute {attr_name!r}: a game at a table has none to set")

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None) -> list[bool]:
        """Whether infos hold what a ``Monitor`` would put there; no other wrapper is told of."""
        return [not self.quiet and wrapper_class is Monitor for _ in self._get_indices(indices)]

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """None or nothing; games dealt on without end take no options."""
        if options and any(options if isinstance(options, list) else [options]):
            raise ArchieError(f"options {options!r}: expected none; a single environment takes a dealer and a deck")

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """No pictures."""
        return [None] * self.num_envs

    def close(self) -> None:
        """Nothing is held open."""
