"""The shell of evaluation commands: options, one-line errors, progress, log lines, tables."""

from __future__ import annotations

import importlib
import io
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluation.command import Agents, JsonFile, Resume, RulesName, Seed, TimeLimit, progress, run_command, table
from evaluation.duplicate.command import main as duplicate


@dataclass(frozen=True, kw_only=True)
class Options:
    """Plays."""

    agents: Agents
    chunk: int = 8
    """Deals side by side."""
    rules: RulesName = "archie"
    seed: Seed = 0
    time_limit: TimeLimit = None
    json: JsonFile = None
    resume: Resume = False


def test_options_are_read_and_the_work_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    got: list[Options] = []
    words = ["a", "b", "--seed", "3", "--time-limit", "0.5", "--json", "x.json", "--resume"]
    assert run_command(Options, "evaluation.test", got.append, words) == 0
    assert got == [Options(agents=("a", "b"), seed=3, time_limit=0.5, json=Path("x.json"), resume=True)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chunk", "x"], "--chunk"),
        (["--time-limit", "soon"], "--time-limit soon: expected FLOAT"),
        (["--nothing"], "Unrecognized options: --nothing"),
        (["--seed"], "Missing value for argument '--seed'"),
    ],
)
def test_arguments_that_make_no_options_are_refused_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(Options, "evaluation.test", print, arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert words in printed.err
    assert printed.err.count("\n") == 1


def test_help_lists_the_options_with_their_docstrings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_command(Options, "evaluation.test", print, ["--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    for words in ("python -m evaluation.test", "Plays.", "AGENT", "Deals side by side.", "archie|barge"):
        assert words in printed


def test_an_interrupt_prints_how_to_continue(capsys: pytest.CaptureFixture[str]) -> None:
    def stop(options: Options) -> None:
        raise KeyboardInterrupt

    assert run_command(Options, "evaluation.test", stop, ["a", "--json", "x"], lambda o: f"--resume reads {o.json}") == 130
    assert "--resume reads x" in capsys.readouterr().err


KEEPING = [
    ("aivat.command", "_play", ["call", "raise"], "--json"),
    ("duplicate.command", "_play", ["call", "raise"], "--json"),
    ("tournament.round_robin", "_run", ["call", "raise"], "--out"),
    ("best_response.command", "measure", ["call"], "--out"),
    ("benchmark.command", "measure", ["call"], "--out"),
]


@pytest.mark.parametrize(("module", "work", "agents", "option"), KEEPING)
def test_commands_that_keep_results_say_alike_how_to_continue(
    module: str, work: str, agents: list[str], option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(options: object) -> None:
        raise KeyboardInterrupt

    command = importlib.import_module(f"evaluation.{module}")
    monkeypatch.setattr(command, work, stop)
    assert command.main([*agents, option, "kept"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted; --resume continues from kept"


@pytest.mark.parametrize(("module", "work", "agents", "option"), KEEPING[:-1])  # a benchmark has a folder by default
def test_commands_refuse_to_resume_from_nothing(
    module: str, work: str, agents: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert importlib.import_module(f"evaluation.{module}").main([*agents, "--resume"]) == 2
    assert f"error: --resume: expected {option} " in capsys.readouterr().err


def test_log_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def work(options: Options) -> None:
        logging.getLogger("evaluation.anything").info("1 of 2")
        logging.getLogger("training.anything").info("loss 3")
        print("result")

    assert run_command(Options, "evaluation.test", work, []) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("result\n", "1 of 2\nloss 3\n")


@pytest.mark.parametrize(("encoding", "sign"), [("ascii", rb"\xb1"), ("latin-1", b"\xb1"), ("utf-8", b"\xc2\xb1")])
def test_a_result_is_printed_whatever_the_encoding_lacks(encoding: str, sign: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished match was lost to the sign of its interval."""
    received = io.BytesIO()
    printed = io.TextIOWrapper(received, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", printed)
    assert duplicate(["call", "raise", "--deals", "8", "--rules", "mini"]) == 0
    printed.flush()
    assert b"call wins +0.0 " + sign + b" 0.0 mbb/hand" in received.getvalue()


def test_a_bar_is_shown_on_a_terminal_and_nothing_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(tell: Callable[[int], object]) -> None:
        for _ in range(4):
            tell(1000)

    with progress(4000, "deals") as tell:
        play(tell)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("evaluation.command.DELAY", 0)
    with progress(4000, "deals") as tell:
        play(tell)
    shown = capsys.readouterr().err
    assert "deals" in shown
    assert "4.00k" in shown


def test_tables_keep_marks_in_their_column_and_take_no_number_apart() -> None:
    rows = [["player", "won"], ["a", "+1.50 "], ["long name", "-10*"]]
    assert table(rows) == ["player        won", "a          +1.50", "long name    -10*"]
    assert table(rows, markdown=True) == [
        "| player    |    won |",
        "|-----------|-------:|",
        "| a         | +1.50  |",
        "| long name |   -10* |",
    ]
