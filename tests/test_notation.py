"""Hand histories: exact inverses, a reviewable golden file, and lies found out."""

from __future__ import annotations

import contextlib
import functools
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archie_env._core.jit import JIT_DISABLED
from archie_env.cards import parse_cards
from archie_env.errors import NotationError, OrderError
from archie_env.game import Game
from archie_env.notation import dump, parse, parse_all, transcript
from archie_env.rendering.text import ansi
from archie_env.rules import PRESETS, Rules, Stakes
from tests.tampering import many

GOLDEN = Path(__file__).parent / "golden" / "hands.txt"
VARIANTS = {**PRESETS, "odd": Rules(stakes=Stakes((1, 3), (3, 3, 6, 6)), raise_cap=2), "none": Rules(low_qualifier=None)}
SCALE = 1 if not JIT_DISABLED else 10


def played(rules: Rules, seed: int, replacements: str = "shared") -> Game:
    """A random hand, often unfinished."""
    chance = random.Random(seed)
    game = Game(rules, seed=seed, replacements=replacements)  # type: ignore[arg-type]
    for _ in range(chance.randrange(45)):
        if not game.over:
            legal = list(game.legal_actions())
            game.apply(chance.choice(legal[1:] if legal[0] == 0 and chance.random() < 0.9 else legal))
    return game


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("replacements", ["shared", "per_seat"])
def test_dump_and_parse_are_exact_inverses(name: str, replacements: str) -> None:
    for seed in range(60 // SCALE):
        game = played(VARIANTS[name], seed, replacements)
        text = dump(game)
        again = parse(text)
        assert again == game
        assert dump(again) == text
        assert again.history == game.history
        if game.over:
            assert again.result == game.result
        else:
            action = game.legal_actions()[-1]
            game.apply(action)
            again.apply(action)
            assert again == game
            assert again.hands == game.hands


def test_golden_hands_read_as_a_person_would_tell_them() -> None:
    """Reviewed by eye: a fold, a split pot, a three-quarter pot, nobody qualifying under two rules, a mini hand."""
    text = GOLDEN.read_text()
    games = parse_all(text)
    assert "\n".join(map(dump, games)) == text
    assert len(games) == 6
    assert {len(g.result.awards) for g in games} == {1, 2}
    assert {g.rules.name for g in games} >= {"archie", "pagat", "mini"}


def test_every_changed_line_is_found_out() -> None:
    """Any single line swapped for another of the same hand, removed or doubled is refused with its number."""
    game = Game(seed=3)
    while not game.over:
        game.apply(3 + 5 if game.drawing else 2 if 2 in game.legal_actions() else 1)
    lines = dump(game).splitlines()
    chance = random.Random(1)
    for place in range(len(lines)):
        for change in ("swap", "remove", "double", "spoil"):
            changed = lines.copy()
            if change == "swap":
                other = chance.choice([line for line in lines if line != lines[place]])
                changed[place] = other
            elif change == "remove":
                del changed[place]
            elif change == "double":
                changed.insert(place, lines[place])
            else:
                changed[place] = changed[place].replace("player_", "player-", 1).replace("deck", "dekc").replace("r", "R", 1)
            if changed != lines:
                with pytest.raises(NotationError, match=r"line \d+"):
                    parse("\n".join(changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'Archie hand history 1'"),
        ("Archie hand history 1", "line 2: expected 'rules ...', found the end of the text"),
        ("Archie hand history 1\nrules x", "line 2: rules 'x': expected one of archie"),
        ("Archie hand history 1\nrules archie\nreplacements shared\ndeck As", "line 5: expected 'player_1 ...'"),
        ("Archie hand history 1\nrules archie\nreplacements shared\ndeck As\nplayer_0 posts", "line 4: deck of 1 cards"),
        ("Archie hand history 1\nrules archie\nreplacements odd\ndeck As\nplayer_0 posts", "line 4: deck of 1 cards"),
        ("Archie hand history 1\nrules " + "[" * 3000, "line 2: rules '[[["),
        ('Archie hand history 1\nrules {"draws": ' + "9" * 5000, 'line 2: rules \'{"draws": 999'),
        ('Archie hand history 1\nrules {"draws": ' + "[" * 900 + "]" * 900 + "}", "line 2: draws [[["),
        ('Archie hand history 1\nrules {"draws": 9}', "line 2: draws 9: expected a whole number 0 to 3"),
    ],
)
def test_bad_texts_name_the_line(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=re.escape(message)):
        parse(text)


@pytest.mark.parametrize("text", [None, 3, b"Archie hand history 1", ["Archie hand history 1"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    for read in (parse, parse_all):
        with pytest.raises(NotationError, match=f"expected text, found {type(text).__name__}"):
            read(text)


@functools.cache
def text_of(name: str, seed: int) -> str:
    return dump(played(VARIANTS[name], seed))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A history with some of its text replaced by other text, often text of the same kind."""
    text = text_of(draw(st.sampled_from(sorted(VARIANTS))), draw(st.integers(0, 9)))
    for _ in range(draw(st.integers(0, 3))):
        start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        end = min(end, start + draw(st.sampled_from([0, 1, 2, 5, 40])))
        piece = st.one_of(
            st.text(max_size=5), st.sampled_from(["\n", "\n\n", "{", "[" * 2000, "9" * 5000, "As", "null", "player_0"])
        )
        text = text[:start] + draw(piece) + text[end:]
    return text


@pytest.mark.mutants
@settings(max_examples=many(200, 20_000) // SCALE, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.text(), damaged(), damaged()))
def test_any_text_is_a_history_or_refused(text: str) -> None:
    for read in (parse, parse_all):
        with contextlib.suppress(NotationError):
            found = read(text)
            for game in found if isinstance(found, list) else [found]:
                assert parse(dump(game)) == game
                transcript(game)


def test_errors_in_several_hands_name_the_hand() -> None:
    good = dump(played(Rules(), 1))
    assert len(parse_all(f"{good}\n\n{good}")) == 2
    with pytest.raises(NotationError, match=f"hand 2, which begins in line {len(good.splitlines()) + 2}: line 3"):
        parse_all(f"{good}\n{good.replace('replacements shared', 'replace')}")


def test_custom_rules_travel_with_the_hand() -> None:
    rules = replace(VARIANTS["odd"], high_qualifier="T")
    assert parse(dump(Game(rules, seed=1))).rules == rules


def test_the_readme_shows_the_hand_in_docs() -> None:
    root = Path(__file__).parents[1]
    hand = parse((root / "docs" / "hand.txt").read_text())
    assert "\n".join(transcript(hand)) in (root / "README.md").read_text()


def test_a_byte_order_mark_is_no_part_of_a_history() -> None:
    text = dump(played(Rules(), 1))
    assert parse("\ufeff" + text) == parse(text)
    assert parse_all("\ufeff" + text) == parse_all(text)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_hand_given_up_has_an_exact_inverse(name: str) -> None:
    for seed in range(20):
        for seat in (0, 1):
            game = played(VARIANTS[name], seed)
            if game.over:
                continue
            paid = game.paid
            game.forfeit(seat)
            assert game.over
            assert game.legal_actions() == ()
            assert game.result.net[seat] == -paid[seat]
            assert game.result.folded == seat
            again = parse(dump(game))
            assert again == game
            assert again.result == game.result
            assert f"player_{seat} gave the hand up" in dump(game)
            with pytest.raises(OrderError, match="the hand is over"):
                game.forfeit(seat)


def test_scoops_and_quarters_are_named_in_transcripts_and_not_in_files() -> None:
    hands = {
        "scoop": ("As2d3c4h5s", "9c9h7d7s2c", "player_0 scoops: both halves"),
        "quarter": ("8s6s4s3s2s", "8h6d4c3h2h", "player_1 is quartered: one half shared, the other lost"),
        "whole pot": ("Kh9d7c4s2h", "4c4dQs8h3c", None),
    }
    for first, second, line in hands.values():
        cards = zip(parse_cards(second), parse_cards(first), strict=True)
        game = Game(deck=[card for pair in cards for card in pair], dealer=0)
        while not game.over:
            game.apply(3 if game.drawing else 1)
        added = [said for said in transcript(game) if said not in dump(game).splitlines()]
        assert added == ([line] if line else [])
        assert (line is None) == (
            "scoop" not in ansi(game.view(), game.rules) and "quarter" not in ansi(game.view(), game.rules)
        )
