"""The PPO trainer: advantages for each player, masks, the network, the vector environment, warm starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor

from agents import load
from agents.hand_features import FEATURES, KEEPS, HandReader
from agents.ppo import PPOPolicy
from archie_env.actions import CALL, DISCARD, discards
from archie_env.batch import Batch
from archie_env.cards import parse_cards
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError
from archie_env.observation import decode, scaled
from archie_env.policy import UniformPolicy
from archie_env.rules import PRESETS, Rules
from tests.ppo_runs import ROOT, SMALL, small, warm
from training.monitoring import self_play_statistics
from training.ppo import checkpoint
from training.ppo._kernels import draw_actions
from training.ppo.algorithm import SelfPlayBuffer
from training.ppo.cloning import clone
from training.ppo.config import Config
from training.ppo.network import ArchiePolicy
from training.ppo.state import TrainingState
from training.ppo.vec_env import SingleAgentVecEnv


def expected_advantages(rollout: SelfPlayBuffer, last_values: Any, last_done: Any, decay: float) -> NDArray[Any]:
    """Each player's decisions of each hand as a list of its own, then the definition: a decayed sum of its errors."""
    steps, games = rollout.shape
    last_position = rollout.batch.games["turn"]
    advantages = np.full((steps, games), np.nan)
    for i in range(games):
        opens = [t for t in range(steps) if t == 0 or rollout.starts[t, i]]
        for first, after in zip(opens, [*opens[1:], steps], strict=True):
            finished = after < steps or bool(last_done[i])
            for position in (0, 1):
                own = [t for t in range(first, after) if rollout.positions[t, i] == position]
                if finished:
                    won = rollout.rewards[after - 1, i]
                    tail = won if rollout.positions[after - 1, i] == position else -won
                else:
                    tail = last_values[i] if last_position[i] == position else -last_values[i]
                targets = [*(rollout.values[t, i] for t in own[1:]), tail][-len(own) :] if own else []
                errors = [target - rollout.values[t, i] for t, target in zip(own, targets, strict=True)]
                for k, t in enumerate(own):
                    advantages[t, i] = sum(decay**j * error for j, error in enumerate(errors[k:]))
    return advantages


def played(run: TrainingState) -> SelfPlayBuffer:
    """The rollout of a run that has played once and not learnt."""
    model = run.model
    model.collect_rollouts(run.env, run._callback, model.rollout_buffer, run.config.rollout.num_steps)
    return model.rollout_buffer


def now(run: TrainingState) -> th.Tensor:
    """The inputs of the network at the present decisions."""
    extractor = run.model.policy.features_extractor
    inputs = th.empty(len(run.batch), extractor.features_dim, dtype=extractor.dtype)
    extractor.read(run.batch.observations, run.batch.hidden, inputs)
    return inputs


@pytest.mark.parametrize("decay", [0.0, 0.8, 1.0])
def test_advantages_are_each_players_own(decay: float) -> None:
    run = TrainingState(small(rollout={"num_envs": 48, "num_steps": 40, "gae_lambda": decay}))
    rollout = played(run)
    with th.no_grad():
        last_values = run.model.policy.decide(now(run))[1].numpy()
    expected = expected_advantages(rollout, last_values, run.model._last_episode_starts, decay)
    assert rollout.starts[1:].sum() > 50
    assert np.allclose(rollout.advantages, expected, atol=1e-4)
    assert np.allclose(rollout.returns, expected + rollout.values, atol=1e-4)


def test_actions_in_the_rollout_are_legal_and_stored_with_their_log_probability() -> None:
    run = TrainingState(small())
    rollout = played(run)
    assert set(np.unique(rollout.masks)) == {0, 1}
    assert np.take_along_axis(rollout.masks, rollout.actions[..., None], axis=2).all()
    first = TrainingState(small()).batch  # what the run saw before its first decision
    probabilities = run.policy().probabilities(first.observations, first.masks)
    chosen = probabilities[np.arange(len(first)), rollout.actions[0]]
    assert np.allclose(np.log(chosen), rollout.log_probs[0], atol=1e-5)


