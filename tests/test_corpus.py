"""Files that were once failures: they are read rightly where they are good, and refused by an `ArchieError` where not.

Add what ``make mutants`` or a user finds, with a name that says what is wrong with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError, NotationError
from archie_env.notation import dump, parse_all
from evaluation.duplicate.match import MatchResult
from evaluation.duplicate.report import format_match
from evaluation.results import read_json
from tests.tampering import ATTACKS

CORPUS = Path(__file__).parent / "corpus"


def files(kind: str, good: bool) -> list[Path]:
    return sorted(file for file in (CORPUS / kind).iterdir() if file.stem.startswith("good") == good)


def name(file: Path) -> str:
    return file.stem


@pytest.mark.parametrize("file", files("histories", good=True), ids=name)
def test_a_good_history_is_read(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "\n\n".join(dump(game) for game in parse_all(text)) == text.removeprefix("\ufeff")


@pytest.mark.parametrize("file", files("histories", good=False), ids=name)
def test_a_bad_history_is_refused(file: Path) -> None:
    with pytest.raises(NotationError) as caught:
        parse_all(file.read_bytes().decode("utf-8", "surrogateescape"))
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()


def test_every_attack_on_strategies_is_kept() -> None:
    assert {file.stem for file in files("strategies", good=False)} == {attack.__name__ for attack in ATTACKS}


@pytest.mark.parametrize("file", files("strategies", good=False), ids=name)
def test_an_attack_on_the_tables_of_a_strategy_is_refused(file: Path) -> None:
    with pytest.raises(ArchieError, match=r"\.npz: (slots|pot|raiser|early) holds .*: expected 0 to"):
        CFRPolicy.load(file)


@pytest.mark.parametrize("file", files("results", good=True), ids=name)
def test_a_good_result_is_read(file: Path) -> None:
    assert "call v raise: 8 duplicate deals" in format_match(MatchResult.from_dict(read_json(file)))


@pytest.mark.parametrize("file", files("results", good=False), ids=name)
def test_a_bad_result_is_refused(file: Path) -> None:
    with pytest.raises(ArchieError) as caught:
        MatchResult.from_dict(read_json(file))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000
