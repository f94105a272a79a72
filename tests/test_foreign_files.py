"""Commands write over nothing but results of their own kind, and find that out before anything is computed."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agents import load
from agents.registry import WEIGHTS
from archie_env.errors import ArchieError
from archie_env.files import locked
from evaluation.benchmark.card import Card
from evaluation.benchmark.protocol import QUICK
from evaluation.pictures.play_style import watch
from evaluation.plotting import picture, save
from evaluation.results import write_json
from evaluation.tournament.round_robin import Conditions, play, write

BEGAN = "the work began"
NOTES = b"Dear diary, nothing of this may be lost.\n"
JSON = b'{"name": "somebody else\'s", "version": 1}\n'


def begin(*_: Any, **__: Any) -> Any:
    raise ArchieError(BEGAN)


class Writer:
    """A command, the function with which its work begins, and the files it writes into ``--out`` or ``--json``."""

    def __init__(self, main: str, work: str, arguments: Sequence[str], *files: str, option: str = "--out") -> None:
        self.main = importlib.import_module(main).main
        module, _, self.work = work.rpartition(".")
        self.module = importlib.import_module(module or main)
        self.arguments, self.files, self.option = list(arguments), files, option

    def run(self, folder: Path) -> int:
        out = folder if self.option == "--out" else folder / self.files[0]
        if self.files == ("solution.npz",):
            out = folder / self.files[0]
        status = self.main([*self.arguments, self.option, str(out)])
        assert isinstance(status, int)
        return status


RULES = ["--rules", "mini"]
TABLES = ("table.json", "table.md", "cells.csv", "ranking.csv", "table.png")
WRITERS = {
    "pictures": Writer(
        "evaluation.pictures.command", "watch", ["call", *RULES], "play_style.json", "play_style.png", "starting_hands.png"
    ),
    "curves": Writer("evaluation.pictures.command", "read_curves", ["--curves", "runs/a"], "learning_curves.png"),
    "tournament": Writer("evaluation.tournament.round_robin", "play", ["call", "uniform", *RULES], *TABLES),
    "benchmark": Writer(
        "evaluation.benchmark.command",
        "evaluation.benchmark.measurement._measured",
        ["call", "--quick"],
        "card.json",
        "card.md",
        *(f"crosstable/{name}" for name in TABLES),
    ),
    "best_response": Writer(
        "evaluation.best_response.command",
        "evaluation.best_response.bound._measure",
        ["call", "--exploiters", "cfr", "ppo"],
        "cfr.npz",
        "ppo.npz",
    ),
    "solver": Writer("evaluation.exploitability.solver", "solve", [], "solution.npz"),
    "duplicate": Writer("evaluation.duplicate.command", "crosstable", ["call", "uniform"], "x.json", option="--json"),
    "aivat": Writer("evaluation.aivat.command", "learn", ["call", "uniform"], "x.json", option="--json"),
    "exploitability": Writer("evaluation.exploitability.measure", "measure", ["call"], "x.json", option="--json"),
    "speed": Writer("evaluation.speed.command", "run", [], "x.json", option="--json"),
    "ppo": Writer(
        "training.ppo.trainer", "_train", ["--config", "configs/ppo/smoke.toml", "--fresh"], "policy.npz", "checkpoint.npz"
    ),
    "cfr": Writer(
        "training.cfr.trainer", "_train", ["--config", "configs/cfr/mini.toml", "--fresh"], "strategy.npz", "checkpoint.npz"
    ),
    "cfr best response": Writer("training.cfr.best_response", "_train", ["call", "--seconds", "1"], "response.npz"),
}
ROWS = [(name, file) for name, writer in WRITERS.items() for file in writer.files]


@pytest.fixture
def begins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Writer:
    """The command of the test, its work replaced by an error that says that it began."""
    writer = WRITERS[request.node.callspec.params["name"]]
    monkeypatch.setattr(writer.module, writer.work, begin)
    return writer


def png(folder: Path) -> bytes:
    """An image of somebody else's."""
    Image.new("RGB", (8, 8), "red").save(folder / "red.png")
    content = (folder / "red.png").read_bytes()
    (folder / "red.png").unlink()
    return content


def archive(folder: Path) -> bytes:
    """Arrays of somebody else's."""
    np.savez(folder / "other.npz", policy=np.zeros(9))
    content = (folder / "other.npz").read_bytes()
    (folder / "other.npz").unlink()
    return content


@pytest.mark.parametrize("kind", ["notes", "json", "image", "archive"])
@pytest.mark.parametrize(("name", "file"), ROWS)
def test_a_foreign_file_is_refused_before_anything_is_computed_and_stays(
    name: str, file: str, kind: str, begins: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"notes": NOTES, "json": JSON, "image": png(tmp_path), "archive": archive(tmp_path)}[kind]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(content)
    assert begins.run(tmp_path) == 2
    printed = capsys.readouterr()
    assert BEGAN not in printed.err
    assert printed.err.startswith(f"error: {tmp_path / file}: ")
    assert "expected another" in printed.err or "choose another file" in printed.err
    assert len(printed.err) < 1500
    assert (tmp_path / file).read_bytes() == content


