"""Archie as an OpenSpiel game: the same cards, rows and results as `Game`, and OpenSpiel's own algorithms on it."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import cfr, external_sampling_mccfr, ismcts, mcts, outcome_sampling_mccfr
from open_spiel.python.algorithms.best_response import BestResponsePolicy
from open_spiel.python.algorithms.expected_game_score import policy_value
from open_spiel.python.algorithms.exploitability import nash_conv
from open_spiel.python.policy import TabularPolicy, UniformRandomPolicy
from open_spiel.python.pytorch import deep_cfr, nfsp

from agents import load
from archie_env import Game
from archie_env._core.jit import JIT_DISABLED
from archie_env.errors import ArchieError, OrderError
from archie_env.interop.openspiel import NAME, ArchieGame, ArchieState, FromOpenSpiel, ToOpenSpiel
from archie_env.policy import UniformPolicy
from archie_env.rules import PRESETS, Rules
from evaluation.duplicate.match import play_match
from evaluation.exploitability.measure import measure
from tests.test_openspiel import GAMES, NO_DRAW, tiny

ONE, IN_TURN = GAMES["one card"], GAMES["one card, drawn for in turn"]
KUHN = tiny(ranks="A234", suits="c", hand_size=1, raise_cap=2, high_qualifier="A", low_qualifier="2", **NO_DRAW)


def playout(rules: Rules | str, chance: random.Random) -> tuple[ArchieState, list[ArchieState]]:
    """A hand of players that seldom fold, and its decisions."""
    state, decisions = ArchieGame(rules).new_initial_state(), []
    while not state.is_terminal():
        if state.is_chance_node():
            cards, chances = zip(*state.chance_outcomes(), strict=True)
            assert sum(chances) == pytest.approx(1)
            assert len(set(chances)) == 1
            state.apply_action(chance.choice(cards))
            continue
        decisions.append(state.clone())
        legal = state.legal_actions()
        state.apply_action(chance.choice(legal if legal[0] >= 3 or chance.random() < 0.05 else legal[-2:]))
    return state, decisions


@pytest.mark.parametrize("rules", [*PRESETS.values(), ONE, IN_TURN])
def test_a_hand_is_that_of_the_engine_with_the_same_cards_and_actions(rules: Rules) -> None:
    chance = random.Random(7)
    for _ in range(150 if not JIT_DISABLED else 5):
        state, decisions = playout(rules, chance)
        steps = state.full_history()
        cards = [rules.deck[step.action] for step in steps if step.player < 0]
        game = Game(rules, dealer=0, deck=cards)
        for decision in decisions:
            assert game.to_act == decision.current_player()
            assert list(game.legal_actions()) == decision.legal_actions()
            for player in (0, 1):
                row = game.observation(player)
                assert (decision.row(player) == row).all()
                assert decision.information_state_string(player) == row.tobytes().hex()
            assert decision.information_state_tensor(game.to_act) == game.observation(game.to_act).astype(float).tolist()
            assert decision.returns() == [0, 0]
            game.apply(steps[len(decision.full_history())].action)
        assert game.over
        assert state.returns() == [float(chips) for chips in game.result.net]


@pytest.mark.parametrize("rules", [*PRESETS])
def test_openspiels_own_simulation_passes(rules: str) -> None:
    pyspiel.random_sim_test(pyspiel.load_game(f"{NAME}(rules={rules})"), 2, True, False)


def test_a_player_never_sees_the_other_ones_cards() -> None:
    """Two histories that differ in the other player's cards and discards alone have one information state."""
    chance, changed = random.Random(3), 0
    for rules in ("archie", "barge", "mini"):
        for _ in range(30):
            for state in playout(rules, chance)[1]:
                player = state.current_player()
                again = state.resample_from_infostate(player, chance.random)
                assert again.information_state_string(player) == state.information_state_string(player)
                assert again.current_player() == player
                assert again.legal_actions() == state.legal_actions()
                assert len(again.full_history()) == len(state.full_history()) or state.row()[-1] == 0
                changed += again.information_state_string(1 - player) != state.information_state_string(1 - player)
    assert changed > 1000
    with pytest.raises(OrderError, match="expected the player to act"):
        state.resample_from_infostate(1 - state.current_player(), chance.random)


