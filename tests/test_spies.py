"""Players that walk through everything reachable from what they are handed: they find neither a seed nor the rows of others."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import load
from archie_env.batch import Batch
from archie_env.envs.learner import SingleAgentBatch
from archie_env.envs.single import ArchieEnv
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.policy import private_generator
from archie_env.rules import PRESETS
from archie_env.terminal.console import Console
from archie_env.terminal.play import Sitting, play
from evaluation.aivat.match import play_adjusted
from evaluation.aivat.value_function import learn
from evaluation.benchmark.measurement import measure_speed
from evaluation.benchmark.protocol import Protocol
from evaluation.best_response.bound import best_response
from evaluation.best_response.exploiters import Settings
from evaluation.duplicate.command import main as duplicate_main
from evaluation.duplicate.deals import seed_of_deals
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.exploitability.measure import measure
from evaluation.pictures.play_style import watch
from evaluation.tournament.crosstable import crosstable
from evaluation.tournament.round_robin import Conditions
from evaluation.tournament.round_robin import main as tournament_main
from tests.ppo_runs import small
from tests.spy import Spy
from training.cfr.abstraction import AbstractionConfig
from training.cfr.empirical import EmpiricalPolicy
from training.monitoring import match
from training.ppo.state import TrainingState

SEED = 4_000_000_007
"""Too large to be found by trying all numbers below it, and allowed everywhere."""
SECRET = bytes(range(100, 132))


def play_single(spy: Spy) -> None:
    env = ArchieEnv(spy, hands=4)
    env.reset(seed=SEED)
    while not env.step(int(env.action_masks()[1:].argmax()) + 1)[2]:
        pass


def play_vector(spy: Spy) -> None:
    envs = ArchieVectorEnv(8, spy)
    _, infos = envs.reset(seed=SEED)
    for _ in range(20):
        infos = envs.step(infos["action_mask"].argmax(axis=1))[-1]


def play_batch(spy: Spy) -> None:
    batch = SingleAgentBatch(8, [load("uniform"), spy, None, spy], seed=SEED)
    for _ in range(20):
        batch.step(batch.masks.argmax(axis=1))
    arrays, generators = batch.snapshot()
    batch.restore(arrays, json.loads(json.dumps(generators)))
    batch.step(batch.masks.argmax(axis=1))


def play_terminal(spy: Spy) -> None:
    sitting = Sitting(rules=PRESETS["mini"], opponent=spy, seed=SEED, hands=1)
    play(sitting, Console(io.StringIO("call\npat\n" * 20), io.StringIO()))


def train_ppo(spy: Spy) -> None:
    opponents = {"self_play": 0.3, "snapshots": 0.3, "snapshots_kept": 2, "named": {"spy": 0.4}}
    config = small(seed=SEED, opponents=opponents, warm_start={"policy": "spy", "decisions": 1000}, rules="mini")
    TrainingState(config, {"spy": spy}).update()


def observe(spy: Spy) -> None:
    for other in (None, load("call", "mini"), spy):
        EmpiricalPolicy(spy, PRESETS["mini"], AbstractionConfig(cards="coarse"), SEED).observe(other, 2000)


def adjust(spy: Spy) -> None:
    caller = load("call_draw", "mini")
    play_adjusted(spy, caller, 50, SEED, "mini", learn(spy, caller, 50, SEED + 1, "mini"), samples=2)


def bound(spy: Spy) -> None:
    best_response(spy, "mini", Settings(deals=8, slow_deals=4, particles=4, seed=SEED, exploiters=("call", "lbr")))


OF_BOUND = {3 * SEED, 3 * SEED + 1, 3 * SEED + 2}
INTERFACES: dict[str, tuple[Callable[[Spy], object], set[int]]] = {
    "single": (play_single, {SEED}),
    "vector": (play_vector, {SEED}),
    "learner": (play_batch, {SEED}),
    "terminal": (play_terminal, {SEED}),
    "ppo": (train_ppo, {SEED}),
    "cfr best response": (observe, {SEED}),
    "monitoring": (lambda spy: match(spy, load("call", "mini"), 20, SEED, PRESETS["mini"]), {SEED}),
    "duplicate": (lambda spy: play_match(spy, spy, 20, SEED), {SEED}),
    "duplicate with a secret": (
        lambda spy: play_match(spy, load("call"), 20, SEED, secret=SECRET),
        {SEED, seed_of_deals(SEED, SECRET), int.from_bytes(SECRET, "big")},
    ),
    "duplicate with probabilities": (lambda spy: play_match(spy, load("call"), 20, SEED, probabilities=True), {SEED}),
    "crosstable": (lambda spy: crosstable([spy, load("call"), load("raise")], 20, SEED), {SEED}),
    "aivat": (adjust, {SEED, SEED + 1}),
    "play style": (lambda spy: watch(spy, None, 20, SEED, "mini"), {SEED}),
    "exploitability": (lambda spy: measure(spy, "mini"), {SEED}),
    "best_response": (bound, {SEED} | OF_BOUND),
    "benchmark": (lambda spy: measure_speed(spy, Protocol("spied", 2, Settings(), "auto", 0.001, seed=SEED)), {SEED}),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_player_finds_neither_seed_nor_other_rows_in_what_it_is_handed(interface: str) -> None:
    spy, (run, seeds) = Spy(), INTERFACES[interface]
    run(spy)
    spy.check(seeds)
    only_probabilities = interface in ("exploitability", "duplicate with probabilities")
    assert (spy.generators == 0) == only_probabilities


@pytest.mark.parametrize(
    "generator",
    [
        np.random.default_rng([SEED, 1]),
        np.random.default_rng(SEED),
        np.random.default_rng(np.random.SeedSequence(SEED).spawn(2)[1]),
        np.random.Generator(np.random.Philox(SEED)),
    ],
)
def test_the_spy_finds_the_seed_where_a_generator_is_made_of_it(generator: np.random.Generator) -> None:
    spy, batch = Spy(), Batch(4, seed=1)
    spy.act(batch.observations, batch.masks, generator)
    with pytest.raises(AssertionError):
        spy.check({SEED})


def test_the_spy_finds_the_rows_that_a_slice_is_cut_from() -> None:
    spy, batch = Spy(), Batch(4, seed=1)
    spy.act(batch.observations[1:2], batch.masks[1:2], private_generator(1, "player"))
    with pytest.raises(AssertionError):
        spy.check({SEED})


def test_private_generators_of_no_seed_differ() -> None:
    assert private_generator(None, "opponent", 0).random() != private_generator(None, "opponent", 0).random()


SPY_MODULE = """
import json, os
from tests.spy import Spy

