"""Hand values: exact enumerations (rules T1 to T4) and words."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from archie_env import archie_v0, notation
from archie_env._core.tables import CHOOSE, high_classes, high_table, low_table
from archie_env.actions import parse_action
from archie_env.cards import format_cards, parse_cards
from archie_env.errors import CardError, NotationError
from archie_env.game import Game
from archie_env.hands import HandValues
from archie_env.rules import Rules
from tests import referee

VALUES = HandValues("archie")


def all_hands() -> np.ndarray:
    """``(2598960, 5)`` int8: every five-card hand, ascending."""
    flat = np.fromiter((c for hand in combinations(range(52), 5) for c in hand), np.int8, 2_598_960 * 5)
    return flat.reshape(-1, 5)


def table_values(hands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """High and low values of many hands by the engine's tables, in NumPy: the third way to the same numbers."""
    number = sum(CHOOSE[i, hands[:, i] >> 2].astype(np.int64) for i in range(5))
    suited = (hands & 3 == hands[:, :1] & 3).all(axis=1)
    return high_table(5, True)[suited.astype(int), number], low_table(5, 7)[number]


@pytest.fixture(scope="module")
def enumeration() -> tuple[np.ndarray, np.ndarray]:
    return table_values(all_hands())


def test_categories_count_as_in_every_poker_book(enumeration: tuple[np.ndarray, np.ndarray]) -> None:
    """T2."""
    high, _ = enumeration
    classes = high_classes(5, True)
    category = np.array([key[0] for key in classes])[high - 1]
    assert np.bincount(category).tolist()[::-1] == [40, 624, 3744, 5108, 10200, 54912, 123552, 1098240, 1302540]
    assert len(np.unique(high)) == len(classes) == 7462


def test_qualifiers_count_exactly(enumeration: tuple[np.ndarray, np.ndarray]) -> None:
    """T2: either qualifier, both ways and neither."""
    high, low = enumeration
    for preset, qualifying, neither in (("archie", 958_500, 1_587_420), ("pagat", 705_060, 1_840_860)):
        reached = high >= HandValues(preset).high_qualifier
        both = int((reached & (low > 0)).sum())
        assert both == 4_304
        assert int((~reached & (low == 0)).sum()) == neither
        category = np.array([key[0] for key in high_classes(5, True)])[high - 1]
        assert int((reached & (category == 1)).sum() + (category > 1).sum()) == int(reached.sum())
        pairs = int((reached & (category == 1)).sum())
        assert pairs + int((category > 1).sum()) == qualifying
    assert int((low > 0).sum()) == 57_344
    assert len(np.unique(low[low > 0])) == 56


def test_lows_by_class(enumeration: tuple[np.ndarray, np.ndarray]) -> None:
    """T3: cumulative rank sets, 1024 hands each."""
    _, low = enumeration
    counts = Counter(low[low > 0].tolist())
    assert set(counts.values()) == {1024}
    names = [VALUES.low_name(v) for v in range(56, 0, -1)]
    ends = {name: i + 1 for i, name in enumerate(names)}
    expected = {
        "wheel": 1,
        "six-four low": 2,
        "six-five low": 6,
        "seven-four low": 7,
        "seven-five low": 11,
        "seven-six low": 21,
        "eight-four low": 22,
        "eight-five low": 26,
        "eight-six low": 36,
        "eight-seven low": 56,
    }
    assert ends == expected


def test_equal_highs_have_equal_lows(enumeration: tuple[np.ndarray, np.ndarray]) -> None:
    """T4: equal highs imply equal lows; lows tie under different highs only where exactly one is a flush."""
    high, low = enumeration
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    same_high = high[1:] == high[:-1]
    assert (low[1:][same_high] == low[:-1][same_high]).all()
    for value in range(1, 57):
        assert len(np.unique(high[low == value])) == 2  # suited and not


def test_kernel_tables_and_referee_agree_on_random_hands() -> None:
    rng = np.random.default_rng(1)
    hands = np.sort(rng.permuted(np.tile(np.arange(52, dtype=np.int8), (3000, 1)), axis=1)[:, :5], axis=1)
    high, low = table_values(hands)
    keys = []
    for hand, best, lowest in zip(hands.tolist(), high.tolist(), low.tolist(), strict=True):
        assert VALUES.of(hand) == (best, lowest)
        assert (referee.low_value(hand, "8") is not None) == (lowest > 0)
        keys.append((best, referee.high_value(hand), lowest, referee.low_value(hand, "8")))
    keys.sort(key=lambda k: k[0])
    assert [k[1] for k in keys] == sorted(k[1] for k in keys)
    assert len({k[0] for k in keys}) == len({k[1] for k in keys})
    lows = sorted((k[2], k[3]) for k in keys if k[3] is not None)
    assert [k[1] for k in lows] == sorted(k[1] for k in lows)


@pytest.mark.parametrize(
    ("size", "ranks", "flushes"), [(1, 13, True), (2, 13, True), (3, 13, True), (4, 13, True), (5, 13, False)]
)
def test_short_hands_and_flushless_decks_follow_the_referee(size: int, ranks: int, flushes: bool) -> None:
    rules = Rules(hand_size=size, max_discard=min(size, 2), flushes=flushes)
    values = HandValues(rules)
    rng = np.random.default_rng(size)
    seen: dict[int, object] = {}
    for _ in range(600):
        hand = sorted(rng.choice(52, size, replace=False).tolist())
        high, low = values.of(hand)
        assert seen.setdefault(high, referee.high_value(hand, flushes)) == referee.high_value(hand, flushes)
        assert (low > 0) == (referee.low_value(hand, "8") is not None)
        assert values.qualifies_high(high) == referee.qualifies_high(hand, rules)
    assert [seen[v] for v in sorted(seen)] == sorted(seen.values())  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("9c9dAsKh2c", "9h9sAcQdJh"),  # kickers decide
        ("2c3d4h5s6c", "As2d3c4h5s"),  # A-2-3-4-5 is the lowest straight
        ("As2d3c4h5s", "AcAdAh2s3c"),
        ("TsJdQcKhAs", "9dTcJhQsKd"),
        ("QsKdAc2h4s", "QcKhAd2s3h"),  # no wrap-around: ace high, and the four plays
    ],
)
def test_high_order(better: str, worse: str) -> None:
    """R3.1."""
    assert VALUES.of(better)[0] > VALUES.of(worse)[0]


