"""The referee checked against the clauses, the exact values and PokerKit, without the environment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod

import pytest
from pokerkit import EightOrBetterLowHand, StandardHighHand

from tests import pokerkit_oracle
from tests.referee import (
    BET_OR_RAISE,
    CHECK_OR_CALL,
    FOLD,
    FULL_HOUSE,
    HIGH_CARD,
    ONE_PAIR,
    STAND_PAT,
    STRAIGHT,
    STRAIGHT_FLUSH,
    THREE_OF_A_KIND,
    TWO_PAIR,
    Referee,
    Showdown,
    card_name,
    full_deck,
    high_value,
    low_value,
    parse_cards,
    qualifies_high,
    qualifies_low,
    rank_of,
    showdown,
)


@dataclass(frozen=True)
class TableStakes:
    """Blinds and bets."""

    blinds: tuple[int, int] = (1, 2)
    bets: tuple[int, ...] = (2, 2, 4, 4)


@dataclass(frozen=True)
class TableRules:
    """Rules by value, so that the referee can be tested alone."""

    stakes: TableStakes = field(default_factory=TableStakes)
    raise_cap: int = 4
    high_qualifier: str | None = "6"
    low_qualifier: str | None = "8"
    no_qualifier: str = "best_high"
    draw_order: str = "simultaneous"
    draws: int = 3
    max_discard: int = 5
    ranks: str = "23456789TJQKA"
    suits: str = "cdhs"
    hand_size: int = 5
    flushes: bool = True


ARCHIE = TableRules()
BARGE = replace(ARCHIE, draw_order="sequential")
PAGAT = replace(ARCHIE, high_qualifier="9", no_qualifier="equal_split", draw_order="sequential")
SMALL_GAME = TableRules(stakes=TableStakes(bets=(2, 4)), draws=1, low_qualifier="4")
MINI = replace(SMALL_GAME, high_qualifier="3", max_discard=2, ranks="A23456", suits="cd", hand_size=2, flushes=False)
MIDI = replace(SMALL_GAME, high_qualifier="5", max_discard=3, ranks="A2345", suits="cdh", hand_size=3, flushes=False)
ODD_CHIPS = replace(ARCHIE, stakes=TableStakes((1, 3), (3, 3, 6, 6)))

TABLES = {"archie": ARCHIE, "barge": BARGE, "pagat": PAGAT, "mini": MINI, "midi": MIDI}
FULL_GAMES = ("archie", "barge", "pagat")


def deck_for(big_blind: str, dealer: str, replacements: str = "", rules: TableRules = ARCHIE) -> list[int]:
    """A full deck that deals the two named hands and then the named replacements."""
    first, second = parse_cards(big_blind), parse_cards(dealer)
    named = [card for pair in zip(first, second, strict=True) for card in pair] + parse_cards(replacements)
    return named + [card for card in full_deck(rules) if card not in named]


def names(hand: list[int]) -> str:
    """A hand as text."""
    return "".join(card_name(card) for card in hand)


def after(rules: TableRules, actions: list[int], dealer: int = 1) -> Referee:
    """The referee of a fixed deal after some actions."""
    referee = Referee(rules, full_deck(rules), dealer)
    for action in actions:
        referee.apply(action)
    return referee


def check_down(referee: Referee) -> Referee:
    """Check, call and stand pat to the end."""
    while not referee.over:
        referee.apply(STAND_PAT if referee.drawing else CHECK_OR_CALL)
    return referee


def random_hand(rules: TableRules, chance: random.Random, replacements: str = "shared") -> Iterator[Referee]:
    """A random hand that seldom folds, yielded before every action and once at the end."""
    deck = full_deck(rules)
    chance.shuffle(deck)
    referee = Referee(rules, deck, chance.randrange(2), replacements)
    while not referee.over:
        yield referee
        weights = [1 if action == FOLD else 8 for action in referee.legal_actions()]
        referee.apply(chance.choices(referee.legal_actions(), weights)[0])
    yield referee


def high_classes() -> Iterator[tuple[list[int], int]]:
    """One five-card hand of every kind that suits can tell apart, with the number of hands it stands for."""
    for ranks in combinations_with_replacement(range(13), 5):
        counts = Counter(ranks)
        if max(counts.values()) > 4:
            continue
        # The suits of a rank are taken from clubs up, turned by one rank after rank, which never makes a flush.
        turned = enumerate(sorted(counts.items()))
        mixed = [4 * rank + (turn + suit) % 4 for turn, (rank, count) in turned for suit in range(count)]
        ways = prod(comb(4, count) for count in counts.values())
        if len(counts) == 5:
            yield [4 * rank for rank in ranks], 4
            ways -= 4
        yield sorted(mixed), ways


# R3


def test_every_category_is_as_frequent_as_published() -> None:
    """T2: the nine categories and the 7462 different highs over all 2,598,960 hands."""
    frequency: Counter[int] = Counter()
    values = set()
    for hand, ways in high_classes():
        assert len(set(hand)) == 5
        frequency[high_value(hand)[0]] += ways
        values.add(high_value(hand))
    best_first = [frequency[category] for category in range(STRAIGHT_FLUSH, HIGH_CARD - 1, -1)]
    assert best_first == [40, 624, 3744, 5108, 10200, 54912, 123552, 1098240, 1302540]
    assert len(values) == 7462


def test_qualifiers_let_through_as_many_hands_as_published() -> None:
    """T2, R3.2, R3.3: qualifying highs and lows, hands that qualify both ways and neither way."""
    for rules, highs, neither in ((ARCHIE, 958_500, 1_587_420), (PAGAT, 705_060, 1_840_860)):
        table: Counter[tuple[bool, bool]] = Counter()
        pairs_or_better = 0
        for hand, ways in high_classes():
            table[qualifies_high(hand, rules), qualifies_low(hand, rules)] += ways
            pairs_or_better += ways if qualifies_high(hand, rules) else 0
        assert pairs_or_better == highs
        assert table[True, True] == 4_304
        assert table[False, False] == neither
        assert table[True, True] + table[False, True] == 57_344


def test_lows_below_each_class_are_as_many_as_published() -> None:
    """T3, R3.3: the number of rank sets at or below each class, by the two highest ranks."""
    lows = []
    for ranks in combinations(range(13), 5):
        value = low_value([4 * rank for rank in ranks], "8")
        if value is not None:
            lows.append(value)
    assert len(lows) == len(set(lows)) == 56
    expected = {"54": 1, "64": 2, "65": 6, "74": 7, "75": 11, "76": 21, "84": 22, "85": 26, "86": 36, "87": 56}
    published = [0.04, 0.08, 0.24, 0.28, 0.43, 0.83, 0.87, 1.02, 1.42, 2.21]
    cumulative = []
    for name in expected:
        worst = (-int(name[0]), -int(name[1]))
        cumulative.append(sum(low[:2] >= worst for low in lows))
    assert cumulative == list(expected.values())
    assert [round(100 * sets * 1024 / comb(52, 5), 2) for sets in cumulative] == published


def test_highs_rank_in_the_stated_order() -> None:
    """R3.1: categories, then the largest and highest groups, then kickers."""
    weakest_first = [
        "7c5d4h3s2c",
        "AcQdJhTs9c",
        "AcKd4h3s2c",
        "2c2d5h4s3c",
        "2c2dAhKsQc",
        "3c3d5h4s2c",
        "AcAd4h3s2c",
        "3c3d2h2sAc",
        "4c4d2h2s3c",
        "4c4d3h3s2c",
        "AcAdKhKsQc",
        "2c2d2h4s3c",
        "AcAdAhKsQc",
        "Ac2d3h4s5c",
        "2c3d4h5s6c",
        "TcJdQhKsAc",
        "2c3c4c5c7c",
        "9cJcQcKcAc",
        "2c2d2h3s3c",
        "2c2d2hAsAc",
        "3c3d3h2s2c",
        "2c2d2h2s3c",
        "2c2d2h2sAc",
        "3c3d3h3s2c",
        "Ac2c3c4c5c",
        "2c3c4c5c6c",
        "TcJcQcKcAc",
    ]
    values = [high_value(parse_cards(hand)) for hand in weakest_first]
    assert values == sorted(values)
    assert len(set(values)) == len(values)


def test_full_houses_compare_the_triplet_first() -> None:
    """R3.1: the higher triplet wins whatever the pairs are."""
    assert high_value(parse_cards("3c3d3h2s2c")) > high_value(parse_cards("2c2d2hAsAc"))
    assert high_value(parse_cards("3c3d3h2s2c"))[0] == FULL_HOUSE


def test_straights_do_not_wrap_around() -> None:
    """R3.1: the ace ends a straight but never stands in the middle of one."""
    assert high_value(parse_cards("QcKdAh2s3c"))[0] == HIGH_CARD
    assert high_value(parse_cards("JcKdAh2s3c"))[0] == HIGH_CARD
    assert high_value(parse_cards("AcKdQhJsTc"))[0] == STRAIGHT


def test_suits_never_rank() -> None:
    """R3.1: exchanging suits does not change a value."""
    chance = random.Random(31)
    for _ in range(200):
        hand = chance.sample(range(52), 5)
        suits = chance.sample(range(4), 4)
        other = [4 * rank_of(card) + suits[card % 4] for card in hand]
        assert high_value(hand) == high_value(other)
        assert low_value(hand, "8") == low_value(other, "8")


def test_flushes_can_be_left_out() -> None:
    """R6: without flushes five cards of one suit are worth their ranks, and straights still count."""
    assert high_value(parse_cards("2c3c4c5c6c"), flushes=False) == high_value(parse_cards("2c3d4h5s6c"))
    assert high_value(parse_cards("2c3c4c5c7c"), flushes=False) == high_value(parse_cards("2c3d4h5s7c"))


def test_short_hands_have_no_straights_or_flushes() -> None:
    """R6: below five cards only equal ranks make a category."""
    assert high_value(parse_cards("2c3c4c5c"))[0] == HIGH_CARD
    assert high_value(parse_cards("Ac2c3c"))[0] == HIGH_CARD
    assert high_value(parse_cards("AcKc"))[0] == HIGH_CARD
    assert high_value(parse_cards("2c2d2h"))[0] == THREE_OF_A_KIND
    assert high_value(parse_cards("2c2d3h3s"))[0] == TWO_PAIR
    assert high_value(parse_cards("2c2d"))[0] == ONE_PAIR
    assert high_value(parse_cards("2c2d2h")) > high_value(parse_cards("AcAdKh"))
    assert high_value(parse_cards("2c2d")) > high_value(parse_cards("AcKd"))


def test_high_qualifies_from_the_pair_named_upwards() -> None:
    """R3.2: a pair of the rank named or better, every two pair and everything above."""
    lowest, below = parse_cards("6c6d4h3s2c"), parse_cards("5c5dAhKsQc")
    assert qualifies_high(lowest, ARCHIE)
    assert not qualifies_high(below, ARCHIE)
    assert not qualifies_high(parse_cards("AcKdQhJs9c"), ARCHIE)
    assert qualifies_high(parse_cards("3c3d2h2s4c"), PAGAT)
    assert not qualifies_high(parse_cards("8c8dAhKsQc"), PAGAT)
    assert qualifies_high(parse_cards("9c9d4h3s2c"), PAGAT)
    assert not qualifies_high(parse_cards("AcAdAhAsKc"), replace(ARCHIE, high_qualifier=None))


def test_low_needs_different_ranks_none_above_the_qualifier() -> None:
    """R3.3: five different ranks up to eight, ace low, straights and flushes ignored, compared from the highest."""
    best_first = ["Ac2c3c4c5c", "Ac2d3h4s6c", "Ac3d4h5s6c", "2c3d4h5s6c", "Ac2d3h4s7c", "4c5d6h7s8c"]
    values = [low_value(parse_cards(hand), "8") for hand in best_first]
    qualified = [value for value in values if value is not None]
    assert qualified == sorted(qualified, reverse=True)
    assert len(set(qualified)) == len(best_first)
    assert low_value(parse_cards("Ac2d3h4s9c"), "8") is None
    assert low_value(parse_cards("Ac2d3h4s4c"), "8") is None
    assert low_value(parse_cards("Ac2d3h4s5c"), None) is None
    assert low_value(parse_cards("4cAd"), "4") is not None
    assert low_value(parse_cards("5cAd"), "4") is None


def test_the_same_cards_may_qualify_both_ways() -> None:
    """R3.3: a straight or a flush of low cards is a high and a low."""
    for name in ("As2d3c4h5s", "8s6s4s3s2s"):
        assert qualifies_high(parse_cards(name), ARCHIE)
        assert qualifies_low(parse_cards(name), ARCHIE)


def test_equal_highs_are_equal_lows() -> None:
    """T4: two hands with equal highs hold the same ranks, so their lows are equal."""
    lows: dict[object, set[object]] = {}
    for hand, _ in high_classes():
        lows.setdefault(high_value(hand), set()).add(low_value(hand, "8"))
    assert all(len(values) == 1 for values in lows.values())


def test_equal_lows_differ_for_high_only_by_a_flush() -> None:
    """T4: of the hands with one low, exactly the flushes have another high."""
    highs: dict[object, dict[bool, set[object]]] = {}
    for hand, _ in high_classes():
        low = low_value(hand, "8")
        if low is not None:
            flush = len({card % 4 for card in hand}) == 1
            highs.setdefault(low, {True: set(), False: set()})[flush].add(high_value(hand))
    assert len(highs) == 56
    for by_suit in highs.values():
        assert len(by_suit[True]) == len(by_suit[False]) == 1
        assert by_suit[True] != by_suit[False]


# R4


def divided(first: str, second: str, rules: TableRules = ARCHIE, paid_each: int = 8, dealer: int = 1) -> Showdown:
    """The showdown of two named hands."""
    return showdown([parse_cards(first), parse_cards(second)], paid_each, rules, dealer)


def test_the_guides_first_outcome_is_a_scoop() -> None:
    """T1, R4.1: the wheel is a straight for high and the best low, and takes both halves."""
    result = divided("As2d3c4h5s", "9c9h7d7s2c")
    assert result.awards == (16, 0)
    assert result.high_winners == result.low_winners == {0}
    assert result.unqualified_winners == set()


def test_the_guides_second_outcome_goes_to_the_best_ordinary_high() -> None:
    """T1, R4.3: nobody qualifies, and a pair of fours takes everything."""
    result = divided("Kh9d7c4s2h", "4c4dQs8h3c")
    assert result.awards == (0, 16)
    assert result.high_winners == result.low_winners == set()
    assert result.unqualified_winners == {1}


def test_nobody_qualifying_divides_the_pot_equally_where_the_rules_say_so() -> None:
    """R4.3, R6: under `equal_split` the better high is worth nothing more."""
    result = divided("Kh9d7c4s2h", "4c4dQs8h3c", PAGAT)
    assert result.awards == (8, 8)
    assert result.unqualified_winners == {0, 1}


def test_equal_unqualified_highs_share_the_pot() -> None:
    """R4.3, R4.4: the best ordinary high may be held twice."""
    result = divided("KhQd7c4s2h", "KdQs7h4c2s")
    assert result.awards == (8, 8)
    assert result.unqualified_winners == {0, 1}


def test_the_pot_is_halved_between_a_high_and_a_low() -> None:
    """R4.1: both directions have a qualifier, on different hands."""
    result = divided("9c9h7d6s2c", "As2d3c4h8s")
    assert result.awards == (8, 8)
    assert result.high_winners == {0}
    assert result.low_winners == {1}


def test_one_direction_alone_takes_everything() -> None:
    """R4.2: a qualifying low beats any high that does not qualify, and the other way round."""
    assert divided("5c5h7d6s2c", "As2d3c4h8s").awards == (0, 16)
    assert divided("6c6h7d5s2c", "KsQd3c4h8s").awards == (16, 0)
    assert divided("8c8h7d6s2c", "As2d3c4h8s", PAGAT).awards == (0, 16)


def test_a_flush_on_equal_lows_takes_three_quarters() -> None:
    """T4, R4.4: the low is shared and the flush alone is a high."""
    result = divided("8s6s4s3s2s", "8h6d4c3h2h")
    assert result.awards == (12, 4)
    assert result.high_winners == {0}
    assert result.low_winners == {0, 1}


@pytest.mark.parametrize(("dealer", "awards"), [(1, (5, 1)), (0, (4, 2))])
def test_the_odd_chip_of_a_shared_part_goes_to_the_big_blind(dealer: int, awards: tuple[int, int]) -> None:
    """R4.4, T5: three chips each, and three of the six are shared for low."""
    assert divided("8s6s4s3s2s", "8h6d4c3h2h", ODD_CHIPS, 3, dealer).awards == awards


@pytest.mark.parametrize("dealer", [0, 1])
def test_nobody_gets_two_odd_chips(dealer: int) -> None:
    """R4.4: with both parts shared the second odd chip goes to the other player."""
    result = divided("As2d3c4h5s", "Ah2s3d4c5h", ODD_CHIPS, 3, dealer)
    assert result.awards == (3, 3)
    assert result.high_winners == result.low_winners == {0, 1}


def test_odd_chips_need_odd_payments() -> None:
    """T5: with other stakes the hands of T4, called and checked down, leave an odd chip in the whole game."""
    deck = deck_for("8s6s4s3s2s", "8h6d4c3h2h", rules=ODD_CHIPS)
    referee = check_down(Referee(ODD_CHIPS, deck, dealer=0))
    assert referee.paid == [3, 3]
    assert referee.net == (-2, 2)
    deck = deck_for("8h6d4c3h2h", "8s6s4s3s2s", rules=ODD_CHIPS)
    assert check_down(Referee(ODD_CHIPS, deck, dealer=0)).net == (1, -1)


def test_a_pat_low_and_a_qualifying_pair_always_halve_the_pot() -> None:
    """T8, R4.1: a low that is no straight or flush against a qualifying pair that is kept gains nothing."""
    chance = random.Random(8)
    deals = 0
    for _ in range(200):
        low = [4 * rank + chance.randrange(4) for rank in chance.sample([*range(7), 12], 5)]
        deck = [card for card in full_deck(ARCHIE) if card not in low]
        chance.shuffle(deck)
        high, rest = deck[:5], deck[5:]
        if high_value(low)[0] != HIGH_CARD or high_value(high)[0] != ONE_PAIR or not qualifies_high(high, ARCHIE):
            continue
        dealt = [card for pair in zip(low, high, strict=True) for card in pair]
        referee = Referee(ARCHIE, dealt + rest, dealer=1)
        while not referee.over:
            if not referee.drawing:
                referee.apply(CHECK_OR_CALL)
            elif referee.to_act == referee.big_blind or high_value(referee.hands[1])[0] >= STRAIGHT:
                referee.apply(STAND_PAT)
            else:
                counts = Counter(rank_of(card) for card in referee.hands[1])
                unpaired = [index for index, card in enumerate(referee.hands[1]) if counts[rank_of(card)] == 1]
                referee.apply(STAND_PAT + sum(1 << index for index in unpaired))
        deals += 1
        assert referee.net == (0, 0)
    assert deals > 20


# R1, R2: betting


def test_blinds_count_as_paid() -> None:
    """R1.2: the dealer has paid one chip and the big blind two before anybody acts."""
    referee = after(ARCHIE, [], dealer=0)
    assert referee.paid == [1, 2]
    assert referee.to_act == 0
    referee.apply(CHECK_OR_CALL)
    assert referee.paid == [2, 2]


def test_the_big_blind_is_the_bet_of_the_first_round() -> None:
    """R1.3: three raises before the first draw, to totals of 4, 6 and 8."""
    referee = after(ARCHIE, [])
    totals = []
    while BET_OR_RAISE in referee.legal_actions():
        referee.apply(BET_OR_RAISE)
        totals.append(max(referee.paid))
    assert totals == [4, 6, 8]
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL]


def test_a_later_round_has_one_bet_and_three_raises() -> None:
    """R1.3: wagers of 2, 2, 4 and 4 chips by round, and never more than 48 chips each."""
    referee = after(ARCHIE, [])
    totals = []
    while not referee.over:
        if referee.drawing:
            referee.apply(STAND_PAT)
        elif BET_OR_RAISE in referee.legal_actions():
            before = max(referee.paid)
            referee.apply(BET_OR_RAISE)
            assert max(referee.paid) - before == ARCHIE.stakes.bets[referee.round]
        else:
            referee.apply(CHECK_OR_CALL)
            totals.append(referee.paid[0])
    assert totals == [8, 16, 32, 48]
    assert [len(actions) for actions in referee.wagers] == [4, 5, 5, 5]
    assert referee.paid == [48, 48]


def test_the_cap_counts_the_first_bet() -> None:
    """R1.3, R6: a cap of one allows no raise of the big blind, and one bet later."""
    rules = replace(ARCHIE, raise_cap=1)
    referee = after(rules, [])
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL]
    for action in (CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT, STAND_PAT, BET_OR_RAISE):
        referee.apply(action)
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL]


def test_the_big_blind_keeps_the_option_when_merely_called() -> None:
    """R2.1: a call by the dealer does not end the first round."""
    referee = after(ARCHIE, [CHECK_OR_CALL])
    assert referee.to_act == referee.big_blind
    assert referee.legal_actions() == [CHECK_OR_CALL, BET_OR_RAISE]
    referee.apply(BET_OR_RAISE)
    assert referee.to_act == referee.dealer
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL, BET_OR_RAISE]


def test_the_big_blind_acts_first_after_every_draw() -> None:
    """R2.2: in the draw and in the round after it."""
    for number in (1, 2, 3):
        opening = [CHECK_OR_CALL, CHECK_OR_CALL]
        referee = after(ARCHIE, opening + [STAND_PAT, STAND_PAT, CHECK_OR_CALL, CHECK_OR_CALL] * (number - 1))
        assert referee.drawing
        assert referee.to_act == referee.big_blind
        referee.apply(STAND_PAT)
        assert referee.to_act == referee.dealer
        referee.apply(STAND_PAT)
        assert not referee.drawing
        assert referee.round == number
        assert referee.to_act == referee.big_blind


def test_fold_is_no_action_without_a_wager() -> None:
    """R2.4: nothing to call leaves a check and a bet; facing a wager leaves fold, call and raise."""
    opened = [CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT, STAND_PAT]
    assert after(ARCHIE, opened).legal_actions() == [CHECK_OR_CALL, BET_OR_RAISE]
    assert after(ARCHIE, [*opened, CHECK_OR_CALL]).legal_actions() == [CHECK_OR_CALL, BET_OR_RAISE]
    assert after(ARCHIE, [*opened, BET_OR_RAISE]).legal_actions() == [FOLD, CHECK_OR_CALL, BET_OR_RAISE]
    with pytest.raises(ValueError, match="not legal"):
        after(ARCHIE, [*opened, FOLD])


def test_check_raising_is_allowed() -> None:
    """R2.4: a player who checked may raise the bet that follows."""
    opened = [CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT, STAND_PAT]
    referee = after(ARCHIE, [*opened, CHECK_OR_CALL, BET_OR_RAISE])
    assert referee.to_act == referee.big_blind
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL, BET_OR_RAISE]
    referee.apply(BET_OR_RAISE)
    assert referee.paid[referee.big_blind] == 6


def test_two_checks_end_a_round() -> None:
    """R2.4: the last round ends in the showdown when both check."""
    referee = check_down(after(ARCHIE, []))
    assert referee.wagers == [[CHECK_OR_CALL, CHECK_OR_CALL]] * 4
    assert referee.paid == [2, 2]
    assert referee.over
    assert referee.legal_actions() == []
    with pytest.raises(ValueError, match="not legal"):
        referee.apply(CHECK_OR_CALL)


def test_a_fold_gives_the_pot_away_unseen() -> None:
    """R2.5: the qualifiers do not matter and there is no showdown."""
    deck = deck_for("Kh9d7c4s2h", "As2d3c4h5s")
    referee = Referee(ARCHIE, deck, dealer=1)
    for action in (BET_OR_RAISE, BET_OR_RAISE, FOLD):
        referee.apply(action)
    assert referee.over
    assert referee.folded == 1
    assert referee.showdown is None
    assert referee.awards == (10, 0)
    assert referee.net == (4, -4)


def test_equal_blinds_leave_the_dealer_nothing_to_call() -> None:
    """R2.1, R2.4: what is owed is the difference of what was paid."""
    rules = replace(ARCHIE, stakes=TableStakes(blinds=(2, 2)))
    referee = after(rules, [])
    assert referee.legal_actions() == [CHECK_OR_CALL, BET_OR_RAISE]
    referee.apply(CHECK_OR_CALL)
    assert not referee.drawing
    referee.apply(CHECK_OR_CALL)
    assert referee.drawing


def test_a_dealer_without_a_blind_still_owes_the_big_one() -> None:
    """R2.4: a small blind of nothing leaves two chips to call, and a fold that costs nothing."""
    rules = replace(ARCHIE, stakes=TableStakes(blinds=(0, 2)))
    referee = after(rules, [])
    assert referee.legal_actions() == [FOLD, CHECK_OR_CALL, BET_OR_RAISE]
    referee.apply(FOLD)
    assert referee.net == (0, 0)


def endings(rules: TableRules, opening: list[int], whole_hand: bool) -> Counter[str]:
    """How often the betting after `opening` ends in a fold or goes on, standing pat in every draw.

    To go on is to reach the next draw, or with `whole_hand` the showdown.
    """
    found: Counter[str] = Counter()
    waiting = [opening]
    while waiting:
        actions = waiting.pop()
        referee = after(rules, actions)
        while referee.drawing and whole_hand:
            referee.apply(STAND_PAT)
            actions = [*actions, STAND_PAT]
        if referee.folded is not None:
            found["fold"] += 1
        elif referee.over or referee.drawing:
            found["on"] += 1
        else:
            waiting.extend([*actions, action] for action in referee.legal_actions())
    return found


def test_each_round_has_as_many_ways_as_stated() -> None:
    """T6: 7 ways to go on and 7 to fold in round 1, 9 and 8 in each later round."""
    opening: list[int] = []
    ways = []
    for _ in range(4):
        found = endings(ARCHIE, opening, whole_hand=False)
        ways.append((found["on"], found["fold"]))
        opening = [*opening, CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT, STAND_PAT]
    assert ways == [(7, 7), (9, 8), (9, 8), (9, 8)]


def test_a_hand_has_as_many_betting_histories_as_stated() -> None:
    """T6: 5,103 reach the showdown and 10,206 end in all; with public counts many more, each draw in 36 ways."""
    found = endings(ARCHIE, [], whole_hand=True)
    assert found["on"] == 5_103
    assert found["on"] + found["fold"] == 10_206

    draws = len({action.bit_count() for action in range(32)}) ** 2
    on, fold = (7, 9, 9, 9), (7, 8, 8, 8)
    open_histories, ended = 1, 0
    for number in range(4):
        open_histories *= draws if number else 1
        ended += open_histories * fold[number]
        open_histories *= on[number]
    assert open_histories == 238_085_568
    assert open_histories + ended == 450_372_391


def test_the_longest_hand_has_as_many_decisions_as_stated() -> None:
    """T6: 29 decisions, by checking once and then raising to the cap in every round."""
    referee = after(ARCHIE, [CHECK_OR_CALL])
    decisions = 1
    while not referee.over:
        legal = referee.legal_actions()
        first_check = not referee.drawing and not referee.wagers[referee.round]
        raising = BET_OR_RAISE in legal and not first_check
        referee.apply(STAND_PAT if referee.drawing else BET_OR_RAISE if raising else CHECK_OR_CALL)
        decisions += 1
    assert decisions == 29


def test_payments_at_showdown_are_even() -> None:
    """T5: with the default stakes each player has paid one of the 24 even values from 2 to 48."""
    per_round = ({2, 4, 6, 8}, {0, 2, 4, 6, 8}, {0, 4, 8, 12, 16}, {0, 4, 8, 12, 16})
    assert {sum(parts) for parts in product(*per_round)} == set(range(2, 49, 2))
    chance = random.Random(5)
    seen = set()
    for _ in range(300):
        *_, referee = random_hand(ARCHIE, chance)
        if referee.folded is None:
            assert referee.paid[0] == referee.paid[1]
            seen.add(referee.paid[0])
    assert seen <= set(range(2, 49, 2))
    assert len(seen) > 12


# R2.3, R5: cards


def test_cards_are_dealt_one_at_a_time_from_the_big_blind() -> None:
    """R5.3: the first card of the deck is the big blind's, the second the dealer's."""
    deck = list(range(52))
    referee = Referee(ARCHIE, deck, dealer=0)
    assert referee.hands == [[1, 3, 5, 7, 9], [0, 2, 4, 6, 8]]


def test_replacements_come_as_a_block_from_the_big_blind() -> None:
    """R2.3, R5.3: nothing is dealt before both have committed, then the big blind's block comes first."""
    referee = Referee(ARCHIE, deck_for("2c3c4c5c7d", "8d9dTdJdQd", "AhAsKhKsQh"), dealer=1)
    referee.apply(CHECK_OR_CALL)
    referee.apply(CHECK_OR_CALL)
    referee.apply(STAND_PAT + 0b00011)
    assert names(referee.hands[0]) == "2c3c4c5c7d"
    referee.apply(STAND_PAT + 0b10101)
    assert names(referee.hands[0]) == "4c5c7dAhAs"
    assert names(referee.hands[1]) == "9dJdQhKhKs"
    assert referee.draw_counts == [[2], [3]]


