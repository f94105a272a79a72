"""Luck-adjusted matches: unbiased against exact values, each correction 0 on average, and far less variance."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import signal
import threading
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from agents.human import HumanPolicy
from archie_env._core.state import BIG_BLIND, DEALER, DISCARD, GAME
from archie_env.batch import Hands
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, UniformPolicy
from archie_env.rules import PRESETS, Rules
from evaluation.aivat import _kernels as kernels
from evaluation.aivat import value_function as aivat_value
from evaluation.aivat.command import format_adjusted, main
from evaluation.aivat.form import TERMS, kept, restored
from evaluation.aivat.match import AdjustedHands, AdjustedMatch, play_adjusted, tells_probabilities
from evaluation.aivat.value_function import Floats, ValueFunction, learn
from evaluation.duplicate.deals import DealPairs
from evaluation.duplicate.match import play_match
from evaluation.estimates import PairTotals
from evaluation.exploitability.evaluator import value as exact_value
from evaluation.exploitability.game import ExactGame
from evaluation.exploitability.policy_strategy import PolicyStrategy
from evaluation.exploitability.strategy import Reals
from evaluation.players import ProbabilityError, TimedPolicy, TimeLimitError
from tests.records import cards_of, set_of

WEIGHTS = Path(__file__).parents[1] / "agents" / "weights"
BOTH, FIRST, NEITHER = (True, True), (True, False), (False, False)


def player(name: str, rules: str) -> Policy:
    return load(f"solution:{WEIGHTS}/solution-{rules}.npz" if name == "solution" else name, rules)


class Mute(UniformPolicy):
    """Plays at random and does not say how."""

    name = "mute"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        raise NotImplementedError("not told")


class Seated:
    """The dealer's strategy from one policy, the big blind's from another."""

    def __init__(self, game: ExactGame, dealer: PolicyStrategy, blind: PolicyStrategy) -> None:
        assert game.first is not None
        self.first: Floats = np.where((game.first.player == DEALER)[:, None, None], dealer.first, blind.first)
        self.draw = dealer.draw[DEALER], blind.draw[BIG_BLIND]
        self._players = dealer, blind

    def last(self, player: int, line: int) -> Reals:
        return self._players[player].last(player, line)


@functools.cache
def strategy(name: str, rules: str) -> tuple[ExactGame, PolicyStrategy]:
    game = ExactGame(rules, "rank_isomorphic")
    return game, PolicyStrategy(player(name, rules), game, assignments=2)


@functools.cache
def exact_mbb(a: str, b: str, rules: str) -> float:
    """What a wins from b per hand, dealing every other one."""
    game, of_a = strategy(a, rules)
    _, of_b = strategy(b, rules)
    chips = exact_value(game, Seated(game, of_a, of_b)) - exact_value(game, Seated(game, of_b, of_a))
    return 500 * chips / PRESETS[rules].stakes.blinds[1]


def significance(of: AdjustedMatch, chips: NDArray[Any], truth: float = 0.0) -> float:
    """Standard errors between a mean of chips and the truth in mbb; 0 where nothing varies, as it must then be right."""
    mbb = of.mbb(chips)
    if mbb.standard_error == 0:
        assert mbb.mean == pytest.approx(truth)
        return 0.0
    return (mbb.mean - truth) / mbb.standard_error


@functools.cache
def values(a: str, b: str, rules: str, deals: int = 2000) -> ValueFunction:
    return learn(player(a, rules), player(b, rules), deals, seed=1000, rules=rules)


def adjusted(a: str, b: str, rules: str, deals: int, known: tuple[bool, bool] = BOTH, seed: int = 1) -> AdjustedMatch:
    players = player(a, rules), player(b, rules)
    return play_adjusted(*players, deals, seed, rules, values(a, b, rules), known=known, samples=16)


@pytest.mark.parametrize(
    ("a", "b", "rules", "known"),
    [
        ("rule_based", "uniform", "mini", BOTH),
        ("rule_based", "uniform", "mini", FIRST),
        ("uniform", "rule_based", "mini", FIRST),
        ("rule_based", "uniform", "mini", NEITHER),
        ("rule_based", "solution", "mini", BOTH),
        ("solution", "call_draw", "mini", FIRST),
        ("raise_draw", "rule_based", "mini", FIRST),
        ("rule_based", "solution", "midi", BOTH),
    ],
)
def test_adjusted_results_agree_with_exact_values_and_every_term_is_zero_on_average(
    a: str, b: str, rules: str, known: tuple[bool, bool]
) -> None:
    truth = exact_mbb(a, b, rules)
    result = adjusted(a, b, rules, 10_000, known)
    assert abs(significance(result, result.raw, truth)) < 4
    assert abs(significance(result, result.adjusted, truth)) < 4
    for k in range(len(TERMS)):
        assert abs(significance(result, result.corrections[:, :, k])) < 4, TERMS[k]
    (raw, _), (luck_adjusted, _) = result.deviations(result.raw), result.deviations(result.adjusted)
    assert luck_adjusted < (0.5 if known == BOTH else 0.85) * raw


def test_the_terms_are_zero_on_average_in_the_full_game() -> None:
    for a, b in (("rule_based", "uniform"), ("raise_draw", "rule_based")):
        result = adjusted(a, b, "archie", 5000)
        for k in range(len(TERMS)):
            assert abs(significance(result, result.corrections[:, :, k])) < 4, (a, TERMS[k])


def _bold_betting(original: Callable[..., None], *arguments: Any) -> None:
    """Expect the most aggressive betting action.  A uniform expectation may cost nothing on average, and then does not show."""
    *before, chances, actions, luck = arguments
    boldest = [max(np.flatnonzero(row[:DISCARD])) for row in chances]
    original(*before, np.eye(chances.shape[1], dtype=np.float32)[boldest], actions, luck)


def _pat_draws(original: Callable[..., None], *arguments: Any) -> None:
    original(*arguments)
    arguments[-1][:] = 0


def _shy_deals(original: Callable[..., None], *arguments: Any) -> None:
    original(*arguments)
    arguments[-1][:] *= 0.5


@pytest.mark.parametrize(
    ("kernel", "breaking", "term"),
    [
        ("betting_luck", _bold_betting, "betting"),
        ("imagine_discards", _pat_draws, "draws"),
        ("expected_deals", _shy_deals, "deal"),
    ],
)
def test_a_broken_term_shows(kernel: str, breaking: Callable[..., None], term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, kernel, functools.partial(breaking, getattr(kernels, kernel)))
    result = adjusted("rule_based", "uniform", "mini", 20_000)
    for k, name in enumerate(TERMS):
        assert (abs(significance(result, result.corrections[:, :, k])) > 6) == (name == term)
    assert abs(significance(result, result.adjusted, exact_mbb("rule_based", "uniform", "mini"))) > 6


# ---- each kernel against enumeration, for a value function without any pattern


def patternless(rules: Rules) -> ValueFunction:
    rng = np.random.default_rng(0)
    states = 2 * (2 * rules.draws + 1) * kernels.NODES
    shares = rng.uniform(-1, 1, states * kernels.HANDS_OF_A_STATE)
    return ValueFunction(rules, shares, rng.uniform(0, 9, states), ("nobody", "nobody"), 0, 999)


def in_progress(rules: Rules, actions: int, hands: int = 300) -> Hands:
    """Hands after so many random actions, those that are not over."""
    some, rng = Hands(np.arange(hands), np.arange(hands) % 2, rules, 5), np.random.default_rng(6)
    for _ in range(actions):
        for seat in (0, 1):
            places, rows, masks = some.waiting(seat)
            places = places.copy()
            masks = masks.copy()
            masks[masks[:, 1] != 0, 0] = 0  # nobody folds
            some.play(places, UniformPolicy().act(rows, masks, rng))
    some.games = some.games[some.games["over"] == 0]
    return some


@pytest.mark.parametrize("actions", [0, 1, 2, 5, 8])
def test_corrections_of_betting_are_exactly_zero_on_average(actions: int) -> None:
    rules = Rules()
    hands, value = in_progress(rules, actions), patternless(rules)
    checked = 0
    for seat in (0, 1):
        games = hands.games[(hands.games["turn"] ^ hands.games["dealer"] == seat) & (hands.games["phase"] & 1 == 0)]
        n = len(games)
        checked += n
        chances = np.random.default_rng(7).random((n, rules.actions)).astype(np.float32)
        facing = games["paid"][np.arange(n), 1 - games["turn"]] > games["paid"][np.arange(n), games["turn"]]
        chances[~facing, 0] = 0
        chances[games["wagers"] >= rules.raise_cap, 2] = 0
        chances[:, DISCARD:] = 0
        mean, spread = np.zeros(n), np.zeros(n)
        for action in range(DISCARD):
            luck, legal = np.zeros(n), np.flatnonzero(chances[:, action])
            taken = np.full(n, action)
            part = np.empty(len(legal))
            kernels.betting_luck(
                games, *value.tables, np.zeros(1, GAME), legal, chances[legal], taken[legal], part
            )  # fmt: skip
            luck[legal] = part
            mean += chances[:, action] * luck
            spread += np.abs(luck)
        np.testing.assert_allclose(mean, 0, atol=1e-5)
        assert (spread > 0.01).all()
    assert checked > 20


def _shown(games: NDArray[Any], i: int, position: int, hand: tuple[int, ...], r: int) -> None:
    games["held"][i, position, r] = set_of(hand, "mini")


def test_expected_deals_agree_with_all_deals() -> None:
    rules = PRESETS["mini"]
    value, deck = patternless(rules), set(rules.deck)
    deals = [(x, y) for x in combinations(sorted(deck), 2) for y in combinations(sorted(deck - set(x)), 2)]
    for dealer in (0, 1):
        games = np.repeat(Hands([0], [dealer], rules, 3).games, len(deals))
        for i, deal in enumerate(deals):
            for position in (0, 1):
                _shown(games, i, position, deal[position], 0)
        truth = value(games).mean()
        copies = np.repeat(games[:1], 500)
        expected, streams = np.empty(500), np.random.default_rng(dealer).integers(0, 2**64, 500, np.uint64)
        kernels.expected_deals(copies, *value.tables, np.zeros(1, GAME), streams, 100, expected)
        assert expected.std() > 0
        assert abs(expected.mean() - truth) < 4 * expected.std(ddof=1) / np.sqrt(500)


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("known", [BOTH, (True, False), (False, True)], ids=["both", "dealer", "big blind"])
def test_expected_draws_agree_with_all_discards_and_replacements(known: tuple[bool, bool], order: Any) -> None:
    rules = dataclasses.replace(PRESETS["mini"], draw_order=order)
    value = patternless(rules)
    chances = np.zeros((2, rules.actions), np.float32)
    chances[:, DISCARD:] = [[0.1, 0.4, 0.2, 0.3], [0.25, 0.15, 0.5, 0.1]]
    taken = 2, 1  # by dealer and big blind: the bits of one card
    hands = Hands([2], [0], rules, 3)
    for seat in (0, 1):
        hands.play(hands.waiting(seat)[0], [1])  # call and check
    before = hands.games.copy()
    hands.play(np.array([0]), [DISCARD + taken[BIG_BLIND]])
    held = [cards_of(int(before[0]["held"][p, 0]), rules) for p in (0, 1)]
    unseen = set(rules.deck) - set(held[0]) - set(held[1])

    def choices(position: int) -> list[tuple[float, int]]:
        if not known[position]:
            return [(1.0, taken[position])]
        counts = (1,) if order == "sequential" and position == BIG_BLIND else (0, 1, 2)
        allowed = [(float(chances[position, DISCARD + m]), m) for m in range(4) if m.bit_count() in counts]
        total = sum(p for p, _ in allowed)
        return [(p / total, m) for p, m in allowed]

    truth = 0.0
    for p0, m0 in choices(DEALER):
        for p1, m1 in choices(BIG_BLIND):
            ends = [
                (x, y)
                for x in combinations(sorted(unseen), m0.bit_count())
                for y in combinations(sorted(unseen - set(x)), m1.bit_count())
            ]
            games = np.repeat(hands.games[:1], len(ends))
            for i, new in enumerate(ends):
                for position, m in enumerate((m0, m1)):
                    kept = [card for k, card in enumerate(held[position]) if not m >> k & 1]
                    _shown(games, i, position, (*kept, *new[position]), 1)
            games["phase"], games["turn"], games["wagers"], games["moves"] = 2, BIG_BLIND, 0, 0
            truth += p0 * p1 * float(value(games).mean())
    n, samples = 400, 100
    streams, imagined = np.random.default_rng(8).integers(0, 2**64, n, np.uint64), np.empty((2, n, samples), np.int8)
    every, nothing = np.arange(n), np.empty((0, 0), np.float32)
    for position, games in ((BIG_BLIND, np.repeat(before, n)), (DEALER, np.repeat(hands.games, n))):
        assert games["turn"][0] == position
        rows = np.repeat(chances[position : position + 1], n, axis=0) if known[position] else nothing
        actions = np.full(n, DISCARD + taken[position])
        kernels.imagine_discards(games, value.tables[0], every, rows, actions, streams, imagined[position])
    expected = np.empty(n)
    kernels.expected_draws(
        np.repeat(hands.games, n), *value.tables, np.zeros(1, GAME), every, imagined, streams, expected
    )  # fmt: skip
    assert expected.std() > 0
    assert abs(expected.mean() - truth) < 4 * expected.std(ddof=1) / np.sqrt(n)


# ---- what it is good for


@pytest.mark.parametrize("b", ["call_draw", "uniform", "rule_based"])
def test_the_standard_deviation_is_at_least_halved_in_the_full_game(b: str) -> None:
    value = values("rule_based", b, "archie", 15_000)
    result = play_adjusted(load("rule_based"), load(b), 2000, 1, value=value)
    (raw_hand, raw_pair), (hand, pair) = result.deviations(result.raw), result.deviations(result.adjusted)
    assert hand < raw_hand / 2
    assert pair < raw_pair / 2


def test_the_raw_result_is_that_of_a_duplicate_match() -> None:
    a, b = load("rule_based"), load("uniform")
    result = play_adjusted(a, b, 700, 3, value=values("rule_based", "uniform", "archie"), samples=1, chunk=300)
    match = play_match(a, b, 700, 3, chunk=300, probabilities=True)
    assert PairTotals.of(result.raw[:, 0], result.raw[:, 1]) == match.totals
    assert result.mbb(result.raw).mean == pytest.approx(match.mbb.mean)
    assert result.mbb(result.raw).standard_error == pytest.approx(match.mbb.standard_error)


@pytest.mark.parametrize("rules", PRESETS)
def test_everything_repeats_with_the_seed_under_every_preset(rules: str) -> None:
    def play(seed: int) -> AdjustedMatch:
        a, b = load("rule_based", rules), load("uniform", rules)
        value = learn(a, b, 100, 9, rules)
        return play_adjusted(a, b, 100, seed, rules, value, samples=4)

    one, two, other = play(1), play(1), play(2)
    assert np.array_equal(one.value.shares, two.value.shares)
    assert np.array_equal(one.value.future, two.value.future)
    assert np.array_equal(one.raw, two.raw)
    assert np.array_equal(one.corrections, two.corrections)
    assert not np.array_equal(one.corrections, other.corrections)
    assert np.isfinite(one.corrections).all()


def test_values_are_learnt_under_the_next_seed_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aivat_value.learn, "__defaults__", (50, *aivat_value.learn.__defaults__[1:]))  # type: ignore[index]
    value = play_adjusted(load("call"), load("call_draw"), 20, 4, samples=2).value
    assert (value.teachers, value.deals, value.seed) == (("call", "call_draw"), 50, 5)


def test_a_player_that_tells_no_probabilities_is_named() -> None:
    for policy in (Mute(), HumanPolicy()):
        assert not tells_probabilities(policy, "mini")
    assert tells_probabilities(UniformPolicy(), "mini")
    result = play_adjusted(Mute(), load("rule_based", "mini"), 500, 1, "mini", values("uniform", "rule_based", "mini"))
    assert result.known == (False, True)
    assert "not corrected: the decisions of mute, whose probabilities are not known" in format_adjusted(result)
    assert "chance, the decisions of rule_based" in format_adjusted(result)


def test_unsuitable_arguments_are_refused() -> None:
    a, value = load("call", "mini"), values("rule_based", "uniform", "mini")
    with pytest.raises(ArchieError, match="learnt under seed 1000: expected another"):
        play_adjusted(a, a, 10, 1000, "mini", value)
    with pytest.raises(ArchieError, match="for rules mini: expected one for midi"):
        play_adjusted(a, a, 10, 1, "midi", value)
    for changed in ({"deals": 1}, {"samples": 0}, {"chunk": 0}, {"seed": -1}):
        with pytest.raises(ArchieError, match=f"{next(iter(changed))} .*: expected a whole number"):
            play_adjusted(a, a, **({"deals": 10, "seed": 1} | changed), rules="mini", value=value)  # type: ignore[arg-type]
    with pytest.raises(ArchieError, match="deals to learn from 0"):
        learn(a, a, 0, 1, "mini")


def test_a_player_said_to_be_known_must_tell_its_probabilities() -> None:
    class Silent:
        name = "silent"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return UniformPolicy().act(observations, masks, rng)

    a, value = load("rule_based", "mini"), values("rule_based", "uniform", "mini")
    with pytest.raises(ArchieError, match="silent: expected probabilities of a player that is said to be known"):
        play_adjusted(a, Silent(), 10, 1, "mini", value, known=BOTH)  # type: ignore[arg-type]
    assert play_adjusted(a, Silent(), 10, 1, "mini", value).known == FIRST  # type: ignore[arg-type]


def test_a_fault_ends_the_match() -> None:
    class Illegal(Mute):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), 99)

    class Unsure(UniformPolicy):
        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            return np.full(masks.shape, np.nan, np.float32)

    a, value = load("rule_based", "mini"), values("rule_based", "uniform", "mini")
    with pytest.raises(IllegalActionError, match="mute: action 99 is not legal in deal 0"):
        play_adjusted(a, Illegal(), 10, 1, "mini", value)
    with pytest.raises(ProbabilityError, match="uniform: NaN probabilities"):
        play_adjusted(a, Unsure(), 10, 1, "mini", value)

    class Broken(Mute):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            raise ZeroDivisionError("a bug of its own")

    with pytest.raises(ZeroDivisionError, match="a bug of its own"):
        play_adjusted(a, Broken(), 10, 1, "mini", value)
    with pytest.raises(IllegalActionError, match="mute: action 99 is not legal in deal 0"):  # nor is anything learnt from it
        learn(a, Illegal(), 10, 1, "mini")


def test_a_player_that_hangs_ends_the_match_where_it_has_a_limit() -> None:
    released = threading.Event()

    class Hanging(Mute):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            released.wait(60)
            return super().act(observations, masks, rng)

    a, value = load("rule_based", "mini"), values("rule_based", "uniform", "mini")
    timed = TimedPolicy(Hanging(), 0.2)
    with pytest.raises(TimeLimitError, match=r"mute: act gave no answer within 0\.2 s"):
        play_adjusted(a, timed, 10, 1, "mini", value)
    released.set()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "adjusted.json"
    settings = ["--rules", "mini", "--deals", "300", "--learn-deals", "200", "--seed", "1", "--samples", "8"]
    assert main(["rule_based", "uniform", *settings, "--json", str(file)]) == 0
    text = capsys.readouterr().out
    assert "300 duplicate deals, rules mini, seed 1" in text
    assert "learnt from rule_based v uniform, 200 duplicate deals, seed 2" in text
    values = json.loads(file.read_text())
    assert values["manifest"]["agents"] == ["rule_based", "uniform"]
    assert values["adjusted"]["mbb_standard_error"] < values["raw"]["mbb_standard_error"] / 1.5
    assert values["worth_times_the_deals"] > 2
    assert main(["rule_based", "uniform", *settings, "--teachers", "call", "call"]) == 0
    assert "learnt from call v call" in capsys.readouterr().out
    assert main(["rule_based", "uniform", *settings, "--learn-seed", "1"]) == 2
    assert "expected another" in capsys.readouterr().err


SETTINGS = {"rules": "mini", "deals": 120, "learn-deals": 50, "seed": 1, "samples": 4, "chunk": 32}
SMALL = ["rule_based", "uniform", *(word for name, value in SETTINGS.items() for word in (f"--{name}", str(value)))]


def without_clocks(file: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(file.read_text())
    del values["seconds"], values["manifest"]["written"]
    return values


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_match_goes_on_to_the_result_of_an_undisturbed_one(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, stopped = tmp_path / "whole.json", tmp_path / "stopped.json"
    assert main([*SMALL, "--json", str(whole)]) == 0
    played, play_out = 0, DealPairs.play_out

    def stop(pairs: DealPairs, hands: Any, players: Any) -> None:
        nonlocal played
        if isinstance(hands, AdjustedHands):
            played += 1
            if played == 3:
                signal.raise_signal(number)
        play_out(pairs, hands, players)

    with monkeypatch.context() as patched:
        patched.setattr(DealPairs, "play_out", stop)
        assert main([*SMALL, "--json", str(stopped)]) == 130
        assert f"interrupted; --resume continues from {stopped}" in capsys.readouterr().err
        assert main([*SMALL, "--json", str(stopped)]) == 2
        assert "holds an unfinished result: expected --resume" in capsys.readouterr().err
        assert main([*SMALL, "--json", str(stopped), "--resume", "--samples", "5"]) == 2
        assert "samples 4 is now 5" in capsys.readouterr().err
        assert main([*SMALL, "--json", str(stopped), "--resume"]) == 0
    assert played == 5, "the second run plays the last two chunks of four"
    assert without_clocks(stopped) == without_clocks(whole)
    assert main([*SMALL, "--json", str(stopped), "--resume"]) == 0
    assert "120 duplicate deals, played before; raw" in capsys.readouterr().out
    assert main([*SMALL, "--resume"]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raw": "?"}, "expected arrays as base64"),
        ({"raw": "AAA="}, "buffer size must be a multiple"),
        ({"raw": "AAAAAAAAAAA="}, "1 results and 192 corrections"),
        ({"raw": base64.b64encode(np.full(64, 2**62, "<i8").tobytes()).decode()}, "expected results of at most"),
        ({"corrections": base64.b64encode(np.full(192, np.nan, "<f8").tobytes()).decode()}, "finite corrections"),
        ({"seconds": -1.0}, "seconds -1.0"),
        ({"seconds": None}, "seconds None"),
    ],
)
def test_a_tampered_part_of_a_match_is_refused(change: dict[str, Any], message: str) -> None:
    part = np.zeros((32, 2), np.int64), np.zeros((32, 2, len(TERMS))), 1.0
    values = kept(part)
    raw, corrections, seconds = restored(values, 100)
    assert (raw.shape, corrections.shape, seconds) == ((32, 2), (32, 2, len(TERMS)), 1.0)
    with pytest.raises(ArchieError, match=message):
        restored(values | change, 100)


def test_a_part_of_another_length_is_refused() -> None:
    part = np.zeros((33, 2), np.int64), np.zeros((33, 2, len(TERMS))), 1.0
    value = values("call", "call", "archie", 2)
    for deals in (100, 20):
        with pytest.raises(ArchieError, match=f"33 deals: expected whole chunks of 32, and at most {deals}"):
            play_adjusted(load("call"), load("call"), deals, 1, value=value, chunk=32, earlier=part)
