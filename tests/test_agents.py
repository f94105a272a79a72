"""Agents: legal actions everywhere, and the knowledge of the rule-based player."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import _kernels, _rule_kernels, load, names, weights_file
from agents import rows as read
from agents.archive import read_archive, write_archive
from agents.human import HumanPolicy
from agents.ppo import PPOPolicy
from agents.rows import layout
from archie_env.actions import CALL, DISCARD, FOLD, RAISE, STAND_PAT, discard
from archie_env.batch import Batch
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError
from archie_env.observation import decode, field, scaled, width
from archie_env.policy import Policy
from archie_env.rules import PRESETS, Rules
from evaluation.duplicate.match import play_match

PLAYERS = [name for name in names() if ":" not in name and name != "human" and weights_file(name) is None]
"""Those that play any rules."""
SHIPPED = [name for name in names() if ":" not in name and weights_file(name) is not None]
"""Those that read weights, which are for the rules they were trained for."""
DETERMINISTIC = ["call", "raise", "call_draw", "raise_draw"]
CUSTOM = {
    "no low": Rules(low_qualifier=None),
    "no high": Rules(high_qualifier=None),
    "two cards a draw": Rules(max_discard=2),
    "no draws": Rules(draws=0, max_discard=0, stakes=((1, 2), (2,))),  # type: ignore[arg-type]
    "no flushes": Rules(flushes=False, raise_cap=6),
    "one card": Rules(hand_size=1, max_discard=1, draws=1, stakes=((1, 2), (2, 4))),  # type: ignore[arg-type]
    "four cards": Rules(hand_size=4, max_discard=3, ranks="A2345678"),
}
EVERY_RULES: dict[str, Rules] = {**PRESETS, **CUSTOM}

Situations = tuple[NDArray[np.int8], NDArray[np.int8]]


@functools.cache
def situations(rules: str, count: int = 6000) -> Situations:
    """Rows and masks that random play, which folds seldom, comes across."""
    batch = Batch(500, EVERY_RULES[rules], seed=1)
    rows, masks = [], []
    for _ in range(count // 500):
        rows.append(batch.observations.copy())
        masks.append(batch.masks.copy())
        actions = batch.sample_actions()
        batch.step(np.where((actions == FOLD) & (np.arange(500) % 4 > 0), CALL, actions))
    return np.concatenate(rows), np.concatenate(masks)


def drawing(cards: str, rules: str = "archie", r: int = 0) -> Situations:
    """The row of a player that holds these cards before draw ``r + 1``, with everything else empty."""
    row = np.zeros(width(rules), np.int8)
    deck = list(PRESETS[rules].deck)
    held = field(rules, "held").start + r * len(deck)
    for card in parse_cards(cards):
        row[held + deck.index(card)] = 1
    row[field(rules, "phase").start + 2 * r + 1] = 1
    mask = np.zeros(PRESETS[rules].actions, np.int8)
    mask[DISCARD:] = 1
    return row[None], mask[None]


def thrown(player: str, cards: str, rules: str = "archie", r: int = 0) -> set[int]:
    """Every discard that the player makes with some probability."""
    return set(np.flatnonzero(load(player, rules).probabilities(*drawing(cards, rules, r))[0]).tolist())


def throwing(cards: str, gone: str) -> int:
    return discard(sorted(parse_cards(cards)), parse_cards(gone)) if gone else STAND_PAT


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("rules", EVERY_RULES)
def test_probabilities_are_distributions_over_legal_actions(rules: str, name: str) -> None:
    rows, masks = situations(rules)
    chances = load(name, EVERY_RULES[rules]).probabilities(rows, masks)
    assert chances.dtype == np.float32
    assert chances.shape == masks.shape
    assert not chances[masks == 0].any()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("rules", EVERY_RULES)
def test_every_action_is_legal(rules: str, name: str) -> None:
    rows, masks = situations(rules)
    actions = load(name, EVERY_RULES[rules]).act(rows, masks, np.random.default_rng(2))
    assert actions.dtype == np.int64
    assert masks[np.arange(len(rows)), actions].all()


@pytest.mark.parametrize("rules", EVERY_RULES)
def test_the_rule_based_player_plays_whole_hands_against_everyone(rules: str) -> None:
    player = load("rule_based", EVERY_RULES[rules])
    for other in PLAYERS:  # a strict match refuses illegal actions: 12 x 6 x 2,000 hands of about ten decisions
        play_match(player, load(other, EVERY_RULES[rules]), 1000, rules=EVERY_RULES[rules], strict=True)


@pytest.mark.parametrize("name", [*PLAYERS])
@pytest.mark.parametrize("rules", ["archie", "mini"])
def test_both_forms_of_an_observation_give_the_same_decisions(rules: str, name: str) -> None:
    rows, masks = situations(rules)
    player = load(name, rules)
    floats = scaled(rows, rules)
    assert np.array_equal(player.probabilities(rows, masks), player.probabilities(floats, masks))
    ints = player.act(rows, masks, np.random.default_rng(3))
    assert np.array_equal(ints, player.act(floats, masks, np.random.default_rng(3)))


@pytest.mark.parametrize("rules", EVERY_RULES)
def test_kernels_read_in_a_row_what_the_decoder_reads(rules: str) -> None:
    table = layout(EVERY_RULES[rules])[0]
    hand = np.zeros(5, np.int64)
    for row, mask in zip(*(part[::10] for part in situations(rules)), strict=True):
        seen = decode(row, EVERY_RULES[rules])
        r = read.read_round(table, row)
        assert r == seen.phase // 2
        read.read_hand(table, row, r, hand)
        assert tuple(c for c in hand.tolist() if c < 52) == seen.hand
        wagers = seen.wagers[r]
        count, raises, _ = _rule_kernels.read_wagers(table, row, r)
        assert (count, raises) == (len(wagers), wagers.count(RAISE))
        if r:
            assert _rule_kernels.other_drew(table, row, r) == min(2, seen.other_draws[r - 1])
            before = seen.wagers[r - 1]
            last = max((k for k, action in enumerate(before) if action == RAISE), default=None)
            dealers = last is not None and last % 2 == (r > 1)
            expected = 0 if last is None else 1 if dealers == seen.dealer else 2
            assert _rule_kernels.initiative(table, row, r, seen.dealer) == expected
        assert row[table["owed"]] == seen.owed
        assert mask.any()


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_probabilities_of_a_deterministic_player_are_certain(name: str) -> None:
    rows, masks = situations("archie")
    player = load(name)
    chances = player.probabilities(rows, masks)
    assert np.array_equal(chances.argmax(axis=1), player.act(rows, masks, np.random.default_rng(4)))
    assert (chances.max(axis=1) == 1).all()


SOLUTION = Path(_kernels.__file__).parent / "weights" / "solution-mini.npz"


def small_network(rules: Rules) -> PPOPolicy:
    """A network without a hidden unit's worth of knowledge."""
    shapes = {"layer0.weight": (width(rules), 1), "layer0.bias": (1,)}
    shapes |= {"head.weight": (1, rules.actions), "head.bias": (rules.actions,)}
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return PPOPolicy(weights, {"hand_features": False, "slots": False}, rules)


