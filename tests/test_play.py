"""The course of a hand: exact values T4 to T8, positions, caps, both draw orders, both ways to deal replacements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import perm
from pathlib import Path

import numpy as np
import pytest

from archie_env._core import batch as loops
from archie_env._core import table
from archie_env._core.jit import JIT_DISABLED
from archie_env._core.state import GAME
from archie_env._core.tables import CHOOSE, STRAIGHT, high_classes, high_table, low_table
from archie_env.batch import Batch, Hands
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError, CardError, IllegalActionError, OrderError, RulesError
from archie_env.game import Game, deck_order
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, Rules, Stakes
from tests.records import hands_in

FOLD, CALL, RAISE, PAT = 0, 1, 2, 3
GOLDEN = Path(__file__).parent / "golden"


def rigged(first: str, second: str, rest: str = "", *, dealer: int = 0, rules: Rules | str = "archie") -> Game:
    """A hand in which the dealer holds ``first`` and the big blind ``second``."""
    mine, theirs = parse_cards(first), parse_cards(second)
    dealt = [c for pair in zip(theirs, mine, strict=True) for c in pair]
    return Game(rules, deck=[*dealt, *parse_cards(rest)], dealer=dealer)


def check_down(game: Game) -> Game:
    while not game.over:
        game.apply(PAT if game.drawing else CALL)
    return game


# ---- R1, R2


@pytest.mark.parametrize("betting_round", range(4))
def test_a_fold_ends_the_hand_at_once(betting_round: int) -> None:
    """R2.5."""
    game = Game(seed=3, dealer=0)
    while game.round < betting_round or game.drawing:
        game.apply(PAT if game.drawing else CALL)
    bettor = game.to_act
    game.apply(RAISE)
    game.apply(FOLD)
    assert game.over
    assert game.to_act is None
    assert game.legal_actions() == ()
    assert bettor is not None
    assert game.result.net[bettor] > 0
    with pytest.raises(OrderError, match="over"):
        game.apply(CALL)


def test_dealer_acts_first_before_the_draw_and_last_after_it() -> None:
    """R2.1, R2.2."""
    for dealer in (0, 1):
        game = Game(seed=1, dealer=dealer)
        order = []
        while not game.over:
            order.append(game.to_act)
            game.apply(PAT if game.drawing else CALL)
        assert order == [dealer, 1 - dealer] + [1 - dealer, dealer] * 6


def test_big_blind_keeps_its_option() -> None:
    """R2.1."""
    game = Game(seed=1)
    game.apply(CALL)
    assert game.legal_actions() == (CALL, RAISE)


def test_cap_is_three_raises_over_the_blind_and_a_bet_and_three_raises_later() -> None:
    """R1.3: always raising pays 48 each."""
    game, raises = Game(seed=1), []
    while not game.over:
        if game.drawing:
            game.apply(PAT)
        elif RAISE in game.legal_actions():
            raises.append(game.round)
            game.apply(RAISE)
        else:
            assert game.legal_actions() == (FOLD, CALL)
            game.apply(CALL)
    assert [raises.count(r) for r in range(4)] == [3, 4, 4, 4]
    assert game.paid == (48, 48) == (Rules().reserve,) * 2


def test_positions_swap_from_hand_to_hand() -> None:
    """R1.5."""
    dealers = [Game(seed=9, hand=k).dealer for k in range(6)]
    assert dealers == [dealers[0], 1 - dealers[0]] * 3
    assert {Game(seed=s).dealer for s in range(20)} == {0, 1}


def test_both_drawing_five_three_times_use_forty_different_cards() -> None:
    """R1.1: discards never come back."""
    game = Game(seed=4)
    while not game.over:
        game.apply(3 + 31 if game.drawing else CALL)
    cards = [c for event in game.history if event.kind == "deal" for c in event.cards]
    assert len(cards) == len(set(cards)) == 40


def test_a_given_deck_is_dealt_as_the_clauses_say() -> None:
    """R5.3: initial cards one at a time, big blind first; replacements as a block, the big blind's first."""
    game = Game(deck=range(52), dealer=1)
    assert game.hands == ((0, 2, 4, 6, 8), (1, 3, 5, 7, 9))
    game.apply(CALL)
    game.apply(CALL)
    game.apply(3 + 0b00011)
    game.apply(3 + 0b00111)
    assert game.hands == ((4, 6, 8, 10, 11), (7, 9, 12, 13, 14))