def test_resampled_cards_are_uniform_over_what_was_not_seen() -> None:
    state = ArchieGame("mini").new_initial_state()
    for card in (0, 1, 2, 3):  # the big blind gets 0 and 2, the dealer 1 and 3
        state.apply_action(card)
    chance, counts = random.Random(5), np.zeros(12)
    for _ in range(6000):
        again = state.resample_from_infostate(0, chance.random)
        counts[[step.action for step in again.full_history()[0:4:2]]] += 1
    assert counts[[1, 3]].sum() == 0
    assert np.abs(counts[[0, 2, *range(4, 12)]] - 1200).max() < 5 * np.sqrt(1200 * 0.8)


@pytest.mark.parametrize("rules", [ONE, IN_TURN])
def test_exploitability_is_ours_to_the_ninth_decimal(rules: Rules) -> None:
    game = ArchieGame(rules)
    policy = TabularPolicy(game)
    ours = measure(UniformPolicy(), rules, "full")
    assert nash_conv(game, policy) == pytest.approx(ours.evaluation.nash_conv, abs=1e-9)
    assert policy_value(game.new_initial_state(), [policy, policy])[0] == pytest.approx(ours.evaluation.value, abs=1e-9)
    assert len(policy.states) <= ours.information_sets


def test_the_value_of_uniform_play_in_mini_is_the_exact_one() -> None:
    exact = measure(UniformPolicy(), "mini").evaluation.value
    game, chance, won = ArchieGame("mini"), random.Random(8), []
    for _ in range(3000):
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(chance.choice(state.legal_actions()))
        won.append(state.returns()[0])
    assert abs(np.mean(won) - exact) < 4 * np.std(won) / np.sqrt(len(won))


def test_solvers_learn_and_their_averages_are_measured_here() -> None:
    game = ArchieGame(KUHN)
    start = nash_conv(game, UniformRandomPolicy(game))
    solver = cfr.CFRPlusSolver(game)
    for _ in range(12):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    theirs = nash_conv(game, average)
    assert theirs < start / 4
    ours = measure(FromOpenSpiel(average, KUHN), KUHN, "full").evaluation
    assert ours.nash_conv == pytest.approx(theirs, abs=1e-5)  # probabilities of players are float32
    np.random.seed(1)  # noqa: NPY002  (the generator that the solvers read)
    for sampled in (external_sampling_mccfr.ExternalSamplingSolver(game), outcome_sampling_mccfr.OutcomeSamplingSolver(game)):
        for _ in range(600):
            sampled.iteration()
        assert nash_conv(game, sampled.average_policy()) < start / 1.5
    compiled = pyspiel.ExternalSamplingMCCFRSolver(game, 1)
    for _ in range(600):
        compiled.run_iteration()
    assert nash_conv(game, compiled.average_policy()) < start / 1.5


def test_players_of_this_project_are_policies_there() -> None:
    game = ArchieGame(KUHN)
    policy = ToOpenSpiel(game, "uniform")
    assert nash_conv(game, policy) == pytest.approx(nash_conv(game, UniformRandomPolicy(game)), abs=1e-6)
    best = BestResponsePolicy(game, 0, policy)
    ours = measure(UniformPolicy(), KUHN, "full").evaluation
    assert best.value(game.new_initial_state()) == pytest.approx(ours.best_responses[0], abs=1e-6)
    caller = ToOpenSpiel(ArchieGame("archie"), load("call_draw"))
    for state in playout("archie", random.Random(1))[1]:
        chances = caller.action_probabilities(state)
        assert sum(chances.values()) == pytest.approx(1)
        row, mask = state.row()[None], np.zeros((1, 35), np.int8)
        mask[0, state.legal_actions()] = 1
        assert max(chances, key=chances.__getitem__) == load("call_draw").act(row, mask, np.random.default_rng(0))[0]