def player(name: str) -> Policy:
    """A player of mini that reads rows."""
    if name == "human":
        return HumanPolicy("mini", io.StringIO("pat\ncall\n" * 9), io.StringIO())
    return small_network(PRESETS["mini"]) if name == "ppo" else load(name, "mini")


@pytest.mark.parametrize("name", [*DETERMINISTIC, "rule_based", "human", "ppo", f"solution:{SOLUTION}"])
def test_rows_and_masks_that_do_not_belong_to_the_rules_are_refused(name: str) -> None:
    rows, masks = situations("mini")
    rows, masks = rows[:3], masks[:3]
    shapes = [
        situations("archie"), (rows[0], masks[0]), (rows[0], masks), (rows, masks[0]), (rows, masks[:2]), (rows[:2], masks),
        (rows[:, 1:], masks), (rows, masks[:, 1:]), (rows[None], masks[None]), (np.zeros(()), np.zeros(())),
    ]  # fmt: skip
    kinds = [
        (rows.astype(str), masks), (rows.astype(complex), masks), (rows, masks.astype(object)), (rows.tolist(), masks),
        (rows, None), (None, None),
    ]  # fmt: skip
    some = masks.copy()
    some[1] = 0
    chance = np.random.default_rng(1)
    contents = [
        (chance.integers(0, 2, rows.shape).astype(np.int8), masks),
        *((np.full_like(rows, value), masks) for value in (0, 127, -128)),
        *((np.full(rows.shape, value, np.float32), masks) for value in (np.nan, 1e9)),
    ]
    for pairs, message in (
        (contents, r"observations\[\d\]: no row of rules 'mini'"),
        (shapes, "expected \\(n, "),
        (kinds, "of type .*: expected an array"),
        ([(rows, some)], r"masks\[1\]: no action is legal"),
    ):
        for observations, allowed in pairs:
            with pytest.raises(ArchieError, match=message):
                player(name).act(observations, allowed, np.random.default_rng(5))  # type: ignore[arg-type]


