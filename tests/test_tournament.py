"""Tournaments: the statistics of a table, and round robins from end to end."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import signal
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load, registry
from archie_env.errors import ArchieError
from archie_env.rules import Rules
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.duplicate.umpire import Faults
from evaluation.estimates import NORMAL_95, Estimate
from evaluation.results import ResultFile
from evaluation.tournament import round_robin
from evaluation.tournament.ratings import (
    AVERAGE,
    SESSION,
    Table,
    adjusted_p_values,
    ahead,
    fit,
    holm,
    p_value,
    ratings,
    run_off,
    totals,
)
from evaluation.tournament.round_robin import (
    Conditions,
    cell_file,
    faults_of,
    main,
    play,
    read,
    read_cell,
    write,
)
from evaluation.tournament.standings import Standings, mark

PLAYERS = ("uniform", "raise", "call_draw", "raise_draw")
CONDITIONS = Conditions(deals=60, seed=3, chunk=32)


def table_of(means: list[list[float]], error: float = 1.0, deals: int = 1000) -> Table:
    """Players a, b, c, ... with these means above the diagonal."""
    names = "abcdefgh"[: len(means)]
    cells = {(i, j): (Estimate(means[i][j], error), deals) for i, j in combinations(range(len(means)), 2)}
    return Table.of(names, cells)


def holm_by_definition(p_values: list[float], level: float) -> set[int]:
    """The hypotheses rejected at a level by the step-down rule as Holm wrote it."""
    left, rejected = set(range(len(p_values))), set[int]()
    while left:
        least = min(left, key=lambda i: p_values[i])
        if p_values[least] > level / len(left):
            break
        left.remove(least)
        rejected.add(least)
    return rejected


def test_holms_adjusted_values_reject_what_his_step_down_rule_rejects() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        p_values = (rng.random(rng.integers(1, 12)) ** rng.integers(1, 6)).tolist()
        adjusted = holm(p_values)
        for level in (0.001, 0.01, 0.05, 0.2, 0.9):
            assert {i for i, p in enumerate(adjusted) if p <= level} == holm_by_definition(p_values, level)


def test_holms_method_keeps_the_chance_of_any_false_mark_at_its_level() -> None:
    rng = np.random.default_rng(1)
    tables = 2000
    marked = sum(min(holm([p_value(Estimate(float(x), 1.0)) for x in rng.standard_normal(15)])) < 0.05 for _ in range(tables))
    assert marked / tables == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / tables))


def test_marks_are_for_adjusted_values_and_a_certain_draw_gets_none() -> None:
    table = Table.of("abc", {(0, 1): (Estimate(2.5, 1.0), 9), (0, 2): (Estimate(2.0, 1.0), 9), (1, 2): (Estimate(0.0, 0.0), 9)})
    adjusted = adjusted_p_values(table)
    assert adjusted[0, 1] == adjusted[1, 0] == pytest.approx(3 * 2 * (1 - NormalDist().cdf(2.5)))
    assert adjusted[0, 2] == pytest.approx(2 * 2 * (1 - NormalDist().cdf(2.0)))
    assert adjusted[1, 2] == 1
    assert [mark(p) for p in (adjusted[0, 1], adjusted[0, 2], 0.0099, 0.0009, 1.0)] == ["*", "", "**", "***", ""]


def test_total_is_the_mean_over_opponents_with_the_error_of_independent_cells() -> None:
    cells = {(0, 1): (Estimate(3.0, 3.0), 9), (0, 2): (Estimate(5.0, 4.0), 9), (1, 2): (Estimate(1.0, 1.0), 9)}
    first, second, third = totals(Table.of("abc", cells))
    assert (first.name, first.value.mean, first.value.standard_error) == ("a", 4.0, 2.5)
    assert (second.name, second.value.mean) == ("b", -1.0)
    assert (third.name, third.value.mean) == ("c", -3.0)


def test_run_off_drops_who_only_beats_the_weak() -> None:
    table = table_of([[0, -10, -8, 900], [10, 0, 20, 50], [8, -20, 0, 60], [-900, -50, -60, 0]])
    assert [(s.name, s.value.mean) for s in totals(table)] == [
        ("a", pytest.approx(882 / 3)), ("b", pytest.approx(80 / 3)), ("c", 16.0), ("d", pytest.approx(-1010 / 3)),
    ]  # fmt: skip
    assert [(s.name, s.value.mean) for s in run_off(table)] == [
        ("b", 20.0), ("c", -20.0), ("a", -9.0), ("d", pytest.approx(-1010 / 3)),
    ]  # fmt: skip


def test_run_off_of_two_is_the_match() -> None:
    assert [(s.name, s.value.mean) for s in run_off(table_of([[0, -7], [7, 0]]))] == [("b", 7.0), ("a", -7.0)]


def noisy(chances: NDArray[np.float64], deals: int, rng: np.random.Generator | None) -> Table:
    """A table whose sessions are won with these chances: pairs of spread 3000, and the noise of that many deals."""
    error = 3000 / math.sqrt(deals)
    n = len(chances)
    cells = {}
    for i, j in combinations(range(n), 2):
        mean = NormalDist().inv_cdf(chances[i, j]) * 3000 / math.sqrt(SESSION)
        cells[i, j] = (Estimate(mean + (error * float(rng.standard_normal()) if rng else 0.0), error), deals)
    return Table.of([f"player {i}" for i in range(n)], cells)


def test_ratings_recover_known_strengths_to_the_point() -> None:
    true = np.array([1800.0, 1650.0, 1500.0, 1400.0, 1150.0])
    chances = 1 / (1 + 10 ** ((true - true[:, None]) / 400))
    got = {standing.name: standing.value for standing in ratings(noisy(chances, 20_000, None))}
    for i, rating in enumerate(true):
        assert got[f"player {i}"].mean == pytest.approx(rating, abs=1e-6)
        assert 1 < got[f"player {i}"].standard_error < 15


@pytest.mark.parametrize("transitive", [True, False])
def test_intervals_of_ratings_hold_the_truth_nineteen_times_in_twenty(transitive: bool) -> None:
    rng = np.random.default_rng(5)
    true = np.array([1.0, 0.4, 0.0, -0.5, -0.9])
    chances = 1 / (1 + np.exp(true - true[:, None]))
    if not transitive:  # the last beats the first: no ratings explain that, but those nearest to it can be estimated
        chances[4, 0] = 0.9
        chances[0, 4] = 0.1
    target = AVERAGE + 400 / math.log(10) * fit(chances)
    tables, held = 400, np.zeros(5)
    for _ in range(tables):
        for standing in ratings(noisy(chances, 2000, rng)):
            low, high = standing.value.interval
            i = int(standing.name.split()[1])
            held[i] += low < target[i] < high
    np.testing.assert_allclose(held / tables, 0.95, atol=4 * math.sqrt(0.95 * 0.05 / tables))


def test_ratings_stay_finite_when_somebody_wins_for_certain() -> None:
    table = table_of([[0, 1e6, 5.0], [-1e6, 0, 1e6], [-5.0, -1e6, 0]], error=0.0)
    chances, errors = ahead(table)
    assert chances[0, 1] == pytest.approx(0.9999)
    assert chances[1, 0] == pytest.approx(0.0001)
    assert not errors.any()
    best, second, last = ratings(table)
    assert (best.name, second.name, last.name) == ("a", "b", "c")
    assert best.value.mean - second.value.mean == pytest.approx(second.value.mean - last.value.mean)
    assert best.value.mean < 4000


def test_equal_players_are_rated_equal() -> None:
    assert {standing.value.mean for standing in ratings(table_of([[0, 0, 0]] * 3))} == {AVERAGE}


def test_a_table_without_some_match_is_refused() -> None:
    with pytest.raises(ArchieError, match="b v c: no result"):
        Table.of("abc", {(0, 1): (Estimate(0, 1), 9), (0, 2): (Estimate(0, 1), 9)})
    with pytest.raises(ArchieError, match="each name once"):
        Table.of("aa", {(0, 1): (Estimate(0, 1), 9)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished tournament."""
    folder = tmp_path_factory.mktemp("tournament")
    write(play(PLAYERS, CONDITIONS, folder, jobs=2), folder)
    return folder