def test_replacements_can_be_set_aside_for_each_seat() -> None:
    """R5.3: with replacements of its own, a seat's new cards do not depend on the other seat's discards."""
    deck = list(range(52))
    for mask in (0, 1, 31):
        referee = Referee(ARCHIE, deck, dealer=1, replacements="per_seat")
        for action in (CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT + mask, STAND_PAT + 31):
            referee.apply(action)
        assert referee.hands[1] == [25, 26, 27, 28, 29]
        for action in (CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT + 31, STAND_PAT + 1):
            referee.apply(action)
        assert referee.hands[1] == [26, 27, 28, 29, 30]
        taken = mask.bit_count()
        assert referee.hands[0] == list(range(10 + taken, 15 + taken))


def test_at_most_forty_cards_are_used() -> None:
    """R1.1: both players replacing everything three times never meet a card twice."""
    referee = Referee(ARCHIE, list(range(40)), dealer=0)
    seen = [*referee.hands[0], *referee.hands[1]]
    while not referee.over:
        drawing = referee.drawing
        referee.apply(STAND_PAT + 31 if drawing else CHECK_OR_CALL)
        if drawing and not referee.drawing:
            seen += [*referee.hands[0], *referee.hands[1]]
    assert sorted(seen) == list(range(40))


def test_every_discard_is_legal_up_to_the_limit() -> None:
    """R2.3, R6: zero to five discards, or as many as the rules allow."""
    assert after(ARCHIE, [CHECK_OR_CALL] * 2).legal_actions() == list(range(3, 35))
    limited = replace(ARCHIE, max_discard=3)
    legal = after(limited, [CHECK_OR_CALL] * 2).legal_actions()
    assert legal == [3 + mask for mask in range(32) if mask.bit_count() <= 3]
    assert after(MINI, [CHECK_OR_CALL] * 2).legal_actions() == [3, 4, 5, 6]


