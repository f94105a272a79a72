"""The shell around commands: encodings, closed and full streams, interrupts. Commands run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from archie_env import notation
from archie_env.errors import ArchieError, printable
from archie_env.game import Game
from archie_env.terminal.shell import error_line, run

ROOT = Path(__file__).parents[1]
ARCHIE = f"{sys.executable} -m archie_env"
PLAY = f"{ARCHIE} play --opponent uniform --seed 1 --seat dealer --hands 1"


def shell(line: str, given: bytes = b"", **variables: str) -> tuple[int, bytes, bytes]:
    """Exit status, output and errors of a line of bash."""
    done = subprocess.run(
        ["bash", "-c", line],
        input=given,
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
    )
    return done.returncode, done.stdout, done.stderr


def history() -> str:
    game = Game(seed=7, dealer=0)
    game.apply(2)
    game.apply(0)
    return notation.dump(game)


def test_bytes_that_are_no_text_are_asked_about_again() -> None:
    status, out, err = shell(PLAY, b"\xff\xfe\ncall \xc3\x28\nfold\n", PYTHONIOENCODING="utf-8")
    assert (status, err) == (0, b"")
    assert out.count(b"is no action (help lists them)") == 2
    assert b"1 hand played; you are at -1 chips." in out


def test_a_name_that_the_encoding_lacks_is_printed_as_an_escape(tmp_path: Path) -> None:
    (tmp_path / "bots.py").write_text(
        "from archie_env import UniformPolicy\nbot = UniformPolicy()\nbot.name = 'Zo\u00eb \u2660'\n", encoding="utf-8"
    )
    line = f"cd {tmp_path} && {ARCHIE} play --opponent bots:bot --seed 1 --seat dealer --hands 1"
    status, out, err = shell(line, b"f\n", PYTHONIOENCODING="ascii")
    assert (status, err) == (0, b"")
    assert rb"You play Zo\xeb \u2660" in out


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_histories_are_utf_8_in_every_locale_with_or_without_a_byte_order_mark(tmp_path: Path, locale: str) -> None:
    text = history().replace("As", "A\N{BLACK SPADE SUIT}").encode("utf-8-sig")
    (tmp_path / "hand.txt").write_bytes(text)
    setting = f"LC_ALL={locale} PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"
    from_file = shell(f"{setting} {ARCHIE} replay {tmp_path}/hand.txt")
    from_input = shell(f"{setting} {ARCHIE} replay -", text)
    assert from_file == from_input
    assert from_file[0] == 0
    assert b"player_0 +2" in from_file[1]


def test_a_path_that_is_not_utf_8_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    status, _, err = shell(f"{ARCHIE} replay {tmp_path}/$'\\xff.txt'")
    assert status == 2
    assert b"No such file" in err
    assert rb"\udcff.txt" in err
    with open(path, "wb") as file:
        file.write(history().encode())
    assert shell(f"{ARCHIE} replay {tmp_path}/$'\\xff.txt'")[0] == 0


def test_closed_streams_end_no_command(tmp_path: Path) -> None:
    saved = tmp_path / "hands.txt"
    status, out, err = shell(f"{PLAY} <&-")
    assert (status, err) == (0, b"")
    assert b"1 hand played; you are at -1 chips." in out
    assert shell(f"{PLAY} --save {saved} >&-", b"f\n") == (0, b"", b"")
    assert len(notation.parse_all(saved.read_text(encoding="utf-8"))) == 1
    assert shell(f"{ARCHIE} rules whist 2>&-")[::2] == (2, b"")
    assert shell(f"{ARCHIE} rules whist >&- 2>&- <&-") == (2, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named_in_one_line() -> None:
    assert shell(f"{ARCHIE} rules > /dev/full") == (2, b"", b"archie: standard output: No space left on device\n")
    assert shell(f"{ARCHIE} rules > /dev/full 2> /dev/full") == (2, b"", b"")
    assert shell(f"{ARCHIE} rules whist 2> /dev/full") == (2, b"", b"")


def test_a_reader_that_goes_away_causes_no_message() -> None:
    status, out, err = shell(f"{ARCHIE} rules | head -c 5; echo ${{PIPESTATUS[0]}}")
    assert (status, err) == (0, b"")
    assert out.startswith(b"Archi")


def test_error_lines_are_single_and_printable() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_line(ArchieError("a\nb\x1b[2J\udcff")) == r"a; b\x1b[2J\udcff"
    assert error_line(UnreadableError()) == "UnreadableError"
    assert error_line(MemoryError()) == "MemoryError"
    assert printable("Zo\u00eb \u2660") == "Zo\u00eb \u2660"


def test_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    def raising(error: BaseException) -> int:
        def work() -> None:
            print("before")
            raise error

        return run(work, "tool", "go on with --resume")

    assert run(lambda: None) == 0
    assert raising(ArchieError("bad\ninput")) == 2
    assert raising(OSError(28, "No space left on device", "file")) == 2
    assert raising(KeyboardInterrupt()) == 130
    out, err = capsys.readouterr()
    assert out == "before\n" * 3
    assert err == "tool: bad; input\ntool: [Errno 28] No space left on device: 'file'\n\ngo on with --resume\n"
