"""The card of an agent: every part is what its own tool measures, is kept, and says why where it could not be measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents import load
from archie_env.errors import ArchieError
from evaluation.benchmark import card as module
from evaluation.benchmark.card import FULL, LEADERBOARD, QUICK, REFERENCES, Card, Protocol, benchmark, main, train
from evaluation.best_response.bound import best_response
from evaluation.best_response.exploiters import Budget, Settings
from evaluation.duplicate.match import play_match
from evaluation.exploitability.measure import measure
from evaluation.tournament.round_robin import Conditions

TINY = Protocol("quick", 60, Settings(Budget(1), 60, 4, 4, exploiters=("call", "rule_based", "lbr")), "class", 0.01, seed=3)
SMALL_PPO = """
[budget]
decisions = 1
[rollout]
games = 16
steps = 4
[learning]
batch = 64
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
    return benchmark("call_draw", folder, TINY), folder


def test_every_part_is_what_its_own_tool_measures(made: tuple[Card, Path]) -> None:
    card, _ = made
    for rules in ("mini", "midi"):
        expected = measure(load("call_draw", rules), rules, "class", assignments=2).evaluation
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
    text = (folder / "card.md").read_text()
    assert text == card.markdown()
    for words in (
        "python -m evaluation.benchmark call_draw --quick --seed 3",
        f"| exploitability, exact      | mini   | {card.exact['mini']['exploitability_mbb']:,.3f} mbb/hand",
        "wins from rule_based",
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


def test_a_card_is_gone_on_with_and_no_other_is_taken_for_it(made: tuple[Card, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    card, folder = made

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for name in ("measure", "best_response", "measure_speed"):
        monkeypatch.setattr(module, name, stop)
    with pytest.raises(ArchieError, match="holds a card; resume to go on with it"):
        benchmark("call_draw", folder, TINY)
    assert benchmark("call_draw", folder, TINY, resume=True).to_dict() == card.to_dict()
    (folder / "parts" / "speed.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        benchmark("call_draw", folder, TINY, resume=True)
    with pytest.raises(ArchieError, match=r"made\.json: the file was made otherwise: agent 'call_draw' is now 'call'"):
        benchmark("call", folder, TINY, resume=True)


def test_a_part_that_cannot_be_measured_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure", lambda policy, rules, form, time_limit: measure(policy, rules, "class", 2))
    card = benchmark("solution:agents/weights/solution-{rules}.npz", tmp_path, TINY)
    for rules, value in (("mini", 0.259), ("midi", 0.187)):
        assert card.exact[rules]["exploitability_mbb"] == pytest.approx(value, abs=1e-3)
    for part in (card.table, card.bound, card.speed):
        assert "solution-archie.npz: no such file" in part["missing"]
    assert "| crosstable                 | archie | not measured: " in card.markdown()
    assert (
        card.leaderboard_row()[-1]
        == "`python -m evaluation.benchmark 'solution:agents/weights/solution-{rules}.npz' --quick --seed 3`"
    )
    with pytest.raises(ArchieError, match="can be played under none of the rules"):
        benchmark("ppo:nowhere.npz", tmp_path / "none", TINY)


def test_quick_cards_do_not_ask_every_hand_of_midi() -> None:
    assert QUICK.midi == "class"
    assert FULL.midi == "auto"
    assert QUICK.bound.budget.decisions is not None  # budgets in seconds would differ from machine to machine
    assert FULL.bound.budget.decisions is not None


def test_a_trainer_trains_under_the_rules_asked_for_and_once(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(SMALL_PPO)
    told: list[str] = []
    name = train(config, "mini", tmp_path / "run", told.append)
    assert load(name, "mini").rules.name == "mini"  # type: ignore[attr-defined]
    before = (tmp_path / "run" / "policy.npz").stat().st_mtime_ns
    assert train(config, "mini", tmp_path / "run", told.append) == name
    assert (tmp_path / "run" / "policy.npz").stat().st_mtime_ns == before
    assert len(told) == 1
    config.write_text("learning.rate = 'fast'")
    with pytest.raises(ArchieError, match="learning"):
        train(config, "mini", tmp_path / "other", told.append)


def test_a_trainer_that_was_stopped_goes_on_with_its_own_configuration_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder = tmp_path / "tiny.toml", tmp_path / "card"
    config.write_text(SMALL_PPO)

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "load", stop)  # one player has been trained, none measured
    with pytest.raises(KeyboardInterrupt):
        benchmark(str(config), folder, TINY)
    assert (folder / "training" / "mini" / "policy.npz").exists()
    monkeypatch.undo()
    with pytest.raises(ArchieError, match="holds a card; resume to go on with it"):
        benchmark(str(config), folder, TINY)
    config.write_text(SMALL_PPO.replace("steps = 4", "steps = 8"))
    with pytest.raises(ArchieError, match=r"made\.json: the file was made otherwise: configuration"):
        benchmark(str(config), folder, TINY, resume=True)


def test_a_part_that_was_missing_is_tried_again(made: tuple[Card, Path]) -> None:
    card, folder = made
    path = folder / "parts" / "speed.json"
    kept = json.loads((folder / "parts" / "crosstable.json").read_text())
    path.write_text(json.dumps(kept | {"part": {"missing": "a worker was killed"}}))
    again = benchmark("call_draw", folder, TINY, resume=True)
    assert "batch" in again.speed
    assert again.table == card.table


def test_the_command_line_refuses_what_it_cannot_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, words in (
        (["nobody"], "agent 'nobody': expected one of"),
        (["human"], "agent human"),
        (["missing.toml"], "missing.toml: no such file"),
        (["call", "--seed", "-1"], "seed -1: expected a whole number of at least 0"),
        (["call", "--time-limit", "0"], "time limit 0.0: expected more than 0 seconds"),
        (["call", "--jobs", "0"], "jobs 0: expected a whole number of at least 1"),
    ):
        assert main([*wrong, "--quick", "--out", str(tmp_path / "card")]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "card").exists()
