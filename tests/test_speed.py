"""The speed benchmark: everything runs and is reported; no test asserts a speed."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from archie_env.errors import ArchieError
from evaluation.speed import command as speed
from evaluation.speed import first_step, peers, timing
from evaluation.speed.report import Report, as_text, save
from evaluation.speed.timing import DECISIONS, Measurement, OneCore, Row, SkippedError, measure, spent
from evaluation.speed.workloads import REFERENCE, bytes_per_game, path_rows

SMALL = [
    "batch-64-int8",
    "batch-4096-int8",
    "aec",
    "game",
    "single",
    "vector-next-step",
    "hands-one",
    "hands-kernel",
    "fill-near",
]


def measurement(name: str, *rates: float, unit: str = DECISIONS) -> Measurement:
    return Measurement(name, unit, "work", "", rates, tuple(rate / 2 for rate in rates))


def report(*measurements: Measurement) -> Report:
    machine = {"processor": "p", "system": "s", "python": "3", "date": "d"}
    return Report(machine, {"numpy": "2"}, 0.5, 3, REFERENCE, (1.0, 2.0), measurements, {}, bytes_per_game(), {})


@pytest.fixture(scope="module")
def measured() -> Report:
    return speed.run(SMALL, seconds=0.001, repeats=2)


def test_every_path_of_ours_is_measured(measured: Report) -> None:
    assert {m.name for m in measured.measurements} >= set(SMALL)
    assert all(len(m.rates) == 2 and min(m.rates) > 0 for m in measured.measurements)
    assert measured.versions["numpy"] != "not installed"
    assert not measured.first_step


def test_reports_survive_json(measured: Report, tmp_path: Path) -> None:
    save(measured, tmp_path / "speed.json")
    values = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert Report.from_dict(values) == measured
    assert [file.name for file in tmp_path.iterdir()] == ["speed.json"]
    with pytest.raises(ArchieError, match="format 7"):
        Report.from_dict(values | {"format": 7})


def test_a_missing_peer_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rlcard", None)
    found = speed.run(["rlcard-holdem", "batch-64-int8"], seconds=0.001, repeats=1)
    assert [m.name for m in found.measurements] == ["batch-64-int8"]
    assert found.skipped["rlcard-holdem"].startswith("rlcard can't be loaded: ")
    assert "rlcard-holdem" in as_text(found).partition("Skipped")[2]


@pytest.mark.filterwarnings("ignore")  # peers' own
@pytest.mark.parametrize("row", [*peers.peer_rows(), *peers.hand_rows()], ids=lambda row: row.name)
def test_peers_count_what_they_do(row: Row) -> None:
    if row.name.startswith("pgx"):
        pytest.skip("compiles for half a minute")
    try:
        loop, _ = row.make()
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert loop() > 0


def test_a_peer_with_another_interface_is_skipped() -> None:
    def make() -> tuple[timing.Loop, str]:
        raise AttributeError("no such step")

    with pytest.raises(SkippedError, match="AttributeError: no such step"):
        peers._row("x", DECISIONS, "", make).make()


def test_rows_take_turns() -> None:
    turns = []

    def row(name: str) -> Row:
        def make() -> tuple[timing.Loop, str]:
            def loop() -> int:
                turns.append(name)
                return 1

            return loop, f"note of {name}"

        return Row(name, DECISIONS, "", make)

    with OneCore() as core:
        measurements, skipped = measure([row("a"), row("b")], 1e-9, 3, core)
    assert not skipped
    order = [name for name, _ in itertools.groupby(turns)]
    assert order == ["a", "b", "a", "b", "a", "b"]  # made a b, then rounds a b | b a | a b with neighbours merged
    assert [m.note for m in measurements] == ["note of a", "note of b"]


def test_rates_count_all_that_was_done() -> None:
    rate, by_wall_clock = spent(lambda: 1000, 0.001)
    assert rate > 1000
    assert by_wall_clock > 1000


def test_tables_compare_within_each_round() -> None:
    ours, peer = measurement(REFERENCE, 1e7, 2e7, 4e7), measurement("rlcard-holdem", 1e5, 1e5, 1e5)
    assert ours.over(peer) == (200, 100, 400)
    shown = as_text(report(ours, peer, measurement("fill-near", 8e9, 8e9, 8e9, unit="bytes/s")))
    assert "200x 100x .. 400x 50%" in " ".join(shown.split())
    assert "8 GB/s" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith(f"{REFERENCE} : rlcard-holdem"))
    assert line.split()[-2:] == [">=", "240x"]
    assert "\n|---" in as_text(report(ours, peer), markdown=True)


def test_rows_that_use_both_cores_go_by_the_wall_clock() -> None:
    both = replace(measurement("both", 2.0), cores=2)
    assert as_text(report(both)).splitlines()[7].endswith("wall")


def test_names_are_distinct_and_unknown_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    names = [row.name for row in speed.all_rows()]
    assert len(set(names)) == len(names)
    assert REFERENCE in {row.name for row in path_rows()}
    assert speed.main(["--only", "chess"]) == 2
    assert "row 'chess'" in capsys.readouterr().err
    assert speed.main(["--against", "chess", "--only", "game"]) == 2
    assert "row 'chess'" in capsys.readouterr().err


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert speed.main(["--only", "hands-one", "--seconds", "0.001", "--repeats", "1", "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "hands-one" in out
    assert err == "preparing hands-one\n"
    assert json.loads(file.read_text(encoding="utf-8"))["measurements"][0]["name"] == "hands-one"
    assert speed.main(["--seconds", "0"]) == 2
    assert "--seconds 0.0: expected more than 0" in capsys.readouterr().err
    assert speed.main(["--repeats", "0"]) == 2
    assert "--repeats 0: expected a whole number of at least 1" in capsys.readouterr().err


def test_first_steps_are_timed_cold_and_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[str] = []

    def one_step(folder: str) -> float:
        folders.append(folder)
        return 0.5

    monkeypatch.setattr(first_step, "first_step", one_step)
    found = first_step.first_steps(2, 2)
    assert found["cold, by the wall clock"] == found["cached, by the wall clock"] == (0.5, 0.5)
    assert len(set(folders)) == 2
    assert folders[1] == folders[2] == folders[3]


def test_a_first_step_is_timed_in_a_fresh_interpreter(tmp_path: Path) -> None:
    assert 0.01 < first_step.first_step(str(tmp_path)) < 120
    assert list(tmp_path.iterdir())


def test_a_game_of_a_batch_is_small() -> None:
    assert bytes_per_game()["besides the observation"] <= 256