def test_each_cell_is_the_match_anybody_can_play_with_its_seed(folder: Path) -> None:
    standings = read(folder)
    kept = json.loads(cell_file(folder, "call_draw", "raise_draw").read_text())["result"]
    assert kept["seed"] == CONDITIONS.cell_seed("raise_draw", "call_draw") == CONDITIONS.cell_seed("call_draw", "raise_draw")
    again = play_match(load("call_draw"), load("raise_draw"), CONDITIONS.deals, kept["seed"], chunk=CONDITIONS.chunk)
    i, j = PLAYERS.index("call_draw"), PLAYERS.index("raise_draw")
    assert standings.table.cell(i, j) == again.mbb
    assert standings.table.cell(j, i) == -again.mbb


def test_results_depend_neither_on_jobs_nor_on_the_order_of_names(folder: Path, tmp_path: Path) -> None:
    write(play(PLAYERS, CONDITIONS, tmp_path / "one", jobs=1), tmp_path / "one")
    for name in ("table.json", "table.md", "cells.csv", "ranking.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (folder / name).read_bytes()
    turned = play(PLAYERS[::-1], CONDITIONS, folder, resume=True)
    assert turned.totals == read(folder).totals


def test_a_killed_tournament_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    told: list[int] = []

    def stop_after_two(matches: int) -> None:
        told.append(matches)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(PLAYERS, CONDITIONS, tmp_path, progress=stop_after_two)
    files = list((tmp_path / "cells").glob("*.json"))
    kept = {path: path.stat().st_mtime_ns for path in files if json.loads(path.read_text())["finished"]}
    assert len(kept) >= 2
    with pytest.raises(ArchieError, match=f"holds {len(files)} results; resume"):
        play(PLAYERS, CONDITIONS, tmp_path)
    told = [0, 0]
    write(play(PLAYERS, CONDITIONS, tmp_path, resume=True, progress=stop_after_two), tmp_path)
    assert told == [0, 0, len(kept), *[1] * (6 - len(kept))]
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    assert (tmp_path / "table.json").read_bytes() == (folder / "table.json").read_bytes()


def test_a_worker_that_is_stopped_while_it_writes_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tournament stops its workers by SIGTERM."""

    def stopped(descriptor: int) -> None:
        signal.raise_signal(signal.SIGTERM)

    def left(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(os, "fsync", stopped)
    monkeypatch.setattr(os, "_exit", left)
    with pytest.raises(SystemExit, match="130"):
        round_robin._play("call", "uniform", CONDITIONS, tmp_path / "cell.json", CONDITIONS.manifest(("call", "uniform")))
    assert not list(tmp_path.iterdir())


def test_a_match_that_was_being_played_goes_on_from_its_kept_part(folder: Path, tmp_path: Path) -> None:
    pair = ("call_draw", "uniform")
    parts: list[MatchResult] = []
    seed = CONDITIONS.cell_seed(*pair)
    play_match(load(pair[0]), load(pair[1]), 60, seed, chunk=32, written=parts.append)
    assert [part.totals.deals for part in parts] == [32, 60]
    path = cell_file(tmp_path, *pair)
    path.parent.mkdir()
    # squares of chips that nobody won: what the tournament makes of them shows that the part was gone on from
    marked = replace(parts[0], totals=replace(parts[0].totals, dealer_squares=parts[0].totals.dealer_squares + 1000))
    for part, more in ((parts[0], 0), (marked, 1000)):
        path.unlink(missing_ok=True)
        ResultFile(path, CONDITIONS.manifest(pair)).write({"result": part.to_dict()}, finished=False)
        with pytest.raises(ArchieError, match="holds 1 result;"):
            play(pair, CONDITIONS, tmp_path)
        with pytest.raises(ArchieError, match="deals 60 is now 92"):
            play(pair, replace(CONDITIONS, deals=92), tmp_path, resume=True)
        play(pair, CONDITIONS, tmp_path, resume=True)
        match, finished = read_cell(path, CONDITIONS.manifest(pair)) or (None, False)
        assert match is not None
        assert match.totals == replace(parts[1].totals, dealer_squares=parts[1].totals.dealer_squares + more)
        assert finished
    kept = read_cell(cell_file(folder, *pair), CONDITIONS.manifest(pair))
    assert kept is not None
    assert kept[0].totals == parts[1].totals


def test_matches_under_other_conditions_are_refused_with_the_difference(folder: Path) -> None:
    with pytest.raises(ArchieError, match="deals 60 is now 61"):
        play(PLAYERS, Conditions(61, 3, chunk=32), folder, resume=True)
    with pytest.raises(ArchieError, match="rules 'archie' is now 'barge'"):
        play(PLAYERS, Conditions(60, 3, "barge", chunk=32), folder, resume=True)


def test_weights_of_players_that_ship_are_among_the_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name stays the same when a better player is put in its place."""
    weights = CONDITIONS.manifest(("cfr_small", "call"))["weights"]
    assert weights == [hashlib.sha256((registry.WEIGHTS / "cfr_small.npz").read_bytes()).hexdigest(), None]
    monkeypatch.setattr(registry, "WEIGHTS", tmp_path)
    with pytest.raises(ArchieError, match="agent 'cfr_small': No such file"):
        CONDITIONS.manifest(("cfr_small", "call"))


def test_half_a_file_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    path = cell_file(tmp_path, "call", "raise")
    path.write_text(cell_file(folder, "call_draw", "raise").read_text()[:300])
    with pytest.raises(ArchieError, match=r"call-v-raise-.*not a file of results"):
        play(("raise", "call"), CONDITIONS, tmp_path, resume=True)


def test_outputs_read_back(folder: Path) -> None:
    standings = read(folder)
    assert standings.table.names == PLAYERS
    assert Standings.from_dict(json.loads(json.dumps(standings.to_dict()))).to_dict() == standings.to_dict()
    with (folder / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    for row in rows:
        cell = standings.table.cell(PLAYERS.index(row["row"]), PLAYERS.index(row["column"]))
        assert float(row["mbb_per_hand"]) == cell.mean
        assert (float(row["low_95"]), float(row["high_95"])) == cell.interval
    with (folder / "ranking.csv").open(newline="") as file:
        ranking = list(csv.DictReader(file))
    assert [row["player"] for row in ranking] == [standing.name for standing in standings.totals]
    assert sorted(int(row["run_off_place"]) for row in ranking) == [1, 2, 3, 4]
    text = (folder / "table.md").read_text()
    table = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    head, first = table[0], table[2]
    assert [name.strip() for name in head[1:-1]] == [standing.name for standing in standings.totals]
    mean, reach = first[2].replace("*", "").replace(",", "").split("±")
    cell = standings.table.cell(*(PLAYERS.index(standing.name) for standing in standings.totals[:2]))
    assert float(mean) == pytest.approx(cell.mean, abs=0.051)
    assert float(reach) == pytest.approx(NORMAL_95 * cell.standard_error, abs=0.051)
    assert "corrected for all 6 cells together by Holm's method" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["uniform"], "1 players: expected at least 2"),
        (["uniform", "call", "uniform"], "players uniform: named twice"),
        (["uniform", "nobody"], "policy 'nobody': expected one of"),
        (["uniform", "human"], "player human"),
        (["uniform", "call", "--deals", "1"], "deals 1: expected a whole number of at least 2"),
        (["uniform", "call", "--time-limit", "0"], "time limit 0.0: expected more than 0"),
        (["uniform", "call", "--jobs", "0"], "jobs 0: expected a whole number of at least 1"),
        (["uniform", "call", "--resume"], "--resume: expected --out"),
    ],
)
def test_bad_input_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_the_command_line_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "call_draw", "--deals", "40", "--rules", "mini", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == (tmp_path / "table.md").read_text()
    assert "1 of 1: call v call_draw" in printed.err
    assert main(["call", "call_draw", "--deals", "40", "--rules", "mini", "--out", str(tmp_path)]) == 2
    assert "holds 1 result; resume to continue" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cells", "cells.csv", "ranking.csv", "table.json", "table.md", "table.png",
    ]  # fmt: skip