def test_a_deck_prefix_leaves_the_rest_to_the_seed() -> None:
    prefix = parse_cards("As 2d 3c")
    first, second = Game(deck=prefix, seed=1), Game(deck=prefix, seed=2)
    assert first.deck[:3] == second.deck[:3] == prefix
    assert first.deck != second.deck
    assert sorted(first.deck) == list(range(52))
    assert Game(deck=prefix, seed=1).deck == first.deck


@pytest.mark.parametrize("thrown", [0, 31])
def test_per_seat_replacements_do_not_shift(thrown: int) -> None:
    """What the dealer throws never changes the big blind's replacements."""
    for deck in (None, list(range(51, -1, -1))):
        game = Game(seed=8, dealer=0, replacements="per_seat", deck=deck)
        plain = Game(seed=8, dealer=0, replacements="per_seat", deck=deck)
        for g, dealers in ((game, thrown), (plain, 7)):
            while not g.over:
                g.apply(CALL if not g.drawing else 3 + (dealers if g.to_act == 0 else 21))
        dealt = [[e.cards for e in g.history if e.kind == "deal" and e.seat == 1] for g in (game, plain)]
        assert dealt[0] == dealt[1]


@pytest.mark.parametrize("preset", ["archie", "barge", "mini"])
def test_cards_depend_on_seed_game_and_hand_alone(preset: str) -> None:
    """Not on what is played, nor on the hands before."""
    rng = np.random.default_rng(0)
    batch = Batch(8, preset, seed=5)
    for _ in range(60):
        batch.step(batch.sample_actions())
    for i in rng.integers(0, 8, 6).tolist():
        hand = int(batch.games["hand_number"][i])
        game = Game(preset, seed=5, index=i, hand=hand)
        record = batch.games[i]
        assert game.dealer == record["dealer"]
        out = int(record["next"][0])
        assert game.deck[:out] == tuple(game.rules.deck[card] for card in record["deck"][:out])


# ---- T4, T5: odd chips


@pytest.mark.parametrize("dealer_has_flush", [True, False])
def test_odd_chip_of_a_tied_half_goes_to_the_big_blind(dealer_has_flush: bool) -> None:
    """R4.4, T4, T5: blinds 1/3, both check down, c = 3; the flush wins high, the low is shared."""
    flush, other = "8s6s4s3s2s", "8h6d4c3h2h"
    rules = Rules(stakes=Stakes((1, 3), (3, 3, 6, 6)))
    game = check_down(rigged(*((flush, other) if dealer_has_flush else (other, flush)), rules=rules))
    assert game.paid == (3, 3)
    assert game.result.net == ((1, -1) if dealer_has_flush else (-2, 2))


def test_a_flush_takes_three_quarters_at_default_stakes() -> None:
    """T4: net +c/2."""
    game = rigged("8s6s4s3s2s", "8h6d4c3h2h")
    assert check_down(game).result.net == (1, -1)
    assert [(a.half, a.chips) for a in game.result.awards] == [("high", (2, 0)), ("low", (1, 1))]


def test_showdown_contributions_are_even_at_default_stakes() -> None:
    """T5: exactly the 24 even values 2..48, over the whole betting tree."""
    rules, books = Rules(), rulebook(Rules())
    start = np.zeros(1, GAME)
    table.deal_table(start, books, 0, 0, deck_order(rules, None)[0], 0)
    waiting, shown, visited = [start], set(), set()
    while waiting:
        games = waiting.pop()
        game = games[0]
        position = tuple(int(game[f]) for f in ("phase", "turn", "moves", "wagers")) + tuple(game["paid"].tolist())
        if game["over"]:
            shown |= set(game["paid"].tolist()) if game["folded"] == 0 else set()
        elif position not in visited:
            visited.add(position)
            for action in [PAT] if game["phase"] & 1 else [FOLD, CALL, RAISE]:
                after = games.copy()
                if table.play_table(after, books, action) != table.ILLEGAL:
                    waiting.append(after)
    assert shown == set(range(2, 49, 2))


def test_nobody_qualifies() -> None:
    """R4.3 and the presets: the best high takes all, or each takes half."""
    hands = ("Kh9d7c4s2h", "4c4dQs8h3c")
    assert check_down(rigged(*hands)).result.net == (-2, 2)
    assert check_down(rigged(*hands, rules="pagat")).result.net == (0, 0)
    eights = ("8h8dKc4s2h", "AcQdJs9h3c")
    assert check_down(rigged(*eights)).result.awards[0].reason == "only_high"
    assert check_down(rigged(*eights, rules="pagat")).result.net == (0, 0)


# ---- T6: counting the tree


