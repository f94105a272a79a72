"""Rules as data: presets, validation, and what every option changes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archie_env import Batch, archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.actions import describe_legal, discard, discards, format_action, parse_action
from archie_env.cards import format_cards, parse_cards
from archie_env.errors import ArchieError, IllegalActionError, NotationError, RulesError
from archie_env.game import Game
from archie_env.hands import HandValues
from archie_env.notation import parse, parse_all
from archie_env.observation import width
from archie_env.rules import PRESETS, Rules, Stakes, as_rules

EXAMPLES = settings(max_examples=300 if not JIT_DISABLED else 30, deadline=None, derandomize=True)


def test_presets_are_the_published_games() -> None:
    """R6."""
    archie, barge, pagat = (PRESETS[n] for n in ("archie", "barge", "pagat"))
    assert archie == Rules()
    assert (archie.high_qualifier, archie.low_qualifier, archie.no_qualifier) == ("6", "8", "best_high")
    assert archie.draw_order == "simultaneous"
    assert barge == replace(archie, draw_order="sequential")
    assert pagat == replace(barge, high_qualifier="9", no_qualifier="equal_split")
    assert archie.reserve == 48
    assert archie.actions == 35
    mini, midi = PRESETS["mini"], PRESETS["midi"]
    assert (mini.deck_size, mini.hand_size, mini.draws, mini.high_qualifier, mini.low_qualifier) == (12, 2, 1, "3", "4")
    assert (midi.deck_size, midi.hand_size, midi.draws, midi.high_qualifier, midi.low_qualifier) == (15, 3, 1, "5", "4")
    assert [r.name for r in PRESETS.values()] == list(PRESETS)
    assert Rules(raise_cap=3).name == "custom"
    assert all(as_rules(name) is rules is as_rules(rules) for name, rules in PRESETS.items())


def test_rules_are_frozen_values() -> None:
    with pytest.raises(FrozenInstanceError):
        Rules().draws = 2  # type: ignore[misc]
    assert len({Rules(), Rules(), Rules(draws=3)}) == 1
    assert pickle.loads(pickle.dumps(PRESETS["midi"])) == PRESETS["midi"]


@pytest.mark.parametrize("name", PRESETS)
def test_plain_values_have_an_exact_inverse(name: str) -> None:
    assert Rules.from_dict(PRESETS[name].to_dict()) == PRESETS[name]


def test_letters_in_any_order_make_the_same_deck() -> None:
    assert Rules(ranks="AKQJT98765432", suits="shdc") == Rules()
    assert PRESETS["mini"].ranks == "23456A"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"raise_cap": 0}, "raise_cap 0: expected a whole number 1 to 6"),
        ({"raise_cap": 2.0}, "raise_cap 2.0"),
        ({"raise_cap": True}, "raise_cap True"),
        ({"draws": 4}, "draws 4: expected a whole number 0 to 3"),
        ({"hand_size": 6}, "hand_size 6: expected a whole number 1 to 5"),
        ({"max_discard": 6}, "max_discard 6: expected a whole number 0 to 5"),
        ({"hand_size": 3, "max_discard": 4}, "max_discard 4: expected a whole number 0 to 3"),
        ({"high_qualifier": "1"}, "high_qualifier '1': expected one of the ranks in play"),
        ({"high_qualifier": 6}, "high_qualifier 6"),
        ({"low_qualifier": "89"}, "low_qualifier '89'"),
        ({"low_qualifier": ""}, "low_qualifier ''"),
        ({"no_qualifier": "high"}, "no_qualifier 'high': expected one of 'best_high', 'equal_split'"),
        ({"draw_order": "turns"}, "draw_order 'turns': expected one of 'simultaneous', 'sequential'"),
        ({"ranks": "234561"}, "ranks '234561': expected different letters out of 23456789TJQKA"),
        ({"ranks": "22345"}, "ranks '22345'"),
        ({"suits": ""}, "suits ''"),
        ({"suits": 4}, "suits 4"),
        ({"flushes": 1}, "flushes 1: expected True or False"),
        ({"stakes": (1, 2)}, r"stakes \(1, 2\)"),
        ({"stakes": ((1, 2), (2, 2, 4))}, r"expected \(\(small blind, big blind\), \(4 bets"),
        ({"stakes": ((3, 2), (2, 2, 4, 4))}, r"stakes.blinds\[0\] \(small blind\) 3: expected a whole number 0 to 2"),
        ({"stakes": ((1, 0), (2, 2, 4, 4))}, r"stakes.blinds\[1\] \(big blind\) 0"),
        ({"stakes": ((1, 2), (2, 2, 0, 4))}, r"stakes.bets\[2\] 0: expected a whole number 1 to 1000"),
        ({"stakes": ((1, 2), (2, 2, 4, 4.5))}, r"stakes.bets\[3\] 4.5"),
        ({"stakes": None}, "stakes None"),
        ({"ranks": "A2345678", "suits": "cd"}, "ranks and suits give 16 cards: expected at least 40"),
    ],
)
def test_bad_rules_name_field_value_and_range(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RulesError, match=text):
        Rules(**options)


def test_unknown_rules_list_the_known_ones() -> None:
    with pytest.raises(RulesError, match="unknown rule 'raises': expected one of stakes, raise_cap"):
        Rules.from_dict({"raises": 4})
    with pytest.raises(RulesError, match="rules 'omaha': expected one of archie, barge, pagat, mini, midi"):
        Rules.preset("omaha")


# ---- a thousand bad inputs, found by hypothesis: a clear error, and nothing changed

ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=3),
    st.binary(max_size=3),
)


@EXAMPLES
@given(field=st.sampled_from([f.name for f in fields(Rules) if f.init]), value=ANYTHING)
def test_any_value_of_any_rule_is_played_or_refused_by_name(field: str, value: Any) -> None:
    try:
        rules = Rules(**{field: value})
    except RulesError as error:
        assert field in str(error) or "ranks and suits" in str(error)  # noqa: PT017
        assert "expected" in str(error)  # noqa: PT017
    else:
        assert width(rules) > 0
        assert Game(rules, seed=1).legal_actions()


@EXAMPLES
@given(action=ANYTHING, seed=st.integers(0, 50), steps=st.integers(0, 9))
def test_any_action_is_played_or_refused_with_the_state_unchanged(action: Any, seed: int, steps: int) -> None:
    env = archie_v0.env()
    env.reset(seed=seed)
    for _ in range(steps):
        env.step(3 if env.game.drawing else 1)
    before, record = env.game, env._games.tobytes()
    try:
        env.step(action)
    except IllegalActionError as error:
        assert "legal:" in str(error)  # noqa: PT017
        assert env._games.tobytes() == record
        assert env.game == before
    else:
        assert action in before.legal_actions()


@EXAMPLES
@given(deck=st.one_of(ANYTHING, st.lists(st.one_of(st.integers(-2, 60), st.text("As2dx", max_size=3)), max_size=60)))
def test_any_deck_is_dealt_or_refused(deck: Any) -> None:
    try:
        game = Game(deck=deck, seed=1)
    except ArchieError as error:
        assert "card" in str(error) or "deck" in str(error)  # noqa: PT017
    else:
        assert sorted(game.deck) == list(range(52))


@EXAMPLES
@given(text=st.one_of(st.text(max_size=40), st.text("player_01 callsbetraisediscardAs2d\n", max_size=60)))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    for read in (parse, parse_all):
        with pytest.raises(NotationError, match=r"line \d+: "):
            read(text)
    with pytest.raises((NotationError, ArchieError), match=r"expected|hand is|named twice"):
        parse_action(text + "!", (0, 1, 2, 3, 4))
    with pytest.raises(NotationError, match="expected"):
        HandValues("archie").parse_high(text)


@EXAMPLES
@given(n=ANYTHING, dtype=st.one_of(ANYTHING, st.just("int8")))
def test_any_batch_is_made_or_refused(n: Any, dtype: Any) -> None:
    if isinstance(n, int) and n > 1000:
        n = -n
    try:
        batch = Batch(n, dtype=dtype)
    except ArchieError as error:
        assert "expected" in str(error)  # noqa: PT017
    else:
        assert len(batch) == n


# ---- actions as text


def test_every_action_has_an_exact_inverse() -> None:
    hand = parse_cards("2c 7d 9h Js As")
    for action in range(3, 35):
        assert parse_action(format_action(action, hand), hand) == action
        assert discard(hand, discards(action, hand)) == action
    for action in range(3):
        for owes in (False, True):
            assert parse_action(format_action(action, owes=owes)) == action


@pytest.mark.parametrize("text", ["", "all in", "discard", "fold now", "bet 4", "stand"])
def test_bad_action_texts_are_refused(text: str) -> None:
    with pytest.raises(NotationError, match="expected fold, check, call, bet, raise, 'stand pat' or 'discard' and cards"):
        parse_action(text)


def test_bad_discards_are_refused() -> None:
    hand = parse_cards("2c 7d 9h Js As")
    with pytest.raises(IllegalActionError, match=f"the hand is {format_cards(hand, ' ')}"):
        discard(hand, parse_cards("Kd"))
    with pytest.raises(IllegalActionError, match="named twice"):
        discard(hand, [hand[0], hand[0]])
    with pytest.raises(IllegalActionError, match="action 35: expected 0 to 34 with 5 cards"):
        format_action(35, hand)


def test_legal_actions_in_one_line() -> None:
    assert describe_legal(Game(seed=1).mask(0)) in ("0 (fold), 1 (check/call), 2 (bet/raise)", "none")
    thin = Rules(max_discard=1)
    game = Game(thin, seed=1)
    game.apply(1)
    game.apply(1)
    assert describe_legal(game.mask(game.to_act or 0)) == "3, 4, 5, 7, 11, 19 (discards)"


def test_stakes_may_be_plain_tuples_or_a_mapping() -> None:
    plain: Any = ((1, 3), (3, 3, 6, 6))
    mapping: Any = {"blinds": [1, 3], "bets": [3, 3, 6, 6]}
    assert Rules(stakes=plain) == Rules(stakes=mapping) == Rules(stakes=Stakes((1, 3), (3, 3, 6, 6)))