def test_faults_are_added_up_over_matches_and_shown(folder: Path) -> None:
    match = MatchResult.from_dict(json.loads(cell_file(folder, "call_draw", "raise").read_text())["result"])
    bad = Faults({"exception": 2}, ("first",)), Faults({"exception": 1, "illegal action": 3}, ("second",))
    odd = Faults(), Faults(remarks=("raise_draw: ended 3 times",))
    cells = {("call", "raise"): replace(match, faults=bad), ("call", "uniform"): replace(match, faults=bad[::-1])}
    cells["call", "raise_draw"] = replace(match, faults=odd)
    faults = faults_of(("uniform", "call", "raise", "raise_draw"), cells)
    assert faults == {
        "uniform": {"counts": {"exception": 2}, "reports": ["first"]},
        "call": {"counts": {"exception": 3, "illegal action": 3}, "reports": ["first", "second"]},
        "raise": {"counts": {"exception": 1, "illegal action": 3}, "reports": ["second"]},
        "raise_draw": {"counts": {}, "reports": [], "remarks": ["raise_draw: ended 3 times"]},
    }
    standings = replace(read(folder), faults=faults)
    assert "* **call** forfeited 6 hands: exception 3, illegal action 3\n  * first\n  * second\n" in standings.markdown()
    assert "* **raise_draw** forfeited no hand\n  * raise_draw: ended 3 times\n" in standings.markdown()
    assert Standings.from_dict(json.loads(json.dumps(standings.to_dict()))).faults == faults
    assert "Faults" not in read(folder).markdown()


