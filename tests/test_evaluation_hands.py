"""Hands of a match played again from its file: those that were counted, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archie_env.files import atomic_write
from archie_env.notation import parse_all
from evaluation.duplicate.command import main as play
from evaluation.hands.command import main

BOT = """
import numpy as np
class Bot:
    name = "spoiler"
    def act(self, observations, masks, rng):
        # illegal now and then, so that some hands are forfeited
        return np.where(observations.sum(axis=1) % 7 == 0, 34, masks.argmax(axis=1))
    def probabilities(self, observations, masks):
        raise NotImplementedError
"""


def chips(file: Path, deals: int, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """The totals of a match from the hands of each deal, played again one deal at a time."""
    sums = dict.fromkeys(("dealer", "big_blind", "dealer_squares", "big_blind_squares", "products"), 0)
    for deal in range(deals):
        capsys.readouterr()
        assert main([str(file), "--deal", str(deal)]) == 0
        games = parse_all(capsys.readouterr().out)
        assert [game.dealer for game in games] == [0, 1]
        assert games[0].deck == games[1].deck
        first, second = (game.result.net[0] for game in games)
        for name, value in zip(sums, (first, second, first**2, second**2, first * second), strict=True):
            sums[name] += value
    return sums


@pytest.mark.parametrize("players", [("cfr_small", "rule_based"), ("uniform", "call")])
def test_the_hands_of_all_deals_add_up_to_the_match(
    players: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "match.json"
    assert play([*players, "--deals", "18", "--chunk", "8", "--seed", "3", "--json", str(file)]) == 0
    totals = json.loads(file.read_text())["totals"]
    assert totals.pop("deals") == 18
    assert chips(file, 18, capsys) == totals


def test_forfeited_hands_are_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spoilers.py").write_text(BOT)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "match.json"
    assert play(["spoilers:Bot", "call_draw", "--deals", "12", "--seed", "3", "--json", str(file)]) == 0
    values = json.loads(file.read_text())
    assert values["faults"][0]["counts"]["illegal action"] > 0
    totals = {name: value for name, value in values["totals"].items() if name != "deals"}
    assert chips(file, 12, capsys) == totals
    (tmp_path / "spoilers.py").write_text(BOT + "# another one\n")
    assert main([str(file), "--deal", "0"]) == 2
    assert "its manifest differs: weights" in capsys.readouterr().err


def test_what_would_not_come_out_again_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, secret = tmp_path / "match.json", tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    assert play(["call", "rule_based", "--deals", "4", "--json", str(file)]) == 0
    plain = json.loads(file.read_text())

    def refused(words: str, *arguments: str, **changes: Any) -> None:
        atomic_write(file, json.dumps(plain | {"manifest": plain["manifest"] | changes}))
        capsys.readouterr()
        assert main([str(file), "--deal", "1", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1

    refused("a player had a time limit or is a bot", time_limit=1.0)
    refused("a player had a time limit or is a bot", agents=["bot:true", "call"])
    refused("its manifest differs: weights", weights=["0" * 64, None])
    refused("its manifest differs: versions.archie-env", versions=plain["manifest"]["versions"] | {"archie-env": "0.1.0"})
    refused("expected a match of two players", table=True)
    refused("chunk", chunk=10**9)
    refused("expected that of the match, None", "--secret-seed", str(secret))
    refused("expected 0 to 3", "--deal", "4")
    refused("seed 1 in the manifest, 0 in the match", seed=1)
    plain["totals"]["dealer"] += 2
    plain["totals"]["big_blind"] -= 2
    refused("the players don't play as they did")
    file.write_text("{}")
    assert main([str(file), "--deal", "0"]) == 2
    assert play(["call", "uniform", "--deals", "4", "--secret-seed", str(secret), "--json", str(tmp_path / "s.json")]) == 0
    assert main([str(tmp_path / "s.json"), "--deal", "3", "--secret-seed", str(secret)]) == 0
