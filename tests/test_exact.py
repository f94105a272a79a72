"""Exact evaluation: known answers, and every number again by walking all deals of tiny games through `archie_env.Game`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from agents.solution import SolutionPolicy
from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.observation import fields
from archie_env.policy import Masks, Observations, Policy, Probabilities, StochasticPolicy, UniformPolicy
from archie_env.rules import Rules, Stakes
from evaluation.exploitability import evaluator as exact
from evaluation.exploitability import measure as exploitability
from evaluation.exploitability import showdowns
from evaluation.exploitability.evaluator import Evaluator, evaluate
from evaluation.exploitability.game import ExactGame, Form
from evaluation.exploitability.information_sets import Questions
from evaluation.exploitability.measure import measure
from evaluation.exploitability.policy_strategy import AskedStrategy, LooksAtSuitsError
from evaluation.exploitability.solver import Solution, solution_arrays, solution_meta, solve, write_solution
from evaluation.exploitability.strategy import Tabular, fill, random_strategy, uniform

WEIGHTS = Path(__file__).parents[1] / "agents" / "weights"

KUHN = Rules(
    ranks="JQK",
    suits="s",
    hand_size=1,
    draws=0,
    max_discard=0,
    stakes=Stakes((1, 1), (1,)),
    raise_cap=2,  # the blinds count as the first wager: one bet
    high_qualifier=None,
    low_qualifier=None,
)


class HashedPolicy(StochasticPolicy):
    """Probabilities without any pattern from the whole row, or from the row with its suits taken out."""

    def __init__(self, rules: Rules, suits: bool = True, seed: int = 0) -> None:
        self.name, self._suits, self._rules = "hashed", suits, rules
        self._seed = seed

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        parts = []
        for field in fields(self._rules):
            part = observations[:, field.start : field.start + field.size]
            if self._suits:
                parts.append(part)
            elif field.name == "held":
                parts.append(part.reshape(len(part), -1, len(self._rules.suits)).sum(axis=2))
            elif field.name != "slots":
                parts.append(part)
        features = np.concatenate(parts, axis=1).astype(float)
        directions = np.random.default_rng(self._seed).normal(size=(features.shape[1], masks.shape[1]))
        chances = np.exp(2 * np.sin(5 * features @ directions)) * masks
        probabilities: Probabilities = (chances / chances.sum(axis=1, keepdims=True)).astype(np.float32)
        return probabilities


# ---- known answers


def test_uniform_kuhn_poker_has_nash_conv_eleven_twelfths() -> None:
    game = ExactGame(KUHN)
    measured = evaluate(game, uniform(game))
    assert measured.nash_conv == pytest.approx(11 / 12, abs=1e-12)  # OpenSpiel, exploitability_test
    assert measured.exploitability == pytest.approx(11 / 24, abs=1e-12)
    assert measured.value == pytest.approx(1 / 8, abs=1e-12)
    assert game.information_sets == 12


def kuhn_equilibrium(game: ExactGame, alpha: float) -> Tabular:
    """Kuhn (1950): the first player bluffs a jack with chance alpha, up to 1/3."""
    first = {(): [alpha, 0, 3 * alpha], (1, 2): [0, 1 / 3 + alpha, 1]}  # bet; call: by jack, queen, king
    second = {(1,): [1 / 3, 0, 1], (2,): [0, 1 / 3, 1]}
    tables = []
    for player, chances in ((0, first), (1, second)):
        table = np.zeros((1, 3, 1, 2, 3))
        for own, node in enumerate(game.last.nodes_of(player)):
            path = game.last.path[node]
            aggressive, passive = (1, 0) if path[-1:] == (2,) else (2, 1)
            table[0, :, 0, own, aggressive] = chances[path]
            table[0, :, 0, own, passive] = 1 - np.array(chances[path])
        tables.append(table)
    draw = np.ones((1, 1, 3, 1))
    return Tabular(np.zeros((0, 3, 3)), (draw, draw), (tables[0], tables[1]))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_kuhn_poker_is_worth_minus_one_eighteenth_at_its_equilibria(alpha: float) -> None:
    game = ExactGame(KUHN)
    measured = evaluate(game, kuhn_equilibrium(game, alpha))
    assert measured.value == pytest.approx(-1 / 18, abs=1e-12)
    assert measured.nash_conv == pytest.approx(0, abs=1e-12)


def test_the_solver_finds_kuhns_value() -> None:
    found = solve(ExactGame(KUHN), target=0.5)
    assert found.evaluation.value == pytest.approx(-1 / 18, abs=1e-3)
    assert found.evaluation.mbb(found.evaluation.exploitability) <= 0.5


@pytest.mark.parametrize(
    ("rules", "form", "sets"),
    [
        ("mini", "class", 127_722),
        ("mini", "full", 916_212),
        ("midi", "class", 690_970),
        ("midi", "full", 57_977_010),
        ("maxi", "class", 14_078_456),
    ],
)
def test_information_sets_of_the_presets(rules: str, form: Form, sets: int) -> None:
    assert ExactGame(rules, form).information_sets == sets


@pytest.mark.parametrize(("rules", "mbb"), [("mini", 2538.342), ("midi", 2491.397)])
def test_uniform_play_in_class_form(rules: str, mbb: float) -> None:
    game = ExactGame(rules)
    measured = evaluate(game, uniform(game))
    assert measured.mbb(measured.exploitability) == pytest.approx(mbb, abs=1e-3)


# ---- against every deal of tiny games, walked through archie_env.Game


def tiny(**changes: Any) -> Rules:
    plain: dict[str, Any] = {
        "ranks": "A23", "suits": "cd", "hand_size": 2, "draws": 1, "max_discard": 1, "raise_cap": 2,
        "stakes": Stakes((1, 2), (2, 4)), "high_qualifier": "3", "low_qualifier": "3",
    }  # fmt: skip
    return Rules(**(plain | changes))


TINY = {
    "two cards": tiny(raise_cap=1),
    "announced draws": tiny(draw_order="sequential", high_qualifier="A", low_qualifier="2", raise_cap=1),
    "nobody qualifies": tiny(no_qualifier="equal_split", high_qualifier="A", low_qualifier=None, raise_cap=1),
    "one card": tiny(ranks="A2345", suits="c", hand_size=1, high_qualifier=None, low_qualifier="2", raise_cap=3),
    "odd chips": tiny(ranks="A2345", suits="c", hand_size=1, high_qualifier=None, stakes=Stakes((1, 3), (1, 3))),
    "no draw": tiny(draws=0, stakes=Stakes((1, 2), (2,)), raise_cap=3, max_discard=0),
}


def deals(rules: Rules) -> list[Game]:
    """Every deal once: two hands, then the replacements in order, the dealer in seat 0."""
    size, new = rules.hand_size, 2 * rules.max_discard * rules.draws
    games = []
    for first in combinations(rules.deck, size):
        rest = [card for card in rules.deck if card not in first]
        for second in combinations(rest, size):
            left = [card for card in rest if card not in second]
            dealt = [card for pair in zip(second, first, strict=True) for card in pair]
            games += [Game(rules, seed=0, dealer=0, deck=[*dealt, *order]) for order in permutations(left, new)]
    return games


def after(game: Game, action: int) -> Game:
    copy = game.clone()
    copy.apply(action)
    return copy


class Walker:
    """Value and best responses of a policy by recursion over games, told apart by what the seat to act sees."""

    def __init__(self, policy: Policy, rules: Rules) -> None:
        self._policy, self._rules = policy, rules
        self._known: dict[tuple[int, bytes], NDArray[np.float64]] = {}

    @property
    def information_sets(self) -> int:
        return len(self._known)

    def chances(self, game: Game) -> tuple[tuple[int, bytes], NDArray[np.float64]]:
        seat = game.to_act
        assert seat is not None
        row = game.observation(seat)
        key = seat, row.tobytes()
        if key not in self._known:
            answer = self._policy.probabilities(row[None], game.mask(seat)[None])[0].astype(float)
            self._known[key] = answer / answer.sum()
        return key, self._known[key]

    def value(self, game: Game) -> float:
        """Chips seat 0 wins."""
        if game.over:
            return game.result.net[0]
        _, chances = self.chances(game)
        return sum(float(chances[a]) * self.value(after(game, a)) for a in game.legal_actions())

    def best_response(self, seat: int, states: Iterable[tuple[Game, float]]) -> float:
        """Chips times weight that ``seat`` wins at best from games it cannot tell apart so far."""
        total, groups = 0.0, {}  # type: float, dict[bytes, list[tuple[Game, float]]]
        waiting = list(states)
        while waiting:
            game, weight = waiting.pop()
            if game.over:
                total += weight * game.result.net[seat]
            elif game.to_act == seat:
                groups.setdefault(game.observation(seat).tobytes(), []).append((game, weight))
            else:
                _, chances = self.chances(game)
                waiting += [(after(game, a), weight * chances[a]) for a in game.legal_actions()]
        for group in groups.values():
            actions = group[0][0].legal_actions()
            total += max(self.best_response(seat, [(after(game, a), w) for game, w in group]) for a in actions)
        return total


@pytest.mark.parametrize("name", TINY)
def test_the_full_form_agrees_with_every_deal_walked_through_the_engine(name: str) -> None:
    rules = TINY[name]
    policy = HashedPolicy(rules)
    games = deals(rules)
    walker = Walker(policy, rules)
    value = sum(map(walker.value, games)) / len(games)
    measured = measure(policy, rules, "full")
    assert measured.evaluation.value == pytest.approx(value, abs=1e-9)
    assert measured.information_sets == walker.information_sets
    for seat in (0, 1):
        best = walker.best_response(seat, [(game, 1 / len(games)) for game in games])
        assert measured.evaluation.best_responses[seat] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", ["two cards", "announced draws", "nobody qualifies", "no draw"])
def test_the_class_form_agrees_with_the_full_form_for_a_policy_without_suits(name: str) -> None:
    policy = HashedPolicy(TINY[name], suits=False)
    by_class, full = (measure(policy, TINY[name], form).evaluation for form in ("class", "full"))
    assert by_class.values == pytest.approx(full.values, abs=1e-6)  # answers are float32
    assert by_class.best_responses == pytest.approx(full.best_responses, abs=1e-6)


@pytest.mark.parametrize("agent", ["uniform", "rule_based", "call_draw"])
def test_the_class_form_agrees_with_the_full_form_on_mini(agent: str) -> None:
    policy = load(agent, "mini")
    by_class, full = (measure(policy, "mini", form) for form in ("class", "full"))
    assert (by_class.form, full.form) == ("class", "full")
    assert by_class.evaluation.values == pytest.approx(full.evaluation.values, abs=1e-9)
    assert by_class.evaluation.best_responses == pytest.approx(full.evaluation.best_responses, abs=1e-9)
    assert by_class.evaluation.nash_conv == pytest.approx(full.evaluation.nash_conv, abs=1e-9)


def test_sums_over_subsets_agree_with_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    game = ExactGame(tiny(ranks="A234", max_discard=2), "full")
    strategy = random_strategy(game, 3)
    by_matrix = evaluate(game, strategy)
    monkeypatch.setattr(exact, "_DENSE", 0)
    by_subsets = evaluate(game, strategy)
    assert by_subsets.values == pytest.approx(by_matrix.values, abs=1e-12)
    assert by_subsets.best_responses == pytest.approx(by_matrix.best_responses, abs=1e-12)


def test_the_values_of_both_positions_cancel() -> None:
    game = ExactGame("mini")
    measured = evaluate(game, random_strategy(game, 1))
    assert sum(measured.values) == pytest.approx(0, abs=1e-12)
    assert measured.nash_conv == pytest.approx(sum(measured.best_responses), abs=1e-12)
    assert all(best >= value for best, value in zip(measured.best_responses, measured.values, strict=True))


def test_the_short_forms_give_the_same_numbers() -> None:
    game = ExactGame(KUHN)
    strategy = random_strategy(game, 2)
    measured = evaluate(game, strategy)
    assert exact.value(game, strategy) == measured.value
    assert exact.best_response_value(game, strategy, 1) == measured.best_responses[1]
    assert exact.exploitability(game, strategy) == exact.nash_conv(game, strategy) / 2 == measured.exploitability


# ---- policies


def test_a_policy_that_looks_at_suits_is_never_measured_in_class_form(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = HashedPolicy(Rules.preset("mini"))
    with pytest.raises(LooksAtSuitsError, match=r"looks at suits.*round 1, held .* than as .*round 1, held"):
        measure(policy, "mini", "class")
    monkeypatch.setattr(exploitability, "_SMALL", 0)
    measured = measure(policy, "mini", "auto")
    assert measured.form == "full"
    assert "looks at suits" in measured.how
    blind = measure(load("rule_based", "mini"), "mini", "auto")
    assert blind.form == "class"
    assert "4 assignments of suits" in blind.how


class OneSuitPolicy(UniformPolicy):
    """Uniform, but for one hand of the 66, after a draw."""

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        probabilities = super().probabilities(observations, masks)
        held = observations[:, 12:24]  # the second round's block of mini
        strange = (held[:, 0] == 1) & (held[:, 3] == 1) & (masks[:, 1] == 1)
        probabilities[strange] = 0
        probabilities[strange, 1] = 1
        return probabilities


def test_suits_that_matter_for_one_hand_only_are_noticed() -> None:
    with pytest.raises(LooksAtSuitsError):
        measure(OneSuitPolicy(), "mini", "class")


def _spoilt(change: Callable[[Probabilities], Any]) -> Policy:
    class Spoilt(UniformPolicy):
        name = "spoilt"

        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            answer = super().probabilities(observations, masks)
            changed = change(answer)
            return answer if changed is None else changed

    return Spoilt()


def _put(action: int, value: float) -> Callable[[Probabilities], None]:
    def put(answer: Probabilities) -> None:
        answer[-1, action] = value

    return put


def _stop(answer: Probabilities) -> None:
    raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_put(1, np.nan), "spoilt: a probability is not a finite number .* as small blind, round 1, held"),
        (_put(1, -0.25), "is negative .* held .*legal: 0 .fold., 1 .check/call., 2 .bet/raise."),
        (_put(3, 0.5), "is positive for an illegal action .*3: 0.5"),
        (_put(1, 0.5), "is not normalised, the sum is 1.16667"),
        (lambda answer: answer[:, :3], r"probabilities of shape \(66, 3\)"),
        (_stop, "spoilt: probabilities raised RuntimeError: no idea"),
    ],
)
def test_a_policy_without_probabilities_is_refused(change: Callable[[Probabilities], Any], words: str) -> None:
    with pytest.raises(ArchieError, match=words):
        measure(_spoilt(change), "mini", "full")


def test_games_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(ArchieError, match="draws 3: games of at most one draw"):
        ExactGame("archie")
    five = Rules(draws=1, stakes=Stakes((1, 2), (2, 4)), ranks="A23456", max_discard=1, high_qualifier=None, low_qualifier=None)
    with pytest.raises(ArchieError, match="flushes count"):
        ExactGame(five, "class")
    with pytest.raises(ArchieError, match="private histories"):
        ExactGame(five, "full")
    with pytest.raises(ArchieError, match="expected 'auto', 'class' or 'full'"):
        measure(UniformPolicy(), "mini", "suits")  # type: ignore[arg-type]


# ---- solutions


def test_a_solution_file_plays_the_strategy_it_was_made_of(tmp_path: Path) -> None:
    game = ExactGame(tiny(draw_order="sequential"))
    strategy = random_strategy(game, 5)
    found = Solution(strategy, evaluate(game, strategy), 0, 0.0)
    stored = write_solution(tmp_path / "random.npz", game, found)
    policy = SolutionPolicy.load(tmp_path / "random.npz", game.rules)
    asked = AskedStrategy(policy, game)
    assert np.abs(asked.first - strategy.first).max() < 0.01
    for player in (0, 1):
        assert np.abs(asked.draw[player] - strategy.draw[player]).max() < 0.01
        for line in range(len(game.lines)):
            assert np.abs(asked.last(player, line) - strategy.last(player, line)).max() < 0.01
    measured = Evaluator(game).evaluate(asked)
    assert measured.values == pytest.approx(stored.values, abs=1e-6)
    assert set(solution_arrays(game, strategy)) >= {"first", "draw0", "last1", "hands"}
    assert solution_meta(game, stored, 7)["iterations"] == 7
    with pytest.raises(ArchieError, match="solved for rules custom, expected mini"):
        load(f"solution:{tmp_path / 'random.npz'}", "mini")


def test_the_solver_comes_close_on_mini() -> None:
    found = solve(ExactGame("mini"), target=20)
    assert found.evaluation.mbb(found.evaluation.exploitability) <= 20
    assert found.iterations < 100


@pytest.mark.parametrize(("rules", "value"), [("mini", 0.0947), ("midi", 0.0945)])
def test_the_reference_solutions_are_as_good_as_they_say(rules: str, value: float) -> None:
    path = WEIGHTS / f"solution-{rules}.npz"
    assert path.stat().st_size < 1_000_000
    policy = load(f"solution:{path}", rules)
    measured = measure(policy, rules, "class", assignments=2).evaluation
    assert isinstance(policy, SolutionPolicy)
    assert measured.mbb(measured.exploitability) == pytest.approx(policy.meta["exploitability_mbb"], abs=1e-3)
    assert measured.mbb(measured.exploitability) < 0.5
    assert measured.value == pytest.approx(value, abs=3e-4)


def test_the_reference_solution_of_maxi_is_as_good_as_it_says() -> None:
    """Measured from its tables, as asking it takes a minute; a part of what it answers is compared with them."""
    path = WEIGHTS / "solution-maxi.npz"
    assert path.stat().st_size < 10_000_000
    policy = load(f"solution:{path}", "maxi")
    assert isinstance(policy, SolutionPolicy)
    game = ExactGame("maxi")
    with np.load(path, allow_pickle=False) as archive:
        tables = iter([archive[name] for name in ("first", "draw0", "draw1", "last0", "last1")])
    strategy = fill(game, lambda shape: next(tables))
    measured = evaluate(game, strategy)
    assert measured.mbb(measured.exploitability) == pytest.approx(policy.meta["exploitability_mbb"], abs=1e-3)
    assert measured.mbb(measured.exploitability) < 10
    assert measured.value == pytest.approx(0.0536, abs=3e-4)
    questions, chance = Questions(game), np.random.default_rng(1)
    for player, line in ((0, 2), (1, len(game.lines) - 1)):
        history, other = chance.integers(len(game.histories), size=500), chance.integers(game.counts, size=500)
        for own, node in enumerate(game.last.nodes_of(player).tolist()):
            rows = questions.last(questions.deal(player, history, other), line, node)
            answers = policy.probabilities(rows.observations, rows.masks)[:, :3]
            assert np.abs(answers - strategy.last(player, line)[history, other, own]).max() < 1e-6


def test_showdowns_of_the_reference_solution_of_mini(capsys: pytest.CaptureFixture[str]) -> None:
    assert showdowns.main(["--rules", "mini"]) == 0
    shown = capsys.readouterr().out
    assert "the reference solution against itself under rules mini: 43.1% of hands are shown down" in shown
    cases = dict(re.findall(r"^  (\D+?) +([\d.]+)%", shown, re.M))
    assert {case: float(share) for case, share in cases.items()} == pytest.approx(
        {"both ways": 19.1, "high only": 5.4, "low only": 69.9, "nobody": 5.6}, abs=0.2
    )
    assert showdowns.main(["nobody", "--rules", "mini"]) == 2
    assert "error: agent 'nobody'" in capsys.readouterr().err


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exploitability.main(["uniform", "--rules", "mini", "--form", "class", "--json", str(tmp_path / "it.json")]) == 0
    shown = capsys.readouterr().out
    assert "127,722 information sets in class form (each information set asked with 4 assignments of suits" in shown
    assert "exploitability 5.09609 chips, 2548.044 mbb/hand: half of NashConv" in shown
    written = json.loads((tmp_path / "it.json").read_text())
    assert written["nash_conv"] == pytest.approx(2 * written["exploitability"])
    assert exploitability.main(["nobody"]) == 2
    assert "error: agent 'nobody'" in capsys.readouterr().err