def test_a_row_without_its_slots_is_refused_by_the_network_that_reads_them() -> None:
    rows, masks = situations("mini")
    rows, slots = rows[:3].copy(), field("mini", "slots")
    rows[1, slots.start + slots.size - 1] ^= 1
    with pytest.raises(ArchieError, match=r"observations\[1\]: no row of rules 'mini': expected one card in each slot"):
        player("ppo").probabilities(rows, masks[:3])


def test_a_network_of_one_unit_plays_every_legal_action_alike() -> None:
    rows, masks = situations("mini")
    np.testing.assert_allclose(player("ppo").probabilities(rows, masks), masks / masks.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("rules", None, "rules is missing"),
        ("rules", "mini", "rules 'mini': expected a table"),
        ("rules", {"draws": 9}, "draws 9: expected"),
        ("rules", Rules().to_dict(), "a solution for 3 draws: expected 1"),
        ("rules", PRESETS["midi"].to_dict(), r"hands \(21, 6\): expected \(21, 5\)"),
        ("lines", None, "lines is missing"),
        ("lines", 3, "lines 3: expected betting paths"),
        ("lines", [], r"lines \[\]: expected betting paths"),
        ("lines", [[1, 1]], r"draw0 \(7, 1, 21, 4\): expected \(1, 1, 21, 4\)"),
        ("first_nodes", [["x"]], "first_nodes .*: expected betting paths"),
        ("first_nodes", [[1] * 99], "first_nodes .*: expected betting paths of at most 6 actions"),
        ("last_nodes", [[[]]], "last_nodes .*: expected a list for each position"),
        ("hands", None, "hands is missing"),
        ("hands", np.zeros((21, 6)), r"hands \(21, 6\) of type float64: expected an array of whole numbers"),
        ("first", np.zeros((8, 21, 3)), r"first \(8, 21, 3\) of type float64: expected an array of uint8"),
        ("first", np.array(["x"]), r"'first.npy' \(1,\) of type <U1: expected an array of numbers"),
        ("last1", np.zeros((7, 606, 3, 4, 3), np.uint8), r"last1 .*: expected \(7, 606, 3, 5, 3\)"),
        ("draw1", np.zeros((), np.uint8), r"draw1 \(\) of type uint8: expected an array"),
        ("histories", np.zeros((0, 8), np.int16), r"histories \(0, 8\): expected"),
        ("histories", np.full((606, 8), 99), "histories from 99 to 99: expected 0 to 20"),
        ("discard_of_subset", np.full((21, 4), 4), "discard_of_subset from 4 to 4: expected -1 to 3"),
    ],
)
def test_a_solution_with_spoilt_parts_is_refused(part: str, value: Any, message: str, tmp_path: Path) -> None:
    arrays, meta = read_archive(SOLUTION, "archie-env solution", 1)
    parts: dict[str, Any] = arrays if isinstance(value, np.ndarray) or part in arrays else meta
    if value is None:
        del parts[part]
    else:
        parts[part] = value
    write_archive(tmp_path / "it.npz", arrays, meta)
    with pytest.raises(ArchieError, match=rf"it\.npz: {message}"):
        load(f"solution:{tmp_path / 'it.npz'}", "mini")


