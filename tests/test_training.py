"""The PPO trainer: advantages for each player, masks, configurations, checkpoints, and the policy it writes."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

from agents import load
from agents.archive import Arrays, Meta, read_archive, write_archive
from agents.hand_features import FEATURES, KEEPS, HandReader
from agents.ppo import PPOPolicy
from archie_env.actions import CALL, DISCARD, discards
from archie_env.batch import Batch
from archie_env.cards import parse_cards
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError, ConfigError
from archie_env.observation import decode, scaled
from archie_env.policy import UniformPolicy
from archie_env.rules import PRESETS, Rules
from tests.tampering import mutants
from training.monitoring import self_play_statistics
from training.ppo import checkpoint
from training.ppo._kernels import draw_actions
from training.ppo.algorithm import Rollout
from training.ppo.cloning import clone
from training.ppo.config import Config
from training.ppo.network import ArchiePolicy
from training.ppo.state import TrainingState
from training.ppo.trainer import CHECKPOINT, POLICY, main, train
from training.ppo.vec_env import SingleAgentVecEnv
from training.settings import Settings

ROOT = Path(__file__).parent.parent
SMALL: dict[str, Any] = {
    "seed": 3,
    "budget": {"decisions": 6 * 48 * 8},
    "rollout": {"num_envs": 48, "num_steps": 8},
    "learning": {"minibatch_size": 96},
    "network": {"widths": [24, 16], "bfloat16": "off"},
    "opponents": {"self_play": 0.5, "snapshots": 0.3, "snapshot_interval": 2, "snapshots_kept": 2, "named": {"call": 0.2}},
    "report": {"times": 1, "deals": 8, "last_deals": 8, "agents": ["uniform"], "log_every": 1, "save_every": 1},
}


def small(**sections: Any) -> Config:
    return Config.from_values(SMALL | sections, "small")


def state_of(run: TrainingState) -> dict[str, bytes]:
    """Everything that decides how a run goes on."""
    arrays = checkpoint.module_arrays(run.model.policy) | checkpoint.optimizer_arrays(run.model.policy.optimizer)
    arrays |= run.batch.snapshot()[0] | {f"snapshot{i}": p.weights["head.weight"] for i, p in enumerate(run.snapshots.policies)}
    return {name: array.tobytes() for name, array in arrays.items()}


# Advantages


def expected_advantages(rollout: Rollout, last_values: Any, last_done: Any, decay: float) -> NDArray[Any]:
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


def played(run: TrainingState) -> Rollout:
    """The rollout of a run that has played once and not learnt."""
    model = run.model
    model.collect_rollouts(run.env, run._callback, model.rollout_buffer, run.config.rollout.num_steps)
    return model.rollout_buffer


def now(run: TrainingState) -> th.Tensor:
    """What the network is given for the decisions to come."""
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


def test_what_was_played_was_legal_and_is_remembered_with_its_probability() -> None:
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
def test_what_is_learnt_from_is_what_the_stock_distribution_says(prior: float) -> None:
    run = TrainingState(small(network=SMALL["network"] | {"prior": prior}))
    policy, masks = run.model.policy, th.from_numpy(run.batch.masks)
    observations = th.from_numpy(run.env._observe()).float()
    actions = masks.argmax(dim=1)
    with th.no_grad():
        values, log_probs, bonus = policy.evaluate(now(run), actions, masks != 0)
        stock_values, stock, stock_bonus = policy.evaluate_actions(observations, actions, masks)
        distribution = policy.get_distribution(observations, run.batch.masks)
        keeps = now(run)[:, : len(KEEPS)]
        expected = distribution.entropy()
        if prior:
            expected = expected + (distribution.distribution.probs * policy.prior(keeps, masks != 0)).sum(dim=1)
        assert th.allclose(values, policy.predict_values(observations).flatten(), atol=1e-6)
    assert th.allclose(values, stock_values.flatten())
    assert th.allclose(log_probs, stock)
    assert stock_bonus is not None
    assert th.allclose(bonus, stock_bonus)
    assert th.allclose(log_probs, distribution.log_prob(actions), atol=1e-5)
    assert th.allclose(bonus, expected, atol=1e-5)


def test_the_policy_class_learns_in_stock_maskable_ppo() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(8, [UniformPolicy()], seed=1, hidden=True))
    options = {"rules": Rules().to_dict(), "widths": (16,)}
    model = MaskablePPO(ArchiePolicy, env, n_steps=16, batch_size=64, device="cpu", seed=2, policy_kwargs=options)
    before = checkpoint.module_arrays(model.policy)
    model.learn(128)
    after = checkpoint.module_arrays(model.policy)
    assert all(np.isfinite(after[name]).all() for name in after)
    assert any(not np.array_equal(before[name], after[name]) for name in after)


# The SB3 face


def test_maskable_ppo_runs_on_the_vec_env_as_it_comes() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(8, [UniformPolicy()], seed=1, dtype="float32"))
    assert is_masking_supported(env)
    model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=64, device="cpu", seed=2)
    model.learn(256)
    assert get_action_masks(env).shape == (8, 35)
    assert model.ep_info_buffer
    assert all({"r", "l", "t"} == set(episode) for episode in model.ep_info_buffer)


def test_finished_hands_show_their_end_and_their_statistics_the_sb3_way() -> None:
    env = SingleAgentVecEnv(SingleAgentBatch(16, [UniformPolicy()], seed=1))
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
    assert episodes == env.batch.hands.sum() - env.batch.walks.sum()
    env.seed(4)
    assert np.array_equal(env.reset(), first)
    assert not np.array_equal(env.reset(), first)
    with pytest.raises(AttributeError):
        env.env_method("render")


# Hands as the network reads them


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


# The policy as a player


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
        env = SingleAgentVecEnv(SingleAgentBatch(4, [UniformPolicy()], seed=1, dtype=dtype))
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


def test_entropy_is_told_by_phase() -> None:
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


@pytest.mark.parametrize("damage", ["truncated", "pickle", "text", "version", "other", "missing", "shape", "nothing"])
def test_a_file_that_is_not_a_whole_policy_of_this_version_is_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    policy = TrainingState(small()).policy()
    policy.save(path)
    whole = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "pickle":
        path.write_bytes(pickle.dumps({"weights": [1, 2]}))
    elif damage == "text":
        path.write_text("weights")
    elif damage == "version":
        write_archive(path, policy.weights, {"format": "archie-env ppo policy", "version": 99})
    elif damage == "other":
        write_archive(path, policy.weights, {"format": checkpoint.FORMAT, "version": checkpoint.VERSION})
    elif damage == "missing":
        PPOPolicy(policy.weights, policy.meta).save(path)
        weights = {k: v for k, v in policy.weights.items() if k != "head.bias"}
        meta = policy.meta | {"format": "archie-env ppo policy", "version": 1, "rules": Rules().to_dict()}
        write_archive(path, weights, meta)
    elif damage == "shape":
        weights = dict(policy.weights) | {"head.bias": np.zeros(3, np.float32)}
        meta = policy.meta | {"format": "archie-env ppo policy", "version": 1, "rules": Rules().to_dict()}
        write_archive(path, weights, meta)
    else:
        path.unlink()
    with pytest.raises(ArchieError, match=r"policy\.npz"):
        PPOPolicy.load(path)


def load_spoilt(path: Path, meta: dict[str, Any], weights: dict[str, Any]) -> PPOPolicy:
    """What is loaded from the file of a good policy with these parts in place of its own; None takes one out."""
    policy = TrainingState(small()).policy()
    policy.save(path)
    arrays, told = read_archive(path, "archie-env ppo policy", 1)
    for parts, others in ((told, meta), (arrays, weights)):
        for name, value in others.items():
            parts.pop(name, None) if value is None else parts.update({name: value})
    write_archive(path, arrays, told)
    return PPOPolicy.load(path)


@pytest.mark.parametrize(
    ("meta", "weights", "message"),
    [
        ({"rules": None}, {}, "rules is missing: expected a table of rule options"),
        ({"rules": []}, {}, r"rules \[\]: expected a table of rule options"),
        ({"rules": "archie"}, {}, "rules 'archie': expected a table of rule options"),
        ({"rules": {"draws": 9}}, {}, "draws 9: expected a whole number 0 to 3"),
        ({"rules": {"stakes": 3}}, {}, "stakes 3: expected"),
        ({"slots": None}, {}, "slots is missing: expected true or false"),
        ({"hand_features": "no"}, {}, "hand_features 'no': expected true or false"),
        ({}, {"head.bias": np.array(["a"] * 39)}, "'head.bias.npy' .* of type <U1: expected an array of numbers"),
        ({}, {"head.bias": np.ones(39, complex)}, "'head.bias.npy' .* of type complex128: expected an array of numbers"),
        ({}, {"head.bias": np.full(39, np.nan)}, "weights head.bias: 39 are nan or infinite: expected finite numbers"),
        ({}, {"head.bias": np.full(39, np.inf, np.float32)}, "weights head.bias: 39 are nan or infinite"),
        ({}, {"head.bias": np.full(39, 1e300)}, "weights head.bias: 39 are nan or infinite"),
        ({}, {"head.bias": np.zeros(())}, r"weights .* and \(1,\): expected"),
        (
            {},
            {"head.bias": None},
            "weights head.weight, .*: expected layer0.weight, layer0.bias, layer1.weight, layer1.bias, head.weight, head.bias",
        ),
        ({}, {"layer9.bias": np.zeros(3)}, "weights .*layer9.bias: expected layer0.weight"),
        ({}, {"layer0.weight": np.zeros((9, 24))}, r"weights \(9, 24\) and \(24,\): expected \(457, units\)"),
        ({}, {f"layer{i}.{part}": None for i in (0, 1) for part in ("weight", "bias")}, "weights .*: expected layer0.weight"),
        ({}, {"meta": np.frombuffer(b"[" * 5000, np.uint8)}, "not a whole file of 'archie-env ppo policy'"),
    ],
)
def test_a_file_with_spoilt_parts_is_refused(
    meta: dict[str, Any], weights: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchieError, match=rf"policy\.npz: {message}"):
        load_spoilt(tmp_path / "policy.npz", meta, weights)


def test_weights_that_overflow_do_not_play(tmp_path: Path) -> None:
    policy = load_spoilt(tmp_path / "policy.npz", {}, {"layer0.bias": np.full(24, 3e38, np.float32)})
    batch = Batch(4, seed=1)
    with pytest.raises(ArchieError, match="outputs overflow"):
        policy.probabilities(batch.observations, batch.masks)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 255), st.integers(0, 3))
def test_no_damaged_byte_ends_in_another_error(place: int, byte: int, cut: int) -> None:
    path, whole = written_policy()
    damaged = bytearray(whole)
    damaged[place % len(damaged)] = byte
    path.write_bytes(damaged[: len(damaged) // cut] if cut else damaged)
    with contextlib.suppress(ArchieError):
        PPOPolicy.load(path)


@functools.cache
def written_policy() -> tuple[Path, bytes]:
    path = Path(tempfile.mkdtemp()) / "policy.npz"
    atexit.register(shutil.rmtree, path.parent)
    TrainingState(small(network={"widths": [2], "bfloat16": "off"})).policy().save(path)
    return path, path.read_bytes()


def test_a_policy_for_other_rules_is_refused(tmp_path: Path) -> None:
    TrainingState(small()).policy().save(tmp_path / "policy.npz")
    with pytest.raises(ArchieError, match="trained for rules archie, expected pagat"):
        PPOPolicy.load(tmp_path / "policy.npz", "pagat")


# Checkpoints


def test_a_resumed_run_ends_with_the_weights_of_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed = TrainingState(small())
    for _ in range(6):
        undisturbed.update()
    stopped = TrainingState(small())
    for _ in range(3):
        stopped.update()
    checkpoint.save(stopped, tmp_path / CHECKPOINT)
    del stopped
    np.random.seed(9)  # noqa: NPY002  # no global generator of NumPy decides anything
    resumed = TrainingState(small())
    checkpoint.resume(resumed, tmp_path / CHECKPOINT)
    for _ in range(3):
        resumed.update()
    assert state_of(resumed) == state_of(undisturbed)


def test_a_killed_run_is_resumed_to_the_same_policy(tmp_path: Path) -> None:
    config = tmp_path / "small.toml"
    config.write_text(toml_of(SMALL))
    command = [sys.executable, "-m", "training.ppo", "--config", str(config), "--seed", "3"]
    process = subprocess.Popen([*command, "--out", str(tmp_path / "killed")], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (tmp_path / "killed" / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "killed" / CHECKPOINT).exists()
    resumed = train(small(), tmp_path / "killed", resume=True, quiet=True)
    whole = train(small(), tmp_path / "whole", quiet=True)
    assert all(np.array_equal(resumed.weights[name], whole.weights[name]) for name in whole.weights)
    assert not [p for p in (tmp_path / "killed").iterdir() if p.name.startswith(".")], "no half-written file is left"


def toml_of(values: dict[str, Any]) -> str:
    """Enough TOML for the tests' tables."""

    def value(v: Any) -> str:
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{k} = {value(x)}" for k, x in v.items()) + " }"
        return str(v).lower() if isinstance(v, bool) else repr(v).replace("'", '"')

    lines = []
    for section, table in values.items():
        if isinstance(table, dict):
            lines += [f"[{section}]", *(f"{k} = {value(v)}" for k, v in table.items())]
    return "\n".join(lines)


