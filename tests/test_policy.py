"""Policies by name: registered names, families, ``module:Name``, and the errors of each."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from archie_env.batch import Batch
from archie_env.errors import ArchieError, described, shown
from archie_env.policy import (
    Policy,
    Scaled,
    StochasticPolicy,
    UniformPolicy,
    as_policy,
    load_policy,
    register_policy,
    registered_policies,
)
from archie_env.rules import PRESETS, Rules
from archie_env.terminal.main import opponent
from training.ppo.config import Config
from training.ppo.state import TrainingState

BOT = """
import numpy as np
from archie_env.policy import StochasticPolicy

class MyBot(StochasticPolicy):
    def probabilities(self, observations, masks):
        legal = masks.astype(np.float32)
        return legal / legal.sum(axis=1, keepdims=True)
"""
"""A whole bot, as a newcomer writes one."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from, as the present one is under ``python -m``."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if Path(str(getattr(sys.modules[name], "__file__", ""))).is_relative_to(tmp_path):
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "my_bots.py") -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def refusal(name: Any, rules: str = "archie") -> str:
    with pytest.raises(ArchieError) as caught:
        load_policy(name, rules)
    message = str(caught.value)
    assert message.isprintable(), message
    return message


MAKERS = {
    "MyBot": "",
    "BOT": "BOT = MyBot()",
    "make": "def make(): return MyBot()",
    "make_for": "def make_for(rules):\n    bot = MyBot()\n    bot.rules = rules\n    return bot",
    "Outer.Inner": "class Outer:\n    class Inner(MyBot): pass",
    "Outer.bot": "class Outer:\n    bot = MyBot()",
    "partial": "import functools\npartial = functools.partial(lambda rules, extra: MyBot(), extra=1)",
    "lazy": "def __getattr__(name):\n    if name == 'lazy': return MyBot\n    raise AttributeError(name)",
}


@pytest.mark.parametrize("part", MAKERS)
def test_an_instance_a_class_and_a_factory_are_loaded_by_module_and_name(part: str, folder: Path) -> None:
    write(folder, f"{BOT}\n{MAKERS[part]}\n")
    policy = load_policy(f"my_bots:{part}", "mini")
    assert isinstance(policy, Policy)
    assert policy.name == f"my_bots:{part}"
    assert getattr(policy, "rules", PRESETS["mini"]) == PRESETS["mini"]


def test_a_module_in_a_package_is_named_with_dots(folder: Path) -> None:
    write(folder, "", "my_package/__init__.py")
    write(folder, BOT, "my_package/bots.py")
    assert load_policy("my_package.bots:MyBot").name == "my_package.bots:MyBot"


def test_a_policy_keeps_a_name_of_its_own(folder: Path) -> None:
    write(folder, f"{BOT}\n    name = 'Zoë ♠'\n")
    assert load_policy("my_bots:MyBot").name == "Zoë ♠"


def test_importing_a_module_may_register_the_name_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archie_env.policy._REGISTERED", {})
    write(
        folder,
        f"{BOT}\nfrom archie_env.policy import register_policy\n"
        "def _make(argument, rules):\n    bot = MyBot()\n    bot.name = argument\n    return bot\n"
        "register_policy('grid', lambda rules: MyBot())\nregister_policy('kind:', _make)\n",
    )
    assert load_policy("my_bots:grid").name == "grid"
    assert load_policy("my_bots:kind:a:b").name == "a:b"
    assert load_policy("kind:c").name == "c"
    assert registered_policies() == ("grid", "kind:")


RAISING = {
    "raise SystemExit(3)": "SystemExit: 3",
    "raise BaseException('a\\nb\\x1b[2J')": r"BaseException: a b\x1b[2J",
    "1 / 0": "ZeroDivisionError: division by zero",
    "import no_such_package": "ModuleNotFoundError: No module named 'no_such_package'",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E": "E: an error whose text raises ValueError",
    "raise ImportError": "ImportError (",
}


@pytest.mark.parametrize("code", RAISING)
def test_a_module_that_raises_when_imported_is_refused_with_the_place(code: str, folder: Path) -> None:
    write(folder, code)
    message = refusal("my_bots:MyBot")
    assert message.startswith(f"policy 'my_bots:MyBot': importing my_bots raised {RAISING[code]}")
    assert f"{folder / 'my_bots.py'}:" in message


def test_a_module_with_a_syntax_error_is_refused_with_its_line(folder: Path) -> None:
    write(folder, "x = 1\ndef (\n")
    assert "importing my_bots raised SyntaxError: invalid syntax (my_bots.py, line 2)" in refusal("my_bots:MyBot")