@pytest.mark.parametrize("name", PLAYERS)
def test_players_follow_the_protocol_and_carry_their_name(name: str) -> None:
    player = load(name, "pagat")
    assert isinstance(player, Policy)
    assert player.name == name


@pytest.mark.parametrize("name", SHIPPED)
def test_players_that_ship_play_the_full_game_and_no_other(name: str) -> None:
    player = load(name)
    assert isinstance(player, Policy)
    assert player.name == name
    assert play_match(player, load("call_draw"), 2000, seed=1, strict=True).chips.mean > 0
    with pytest.raises(ArchieError, match="pagat"):
        load(name, "pagat")


def test_a_player_given_nothing_to_decide_decides_nothing() -> None:
    rows, masks = situations("archie")
    for name in PLAYERS:
        assert load(name).act(rows[:0], masks[:0], np.random.default_rng(6)).shape == (0,)


@pytest.mark.parametrize("name", ["nobody", "", "ppo_greedy", "ppo:", "call:x", None, 3, b"call", ["call"], Path("call")])
def test_an_unknown_name_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(ArchieError, match=r"expected one of uniform, call, raise, .*rule_based, human, .*ppo:PATH"):
        load(name)


@pytest.mark.parametrize("name", ["call", "raise"])
def test_call_and_raise_stand_pat_and_never_fold(name: str) -> None:
    rows, masks = situations("archie")
    actions = load(name).act(rows, masks, np.random.default_rng(7))
    assert set(actions[masks[:, DISCARD] == 1]) == {STAND_PAT}
    bets = actions[masks[:, CALL] == 1]
    assert set(bets) == ({CALL} if name == "call" else {CALL, RAISE})
    can_raise = masks[:, RAISE] == 1
    assert (actions[can_raise] == (RAISE if name == "raise" else CALL)).all()


@pytest.mark.parametrize(
    ("cards", "gone"),
    [
        ("As2d3c4h5s", ""),
        ("2c4c6c9cKc", ""),
        ("9s9h9d2c2d", ""),
        ("As2d3c4h8s", ""),
        ("5d6c7s8h9s", ""),
        ("As2d3c4hKs", "Ks"),
        ("2d3c4h5s5d", "5s"),
        ("9s9h9d2cKd", "2cKd"),
        ("9s9h2d2cKd", "Kd"),
        ("9s9hKdJc2d", "KdJc2d"),
        ("As3d5cJhKs", "JhKs"),
    ],
)
@pytest.mark.parametrize("name", ["call_draw", "raise_draw"])
def test_sensible_draws(name: str, cards: str, gone: str) -> None:
    assert thrown(name, cards) == {throwing(cards, gone)}


@pytest.mark.parametrize("r", [0, 1, 2])
@pytest.mark.parametrize(
    "cards",
    [
        "As2d3c4h5s",
        "As2d3c4h6s",
        "2d3c5h6s8s",
        "4d5c6h7s8s",
        "2c4c6c9cKc",
        "TsJdQcKhAs",
        "9s9h9d2c2d",
        "9s9h9d9c2d",
        "2c3c4c5c6c",
    ],
)
def test_the_rule_based_player_stands_pat_on_made_hands(cards: str, r: int) -> None:
    assert thrown("rule_based", cards, r=r) == {STAND_PAT}


