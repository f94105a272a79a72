"""Every door leads to the same game: batch, PettingZoo, Gymnasium and `Game` play the same hands; each door's own contracts."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from archie_env import Batch, UniformPolicy, archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.envs.single import ArchieEnv
from archie_env.errors import ArchieError, IllegalActionError, OrderError
from archie_env.game import Game
from archie_env.policy import Actions, Masks, Observations, StochasticPolicy

FOLD, CALL, RAISE, PAT = 0, 1, 2, 3
SCALE = 1 if not JIT_DISABLED else 200


class Replay(StochasticPolicy):
    """Plays what it is told, and keeps what it was shown."""

    name = "replay"

    def __init__(self) -> None:
        self.script: list[int] = []
        self.shown: list[bytes] = []

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.shown.append(observations.tobytes() + masks.tobytes())
        return np.array([self.script.pop(0)])


@pytest.mark.parametrize("rules", ["archie", "pagat", "mini"])
def test_all_interfaces_play_the_same_hands(rules: str) -> None:
    """100,000 hands in all: the same seed and actions give the same observations, masks and pay through every door."""
    chance, seed = random.Random(rules), 17
    aec, batch, replay = archie_v0.env(rules, dtype="int8"), Batch(1, rules, seed=seed), Replay()
    single = ArchieEnv(replay, rules=rules, dtype="int8")
    for hand in range(33_334 // SCALE):
        first = hand == 0
        aec.reset(seed=seed if first else None)
        actions: list[int] = []
        mine: list[int] = []
        learner_saw: list[bytes] = []
        replay.shown.clear()
        their: list[bytes] = []
        while not aec.terminations["player_0"]:
            agent = aec.agent_selection
            seen, _, _, _, _ = aec.last()
            mask = seen["action_mask"]
            assert batch.observations[0].tobytes() == seen["observation"].tobytes()
            assert batch.masks[0].tobytes() == mask.tobytes()
            assert batch.to_act[0] == (agent == "player_1")
            (learner_saw if agent == "player_0" else their).append(seen["observation"].tobytes() + mask.tobytes())
            legal = mask.nonzero()[0].tolist()
            action = chance.choice(legal[1:] if legal[0] == FOLD and chance.random() < 0.7 else legal)
            actions.append(action)
            (mine if agent == "player_0" else replay.script).append(action)
            aec.step(action)
            rewards, done = batch.step([action])
            assert done[0] == aec.terminations["player_0"]
        pay = aec.rewards["player_0"], aec.rewards["player_1"]
        assert (rewards[0] == pay).all()
        row, info = single.reset(seed=seed if first else None)
        total, terminated = 0.0, False
        for i, saw in enumerate(learner_saw):
            assert row.tobytes() + info["action_mask"].tobytes() == saw
            row, reward, terminated, truncated, info = single.step(mine[i])
            total += reward
            assert not truncated
            assert terminated is (i == len(learner_saw) - 1)
        if not learner_saw:
            row, total, terminated, _, info = single.step(0)
        assert terminated
        assert total == pay[0]
        assert row.tobytes() == aec.observe("player_0")["observation"].tobytes()
        assert info["action_mask"].all()
        assert replay.shown == their
        if hand % 10 == 0:
            game = Game(rules, seed=seed, hand=hand)
            for action in actions:
                game.apply(action)
            assert game.result.net == pay
            assert game == aec.game == single.game


# ---- the batch


def test_batches_do_not_depend_on_size_slicing_or_threads() -> None:
    whole, threaded = Batch(96, seed=5), Batch(96, seed=5, threads=3)
    parts = [Batch(n, seed=5, first=first) for first, n in ((0, 1), (1, 30), (31, 65))]
    sliced = Batch(96, seed=5)
    slices = [sliced[:40], sliced[40:]]
    for _ in range(120 // min(SCALE, 20)):
        actions = whole.sample_actions().copy()
        assert (threaded.sample_actions() == actions).all()
        assert (np.concatenate([p.sample_actions() for p in parts]) == actions).all()
        whole.step(actions)
        threaded.step(actions)
        for part, own in zip(parts, np.split(actions, [1, 31]), strict=True):
            part.step(own)
        for part, own in zip(slices, np.split(actions, [40]), strict=True):
            part.step(own)
        for name in ("observations", "masks", "to_act", "rewards", "done"):
            expected = getattr(whole, name)
            assert (getattr(threaded, name) == expected).all()
            assert (getattr(sliced, name) == expected).all()
            assert (np.concatenate([getattr(p, name) for p in parts]) == expected).all()


def test_seat_views_are_what_each_seat_sees() -> None:
    batch = Batch(64, "barge", seed=2, dtype="float32")
    for _ in range(30):
        for seat in (0, 1):
            observations, masks = batch.seat(seat)
            turn = batch.to_act == seat
            assert (observations[turn] == batch.observations[turn]).all()
            assert (masks[turn] == batch.masks[turn]).all()
            assert not masks[~turn].any()
        batch.step(batch.sample_actions())
    with pytest.raises(ArchieError, match="seat 2"):
        batch.seat(2)


def test_a_copied_batch_has_the_same_future() -> None:
    batch = Batch(32, seed=3, threads=2)
    for _ in range(10):
        batch.step(batch.sample_actions())
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        again = copy.deepcopy(batch)
        for _ in range(20):
            again.step(again.sample_actions())
            other.step(other.sample_actions())
        assert (again.games == other.games).all()


@pytest.mark.parametrize("part", [slice(5, 5), slice(0, 8, 2), 3, slice(8, 20)])
def test_bad_slices_are_refused(part: Any) -> None:
    with pytest.raises(ArchieError, match="expected"):
        Batch(8, seed=1)[part]


def test_float_rows_are_scaled_and_memory_is_small() -> None:
    small, floats = Batch(16, seed=1), Batch(16, seed=1, dtype="float32")
    assert small.games.itemsize <= 256
    for _ in range(40):
        floats.step(small.sample_actions())
        small.step(small._actions)
        assert floats.observations.max() <= 1
        assert ((floats.observations > 0) == (small.observations > 0)).all()


# ---- the Gymnasium environment


@pytest.mark.filterwarnings("ignore:.*render_fps.*", "ignore:.*The environment .* is different from the unwrapped.*")
@pytest.mark.parametrize(
    "arguments", [{}, {"rules": "mini", "seat": "dealer"}, {"seat": "big_blind", "dtype": "int8"}, {"masks": "observation"}]
)
def test_gymnasium_and_sb3_checkers_pass(arguments: dict[str, Any]) -> None:
    """They sample blindly, so illegal actions are replaced; that is what ``illegal="replace"`` is for."""
    env = gymnasium.make("Archie-v0", illegal="replace", render_mode="ansi", **arguments)
    check_env(env.unwrapped)
    check_env_sb3(env.unwrapped)


@pytest.mark.parametrize("arguments", [{}, {"rules": "mini", "dtype": "int8"}, {"hands": 3}])
def test_observations_hold_the_mask_where_asked_for(arguments: dict[str, Any]) -> None:
    env, plain = ArchieEnv(masks="observation", **arguments), ArchieEnv(**arguments)
    (seen, info), (row, _) = env.reset(seed=2), plain.reset(seed=2)
    chance = random.Random(1)
    for _ in range(200):
        assert env.observation_space.contains(seen)
        assert (seen["observation"] == row).all()
        assert (seen["action_mask"] == info["action_mask"]).all()
        assert seen["action_mask"] is not info["action_mask"]
        action = chance.choice(seen["action_mask"].nonzero()[0].tolist())
        (seen, *paid, info), (row, *expected, _) = env.step(action), plain.step(action)
        assert paid == expected
        if paid[1]:
            (seen, info), (row, _) = env.reset(), plain.reset()


def test_any_number_may_be_sent_where_illegal_actions_are_replaced() -> None:
    """Also one that no action of these rules has: mini has fewer than archie."""
    env = ArchieEnv(rules="mini", illegal="replace")
    for hand in range(20):
        env.reset(seed=hand)
        while not env.step(34)[2]:
            pass


class Folder(StochasticPolicy):
    """Folds whenever it can."""

    name = "folder"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.where(masks[:, FOLD] == 1, FOLD, np.where(masks[:, CALL] == 1, CALL, PAT))


def test_the_learner_is_paid_its_own_result() -> None:
    """Big blind, and the dealer folds at once: +1.  As the folding dealer: -1."""
    env = ArchieEnv(Folder(), seat="big_blind")
    _, info = env.reset(seed=1)
    assert info["action_mask"].all()
    assert env.step(20)[1:4] == (1.0, True, False)
    env = ArchieEnv("uniform", seat="dealer")
    env.reset(seed=1)
    assert env.step(FOLD)[1:4] == (-1.0, True, False)


@pytest.mark.parametrize(("seat", "dealers"), [("dealer", {True}), ("big_blind", {False}), ("alternate", {True, False})])
def test_seats(seat: Any, dealers: set[bool]) -> None:
    env = ArchieEnv(seat=seat)
    seen = []
    for hand in range(6):
        env.reset(seed=3 if hand == 0 else None)
        seen.append(env.game.dealer == env._learner)
    assert set(seen) == dealers
    if seat == "alternate":
        assert seen in ([True, False] * 3, [False, True] * 3)


def test_gymnasium_seeds_fix_cards_and_opponent() -> None:
    def returns(env: gymnasium.Env[Any, Any]) -> list[float]:
        out = []
        chance = random.Random(1)
        for hand in range(50 // min(SCALE, 10)):
            _, info = env.reset(seed=9 if hand == 0 else None)
            total, terminated = 0.0, False
            while not terminated:
                _, reward, terminated, _, info = env.step(chance.choice(info["action_mask"].nonzero()[0].tolist()))
                total += float(reward)
            out.append(total)
        return out

    first = returns(gymnasium.make("Archie-v0"))
    np.random.seed(1)  # noqa: NPY002  (the global generator is what must not matter)
    assert returns(gymnasium.make("Archie-v0")) == first
    assert len(set(first)) > 1 or JIT_DISABLED


def test_a_gymnasium_copy_has_the_same_future() -> None:
    env = ArchieEnv()
    env.reset(seed=4)
    env.step(CALL)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        again = copy.deepcopy(env)
        results = [(e.step(int(e.action_masks().argmax()))[0].tobytes(), e.action_masks().tobytes()) for e in (again, other)]
        assert results[0] == results[1]


def test_illegal_actions_in_the_gymnasium_environment() -> None:
    env = ArchieEnv(seat="dealer")
    env.reset(seed=1)
    before = env.game
    for bad in (7, -1, 1.5, None, True):
        with pytest.raises(IllegalActionError, match="legal: 0"):
            env.step(bad)  # type: ignore[arg-type]
    assert env.game == before
    with pytest.raises(OrderError, match="call reset"):
        ArchieEnv().step(1)
    env.step(FOLD)
    with pytest.raises(OrderError, match="no episode is running"):
        env.step(CALL)


def test_an_opponent_that_plays_illegally_is_named() -> None:
    replay = Replay()
    replay.script = [30]
    env = ArchieEnv(replay, seat="big_blind")
    with pytest.raises(IllegalActionError, match="opponent 'replay': illegal action 30"):
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"seat": "button"}, "seat 'button': expected one of 'alternate', 'dealer', 'big_blind'"),
        ({"illegal": "ignore"}, "illegal 'ignore'"),
        ({"opponent": "nobody"}, "nobody"),
        ({"rules": "holdem"}, "rules 'holdem'"),
        ({"render_mode": "png"}, "render_mode 'png'"),
    ],
)
def test_bad_gymnasium_arguments_are_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArchieError, match=text):
        ArchieEnv(**arguments)


def make_monitored() -> gymnasium.Env[NDArray[Any], Any]:
    return Monitor(gymnasium.make("archie_env:Archie-v0", opponent="uniform"))


def test_action_masks_are_found_through_wrappers() -> None:
    """Through ``make``, Monitor and DummyVecEnv; the next test has SubprocVecEnv."""
    env = make_monitored()
    env.reset(seed=1)
    assert get_action_masks(env).shape == (35,)
    envs: Any = DummyVecEnv([make_monitored] * 2)
    envs.reset()
    assert get_action_masks(envs).shape == (2, 35)


SPAWNED = """
import gymnasium
from gymnasium.vector import AsyncVectorEnv
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import SubprocVecEnv

