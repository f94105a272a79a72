"""Copies and pickles of environments: the same future, games of their own, and the opponent's tables shared."""

from __future__ import annotations

import copy
import gc
import hashlib
import pickle
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from stable_baselines3 import DQN

from agents import load
from agents.ppo import PPOPolicy
from agents.registry import WEIGHTS
from archie_env import Batch, archie_v0
from archie_env.actions import CALL, STAND_PAT
from archie_env.envs.learner import SingleAgentBatch
from archie_env.envs.single import ArchieEnv
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.errors import ArchieError
from archie_env.policy import Policy
from training.ppo.vec_env import SingleAgentVecEnv

MOST = 100_000
"""Bytes of a pickle, however large the opponent's tables are."""
COPIERS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}
ENVIRONMENTS: dict[str, Callable[[Policy], Any]] = {
    "single": lambda opponent: ArchieEnv(opponent, hands=50),
    "vector": lambda opponent: ArchieVectorEnv(4, opponent),
    "same_step": lambda opponent: ArchieVectorEnv(4, opponent, autoreset_mode="SameStep", dtype="int8", illegal="replace"),
    "learner": lambda opponent: SingleAgentBatch(4, [opponent, None, opponent], seed=0, fresh=True, hidden=True),
    "sb3": lambda opponent: SingleAgentVecEnv(SingleAgentBatch(4, [opponent], seed=0, keep_walks=True)),
}
OPPONENTS = ("champion", "cfr_small", "ppo", "ppo:", "sb3:", "module:", "rule_based", "raise_draw", "uniform")
MODULE = '''
import numpy as np
from archie_env.policy import StochasticPolicy

class Counter(StochasticPolicy):
    """Plays by how often it has been asked, so that a copy that shared its count would play otherwise."""

    def __init__(self):
        self.asked = 0

    def act(self, observations, masks, rng):
        self.asked += 1
        last = masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)
        calls = 1 + 2 * (masks[:, 1] == 0)
        return np.where(rng.random(len(masks)) < 0.3, last, masks.argmax(axis=1) if self.asked % 3 else calls)
'''


