"""Hands in the Poker Hand History format and as JSON: exact inverses, other readers, and files of strangers."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pokerkit import HandHistory

from archie_env import Game, notation
from archie_env.cards import format_cards
from archie_env.errors import ArchieError, NotationError
from archie_env.notation import dump, from_phh, from_phhs, parse, schema, to_data, to_json, to_phh, to_phhs
from archie_env.rules import PRESETS
from archie_env.terminal.main import main
from tests.pokerkit_oracle import PokerKitHand

ROOT = Path(__file__).parents[1]
FULL = [name for name, rules in PRESETS.items() if rules.deck_size == 52]
HAND = parse((ROOT / "docs/hand.txt").read_text())


def hands(rules: str, n: int, seed: int = 1, replacements: Any = "shared") -> list[Game]:
    """Hands of players that seldom fold; one in ten is given up or not finished."""
    chance, games = random.Random(seed), []
    for i in range(n):
        game = Game(rules, seed=seed, index=i, replacements=replacements)
        left = chance.randrange(30) if i % 10 == 0 else 100
        while not game.over and left:
            legal = game.legal_actions()
            game.apply(chance.choice(legal if chance.random() < 0.05 else legal[-2:] if game.drawing else legal[1:]))
            left -= 1
        if not game.over and i % 20 == 0:
            game.forfeit(chance.randrange(2))
        games.append(game)
    return games


@pytest.mark.parametrize("rules", FULL)
def test_a_thousand_hands_of_every_full_deck_come_back_as_they_were(rules: str) -> None:
    games = hands(rules, 500) + hands(rules, 500, 2, "per_seat")
    for game in games:
        text = to_phh(game, ("Ann", 'Bo "b"'))
        assert from_phh(text) == game
        assert tomllib.loads(text)["players"][1 - game.dealer] == "Ann"  # the big blind is player 1 of a file
    assert from_phhs(to_phhs(games[:20])) == games[:20]
    assert {game.over for game in games} == {True, False}


def test_pokerkit_parses_each_file_and_pays_what_its_parts_can_say() -> None:
    paid = 0
    for game in hands("archie", 60):
        if not game.over or game.history[-1].kind == "forfeit":
            continue
        told = HandHistory.loads(to_phh(game))
        table = PokerKitHand(game.rules, game.deck, game.dealer)
        for action in game.actions:
            table.apply(action)
        net = [chips - 1000 for chips in told.finishing_stacks]
        assert net == [table.net[1 - game.dealer], table.net[game.dealer]]
        assert told.user_defined_fields["_rules"] == "archie"
        paid += 1
    assert paid > 40
    assert len(list(HandHistory.loads_all(to_phhs(hands("barge", 30))))) == 30


def test_a_file_of_another_tool_may_leave_the_deck_out_and_write_cards_its_own_way() -> None:
    told = ("variant", "actions", "_archie", "_rules")
    text = "\n".join(line for line in to_phh(HAND).splitlines() if line.startswith(told))
    text = text.replace("d dh p1 2s3c4cJhQs", "d dh p1 QsJh4c3c2s # a wheel to be").replace("p1 sd JhQs", "p1  sd QsJh")
    game = from_phh(text)
    assert [event for event in game.history if event.kind != "deal"] == [e for e in HAND.history if e.kind != "deal"]
    assert game.result == HAND.result


@pytest.mark.parametrize("rules", ["mini", "midi", "maxi"])
def test_reduced_decks_are_refused(rules: str) -> None:
    with pytest.raises(NotationError, match=f"rules '{rules}': expected a deck of 52 cards"):
        to_phh(Game(rules, seed=1))
    with pytest.raises(NotationError, match="expected a deck of 52 cards"):
        from_phh(to_phh(HAND).replace('_rules = "archie"', f'_rules = "{rules}"'))


@pytest.mark.parametrize("players", ["ab", ("a",), ("a", 3), ("a", "\x1b[2J"), ("a", " ")])
def test_players_have_names(players: Any) -> None:
    with pytest.raises(NotationError, match=r"expected (two names|a name that can be printed)"):
        to_phh(HAND, players)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('variant = "FA"', 'variant = "F2L3D"', "variant 'F2L3D': expected 'FA' with a field '_archie'"),
        ("_archie = 1", "", "expected 'FA' with a field '_archie'"),
        ("_archie = 1", "_archie = true", "_archie = True: expected a whole number"),
        ("_archie = 1", "_archie = 2", "_archie = 2: expected 1"),
        ('_rules = "archie"', "", "no field '_rules': expected text"),
        ('_rules = "archie"', '_rules = "nosuch"', "_rules: rules 'nosuch'"),
        ('_dealer = "player_0"', '_dealer = "me"', "_dealer = 'me': expected player_0 or player_1"),
        ('_replacements = "shared"', '_replacements = "other"', "replacements 'other'"),
        ("2s9h3c", "2s2s3c", "_deck"),
        ("2s9h3c", "2s9h", "_deck of 51 cards: expected all 52"),
        ("2s9h3c", "????3c", "_deck"),
        ("actions = [", "actions = [3, ", "action 1, 3: expected such as"),
        ("d dh p1 2s3c4cJhQs", "d dh p1 ??????????", "action 1"),
        ("d dh p1 2s3c4cJhQs", "d dh p1 2s3c4cJhKs", "action 1: found 'd dh p1 2s3c4cJhKs', but by the cards"),
        ("'p2 cbr 4'", "'p2 cbr 6'", "action 3: found 'p2 cbr 6', but by the cards and actions before it this is 'p2 cbr 4'"),
        ("'p2 cbr 4'", "'p1 cbr 4'", "action 3, 'p1 cbr 4': expected p2 to act"),
        ("'p2 cbr 4'", f"'p2 cbr {'9' * 5000}'", "action 3, 'p2 cbr 999"),
        ("p1 sd JhQs", "p1 sd AhQs", "action 5, 'p1 sd QsAh'"),
        ("'p2 cc', 'p1 sm", "'p1 sm", "action "),
        (", 'p2 sm 3s9c9hAcAs'", "", "found the end, but by the cards"),
        ("'p2 sm 3s9c9hAcAs'", "'p2 sm 3s9c9hAcAs', 'p1 cc'", "the hand is over"),
        ("blinds_or_straddles = [1, 2]", "blinds_or_straddles = [true, 2]", "blinds_or_straddles = [True, 2]: expected [1, 2]"),
        ("small_bet = 2", "small_bet = 2.0", "small_bet = 2.0: expected 2"),
        ("finishing_stacks = [1014, 986]", "finishing_stacks = [986, 1014]", "expected [1014, 986]"),
        ("finishing_stacks = [1014, 986]", "finishing_stacks = 3", "finishing_stacks = 3: expected two whole numbers"),
        ("starting_stacks = [1000, 1000]", "starting_stacks = [1, 'a']", "expected two whole numbers"),
        ("players =", "players", "no TOML: "),
        ("_archie = 1", f"_archie = {'[' * 2000}", "no TOML: "),
        ("_archie = 1", f"_archie = {'9' * 5000}", "no TOML: "),
    ],
)
def test_what_does_not_come_out_as_told_is_refused_in_one_line(old: str, new: str, words: str) -> None:
    text = to_phh(HAND)
    assert old in text
    with pytest.raises(NotationError) as caught:
        from_phh(text.replace(old, new, 1))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_texts_that_are_no_hands_are_refused() -> None:
    for text, words in (
        (3, "expected text, found int"),
        ("", "no hand in this text"),
        ("a = 3", r"hand \[a\]: 3: expected a table"),
        (f"{to_phhs([HAND, HAND])}".replace("'p1 cc'", "'p1 f'", 1), r"hand \[1\]: action "),
        ("#" * 20_000_001, "of 20,000,001 characters: expected at most 20,000,000"),
    ):
        with pytest.raises(NotationError, match=words):
            from_phhs(text)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_a_file_is_refused_or_a_hand(data: st.DataObject) -> None:
    text = to_phh(HAND)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.text(max_size=4)) + text[at + data.draw(st.integers(0, 4)) :]
    try:
        assert isinstance(from_phh(text), Game)
    except ArchieError as error:
        assert "\n" not in str(error)  # noqa: PT017  (either outcome is right)


@pytest.mark.parametrize("rules", [*PRESETS])
def test_hands_as_json_follow_the_schema(rules: str) -> None:
    games = hands(rules, 60)
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    written = json.loads(to_json(games))
    validator.validate(written)
    for game, told in zip(games, written["hands"], strict=True):
        assert told == to_data(game)
        again = Game(rules, dealer=told["dealer"], deck="".join(told["deck"]), replacements=told["replacements"])
        for event in told["events"]:
            if event["kind"] == "forfeit":
                again.forfeit(event["seat"])
            elif "action" in event:
                assert again.to_act == event["seat"]
                again.apply(event["action"])
        assert again == game
        assert (told["result"] is None) == (not game.over)
    for key in ("rules", "events", "result"):
        spoilt = json.loads(to_json(games[:1]))
        del spoilt["hands"][0][key]
        assert not validator.is_valid(spoilt)


def test_export_writes_each_form_and_replay_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, games = tmp_path / "hands.txt", hands("archie", 3, 4)
    source.write_text("\n".join(map(dump, games)))
    for form in ("phhs", "txt", "json"):
        assert main(["export", str(source), "-o", str(tmp_path / f"all.{form}")]) == 0
    assert from_phhs((tmp_path / "all.phhs").read_text()) == games
    assert notation.parse_all((tmp_path / "all.txt").read_text()) == games
    assert len(json.loads((tmp_path / "all.json").read_text())["hands"]) == 3
    capsys.readouterr()
    assert main(["replay", str(source)]) == 0
    expected = capsys.readouterr().out
    assert main(["replay", str(tmp_path / "all.phhs")]) == 0
    assert capsys.readouterr().out == expected
    for arguments, words in (
        ([str(source), "-o", str(tmp_path / "one.phh")], "3 hands: expected one for a .phh file"),
        ([str(source), "-o", str(tmp_path / "all.json")], "all.json: exists already: expected the name of a new file"),
        ([str(source), "-o", str(tmp_path / "all.pdf")], "all.pdf: expected a name that ends with .json, .phh, .phhs, .txt"),
        (
            [str(tmp_path / "all.json"), "-o", str(tmp_path / "b.json")],
            "all.json: hand 1, which begins in line 1: line 1: ",
        ),
    ):
        assert main(["export", *arguments]) == 2
        assert words in capsys.readouterr().err
    assert format_cards(games[0].deck) in (tmp_path / "all.phhs").read_text()
    assert np.array([game.over for game in games]).any()
