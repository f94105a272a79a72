"""Models of stable-baselines3 and sb3-contrib as players: the same decisions, and files that are refused unread."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import pickle
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sb3_contrib import QRDQN, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from agents import load, weights_file
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.observation import scaled
from archie_env.policy import Policy
from evaluation.duplicate.match import play_match

ALGORITHMS: dict[str, Any] = {kind.__name__: kind for kind in (PPO, A2C, TRPO, MaskablePPO, DQN, QRDQN)}
NETWORKS: dict[str, dict[str, Any]] = {
    "default": {},
    "wide": {"net_arch": [48, 32, 16], "activation_fn": nn.ELU},
    "flat": {"net_arch": [], "activation_fn": nn.ReLU, "features_extractor_class": FlattenExtractor},
    "narrow": {"net_arch": [7], "activation_fn": nn.LeakyReLU},
}
Situations = tuple[NDArray[np.int8], NDArray[np.int8]]


@pytest.fixture(scope="module")
def situations() -> Situations:
    """1,000 rows and masks of random play."""
    batch = Batch(250, "mini", seed=1)
    rows, masks = [], []
    for _ in range(4):
        rows.append(batch.observations.copy())
        masks.append(batch.masks.copy())
        batch.step(batch.sample_actions())
    return np.concatenate(rows), np.concatenate(masks)


def environment(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("Archie-v0", opponent="uniform", illegal="replace", **{"rules": "mini"} | options)


def model(kind: type[Any], dtype: str = "float32", spread: float = 0.3, **network: Any) -> Any:
    """A model with random weights, large enough to make decisions that differ."""
    sizes = {"buffer_size": 100} if kind in (DQN, QRDQN) else {}
    made = kind("MlpPolicy", environment(dtype=dtype), policy_kwargs=network, device="cpu", seed=1, **sizes)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in made.policy.parameters():
            parameter.normal_(0, spread, generator=generator)
    return made


def expected(made: Any, rows: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.float64]:
    """Probabilities of legal actions by the model's own network."""
    with torch.no_grad():
        observed = torch.as_tensor(rows)
        if isinstance(made, QRDQN):
            outputs = made.policy.quantile_net(observed).mean(dim=1).numpy()
        elif isinstance(made, DQN):
            outputs = made.policy.q_net(observed).numpy()
        elif isinstance(made, MaskablePPO):
            chances: NDArray[np.float64] = made.policy.get_distribution(observed, action_masks=masks).distribution.probs.numpy()
            return chances
        else:
            outputs = made.policy.get_distribution(observed).distribution.logits.numpy()
    outputs = np.where(masks != 0, outputs.astype(np.float64), -np.inf)
    if isinstance(made, (DQN, QRDQN)):
        outputs = np.where(outputs == outputs.max(axis=1, keepdims=True), 0, -np.inf)
    chances = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True), np.float64)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_model_plays_as_its_own_network_decides(kind: str, network: str, situations: Situations, tmp_path: Path) -> None:
    rows, masks = situations
    made = model(ALGORITHMS[kind], **NETWORKS[network])
    made.save(tmp_path / "model")
    player = load(f"sb3:{tmp_path / 'model.zip'}", "mini")
    for allowed in (masks, np.ones_like(masks)):
        np.testing.assert_allclose(
            player.probabilities(rows, allowed), expected(made, scaled(rows, "mini"), allowed), rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("kind", ["PPO", "DQN"])
def test_a_model_of_integer_observations_is_given_integers(kind: str, situations: Situations, tmp_path: Path) -> None:
    rows, masks = situations
    made = model(ALGORITHMS[kind], dtype="int8", spread=0.1)
    made.save(tmp_path / "model")
    player = load(f"sb3:{tmp_path / 'model.zip'}", "mini")
    wanted = expected(made, rows.astype(np.float32), masks)
    np.testing.assert_allclose(player.probabilities(rows, masks), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(player.probabilities(scaled(rows, "mini"), masks), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["DQN", "QRDQN"])
def test_predict_of_a_value_model_is_its_play_where_everything_is_legal(
    kind: str, situations: Situations, tmp_path: Path
) -> None:
    rows, masks = situations
    made = model(ALGORITHMS[kind])
    made.save(tmp_path / "model")
    player = load(f"sb3:{tmp_path / 'model.zip'}", "mini")
    predicted, _ = made.predict(scaled(rows, "mini"), deterministic=True)
    assert np.array_equal(player.act(rows, np.ones_like(masks), np.random.default_rng(1)), predicted)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_model_trained_as_the_documentation_of_stable_baselines3_does_plays_a_match(kind: str, tmp_path: Path) -> None:
    sizes = {
        "DQN": {"buffer_size": 500, "learning_starts": 50}, "QRDQN": {"buffer_size": 500, "learning_starts": 50},
        "A2C": {}, "PPO": {"n_steps": 64, "batch_size": 32}, "MaskablePPO": {"n_steps": 64, "batch_size": 32},
        "TRPO": {"n_steps": 64, "batch_size": 32},
    }[kind]  # fmt: skip
    made = ALGORITHMS[kind]("MlpPolicy", environment(rules="archie"), device="cpu", seed=1, **sizes)
    made.learn(total_timesteps=200)
    made.save(tmp_path / "model")
    name = f"sb3:{tmp_path / 'model.zip'}"
    player = load(name)
    assert isinstance(player, Policy)
    assert player.name == name
    assert weights_file(name) == tmp_path / "model.zip"
    assert play_match(player, load("call"), 200, strict=True).hands == 400


@pytest.fixture(scope="module")
def saved() -> dict[str, bytes]:
    """The members of a model's file."""
    buffer = io.BytesIO()
    model(PPO, net_arch=[8]).save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, members: dict[str, bytes] | dict[zipfile.ZipInfo, bytes], compression: int = zipfile.ZIP_STORED) -> str:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return f"sb3:{path}"


def refusal(name: str, rules: str = "mini") -> str:
    """The one line that refuses a file, without the path it begins with."""
    with pytest.raises(ArchieError) as caught:
        load(name, rules)
    path, message = name.removeprefix("sb3:"), str(caught.value)
    assert message.startswith(f"{path}: "), message
    assert message.isprintable(), message
    assert "expected" in message
    return message.removeprefix(f"{path}: ")


def with_data(saved: dict[str, bytes], change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    data = json.loads(saved["data"])
    change(data)
    return saved | {"data": json.dumps(data).encode()}


def with_weights(saved: dict[str, bytes], change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    state = torch.load(io.BytesIO(saved["policy.pth"]), weights_only=True)
    change(state)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return saved | {"policy.pth": buffer.getvalue()}


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    assert refusal(f"sb3:{tmp_path / 'no.zip'}") == "no such file: expected a zip that model.save of stable-baselines3 wrote"
    assert refusal(f"sb3:{tmp_path}").startswith("not a file: expected a zip")
    (tmp_path / "text.zip").write_text("text")
    assert refusal(f"sb3:{tmp_path / 'text.zip'}").startswith("BadZipFile: File is not a zip file: expected")
    assert refusal("sb3:/dev/null").startswith("not a file")


def test_a_truncated_file_is_refused_wherever_it_ends(saved: dict[str, bytes], tmp_path: Path) -> None:
    whole = Path(written(tmp_path / "model.zip", saved).removeprefix("sb3:")).read_bytes()
    cut = tmp_path / "cut.zip"
    for length in [*range(0, len(whole), len(whole) // 40), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        refusal(f"sb3:{cut}")


def test_a_file_with_a_changed_byte_is_refused_or_plays(
    saved: dict[str, bytes], situations: Situations, tmp_path: Path
) -> None:
    whole = bytearray(Path(written(tmp_path / "model.zip", saved).removeprefix("sb3:")).read_bytes())
    chance, spoilt = np.random.default_rng(1), tmp_path / "spoilt.zip"
    for _ in range(200):
        changed = whole.copy()
        for _ in range(3):
            changed[chance.integers(len(whole))] = chance.integers(256)
        spoilt.write_bytes(changed)
        with contextlib.suppress(ArchieError):
            load(f"sb3:{spoilt}", "mini").probabilities(*situations)


def test_the_pickle_of_weights_with_a_changed_byte_is_refused_or_plays(
    saved: dict[str, bytes], situations: Situations, tmp_path: Path
) -> None:
    chance = np.random.default_rng(2)
    with zipfile.ZipFile(io.BytesIO(saved["policy.pth"])) as archive:
        inner = {name: archive.read(name) for name in archive.namelist()}
    (program,) = (name for name in inner if name.endswith("data.pkl"))
    for _ in range(300):
        changed = bytearray(inner[program])
        for _ in range(2):
            changed[chance.integers(len(changed))] = chance.integers(256)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in inner.items():
                archive.writestr(name, bytes(changed) if name == program else content)
        name = written(tmp_path / "spoilt.zip", saved | {"policy.pth": buffer.getvalue()})
        with contextlib.suppress(ArchieError):
            load(name, "mini").probabilities(*situations)


DATA: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "cnn": (
        lambda d: d["policy_class"].update(__init__="<function ActorCriticCnnPolicy.__init__ at 0x1>"),
        "data: policy_class 'stable_baselines3.common.policies.ActorCriticCnnPolicy': expected MlpPolicy, one of stable",
    ),
    "own class": (lambda d: d["policy_class"].update(__module__="__main__"), "data: policy_class '__main__.ActorCriticPolicy'"),
    "no init": (lambda d: d["policy_class"].pop("__init__"), "policies.(no __init__)': expected MlpPolicy"),
    "no class": (lambda d: d.pop("policy_class"), "data: policy_class None: expected a table"),
    "extractor": (
        lambda d: d["policy_kwargs"].update(features_extractor_class="<class 'my.Net'>"),
        "data: features_extractor_class \"<class 'my.Net'>\": expected none, or FlattenExtractor",
    ),
    "activation": (
        lambda d: d["policy_kwargs"].update(activation_fn="<class 'torch.nn.modules.activation.GLU'>"),
        "data: activation_fn \"<class 'torch.nn.modules.activation.GLU'>\": expected one of Tanh, ReLU, Leaky",
    ),
    "own activation": (lambda d: d["policy_kwargs"].update(activation_fn="<class 'my.Tanh'>"), "data: activation_fn"),
    "shape": (lambda d: d["observation_space"].update(_shape=[388]), "data: observation_space Box of shape [388]: expected"),
    "image": (lambda d: d["observation_space"].update(_shape="[3, 84, 84]"), "observation_space Box of shape '[3, 84, 84]'"),
    "dict": (
        lambda d: d["observation_space"].update({":type:": "<class 'gymnasium.spaces.dict.Dict'>"}),
        "data: observation_space Dict of shape",
    ),
    "dtype": (lambda d: d["observation_space"].update(dtype="float64"), "data: observation_space of dtype 'float64': expected"),
    "actions": (lambda d: d["action_space"].update(n="35"), "action_space Discrete of '35' from '0': expected Discrete of 7"),
    "start": (lambda d: d["action_space"].update(start="1"), "action_space Discrete of '7' from '1': expected Discrete of 7"),
    "box": (lambda d: d["action_space"].update({":type:": "x.Box'>"}), "data: action_space Box of '7'"),
    "space": (lambda d: d.update(action_space=[1]), "data: action_space [1]: expected a table"),
}  # fmt: skip


@pytest.mark.parametrize("change", DATA)
def test_another_kind_of_model_is_refused(change: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    actions = json.loads(saved["data"])["action_space"]["n"]
    message = DATA[change][1].replace("of 7", f"of {actions}").replace("'7'", f"'{actions}'")
    assert message in refusal(written(tmp_path / "model.zip", with_data(saved, DATA[change][0])))


def test_a_recurrent_model_is_refused(tmp_path: Path) -> None:
    RecurrentPPO("MlpLstmPolicy", environment(), device="cpu").save(tmp_path / "model")
    assert "RecurrentActorCriticPolicy': expected MlpPolicy" in refusal(f"sb3:{tmp_path / 'model.zip'}")


def test_a_model_of_other_rules_is_refused(saved: dict[str, bytes], tmp_path: Path) -> None:
    message = refusal(written(tmp_path / "model.zip", saved), "archie")
    assert message == "data: observation_space Box of shape [77]: expected Box of shape (388,) under rules 'archie'"


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"3", b"[" * 10**5, b"{", b"9" * 5000])
def test_data_that_is_no_table_is_refused(content: bytes, saved: dict[str, bytes], tmp_path: Path) -> None:
    assert refusal(written(tmp_path / "model.zip", saved | {"data": content})).startswith("data")


ACTOR = "mlp_extractor.policy_net.0.weight"
WEIGHTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "nan": (lambda s: s[ACTOR].fill_(np.nan), f"weights of policy.pth, {ACTOR}: "),
    "infinite": (lambda s: s["action_net.bias"].fill_(np.inf), "are nan or infinite: expected finite numbers"),
    "more": (lambda s: s.update({"features_extractor.cnn.0.weight": torch.zeros(1)}), "weights 'features_extractor.cnn"),
    "fewer": (lambda s: s.pop(ACTOR), "expected a perceptron mlp_extractor.policy_net.0, 2, ... "),
    "units": (lambda s: s.update({ACTOR: s[ACTOR][:5].clone()}), "mlp_extractor.policy_net.0 (5, "),
    "inputs": (lambda s: s.update({ACTOR: torch.zeros(8, 9)}), "policy_net.0 (8, 9) and (8,): expected (units, "),
    "outputs": (
        lambda s: s.update({"action_net.weight": torch.zeros(9, 8), "action_net.bias": torch.zeros(9)}),
        "policy.pth: action_net has 9 outputs: expected",
    ),
    "quantiles": (
        lambda s: s.update({"action_net.weight": torch.zeros(210, 8), "action_net.bias": torch.zeros(210)}),
        "policy.pth: action_net has 210 outputs: expected",
    ),
    "vector": (lambda s: s.update({ACTOR: torch.zeros(8)}), "(8,) and (8,): expected (units, "),
    "double": (lambda s: s.update({ACTOR: s[ACTOR].double()}), "policy.pth: storage '0' has "),
    "repeated": (lambda s: s.update({ACTOR: torch.zeros(1).expand(10**9, 300)}), "policy.pth: tensors larger than the file"),
    "sparse": (lambda s: s.update({ACTOR: torch.zeros(8, 9).to_sparse()}), "policy.pth: "),
    "number": (lambda s: s.update({ACTOR: 3}), "policy.pth: "),
    "empty": (lambda s: s.clear(), "policy.pth: weights"),
}  # fmt: skip


@pytest.mark.parametrize("change", WEIGHTS)
def test_weights_that_do_not_fit_are_refused(change: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    assert WEIGHTS[change][1] in refusal(written(tmp_path / "model.zip", with_weights(saved, WEIGHTS[change][0])))


def test_outputs_that_overflow_are_refused(saved: dict[str, bytes], situations: Situations, tmp_path: Path) -> None:
    huge = with_weights(saved, lambda s: s["action_net.weight"].fill_(3e38))
    player = load(written(tmp_path / "model.zip", huge), "mini")
    with pytest.raises(ArchieError, match="outputs overflow: expected weights of a size training gives"):
        player.probabilities(*situations)


def weights_zip(saved: dict[str, bytes], change: Callable[[bytes], bytes], member: str = "data.pkl") -> bytes:
    """The bytes of ``policy.pth`` with one member changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved["policy.pth"])) as archive, zipfile.ZipFile(buffer, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            copy.writestr(name, change(content) if name.endswith(f"/{member}") else content)
    return buffer.getvalue()


class Writes:
    """Unpickles by writing a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.canary, "executed")


def test_nothing_in_a_file_is_executed(saved: dict[str, bytes], tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    evil = pickle.dumps(Writes(canary), protocol=2)
    legacy, module = io.BytesIO(), io.BytesIO()
    torch.save({ACTOR: Writes(canary)}, legacy, _use_new_zipfile_serialization=False)
    torch.save({ACTOR: Writes(canary)}, module)
    with zipfile.ZipFile(script := io.BytesIO(saved["policy.pth"]), "a") as archive:
        archive.writestr("archive/constants.pkl", evil)
    forms = {
        "a pickle": evil,
        "a pickle in a zip": weights_zip(saved, lambda content: evil),
        "a legacy file": legacy.getvalue(),
        "an object among tensors": module.getvalue(),
        "a legacy file before a zip": legacy.getvalue() + saved["policy.pth"],
        "TorchScript": script.getvalue(),
        "the other byte order": weights_zip(saved, lambda content: b"big", "byteorder"),
    }
    for form, content in forms.items():
        message = refusal(written(tmp_path / "model.zip", saved | {"policy.pth": content}))
        assert message.startswith("policy.pth: "), form
        assert message.endswith("expected a table of float32 tensors, nothing that needs unpickling"), form
    members = with_data(saved, lambda data: data["policy_kwargs"].update({":serialized:": base64.b64encode(evil).decode()}))
    for name in ("policy.optimizer.pth", "pytorch_variables.pth"):
        members[name] = evil
    load(written(tmp_path / "model.zip", members), "mini")  # parts with pickles that nothing reads
    assert not canary.exists()
    pickle.loads(evil)
    assert canary.exists()


def test_a_storage_that_claims_more_numbers_than_it_has_is_refused(saved: dict[str, bytes], tmp_path: Path) -> None:
    def longer(program: bytes) -> bytes:
        assert b"K\x08tq" in program  # a storage of 8 numbers
        return program.replace(b"K\x08tq", b"J\xff\xff\xff\x0ftq")

    message = refusal(written(tmp_path / "model.zip", saved | {"policy.pth": weights_zip(saved, longer)}))
    assert re.match(r"policy\.pth: storage '\d+' has 32 bytes for 268,435,455 numbers: expected", message)


def test_members_that_model_save_does_not_write_are_refused(saved: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    for name in ("/etc/passwd", "../data", "a/b", "data\x1b", "other"):
        assert "expected plain members data, policy.pth" in refusal(written(path, saved | {name: b"x"}))
    link = zipfile.ZipInfo("system_info.txt")
    link.external_attr = 0o120777 << 16
    others = {zipfile.ZipInfo(name): content for name, content in saved.items() if name != "system_info.txt"}
    assert "member 'system_info.txt': expected plain members" in refusal(written(path, others | {link: b"/etc/passwd"}))
    for name in ("data", "policy.pth"):
        message = refusal(written(path, {key: value for key, value in saved.items() if key != name}))
        assert message.startswith(f"no member '{name}': expected")
    content = Path(written(path, saved | {"system_info.txt": b"", "date": b""}).removeprefix("sb3:")).read_bytes()
    path.write_bytes(content.replace(b"date", b"data"))
    assert "member 'data' is there twice" in refusal(f"sb3:{path}")


def test_a_compressed_member_is_refused_before_it_is_expanded(saved: dict[str, bytes], tmp_path: Path) -> None:
    bomb = written(tmp_path / "model.zip", saved | {"data": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    assert "member 'data' is compressed: expected it stored" in refusal(bomb)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    message = refusal(written(tmp_path / "model.zip", saved | {"policy.pth": inner.getvalue()}))
    assert message.startswith("policy.pth: member 'archive/data.pkl': expected")


def test_without_torch_the_error_names_the_extra(
    saved: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    message = refusal(written(tmp_path / "model.zip", saved))
    assert message.startswith("policy.pth needs torch (")
    assert message.endswith("expected pip install 'archie-env[train]'")
