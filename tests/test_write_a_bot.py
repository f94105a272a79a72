"""The tutorial "Write a bot", typed in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, run_page


def test_every_block_runs_and_ends_in_a_row_of_a_tournament(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "my_bots", raising=False)
    output = run_page(ROOT / "docs/tutorials/write-a-bot.md", tmp_path, monkeypatch)
    assert "my_bots:Gambler v call" in output
    assert "FAULTS" not in output
    rows = [
        line for line in (tmp_path / "results/table.md").read_text(encoding="utf-8").splitlines() if "my_bots:Reader" in line
    ]
    assert rows