def count_tree(rules: Rules, draw_counts: bool) -> tuple[dict[int, int], int, int]:
    """Walk every betting history of the engine, drawing 0 .. max_discard cards (or always standing pat).

    Counts histories that reach showdown and all that end, by memory of the betting state alone.
    """
    ways = rules.max_discard + 1 if draw_counts else 1
    books = rulebook(rules)
    start = np.zeros(1, GAME)
    table.deal_table(start, books, 0, 0, deck_order(rules, None)[0], 0)
    memory: dict[tuple[int, ...], tuple[int, int, int]] = {}

    def walk(games: np.ndarray) -> tuple[int, int, int]:
        """Showdowns, ends, longest line from here."""
        game = games[0]
        if game["over"]:
            return int(game["folded"] == 0), 1, 0
        key = (
            int(game["phase"]),
            int(game["turn"]),
            int(game["moves"]),
            int(game["wagers"]),
            int(game["paid"][0] - game["paid"][1]),
        )
        if key not in memory:
            showdowns = ends = longest = 0
            masks = np.zeros((2, rules.actions), np.int8)
            seat = table.look_masks(games, books, masks)
            drawing = bool(game["phase"] & 1)
            actions = [PAT] if drawing else np.flatnonzero(masks[seat]).tolist()
            for action in actions:
                after = games.copy()
                table.play_table(after, books, action)
                s, e, n = walk(after)
                times = ways if drawing else 1
                showdowns, ends, longest = showdowns + times * s, ends + times * e, max(longest, n + 1)
            memory[key] = showdowns, ends, longest
        return memory[key]

    _, ends, longest = walk(start)
    per_round: dict[int, int] = {}
    for key, (s, _, _) in memory.items():
        if key[2] == 0 and not key[0] & 1:
            per_round[key[0] >> 1] = s
    return per_round, ends, longest


def test_the_betting_tree_counts_exactly() -> None:
    """T6: 5,103 betting histories to showdown, 10,206 in all; 238,085,568 and 450,372,391 with draw counts; 29 decisions."""
    per_round, ends, longest = count_tree(Rules(), draw_counts=False)
    assert per_round == {0: 5103, 1: 729, 2: 81, 3: 9}  # 7 ways on from round 1, 9 from each later one
    assert (ends, longest) == (10_206, 29)
    with_draws, ends, _ = count_tree(Rules(), draw_counts=True)
    assert (with_draws[0], ends) == (238_085_568, 450_372_391)


def test_trees_of_all_presets_stay_as_they_are() -> None:
    """A golden file a person can review: histories to showdown, histories in all, longest hand."""
    lines = []
    for name, rules in PRESETS.items():
        betting, ends, longest = count_tree(rules, draw_counts=False)
        counted, counted_ends, _ = count_tree(rules, draw_counts=True)
        shown = f"betting {betting[0]} to showdown of {ends}; with draw counts {counted[0]} of {counted_ends}"
        lines.append(f"{name}: {shown}; {longest} decisions")
    assert "\n".join(lines) + "\n" == (GOLDEN / "trees.txt").read_text()


# ---- T7: completing a draw, by exact enumeration of the cards to come


def completed(kept: str, thrown: str, draws: int, goal: Callable[[np.ndarray], np.ndarray]) -> float:
    """Chance that the dealer completes, throwing every miss away, over all orders of the cards to come."""
    books, order = rulebook(Rules()), np.zeros(52, np.int8)
    hand = parse_cards(kept + thrown)
    unseen = [c for c in range(52) if c not in hand]
    games = np.zeros(perm(len(unseen), draws), GAME)
    # The big blind's cards are unseen too, so it is dealt from the end of every order and the orders are all equally likely.
    for i, drawn in enumerate(permutations(unseen, draws)):
        rest = [c for c in unseen if c not in drawn]
        order[:10:2], order[1:10:2] = rest[-5:], hand
        order[10 : 10 + draws], order[10 + draws :] = drawn, rest[:-5]
        table.deal_table(games[i : i + 1], books, 0, 0, order, 52)
    everyone = np.arange(len(games))
    for r in range(draws):
        for action in (CALL, CALL, PAT):  # the big blind stands pat
            loops.play_at(games, books, everyone, np.full(len(games), action))
        mine = hands_in(games)[:, 0, r, :]
        one_off = ~np.isin(mine, parse_cards(kept))
        bits = 3 + (one_off * (1 << np.arange(5))).sum(axis=1)
        loops.play_at(games, books, everyone, np.where(goal(mine), PAT, bits))
    return float(goal(hands_in(games)[:, 0, draws, :]).mean())