def looks_drawn(path: Path) -> bool:
    """Whether a PNG has many colours, in every quarter more than one."""
    from matplotlib.image import imread

    picture = np.ascontiguousarray(np.rint(255 * imread(path)).astype(np.uint8)).view(np.uint32)[..., 0]  # RGBA
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    quarters = [picture[y : y + height, x : x + width] for y in (0, height) for x in (0, width)]
    return all(len(np.unique(quarter)) > 20 for quarter in quarters)


def test_the_heat_map_is_drawn(folder: Path) -> None:
    assert looks_drawn(folder / "table.png")
    assert (folder / "table.png").stat().st_size < 150_000


def test_matches_go_on_until_they_are_known_well_enough(tmp_path: Path) -> None:
    conditions = replace(CONDITIONS, error=300.0)
    play(("raise_draw", "uniform"), conditions, tmp_path)
    pair = ("raise_draw", "uniform")
    path = cell_file(tmp_path, *pair)
    whole, _ = read_cell(path, conditions.manifest(pair)) or pytest.fail("no match")
    deals, seed = whole.totals.deals, CONDITIONS.cell_seed(*pair)
    assert whole.mbb.standard_error <= 300
    assert deals > 60
    assert deals % 32 == 0
    players = load(pair[0]), load(pair[1])
    before = play_match(*players, deals - 32, seed, chunk=32)
    assert before.mbb.standard_error > 300
    assert play_match(*players, deals, seed, chunk=32).totals == whole.totals
    # killed after more deals than were asked for at least
    ResultFile(path, conditions.manifest(pair)).write({"result": before.to_dict()}, finished=False)
    play(pair, conditions, tmp_path, resume=True)
    again, _ = read_cell(path, conditions.manifest(pair)) or pytest.fail("no match")
    assert again.totals == whole.totals
    with pytest.raises(ArchieError, match=r"error 300\.0 is now None"):
        play(pair, CONDITIONS, tmp_path, resume=True)
    with pytest.raises(ArchieError, match=r"error -1: expected more than 0 mbb per hand"):
        play(pair, replace(CONDITIONS, error=-1), tmp_path)
    with pytest.raises(ArchieError, match="until and error: expected at most one of them"):
        play_match(*players, 60, until=9.0, error=9.0)
    with pytest.raises(ArchieError, match=r"whole chunks of 32$"):
        play_match(*players, 60, seed, chunk=32, error=300.0, earlier=play_match(*players, 61, seed, chunk=32))