def test_simultaneous_counts_are_hidden_until_dealt() -> None:
    """R5.1: the dealer does not see the big blind's count before the replacements are dealt."""
    referee = after(ARCHIE, [CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT + 0b111])
    assert referee.known_draw_counts(0) == [[3], []]
    assert referee.known_draw_counts(1) == [[], []]
    assert referee.draw_counts == [[], []]
    referee.apply(STAND_PAT)
    assert referee.known_draw_counts(0) == referee.known_draw_counts(1) == referee.draw_counts == [[3], [0]]


def test_sequential_counts_are_announced() -> None:
    """R5.1: the dealer knows how many cards the big blind throws away."""
    referee = after(BARGE, [CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT + 0b111])
    assert referee.known_draw_counts(0) == referee.known_draw_counts(1) == [[3], []]
    assert referee.draw_counts == [[], []]


def test_a_bad_deck_or_dealer_is_refused() -> None:
    """R1.1, R5.3: no card twice, none from outside the deck, and enough of them."""
    with pytest.raises(ValueError, match="repeats"):
        Referee(ARCHIE, [0, 0, *range(2, 52)], 0)
    with pytest.raises(ValueError, match="repeats"):
        Referee(MINI, list(range(12)), 0)
    with pytest.raises(ValueError, match="dealer"):
        Referee(ARCHIE, list(range(52)), 2)
    referee = Referee(ARCHIE, list(range(12)), 0)
    for action in (CHECK_OR_CALL, CHECK_OR_CALL, STAND_PAT + 31):
        referee.apply(action)
    with pytest.raises(ValueError, match="too short"):
        referee.apply(STAND_PAT)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("replacements", ["shared", "per_seat"])
