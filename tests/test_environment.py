"""The PettingZoo environment: its contracts, and the faults users met elsewhere."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import api_test, render_test, seed_test

from archie_env import Rules, Stakes, archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.cards import parse_cards
from archie_env.envs.aec import raw_env
from archie_env.envs.single import ArchieEnv
from archie_env.errors import ArchieError, CardError, IllegalActionError, OrderError, RulesError
from archie_env.game import Game
from archie_env.observation import field, scaled
from archie_env.policy import Actions, Masks, Observations, UniformPolicy

FOLD, CALL, RAISE, PAT = 0, 1, 2, 3
SEATS = ("player_0", "player_1")
SCALE = 1 if not JIT_DISABLED else 100


def act(env: raw_env, chance: random.Random) -> int:
    """A random legal action that seldom folds."""
    legal = env.last()[4]["action_mask"].nonzero()[0].tolist()
    return int(chance.choice(legal[1:] if legal[0] == FOLD and chance.random() < 0.8 else legal))


def play(env: raw_env, chance: random.Random) -> list[tuple[Any, ...]]:
    """Play an episode to its end; every ``last()`` on the way, as plain values."""
    seen = []
    while env.agents:
        observation, reward, terminated, truncated, _ = env.last()
        seen.append((env.agent_selection, observation["observation"].tobytes(), observation["action_mask"].tobytes(), reward))
        env.step(None if terminated or truncated else act(env, chance))
    return seen


# ---- PettingZoo's own tests


@pytest.mark.filterwarnings(
    "ignore:options. unknown key", "ignore:Observation space for each agent", "ignore:Observation is not"
)
@pytest.mark.parametrize("arguments", [{}, {"rules": "mini"}, {"hands": 5}, {"stack": 100}, {"dtype": "int8"}])
def test_pettingzoo_api(arguments: dict[str, Any]) -> None:
    api_test(archie_v0.env(**arguments), num_cycles=500 // SCALE)


def test_pettingzoo_seed() -> None:
    seed_test(archie_v0.env, num_cycles=100 // SCALE)


def test_pettingzoo_render() -> None:
    render_test(archie_v0.env)


# ---- rewards and the end of a hand


@pytest.mark.parametrize("betting_round", range(4))
def test_a_fold_terminates_both_and_pays_once(betting_round: int) -> None:
    """A fold in each round: both terminated at once, the same reward in ``rewards`` and, once, in ``last()``."""
    env = archie_v0.env()
    env.reset(seed=1)
    while env.game.round < betting_round or env.game.drawing:
        env.step(PAT if env.game.drawing else CALL)
    env.step(RAISE)
    loser, paid = env.agent_selection, env.game.paid
    env.step(FOLD)
    winner = SEATS[1 - SEATS.index(loser)]
    lost = paid[SEATS.index(loser)]
    assert env.rewards == {loser: -lost, winner: lost}
    assert env.terminations == dict.fromkeys(SEATS, True)
    assert all(type(flag) is bool for flag in (*env.terminations.values(), *env.truncations.values()))
    paid_out = {}
    for _ in range(2):
        _, reward, terminated, _, info = env.last()
        assert terminated is True
        assert info["action_mask"].sum() == 0
        paid_out[env.agent_selection] = reward
        env.step(None)
    assert paid_out == {loser: -lost, winner: lost}
    assert env.agents == []


def test_rewards_are_whole_chips_that_sum_to_zero() -> None:
    """Each agent's pay through ``last()`` is the hand's result, exactly once."""
    env, chance = archie_v0.env(), random.Random(2)
    env.reset(seed=2)
    for _ in range(2_000 // SCALE):
        total = dict.fromkeys(SEATS, 0.0)
        while env.agents:
            _, reward, terminated, _, _ = env.last()
            total[env.agent_selection] += reward
            if terminated and len(env.agents) == 2:
                net = env.game.result.net
            env.step(None if terminated else act(env, chance))
        assert (total[SEATS[0]], total[SEATS[1]]) == net
        assert sum(total.values()) == 0
        assert all(float(r).is_integer() for r in total.values())
        env.reset()


def test_a_dead_agent_takes_only_none() -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    env.step(FOLD)
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(CALL)


# ---- masks and observations


def test_masks_are_never_empty_and_match_the_engine() -> None:
    """int8, 0/1, length 35, at least one 1 for the actor, none for the other; sampling with one is always legal."""
    env, chance, decisions = archie_v0.env(), random.Random(3), 0
    space = env.action_space("player_0")
    space.seed(1)
    env.reset(seed=3)
    while decisions < 100_000 // SCALE:
        agent = env.agent_selection
        observation, _, terminated, _, info = env.last()
        mask = observation["action_mask"]
        assert mask is info["action_mask"] is env.infos[agent]["action_mask"]
        if terminated:
            env.reset()
            continue
        decisions += 1
        assert mask.dtype == np.int8
        assert mask.shape == (35,)
        assert set(mask.tolist()) <= {0, 1}
        assert mask.any()
        assert mask[space.sample(mask)]
        assert (env.action_masks() == mask).all()
        other = env.observe(SEATS[1 - SEATS.index(agent)])
        assert not other["action_mask"].any()
        assert other["action_mask"] is env.infos[SEATS[1 - SEATS.index(agent)]]["action_mask"]
        for name, seen in ((agent, observation), (SEATS[1 - SEATS.index(agent)], other)):
            if decisions % 50 == 0:
                assert env.observation_space(name).contains(seen)
        env.step(act(env, chance))


def test_every_legal_action_applies_and_no_other() -> None:
    """On random positions, in copies; a refused action leaves the environment as it was."""
    chance, checked = random.Random(4), 0
    env = archie_v0.env()
    env.reset(seed=4)
    while checked < 4_000 // SCALE:
        for _ in range(chance.randrange(25)):
            if not any(env.terminations.values()):
                env.step(act(env, chance))
        if any(env.terminations.values()):
            env.reset()
            continue
        before = env._games.tobytes(), env.agent_selection, dict(env.rewards), list(env._history)
        game = env.game
        for action in range(-1, 36):
            checked += 1
            if action in game.legal_actions():
                game.clone().apply(action)
            else:
                with pytest.raises(IllegalActionError):
                    env.step(action)
        assert before == (env._games.tobytes(), env.agent_selection, dict(env.rewards), list(env._history))
        env.step(act(env, chance))


@pytest.mark.parametrize("bad", [-1, 35, 3, None, 1.0, "call", True, np.float32(1), (1,), np.array([1, 1]), 2**70])
def test_illegal_actions_say_what_where_and_what_is_legal(bad: Any) -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    with pytest.raises(IllegalActionError) as caught:
        env.step(bad)
    text = str(caught.value)
    assert repr(bad) in text
    assert "legal: 0 (fold), 1 (check/call), 2 (bet/raise)" in text
    assert "to act in betting round 1" in text
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_checkers_may_sample_blindly_where_illegal_actions_are_replaced(dtype: Any) -> None:
    """Whatever is sent, what is played is that action where it is legal, else check, call or standing pat."""
    env, plain, chance = archie_v0.env(illegal="replace", dtype=dtype), archie_v0.env(dtype=dtype), random.Random(4)
    hands, replaced = 300 // min(SCALE, 30), 0
    for hand in range(hands):
        env.reset(seed=hand)
        plain.reset(seed=hand)
        while not all(env.terminations.values()):
            sent: Any = chance.choice([*range(-2, 40), None, "call"])
            legal = np.flatnonzero(plain.action_masks())
            played = sent if sent in legal else CALL if CALL in legal else PAT
            replaced += played is not sent
            env.step(sent)
            plain.step(int(played))
            assert env.state().tobytes() == plain.state().tobytes()
        assert env.rewards == plain.rewards
    assert replaced > 3 * hands
    with pytest.raises(ArchieError, match="illegal 'ignore': expected one of 'raise', 'replace'"):
        archie_v0.env(illegal="ignore")  # type: ignore[arg-type]


def test_what_a_wrapper_writes_into_a_mask_it_was_given_makes_nothing_legal() -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    before = env.action_masks()
    observation, *_, info = env.last()
    observation["action_mask"][:] = info["action_mask"][:] = 1
    env.action_masks()[:] = 1
    assert (env.action_masks() == before).all()
    with pytest.raises(IllegalActionError):
        env.step(34)


def test_an_illegal_move_does_not_touch_later_hands() -> None:
    env, fresh = archie_v0.env(), archie_v0.env()
    env.reset(seed=1)
    with pytest.raises(IllegalActionError):
        env.step(30)
    env.reset(seed=7)
    fresh.reset(seed=7)
    assert play(env, random.Random(1)) == play(fresh, random.Random(1))


@pytest.mark.parametrize("integer", [np.int64(1), np.int8(1), np.array(1), 1])
def test_any_integer_type_is_an_action(integer: Any) -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    env.step(integer)


def test_returned_arrays_never_change() -> None:
    env, chance = archie_v0.env(), random.Random(5)
    env.reset(seed=5)
    kept = []
    for _ in range(300 // SCALE + 3):
        observation, _, terminated, _, info = env.last()
        arrays = (observation["observation"], observation["action_mask"], info["action_mask"])
        kept.append((arrays, [a.copy() for a in arrays]))
        if terminated:
            env.reset()
        else:
            env.step(act(env, chance))
    assert all((a == b).all() for arrays, copies in kept for a, b in zip(arrays, copies, strict=True))


def test_observations_are_the_engine_rows_scaled() -> None:
    for rules in ("archie", "mini"):
        env, raw = archie_v0.env(rules), archie_v0.env(rules, dtype="int8")
        env.reset(seed=6)
        raw.reset(seed=6)
        chance = random.Random(6)
        while not any(env.terminations.values()):
            for agent in SEATS:
                row = env.observe(agent)["observation"]
                assert row.dtype == np.float32
                assert np.allclose(row, scaled(raw.observe(agent)["observation"], rules))
                assert (raw.observe(agent)["observation"] == env.game.observation(SEATS.index(agent))).all()
            action = act(env, chance)
            env.step(action)
            raw.step(action)


def test_betting_is_empty_at_reset() -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    wagers = field("archie", "wagers")
    assert not wagers.of(env.observe("player_0")["observation"]).any()


# ---- seeds, options, copies


def test_equal_seeds_give_equal_hands_whatever_the_global_generators_do() -> None:
    first, second = archie_v0.env(), archie_v0.env()
    first.reset(seed=42)
    second.reset(seed=42)
    for hand in range(50 // SCALE + 1):
        a = play(first, random.Random(hand))
        np.random.random(hand)  # noqa: NPY002  (the global generator is what must not matter)
        random.random()
        assert a == play(second, random.Random(hand))
        first.reset()
        np.random.seed(0)  # noqa: NPY002
        second.reset()


def test_cards_do_not_depend_on_what_was_played() -> None:
    first, second = archie_v0.env(), archie_v0.env()
    first.reset(seed=3)
    second.reset(seed=3)
    first.step(FOLD)
    play(second, random.Random(1))
    first.reset()
    second.reset()
    assert first.game == second.game == Game(seed=3, hand=1)


def test_the_first_dealer_comes_from_seed_or_options_and_alternates() -> None:
    env = archie_v0.env()
    dealers = set()
    for seed in range(20):
        env.reset(seed=seed)
        dealers.add(env.game.dealer)
        assert env.agent_selection == SEATS[env.game.dealer]
    assert dealers == {0, 1}
    for name in SEATS:
        env.reset(seed=1, options={"dealer": name})
        order = [SEATS[env.game.dealer]]
        for _ in range(3):
            env.reset()
            order.append(SEATS[env.game.dealer])
        assert order == [name, SEATS[1 - SEATS.index(name)]] * 2


def test_a_seeded_reset_keeps_the_constructor_options() -> None:
    rules = Rules(high_qualifier="T", stakes=Stakes((2, 4), (4, 4, 8, 8)))
    env = archie_v0.env(rules)
    for seed in (1, None):
        env.reset(seed=seed)
        assert env.game.rules == rules
        assert sum(env.game.paid) == 6


def test_a_given_deck_is_dealt() -> None:
    env = archie_v0.env()
    deck = "As Kd 2d 9c 3c 9h 4h 7d 5s 7s"
    for cards in (deck, parse_cards(deck), deck.split()):
        env.reset(seed=1, options={"dealer": "player_0", "deck": cards})
        assert env.game.hands[1] == tuple(sorted(parse_cards("As2d3c4h5s")))


@pytest.mark.parametrize("point", [0, 1, 3, 7, 12])
def test_copies_have_the_same_future(point: int) -> None:
    """Deepcopy and pickle in the middle of a hand; the original does not notice."""
    env = archie_v0.env(hands=3, stack=300)
    env.reset(seed=11)
    chance = random.Random(point)
    for _ in range(point):
        env.step(act(env, chance))
    before = env._games.tobytes()
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    futures = [play(c, random.Random(1)) for c in copies]
    assert env._games.tobytes() == before
    assert futures[0] == futures[1] == play(env, random.Random(1))


# ---- sessions


def test_a_session_swaps_positions_and_pays_each_hand() -> None:
    env = archie_v0.env(hands=6)
    env.reset(seed=1, options={"dealer": "player_1"})
    dealers, paid = [], []
    while not any(env.terminations.values()):
        dealers.append(env.game.dealer)
        hand = env._hand_number
        while env._hand_number == hand and not any(env.terminations.values()):
            env.step(FOLD if env.action_masks()[FOLD] else CALL)
        paid.append((env.rewards[SEATS[0]], env.rewards[SEATS[1]]))
    assert dealers == [1, 0, 1, 0, 1, 0]
    assert paid == [(1, -1), (-1, 1)] * 3


def test_a_session_ends_when_a_player_cannot_cover_the_reserve() -> None:
    """R1.4."""
    env, chance = archie_v0.env(stack=60), random.Random(1)
    for seed in range(20 // SCALE + 1):
        env.reset(seed=seed)
        while not any(env.terminations.values()):
            assert env.stacks is not None
            assert min(env.stacks.values()) >= 48
            assert sum(env.stacks.values()) == 120
            env.step(act(env, chance))
        assert env.stacks is not None
        assert min(env.stacks.values()) < 48
        assert env.infos["player_0"]["stacks"] == env.stacks


def test_session_rewards_reach_each_agent_once() -> None:
    env, chance = archie_v0.env(hands=40 // SCALE + 2, stack=10_000), random.Random(2)
    env.reset(seed=2)
    total = dict.fromkeys(SEATS, 0.0)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        total[agent] += reward
        stacks = info["stacks"]
        env.step(None if terminated or truncated else act(env, chance))
    assert {a: 10_000 + t for a, t in total.items()} == stacks


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"rules": "poker"}, RulesError, "rules 'poker': expected one of archie"),
        ({"render_mode": "text"}, ArchieError, "render_mode 'text': expected one of None, 'human', 'ansi', 'rgb_array'"),
        ({"hands": 0}, ArchieError, "hands 0: expected a whole number of at least 1"),
        ({"hands": 1.5}, ArchieError, "hands 1.5"),
        ({"stack": 47}, ArchieError, "stack 47: expected a whole number of at least 48"),
        ({"stack": True}, ArchieError, "stack True"),
        ({"dtype": "float64"}, ArchieError, "dtype 'float64'"),
        ({"replacements": "mine"}, RulesError, "replacements 'mine': expected one of shared, per_seat"),
        ({"viewpoint": "player_2"}, ArchieError, "viewpoint 'player_2'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        archie_v0.env(**arguments)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"dealer": "player_2"}, ArchieError, "dealer 'player_2', expected one of player_0, player_1"),
        ({"dealer": 0}, ArchieError, "dealer 0"),
        ({"deck": "AsAs"}, CardError, "As is named twice"),
        ({"deck": "Zz"}, CardError, "card 'Zz'"),
    ],
)
def test_bad_options_are_named_and_change_nothing(options: dict[str, Any], error: type[Exception], text: str) -> None:
    env = archie_v0.env()
    env.reset(seed=1)
    before = env.game
    with pytest.raises(error, match=text):
        env.reset(seed=2, options=options)
    assert env.game == before


def test_unknown_options_are_told() -> None:
    with pytest.warns(UserWarning, match="options: unknown key 'deeler' is ignored, expected dealer or deck"):
        archie_v0.env().reset(options={"deeler": 1})


def test_calls_out_of_order_are_named() -> None:
    env = archie_v0.env()
    for call in (lambda: env.step(1), lambda: env.observe("player_0"), lambda: env.game):
        with pytest.raises(OrderError, match=r"call reset\(\) first"):
            call()
    env.reset(seed=1)
    with pytest.raises(OrderError, match="no render_mode was given"):
        env.render()
    with pytest.raises(ArchieError, match="agent 'dealer': expected one of player_0, player_1"):
        env.observe("dealer")
    env.step(FOLD)
    env.step(None)
    env.step(None)
    with pytest.raises(OrderError, match="no episode is running"):
        env.step(CALL)


@pytest.mark.parametrize("seed", [-1, "one", 1.5])
def test_bad_seeds_are_refused(seed: Any) -> None:
    env = archie_v0.env()
    with pytest.raises(ArchieError, match="seed"):
        env.reset(seed=seed)


def test_huge_seeds_are_seeds() -> None:
    env = archie_v0.env()
    env.reset(seed=2**100)
    first = env.game
    env.reset(seed=2**100 + 1)
    assert env.game != first


# ---- the hidden state, and one learner's sessions


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_hidden_state_holds_both_rows_and_the_deck(dtype: Any) -> None:
    env = archie_v0.env(dtype=dtype)
    with pytest.raises(OrderError, match="state"):
        env.state()
    env.reset(seed=4)
    env.step(1)
    state = env.state()
    assert state in env.state_space
    rows = [env.observe(agent)["observation"] for agent in env.possible_agents]
    assert np.array_equal(state[: len(rows[0])], rows[0])
    assert np.array_equal(state[len(rows[0]) : 2 * len(rows[0])], rows[1])
    deck = state[2 * len(rows[0]) :] * (51 if dtype == "float32" else 1)
    assert tuple(np.rint(deck).astype(int).tolist()) == env.game.deck


def test_infos_before_reset_ask_for_it() -> None:
    with pytest.raises(OrderError, match="reset"):
        _ = archie_v0.env().infos


def play_session(env: ArchieEnv, seed: int) -> tuple[list[float], list[dict[str, Any]]]:
    """Rewards that were not 0 and all infos of an episode in which the learner takes its first legal action but folding."""
    _, info = env.reset(seed=seed)
    rewards, infos, over = [], [info], False
    while not over:
        legal = np.flatnonzero(info["action_mask"])
        _, reward, over, _, info = env.step(int(legal[legal != 0][0]))
        infos.append(info)
        rewards.append(float(reward))
    return [reward for reward in rewards if reward], infos


def test_a_session_of_one_learner_is_its_hands_one_after_another() -> None:
    session, single = ArchieEnv("uniform", hands=20), ArchieEnv("uniform")
    rewards, _ = play_session(session, 5)
    alone = []
    for hand in range(20):
        _, info = single.reset(seed=5 if hand == 0 else None)
        over, reward = False, 0.0
        while not over:
            legal = np.flatnonzero(info["action_mask"])
            _, reward, over, _, info = single.step(int(legal[legal != 0][0]))
        alone.append(float(reward))
    assert rewards == [reward for reward in alone if reward]


@pytest.mark.parametrize("seat", ["alternate", "dealer"])
def test_stacks_of_one_learner_are_in_info_and_end_the_session(seat: Any) -> None:
    env = ArchieEnv("uniform", seat, stack=100)
    rewards, infos = play_session(env, 6)
    assert infos[0]["stacks"] == {"learner": 100, "opponent": 100}
    assert infos[-1]["stacks"]["learner"] == 100 + sum(rewards)
    assert all(sum(info["stacks"].values()) == 200 for info in infos)
    assert min(infos[-1]["stacks"].values()) < 48 <= min(infos[0]["stacks"].values())
    with pytest.raises(OrderError, match="reset"):
        env.step(1)


@pytest.mark.parametrize("arguments", [{"hands": 0}, {"hands": 1.5}, {"stack": 47}, {"stack": True}])
def test_impossible_sessions_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArchieError, match=f"{next(iter(arguments))} .*: expected a whole number"):
        ArchieEnv("uniform", **arguments)


def test_a_seat_that_is_none_is_refused_whenever_it_is_set() -> None:
    env = ArchieEnv("uniform")
    with pytest.raises(ArchieError, match="seat 'chair': expected one of"):
        env.seat = "chair"  # type: ignore[assignment]
    assert env.seat == "alternate"


def test_an_illegal_answer_of_the_opponent_is_named_as_it_was_given() -> None:
    class Wrong(UniformPolicy):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), 35)

    env = ArchieEnv(Wrong(), "big_blind")
    with pytest.raises(IllegalActionError, match="illegal action 35"):
        env.reset(seed=1)


def test_an_opponent_that_is_a_class_is_refused_when_the_environment_is_made() -> None:
    with pytest.raises(ArchieError, match="expected a Policy"):
        ArchieEnv(UniformPolicy)  # type: ignore[arg-type]


def test_a_step_limit_of_a_vector_is_refused_with_the_reason() -> None:
    with pytest.raises(ArchieError, match="max_episode_steps"):
        gymnasium.make_vec("Archie-v0", num_envs=2, vectorization_mode="vector_entry_point", max_episode_steps=5)
