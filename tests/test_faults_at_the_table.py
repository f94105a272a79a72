"""What must hold when something goes wrong, or is unusual, at any door: each of these was once a fault."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from archie_env import Batch, Hands, Rules, Stakes, UniformPolicy, archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.envs.learner import SingleAgentBatch
from archie_env.envs.single import ArchieEnv
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.errors import ArchieError, IllegalActionError, OrderError
from archie_env.game import Game
from archie_env.observation import decode, highest, owed_unit, pot_unit
from archie_env.policy import Actions, Masks, Observations, StochasticPolicy, as_policy

FOLD, CALL, RAISE, PAT = 0, 1, 2, 3
ROOT = Path(__file__).parents[1]


class Answers(StochasticPolicy):
    """Returns whatever it was given."""

    name = "answers"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        answer: Actions = self.answer
        return answer


# ---- copies


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copied_vector_environments_have_the_same_future(mode: str, way: Any) -> None:
    envs = ArchieVectorEnv(8, autoreset_mode=mode)
    _, infos = envs.reset(seed=1)
    for _ in range(5):
        _, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    other = way(envs)
    paid, ended = 0.0, 0
    same = infos
    for _ in range(40):
        actions = infos["action_mask"].argmax(axis=1)
        assert (infos["action_mask"] == same["action_mask"]).all()
        a, rewards, terminations, _, infos = envs.step(actions)
        b, others, endings, _, same = other.step(actions)
        assert (a == b).all()
        assert (rewards == others).all()
        assert (terminations == endings).all()
        paid, ended = paid + abs(rewards).sum(), ended + int(terminations.sum())
    assert paid > 0
    assert ended > 0
    assert (envs.tables.hands == other.tables.hands).all()


@pytest.mark.skipif(JIT_DISABLED, reason="slow without the compiler, and nothing of it is compiled")
def test_rules_from_another_process_are_the_same_key() -> None:
    """Texts hash differently in every process; a value that was pickled elsewhere must still be found."""
    program = "import pickle, sys; from archie_env import Rules; sys.stdout.write(pickle.dumps(Rules()).hex())"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    rules = pickle.loads(bytes.fromhex(made.stdout))
    assert rules == Rules()
    assert rules in {Rules()}


# ---- large stakes

LARGE = Rules(stakes=Stakes((999, 1000), (1000, 500, 1000, 1000)), raise_cap=6)


def test_large_stakes_fit_every_row() -> None:
    """Nothing wraps around: owing is always visible, and the units are those of the table of fields."""
    assert owed_unit(LARGE) > 1
    assert owed_unit(Rules()) == pot_unit(Rules()) == 1
    game = Game(LARGE, seed=1)
    while not game.over:
        for seat in (0, 1):
            row = game.observation(seat)
            assert (row >= 0).all()
            assert (row <= highest(LARGE)).all()
            seen = decode(row, LARGE)
            assert game.owes(seat) <= seen.owed < game.owes(seat) + owed_unit(LARGE)
            assert (seen.owed > 0) == (game.owes(seat) > 0)
            assert 0 <= sum(game.paid) - seen.pot < pot_unit(LARGE)
        game.apply(PAT if game.drawing else RAISE if RAISE in game.legal_actions() else CALL)
    assert game.paid == (LARGE.reserve, LARGE.reserve)
    assert sum(game.paid) > np.iinfo(np.int16).max


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_large_stakes_pass_every_door(dtype: Any) -> None:
    env = archie_v0.env(LARGE, dtype=dtype)
    env.reset(seed=1)
    env.step(RAISE)
    assert env.observation_space("player_0").contains(env.observe(env.agent_selection))
    single = ArchieEnv(rules=LARGE, dtype=dtype)
    assert single.observation_space.contains(single.reset(seed=1)[0])
    batch = Batch(16, LARGE, seed=1, dtype=dtype)
    for _ in range(30):
        batch.step(batch.sample_actions())
        assert (batch.observations >= 0).all()


# ---- opponents at fault


@pytest.mark.parametrize("answer", [np.array([30]), np.array([1.0]), np.array(["1"]), 1, None, np.array([1, 1]), [[1], [1, 2]]])
def test_an_opponent_at_fault_is_named_and_the_hand_is_not_played_on(answer: Any) -> None:
    single = ArchieEnv(Answers(answer), seat="dealer")
    single.reset(seed=1)
    with pytest.raises(IllegalActionError, match="opponent 'answers'"):
        single.step(CALL)
    with pytest.raises(OrderError, match="call reset"):
        single.step(CALL)
    single.opponent = UniformPolicy()
    single.reset(seed=1)
    single.step(CALL)
    envs = ArchieVectorEnv(1, Answers(answer), seat="dealer")
    envs.reset(seed=1)
    with pytest.raises(IllegalActionError, match="opponent 'answers'"):
        envs.step(np.array([CALL]))
    with pytest.raises(OrderError, match="call reset"):
        envs.step(np.array([CALL]))


@pytest.mark.parametrize("policy", [None, 5, [], object()])
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    for make in (ArchieEnv, ArchieVectorEnv, lambda opponent: as_policy(opponent)):
        with pytest.raises(ArchieError, match="expected a Policy"):
            make(opponent=policy)


# ---- hands


@pytest.mark.parametrize(
    ("places", "actions"),
    [([0, 0], [CALL, CALL]), ([1, 0], [CALL, CALL]), ([4], [CALL]), ([-1], [CALL]), ([0.0], [CALL]), ([[0]], [CALL])],
)
def test_hands_refuse_places_that_are_none(places: list[Any], actions: list[int]) -> None:
    hands = Hands(np.arange(4), np.zeros(4, int), seed=1)
    before = hands.games.copy()
    with pytest.raises(ArchieError):
        hands.play(np.array(places), actions)
    assert (hands.games == before).all()


@pytest.mark.parametrize(
    ("indices", "dealers"),
    [([0, 1], [0]), ([0], [2]), ([0], [-1]), ([0.5], [0]), ([-1], [0]), ([[1, 2]], [0, 1]), ([2**63], [0])],
)
def test_hands_refuse_bad_deals(indices: list[Any], dealers: list[Any]) -> None:
    with pytest.raises(ArchieError, match="expected"):
        Hands(indices, dealers)


@pytest.mark.parametrize("seat", [2, -1, 5, 0.0, None, True, "player_0"])
def test_games_refuse_seats_that_are_none(seat: Any) -> None:
    game = Game(seed=1)
    for look in (game.observation, game.mask, game.owes):
        with pytest.raises(ArchieError, match="expected seat 0 or 1"):
            look(seat)
    if seat is not None:
        with pytest.raises(ArchieError, match="expected seat 0 or 1"):
            game.view(seat)
        with pytest.raises(ArchieError, match="expected seat 0 or 1"):
            Game(dealer=seat)


# ---- seeds, order, options


@pytest.mark.parametrize("seed", [-1, 1.5, "one", True])
def test_a_refused_seed_changes_nothing(seed: Any) -> None:
    single = ArchieEnv()
    single.reset(seed=1)
    game = single.game
    with pytest.raises(ArchieError, match="seed"):
        single.reset(seed=seed)
    assert single.game == game
    envs = ArchieVectorEnv(2)
    envs.reset(seed=1)
    with pytest.raises(ArchieError, match="seed"):
        envs.reset(seed=seed)


def test_numpy_seeds_are_seeds_at_every_door() -> None:
    rows = []
    numbers: tuple[Any, ...] = (7, np.int64(7))
    for seed in numbers:
        env = archie_v0.env()
        env.reset(seed=seed)
        single, _ = ArchieEnv().reset(seed=seed)
        vector, _ = ArchieVectorEnv(2).reset(seed=seed)
        rows.append((env.game.deck, single.tobytes(), vector.tobytes()))
    assert rows[0] == rows[1]


def test_calls_out_of_order_are_named_at_every_door() -> None:
    env = archie_v0.env(render_mode="ansi")
    for call in (env.last, env.action_masks, env.render):
        with pytest.raises(OrderError, match="call reset"):
            call()
    with pytest.raises(OrderError, match="call reset"):
        ArchieVectorEnv(2).step(np.array([1, 1]))
    env.reset(seed=1)
    env.step(FOLD)
    with pytest.raises(OrderError, match="only valid action is None"):
        env.step(CALL)
    env.step(None)
    env.step(None)
    with pytest.raises(OrderError, match="call reset"):
        env.last()


@pytest.mark.parametrize("options", [[1], "x", 5, {"dealer": np.zeros(2)}, {"dealer": ["player_0"]}])
def test_options_that_are_none_are_refused(options: Any) -> None:
    with pytest.raises(ArchieError, match="options"):
        archie_v0.env().reset(options=options)


# ---- replacing illegal actions


@pytest.mark.parametrize("bad", [-1, 35, None, "x", 1.5, True, 0])
def test_illegal_actions_are_replaced_in_every_phase(bad: Any) -> None:
    env = ArchieEnv(rules="archie", illegal="replace", opponent="uniform")
    for seed in range(4):
        env.reset(seed=seed)
        terminated, steps = False, 0
        while not terminated:
            _, _, terminated, _, _ = env.step(bad)
            steps += 1
        assert steps >= 1


def test_the_vector_environment_replaces_illegal_actions_too() -> None:
    envs = ArchieVectorEnv(8, illegal="replace")
    _, infos = envs.reset(seed=1)
    for bad in (-1, 35, 34, 0, 2, 10**6):
        for _ in range(5):
            *_, infos = envs.step(np.full(8, bad))
    assert infos["action_mask"].any(axis=1).all()
    with pytest.raises(ArchieError, match="illegal 'skip'"):
        ArchieVectorEnv(2, illegal="skip")  # type: ignore[arg-type]


# ---- what is shown at the end


def test_a_fold_shows_no_cards_to_whoever_acted() -> None:
    """R2.5, seen with ``viewpoint="to_act"`` after the hand is over."""
    env = archie_v0.env(render_mode="ansi", viewpoint="to_act")
    env.reset(seed=1)
    folder = env.agent_selection
    env.step(FOLD)
    text = env.render()
    assert isinstance(text, str)
    assert text.count("??") == 5
    assert text == archie_render(env, folder)


def archie_render(env: Any, agent: str) -> Any:
    again = copy.deepcopy(env)
    again.viewpoint = agent
    return again.render()


def test_a_session_shows_how_each_hand_ended(capsys: pytest.CaptureFixture[str]) -> None:
    env = archie_v0.env(hands=2, render_mode="human")
    env.reset(seed=1)
    assert env.finished_game is None
    env.step(FOLD)
    assert env.finished_game is not None
    assert env.finished_game.result.net == (env.rewards["player_0"], env.rewards["player_1"])
    assert not env.game.over
    assert "folded" in capsys.readouterr().out or "folds" in capsys.readouterr().out


def test_games_are_no_keys() -> None:
    with pytest.raises(TypeError):
        hash(Game(seed=1))


def test_the_registered_environments_are_found_by_module() -> None:
    assert gymnasium.make("archie_env:Archie-v0").reset(seed=1)[0].shape == (388,)
    assert isinstance(SingleAgentBatch(2, [UniformPolicy()], seed=1).rewards, np.ndarray)