def test_an_interrupt_while_a_module_is_imported_passes(folder: Path) -> None:
    write(folder, "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_policy("my_bots:MyBot")


@pytest.mark.parametrize("name", ["no_such_module:Bot", "no_such.module:Bot"])
def test_a_module_that_is_found_nowhere_is_refused_with_the_folders_looked_in(name: str, folder: Path) -> None:
    message = refusal(name)
    assert f"no module '{name.partition(':')[0].partition('.')[0]}' in {folder}, " in message
    assert f" and {len(sys.path) - 3} more: expected one of " in message


@pytest.mark.parametrize(
    "name", ["my_bots.py:Bot", "./my_bots:Bot", "my bots:Bot", ":Bot", "a\x00b:c", "a..b:C", "1:2", "é\n:x"]
)
def test_what_is_no_name_of_a_module_is_refused_without_an_import(name: str, folder: Path) -> None:
    write(folder, "raise SystemExit")
    assert "is no module's name, as my_bots in my_bots:MyBot: expected one of " in refusal(name)


PARTS = {
    ("MyBto", ""): "there is no 'MyBto': expected a Policy",
    ("np", ""): "np is a module: expected a Policy",
    ("MyBot.x.y", ""): "there is no 'MyBot.x.y'",
    ("NONE", "NONE = None"): "NONE is None: expected a Policy",
    ("three", "three = 3"): "three is 3: expected a Policy",
    ("bad", "class B:\n    def __repr__(self): 1 / 0\nbad = B()"): "bad is a B whose repr raises ZeroDivisionError: expected",
    ("make", "def make(): return 3"): "make: 3 has no act(observations, masks, rng): expected a Policy",
    ("make", "def make(): return MyBot"): "has no act(observations, masks, rng): expected a Policy",
    ("make", "def make(): return None"): "make: None has no act(",
    ("make", "def make(size): pass"): "wrong signature, TypeError: missing a required argument: 'size'",
    ("make", "def make(rules, /): pass"): "wrong signature, TypeError: 'rules' parameter is positional only",
    ("make", "def make(): 1 / 0"): "make: making it raised ZeroDivisionError: division by zero (",
    ("make", "def make(): raise SystemExit('x')"): "make: making it raised SystemExit: x (",
    ("Lacks", "class Lacks:\n    act = MyBot.act"): "has no probabilities(observations, masks): expected a Policy",
    ("Few", "class Few(MyBot):\n    def act(self, rows): pass"): "act: too many positional arguments: expected act(ob",
    ("Odd", "class Odd(MyBot):\n    name = 3"): "name 3: expected a printable string",
    ("Odd", "class Odd(MyBot):\n    name = ' '"): "name ' ': expected a printable string",
    ("Odd", "class Odd(MyBot):\n    name = 'a\\x1b[2J\\n'"): r"name 'a\x1b[2J\n': expected a printable string",
    ("Odd", "class Odd(MyBot):\n    name = np.zeros(2)"): "name array([0., 0.]): expected a printable string",
    ("Odd", "class Odd(MyBot):\n    name = property(lambda self: 1 / 0)"): "reading name raised ZeroDivisionError",
    ("Odd", "class Odd(MyBot):\n    name = property(lambda self: None)"): "no name, and setting it raised AttributeError",
    ("lazy", "def __getattr__(name): raise KeyError(name)"): "reading lazy raised KeyError: 'lazy' (",
    ("Meta", "class M(type):\n    def __call__(self): 1 / 0\nclass Meta(metaclass=M): pass"): "ZeroDivisionError: ",
}  # fmt: skip


@pytest.mark.parametrize(("part", "code"), PARTS)
def test_a_part_that_gives_no_policy_is_refused_with_its_file(part: str, code: str, folder: Path) -> None:
    write(folder, f"{BOT}\n{code}\n")
    message = refusal(f"my_bots:{part}")
    assert message.startswith(f"policy 'my_bots:{part}': {folder / 'my_bots.py'}: ")
    assert PARTS[part, code] in message


def test_nothing_after_the_colon_is_refused(folder: Path) -> None:
    write(folder, "raise SystemExit")
    assert "policy 'my_bots:': nothing after the colon: expected one of " in refusal("my_bots:")


@pytest.mark.parametrize("name", ["", ":", "two words", "a:b", "a\n", 3, None, "a::"])
def test_a_name_that_could_never_be_loaded_is_not_registered(name: Any) -> None:
    with pytest.raises(ArchieError, match=r"policy name .*: expected a word, with a colon after it for a family"):
        register_policy(name, lambda rules: UniformPolicy())
    assert name not in registered_policies()


def test_a_factory_that_can_not_be_called_is_not_registered() -> None:
    with pytest.raises(ArchieError, match="policy 'bot': factory 3: expected a function of rules"):
        register_policy("bot", 3)  # type: ignore[arg-type]


def test_a_registered_factory_that_fails_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(rules: Rules) -> Policy:
        raise OSError("two\nlines")

    monkeypatch.setattr("archie_env.policy._REGISTERED", {})
    register_policy("fails", fails)
    register_policy("three", lambda rules: 3)  # type: ignore[arg-type,return-value]
    assert refusal("fails").startswith("policy 'fails': making it raised OSError: two lines (")
    assert refusal("three").startswith("policy 'three': 3 has no act(")


@pytest.mark.parametrize("policy", [None, 5, UniformPolicy])
def test_as_policy_refuses_what_is_no_policy(policy: Any) -> None:
    with pytest.raises(ArchieError, match=r"expected a Policy, which has act\(observations, masks, rng\), or a name"):
        as_policy(policy)


def test_uniform_refuses_a_mask_without_a_legal_action() -> None:
    masks = np.ones((3, 35), np.int8)
    masks[1] = 0
    rows = np.zeros((3, 388), np.int8)
    message = r"masks\[1\]: no action is legal, expected at least one in every row"
    with pytest.raises(ArchieError, match=message):
        UniformPolicy().act(rows, masks, np.random.default_rng(1))
    with pytest.raises(ArchieError, match=message):
        UniformPolicy().probabilities(rows, masks)


def test_the_base_class_names_the_method_to_define() -> None:
    class Empty(StochasticPolicy):
        pass

    with pytest.raises(NotImplementedError, match="Empty must define probabilities"):
        Empty().act(np.zeros((1, 388), np.int8), np.ones((1, 35), np.int8), np.random.default_rng(1))


def test_environments_take_a_module_and_name_as_opponent(folder: Path) -> None:
    write(folder, BOT)
    env = gymnasium.make("Archie-v0", opponent="my_bots:MyBot")
    env.reset(seed=1)
    assert env.unwrapped.opponent.name == "my_bots:MyBot"  # type: ignore[attr-defined]
    envs = gymnasium.make_vec("Archie-v0", num_envs=2, opponent="my_bots:MyBot")
    _, info = envs.reset(seed=1)
    assert info["action_mask"].shape == (2, 35)


def command(monkeypatch: pytest.MonkeyPatch, module: str, *arguments: str) -> object:
    """Run ``python -m module`` in this process; returns its exit status."""
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(module, run_name="__main__")
    return left.value.code


def test_matches_and_tournaments_take_a_module_and_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, BOT)
    assert command(monkeypatch, "evaluation.duplicate", "my_bots:MyBot", "call", "--deals", "64") == 0
    assert "my_bots:MyBot v call: 64 " in capsys.readouterr().out
    assert command(monkeypatch, "evaluation.tournament", "my_bots:MyBot", "call", "--deals", "64", "--out", "results") == 0
    assert "my_bots:MyBot" in capsys.readouterr().out
    assert command(monkeypatch, "evaluation.duplicate", "my_bots:MyBto", "call", "--deals", "64") == 2
    assert "there is no 'MyBto'" in capsys.readouterr().err


