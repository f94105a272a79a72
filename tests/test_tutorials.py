"""Each tutorial of the documentation, typed in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, run_page

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "my_bots", raising=False)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    output = run_page(page, tmp_path, monkeypatch)
    assert "FAULTS" not in output
    if page.stem == "write-a-bot":
        rows = (tmp_path / "results" / "table.md").read_text(encoding="utf-8").splitlines()
        assert any("my_bots:Reader" in row for row in rows)