@pytest.mark.parametrize(
    ("cards", "gone"),
    [
        ("As2d3c4hKs", ["Ks"]),
        ("2d3c4h5s5d", ["5s"]),
        ("As2d3c6hQs", ["Qs"]),
        ("As2d4cJhKs", ["JhKs"]),
        ("2c9cJcKc3d", ["3d"]),
        ("9dTsJhQc2d", ["2d"]),
        ("9s9hKdJc2d", ["KdJc2d"]),
        ("9s9h2d2cKd", ["Kd"]),
        ("9s9h9d2cKd", ["2cKd", "2c"]),
        ("6s6h2dAc3d", ["2d3d", "6s", "6h"]),
        ("5d7s9cJhQd", ["9cJhQd"]),
        ("Qs7d9cJhAd", ["Qs7d9cJh", "Qs9cJh"]),
    ],
)
def test_the_rule_based_player_keeps_its_best_draw(cards: str, gone: list[str]) -> None:
    assert thrown("rule_based", cards) <= {throwing(cards, g) for g in gone}


def test_the_rule_based_player_keeps_three_of_a_rough_four_only_on_the_first_draw() -> None:
    cards = "As2d4c8hKs"
    assert throwing(cards, "8hKs") in thrown("rule_based", cards)
    assert thrown("rule_based", cards, r=1) == {throwing(cards, "Ks")}


def test_the_rule_based_player_draws_within_the_limit() -> None:
    rules = CUSTOM["two cards a draw"]
    rows, masks = situations("two cards a draw")
    actions = load("rule_based", rules).act(rows, masks, np.random.default_rng(8))
    counts = [int(a - DISCARD).bit_count() for a in actions[masks[:, DISCARD] == 1]]
    assert max(counts) == 2


def test_the_rule_based_player_folds_only_when_it_owes() -> None:
    rows, masks = situations("archie")
    chances = load("rule_based").probabilities(rows, masks)
    assert not chances[masks[:, FOLD] == 0, FOLD].any()
    facing = masks[:, FOLD] == 1
    assert 0.05 < chances[facing, FOLD].mean() < 0.8


def test_the_rule_based_player_raises_its_best_hands_and_folds_its_worst_at_the_end() -> None:
    player = load("rule_based")
    rows, masks = situations("archie", 60_000)
    last = field("archie", "phase").start + 6
    facing = (masks[:, FOLD] == 1) & (masks[:, RAISE] == 1) & (rows[:, last] == 1)
    chances = player.probabilities(rows[facing], masks[facing])
    for row, (fold, _, up) in zip(rows[facing], chances[:, :3], strict=True):
        ranks = sorted(c >> 2 for c in decode(row, "archie").hand)
        if ranks == [0, 1, 2, 3, 12]:
            assert up > 0.5
        if len(set(ranks)) == 5 and ranks[-1] > 7 and fold < 0.5:  # no low: only a straight or a flush is worth a call
            hand = decode(row, "archie").hand
            straight = ranks[-1] - ranks[0] == 4 or ranks == [0, 1, 2, 3, 12]
            low = ranks[-1] == 12 and ranks[-2] <= 6
            assert straight or low or len({c & 3 for c in hand}) == 1


BEATEN = {"call_draw": 300, "raise_draw": 500, "uniform": 1800, "call": 1500, "raise": 1500}


@pytest.mark.parametrize("other", BEATEN)
def test_the_rule_based_player_beats_the_simple_ones(other: str) -> None:
    result = play_match(load("rule_based"), load(other), 8000, seed=9)
    assert result.mbb.significance > 4
    assert result.mbb.mean > BEATEN[other]


@pytest.mark.parametrize("rules", ["pagat", "mini", "midi"])
def test_the_rule_based_player_beats_the_simple_ones_under_other_rules(rules: str) -> None:
    for other in ("call_draw", "raise_draw", "uniform"):
        assert play_match(load("rule_based", rules), load(other, rules), 6000, seed=10, rules=rules).mbb.significance > 4