def test_archie_play_takes_a_module_and_name(folder: Path) -> None:
    write(folder, BOT)
    assert opponent("my_bots:MyBot", PRESETS["mini"]).name == "my_bots:MyBot"


def test_archie_play_takes_files_of_the_checkouts_agents() -> None:
    script = "import sys; from archie_env.terminal.main import main; sys.exit(main(['play', '--opponent', 'ppo:no.npz']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no.npz: no such file" in done.stderr


@pytest.mark.parametrize("key", ["opponents.named", "warm_start.policy", "report.agents"])
def test_training_takes_a_module_and_name(key: str, folder: Path) -> None:
    write(folder, BOT)
    for name in ("my_bots:MyBot", "my_bots:MyBto"):
        value = {"opponents.named": f'{{"{name}" = 0.5}}', "warm_start.policy": name, "report.agents": f'["{name}"]'}[key]
        (folder / "run.toml").write_text('rules = "mini"\nreport.agents = []\n')
        config = Config.load("run.toml", [f"{key}={value}"])
        if name == "my_bots:MyBot":
            TrainingState(config)
        else:
            with pytest.raises(ArchieError, match="there is no 'MyBto'"):
                TrainingState(config)


def test_values_and_exceptions_are_shown_as_one_printable_line() -> None:
    assert shown("a\nb\x1b\ud800") == r"'a\nb\x1b\ud800'"
    assert shown([1] * 999, 10) == "[1, 1, 1, ..."
    assert shown(16**5000) == "a int too large to print"
    assert described(ValueError("a\n\x1b")) == r"ValueError: a \x1b"
    assert described(KeyboardInterrupt()) == "KeyboardInterrupt"


class Recorder(StochasticPolicy):
    """Keeps the rows it was shown."""

    name = "recorder"

    def probabilities(self, observations: Any, masks: Any) -> Any:
        self.rows = observations
        return masks / masks.sum(axis=1, keepdims=True, dtype=np.float32)


@pytest.mark.parametrize("rules", ["archie", "mini"])
def test_a_policy_that_learnt_from_scaled_rows_is_shown_them_wherever_it_plays(rules: str) -> None:
    recorder = Recorder()
    opponent = Scaled(recorder, rules)
    assert opponent.name == "recorder"
    small, floats = Batch(512, rules, seed=3), Batch(512, rules, seed=3, dtype="float32")
    for _ in range(8):
        for rows in (small.observations, floats.observations):
            opponent.act(rows, small.masks, np.random.default_rng(0))
            assert recorder.rows.dtype == np.float32
            assert (recorder.rows == floats.observations).all()
            opponent.probabilities(rows, small.masks)
            assert (recorder.rows == floats.observations).all()
        actions = small.sample_actions().copy()
        small.step(actions)
        floats.step(actions)
    gymnasium.make("Archie-v0", rules=rules, opponent=opponent, seat="big_blind").reset(seed=1)
    assert recorder.rows.max() <= 1