def test_a_wrapped_straight_is_ace_high() -> None:
    """R3.1: Q-K-A-2-3 is no straight."""
    assert VALUES.high_text(VALUES.of("QsKdAc2h3s")[0]) == "ace high, K-Q-3-2"


@pytest.mark.parametrize(
    ("better", "worse"), [("8c5d4h3s2c", "8d6s4c2hAd"), ("7c6d5h4s3c", "8d4s3c2hAd"), ("As2d3c4h5s", "As2d3c4h6s")]
)
def test_low_order(better: str, worse: str) -> None:
    """R3.3."""
    assert VALUES.of(better)[1] > VALUES.of(worse)[1] > 0


def test_guide_outcomes() -> None:
    """T1: the straight scoops; where nobody qualifies, the pair of fours takes everything."""
    for first, second, net in (("As2d3c4h5s", "9c9h7d7s2c", 2), ("Kh9d7c4s2h", "4c4dQs8h3c", -2)):
        ours, theirs = parse_cards(first), parse_cards(second)
        deck = [c for pair in zip(theirs, ours, strict=True) for c in pair]  # big blind first (R5.3)
        game = Game(deck=deck, dealer=0, seed=3)
        while not game.over:
            game.apply(3 if game.drawing else 1)
        assert game.result.net == (net, -net)


@pytest.mark.parametrize("preset", ["archie", "mini", "midi"])
def test_hand_texts_have_exact_inverses(preset: str) -> None:
    values = HandValues(preset)
    highs = len(high_classes(values.rules.hand_size, True))
    texts = {values.high_text(v) for v in range(1, highs + 1)}
    assert len(texts) == highs
    step = 1 if highs < 500 else 97
    for v in range(1, highs + 1, step):
        assert values.parse_high(values.high_text(v)) == v
    for v in range(57 if preset == "archie" else 2):
        assert values.parse_low(values.low_text(v)) == v


@pytest.mark.parametrize(
    ("hand", "text"),
    [
        ("9c9hAd7s2c", "pair of nines, A-7-2 (qualifies); no low"),
        ("5c5hAd7s2c", "pair of fives, A-7-2 (does not qualify); no low"),
        ("As2d3c4h5s", "five-high straight (qualifies); wheel"),
        ("7s5d3c2hAs", "ace high, 7-5-3-2 (does not qualify); seven-five low"),
        ("6s6d6c9h9s", "sixes full of nines (qualifies); no low"),
        ("TsJsQsKsAs", "ace-high straight flush (qualifies); no low"),
    ],
)
def test_hands_in_words(hand: str, text: str) -> None:
    assert VALUES.describe(hand) == text


@pytest.mark.parametrize("bad", ["AsAs2c3c4c", "As2c3c4c", "As2c3c4c5c6c", "Xs2c3c4c5c", "As2", [1, 2, 3, 4, 52], [1.5], 7])
def test_bad_hands_are_refused(bad: object) -> None:
    with pytest.raises(CardError):
        VALUES.of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["pair of", "pair of nines", "", "wheel"])
def test_bad_hand_texts_are_refused(bad: str) -> None:
    with pytest.raises(NotationError, match="expected"):
        VALUES.parse_high(bad)


def test_cards_have_exact_inverses() -> None:
    assert parse_cards(format_cards(range(52))) == tuple(range(52))
    assert len({format_cards([c]) for c in range(52)}) == 52


@pytest.mark.parametrize(
    "text",
    [
        "As Td 9h", "as10d9h", "A♠ 10♦ 9♥", "a♠, t♢, 9♥\ufe0f", "AS TD 9H",
    ],
)  # fmt: skip
def test_cards_are_read_as_people_write_them_and_written_one_way(text: str) -> None:
    assert format_cards(parse_cards(text), " ") == "As Td 9h"


@pytest.mark.parametrize("text", ["1s", "A", "As2", "10", "Ax", "0h", "A♠♠", "As;2d", "\ufe0f", "2\u0660s"])
def test_texts_that_are_no_cards_are_refused(text: str) -> None:
    with pytest.raises(CardError, match="expected a rank of 23456789TJQKA and a suit of cdhs"):
        parse_cards(text)


def test_every_interface_with_text_cards_reads_them_as_people_write_them() -> None:
    deck = "9♣ a♠ 9h 10d 7D 3c 7s 4h 2c 5s"
    game = Game(deck=deck, dealer=0, seed=3)
    assert game == Game(deck="9c As 9h Td 7d 3c 7s 4h 2c 5s", dealer=0, seed=3)
    assert game == Game(deck=deck.split(), dealer=0, seed=3)
    assert parse_action("discard 10♦ A♠", game.hands[0]) == parse_action("discard Td As", game.hands[0])
    assert VALUES.of("a♠ 2d 3c 4h 5s") == VALUES.of("As2d3c4h5s")
    env = archie_v0.env()
    env.reset(seed=1, options={"deck": deck, "dealer": "player_0"})
    assert env.game.hands == game.hands
    text = notation.dump(Game(seed=7, dealer=0))
    assert notation.parse(text.replace("As", "a♠").replace("Td", "10d")) == notation.parse(text)