def test_random_hands_keep_chips_and_cards(name: str, replacements: str) -> None:
    """R4.5, R1.1: results sum to zero, all that was paid is awarded, and no card is held twice."""
    rules = TABLES[name]
    chance = random.Random(f"{name} {replacements}")
    for _ in range(60):
        for referee in random_hand(rules, chance, replacements):
            held = [*referee.hands[0], *referee.hands[1]]
            assert len(set(held)) == 2 * rules.hand_size
            assert all(hand == sorted(hand) for hand in referee.hands)
        assert sum(referee.awards) == sum(referee.paid)
        assert sum(referee.net) == 0
        assert min(referee.awards) >= 0


def test_the_small_games_use_the_same_clauses() -> None:
    """R6, R3.3: two cards qualify with a pair of threes or as two different ranks up to four."""
    assert qualifies_high(parse_cards("3c3d"), MINI)
    assert not qualifies_high(parse_cards("2c2d"), MINI)
    assert not qualifies_high(parse_cards("5c6d"), MINI)
    assert qualifies_low(parse_cards("Ac4d"), MINI)
    assert not qualifies_low(parse_cards("Ac5d"), MINI)
    assert qualifies_low(parse_cards("Ac2d4h"), MIDI)
    assert qualifies_high(parse_cards("2c2d2h"), MIDI)
    assert not qualifies_high(parse_cards("4c4d5h"), MIDI)
    assert len(full_deck(MINI)) == 12
    assert len(full_deck(MIDI)) == 15
    low_and_high = showdown([parse_cards("3c3d"), parse_cards("Ac2d")], 2, MINI, 0)
    assert low_and_high.awards == (2, 2)


