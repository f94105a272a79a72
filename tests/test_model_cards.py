"""Every player that ships has a model card."""

from __future__ import annotations

from pathlib import Path

from agents import names, weights_file

CARDS = Path(__file__).parents[1] / "docs/models"


def test_every_player_that_ships_has_a_card_and_no_other_has() -> None:
    shipped = {name for name in names() if ":" not in name and weights_file(name)}
    assert {card.stem for card in CARDS.glob("*.md")} == shipped
    for name in shipped:
        text = (CARDS / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith("---\nlicense: mit\n")
        assert f"agents/weights/{name}.npz" in text