def _values(hands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    number = sum(CHOOSE[i, hands[:, i] >> 2].astype(np.int64) for i in range(5))
    suited = (hands & 3 == hands[:, :1] & 3).all(axis=1).astype(int)
    return high_table(5, True)[suited, number], low_table(5, 7)[number]


CATEGORY = np.array([-1, *(key[0] for key in high_classes(5, True))])


def made_low(hands: np.ndarray) -> np.ndarray:
    made: np.ndarray = _values(hands)[1] > 0
    return made


def made_straight_or_better(hands: np.ndarray) -> np.ndarray:
    made: np.ndarray = CATEGORY[_values(hands)[0]] >= STRAIGHT
    return made


@pytest.mark.parametrize(
    ("kept", "thrown", "goal", "percent"),
    [
        ("6c7d8h9s", "2c", made_straight_or_better, (17.021, 31.452, 43.639)),  # 8 outs
        ("6c7d8hTs", "2c", made_straight_or_better, (8.511, 16.466, 23.891)),  # 4 outs
        ("KcJc9c4c", "2d", made_straight_or_better, (19.149, 34.968, 47.974)),  # 9 outs
        ("As2d3c6h", "Ks", made_low, (34.043, 56.984, 72.279)),  # 16 outs
    ],
)
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_one_card_draws_complete_as_often_as_counted(
    kept: str, thrown: str, goal: Callable[[np.ndarray], np.ndarray], percent: tuple[float, ...], draws: int
) -> None:
    """T7."""
    if JIT_DISABLED and draws > 1:
        pytest.skip("2,162 orders and more are too many without the compiler")
    assert completed(kept, thrown, draws, goal) * 100 == pytest.approx(percent[draws - 1], abs=0.0005)


# ---- T8: all-in equities with fixed drawing policies


def policy_h(hands: np.ndarray) -> np.ndarray:
    """Bits to discard: stand pat on a straight or better, else keep every paired card."""
    ranks = hands >> 2
    paired = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2) > 1
    pat = CATEGORY[_values(hands)[0]] >= STRAIGHT
    return np.where(pat, 0, (~paired * (1 << np.arange(5))).sum(axis=1))


def policy_l(hands: np.ndarray) -> np.ndarray:
    """Bits to discard: stand pat on a low or a straight or better, else keep the first card of each rank up to eight."""
    ranks = hands >> 2
    repeats = np.zeros(hands.shape, bool)
    repeats[:, 1:] = ranks[:, 1:] == ranks[:, :-1]
    keep = (((ranks + 1) % 13) <= 7) & ~repeats
    high, low = _values(hands)
    return np.where((low > 0) | (CATEGORY[high] >= STRAIGHT), 0, (~keep * (1 << np.arange(5))).sum(axis=1))


def shares(
    preset: str, first: str, second: str, policies: tuple[Callable[[np.ndarray], np.ndarray], ...], n: int
) -> np.ndarray:
    """``(n,)``: the first player's share of the pot over random cards to come; it deals."""
    rules = PRESETS[preset]
    books, games = rulebook(rules), np.zeros(n, GAME)
    order, _ = deck_order(rules, [c for pair in zip(parse_cards(second), parse_cards(first), strict=True) for c in pair])
    for i in range(n):
        table.open_table(games[i : i + 1], np.uint64(20), i)
        table.deal_table(games[i : i + 1], books, 0, 0, order, 10)
    everyone = np.arange(n)
    for r in range(4):
        for _ in range(2):
            loops.play_at(games, books, everyone, np.full(n, CALL))
        if r < 3:
            for position in (1, 0):
                discards = policies[position](hands_in(games)[:, position, r, :])
                loops.play_at(games, books, everyone, 3 + discards)
    assert games["over"].all()
    return (games["net"] + 2) / 4


EQUITIES = [
    ("As2d3c4hKs", policy_l, "QsQdJcTh9s", policy_h, 0.4820, 0.4820),
    ("As2d3c4hKs", policy_l, "6s6dJcTh9s", policy_h, 0.4580, 0.5886),
    ("3s4d5c6hKs", policy_l, "AsAdJcTh9s", policy_h, 0.5391, 0.5391),
    ("9s9hKd7c4s", policy_h, "JhJdAc6s3c", policy_h, 0.3832, 0.3832),
    ("6s6hKdJcTs", policy_h, "5s5dQcJhTh", policy_h, 0.5951, 0.5400),
    ("As2d3c4hKs", policy_l, "5s6d7c8hQs", policy_l, 0.5736, 0.5897),
]