def test_actions_are_drawn_from_the_softmax_over_legal_ones() -> None:
    generator = np.random.default_rng(1)
    logits = np.repeat(generator.normal(size=(1, 6)).astype(np.float32), 1000, axis=0)
    masks = np.tile(np.array([0, 1, 1, 0, 1, 0], np.int8), (1000, 1))
    expected = th.from_numpy(logits[0, [1, 2, 4]]).softmax(0).numpy()
    uniform = ((np.arange(1000) + 0.5) / 1000).astype(np.float32)  # evenly, so that counts are exact
    actions, log_probs = np.zeros(1000, np.int64), np.zeros(1000, np.float32)
    draw_actions(logits, masks, uniform, actions, log_probs)
    assert np.allclose([(actions == a).mean() for a in (1, 2, 4)], expected, atol=0.002)
    assert np.allclose(log_probs, np.log(expected)[np.searchsorted([1, 2, 4], actions)], atol=1e-5)
    draw_actions(logits[:1], masks[:1], np.ones(1, np.float32), actions[:1], log_probs[:1])
    assert actions[0] == 4, "rounding at the upper end leaves the last legal action"


@pytest.mark.parametrize("prior", [0.0, 20.0])
def test_log_probabilities_and_bonus_follow_their_definitions(prior: float) -> None:
    run = TrainingState(small(network=SMALL["network"] | {"prior": prior}))
    run.update()  # so that the probabilities are not those of the start
    rows, legal = run.batch.observations, run.batch.masks != 0
    actions = run.batch.masks.argmax(axis=1)
    with th.no_grad():
        _, log_probs, bonus = run.model.policy.evaluate(now(run), th.from_numpy(actions), th.from_numpy(legal))
    probabilities = run.policy().probabilities(rows, run.batch.masks).astype(np.float64)  # NumPy on the exported weights
    weights = np.ones(legal.shape)
    for row, keeps in zip(weights, HandReader(run.rules)(rows)[1], strict=True):
        for discarded in (0, *keeps):
            row[DISCARD + discarded] += prior
    weights *= legal
    reference = weights / weights.sum(axis=1, keepdims=True) if prior else np.ones(legal.shape)  # 1: the plain entropy
    terms = [p[m] @ (np.log(p[m]) - np.log(q[m])) for p, q, m in zip(probabilities, reference, legal, strict=True)]
    assert np.allclose(bonus, -np.array(terms), atol=1e-4)
    assert np.allclose(log_probs, np.log(probabilities[np.arange(len(actions)), actions]), atol=1e-4)


def test_values_are_those_of_the_critic_computed_by_hand() -> None:
    run = TrainingState(small())
    run.update()
    read = HandReader(run.rules)
    rows, hidden = run.batch.observations, run.batch.hidden
    x = np.concatenate([read(rows)[0], scaled(rows, run.rules), hidden, read.other(hidden)], axis=1).astype(np.float32)
    arrays = checkpoint.module_arrays(run.model.policy)
    for layer in ("mlp_extractor.value_net.0", "mlp_extractor.value_net.2"):
        x = np.maximum(x @ arrays[f"{layer}.weight"].T + arrays[f"{layer}.bias"], 0)
    expected = (x @ arrays["value_net.weight"].T + arrays["value_net.bias"])[:, 0]
    with th.no_grad():
        assert np.allclose(run.model.policy.decide(now(run))[1], expected, atol=1e-4)


def test_stock_loops_evaluate_as_ours() -> None:
    run = TrainingState(small())
    actions, masks = th.from_numpy(run.batch.masks.argmax(axis=1)), th.from_numpy(run.batch.masks)
    with th.no_grad():
        ours = run.model.policy.evaluate(now(run), actions, masks != 0)
        stock = run.model.policy.evaluate_actions(th.from_numpy(run.env._observe()).float(), actions, masks)
    for one, other in zip(ours, stock, strict=True):
        assert other is not None
        assert th.allclose(one, other.flatten())