class FailingFigure:
    """Stands for whatever a drawing library raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, *arguments: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib"), "it needs matplotlib, pip install"),
        (RuntimeError("Failed to process string with tex because latex could not be found"), "latex could not be found"),
        (ArchieError("table.png: No space left on device"), "table.png: No space left on device"),
        (ValueError("Failed to find font DejaVu Sans"), "Failed to find font"),
    ],
)
def test_a_tournament_whose_picture_cannot_be_drawn_prints_its_table_and_the_reason(
    error: Exception, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("evaluation.tournament.heat_map.write_crosstable", FailingFigure(error))
    assert main(["call", "call_draw", "--deals", "40", "--rules", "mini", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == (tmp_path / "table.md").read_text()
    assert "no picture: " in printed.err
    assert words in printed.err
    assert not (tmp_path / "table.png").exists()


def test_a_full_disk_does_not_lose_the_table_of_a_tournament(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("evaluation.tournament.round_robin.atomic_write", FailingFigure(ArchieError("table.md: No space left")))
    assert main(["call", "call_draw", "--deals", "40", "--rules", "mini", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "# Tournament" in printed.out
    assert "error: table.md: No space left" in printed.err


def test_pictures_are_drawn_without_latex_whatever_the_settings_of_the_user(folder: Path, tmp_path: Path) -> None:
    import matplotlib

    from evaluation.tournament.heat_map import write_crosstable

    with matplotlib.rc_context({"text.usetex": True}):
        write_crosstable(read(folder), tmp_path / "table.png")
    assert looks_drawn(tmp_path / "table.png")


def test_a_table_of_version_0_1_still_loads(folder: Path, tmp_path: Path) -> None:
    values = json.loads((folder / "table.json").read_text())
    values["manifest"] = {
        "players": dict.fromkeys(PLAYERS, "no file"), "deals": 60, "seed": 3, "chunk": 32, "time_limit": None, "error": None,
        "rules": Rules().to_dict(), "versions": {"archie-env": "0.1.0"},
    }  # fmt: skip
    (tmp_path / "table.json").write_text(json.dumps(values))
    assert read(tmp_path).markdown() == read(folder).markdown()
