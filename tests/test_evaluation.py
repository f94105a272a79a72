"""Duplicate matches: the pairing, the figures, the tables and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from archie_env.batch import Hands
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities
from archie_env.rules import PRESETS, Rules, Stakes
from evaluation.duplicate import format_crosstable, format_match, main
from evaluation.match import Crosstable, MatchResult, crosstable, play_match
from evaluation.stats import NORMAL_95, Estimate, PairTotals


class Fixed:
    """Plays the first legal action of a list, whatever it sees."""

    def __init__(self, name: str, *wishes: int) -> None:
        self.name, self.wishes = name, wishes

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        actions = np.zeros(len(masks), np.int64)
        for wish in reversed(self.wishes):
            actions[masks[:, wish] != 0] = wish
        return actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        raise NotImplementedError


class Broken(Fixed):
    """Answers with something that is not one legal action for each decision."""

    def __init__(self, name: str, answer: object) -> None:
        super().__init__(name)
        self.answer = answer

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return np.full(len(masks), self.answer) if np.isscalar(self.answer) else self.answer  # type: ignore[return-value]


FOLDER = Fixed("folder", 0, 1, 3)
CALLER = Fixed("caller", 1, 3)
DRAWS_FIVE = Fixed("draws five", 1, 34)


def play_out(hands: Hands, players: tuple[Policy, Policy]) -> None:
    rng = np.random.default_rng(0)
    while not hands.over:
        for seat, player in enumerate(players):
            places, rows, masks = hands.waiting(seat)
            if len(places):
                hands.play(places, player.act(rows, masks, rng))


def test_totals_give_the_mean_and_error_of_a_brute_force_recomputation() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(-48, 49, (2, 1000))
    totals = PairTotals.of(x, y)
    pairs = (x + y) / 2
    assert totals.per_hand.mean == pytest.approx(pairs.mean())
    assert totals.per_hand.standard_error == pytest.approx(pairs.std(ddof=1) / np.sqrt(1000))
    assert totals.as_dealer.mean == pytest.approx(x.mean())
    assert totals.as_dealer.standard_error == pytest.approx(x.std(ddof=1) / np.sqrt(1000))
    assert totals.as_big_blind.standard_error == pytest.approx(y.std(ddof=1) / np.sqrt(1000))
    unpaired = (x.var(ddof=1) + y.var(ddof=1)) / 4 / 1000
    assert totals.variance_reduction == pytest.approx(unpaired / totals.per_hand.standard_error**2)


def test_totals_add_up_exactly_however_they_are_cut() -> None:
    x, y = np.random.default_rng(2).integers(-48, 49, (2, 100))
    assert PairTotals.of(x[:37], y[:37]) + PairTotals.of(x[37:], y[37:]) == PairTotals.of(x, y)


def test_an_interval_reaches_to_both_sides_and_a_certain_win_is_infinitely_significant() -> None:
    low, high = Estimate(10.0, 2.0).interval
    assert (low, high) == (10 - 2 * NORMAL_95, 10 + 2 * NORMAL_95)
    assert Estimate(-1.0, 0.0).significance == -np.inf
    assert Estimate(0.0, 0.0).significance == 0
    assert Estimate(8.0, 2.0).significance == 4


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("name", ["call", "raise", "call_draw", "raise_draw"])
def test_a_deterministic_player_against_itself_gives_exactly_nothing(name: str, rules: str) -> None:
    result = play_match(load(name, rules), load(name, rules), 300, seed=3, rules=rules)
    assert result.chips == Estimate(0.0, 0.0)
    assert result.totals.variance_reduction is None
    assert "do not vary" in format_match(result)


def test_swapping_deterministic_players_negates_the_result() -> None:
    ours = play_match(CALLER, load("call_draw"), 2000, seed=4)
    theirs = play_match(load("call_draw"), CALLER, 2000, seed=4)
    assert theirs.chips == -ours.chips
    assert theirs.totals.as_dealer == -ours.totals.as_big_blind
    assert ours.chips.mean < 0


def test_a_result_does_not_depend_on_how_deals_are_cut_into_chunks() -> None:
    whole = play_match(FOLDER, load("raise_draw"), 500, seed=5)
    assert play_match(FOLDER, load("raise_draw"), 500, seed=5, chunk=33) == whole
    assert play_match(FOLDER, load("raise_draw"), 500, seed=6) != whole


def test_random_players_repeat_with_the_seed() -> None:
    uniform, caller = load("uniform"), load("call_draw")
    assert play_match(uniform, caller, 400, seed=7) == play_match(uniform, caller, 400, seed=7)


@pytest.mark.parametrize("rules", PRESETS)
def test_uniform_against_uniform_covers_zero(rules: str) -> None:
    result = play_match(load("uniform"), load("uniform"), 5000, seed=8, rules=rules)
    assert abs(result.mbb.significance) < 4
    assert result.mbb.standard_error > 0


def test_folds_are_counted_by_player_and_position() -> None:
    result = play_match(FOLDER, CALLER, 50, seed=9)
    assert result.folds == ((50, 0), (0, 0))  # the dealer owes a chip and folds; nothing is owed in the big blind
    assert result.folded == (0.5, 0.0)
    assert result.shown_down == 0.5
    assert result.totals.as_dealer == Estimate(-1.0, 0.0)
    swapped = play_match(CALLER, FOLDER, 50, seed=9)
    assert swapped.folds == ((0, 0), (50, 0))
    raised = play_match(FOLDER, load("raise"), 50, seed=9)
    assert raised.folds == ((50, 50), (0, 0))
    assert raised.chips == Estimate(-1.5, 0.0)


def test_milli_big_blinds_follow_the_stakes() -> None:
    rules = Rules(stakes=Stakes((2, 5), (5, 5, 10, 10)))
    result = play_match(Fixed("folder", 0, 1, 3), Fixed("raiser", 2, 1, 3), 20, rules=rules)
    assert result.chips.mean == -3.5
    assert result.mbb.mean == -700


def test_the_other_draws_do_not_move_a_positions_replacements() -> None:
    def final_hands(player: Policy) -> NDArray[np.int8]:
        hands = Hands(np.arange(200), np.zeros(200, np.int8), seed=10)
        play_out(hands, (player, DRAWS_FIVE))
        return hands.games["hand"][:, 1].copy()

    assert np.array_equal(final_hands(CALLER), final_hands(DRAWS_FIVE))


@pytest.mark.parametrize(
    ("answer", "message"), [(99, "action 99 is not legal in deal 0 as dealer, round 1"), (-1, "action -1")]
)
def test_an_illegal_action_names_the_player_and_the_position(answer: int, message: str) -> None:
    with pytest.raises(IllegalActionError, match=f"cheat: {message}"):
        play_match(Broken("cheat", answer), CALLER, 10)
    with pytest.raises(
        IllegalActionError, match=r"cheat: action 0 is not legal in deal 0 as big blind, round 1, holding .* legal: 1"
    ):
        play_match(CALLER, Broken("cheat", 0), 10)


@pytest.mark.parametrize("answer", [np.zeros(3, np.int64), 0.5])
def test_an_answer_of_another_shape_or_kind_names_the_player(answer: object) -> None:
    with pytest.raises(IllegalActionError, match="cheat: actions of shape"):
        play_match(Broken("cheat", answer), CALLER, 10)


@pytest.mark.parametrize(("deals", "seed", "chunk"), [(1, 0, 8), (10, -1, 8), (10, 0, 0)])
def test_a_match_that_proves_nothing_is_refused(deals: int, seed: int, chunk: int) -> None:
    with pytest.raises(ArchieError, match="expected"):
        play_match(CALLER, CALLER, deals, seed, chunk=chunk)


def test_a_crosstable_is_antisymmetric_and_marks_what_is_significant() -> None:
    players = [load(name) for name in ("call", "call_draw", "uniform")]
    counted: list[int] = []
    table = crosstable(players, 300, seed=11, progress=counted.append)
    assert sum(counted) == 900
    for i in range(3):
        assert table.cell(i, i) is None
        for j in range(i):
            cell, mirror = table.cell(i, j), table.cell(j, i)
            assert cell is not None
            assert mirror == -cell
    assert table.cell(1, 2) == play_match(players[1], players[2], 300, seed=11).mbb
    text = format_crosstable(table).splitlines()
    assert text[0].split("  ")[0] == "row v column"
    assert text[2].startswith("call_draw")
    assert "*" in text[2]
    assert format_crosstable(table, markdown=True).splitlines()[1].startswith("|---")


def test_results_survive_json() -> None:
    table = crosstable([FOLDER, CALLER, load("call_draw", "mini")], 50, rules="mini")
    assert Crosstable.from_dict(json.loads(json.dumps(table.to_dict()))) == table
    match = table.results[1]
    assert MatchResult.from_dict(json.loads(json.dumps(match.to_dict()))) == match


def test_the_command_line_plays_a_match_and_writes_it_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "match.json"
    assert main(["call_draw", "call", "--deals", "500", "--seed", "12", "--json", str(file)]) == 0
    output = capsys.readouterr()
    assert "call_draw wins +" in output.out
    assert output.err == ""
    written = json.loads(file.read_text())
    assert MatchResult.from_dict(written).totals == play_match(load("call_draw"), load("call"), 500, seed=12).totals
    assert written["manifest"]["agents"] == ["call_draw", "call"]
    assert written["manifest"]["versions"]["numpy"] == np.__version__
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("arguments", [["uniform", "call", "raise"], ["uniform", "call", "--crosstable", "--markdown"]])
def test_the_command_line_prints_tables(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--deals", "50", "--rules", "mini"]) == 0
    assert "row v column" in capsys.readouterr().out


def test_the_command_line_refuses_unknown_players_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nobody", "call"]) == 2
    assert "agent 'nobody': expected one of uniform, call, raise" in capsys.readouterr().err