class Teller(Spy):
    name = "teller"

    def act(self, observations, masks, rng):
        answer = super().act(observations, masks, rng)
        with open(os.environ["SPY_FILE"], "w") as file:
            json.dump([str(number) for number in sorted(self.numbers)], file)
        return answer
"""
COMMANDS: dict[str, list[str]] = {
    "duplicate": ["telling_spy:Teller", "call", "--deals", "20", "--json", "result.json"],
    "tournament": ["telling_spy:Teller", "call", "--deals", "20", "--out", "results"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_a_secret_seed_discloses_its_hash_and_hides_its_cards(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = {"duplicate": duplicate_main, "tournament": tournament_main}[command]
    (tmp_path / "telling_spy.py").write_text(SPY_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPY_FILE", str(tmp_path / "found.json"))
    arguments = [*COMMANDS[command], "--secret-seed", "secret", "--seed", str(SEED)]
    for content, message in ((None, "found no file"), (b"short", "found 5"), (SECRET + b"\n", "found more")):
        if content is not None:
            Path("secret").write_bytes(content)
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: secret seed secret: expected")
        assert message in error
        assert not Path("result.json").exists()
        assert not Path("results").exists()
    Path("secret").write_bytes(SECRET)
    expected = hashlib.sha256(SECRET).hexdigest()
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(f"secret seed with SHA-256 {expected}\n")
    file = Path("result.json" if command == "duplicate" else "results/table.json")
    first = json.loads(file.read_text())
    assert first["manifest"]["secret_seed_sha256"] == expected
    assert SECRET.hex() not in file.read_text()
    spy = Spy()
    spy.numbers = set(map(int, json.loads(Path("found.json").read_text())))
    cell = Conditions(20, SEED).cell_seed("call", "telling_spy:Teller") if command == "tournament" else SEED
    spy.check({SEED, cell, seed_of_deals(cell, SECRET), int.from_bytes(SECRET, "big")})
    # the same secret gives the same cards, which those of the seed alone are not
    played = MatchResult.from_dict(first if command == "duplicate" else one_cell(Path("results")))
    players = load("telling_spy:Teller"), load("call")
    a, b = players if command == "duplicate" else players[::-1]
    assert played.totals == play_match(a, b, 20, cell, secret=SECRET).totals
    assert played.totals != play_match(a, b, 20, cell).totals


def one_cell(folder: Path) -> dict[str, Any]:
    (file,) = (folder / "cells").iterdir()
    result: dict[str, Any] = json.loads(file.read_text())["result"]
    return result