def test_the_policy_class_learns_in_stock_maskable_ppo() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(8, [UniformPolicy()], seed=1, keep_walks=True, hidden=True))
    options = {"rules": Rules().to_dict(), "widths": (16,)}
    model = MaskablePPO(ArchiePolicy, env, n_steps=16, batch_size=64, device="cpu", seed=2, policy_kwargs=options)
    before = checkpoint.module_arrays(model.policy)
    model.learn(128)
    after = checkpoint.module_arrays(model.policy)
    assert all(np.isfinite(after[name]).all() for name in after)
    assert any(not np.array_equal(before[name], after[name]) for name in after)


def test_maskable_ppo_runs_on_the_vec_env_as_it_comes() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(8, [UniformPolicy()], seed=1, keep_walks=True, dtype="float32"))
    assert is_masking_supported(env)
    model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=64, device="cpu", seed=2)
    model.learn(256)
    assert get_action_masks(env).shape == (8, 35)
    assert model.ep_info_buffer
    assert all({"r", "l", "t"} == set(episode) for episode in model.ep_info_buffer)


def test_finished_hands_show_their_end_and_their_statistics_the_sb3_way() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(16, [UniformPolicy()], seed=1, keep_walks=True))
    env.seed(4)
    first = env.reset()
    total, episodes = 0.0, 0
    for _ in range(50):
        masks = np.stack(env.env_method("action_masks"))
        _, rewards, dones, infos = env.step(masks.argmax(axis=1))
        for i, info in enumerate(infos):
            assert ("terminal_observation" in info) == dones[i]
            if dones[i]:
                assert info["TimeLimit.truncated"] is False
                assert info["episode"]["r"] == rewards[i]
                assert env.observation_space.contains(info["terminal_observation"])
                assert decode(info["terminal_observation"], "archie").phase == 7
                total, episodes = total + info["episode"]["r"], episodes + 1
    assert episodes == env.batch.hands.sum()
    assert total == env.batch.chips.sum()  # walks included, as evaluate_policy must count them
    env.seed(4)
    assert np.array_equal(env.reset(), first)
    assert not np.array_equal(env.reset(), first)
    with pytest.raises(AttributeError):
        env.env_method("render")
    assert env.env_is_wrapped(Monitor) == [True] * 16
    env.set_options({})
    with pytest.raises(ArchieError, match=r"options .*: expected none"):
        env.set_options({"dealer": "player_0"})


@pytest.mark.parametrize(
    ("opponents", "keep_walks", "words"),
    [
        ([None], True, "plays both seats"),
        ([UniformPolicy(), None], True, "plays both seats"),
        ([UniformPolicy()], False, "without walks"),
    ],
)
def test_a_batch_that_stock_loops_would_learn_from_wrongly_is_refused(
    opponents: list[Any], keep_walks: bool, words: str
) -> None:
    batch = SingleAgentBatch(8, opponents, seed=1, keep_walks=keep_walks)
    with pytest.raises(ArchieError, match=words):
        SingleAgentVecEnv(batch)
    assert not any(SingleAgentVecEnv(batch, quiet=True).env_is_wrapped(Monitor))


