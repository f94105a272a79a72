"""Exact evaluation against OpenSpiel's own algorithms on tiny games that are written a second time, as OpenSpiel games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest
from numpy.typing import NDArray
from open_spiel.python.algorithms.expected_game_score import policy_value
from open_spiel.python.algorithms.exploitability import nash_conv
from open_spiel.python.policy import TabularPolicy

from archie_env.policy import UniformPolicy
from archie_env.rules import Rules, Stakes
from evaluation.exploitability.evaluator import Evaluation, evaluate
from evaluation.exploitability.game import ExactGame
from evaluation.exploitability.measure import measure
from evaluation.exploitability.policy_strategy import PolicyStrategy
from evaluation.exploitability.solver import solve
from evaluation.exploitability.strategy import Strategy, random_strategy
from tests.openspiel_oracle import THROW, ArchieGame, Cards, Node, deck

NO_DRAW: dict[str, Any] = {"draws": 0, "max_discard": 0, "stakes": Stakes((1, 2), (2,))}


def tiny(**changes: Any) -> Rules:
    plain: dict[str, Any] = {
        "ranks": "A23", "suits": "cd", "hand_size": 2, "draws": 1, "max_discard": 1, "raise_cap": 1,
        "stakes": Stakes((1, 2), (2, 4)), "high_qualifier": "3", "low_qualifier": "3",
    }  # fmt: skip
    return Rules(**(plain | changes))


GAMES = {
    "one card": tiny(ranks="A234", suits="c", hand_size=1, raise_cap=2, high_qualifier="A", low_qualifier="2"),
    "one card, drawn for in turn": tiny(
        ranks="A234", suits="c", hand_size=1, raise_cap=2, high_qualifier=None, low_qualifier="3", draw_order="sequential",
        no_qualifier="equal_split", stakes=Stakes((1, 3), (1, 3)),
    ),
    "two cards": tiny(),
    "two cards, drawn for in turn": tiny(high_qualifier="A", low_qualifier="2", draw_order="sequential"),
    "two cards, nobody qualifies": tiny(high_qualifier="A", low_qualifier=None, no_qualifier="equal_split", max_discard=0),
    "three cards": tiny(ranks="A234", hand_size=3, raise_cap=3, low_qualifier="4", **NO_DRAW),
    "straights": tiny(ranks="A23456789TJ", suits="c", hand_size=5, flushes=False, low_qualifier="7", **NO_DRAW),
}  # fmt: skip


class Oracle:
    """One game, written twice."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.theirs, self.ours = rules, ArchieGame(rules), ExactGame(rules, "full")
        self.policy = TabularPolicy(self.theirs)
        self.best = [pyspiel.TabularBestResponse(self.theirs, player, self.policy.to_dict()) for player in (0, 1)]
        game, histories = self.ours, self.ours.histories
        self._hands = {tuple(hand): i for i, hand in enumerate(game.hands.tolist())}
        own = zip(histories.hand.tolist(), histories.discard.tolist(), map(tuple, histories.replacement.tolist()), strict=True)
        self._histories = {history: i for i, history in enumerate(own)}

    def _kinds(self, cards: Cards) -> tuple[int, ...]:
        return tuple(int(card in cards) for card in deck(self.rules))

    def chances(self, strategy: Strategy, node: Node) -> tuple[tuple[Any, ...], NDArray[Any]]:
        """Where our tables keep the decision of a node, and the chances of its actions there."""
        game, me = self.ours, node.turn
        dealt, threw, others = ([e[1] for e in node.told[me] if e[0] == kind] for kind in ("dealt", "threw", "other threw"))
        path = [tuple(e[2] for e in node.told[me] if e[:2] == ("bet", r)) for r in range(self.rules.rounds)]
        hand = self._hands[self._kinds(dealt[0])]
        chances = np.zeros(THROW + (1 << self.rules.hand_size))
        if node.drawing:
            line, told = game.betting_sequences.index(path[0]), others[0] if others else 0
            for action in node.children:
                chances[action] = strategy.draw[me][line, told, hand, game.discard_of_subset[hand, action - THROW]]
            return (me, "draw", line, told, hand), chances
        if node.round < self.rules.draws:
            assert game.first is not None
            number = game.first.path.index(path[0])
            chances[:THROW] = strategy.first[number, hand]
            return (me, "first", number, hand), chances
        line, gone = game.betting_sequences.index(path[0] if self.rules.draws else ()), self._kinds(threw[0] if threw else ())
        discard = game.discard[hand, : game.legal_discard[hand].sum()].tolist().index(list(gone))
        history = self._histories[hand, discard, self._kinds(dealt[1] if len(dealt) > 1 else ())]
        number, heard = int(game.last.own[game.last.path.index(path[-1])]), others[0] if others else 0
        chances[:THROW] = strategy.last(me, line)[history, heard, number]
        return (me, "last", line, history, heard, number), chances

    def play(self, strategy: Strategy) -> set[tuple[Any, ...]]:
        """Make the OpenSpiel policy play one of our strategies; returns the decisions of our tables it was filled from."""
        places = set()
        for row, state in zip(self.policy.action_probability_array, self.policy.states, strict=True):
            place, row[:] = self.chances(strategy, state.node)
            places.add(place)
        return places

    def agree(self, measured: Evaluation) -> None:
        """Check our figures against theirs for the strategy played last."""
        root, chances = self.theirs.new_initial_state(), self.policy.to_dict()
        values = policy_value(root, [self.policy, self.policy])
        for best in self.best:
            best.set_policy(chances)
        best_responses = [best.value_from_state(root) for best in self.best]
        assert measured.values == pytest.approx(values, abs=1e-9)
        assert measured.best_responses == pytest.approx(best_responses, abs=1e-9)


@pytest.fixture(scope="module", params=GAMES)
def oracle(request: pytest.FixtureRequest) -> Oracle:
    return Oracle(GAMES[request.param])


def test_both_have_the_same_information_sets(oracle: Oracle) -> None:
    sets = len(oracle.policy.states)
    assert sets == oracle.ours.information_sets
    assert len(oracle.play(random_strategy(oracle.ours, 1))) == sets


def test_a_policy_that_is_asked_has_their_figures(oracle: Oracle) -> None:
    measured = measure(UniformPolicy(), oracle.rules, "full")
    oracle.play(PolicyStrategy(UniformPolicy(), oracle.ours))
    assert np.allclose(oracle.policy.action_probability_array, TabularPolicy(oracle.theirs).action_probability_array)
    oracle.agree(measured.evaluation)


def test_a_strategy_without_pattern_has_their_figures(oracle: Oracle) -> None:
    strategy = random_strategy(oracle.ours, 2)
    oracle.play(strategy)
    measured = evaluate(oracle.ours, strategy)
    oracle.agree(measured)
    if len(oracle.policy.states) < 1000:  # their Python is slow
        assert measured.nash_conv == pytest.approx(nash_conv(oracle.theirs, oracle.policy), abs=1e-9)


def test_a_solved_game_has_their_figures(oracle: Oracle) -> None:
    found = solve(oracle.ours, target=2)
    oracle.play(found.strategy)
    oracle.agree(found.evaluation)
