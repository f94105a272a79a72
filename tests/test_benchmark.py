"""The card of an agent: every part has the numbers of its own tool, is kept, and gives the reason if it is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents import load
from archie_env.errors import ArchieError
from evaluation.benchmark import command
from evaluation.benchmark import measurement as module
from evaluation.benchmark.card import LEADERBOARD, Card
from evaluation.benchmark.command import main
from evaluation.benchmark.measurement import benchmark, train
from evaluation.benchmark.protocol import FULL, QUICK, REFERENCES, Protocol
from evaluation.best_response.bound import best_response
from evaluation.best_response.exploiters import Budget, Settings
from evaluation.duplicate.match import play_match
from evaluation.exploitability.measure import measure
from evaluation.tournament.round_robin import Conditions

TINY = Protocol(
    "quick", 60, Settings(Budget(1), 60, 4, 4, exploiters=("call", "rule_based", "lbr")), "rank_isomorphic", 0.01, seed=3
)
SMALL_PPO = """
[budget]
decisions = 1
[rollout]
num_envs = 16
num_steps = 4
[learning]
minibatch_size = 64
[network]
widths = [8]
bfloat16 = "off"
[report]
times = 0
agents = []
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Card, Path]:
    folder = tmp_path_factory.mktemp("cards") / "call_draw"
    card = benchmark("call_draw", folder, TINY)
    card.write(folder)
    return card, folder


def test_every_part_has_the_numbers_of_its_own_tool(made: tuple[Card, Path]) -> None:
    card, _ = made
    for rules in ("mini", "midi"):
        expected = measure(load("call_draw", rules), rules, "rank_isomorphic", assignments=2).evaluation
        assert card.exact[rules]["exploitability"] == pytest.approx(expected.exploitability, abs=1e-9)
    assert set(card.table["row"]) == set(REFERENCES) - {"call_draw"}
    seed = Conditions(60, 3).cell_seed("call", "call_draw")
    won = -play_match(load("call"), load("call_draw"), 60, seed).mbb
    assert card.table["row"]["call"]["mbb_per_hand"] == won.mean
    assert card.table["row"]["call"]["standard_error"] == won.standard_error
    row = [value["mbb_per_hand"] for value in card.table["row"].values()]
    assert card.table["total"]["mbb_per_hand"] == pytest.approx(sum(row) / len(row))
    settings = Settings(Budget(1), 60, 4, 4, seed=3, exploiters=("call", "rule_based", "lbr"))
    assert card.bound["lower_bound"]["mbb_per_hand"] == best_response("call_draw", settings=settings).mbb.mean
    assert all(len(card.speed[part]) == 5 and min(card.speed[part]) > 0 for part in ("batch", "single"))
    assert max(card.speed["batch"]) > max(card.speed["single"])


def test_the_card_is_written_for_readers_and_programs(made: tuple[Card, Path]) -> None:
    card, folder = made
    assert (folder / "card.md").read_text(encoding="utf-8") == card.markdown()
    text = " ".join(card.markdown().split())
    for words in (
        "python -m evaluation.benchmark call_draw --quick --seed 3",
        f"| exploitability, exact | mini | {card.exact['mini']['exploitability_mbb']:,.3f} mbb/hand",
        "winnings from rule_based",
        "best response, lower bound",
        "speed, one by one",
    ):
        assert words in text
    assert json.loads((folder / "card.json").read_text())["table"] == card.table
    row = card.leaderboard_row()
    assert len(row) == len(LEADERBOARD)
    assert row[0] == "call_draw"
    assert row[-1] == "`python -m evaluation.benchmark call_draw --quick --seed 3`"
    assert "—" not in row


