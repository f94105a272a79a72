"""Files of the PPO trainer: policies and checkpoints, whole, damaged or tampered with; interrupts and resumed runs."""

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
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.archive import Arrays, Meta, read_archive, write_archive
from agents.ppo import PPOPolicy
from archie_env.batch import Batch
from archie_env.errors import ArchieError, ConfigError
from archie_env.files import locked
from archie_env.rules import Rules
from tests.ppo_runs import ROOT, SMALL, small, state_of, toml_of, warm
from tests.tampering import many, mutants
from training.ppo import checkpoint
from training.ppo.state import TrainingState
from training.ppo.trainer import CHECKPOINT, POLICY, train


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
    """Load the file of a good policy with some parts replaced; None removes one."""
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
    deadline = time.monotonic() + 300
    while not (tmp_path / "killed" / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "killed" / CHECKPOINT).exists()
    resumed = train(small(), tmp_path / "killed", resume=True, quiet=True)
    whole = train(small(), tmp_path / "whole", quiet=True)
    assert all(np.array_equal(resumed.weights[name], whole.weights[name]) for name in whole.weights)
    assert not [p for p in (tmp_path / "killed").iterdir() if p.name.startswith(".")], "no half-written file is left"


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
    """One run for all of these files: earlier restores make no difference, and building one takes time."""
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


@pytest.mark.mutants
def test_a_tampered_checkpoint_is_refused_or_trains_on(tmp_path: Path) -> None:
    arrays, meta = written_checkpoint()
    accepted, count = 0, many(300, 500)
    for changed, words in mutants(arrays, meta, count, seed=1):
        with contextlib.suppress(ArchieError):
            run = resumed_from(changed, words, tmp_path / CHECKPOINT)
            accepted += 1
            if accepted % 8 == 1:
                run.update()
    assert 0 < accepted < 2 * count // 3


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


# Interrupts


def signalled(monkeypatch: pytest.MonkeyPatch, at: int, *signals: signal.Signals) -> None:
    """Let the update of this number receive the signals while it runs."""
    update = TrainingState.update

    def interrupted(self: TrainingState) -> None:
        if self.updates + 1 == at:
            for number in signals:
                signal.raise_signal(number)
        update(self)

    monkeypatch.setattr(TrainingState, "update", interrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupted_run_finishes_its_update_and_resumes_to_the_same_policy(
    number: signal.Signals, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(report={"times": 1, "deals": 8, "last_deals": 8, "agents": [], "save_every": 100})
    with monkeypatch.context() as patched:
        signalled(patched, at, number)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "stopped", quiet=True)
    _, meta = read_archive(tmp_path / "stopped" / CHECKPOINT, checkpoint.FORMAT, checkpoint.VERSION)
    assert meta["progress"]["updates"] == at
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    resumed = train(config, tmp_path / "stopped", resume=True, quiet=True)
    whole = train(config, tmp_path / "whole", quiet=True)
    assert all(np.array_equal(resumed.weights[name], whole.weights[name]) for name in whole.weights)


def test_a_second_interrupt_ends_a_run_at_once_and_keeps_the_last_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled(monkeypatch, 3, signal.SIGINT, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(small(), tmp_path, quiet=True)
    _, meta = read_archive(tmp_path / CHECKPOINT, checkpoint.FORMAT, checkpoint.VERSION)
    assert meta["progress"]["updates"] == 2


def test_an_interrupted_report_is_made_again_by_the_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr("training.ppo.trainer.self_play_statistics", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(small(), tmp_path, quiet=True)
    _, meta = read_archive(tmp_path / CHECKPOINT, checkpoint.FORMAT, checkpoint.VERSION)
    assert meta["progress"] | {"seconds": 0} == {"updates": 6, "reports": 0, "seconds": 0, "decisions": 6 * 48 * 8}


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(ArchieError, match=f"process {os.getpid()} on .* writes there now"):
        train(small(), tmp_path, quiet=True)