@pytest.mark.parametrize(("name", "file"), ROWS)
def test_a_folder_in_the_place_of_a_file_is_refused_and_an_empty_file_is_not(
    name: str, file: str, begins: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).mkdir(parents=True)
    assert begins.run(tmp_path) == 2
    assert f"{tmp_path / file}: is a folder: expected a file that can be written" in capsys.readouterr().err
    (tmp_path / file).rmdir()
    (tmp_path / file).touch()
    assert begins.run(tmp_path) == 2
    assert BEGAN in capsys.readouterr().err


@pytest.mark.parametrize(("name", "file"), ROWS)
def test_a_fifo_or_device_in_the_place_of_a_file_does_not_hang(
    name: str, file: str, begins: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / file)
    assert begins.run(tmp_path) == 2
    assert BEGAN in capsys.readouterr().err
    (tmp_path / file).unlink()
    for device in ("/dev/null", "/dev/stdout"):
        (tmp_path / file).symlink_to(device)
        assert begins.run(tmp_path) == 2
        assert BEGAN in capsys.readouterr().err
        assert os.readlink(tmp_path / file) == device
        (tmp_path / file).unlink()


@pytest.mark.parametrize("name", [name for name, writer in WRITERS.items() if writer.option == "--out" and name != "solver"])
def test_what_is_no_folder_is_no_place_for_results(
    name: str, begins: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_bytes(NOTES)
    os.mkfifo(tmp_path / "fifo")
    for place in (tmp_path / "notes.txt", tmp_path / "fifo", Path("/dev/stdout")):
        assert begins.run(place) == 2
        printed = capsys.readouterr()
        assert BEGAN not in printed.err
        assert f"{place}" in printed.err
    assert (tmp_path / "notes.txt").read_bytes() == NOTES


@pytest.mark.parametrize("name", WRITERS)
def test_two_runs_in_one_place_are_refused_by_the_name_of_the_process(
    name: str, begins: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_file = begins.option == "--json" or name == "solver"
    if name == "tournament":
        monkeypatch.setattr(begins.module, "play", play)  # which takes the lock
    with locked(tmp_path / begins.files[0] if one_file else tmp_path):
        assert begins.run(tmp_path) == 2
    assert f"process {os.getpid()} on" in capsys.readouterr().err


def card() -> Card:
    missing = {"missing": "it is a test"}
    exact = {"mini": missing, "midi": missing}
    return Card("call", {}, QUICK, exact, missing, missing, missing, {"versions": {}, "machine": "none"})


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every kind that is replaced."""
    folder = tmp_path_factory.mktemp("ours")
    write(play(("call", "raise"), Conditions(4, 1, "mini")), folder)
    card().write(folder)
    style, _ = watch(load("call", "mini"), None, 4, 1, "mini")
    write_json(folder / "play_style.json", style.to_dict())
    for name in ("play_style", "starting_hands", "learning_curves"):
        save(picture(1, 1), folder / f"{name}.png")
    shutil.copy(WEIGHTS / "solution-mini.npz", folder / "solution.npz")
    shutil.copy(WEIGHTS / "cfr_small.npz", folder / "cfr.npz")
    for name in ("strategy", "response"):
        shutil.copy(WEIGHTS / "cfr_small.npz", folder / f"{name}.npz")
    for name in ("ppo", "policy"):
        shutil.copy(WEIGHTS / "ppo.npz", folder / f"{name}.npz")
    return folder


REPLACED = [(name, file) for name, file in ROWS if WRITERS[name].option == "--out" and file != "checkpoint.npz"]


@pytest.mark.parametrize(("name", "file"), REPLACED)
def test_a_result_of_the_same_kind_may_be_replaced(
    name: str, file: str, begins: Writer, ours: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    shutil.copy(ours / Path(file).name, tmp_path / file)
    assert begins.run(tmp_path) == 2
    assert BEGAN in capsys.readouterr().err


@pytest.mark.parametrize(("name", "file"), REPLACED)
def test_a_result_of_another_kind_is_refused(
    name: str, file: str, begins: Writer, ours: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {".npz": "ppo.npz" if name in ("solver", "cfr", "cfr best response") or file == "cfr.npz" else "cfr.npz"}
    others |= {".json": "card.json" if file != "card.json" else "play_style.json", ".png": "card.md", ".csv": "card.md"}
    others[".md"] = "card.md" if Path(file).name == "table.md" else "table.md"
    (tmp_path / file).parent.mkdir(exist_ok=True)
    shutil.copy(ours / others[Path(file).suffix], tmp_path / file)
    assert begins.run(tmp_path) == 2
    assert BEGAN not in capsys.readouterr().err


def test_pictures_say_that_they_are_ours(ours: Path) -> None:
    with Image.open(ours / "table.png") as drawn:
        assert drawn.info["Software"] == "archie-env"
    assert json.loads((ours / "play_style.json").read_text())["agent"] == "call"