# PokerKit


@pytest.mark.parametrize("name", FULL_GAMES)
def test_pokerkit_agrees_on_whole_hands(name: str) -> None:
    """R1 to R4: who acts, what is legal, the cards held and the result of random hands."""
    rules = TABLES[name]
    chance = random.Random(f"pokerkit {name}")
    for _ in range(100):
        deck = full_deck(rules)
        chance.shuffle(deck)
        dealer = chance.randrange(2)
        referee = Referee(rules, deck, dealer)
        other = pokerkit_oracle.PokerKitHand(rules, deck, dealer)
        actions: list[int] = []
        actors: list[int] = []
        legal: list[list[int]] = []
        while referee.to_act is not None:
            assert other.to_act == referee.to_act
            assert other.legal_actions() == referee.legal_actions()
            # PokerKit takes a discard away at once, the referee when it is replaced, so only one hand compares.
            assert other.hands[referee.to_act] == referee.hands[referee.to_act]
            weights = [1 if action == FOLD else 8 for action in referee.legal_actions()]
            actions.append(chance.choices(referee.legal_actions(), weights)[0])
            actors.append(referee.to_act)
            legal.append(referee.legal_actions())
            referee.apply(actions[-1])
            other.apply(actions[-1])
        assert other.over
        assert other.net == referee.net
        assert pokerkit_oracle.play(rules, deck, dealer, actions, actors, legal) == referee.net


