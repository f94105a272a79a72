"""Results in files: manifests, hashes of weights, what is refused, and files that were tampered with."""

from __future__ import annotations

import copy
import importlib
import json
import math
import os
import random
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from archie_env.errors import ArchieError
from archie_env.files import locked
from archie_env.policy import UniformPolicy
from evaluation.benchmark.card import Card
from evaluation.benchmark.form import checked_part
from evaluation.benchmark.protocol import QUICK, SMALL
from evaluation.best_response.bound import best_response, format_bound
from evaluation.best_response.exploiters import Settings
from evaluation.duplicate.command import main
from evaluation.duplicate.match import MatchResult
from evaluation.duplicate.report import format_match
from evaluation.exploitability import solver
from evaluation.results import ResultFile, manifest, read_json, weights_hash, write_json
from evaluation.tournament.crosstable import Crosstable, format_crosstable
from evaluation.tournament.round_robin import Conditions, play, read, write
from tests.tampering import many


@pytest.mark.parametrize("module", ["duplicate.command", "aivat.command", "exploitability.measure"])
def test_a_file_that_cannot_be_written_is_found_out_before_anything_is_played(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = importlib.import_module(f"evaluation.{module}")
    for name in ("crosstable", "learn", "measure"):
        monkeypatch.setattr(command, name, None, raising=False)
    agents = ["call"] if module == "exploitability.measure" else ["call", "uniform"]
    for file, words in (
        (tmp_path, f"{tmp_path}: is a folder: expected a file that can be written"),
        (tmp_path / "none" / "x.json", "No such file or directory: expected a file that can be written"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path(f"{tmp_path}/a\0b"), "expected a file"),
    ):
        assert command.main([*agents, "--rules", "mini", "--json", str(file)]) == 2
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("duplicate.command", "crosstable", ["call", "uniform"]),
        ("aivat.command", "learn", ["call", "uniform"]),
        ("exploitability.measure", "measure", ["call"]),
        ("exploitability.solver", "solve", []),
        ("exploitability.showdowns", "showdowns", []),
        ("pictures.command", "watch", ["call", "--out", "OUT"]),
        ("best_response.command", "best_response", ["call"]),
        ("benchmark.command", "benchmark", ["call"]),
        ("tournament.round_robin", "play", ["call", "uniform", "--out", "OUT"]),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_command_ends_without_a_traceback_when_it_is_stopped(
    number: signal.Signals, module: str, name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def stop(*_: Any, **__: Any) -> Any:
        signal.raise_signal(number)

    command = importlib.import_module(f"evaluation.{module}")
    monkeypatch.setattr(command, name, stop)
    assert command.main([str(tmp_path) if text == "OUT" else text for text in arguments]) == 130
    assert re.search("stopped|interrupted", capsys.readouterr().err)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_solution_that_cannot_be_written_is_found_out_before_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(solver, "solve", None)
    (tmp_path / "file").write_text("")
    assert solver.main(["--out", str(tmp_path / "file" / "x.npz")]) == 2
    assert solver.main(["--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert "expected a folder that can be made" in told[0]
    assert "is a folder: expected a file that can be written" in told[1]


def test_a_file_that_cannot_be_moved_into_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ArchieError, match="taken: Is a directory: expected a file that can be written"):
        write_json(tmp_path / "taken", {"a": 1})
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
    write_json(tmp_path / "free", {"manifest": {"seed": 1}, "a": 1})
    assert ResultFile(tmp_path / "free", {"seed": 1}).read() == {"manifest": {"seed": 1}, "a": 1}
    assert ResultFile(tmp_path / "other", {"seed": 1}).read() is None
    with pytest.raises(ArchieError, match="free: its manifest differs: seed 1 is now 2"):
        ResultFile(tmp_path / "free", {"seed": 2}).read()
    for text in ("", "[]", "{}", '{"manifest": 3}', "\0"):
        (tmp_path / "free").write_text(text)
        with pytest.raises(ArchieError, match="free: not a file of results"):
            ResultFile(tmp_path / "free", {"seed": 1}).read()


def test_other_weights_under_the_same_name_are_noticed(tmp_path: Path) -> None:
    class Loaded(UniformPolicy):
        path: Path | None = None
        weights: dict[str, NDArray[np.float32]] | None = None

    player, file = Loaded(), tmp_path / "weights.npz"
    assert weights_hash("loaded", player) is None
    file.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert weights_hash(f"ppo:{file}", player) == expected
    player.path = file
    assert weights_hash("loaded", player) == expected
    player.path, player.weights = None, {"layer": np.zeros(3, np.float32)}
    zeros = weights_hash("loaded", player)
    player.weights["layer"][1] = 1
    assert zeros != weights_hash("loaded", player) is not None


def test_every_command_hashes_the_same_weights_alike() -> None:
    """A crosstable hashed the arrays of a shipped player, and a tournament its file."""
    by_tournament = Conditions(2, 0).manifest(("cfr_small", "call"))["weights"]
    by_name = manifest(["cfr_small", "call"], "archie")["weights"]
    loaded = [weights_hash(name, load(name)) for name in ("cfr_small", "call")]
    assert by_tournament == by_name == loaded
    assert loaded[0] is not None
    assert loaded[1] is None


def test_a_player_of_a_module_is_hashed_by_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "bots_to_hash.py"
    source.write_text("from archie_env.policy import UniformPolicy\nclass Bot(UniformPolicy):\n    pass\n")
    name = "bots_to_hash:Bot"
    first = weights_hash(name, load(name))
    source.write_text(source.read_text() + "# another bot\n")
    assert None is not first != weights_hash(name, load(name))
    del sys.modules["bots_to_hash"]


MATCH = ["call", "uniform", "--rules", "mini", "--deals", "40"]


def test_a_file_that_is_no_result_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "notes.txt"
    for text in ("Dear diary", "[1, 2]", '{"a": 1}', "\0"):
        notes.write_text(text)
        for more in ([], ["--resume"]):
            assert main([*MATCH, "--json", str(notes), *more]) == 2
            assert re.search(r"error: .*notes.txt: not a file of results .*choose another file", capsys.readouterr().err)
        assert notes.read_text() == text
    notes.write_text("")  # what mktemp leaves
    assert main([*MATCH, "--json", str(notes)]) == 0
    assert json.loads(notes.read_text())["finished"] is True


@pytest.mark.parametrize(
    ("module", "work", "arguments"),
    [
        ("exploitability.measure", "measure", ["call"]),
        ("speed.command", "run", []),
    ],
)
def test_a_command_that_resumes_nothing_writes_over_no_file(
    module: str, work: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def begin(*_: Any, **__: Any) -> Any:
        raise ArchieError("measuring began")

    command = importlib.import_module(f"evaluation.{module}")
    monkeypatch.setattr(command, work, begin)
    notes, empty, fifo = tmp_path / "notes.txt", tmp_path / "empty", tmp_path / "fifo"
    os.mkfifo(fifo)
    empty.touch()
    for text in ("Dear diary", '{"manifest": {}, "finished": true}'):
        notes.write_text(text)
        assert command.main([*arguments, "--json", str(notes)]) == 2
        assert "notes.txt: is not empty: expected another file" in capsys.readouterr().err
        assert notes.read_text() == text
    for file in (empty, fifo):
        assert command.main([*arguments, "--json", str(file)]) == 2
        assert capsys.readouterr().err == "error: measuring began\n"


def test_a_finished_result_is_not_lost_to_a_second_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "match.json"
    assert main([*MATCH, "--json", str(file)]) == 0
    printed, kept = capsys.readouterr().out, file.read_bytes()
    assert main([*MATCH, "--json", str(file)]) == 2
    assert "match.json: holds a finished result: expected --resume, another file" in capsys.readouterr().err
    assert file.read_bytes() == kept
    assert main([*MATCH, "--json", str(file), "--resume"]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == printed.splitlines()[:4]


def test_two_runs_of_one_file_are_refused_by_the_name_of_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "match.json"
    with locked(file):
        assert main([*MATCH, "--json", str(file)]) == 2
    assert f"match.json: process {os.getpid()} on" in capsys.readouterr().err
    with locked(tmp_path), pytest.raises(ArchieError, match=f"process {os.getpid()} on"):
        play(("call", "uniform"), Conditions(40, 1, "mini"), tmp_path)


def test_a_fifo_does_not_hang_a_match_and_receives_its_result_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    arguments = [*MATCH, "--chunk", "8", "--write-every", "0", "--json", str(fifo)]
    assert main(arguments) == 2  # nobody reads: the result is printed all the same
    printed = capsys.readouterr()
    assert "call v uniform: 40 duplicate deals" in printed.out
    assert "fifo: No such device or address" in printed.err
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main([*arguments, "--resume"]) == 0
        assert json.loads(os.read(reader, 1 << 20))["finished"] is True
    finally:
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("agents", [["call", "uniform"], ["call", "uniform", "raise"]])
def test_a_full_disk_does_not_lose_what_was_played(agents: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*agents, *MATCH[2:], "--json", "/dev/full"]) == 2
    printed = capsys.readouterr()
    assert "40 duplicate deals" in printed.out
    assert printed.err == "error: /dev/full: No space left on device: expected a file that can be written\n"


NONSENSE: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, -1, -(2**63), 2**63, 10**400, 1e308, 0.5),
    *(True, None, "", "NaN", "\ud800", [], {}, [[]], {"a": 1}),
)


def tampered(values: Any, rng: random.Random) -> str:
    """The text of a file with one of its values, or some of its bytes, replaced."""
    values = copy.deepcopy(values)
    place = values
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        if rng.random() < 0.7 and isinstance(place[key], (dict, list)) and place[key]:
            place = place[key]
            continue
        break
    if rng.random() < 0.2 and isinstance(place, dict):
        del place[key]
    elif rng.random() < 0.1 and isinstance(place, list):
        place.append(place[key])
    else:
        place[key] = rng.choice(NONSENSE)
    text = json.dumps(values, indent=1)
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = (
            text[:at] + rng.choice(["", "[" * 5000, "9" * 5000, "\0", "}", text[at + 1 :], "é"]) + text[at + rng.randrange(9) :]
        )
    return text


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A match, a crosstable and a tournament."""
    folder = tmp_path_factory.mktemp("results")
    assert main([*MATCH, "--json", str(folder / "match.json")]) == 0
    assert main(["call", *MATCH, "--json", str(folder / "crosstable.json")]) == 0
    write(play(("call", "uniform", "raise"), Conditions(40, 1, "mini"), folder), folder)
    return folder


def read_match(path: Path, made: dict[str, Any]) -> None:
    format_match(MatchResult.from_dict(ResultFile(path, made).read() or {}))


def read_crosstable(path: Path, made: dict[str, Any]) -> None:
    format_crosstable(Crosstable.from_dict(ResultFile(path, made).read() or {}))


def read_tournament(path: Path, made: dict[str, Any]) -> None:
    read(path.parent).markdown()


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("name", "reader"), [("match.json", read_match), ("crosstable.json", read_crosstable), ("table.json", read_tournament)]
)
def test_tampered_results_are_read_rightly_or_refused(
    name: str, reader: Callable[[Path, dict[str, Any]], None], results: Path, tmp_path: Path
) -> None:
    """700 files of each kind; 107 of 1,500 ended in tracebacks, and NaN was accepted."""
    values, rng, refused = read_json(results / name), random.Random(1), list[str]()
    path = tmp_path / name
    path.write_text(json.dumps(values))
    reader(path, values["manifest"])
    for _ in range(700):
        text = tampered(values, rng)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            reader(path, values["manifest"])
        except ArchieError as error:
            refused.append(str(error))
    assert len(refused) > 300
    assert all(text.isprintable() and len(text) < 2000 for text in refused)


@pytest.mark.parametrize("value", [math.nan, math.inf, -(2**40), 0.5, True, "1", None, 2**80])
@pytest.mark.parametrize("name", ["deals", "dealer_squares", "products"])
def test_no_sum_of_a_match_may_be_anything_but_a_possible_whole_number(name: str, value: Any, results: Path) -> None:
    values = read_json(results / "match.json")
    values["totals"][name] = value
    with pytest.raises(ArchieError, match="totals"):
        MatchResult.from_dict(values)


SETTINGS = Settings(deals=8, seed=1, exploiters=("raise",))


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lower bound."""
    folder = tmp_path_factory.mktemp("bound")
    best_response("call", "mini", SETTINGS, folder)
    return folder


@pytest.mark.mutants
@pytest.mark.parametrize("name", ["raise.attempt.json", "bound.json"])
def test_a_bound_goes_on_rightly_from_tampered_files_or_refuses_them(name: str, bound: Path) -> None:
    file, refused = bound / name, list[str]()
    values, rng = json.loads(file.read_text()), random.Random(name)
    whole = file.read_bytes()
    for _ in range(many(40, 200)):
        file.write_text(tampered(values, rng), encoding="utf-8", errors="surrogatepass")
        try:
            format_bound(best_response("call", "mini", SETTINGS, bound, resume=True))
        except ArchieError as error:
            refused.append(str(error))
        file.write_bytes(whole)
    assert len(refused) > many(8, 40)
    assert all(text.isprintable() and len(text) < 2000 for text in refused)


def test_an_attempt_may_not_name_another_opponent(bound: Path) -> None:
    """A name is loaded, and the module of ``module:Name`` imported: that must not come from a file."""
    file = bound / "raise.attempt.json"
    whole = file.read_bytes()
    file.write_text(json.dumps(json.loads(whole) | {"name": "antigravity:fly"}))
    with pytest.raises(ArchieError, match="the attempt of raise names 'antigravity:fly': expected raise"):
        best_response("call", "mini", SETTINGS, bound, resume=True)
    assert "antigravity" not in sys.modules
    file.write_bytes(whole)


def card_of(parts: dict[str, Any]) -> Card:
    exact = {rules: parts[f"exact-{rules}"] for rules in SMALL}
    made: dict[str, Any] = {"versions": {}, "machine": "", "time_limit": None}
    return Card("call", {}, QUICK, exact, parts["crosstable"], parts["bound"], parts["speed"], made)


@pytest.mark.mutants
@pytest.mark.parametrize("name", ["exact-mini", "crosstable", "bound", "speed"])
def test_tampered_parts_of_a_card_are_shown_or_refused(name: str) -> None:
    number = {"mbb_per_hand": 1.5, "standard_error": 0.5}
    exact = {"exploitability_mbb": 3.0, "form": "full", "rows_asked": 9}
    faults = {"counts": {"exception": 1}, "reports": ["first"]}
    parts: dict[str, Any] = {
        "exact-mini": exact,
        "exact-midi": {"missing": "too large"},
        "speed": {"batch": [9.0], "single": [1.0]},
    }
    parts |= {"crosstable": {"row": {"rule_based": number, "call": number}, "total": number, "faults": faults}}
    parts |= {"bound": {"lower_bound": number, "chosen": "raise", "text": "one\ntwo", "more": [1]}}
    for part in parts:
        assert checked_part(part, parts[part]) == parts[part]
    rng, refused, count = random.Random(name), list[str](), many(100, 500)
    for _ in range(count):
        try:
            part = json.loads(tampered(parts[name], rng))
        except (ValueError, RecursionError):
            continue
        try:
            card_of(parts | {name: checked_part(name, part)}).markdown().encode("utf-8", "backslashreplace")
        except ArchieError as error:
            refused.append(str(error))
    assert len(refused) > count // 8
    assert all(text.isprintable() for text in refused)
