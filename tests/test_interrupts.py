"""An interrupt or a fork at any moment: an interface goes on rightly or asks for ``reset``, and ``reset`` works."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from agents import load
from archie_env import Batch, archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.batch import Hands
from archie_env.envs.learner import SingleAgentBatch
from archie_env.envs.single import ArchieEnv
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.errors import ArchieError, OrderError
from archie_env.policy import Actions, Masks, Observations, Probabilities, UniformPolicy
from archie_env.rules import PRESETS

pytestmark = pytest.mark.skipif(JIT_DISABLED or sys.platform == "win32", reason="needs signals and a quick engine")


def step_aec(env: Any) -> None:
    if not env.agents:
        env.reset()
    _, _, terminated, _, info = env.last()
    env.step(None if terminated else int(info["action_mask"].nonzero()[0][-1]))


def step_single(env: Any) -> None:
    if env.step(int(env.action_masks().argmax()))[2]:
        env.reset()


def step_vector(envs: Any) -> None:
    envs.step(envs.action_masks().argmax(axis=1))


def step_learner(batch: Any) -> None:
    batch.step(batch.masks.argmax(axis=1))


def step_batch(batch: Any) -> None:
    batch.step(batch.sample_actions())


INTERFACES: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "aec": (lambda: archie_v0.env(), step_aec),
    "session": (lambda: archie_v0.env(hands=3), step_aec),
    "single": (lambda: ArchieEnv(), step_single),
    "vector": (lambda: ArchieVectorEnv(4), step_vector),
    "same step": (lambda: ArchieVectorEnv(4, autoreset_mode="SameStep"), step_vector),
    "learner": (lambda: SingleAgentBatch(4, [UniformPolicy()]), step_learner),
    "batch": (lambda: Batch(8), step_batch),
    "threads": (lambda: Batch(64, threads=3), step_batch),
}


def position(env: Any) -> bytes:
    """The records of all games, whichever the interface."""
    games = env.tables.games if hasattr(env, "tables") else getattr(env, "games", getattr(env, "_games", None))
    assert games is not None
    return bytes(games.tobytes())


def future(env: Any, step: Callable[[Any], None], seed: int) -> bytes:
    """A position some steps after ``reset(seed)``."""
    env.reset(seed=seed)
    for _ in range(12):
        step(env)
    return position(env)


def interrupted(work: Callable[[], object], chance: random.Random) -> Iterator[None]:
    """Repeat some work until an interrupt comes at a random moment, 500 times; yield after each."""
    armed = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(500):
            armed = True
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(2e-5, 1e-3))
                while armed:
                    work()
            except KeyboardInterrupt:
                pass
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# One that lands in a callback of the garbage collector (Hypothesis has one) is printed by Python and raised nowhere.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", INTERFACES)
def test_an_interrupt_at_a_random_moment(name: str) -> None:
    """500 times: the next step works or raises `OrderError`, and a reset deals as in a new environment."""
    make, step = INTERFACES[name]
    env, chance = make(), random.Random(name)
    expected = future(make(), step, 5)
    assert future(env, step, 5) == expected
    for _ in interrupted(lambda: step(env), chance):
        try:
            for _ in range(3):
                step(env)
        except OrderError as error:
            assert "reset" in str(error)  # noqa: PT017  (either outcome is right)
            env.reset(seed=1)
    assert future(env, step, 5) == expected


class Firm:
    """Plays the legal action that a table prefers, from the masks alone."""

    name = "firm"

    def __init__(self, seed: int) -> None:
        self.preference = np.random.default_rng(seed).random(PRESETS["archie"].actions)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        chosen: Actions = (masks * self.preference).argmax(axis=1)
        return chosen

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        raise NotImplementedError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_hands_interrupted_at_a_random_moment_are_played_on_to_the_same_end() -> None:
    """500 times: each interrupt leaves every hand before or after an action, so that playing on ends as ever."""
    players, rngs = (Firm(1), Firm(2)), (np.random.default_rng(0),) * 2
    places, dealers = np.arange(64), np.arange(64) % 2

    def dealt() -> Hands:
        return Hands(places, dealers, seed=7)

    whole, hands = dealt(), dealt()
    whole.play_out(players, rngs)
    assert whole.over

    def play() -> None:
        nonlocal hands
        if hands.over:
            hands = dealt()
        hands.play_out(players, rngs)

    begun = 0
    for _ in interrupted(play, random.Random(1)):
        begun += 0 < hands.games["over"].sum() < len(hands)
        hands.play_out(players, rngs)
        assert hands.games.tobytes() == whole.games.tobytes()
    assert begun > 20, "interrupts that come when no hand or every hand is over try little"


@pytest.mark.parametrize("name", ["aec", "session", "single", "vector", "learner"])
def test_an_interrupt_at_every_instruction_of_a_step(name: str) -> None:
    """Afterwards the interface asks for ``reset``, or is where it was before or after the step."""
    make, step = INTERFACES[name]
    env = make()
    at, asked, done = 0, 0, False
    while not done:
        env.reset(seed=at)
        for _ in range(at % 9):
            step(env)
        left = at

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left
            if "archie_env" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            return trace

        tracer = sys.gettrace()
        sys.settrace(trace)
        try:
            step(env)
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracer)
        try:
            for _ in range(2):
                step(env)
            if hasattr(env, "game"):
                game = env.game
                assert env._games["betting"][0] == game._games["betting"][0], "the history is that of the record"
        except OrderError as error:
            assert "reset" in str(error)  # noqa: PT017  (either outcome is right)
            asked += 1
        at += 1
    assert asked > 10


def stepped(batch: Batch) -> bytes:
    for _ in range(3):
        batch.step(batch.sample_actions())
    return batch.games.tobytes()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_steps_with_threads_of_its_own() -> None:
    batch, twin = Batch(512, seed=1, threads=2), Batch(512, seed=1)
    stepped(batch)
    stepped(twin)
    expected = stepped(twin)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if stepped(batch) == expected else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert stepped(batch) == expected


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("kind", ["ppo", "sb3"])
def test_a_network_plays_on_in_a_forked_child(kind: str, tmp_path: Path) -> None:
    """Its products of matrices run in threads of BLAS, which a fork does not copy; those of torch, used by a learner before the
    fork, would hang in the child.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    learner = PPO("MlpPolicy", ArchieEnv(illegal="replace"), n_steps=64, device="cpu", seed=1)
    learner.learn(64)
    assert float((torch.ones(500, 500) @ torch.ones(500, 500)).relu().sum()) == 500**3
    learner.save(tmp_path / "model.zip")
    player, batch = load("ppo" if kind == "ppo" else f"sb3:{tmp_path / 'model.zip'}"), Batch(4096, seed=1)
    expected = player.probabilities(batch.observations, batch.masks)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        again = player.probabilities(batch.observations, batch.masks)
        os._exit(0 if np.allclose(again, expected, atol=1e-6) else 1)
    _, status = os.waitpid(child, 0)
    torch.set_num_threads(threads)
    assert status == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_batch_goes_on_in_a_process_started_otherwise(method: str) -> None:
    batch, twin = Batch(64, seed=1, threads=2), Batch(64, seed=1)
    stepped(batch)
    stepped(twin)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(stepped, (batch,)) == stepped(twin)