@pytest.mark.parametrize(
    ("hand", "kept"),
    [
        ("2c 3d 8h 8s Kd", ["2c 3d 8h", "8h 8s", "3d Kd", "2c 3d"]),
        ("4c 5c 6d 7c Kc", ["4c 5c 6d 7c", "", "4c 5c 7c Kc", "4c 5c 6d 7c"]),
        ("9c 9d 9h Ts Td", ["", "9c 9d 9h Ts Td", "9d Td", "9c Ts"]),
        ("2c 3c 4c 5c Ac", ["2c 3c 4c 5c Ac"] + [""] + ["2c 3c 4c 5c Ac"] * 2),
    ],
)
def test_the_named_discards_keep_what_they_say(hand: str, kept: list[str]) -> None:
    cards = parse_cards(hand)
    row = np.zeros((1, 388), np.int8)
    for k, card in enumerate(cards):
        row[0, 208 + 17 * k + (card >> 2)] = row[0, 208 + 17 * k + 13 + (card & 3)] = 1
    _, keeps = HandReader(Rules())(row)
    for name, bits, expected in zip(KEEPS, keeps[0], kept, strict=True):
        thrown = discards(DISCARD + int(bits), cards)
        assert set(cards) - set(thrown) == set(parse_cards(expected)), name


@pytest.mark.parametrize("network", [{}, {"slots": False}, {"hand_features": False, "hidden_cards": False}])
@pytest.mark.parametrize("rules", ["archie", "midi"])
def test_the_exported_policy_plays_with_the_networks_probabilities(network: dict[str, Any], rules: str, tmp_path: Path) -> None:
    run = TrainingState(small(rules=rules, network={"widths": [24], "bfloat16": "off", **network}, report={"agents": []}))
    run.update()
    run.policy().save(tmp_path / "policy.npz")
    policy = PPOPolicy.load(tmp_path / "policy.npz", rules)
    rows, masks = run.batch.observations, run.batch.masks
    seen = th.from_numpy(run.env._observe())
    with th.no_grad():
        expected = run.model.policy.get_distribution(seen, masks).distribution.probs.numpy()
    assert np.allclose(policy.probabilities(rows, masks), expected, atol=1e-5)
    assert np.allclose(policy.probabilities(scaled(rows, rules), masks), expected, atol=1e-5)
    greedy = load(f"ppo_greedy:{tmp_path / 'policy.npz'}", rules)
    best = np.where(masks != 0, expected, -1).argmax(axis=1)
    assert (greedy.act(rows, masks, np.random.default_rng(0)) == best).mean() > 0.99
    assert (greedy.probabilities(rows, masks).sum(axis=1) == 1).all()


def test_float_and_int8_observations_give_the_network_the_same_input() -> None:
    batch = Batch(32, seed=2)
    for _ in range(4):
        batch.step(batch.sample_actions())
    values = []
    for dtype in ("int8", "float32"):
        env = SingleAgentVecEnv(SingleAgentBatch(4, [UniformPolicy()], seed=1, keep_walks=True, dtype=dtype))
        model = MaskablePPO(
            ArchiePolicy, env, seed=5, device="cpu", policy_kwargs={"rules": Rules().to_dict(), "widths": (16,)}
        )
        rows = batch.observations if dtype == "int8" else scaled(batch.observations, "archie")
        with th.no_grad():
            values.append(model.policy.get_distribution(th.from_numpy(rows), batch.masks).distribution.probs.numpy())
    assert np.allclose(values[0], values[1], atol=1e-6)


def test_raw_configuration_has_nothing_of_poker_in_the_network() -> None:
    raw = Config.load(ROOT / "configs/ppo/raw.toml", ["report.agents=[]", "rollout.num_envs=64", "learning.minibatch_size=64"])
    run = TrainingState(raw)
    policy = run.model.policy
    row = run.batch.observations.shape[1]
    assert policy.mlp_extractor.policy_net[0].in_features == row
    assert policy.mlp_extractor.value_net[0].in_features == row + 52, "the other's cards as they are"
    assert policy.action_net.slot is None
    before = now(run)
    with th.no_grad():
        expected = policy.decide(before)
        before[:, : len(KEEPS) + FEATURES] = 9
        before[:, len(KEEPS) + FEATURES + row + 52 :] = 9
        found = policy.decide(before)
    assert all(th.equal(a, b) for a, b in zip(expected, found, strict=True))
    probabilities = run.policy().probabilities(run.batch.observations, run.batch.masks)
    uniform = UniformPolicy().probabilities(run.batch.observations, run.batch.masks)
    assert np.allclose(probabilities, uniform, atol=0.1)


