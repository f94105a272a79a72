"""The table as text and as a picture: readable, the same for equal views, and silent about hidden cards."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from pettingzoo.test import render_test

from archie_env import archie_v0
from archie_env.cards import format_card
from archie_env.game import Game
from archie_env.rendering.text import ansi, rgb_array
from archie_env.rules import PRESETS, Rules

DEEP = Rules(stakes=((999, 1000), (1000, 1000, 1000, 1000)), raise_cap=6)  # type: ignore[arg-type]
SPLIT = "9c As 9h 2d 7d 3c 7s 4h 2c 7h"
"""Player_1, in the big blind, gets two pair; player_0 a seven-four low."""


def positions(rules: Rules | str, seed: int, **options: object) -> Iterator[Game]:
    """Every position of a hand played at random."""
    game = Game(rules, seed=seed, **options)  # type: ignore[arg-type]
    random = np.random.default_rng(seed)
    yield game
    while not game.over:
        legal = [a for a in game.legal_actions() if a or random.random() < 0.1]
        game.apply(int(random.choice(legal)))
        yield game


def called_down(**options: object) -> Game:
    """A hand that both players check and stand pat to the end."""
    game = Game(**options)  # type: ignore[arg-type]
    while not game.over:
        game.apply(3 if game.drawing else 1)
    return game


def test_betting_round_1_reads_as_a_table() -> None:
    game = Game(deck="9c As 9h 2d 7d 3c 7s 4h 2c 5s", dealer=0)
    game.apply(2)
    assert ansi(game.view(1), game.rules, {"player_0": 100, "player_1": 90}).splitlines() == [
        "Archie (rules archie): betting round 1 of 4                                                   pot 6",
        "-" * 99,
        "  seat      position   cards           stack  paid  draws",
        "  player_0  dealer     ?? ?? ?? ?? ??    100     4  -",
        "> player_1  big blind  2c 7d 7s 9c 9h     90     2  -      nines and sevens, no low",
        "-" * 99,
        "Round 1: player_0 posts 1, player_1 posts 2, player_0 raises to 4",
        "-" * 99,
        "player_1 to act: fold (0), call 2 (1), raise to 6 (2)",
    ]


def test_a_committed_discard_shows_to_its_owner_and_from_above_only() -> None:
    game = Game(deck="9c As 9h 2d 7d 3c 7s 4h 2c 5s", dealer=0)
    for action in (1, 1, 3 + 1):
        game.apply(action)
    seen = [ansi(game.view(seat), game.rules) for seat in (0, 1, None)]
    assert ["player_1 draws one (committed)" in text for text in seen] == [False, True, True]
    assert "player_0 to draw: stand pat (3), discard (3 + for each card: 2d 1, 3c 2, 4h 4, 5s 8, As 16)" in seen[0]
    game.apply(3)
    assert "Draw 1:  player_1 draws one, player_0 stands pat" in ansi(game.view(0), game.rules)


def test_a_split_pot_tells_who_won_which_half_and_why() -> None:
    lines = ansi(called_down(deck=SPLIT, dealer=0).view(0), Rules()).splitlines()
    assert lines[-3:] == [
        "High half, 2 to player_1: player_1 has nines and sevens, 2; player_0 has ace high, 7-4-3-2",
        "Low half, 2 to player_0: player_0 has seven-four low, 7-4-3-2-A; player_1 has no low",
        "Result: player_0 0, player_1 0 chips",
    ]


def test_you_takes_its_verbs_without_an_s() -> None:
    game = called_down(deck=SPLIT, dealer=0)
    text = ansi(game.view(0), game.rules, names=("you", "rule_based"))
    assert "you post 1, rule_based posts 2, you call, rule_based checks" in text
    assert "you have seven-four low, 7-4-3-2-A; rule_based has no low" in text


@pytest.mark.parametrize("rules", [*PRESETS, DEEP])
def test_lines_fit_and_wagers_of_events_are_the_chips_paid(rules: Rules | str) -> None:
    for seed in range(15):
        for game in positions(rules, seed):
            for seat in (0, 1, None):
                names = ("you", "an-agent-with-a-name-that-never-ends") if seat == 0 else ("player_0", "player_1")
                text = ansi(game.view(seat), game.rules, {"player_0": 123456, "player_1": 48}, names)
                assert max(map(len, text.splitlines())) <= 100
                assert text.isascii()
            wagers = {(event.round, event.seat): event.to for event in game.history if event.kind in ("post", "bet")}
            assert tuple(sum(to for (_, s), to in wagers.items() if s == seat) for seat in (0, 1)) == game.paid


@pytest.mark.parametrize("draw_order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("seat", [0, 1])
def test_hidden_cards_change_no_byte(seat: int, draw_order: str) -> None:
    rules = Rules(draw_order=draw_order)  # type: ignore[arg-type]
    actions = (2, 1, 3 + 5, 3 + 9, 2, 1)  # both replace two cards
    dealt = [*range(1 - seat, 10, 2), *((12, 13) if seat == 0 else (10, 11))]  # player_1, the big blind, comes first (R5.3)
    original = Game(rules, seed=3, dealer=0).deck
    hidden_places = [place for place in range(52) if place not in dealt]
    told, painted = set(), set()
    for permutation in range(40):
        deck = np.array(original)
        deck[hidden_places] = np.random.default_rng(permutation).permutation(deck[hidden_places])
        game = Game(rules, deck=deck.tolist(), dealer=0)
        seen = []
        for action in actions:
            seen.append(ansi(game.view(seat), rules))
            assert not {format_card(card) for card in game.hands[1 - seat]} & set(re.split(r"\W", seen[-1]))
            if permutation < 5:
                painted.add((len(seen), rgb_array(game.view(seat), rules).tobytes()))
            game.apply(action)
        told.add("".join(seen))
    assert len(told) == 1
    assert len(painted) == len(actions)


def test_a_hand_given_up_stays_face_down() -> None:
    game = Game(seed=4, dealer=0)
    game.apply(2)
    game.apply(0)
    text = ansi(game.view(0), game.rules)
    assert "?? ?? ?? ?? ??" in text
    assert text.splitlines()[-2:] == [
        "Whole pot, 6 to player_0: player_1 folded",
        "Result: player_0 +2, player_1 -2 chips",
    ]


@pytest.mark.parametrize("rules", [*PRESETS, DEEP])
def test_pictures_of_whole_hands(rules: Rules | str) -> None:
    for game in positions(rules, 11):
        picture = rgb_array(game.view(0), game.rules, {"player_0": 10**9, "player_1": 48})
        assert picture.shape == (650, 1000, 3)
        assert picture.dtype == np.uint8
        assert picture.std() > 20


def test_pictures_show_cards_turned_up_and_are_repeatable() -> None:
    game = Game(deck=SPLIT, dealer=0)
    face_down, face_up = rgb_array(game.view(0), game.rules), rgb_array(game.view(), game.rules)
    assert np.array_equal(face_down, rgb_array(game.view(0), game.rules))
    far_cards = np.s_[98:216, 274:726]
    changed = (face_down[far_cards] != face_up[far_cards]).any(axis=2).mean()
    assert changed > 0.5
    near_cards = np.s_[420:530, 274:726]
    assert np.array_equal(face_down[near_cards], face_up[near_cards])


def test_long_texts_end_in_dots_within_their_width() -> None:
    from archie_env.rendering import artwork as art

    text = "player_0 has ace-high straight flush; player_1 has kings full of queens; and much more than fits"
    for lines in (1, 2):
        rows = art.wrapped(text, 15, 300, lines)
        assert len(rows) == lines
        assert rows[-1].endswith("...")
        assert all(art.text_width(row, 15) <= 300 for row in rows)
    assert art.wrapped("short", 15, 300) == ["short"]
    assert art.text_width(text[:40], art.fitting(text[:40], 30, 250)) <= 250


def test_the_environment_renders() -> None:
    render_test(archie_v0.env)


def test_without_pillow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("archie_env.rendering.picture", "archie_env.rendering.artwork"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("archie_env.rendering.picture", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    game = Game(seed=1)
    with pytest.raises(ImportError, match=r'pip install "archie-env\[render\]"'):
        rgb_array(game.view(), game.rules)


def test_nothing_imports_pillow_before_a_picture_is_wanted() -> None:
    code = (
        "import sys, archie_env.rendering.text, archie_env.terminal.main, archie_env.archie_v0; sys.exit('PIL' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
