"""Duplicate matches: the pairing, the figures, resuming and the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from archie_env.batch import Hands
from archie_env.envs.learner import SingleAgentBatch
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities
from archie_env.rules import PRESETS, Rules, Stakes
from evaluation.duplicate.command import main
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.duplicate.report import format_match
from evaluation.estimates import Estimate, PairSequence, PairTotals
from evaluation.results import check_manifest
from evaluation.tournament.crosstable import Crosstable, crosstable, format_crosstable
from tests.records import hands_in


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
        return hands_in(hands.games)[:, 1]

    assert np.array_equal(final_hands(CALLER), final_hands(DRAWS_FIVE))


@pytest.mark.parametrize(
    ("answer", "message"), [(99, "action 99 is not legal in deal 0 as dealer, round 1"), (-1, "action -1")]
)
def test_an_illegal_action_names_the_player_and_the_position(answer: int, message: str) -> None:
    with pytest.raises(IllegalActionError, match=f"cheat: {message}"):
        play_match(Broken("cheat", answer), CALLER, 10, strict=True)
    with pytest.raises(
        IllegalActionError, match=r"cheat: action 0 is not legal in deal 0 as big blind, round 1, holding .* legal: 1"
    ):
        play_match(CALLER, Broken("cheat", 0), 10, strict=True)


@pytest.mark.parametrize("answer", [np.zeros(3, np.int64), 0.5])
def test_an_answer_of_another_shape_or_kind_names_the_player(answer: object) -> None:
    with pytest.raises(IllegalActionError, match="cheat: actions of shape"):
        play_match(Broken("cheat", answer), CALLER, 10, strict=True)


@pytest.mark.parametrize(("deals", "seed", "chunk"), [(1, 0, 8), (10, -1, 8), (10, 0, 0), (10**12, 0, 10**11)])
def test_a_match_that_proves_nothing_is_refused(deals: int, seed: int, chunk: int) -> None:
    with pytest.raises(ArchieError, match="expected"):
        play_match(CALLER, CALLER, deals, seed, chunk=chunk)


def test_a_crosstable_is_antisymmetric_and_marks_what_is_significant() -> None:
    players = [load(name) for name in ("call", "call_draw", "uniform")]
    counted: list[int] = []
    table = crosstable(players, 300, seed=11, progress=counted.append)
    assert sum(counted) == 900
    for i in range(3):
        for j in range(i):
            assert table.table.cell(j, i) == -table.table.cell(i, j)
    assert table.table.cell(1, 2) == play_match(players[1], players[2], 300, seed=11).mbb
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
    assert "policy 'nobody': expected one of uniform, call, raise" in capsys.readouterr().err


def test_environments_deal_the_first_cards_of_the_deals_of_their_seed_in_first_hands_only() -> None:
    """What docs/duplicate.md says of training seeds; a change here would change every published result."""
    deals, tables = Hands(np.arange(50), np.zeros(50, np.int8), seed=8), SingleAgentBatch(50, [None], seed=8)
    assert np.array_equal(tables.games["held"][:, :, 0], deals.games["held"][:, :, 0])
    other = SingleAgentBatch(50, [None], seed=9)
    while other.hands.min() < 1 or tables.hands.min() < 1:
        for games in (other, tables):
            games.step(games.masks.argmax(axis=1))
    for games in (other, tables):
        assert not (games.games["held"][:, :, 0] == deals.games["held"][:, :, 0]).all(axis=1).any()


def test_intervals_of_random_against_random_cover_zero_in_95_of_100_matches() -> None:
    """Of 200 matches 95 % +- four standard deviations of the binomial: 177.7 or more, and not all."""
    uniform = load("uniform")
    matches = [play_match(uniform, uniform, 400, seed=seed) for seed in range(1000, 1200)]
    covered = sum(low <= 0 <= high for low, high in (match.mbb.interval for match in matches))
    reach = 4 * np.sqrt(200 * 0.95 * 0.05)
    assert 190 - reach <= covered <= min(199, 190 + reach)
    assert all(low <= 0 <= high for low, high in (match.anytime_interval for match in matches))


COMMAND = [sys.executable, "-m", "evaluation.duplicate"]


def without_times(file: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(file.read_text())
    del values["manifest"]["written"]
    for result in values.get("results", [values]):
        del result["seconds"]
    return values


def wait_for(condition: Callable[[], bool]) -> None:
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < 120
        time.sleep(0.01)


@pytest.mark.parametrize("players", [["uniform", "rule_based"], ["uniform", "call", "rule_based"]])
def test_a_killed_match_resumes_and_ends_with_the_totals_of_an_undisturbed_one(players: list[str], tmp_path: Path) -> None:
    def arguments(name: str) -> list[str]:
        settings = ["--deals", "6000", "--seed", "21", "--chunk", "40", "--write-every", "0", "--json", str(tmp_path / name)]
        return [*players, *settings]

    def begun() -> bool:
        """The match, or the second one of a table."""
        return file.exists() and len(json.loads(file.read_text()).get("results", "ab")) == 2

    file = tmp_path / "killed.json"
    match = subprocess.Popen([*COMMAND, *arguments("killed.json")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(begun)
    finally:
        match.send_signal(signal.SIGKILL)
        match.communicate()
    cut = json.loads(file.read_text())
    assert match.returncode == -signal.SIGKILL
    assert cut["finished"] is False
    assert main(arguments("killed.json")) == 2  # not without --resume, which would lose what there is
    assert json.loads(file.read_text()) == cut
    assert main([*arguments("killed.json"), "--resume"]) == 0
    assert main(arguments("whole.json")) == 0
    assert without_times(file) == without_times(tmp_path / "whole.json")
    assert json.loads(file.read_text())["finished"] is True
    assert main([*arguments("killed.json"), "--resume"]) == 0  # nothing is left to play
    assert without_times(file) == without_times(tmp_path / "whole.json")


def test_a_match_cut_at_any_chunk_goes_on_to_the_same_end() -> None:
    parts: list[MatchResult] = []
    whole = play_match(load("uniform"), load("rule_based"), 250, seed=22, chunk=40, written=parts.append)
    assert [part.totals.deals for part in parts] == [40, 80, 120, 160, 200, 240, 250]
    for part in parts:
        earlier = MatchResult.from_dict(json.loads(json.dumps(part.to_dict())))
        again = play_match(load("uniform"), load("rule_based"), 250, seed=22, chunk=40, earlier=earlier)
        assert again == whole
        assert again.sequence == whole.sequence
    with pytest.raises(ArchieError, match="whole chunks of 100"):
        play_match(load("uniform"), load("rule_based"), 250, seed=22, chunk=100, earlier=parts[0])
    with pytest.raises(ArchieError, match="has seed 22: expected 23"):
        play_match(load("uniform"), load("rule_based"), 250, seed=23, chunk=40, earlier=parts[0])


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (["--seed", "24"], "seed 23 is now 24"),
        (["--deals", "61"], "deals 60 is now 61"),
        (["--chunk", "8"], "chunk 1024 is now 8"),
        (["--rules", "mini"], "rules 'archie' is now 'mini'"),
        (["--crosstable"], "table False is now True"),
        (["--probabilities"], "probabilities False is now True"),
    ],
)
def test_a_file_made_otherwise_is_refused_with_the_difference(
    change: list[str], difference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "match.json"
    arguments = ["uniform", "call", "--deals", "60", "--seed", "23", "--json", str(file)]
    assert main(arguments) == 0
    kept = file.read_bytes()
    assert main([*arguments, *change, "--resume"]) == 2
    assert difference in capsys.readouterr().err
    assert file.read_bytes() == kept
    with pytest.raises(ArchieError, match=r"its manifest differs: versions\.numpy '1' is now '2'"):
        check_manifest(file, {"versions": {"numpy": "1"}}, {"versions": {"numpy": "2"}, "written": "now"})


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"manifest": 1}', '{"manifest": {}, "results": 3}'])
def test_what_is_no_file_of_results_is_not_resumed(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "match.json"
    file.write_text(content)
    assert main(["call", "call", "--deals", "5", "--json", str(file), "--resume"]) == 2
    assert "match.json" in capsys.readouterr().err
    assert main(["call", "call", "--resume"]) == 2
    assert "--resume: expected --json FILE" in capsys.readouterr().err


@pytest.mark.parametrize("names", [("uniform", "call_draw"), ("rule_based", "call_draw")])
def test_intervals_at_the_stop_cover_the_mean_of_real_pairs(names: tuple[str, str]) -> None:
    """Matches drawn from a pool of real deal pairs, whose mean is known, each stopped when its interval is narrow."""
    players = load(names[0]), load(names[1])
    deals, matches, width = 3000, 200, 1.0
    hands = Hands(np.repeat(np.arange(deals), 2), np.tile([0, 1], deals), seed=31)
    play_out(hands, players)
    pool = hands.net[:, 0].reshape(deals, 2)
    rng, missed, lengths = np.random.default_rng(32), 0, []
    for _ in range(matches):
        sequence = PairSequence(48)
        while np.subtract(*sequence.interval()[::-1]) >= width:
            pairs = pool[rng.integers(deals, size=32)]
            sequence = sequence.after(PairTotals.of(pairs[:, 0], pairs[:, 1]))
        low, high = sequence.interval()
        missed += not low <= pool.mean() <= high
        lengths.append(sequence.deals)
    assert missed <= 0.05 * matches
    assert len(set(lengths)) > 1  # results decided


def test_a_match_ends_with_the_first_chunk_after_which_its_interval_is_narrow_enough() -> None:
    players = load("rule_based"), load("call_draw")
    parts: list[MatchResult] = []
    result = play_match(*players, 100_000, seed=34, chunk=256, until=400, written=parts.append)
    widths = [high - low for low, high in (part.anytime_interval for part in parts)]
    assert widths[-1] < 400 <= min(widths[:-1])
    assert result == parts[-1]
    assert play_match(*players, 100_000, seed=34, chunk=256, until=400, earlier=parts[2]) == result
    assert play_match(*players, 100_000, seed=34, chunk=256, until=400, earlier=result) == result
    assert play_match(*players, 512, seed=34, chunk=256, until=400) == parts[1]
    low, high = result.mbb.interval
    assert widths[-1] > high - low
    for width in (0.0, -1.0, float("nan")):
        with pytest.raises(ArchieError, match="until"):
            play_match(*players, 100, until=width)


def test_the_command_line_stops_when_told_and_says_which_interval_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "match.json"
    arguments = ["rule_based", "call_draw", "--seed", "34", "--chunk", "256", "--json", str(file)]
    assert main([*arguments, "--until", "400"]) == 0
    assert "mbb/hand, narrower than 400; the interval above is NOT valid" in capsys.readouterr().out
    written = json.loads(file.read_text())
    low, high = written["figures"]["mbb_anytime_interval_95"]
    assert high - low < 400
    assert written["manifest"]["until"] == 400
    kept = file.read_bytes()
    assert main([*arguments, "--until", "400", "--deals", "300"]) == 2
    assert "holds a finished result: expected --resume, another file" in capsys.readouterr().err
    assert file.read_bytes() == kept
    assert main([*arguments[:-2], "--until", "400", "--deals", "300"]) == 0
    assert "out of deals before it was narrower than 400" in capsys.readouterr().out
    assert main([*arguments, "--until", "300", "--resume"]) == 2
    assert "until 400.0 is now 300.0" in capsys.readouterr().err
    assert main(["uniform", "call", "raise", "--until", "400"]) == 2