def test_a_card_is_resumed_and_that_of_another_agent_is_refused(
    made: tuple[Card, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    card, folder = made

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for name in ("measure", "best_response", "measure_speed"):
        monkeypatch.setattr(module, name, stop)
    with pytest.raises(ArchieError, match=r"holds \d results?; resume to continue from there"):
        benchmark("call_draw", folder, TINY)
    assert benchmark("call_draw", folder, TINY, resume=True).to_dict() == card.to_dict()
    (folder / "parts" / "speed.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        benchmark("call_draw", folder, TINY, resume=True)
    with pytest.raises(ArchieError, match=r"made\.json: its manifest differs: agent 'call_draw' is now 'call'"):
        benchmark("call", folder, TINY, resume=True)


def test_a_part_that_cannot_be_measured_gives_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure", lambda policy, rules, form, time_limit: measure(policy, rules, "rank_isomorphic", 2))
    card = benchmark("solution:agents/weights/solution-{rules}.npz", tmp_path, TINY)
    for rules, value in (("mini", 0.259), ("midi", 0.187)):
        assert card.exact[rules]["exploitability_mbb"] == pytest.approx(value, abs=1e-3)
    for part in (card.table, card.bound, card.speed):
        assert "solution-archie.npz: no such file" in part["missing"]
    assert "| crosstable | archie | not measured: " in " ".join(card.markdown().split())
    assert (
        card.leaderboard_row()[-1]
        == "`python -m evaluation.benchmark 'solution:agents/weights/solution-{rules}.npz' --quick --seed 3`"
    )
    with pytest.raises(ArchieError, match="cannot be loaded under any of the rules"):
        benchmark("ppo:nowhere.npz", tmp_path / "none", TINY)


def test_quick_cards_do_not_measure_midi_in_full_form() -> None:
    assert QUICK.midi == "rank_isomorphic"
    assert FULL.midi == "auto"
    assert QUICK.bound.budget.decisions is not None  # budgets in seconds would differ from machine to machine
    assert FULL.bound.budget.decisions is not None


def test_a_trainer_trains_under_the_rules_asked_for_and_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "evaluation.benchmark")
    config = tmp_path / "tiny.toml"
    config.write_text(SMALL_PPO)
    name = train(config, "mini", tmp_path / "run")
    assert load(name, "mini").rules.name == "mini"  # type: ignore[attr-defined]
    before = (tmp_path / "run" / "policy.npz").stat().st_mtime_ns
    assert train(config, "mini", tmp_path / "run") == name
    assert (tmp_path / "run" / "policy.npz").stat().st_mtime_ns == before
    assert [record.name for record in caplog.records].count("evaluation.benchmark.measurement") == 1
    config.write_text("learning.rate = 'fast'")
    with pytest.raises(ArchieError, match="learning"):
        train(config, "mini", tmp_path / "other")


def test_a_stopped_trainer_is_resumed_with_its_own_configuration_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, folder = tmp_path / "tiny.toml", tmp_path / "card"
    config.write_text(SMALL_PPO)

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "load", stop)  # one player has been trained, none measured
    with pytest.raises(KeyboardInterrupt):
        benchmark(str(config), folder, TINY)
    assert (folder / "training" / "mini" / "policy.npz").exists()
    monkeypatch.undo()
    with pytest.raises(ArchieError, match=r"holds \d results?; resume to continue from there"):
        benchmark(str(config), folder, TINY)
    config.write_text(SMALL_PPO.replace("steps = 4", "steps = 8"))
    with pytest.raises(ArchieError, match=r"made\.json: its manifest differs: configuration"):
        benchmark(str(config), folder, TINY, resume=True)


def test_a_missing_part_is_tried_again_on_resume(made: tuple[Card, Path]) -> None:
    card, folder = made
    path = folder / "parts" / "speed.json"
    kept = json.loads((folder / "parts" / "crosstable.json").read_text())
    path.write_text(json.dumps(kept | {"part": {"missing": "a worker was killed"}}))
    again = benchmark("call_draw", folder, TINY, resume=True)
    assert "batch" in again.speed
    assert again.table == card.table


def test_a_card_that_cannot_be_written_is_printed(
    made: tuple[Card, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card, _ = made
    monkeypatch.setattr(command, "benchmark", lambda *_: card)
    (tmp_path / "file").write_text("")
    assert main(["call_draw", "--quick", "--out", str(tmp_path / "file" / "card")]) == 2
    out, err = capsys.readouterr()
    assert out == card.markdown()
    assert "card.md: Not a directory" in err


BOT = """
from archie_env.policy import UniformPolicy

class Caller(UniformPolicy):
    name = "caller"

    def act(self, observations, masks, rng):
        return masks[:, 1:].argmax(axis=1) + 1

    def probabilities(self, observations, masks):
        import numpy as np
        return np.eye(masks.shape[1], dtype=np.float32)[self.act(observations, masks, None)]
"""


def test_a_bot_in_any_folder_gets_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench_bots.py").write_text(BOT)
    monkeypatch.syspath_prepend(str(tmp_path))
    card = benchmark("bench_bots:Caller", tmp_path / "card", TINY)
    assert card.exact["mini"]["exploitability_mbb"] > 0
    assert card.table["row"]["call"]["mbb_per_hand"] == 0  # both check, call and stand pat
    assert card.bound["target"] == "bench_bots:Caller"


def test_the_command_line_refuses_agents_and_numbers_it_cannot_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, words in (
        (["nobody"], "policy 'nobody': expected one of"),
        (["human"], "agent human"),
        (["missing.toml"], "missing.toml: no such file"),
        (["call", "--seed", "-1"], "seed -1: expected a whole number of at least 0"),
        (["call", "--time-limit", "0"], "time limit 0.0: expected more than 0 seconds"),
        (["call", "--jobs", "0"], "jobs 0: expected a whole number of at least 1"),
    ):
        assert main([*wrong, "--quick", "--out", str(tmp_path / "card")]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "card").exists()
