"""The sample bots of docs/bots, and the exchange recorded there."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agents import load
from archie_env.actions import CALL, STAND_PAT, discard
from archie_env.cards import format_card
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from evaluation.duplicate.match import play_match
from tests.bots import PATIENT
from tests.pages import ROOT

SAMPLES = ROOT / "docs" / "bots"
PAGE = ROOT / "docs" / "bots.md"
COMMANDS = {"c": "cc", "rs": "rustc", "js": "node", "py": sys.executable, "sh": "bash"}
"""What each sample needs: a compiler, or an interpreter."""


class ThrowsHigh(UniformPolicy):
    """Checks and calls; throws unpaired cards from nine to king."""

    name = "throws_high"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.array(
            [self._discard(row) if mask[STAND_PAT] else CALL for row, mask in zip(observations, masks, strict=True)]
        )

    @staticmethod
    def _discard(row: Observations) -> int:
        hand = decode(row).hand
        ranks = [format_card(card)[0] for card in hand]
        return discard(
            hand, [card for card, rank in zip(hand, ranks, strict=True) if rank in "9TJQK" and ranks.count(rank) == 1]
        )


def command(end: str, folder: Path) -> str:
    """The command that runs a sample; compiles it if it must be."""
    program = shutil.which(COMMANDS[end])
    if program is None:
        pytest.skip(f"needs {COMMANDS[end]}")
    if end not in ("c", "rs"):
        return shlex.join([program, str(SAMPLES / f"call.{end}")])
    subprocess.run(
        [program, "-O" if end == "rs" else "-O2", "-o", "call", str(SAMPLES / f"call.{end}")], cwd=folder, check=True
    )
    return str(folder / "call")


@pytest.mark.parametrize("end", COMMANDS)
def test_a_sample_bot_plays_as_it_says(end: str, tmp_path: Path) -> None:
    player = load("call") if end == "sh" else ThrowsHigh()
    bot = load(f"bot:{PATIENT}{command(end, tmp_path)}")
    result = play_match(bot, load("rule_based"), 60, seed=2)
    assert result.totals == play_match(player, load("rule_based"), 60, seed=2).totals
    assert result.faults[0].total == 0
    assert result.faults[0].remarks == ()


def test_sample_bots_are_short_and_on_the_page() -> None:
    assert {path.name for path in SAMPLES.glob("call.*")} == {f"call.{end}" for end in COMMANDS}
    page = PAGE.read_text(encoding="utf-8")
    for end in COMMANDS:
        assert (SAMPLES / f"call.{end}").read_text(encoding="utf-8").count("\n") < 40
        assert f"bots/call.{end}" in page


def test_the_recorded_exchange_is_what_host_and_bot_say(tmp_path: Path) -> None:
    lines = (SAMPLES / "exchange.txt").read_text(encoding="utf-8").splitlines()
    said = [line[2:] for line in lines if line.startswith("> ")]
    answered = [line[2:] for line in lines if line.startswith("< ")]
    assert len(said) + len(answered) == len(lines)
    bot = shlex.join([sys.executable, str(SAMPLES / "call.py")])
    told = subprocess.run(shlex.split(bot), input="\n".join(said) + "\n", capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == answered
    tee = shlex.join(["sh", "-c", f"tee {shlex.quote(str(tmp_path / 'said'))} | {bot}"])
    play_match(load(f"bot:{PATIENT}{tee}"), load("call_draw"), 2, seed=1)
    heard = (tmp_path / "said").read_text().splitlines()
    assert heard[1:] == said[1:]
    clock = {"start": 600.0, "each": 0.1, "bank": 600.0}
    assert json.loads(heard[0]) == json.loads(said[0]) | {"seconds": clock}  # nothing else, and no seed
    assert "\n".join(lines[:6]) in PAGE.read_text(encoding="utf-8")