def test_a_checkpoint_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = tmp_path / CHECKPOINT, TrainingState(small())
    checkpoint.save(run, path)
    before = path.read_bytes()
    run.update()

    def out_of_power(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", out_of_power)
    with pytest.raises(ArchieError, match=r"checkpoint\.npz: no space left"):
        checkpoint.save(run, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [CHECKPOINT]


def test_a_checkpoint_of_another_configuration_is_not_resumed(tmp_path: Path) -> None:
    train(small(budget={"decisions": 1}), tmp_path, quiet=True)
    other = small(seed=4, opponents=SMALL["opponents"] | {"named": {"raise": 0.2}}, report={})
    with pytest.raises(ConfigError, match="another configuration, there and here seed = 3 and 4; ") as found:
        train(other, tmp_path, resume=True, quiet=True)
    assert "opponents.named.call = 0.2 and not set; opponents.named.raise = not set and 0.2: only" in str(found.value)
    longer = train(small(budget={"decisions": 2 * 48 * 8}), tmp_path, resume=True, quiet=True)
    assert longer.meta["decisions"] == 2 * 48 * 8
    assert (tmp_path / POLICY).exists()


# Warm starts


def warm(**options: Any) -> Config:
    return small(warm_start={"policy": "call_draw", "decisions": 200_000, **options}, rules="mini")


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


def test_a_run_with_a_warm_start_is_resumed_to_the_same_weights(tmp_path: Path) -> None:
    undisturbed, stopped, resumed = (TrainingState(warm(decisions=1, critic_updates=2)) for _ in range(3))
    for _ in range(3):
        undisturbed.update()
    stopped.update()
    checkpoint.save(stopped, tmp_path / CHECKPOINT)
    checkpoint.resume(resumed, tmp_path / CHECKPOINT)
    resumed.update()
    resumed.update()
    assert state_of(resumed) == state_of(undisturbed)


# Configurations


def test_every_shipped_configuration_loads() -> None:
    for path in sorted((ROOT / "configs/ppo").glob("*.toml")):
        assert Config.load(path).budget.decisions > 0


def test_a_configuration_survives_its_plain_form() -> None:
    config = small()
    assert Config.from_values(config.model_dump(), "again") == config
    text = toml_of(SMALL)
    assert Config.from_values({"seed": 3} | tomllib.loads(text), "toml") == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning": {"rate": 0.1}}, "bad.toml: learning.rate is called learning.learning_rate since version 0.2"),
        ({"rollout": {"chips": 8}}, r"rollout.chips is called rollout.reward_scale \(which is 1 / chips\) since version 0.2"),
        ({"opponents": {"itself": 1.0}}, "opponents.itself is called opponents.self_play since version 0.2"),
        ({"speed": 1}, "bad.toml: unknown key 'speed': expected one of rules, seed, threads, budget"),
        ({"opponents": {"named": {"human": 1.0}}}, "opponents.named: human: expected players that need no terminal"),
        ({"learning": {"rat": 1}}, "unknown key 'learning.rat': expected one of learning_rate, final_learning_rate_fraction"),
        ({"learning": {"learning_rate": "fast"}}, "learning.learning_rate = 'fast': expected a number 1e-08 to 1"),
        ({"learning": {"learning_rate": -1}}, "learning.learning_rate = -1: expected a number"),
        ({"learning": {"learning_rate": float("nan")}}, "learning.learning_rate = nan: expected a number"),
        ({"learning": 3}, "learning = 3: expected a table"),
        ({"learning": {"update_epochs": True}}, "learning.update_epochs = True: expected a whole number 1 to 100"),
        (
            {"learning": {"minibatch_size": 10**6}},
            "learning.minibatch_size = 1000000: expected at most rollout.num_envs x rollout.num_steps = 16384",
        ),
        ({"learning": {"minibatch_size": 16383}}, "minibatch_size = 16383: .* = 16384 leaves a last minibatch of one"),
        (
            {"rollout": {"num_envs": 2, "num_steps": 2}, "learning": {"minibatch_size": 3}},
            "learning.minibatch_size = 3: .*a remainder of 0 or at least 2",
        ),
        ({"seed": -1}, "seed = -1: expected a whole number"),
        ({"seed": 2**32}, "seed = 4294967296: expected a whole number 0 to 4294967295"),
        ({"seed": 16**5000 - 1}, "seed = a int too large to print: expected a whole number"),
        ({"rules": {"draws": 16**5000 - 1}}, "rules = a dict too large to print"),
        ({"seed": 1.5}, "seed = 1.5: expected a whole number"),
        ({"rules": "holdem"}, "rules = 'holdem': .*expected one of archie"),
        ({"rules": {"drows": 3}}, "unknown rule 'drows'"),
        ({"network": {"widths": [256, 0]}}, r"network.widths\[1\] = 0: expected a whole number 1 to 8192"),
        ({"network": {"widths": []}}, r"network.widths = \[\]: expected a list of at least one item, each a whole number 1 to"),
        ({"network": {"bfloat16": "yes"}}, "expected one of 'auto', 'on', 'off'"),
        ({"opponents": {"self_play": 0, "snapshots": 0}}, "every share is 0"),
        ({"opponents": {"named": {"call": 2}}}, "opponents.named.call = 2: expected a number 0 to 1"),
        ({"report": {"agents": [1]}}, r"report.agents\[0\] = 1: expected a name that agents.load takes"),
    ],
)
def test_a_bad_configuration_is_refused_with_the_key_and_what_is_allowed(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.from_values(values, "bad.toml")


@pytest.mark.parametrize(
    "text",
    [
        "rate", "=3", "seed.x=1", "learning.vf_coef=", "learning.vf_coef=[1", "seed=" + "[" * 3000, "seed=" + "9" * 5000,
        "seed=0x" + "f" * 5000, "rules=" + "[" * 3000, "rules.draws=0x" + "f" * 5000, "seed" + ".x" * 3000 + "=1",
        "rules" + ".draws" * 3000 + "=1", "opponents.named" + ".call" * 3000 + "=1", "seed=1\nrules='mini'",
    ],
)  # fmt: skip
def test_a_bad_override_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("seed = 2\n")
    with pytest.raises(ConfigError) as found:
        Config.load(path, [text])
    assert len(str(found.value)) < 1000


@pytest.mark.parametrize("text", ["seed = " + "[" * 3000, "seed = " + "9" * 5000, "seed = 0x" + "f" * 5000, "\xff", "a\0"])
def test_a_bad_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"a\.toml"):
        Config.load(tmp_path / "a.toml")