def test_entropy_is_measured_by_phase() -> None:
    found = self_play_statistics(UniformPolicy(), 512, 1, Rules())
    assert list(found.entropy) == ["round_1", "draw_1", "round_2", "draw_2", "round_3", "draw_3", "round_4"]
    assert all(found.entropy[f"draw_{d}"] == pytest.approx(np.log(32), abs=1e-3) for d in (1, 2, 3))
    assert all(np.log(2) - 1e-3 < found.entropy[f"round_{r}"] < np.log(3) for r in (1, 2, 3, 4))
    assert found.lows_kept == pytest.approx(1 / 32, abs=1e-3)


def test_the_policy_starts_on_standing_pat_and_the_slots() -> None:
    policy = TrainingState(small()).policy()
    batch = Batch(400, seed=2)
    for _ in range(2):  # call, check
        batch.step(np.full(400, CALL))
    probabilities = policy.probabilities(batch.observations, batch.masks)
    assert probabilities[:, DISCARD].mean() > 2 / 32, "a bias of 1.5 on five of 32 discards more than doubles each"


def test_a_warm_start_plays_like_the_player_it_was_cloned_from() -> None:
    run = TrainingState(warm(critic_updates=1))
    run.update()
    teacher, generator = load("call_draw", "mini"), np.random.default_rng(1)
    agreed = []
    batch = Batch(256, "mini", seed=5)
    for _ in range(20):
        chosen = teacher.act(batch.observations, batch.masks, generator)
        probabilities = run.policy().probabilities(batch.observations, batch.masks)
        agreed.append(probabilities[np.arange(256), chosen].mean())
        batch.step(chosen)
    assert np.mean(agreed) > 0.9


@pytest.mark.parametrize("fault", ["nan", "illegal", "silent"])
def test_a_teacher_without_probabilities_is_refused_by_name(fault: str) -> None:
    class Teacher:
        name = "the teacher"

        def act(self, observations: Any, masks: Any, rng: np.random.Generator) -> Any:
            return masks.argmax(axis=1)

        if fault != "silent":

            def probabilities(self, observations: Any, masks: Any) -> Any:
                return np.full(masks.shape, np.nan if fault == "nan" else 1 / masks.shape[1], np.float32)

    run = TrainingState(small(rules="mini"))
    with pytest.raises(ArchieError, match=r"the teacher(: its probabilities are no| has no probabilities)"):
        clone(run.model.policy, Teacher(), PRESETS["mini"], 1, 1e-3, 256, True, 1)


def test_after_a_warm_start_the_critic_learns_alone_for_a_while() -> None:
    run = TrainingState(warm(decisions=1, critic_updates=2))
    heads = []
    for _ in range(3):
        run.update()
        policy = run.model.policy
        heads.append((policy.action_net.free.weight.detach().clone(), policy.value_net.weight.detach().clone()))
    (actor1, critic1), (actor2, critic2), (actor3, _) = heads
    assert th.equal(actor1, actor2)
    assert not th.equal(critic1, critic2)
    assert not th.equal(actor2, actor3)


def test_every_seed_of_the_range_starts_a_run() -> None:
    for seed in (0, 2**32 - 1):
        TrainingState(small(seed=seed)).update()


def test_a_rollout_that_leaves_a_small_last_minibatch_is_learnt_from() -> None:
    run = TrainingState(small(learning={"minibatch_size": 48 * 8 - 2}))
    run.update()
    assert all(np.isfinite(array).all() for array in run.policy().weights.values())


def test_weights_that_are_no_longer_finite_stop_the_run() -> None:
    run = TrainingState(small())
    with th.no_grad():
        run.model.policy.value_net.bias.fill_(float("nan"))
    with pytest.raises(ArchieError, match="update 1: weights of the network are no longer finite"):
        run.update()