@pytest.fixture(scope="module")
def opponents(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function from a name in `OPPONENTS` to the policy."""
    folder = tmp_path_factory.mktemp("opponents")
    shipped = PPOPolicy.load(WEIGHTS / "ppo.npz")
    PPOPolicy(shipped.weights, {**shipped.meta, "of": "test_copies"}).save(folder / "own.npz")
    made = DQN(
        "MlpPolicy", ArchieEnv(illegal="replace"), policy_kwargs={"net_arch": [300]}, device="cpu", seed=1, buffer_size=9
    )
    made.save(folder / "model")
    (folder / "counting_bot_of_test_copies.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    names = {
        "ppo:": f"ppo:{folder / 'own.npz'}",
        "sb3:": f"sb3:{folder / 'model.zip'}",
        "module:": "counting_bot_of_test_copies:Counter",
    }
    loaded = {name: load(names.get(name, name)) for name in OPPONENTS}
    yield lambda name: copy.deepcopy(loaded[name])
    sys.path.remove(str(folder))


def future(env: Any, steps: int = 25) -> list[bytes]:
    """All that an environment shows while calls, pats and raises are played."""
    shown: list[bytes] = []
    inner = env.batch if isinstance(env, SingleAgentVecEnv) else env
    for t in range(steps):
        masks = np.atleast_2d(inner.masks if isinstance(inner, SingleAgentBatch) else env.action_masks())
        actions = np.where(masks[:, CALL] == 1, CALL + (masks[:, CALL + 1] == 1) * (t % 2), STAND_PAT + t % 3)
        actions = np.where(masks.all(axis=1), CALL, actions)
        parts: tuple[Any, ...]
        if isinstance(env, ArchieEnv):
            parts = env.step(int(actions[0]))
            if parts[2]:
                env.reset()
        elif isinstance(env, SingleAgentBatch):
            env.step(actions)
            parts = env.observations, env.masks, env.rewards, env.done, env.hidden, env.stats
        else:
            parts = env.step(actions)
        shown += [np.asarray(part).tobytes() for part in parts if not isinstance(part, (dict, list))]
        shown.append(masks.tobytes())
    return shown


def begun(kind: str, opponent: Policy) -> Any:
    env = ENVIRONMENTS[kind](opponent)
    if kind == "sb3":
        env.seed(5)
        env.reset()
    elif kind == "learner":
        env.reset(5)
    else:
        env.reset(seed=5)
    future(env, 3)
    return env


def tables(opponent: Any) -> list[NDArray[Any]]:
    """The large arrays of a player."""
    return [array for array in getattr(opponent, "weights", {}).values() if array.nbytes > 10_000]


@pytest.mark.parametrize("name", OPPONENTS)
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_copies_have_the_same_future_and_share_the_tables_of_the_opponent(
    kind: str, name: str, opponents: Callable[[str], Policy]
) -> None:
    env = begun(kind, opponents(name))
    copies = [copier(env) for copier in COPIERS.values()]
    assert len(pickle.dumps(env)) < MOST
    first = future(copies[0])
    assert future(env) == first  # the copy's steps were not the original's
    assert all(future(other) == first for other in copies[1:])
    original = tables(opponents(name)) if name not in ("uniform", "rule_based", "raise_draw", "module:") else []
    assert original or name in ("uniform", "rule_based", "raise_draw", "module:")
    for other in copies:
        inner = getattr(other, "batch", getattr(other, "tables", other))
        held = inner.opponent if isinstance(inner, ArchieEnv) else inner.opponents[0]
        mine = env.batch if kind == "sb3" else getattr(env, "tables", env)
        theirs = mine.opponent if isinstance(mine, ArchieEnv) else mine.opponents[0]
        for one, another in zip(tables(held), tables(theirs), strict=True):
            assert np.shares_memory(one, another)
            assert not one.flags.writeable


@pytest.mark.parametrize("copier", COPIERS)
def test_copies_of_sessions_and_batches_have_the_same_future(copier: str) -> None:
    env = archie_v0.env(hands=20, stack=600)
    env.reset(seed=3)

    def session(of: Any) -> list[Any]:
        seen = []
        for t in range(60):
            observation, reward, *_ = of.last()
            mask = observation["action_mask"]
            seen.append((observation["observation"].tobytes(), reward, of.state().tobytes(), dict(of.stacks)))
            of.step(int(mask.nonzero()[0][-1 if t % 4 == 0 else mask[0]]))
        return seen

    other = COPIERS[copier](env)
    assert session(other) == session(env)
    batch = Batch(8, seed=1)
    another = COPIERS[copier](batch)
    for one in (another, batch):
        for _ in range(20):
            one.step(one.sample_actions())
    assert np.array_equal(batch.games, another.games)
    assert not np.shares_memory(batch.games, another.games)


def test_a_model_of_sb3_whose_file_is_gone_is_pickled_whole(opponents: Callable[[str], Policy], tmp_path: Path) -> None:
    shutil.copy(opponents("sb3:").name.removeprefix("sb3:"), path := tmp_path / "model.zip")
    player = load(f"sb3:{path}")
    path.unlink()
    again = pickle.loads(pickle.dumps(player))
    batch = Batch(50, seed=1)
    one, other = (p.probabilities(batch.observations, batch.masks) for p in (player, again))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", ["single", "vector"])
@pytest.mark.parametrize("change", ["another", "gone"])
def test_a_pickled_environment_refuses_an_opponent_whose_file_has_changed_by_name_and_hash(
    kind: str, change: str, tmp_path: Path
) -> None:
    shutil.copy(WEIGHTS / "ppo.npz", path := tmp_path / "own.npz")
    env = begun(kind, load(f"ppo:{path}"))
    expected, data = hashlib.sha256(path.read_bytes()).hexdigest(), pickle.dumps(env)
    del env
    if change == "gone":
        path.unlink()
        found = "no file"
    else:
        shipped = PPOPolicy.load(WEIGHTS / "ppo.npz")
        PPOPolicy({name: array * 1.5 for name, array in shipped.weights.items()}, shipped.meta).save(path)
        del shipped
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    gc.collect()  # players in memory with the right hash would be shared
    with pytest.raises(ArchieError, match=f"{re.escape(str(path))}: changed.*SHA-256 {expected}, found {found}"):
        pickle.loads(data)


def test_a_file_replaced_while_it_is_read_is_not_taken_for_the_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training run replaces its policy; a pickle that named the new file would hold another player than was read."""
    shutil.copy(WEIGHTS / "ppo.npz", path := tmp_path / "policy.npz")
    shipped = PPOPolicy.load(WEIGHTS / "ppo.npz")
    make = PPOPolicy.__init__

    def replaced(self: PPOPolicy, *arguments: Any, **keywords: Any) -> None:
        make(self, *arguments, **keywords)
        path.write_bytes(path.read_bytes() + b" ")

    monkeypatch.setattr(PPOPolicy, "__init__", replaced)
    player = PPOPolicy.load(path)
    monkeypatch.undo()
    again = pickle.loads(pickle.dumps(player))
    assert all(np.array_equal(again.weights[name], array) for name, array in shipped.weights.items())