@pytest.mark.parametrize("preset", ["archie", "pagat"])
@pytest.mark.parametrize(("first", "first_policy", "second", "second_policy", "archie", "pagat"), EQUITIES)
def test_all_in_equities(
    preset: str,
    first: str,
    first_policy: Callable[[np.ndarray], np.ndarray],
    second: str,
    second_policy: Callable[[np.ndarray], np.ndarray],
    archie: float,
    pagat: float,
) -> None:
    """T8: within four standard errors."""
    x = shares(preset, first, second, (first_policy, second_policy), 40_000 if not JIT_DISABLED else 300)
    error = x.std() / np.sqrt(len(x))
    assert abs(x.mean() - (archie if preset == "archie" else pagat)) < 4 * (error + 0.0001)


def test_a_pat_low_against_a_qualifying_pair_halves_every_pot() -> None:
    """T8, last row: 0.5 in every deal."""
    x = shares("archie", "As2d3c5h7s", "9s9hKd7c4s", (policy_l, policy_h), 2_000 if not JIT_DISABLED else 50)
    assert set(x.tolist()) == {0.5}


# ---- masks and engine agree


@pytest.mark.parametrize("preset", PRESETS)
def test_every_legal_action_applies_and_every_other_changes_nothing(preset: str) -> None:
    """20,000 random states over all presets."""
    rules, books = PRESETS[preset], rulebook(PRESETS[preset])
    batch = Batch(200, rules, seed=12)
    for _ in range(20 if not JIT_DISABLED else 1):
        batch.step(batch.sample_actions())
        for i in range(len(batch) if not JIT_DISABLED else 20):
            legal = batch.masks[i]
            state = batch.games[i].copy()
            for action in range(-1, rules.actions + 1):
                games = batch.games[i : i + 1].copy()
                played = table.play_table(games, books, action) != table.ILLEGAL
                assert played == (0 <= action < rules.actions and legal[action] == 1)
                assert (games[0] == state) != played
            assert batch.games[i] == state


# ---- errors


@pytest.mark.parametrize("bad", [-1, 3, 34, 35, 1.0, "call", None, True, np.float64(1), [1], 10**30])
def test_an_illegal_action_changes_nothing(bad: object) -> None:
    game = Game(seed=1)
    before = game.clone()
    with pytest.raises(IllegalActionError, match=r"legal: 0 \(fold\), 1 \(check/call\), 2 \(bet/raise\); player_. to act"):
        game.apply(bad)  # type: ignore[arg-type]
    assert game == before


@pytest.mark.parametrize("deck", ["AsAs", [0, 0], [52], "Zz", [0.5], "A", 3, range(53), "As" * 60])
def test_a_bad_deck_is_refused(deck: object) -> None:
    with pytest.raises(CardError, match=r"card|deck"):
        Game(deck=deck)  # type: ignore[arg-type]


def test_cards_outside_a_reduced_deck_are_refused() -> None:
    with pytest.raises(CardError, match="Kd at index 1 is not one of the 12"):
        Game("mini", deck="Ac Kd")


def test_bad_constructor_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="dealer 2: expected seat 0 or 1"):
        Game(dealer=2)
    for name in ("index", "hand"):
        for bad in (-1, 1.5, None, True):
            with pytest.raises(ArchieError, match=f"{name} {bad}: expected a whole number of at least 0"):
                Game(**{name: bad})  # type: ignore[arg-type]
    with pytest.raises(RulesError, match="replacements 'both': expected one of shared, per_seat"):
        Game(replacements="both")  # type: ignore[arg-type]
    with pytest.raises(RulesError, match="rules 'holdem': expected one of archie"):
        Game("holdem")


def test_batches_refuse_before_anything_is_played() -> None:
    batch = Batch(16, seed=1)
    before = batch.games.copy()
    actions = batch.sample_actions().copy()
    actions[11] = 20
    with pytest.raises(IllegalActionError, match=r"game 11: action 20 is not legal; legal: 0 \(fold\)"):
        batch.step(actions)
    assert (batch.games == before).all()
    for bad in (np.zeros(15, int), np.zeros((16, 1), int), np.zeros(16), "call"):
        with pytest.raises(IllegalActionError, match=r"expected \(16,\) integers"):
            batch.step(bad)
    hands = Hands([0, 0], [0, 1], seed=1)
    with pytest.raises(IllegalActionError, match="hand 1: action 9"):
        hands.play(np.array([0, 1]), np.array([1, 9]))