def test_pokerkit_agrees_on_the_guides_outcomes() -> None:
    """T1, T4, R4.3: a scoop, nobody qualifying under both rules, an equal unqualified high, three quarters."""
    calls = [CHECK_OR_CALL, CHECK_OR_CALL] + [STAND_PAT, STAND_PAT, CHECK_OR_CALL, CHECK_OR_CALL] * 3
    for rules, big_blind, dealer, net in (
        (ARCHIE, "As2d3c4h5s", "9c9h7d7s2c", (2, -2)),
        (ARCHIE, "Kh9d7c4s2h", "4c4dQs8h3c", (-2, 2)),
        (PAGAT, "Kh9d7c4s2h", "4c4dQs8h3c", (0, 0)),
        (ARCHIE, "KhQd7c4s2h", "KdQs7h4c2s", (0, 0)),
        (ARCHIE, "8s6s4s3s2s", "8h6d4c3h2h", (1, -1)),
    ):
        deck = deck_for(big_blind, dealer)
        assert pokerkit_oracle.play(rules, deck, 1, calls) == net
        assert check_down(Referee(rules, deck, dealer=1)).net == net


def test_pokerkit_agrees_on_an_odd_chip() -> None:
    """R4.4, T5: PokerKit, too, gives the odd chip of a shared low to the big blind."""
    calls = [CHECK_OR_CALL, CHECK_OR_CALL] + [STAND_PAT, STAND_PAT, CHECK_OR_CALL, CHECK_OR_CALL] * 3
    for big_blind, dealer in (("8s6s4s3s2s", "8h6d4c3h2h"), ("8h6d4c3h2h", "8s6s4s3s2s")):
        deck = deck_for(big_blind, dealer)
        assert pokerkit_oracle.play(ODD_CHIPS, deck, 0, calls) == check_down(Referee(ODD_CHIPS, deck, dealer=0)).net


def test_pokerkit_ranks_hands_alike() -> None:
    """R3.1 to R3.3: PokerKit's hands compare as the referee's values, on random pairs of hands."""
    chance = random.Random(37)
    for _ in range(500):
        cards = chance.sample(range(52), 10)
        hands = [sorted(cards[:5]), sorted(cards[5:])]
        kit = [tuple(pokerkit_oracle.poker_kit_card(card) for card in hand) for hand in hands]
        highs = [StandardHighHand(hand) for hand in kit]
        assert (highs[0] < highs[1]) == (high_value(hands[0]) < high_value(hands[1]))
        for hand, theirs in zip(hands, kit, strict=True):
            for rules in (ARCHIE, PAGAT):
                assert rules.high_qualifier is not None
                qualified = pokerkit_oracle.qualified_high_hand(rules.high_qualifier)
                assert qualifies_high(hand, rules) == (qualified.from_game_or_none(theirs) is not None)
            low = EightOrBetterLowHand.from_game_or_none(theirs)
            assert qualifies_low(hand, ARCHIE) == (low is not None)
