"""The Gymnasium ``VectorEnv``: n games from the learner's chair, its opponent deciding for all of them at once.

>>> import numpy as np
>>> envs = ArchieVectorEnv(4, opponent="uniform")
>>> observations, infos = envs.reset(seed=1)
>>> observations.shape, infos["action_mask"].shape
((4, 388), (4, 35))
>>> actions = infos["action_mask"].argmax(axis=1)  # the first legal action of each game
>>> observations, rewards, terminations, truncations, infos = envs.step(actions)
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, Self, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from archie_env._core import seats
from archie_env.envs._base import IllegalActions, MaskPlace, observation_space
from archie_env.envs.learner import Seat, SingleAgentBatch
from archie_env.errors import ArchieError, OrderError
from archie_env.policy import Policy, as_policy
from archie_env.rules import Replacements, Rules, as_rules
from archie_env.validation import one_of, whole_actions, whole_number


class ArchieVectorEnv(VectorEnv[Any, NDArray[np.integer[Any]], NDArray[Any]]):
    """``num_envs`` games; an episode is a hand, its reward the learner's net chips, paid once.

    A hand that the opponent ends before the learner could decide anything is shown with an all-ones mask, and the next action,
    whatever it is, pays it: so episode returns are the results of all hands, as in the single environment.  ``tables`` keeps
    the account.  The masks of legal actions are in ``infos["action_mask"]`` ``(num_envs, a)``: all ones where a hand has
    just ended and the next action is not played.

    Args:
        num_envs: games.
        opponent: a `Policy` or its name.
        seat: ``alternate`` (the position swaps from hand to hand), ``dealer`` or ``big_blind``.
        rules: a preset's name or a `Rules` value.
        autoreset_mode: ``NextStep`` shows the end of a hand and deals at the next step, whatever action comes; ``SameStep``
            deals at once and keeps the end in ``infos["final_obs"]`` and ``infos["final_info"]``.
        dtype: of observations: ``float32`` scaled to [0, 1], ``int8``, or ``packed`` as in `Batch`, masks included.
        replacements: as in `Batch`.
        copy: give out new arrays at each step; False gives out those that the next step overwrites, which is faster.
        illegal: ``raise`` an `IllegalActionError` before anything is played, or ``replace`` by check, call or standing pat.
        masks: as in the single environment: ``observation`` makes observations dicts of ``observation`` ``(num_envs, d)`` and
            ``action_mask`` ``(num_envs, a)``.
        render_mode: None; a batch has no picture.
        max_episode_steps: None; a hand ends by itself and is never truncated.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Policy | str = "uniform",
        seat: Seat = "alternate",
        rules: Rules | str = "archie",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        dtype: str = "float32",
        replacements: Replacements = "shared",
        copy: bool = True,
        illegal: IllegalActions = "raise",
        masks: MaskPlace = "info",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            raise ArchieError(f"autoreset_mode {autoreset_mode!r}: expected 'NextStep' or 'SameStep'") from None
        one_of("illegal", illegal, get_args(IllegalActions))
        one_of("masks", masks, get_args(MaskPlace))
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ArchieError(f"autoreset_mode {mode}: expected NEXT_STEP or SAME_STEP, as games are dealt on without end")
        if render_mode is not None:
            raise ArchieError(f"render_mode {render_mode!r}: expected None, as a batch has no picture")
        if max_episode_steps is not None:
            raise ArchieError(
                f"max_episode_steps {max_episode_steps!r}: expected None, as a hand cut short has no result to pay"
            )
        played = as_rules(rules)
        self.tables = SingleAgentBatch(
            num_envs, [as_policy(opponent, played)], rules=played, seed=0, seat=seat, dtype=dtype, replacements=replacements,
            fresh=copy, keep_walks=True,
        )  # fmt: skip
        self.num_envs = num_envs
        self.render_mode = None
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}  # type: ignore[misc]  # each env has its own
        self.autoreset_mode = mode  # as Gymnasium's own vector environments have it; TorchRL reads it here
        self.single_observation_space = observation_space(played, dtype, masks)
        self.single_action_space = spaces.Discrete(played.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._mask_seen = masks == "observation"
        self._replace, self._begun = illegal == "replace", False

    def __copy__(self) -> Self:
        return deepcopy(self)  # games of its own

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Deal every game anew: from ``seed`` (one int for all games), or going on from the seed given before."""
        if isinstance(seed, list):
            raise ArchieError("seed: expected one int, as game i of a seed is the same in a batch of any size")
        if options:
            raise ArchieError(f"options {sorted(options)}: expected none; single environments take a dealer and a deck")
        seed = None if seed is None else whole_number("seed", seed, 0)
        super().reset(seed=seed)
        self.tables.reset(seed if seed is not None else int(self.np_random.integers(2**63)))
        self._begun = True
        return self._seen(self.tables.observations, self.tables.masks), self._infos(self.tables.masks)

    def step(self, actions: ArrayLike) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one action in every game; raises `IllegalActionError` before anything is played."""
        tables = self.tables
        if not self._begun:
            raise OrderError("step: call reset() first")
        if self._replace:
            actions = whole_actions(actions, self.num_envs).copy()
            seats.replace_illegal(tables.games, tables._books, actions)
        tables.step(actions, None if self._same_step else ~tables.done)
        done = tables.done.copy()
        observations, masks = tables.observations, tables.masks
        infos = self._infos(masks)
        if self._same_step:
            if done.any():
                infos |= self._final(done)
        else:
            # The next step writes the hands dealt since.
            seats.show_ends(tables._books, done, tables.final_observations, observations, masks)
        rewards, truncated = tables.rewards.astype(np.float64), np.zeros(self.num_envs, np.bool_)
        return self._seen(observations, masks), rewards, done.copy(), truncated, infos

    def _seen(self, rows: NDArray[Any], masks: NDArray[Any]) -> Any:
        """Rows, or with ``masks="observation"`` rows and masks, which are not those in infos."""
        return {"observation": rows, "action_mask": masks.copy()} if self._mask_seen else rows

    def action_masks(self) -> NDArray[Any]:
        """A new array ``(num_envs, a)``: 1 = legal, as in the last ``infos``."""
        masks = self.tables.legal_masks()
        if not self._same_step:
            self._allow_all(masks, self.tables.done)
        return masks

    def _allow_all(self, masks: NDArray[Any], where: NDArray[np.bool_]) -> None:
        masks[where] = 2**self.tables.rules.actions - 1 if masks.dtype == np.uint64 else 1

    def _infos(self, masks: NDArray[Any]) -> dict[str, Any]:
        return {"action_mask": masks, "_action_mask": np.ones(self.num_envs, np.bool_)}

    def _final(self, done: NDArray[np.bool_]) -> dict[str, Any]:
        """How the hands ended that this step replaced by new ones, in Gymnasium's form."""
        observations = np.full(self.num_envs, None, dtype=object)
        masks = np.zeros_like(self.tables.masks)
        self._allow_all(masks, done)
        for i, row in zip(np.flatnonzero(done), self.tables.final_observations[done], strict=True):
            observations[i] = self._seen(row, masks[i])
        info = {"action_mask": masks, "_action_mask": done.copy()}
        return {"final_obs": observations, "_final_obs": done.copy(), "final_info": info, "_final_info": done.copy()}
