"""Networks in ONNX form: the exported player decides as the original, and files that are no plain networks are refused."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from agents import load
from agents.export import to_onnx
from agents.hand_features import FEATURES, KEEPS
from agents.onnx import OnnxPolicy
from agents.ppo import PPOPolicy
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.observation import scaled, width
from archie_env.rules import as_rules
from evaluation.duplicate.match import play_match

Situations = tuple[NDArray[np.int8], NDArray[np.int8]]
D, A = width("mini"), as_rules("mini").actions


def decisions(rules: str, n: int) -> Situations:
    """Rows and masks of random play."""
    batch = Batch(500, rules, seed=3)
    rows, masks = [], []
    for _ in range(n // 500):
        rows.append(batch.observations.copy())
        masks.append(batch.masks.copy())
        batch.step(batch.sample_actions())
    return np.concatenate(rows), np.concatenate(masks)


@pytest.fixture(scope="module")
def situations() -> Situations:
    return decisions("mini", 1000)


def network(
    output: str = "logits",
    kind: str = "MatMul",
    mask: int | None = None,
    inputs: int = D,
    n: Any = "n",
    opset: int = 18,
    **options: Any,
) -> onnx.ModelProto:
    """A linear network; ``mask`` is the type of a second input that is added to the outputs."""
    weight = np.random.default_rng(5).normal(size=(inputs, options.get("outputs", A))).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["y"])]
    takes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n, inputs])]
    if mask is not None:
        takes.append(helper.make_tensor_value_info("mask", mask, [n, A]))
        nodes += [
            helper.make_node("Cast", ["mask"], ["numbers"], to=TensorProto.FLOAT),
            helper.make_node("Log", ["numbers"], ["penalty"]),
            helper.make_node("Add", ["y", "penalty"], ["z"]),
        ]
    last = nodes[-1].output[0]
    if kind == "MatMul":
        kind = "Softmax" if output == "probabilities" else "Identity"
    nodes.append(helper.make_node(kind, [last], [output], domain=options.get("domain", "")))
    graph = helper.make_graph(
        nodes,
        "linear",
        takes,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [n, options.get("outputs", A)])],
        [numpy_helper.from_array(weight, "weight")],
    )
    opsets = [helper.make_opsetid("", opset)]
    if "domain" in options:
        opsets.append(helper.make_opsetid(options["domain"], 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def player(**options: Any) -> OnnxPolicy:
    return OnnxPolicy(network(**options).SerializeToString(), "mini")


def test_the_exported_player_decides_as_the_original_over_ten_thousand_decisions() -> None:
    rows, masks = decisions("archie", 10_000)
    original = load("ppo")
    assert isinstance(original, PPOPolicy)
    exported = OnnxPolicy(to_onnx(original))
    expected, found = (policy.probabilities(rows, masks) for policy in (original, exported))
    assert len(rows) == 10_000
    assert np.abs(found - expected).max() < 1e-5
    np.testing.assert_array_equal(exported.probabilities(scaled(rows, "archie"), masks), found)


@pytest.mark.parametrize("rules", ["mini", "midi", "archie"])
@pytest.mark.parametrize(("features", "slots"), [(True, True), (True, False), (False, True), (False, False)])
def test_every_architecture_is_exported_under_every_rules(rules: str, features: bool, slots: bool) -> None:
    given, draw = as_rules(rules), np.random.default_rng(1)
    sizes = [width(rules) + FEATURES * features, 8, given.actions + len(KEEPS) * slots]
    weights: dict[str, NDArray[np.float32]] = {}
    for name, m, n in zip(("layer0", "head"), sizes[:-1], sizes[1:], strict=True):
        weights[f"{name}.weight"] = draw.normal(0, 0.5, (m, n)).astype(np.float32)
        weights[f"{name}.bias"] = draw.normal(0, 0.5, n).astype(np.float32)
    original = PPOPolicy(weights, {"hand_features": features, "slots": slots}, rules)
    rows, masks = decisions(rules, 2000)
    found = OnnxPolicy(to_onnx(original), rules).probabilities(rows, masks)
    np.testing.assert_allclose(found, original.probabilities(rows, masks), atol=1e-5)


@pytest.mark.parametrize("mask", [None, TensorProto.BOOL, TensorProto.INT8, TensorProto.FLOAT])
def test_logits_probabilities_and_masks_make_the_same_player(situations: Situations, mask: int | None) -> None:
    rows, masks = situations
    weight = numpy_helper.to_array(network().graph.initializer[0])
    logits = np.where(masks, scaled(rows, "mini") @ weight, -np.inf)
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    for output in ("logits", "probabilities"):
        np.testing.assert_allclose(player(output=output, mask=mask).probabilities(rows, masks), expected, atol=1e-5)
    best = player(output="values", mask=mask).probabilities(rows, masks)
    np.testing.assert_array_equal(best.argmax(axis=1), logits.argmax(axis=1))
    np.testing.assert_array_equal(best.sum(axis=1), 1)


def test_a_file_plays_matches_and_its_player_can_be_pickled(tmp_path: Path, situations: Situations) -> None:
    path = tmp_path / "linear.onnx"
    path.write_bytes(network().SerializeToString())
    policy = load(f"onnx:{path}", "mini")
    play_match(policy, load("call", "mini"), 50, rules="mini")
    path_gone = pickle.dumps(player())
    for again in (pickle.loads(pickle.dumps(policy)), pickle.loads(path_gone)):
        np.testing.assert_array_equal(again.probabilities(*situations), policy.probabilities(*situations))


def external() -> onnx.ModelProto:
    model = network()
    weight = model.graph.initializer[0]
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/passwd")
    weight.ClearField("raw_data")
    return model


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (lambda: network(output="y2"), "outputs 'y2': expected exactly one named logits, probabilities, values"),
        (lambda: network(inputs=D + 1), rf"input 'x' of shape .*expected \(n, {D}\)"),
        (lambda: network(n=1), "with n left open"),
        (lambda: network(outputs=A + 1), rf"output 'logits' of shape .*expected \(n, {A}\)"),
        (lambda: network(opset=999), "opset ai.onnx 999: onnxruntime"),
        (lambda: network(kind="NoSuchThing"), "onnxruntime .*NoSuchThing"),
        (lambda: network(kind="Own", domain="my.library"), "operators of 'my.library' 1: expected those of the standard"),
        (lambda: network(kind="Bernoulli"), "operator Bernoulli: expected a network without loops and random numbers"),
        (external, "'weight' lie in another file"),
    ],
)
def test_what_is_no_plain_network_is_refused(model: Any, fault: str) -> None:
    with pytest.raises(ArchieError, match=fault):
        OnnxPolicy(model().SerializeToString(), "mini")


def test_numbers_that_are_no_decision_are_refused(situations: Situations) -> None:
    with pytest.raises(ArchieError, match=r"logits\[\d+\] are NaN or infinite"):
        player(kind="Log").probabilities(*situations)  # of negative numbers
    with pytest.raises(ArchieError, match=r"probabilities\[\d+\]: expected 0 to 1"):
        player(output="probabilities", kind="Neg").probabilities(*situations)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, content in (("cut.onnx", network().SerializeToString()[:900]), ("empty.onnx", b""), ("text.onnx", b"hello" * 99)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ArchieError, match=re.escape(name)):
            load(f"onnx:{tmp_path / name}", "mini")
    with pytest.raises(ArchieError, match=r"none\.onnx: no such file"):
        load(f"onnx:{tmp_path / 'none.onnx'}")
    with pytest.raises(ArchieError, match="not a file"):
        load(f"onnx:{tmp_path}")
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(ArchieError, match="bytes: expected at most"):
        load(f"onnx:{tmp_path / 'large.onnx'}")


def test_the_command_writes_the_player_and_refuses_others(tmp_path: Path) -> None:
    def export(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agents.export", name, str(tmp_path / "ppo.onnx")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert export("ppo").returncode == 0
    original = load("ppo")
    assert isinstance(original, PPOPolicy)
    assert (tmp_path / "ppo.onnx").read_bytes() == to_onnx(original)
    refused = export("call")
    assert refused.returncode == 2
    assert "expected ppo or ppo:PATH" in refused.stderr


def test_an_export_is_never_written_over_a_file_that_is_no_network(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    command = [sys.executable, "-m", "agents.export", "ppo", str(notes)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "is not what this command writes there" in answer.stderr
    assert notes.read_text() == "hello"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_network_that_torch_exports_plays(tmp_path: Path, situations: Situations) -> None:
    torch.manual_seed(1)
    rows, masks = situations
    actor = torch.nn.Sequential(torch.nn.Linear(D, 16), torch.nn.Tanh(), torch.nn.Linear(16, A))
    path, n = tmp_path / "actor.onnx", {0: "n"}
    torch.onnx.export(
        actor.eval(),
        (torch.zeros(1, D),),
        path,
        dynamo=False,
        input_names=["observations"],
        output_names=["logits"],
        dynamic_axes={"observations": n, "logits": n},
    )
    with torch.no_grad():
        logits = actor(torch.from_numpy(scaled(rows, "mini"))).masked_fill(torch.from_numpy(masks) == 0, -torch.inf)
    np.testing.assert_allclose(load(f"onnx:{path}", "mini").probabilities(rows, masks), logits.softmax(1).numpy(), atol=1e-5)
