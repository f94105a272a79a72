"""Configurations and the command line of the PPO trainer."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archie_env.errors import ConfigError
from tests.ppo_runs import ROOT, SMALL, small, toml_of
from training.ppo.config import Config
from training.ppo.trainer import CHECKPOINT, POLICY, main, train
from training.settings import Settings


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


def test_flags_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[learning]\nlearning_rate = 0.5\n")
    config = Config.load(path, ["learning.learning_rate=3e-4", "network.bfloat16=off", "opponents.named.call=0.1"])
    assert (config.learning.learning_rate, config.network.bfloat16, config.opponents.named) == (3e-4, "off", {"call": 0.1})


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


def test_lines_go_to_standard_output_and_no_bar_into_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_text(toml_of(SMALL))
    assert main(["--config", str(tmp_path / "small.toml"), "--seed", "3", "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    assert "  mbb/hand (SE) v uniform " in printed.out.splitlines()[0]
    assert printed.out.splitlines()[-1] == f"{tmp_path / 'run' / POLICY}: load it as ppo:{tmp_path / 'run' / POLICY}"
    assert printed.err == ""
    train(small(), tmp_path / "quiet")
    assert capsys.readouterr() == ("", "")