def test_openspiels_policies_play_matches() -> None:
    player = FromOpenSpiel(UniformRandomPolicy(ArchieGame("mini")), "mini", "theirs")
    match = play_match(player, load("call", "mini"), 40, seed=1, rules="mini")
    assert match.a == "theirs"
    assert not match.faults[0].total
    with pytest.raises(ArchieError, match="expected an OpenSpiel policy with action_probabilities"):
        FromOpenSpiel(object())


def test_information_set_monte_carlo_tree_search_plays() -> None:
    game = ArchieGame("mini")
    bot = ismcts.ISMCTSBot(
        game=game, uct_c=8.0, evaluator=mcts.RandomRolloutEvaluator(1, np.random.RandomState(1)), max_simulations=40,
        random_state=np.random.RandomState(2),
    )  # fmt: skip
    for state in playout("mini", random.Random(2))[1]:
        assert bot.step(state) in state.legal_actions()


@pytest.mark.parametrize("rules", ["archie", "barge", ONE])
def test_games_and_states_survive_being_written(rules: Rules | str) -> None:
    game = ArchieGame(rules)
    for state in playout(rules, random.Random(4))[1]:
        found, again = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
        assert str(again) == str(state)
        assert again.information_state_string() == state.information_state_string()
        assert found.num_distinct_actions() == game.num_distinct_actions()
        assert str(pickle.loads(pickle.dumps(state))) == str(state)


def test_bad_parameters_are_refused() -> None:
    for name, words in (
        ("nosuch", "nosuch"),
        ("options_zz", "expected one of archie"),
        ("options_5b5d", "expected one of archie"),
    ):
        with pytest.raises(ArchieError, match=words):
            ArchieGame({"rules": name})
    state = ArchieGame("mini").new_initial_state()
    for card in (0, 1, 2, 3):
        state.apply_action(card)
    with pytest.raises(ArchieError, match=r"action 5 is not legal here: expected one of \[0, 1, 2\]"):
        state.apply_action(5)


def test_without_openspiel_the_error_names_the_extra() -> None:
    program = "import sys; sys.modules['pyspiel'] = None; import archie_env.interop.openspiel"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "expected pip install 'archie-env[openspiel]'" in answer.stderr


def test_deep_cfr_runs_and_its_average_plays_here() -> None:
    game = ArchieGame(KUHN)
    solver = deep_cfr.DeepCFRSolver(
        game, policy_network_layers=(16,), advantage_network_layers=(16,), num_iterations=2, num_traversals=60,
        batch_size_advantage=32, batch_size_strategy=32, memory_capacity=10_000,
    )  # fmt: skip
    solver.solve()
    player = FromOpenSpiel(solver, KUHN, "deep_cfr")
    assert measure(player, KUHN, "full").evaluation.exploitability > 0


def test_nfsp_runs_in_openspiels_environment() -> None:
    game = ArchieGame(KUHN)
    environment = rl_environment.Environment(game, chance_event_sampler=rl_environment.ChanceEventSampler(seed=1))
    size = environment.observation_spec()["info_state"][0]
    options = {"batch_size": 8, "min_buffer_size_to_learn": 16}
    agents = [nfsp.NFSP(player, size, game.num_distinct_actions(), [16], 1000, 0.1, **options) for player in (0, 1)]
    paid = []
    for _ in range(60):
        step = environment.reset()
        while not step.last():
            step = environment.step([agents[step.observations["current_player"]].step(step).action])
        for agent in agents:
            agent.step(step)
        paid.append(step.rewards)
    assert all(sum(rewards) == 0 for rewards in paid)
    assert len(set(map(tuple, paid))) > 3