def test_a_batch_deals_anew() -> None:
    whole, fresh = Batch(16, seed=3, dtype="float32"), Batch(16, seed=4, dtype="float32")
    stepped(whole)
    part = whole[5:9]
    part.reset(seed=4)
    assert (part.observations == fresh.observations[5:9]).all()
    assert (part.sample_actions() == fresh.sample_actions()[5:9]).all()
    whole.reset(seed=4)
    assert (whole.games == fresh.games).all()
    assert not whole.rewards.any()
    assert not whole.done.any()
    np.testing.assert_array_equal(stepped(whole), stepped(Batch(16, seed=4)))


@pytest.mark.parametrize("rules", ["archie", "barge"])
def test_a_batch_goes_on_from_its_snapshot(rules: str) -> None:
    batch, twin = (Batch(64, rules, seed=3) for _ in range(2))
    for _ in range(9):
        stepped(batch)
        twin.restore(batch.snapshot())
        assert (twin.observations == batch.observations).all()
        assert (twin.masks == batch.masks).all()
        assert stepped(twin) == stepped(batch)


def test_a_snapshot_that_no_batch_can_have_is_refused_and_changes_nothing() -> None:
    batch, rng = Batch(16, seed=3), np.random.default_rng(1)
    stepped(batch)
    whole, before = batch.snapshot(), batch.games.tobytes()
    refused = 0
    for _ in range(300):
        actions = whole["actions"].copy()
        actions[rng.integers(16), rng.integers(actions.shape[1])] = rng.integers(-128, 128)
        try:
            batch.restore(whole | {"actions": actions})
        except ArchieError as error:
            refused += 1
            assert "of game" in str(error)  # noqa: PT017  (either outcome is right)
            assert batch.games.tobytes() == before
        batch.restore(whole)
        assert batch.games.tobytes() == before
    assert refused > 200
    for name, value in (("hands", whole["hands"] - 1), ("hands", whole["hands"] + 2**40), ("streams", whole["streams"][1:])):
        with pytest.raises(ArchieError, match=name):
            batch.restore(whole | {name: value})