make = lambda: gymnasium.make("archie_env:Archie-v0", opponent="agents:call_draw")
row, info = make().reset(seed=1)
envs = AsyncVectorEnv([make], context="spawn")
rows, infos = envs.reset(seed=1)
assert (rows[0] == row).all() and (infos["action_mask"][0] == info["action_mask"]).all()
envs.close()
envs = SubprocVecEnv([lambda: Monitor(make())], start_method="spawn")
envs.seed(1)
assert (envs.reset()[0] == row).all() and (get_action_masks(envs)[0] == info["action_mask"]).all()
envs.close()
print("the same hand")
"""


@pytest.mark.skipif(JIT_DISABLED, reason="nothing of it depends on the compiler")
def test_spawned_workers_make_the_environment_by_its_prefixed_name_though_nobody_imported_it() -> None:
    """From ``python -c``, as from a notebook: no file holds the function that makes the environment."""
    done = subprocess.run([sys.executable, "-c", SPAWNED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "the same hand\n", done.stderr


def test_the_registered_vector_environment_is_found() -> None:
    envs = gymnasium.make_vec("Archie-v0", num_envs=3, vectorization_mode="vector_entry_point", opponent=UniformPolicy())
    observations, infos = envs.reset(seed=1)
    assert observations.shape == (3, 388)
    assert infos["action_mask"].shape == (3, 35)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vector_and_single_environments_have_the_same_episodes(mode: str) -> None:
    """Hands the opponent ends at once included: episode returns are the results of all hands."""
    single = ArchieEnv(Folder())
    envs = gymnasium.make_vec("Archie-v0", 1, vectorization_mode="vector_entry_point", opponent=Folder(), autoreset_mode=mode)
    observations, infos = envs.reset(seed=6)
    walks = 0
    for hand in range(200 // min(SCALE, 10)):
        row, info = single.reset(seed=6 if hand == 0 else None)
        terminated, length = False, 0
        while not terminated:
            assert (row == observations[0]).all()
            assert (info["action_mask"] == infos["action_mask"][0]).all()
            action = int(info["action_mask"].nonzero()[0][-1]) if hand % 3 else int(info["action_mask"].argmax())
            row, reward, terminated, _, info = single.step(action)
            observations, rewards, terminations, _, infos = envs.step(np.array([action]))
            length += 1
            assert terminations[0] == terminated
            assert rewards[0] == reward
        walks += length == 1 and reward == 1
        if mode == "NextStep":
            assert (row == observations[0]).all()
            observations, rewards, terminations, _, infos = envs.step(np.array([0]))
            assert not terminations[0]
            assert rewards[0] == 0
        else:
            assert (row == infos["final_obs"][0]).all()
    assert walks > 0