KEYS = [
    f"{section}.{key}"
    for section, field in Config.model_fields.items()
    if isinstance(field.default, Settings)
    for key in type(field.default).model_fields
] + list(Config.model_fields)
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["true", "'archie'", "'on'", "[]", "[64, 64]", "{}", "{draws = 1}", "{call = 0.5}", "1979-05-27", '"""', "0x1f"]
    ),
    st.integers(1, 3000).map(lambda n: "[" * n + "]" * n),
)


def accepted_or_refused(path: Path, overrides: Sequence[str] = ()) -> None:
    """Accepted, with a configuration that survives its plain form, or refused with the one error; nothing else."""
    try:
        config = Config.load(path, overrides)
    except ConfigError:
        return
    assert Config.from_values(config.model_dump(), "again") == config


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.tuples(st.sampled_from(KEYS), VALUES).map("=".join)))
def test_any_override_is_accepted_or_refused(text: str) -> None:
    accepted_or_refused(ROOT / "configs/ppo/smoke.toml", [text])


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.lists(st.tuples(st.sampled_from(KEYS), VALUES).map(" = ".join)).map("\n".join)))
def test_any_file_is_accepted_or_refused(text: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        accepted_or_refused(Path(file.name))


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


def test_flags_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[learning]\nlearning_rate = 0.5\n")
    config = Config.load(path, ["learning.learning_rate=3e-4", "network.bfloat16=off", "opponents.named.call=0.1"])
    assert (config.learning.learning_rate, config.network.bfloat16, config.opponents.named) == (3e-4, "off", {"call": 0.1})


@functools.cache
def written_checkpoint() -> tuple[Arrays, Meta]:
    """The arrays and the ``meta`` of a checkpoint after two updates, with two snapshots in the pool."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    run = TrainingState(small())
    run.update()
    run.update()
    checkpoint.save(run, folder / CHECKPOINT)
    return read_archive(folder / CHECKPOINT, checkpoint.FORMAT, checkpoint.VERSION)


def resumed_from(arrays: Arrays, meta: Meta, path: Path) -> TrainingState:
    """A run resumed from a checkpoint with these parts."""
    write_archive(path, arrays, meta)
    checkpoint.resume(unfinished_run(), path)
    return unfinished_run()


@functools.cache
def unfinished_run() -> TrainingState:
    """One run for all of these files: what was restored before makes no difference, and building one takes time."""
    return TrainingState(small())


NOT_A_NUMBER = np.full((1,), np.nan, np.float32)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda a, m: m.pop("config"), "config: configuration = None: expected a table"),
        (lambda a, m: m.pop("generators"), "meta: generators is missing: expected a table"),
        (lambda a, m: m["generators"].update(batch=[]), r"generators.batch has 0 items: expected 3"),
        (lambda a, m: m["generators"]["learner"].update(bit_generator="MT19937"), "bit_generator = 'MT19937': expected one of"),
        (lambda a, m: m["generators"]["learner"]["state"].update(inc=-1), "learner.state.inc = -1: expected a whole number"),
        (lambda a, m: m["progress"].update(updates=3), "progress.decisions = 768: expected those of 3 updates"),
        (lambda a, m: m["progress"].update(seconds=float("nan")), "progress.seconds = nan: expected a number 0 to"),
        (lambda a, m: m.update(version=2), "'archie-env ppo checkpoint' version 2, expected .* version 3"),
        (lambda a, m: a.pop("episode_starts"), "episode_starts is missing: expected a whole checkpoint"),
        (lambda a, m: a.pop("network/value_net.bias"), "network/value_net.bias is missing"),
        (lambda a, m: a.pop("optimizer/0/step"), "optimizer/0/step is missing"),
        (lambda a, m: a.pop("snapshot1/head.bias"), "snapshot1/head.bias is missing"),
        (lambda a, m: [a.pop(k) for k in list(a) if k.startswith("snapshot")], "snapshot0/.* is missing"),
        (lambda a, m: a.update({"network/value_net.bias": np.zeros(9, np.float32)}), r"bias \(9,\) of .*: expected \(1,\)"),
        (lambda a, m: a.update({"network/value_net.bias": NOT_A_NUMBER}), "bias: 1 are nan or infinite: expected finite"),
        (lambda a, m: a.update({"network/value_net.bias": np.array(["x"])}), r"bias.npy. \(1,\) of type <U1: expected"),
        (lambda a, m: a.update({"optimizer/0/exp_avg_sq": -1 - a["optimizer/0/exp_avg_sq"]}), "exp_avg_sq: .* are negative"),
        (lambda a, m: a.update({"optimizer/0/step": np.float32(0)}), "optimizer/0/step 0.0: expected 1 or more"),
        (lambda a, m: a.update({"optimizer/x": np.zeros(1)}), "unknown array 'optimizer/x'"),
        (lambda a, m: a.update({"batch/hands": a["batch/hands"] - 2**40}), r"hands -\d+ of game 0: expected 0 to 2147483645"),
        (lambda a, m: a.update({"batch/hands": a["batch/hands"].astype(np.uint64)}), "batch/hands .* of type uint64: expected"),
        (lambda a, m: a.update({"batch/walks": a["batch/hands"] + 1}), "walks .* of game 0: expected 0 to the number of hands"),
        (lambda a, m: a.update({"batch/done": a["batch/done"] + 2}), "done [23] of game 0: expected 0 or 1"),
        (lambda a, m: a.update({"batch/actions": a["batch/actions"] * 0 + 35}), "actions of game 0: 35 is not legal"),
        (lambda a, m: a.update({"batch/actions": a["batch/actions"] * 0 - 1}), r"actions of game \d+: the opponent is to act"),
        (lambda a, m: a.update({"batch/actions": a["batch/actions"] * 0}), "actions of game 0: 0 is not legal"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_is_not_whole_is_refused_before_training(spoil: Any, message: str, tmp_path: Path) -> None:
    arrays, meta = written_checkpoint()
    arrays, meta = dict(arrays), json.loads(json.dumps(meta))
    spoil(arrays, meta)
    with pytest.raises(ArchieError, match=rf"checkpoint\.npz: .*{message}") as found:
        resumed_from(arrays, meta, tmp_path / CHECKPOINT)
    assert "\n" not in str(found.value)


def test_a_tampered_checkpoint_is_refused_or_trains_on(tmp_path: Path) -> None:
    arrays, meta = written_checkpoint()
    accepted = 0
    for changed, words in mutants(arrays, meta, 300, seed=1):
        with contextlib.suppress(ArchieError):
            run = resumed_from(changed, words, tmp_path / CHECKPOINT)
            accepted += 1
            if accepted % 8 == 1:
                run.update()
    assert 0 < accepted < 200


def test_a_checkpoint_restores_games_that_the_engine_can_reach(tmp_path: Path) -> None:
    arrays, meta = written_checkpoint()
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(60):
        actions = arrays["batch/actions"].copy()
        game, column = rng.integers(len(actions)), rng.integers(actions.shape[1])
        actions[game, column] = rng.integers(-128, 128)
        try:
            run = resumed_from(arrays | {"batch/actions": actions}, meta, tmp_path / CHECKPOINT)
        except ArchieError:
            refused += 1
        else:
            out = run.batch.games["deck"]
            assert (np.sort(out, axis=1) == np.arange(52)).all()
    assert refused > 30


def test_the_command_line_refuses_what_it_cannot_start_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    smoke = ["--config", str(ROOT / "configs/ppo/smoke.toml"), "--set", "report.times=0"]
    for arguments, words in (
        (["--out", str(tmp_path / "file")], f"error: {tmp_path / 'file'}: File exists: expected a folder"),
        (["--out", str(tmp_path / "file" / "below")], "expected a folder that can be made and written to"),
        (["--out", str(tmp_path / ("x" * 300))], "File name too long"),
        (["--out", f"{tmp_path}/a\0b"], "expected a folder"),
        (["--out", str(tmp_path / "new"), "--set", "opponents.named.nobody=0.1"], "policy 'nobody': expected one of"),
        (["--out", str(tmp_path / "new"), "--warm-start", "no'body"], 'policy "no\'body": expected one of'),
        (["--out", str(tmp_path / "new"), "--set", "warm_start.policy=3"], "warm_start.policy = 3: expected a name that"),
        (["--out", str(tmp_path / "new"), "--resume", "--fresh"], "--resume and --fresh: expected at most one of them"),
        (["--out", str(tmp_path / "new"), "--resume"], "no such file, expected one of 'archie-env ppo checkpoint'"),
        (["--out", str(tmp_path / "new"), "--seed", str(2**32)], "seed = 4294967296: expected a whole number"),
        (["--out", str(tmp_path / "new"), "--seed", "-1"], "seed = -1: expected a whole number"),
        (["--out", str(tmp_path / "new"), "--set", "learning.minibatch_size=16383"], "leaves a last minibatch of one sample"),
    ):
        assert main([*smoke, *arguments]) == 2, arguments
        told = capsys.readouterr().err
        assert words in told
        assert told.startswith("error: ")
        assert told.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_the_command_line_reports_bad_input_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: No such file or directory" in capsys.readouterr().err
    (tmp_path / CHECKPOINT).write_bytes(b"")
    assert main(["--config", str(ROOT / "configs/ppo/smoke.toml"), "--out", str(tmp_path)]) == 2
    assert "expected --resume, --fresh or another --out" in capsys.readouterr().err
    (tmp_path / "broken.toml").write_text("seed = ")
    assert main(["--config", str(tmp_path / "broken.toml")]) == 2
    assert "not TOML" in capsys.readouterr().err
