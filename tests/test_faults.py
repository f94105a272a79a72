"""Faults of players in a match: each kind is scored, counted and told with its position, and the match goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from agents.ppo import PPOPolicy
from archie_env.batch import Hands
from archie_env.errors import (
    DISQUALIFIED,
    EXCEPTION,
    ILLEGAL,
    MALFORMED,
    PROBABILITIES,
    TIME_LIMIT,
    ArchieError,
    IllegalActionError,
    PlayerLeftError,
)
from archie_env.observation import width
from archie_env.policy import Actions, Masks, Observations, Probabilities, StochasticPolicy, UniformPolicy
from archie_env.rules import PRESETS, as_rules
from evaluation.duplicate.command import main
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.duplicate.report import format_match
from evaluation.duplicate.umpire import REPORTS, forfeit
from evaluation.exploitability.measure import measure
from evaluation.players import ProbabilityError, TimedCalls, TimeLimitError
from evaluation.tournament.crosstable import crosstable, format_crosstable

CALLER = load("call_draw")


class Wrong(UniformPolicy):
    """Plays what ``answer`` makes of the caller's actions."""

    name = "wrong"

    def __init__(self, answer: Callable[[Observations, Masks, Actions], object]) -> None:
        self.answer = answer

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        return self.answer(observations, masks, CALLER.act(observations, masks, rng))  # type: ignore[return-value]


class Doubtful(StochasticPolicy):
    """Uniform probabilities that ``change`` spoils."""

    name = "doubtful"

    def __init__(self, change: Callable[[Probabilities, Masks], object]) -> None:
        self.change = change

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        chances = UniformPolicy().probabilities(observations, masks)
        changed = self.change(chances, masks)
        return chances if changed is None else changed  # type: ignore[return-value]


def raises(*_: object) -> object:
    raise ValueError("boom")


def holds_deuce_of_clubs(observations: Observations) -> NDArray[np.bool_]:
    """In the first betting round: the first entry of an observation."""
    held: NDArray[np.bool_] = observations[:, 0] != 0
    return held


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (lambda o, m, a: np.full(len(m), 99), ILLEGAL, "action 99 is not legal in deal 0 as dealer, round 1, holding"),
        (lambda o, m, a: np.full(len(m), 2**64 - 1, np.uint64), ILLEGAL, "action 18446744073709551615 is not legal"),
        (lambda o, m, a: a.astype(float), MALFORMED, r"actions of shape \(1,\) and dtype float64: expected \(1,\) integers"),
        (lambda o, m, a: a[:, None], MALFORMED, r"actions of shape \(1, 1\)"),
        (lambda o, m, a: None, MALFORMED, r"actions of shape \(\) and dtype object"),
        (lambda o, m, a: [[1], [1, 2]], EXCEPTION, "act raised ValueError"),
        (raises, EXCEPTION, r"act raised ValueError: boom \(test_faults.py:\d+\) in deal 0 as dealer, round 1"),
        (lambda o, m, a: sys.exit(), EXCEPTION, "act raised SystemExit"),
    ],
)
def test_a_policy_that_always_fails_loses_its_blinds_and_the_match_ends(
    answer: Callable[[Observations, Masks, Actions], object], kind: str, words: str
) -> None:
    result = play_match(Wrong(answer), CALLER, 40, seed=1, chunk=16)
    ours, theirs = result.faults
    assert ours.counts == {kind: 80}
    assert theirs.total == 0
    assert result.chips.mean == -1.5  # the small blind as dealer, the big one else
    assert result.shown_down == 0
    assert result.folds == ((0, 0), (0, 0))
    assert len(ours.reports) == REPORTS
    assert re.search(f"^wrong: {words}", ours.reports[0]), ours.reports[0]
    assert "FAULTS: wrong forfeited 80 of 80 hands" in format_match(result)
    mirrored = play_match(CALLER, Wrong(answer), 40, seed=1, chunk=16)
    assert mirrored.chips == -result.chips
    assert [faults.counts for faults in mirrored.faults] == [{}, ours.counts]


def test_one_bad_row_does_not_cost_the_batch() -> None:
    """Whatever spoils a batch, the hands at fault are those in which one certain card was held, and only those."""

    def spoiled(how: str) -> Wrong:
        def answer(observations: Observations, masks: Masks, actions: Actions) -> object:
            bad = holds_deuce_of_clubs(observations)
            if not bad.any():
                return actions
            if how == ILLEGAL:
                return np.where(bad, 77, actions)
            return None if how == MALFORMED else raises()

        return Wrong(answer)

    results = {how: play_match(spoiled(how), CALLER, 300, seed=2) for how in (ILLEGAL, MALFORMED, EXCEPTION)}
    for how, result in results.items():
        assert set(result.faults[0].counts) == {how}
        assert result.totals == results[ILLEGAL].totals
        assert result.faults[0].total == results[ILLEGAL].faults[0].total
    assert 0 < results[ILLEGAL].faults[0].total < 300


def test_a_forfeit_ends_its_own_hand_and_no_other() -> None:
    hands = Hands(np.arange(6), np.zeros(6, np.int8), seed=3)
    before = hands.games.copy()
    forfeit(hands, np.array([1, 4]))
    untouched = [0, 2, 3, 5]
    assert np.array_equal(hands.games[untouched], before[untouched])
    assert hands.net[[1, 4]].tolist() == [[-1, 1], [-1, 1]]


@pytest.mark.parametrize("rules", PRESETS)
def test_giving_up_legally_earns_at_least_as_much_as_any_fault(rules: str) -> None:
    """At every decision of random hands: checking, standing pat and folding from there on loses no more than the forfeit."""
    rng = np.random.default_rng(4)
    hands = Hands(np.arange(400), np.zeros(400, np.int8), rules, seed=4)
    uniform = UniformPolicy()
    while not hands.over:
        for seat in (0, 1):
            places, rows, masks = hands.waiting(seat)
            paid = hands.games["paid"][places, hands.games["turn"][places]].astype(np.int64)
            other = hands.games["paid"][places, 1 - hands.games["turn"][places]]
            assert (paid <= other).all()
            foldable = masks[:, 0] != 0
            assert ((paid < other) == foldable).all()  # where it may not fold, checking or standing pat costs nothing
            if len(places):
                hands.play(places, uniform.act(rows, masks, rng))
    assert as_rules(rules).reserve >= int(np.abs(hands.net).max())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, m: p.__setitem__((0, 1), np.nan), "NaN probabilities"),
        (lambda p, m: p.__setitem__(0, np.where(m[0] != 0, np.nan, 0)), "NaN probabilities"),
        (lambda p, m: p.__setitem__((0, slice(1, 3)), (-0.5, 1.5)), "a probability is negative"),
        (lambda p, m: p.__setitem__(0, p[0] * 0.5), r"the probabilities sum to 0\.5"),
        (lambda p, m: p.__setitem__(0, 0), r"the probabilities sum to 0 \(all 0\)"),
        (lambda p, m: p.__setitem__(0, np.eye(35)[20 if m[0, 1] else 0]), "an illegal action has a probability"),
    ],
)
def test_bad_probabilities_are_found_and_told(change: Callable[[Probabilities, Masks], object], words: str) -> None:
    result = play_match(Doubtful(change), CALLER, 50, seed=5)
    assert set(result.faults[0].counts) == {PROBABILITIES}
    assert 0 < result.faults[0].total < 100
    assert re.search(f"^doubtful: {words}.* in deal \\d+ as ", result.faults[0].reports[0])
    with pytest.raises(ProbabilityError, match=f"doubtful: {words}"):
        play_match(Doubtful(change), CALLER, 50, seed=5, strict=True)


@pytest.mark.parametrize("change", [lambda p, m: p[:, :-1], lambda p, m: p.astype(int), lambda p, m: p[0]])
def test_probabilities_of_another_shape_or_kind_are_malformed(change: Callable[[Probabilities, Masks], object]) -> None:
    assert set(play_match(Doubtful(change), CALLER, 20).faults[0].counts) == {MALFORMED}


def test_asking_for_probabilities_changes_nothing_where_acting_is_sampling_them() -> None:
    class Sampled(Doubtful):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return super().act(observations, masks, rng)

    sampled = Sampled(lambda p, m: None)
    acted = play_match(sampled, CALLER, 300, seed=6)
    assert play_match(sampled, CALLER, 300, seed=6, probabilities=True).totals == acted.totals
    assert play_match(Doubtful(lambda p, m: None), CALLER, 300, seed=6).totals == acted.totals


def test_a_policy_that_writes_to_what_it_is_shown_gains_nothing() -> None:
    def cheat(observations: Observations, masks: Masks, actions: Actions) -> object:
        masks[:] = 1
        observations[:] = 0
        return np.full(len(masks), 0)  # folds, and claims to be allowed to

    result = play_match(Wrong(cheat), CALLER, 30, seed=7)
    assert result.faults[0].counts == {ILLEGAL: 30}  # in the big blind nothing is owed
    assert "as big blind, round 1, holding" in result.faults[0].reports[0]
    assert result.folds == ((30, 0), (0, 0))


def test_strict_matches_stop_at_the_first_fault() -> None:
    with pytest.raises(ValueError, match="boom"):
        play_match(Wrong(raises), CALLER, 10, strict=True)
    with pytest.raises(IllegalActionError, match="wrong: action 99 is not legal in deal 0"):
        play_match(Wrong(lambda o, m, a: np.full(len(m), 99)), CALLER, 10, strict=True)


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, PlayerLeftError])
@pytest.mark.parametrize("time_limit", [None, 10.0])
def test_whoever_stops_the_match_stops_it(stop: type[BaseException], time_limit: float | None) -> None:
    def leave(*_: object) -> object:
        if stop is PlayerLeftError:
            raise PlayerLeftError
        press_ctrl_c()
        time.sleep(0.1)
        return None

    with pytest.raises(stop):
        play_match(Wrong(leave), CALLER, 10, time_limit=time_limit)


def test_a_policy_that_hangs_is_disqualified_and_the_match_ends() -> None:
    released, asked = threading.Event(), list[int]()

    def hang(observations: Observations, masks: Masks, actions: Actions) -> object:
        asked.append(len(masks))
        if len(asked) == 4:
            released.wait(60)
        return actions

    start = time.perf_counter()
    result = play_match(Wrong(hang), CALLER, 64, seed=8, chunk=16, time_limit=(3.0, None))
    released.set()
    assert time.perf_counter() - start < 30
    assert len(asked) == 4
    counts = result.faults[0].counts
    assert set(counts) == {TIME_LIMIT, DISQUALIFIED}
    assert counts[TIME_LIMIT] == asked[3]
    assert counts[TIME_LIMIT] + counts[DISQUALIFIED] == 128  # all of the first chunk were still in play
    assert result.faults[0].disqualified
    assert "act gave no answer within 3 s in deal" in result.faults[0].reports[0]
    with pytest.raises(TimeLimitError, match=r"wrong: act gave no answer within 0\.01 s"):
        play_match(Wrong(lambda o, m, a: time.sleep(0.3) or a), CALLER, 10, strict=True, time_limit=(0.01, None))  # type: ignore[func-returns-value]


def test_a_policy_that_hangs_ends_its_measurement() -> None:
    released = threading.Event()

    def hang(chances: Probabilities, masks: Masks) -> object:
        released.wait(60)
        return chances

    with pytest.raises(TimeLimitError, match=r"doubtful: probabilities gave no answer within 0\.2 s"):
        measure(Doubtful(hang), "mini", "rank_isomorphic", time_limit=0.2)
    released.set()
    in_time = measure(load("rule_based", "mini"), "mini", "rank_isomorphic", time_limit=60)
    assert in_time.evaluation == measure(load("rule_based", "mini"), "mini", "rank_isomorphic").evaluation


def test_a_network_that_overflows_is_told_of_as_nan_probabilities() -> None:
    inputs, outputs = width("mini"), as_rules("mini").actions
    weights = {
        "layer0.weight": np.full((inputs, 2), 1e30, np.float32),
        "layer0.bias": np.zeros(2, np.float32),
        "head.weight": np.full((2, outputs), 1e30, np.float32),
        "head.bias": np.zeros(outputs, np.float32),
    }
    for greedy in (False, True):
        policy = PPOPolicy(weights, {"hand_features": False, "slots": False}, "mini", greedy)
        result = play_match(policy, load("call_draw", "mini"), 20, rules="mini")
        assert result.faults[0].total == 40
        assert "NaN probabilities" in result.faults[0].reports[0]


def test_a_time_limit_changes_nothing_for_those_who_keep_it() -> None:
    expected = play_match(load("uniform"), CALLER, 200, seed=9)
    assert play_match(load("uniform"), CALLER, 200, seed=9, time_limit=60) == expected
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(ArchieError, match="expected more than 0 seconds"):
            TimedCalls(seconds)


def test_two_players_at_fault_cost_each_other_their_blinds() -> None:
    result = play_match(Wrong(raises), Wrong(raises), 20)
    assert result.chips.mean == 0  # whoever deals is asked first, and pays
    assert [faults.total for faults in result.faults] == [20, 20]
    assert result.totals.dealer == -20


def test_faults_repeat_with_the_seed_and_survive_json() -> None:
    def sometimes(chances: Probabilities, masks: Masks) -> object:
        chances[len(chances) // 2 :: 5] = np.nan
        return None

    first, second = (play_match(Doubtful(sometimes), CALLER, 200, seed=10, chunk=64) for _ in range(2))
    assert first == second
    assert MatchResult.from_dict(first.to_dict()) == first
    without = {key: value for key, value in first.to_dict().items() if key != "faults"}
    assert MatchResult.from_dict(without).totals == first.totals  # files from before faults were counted


def test_a_table_names_the_faults_of_its_matches() -> None:
    text = format_crosstable(crosstable([CALLER, Wrong(raises)], 20))
    assert "call_draw v wrong:" in text
    assert "wrong forfeited 40 of 40 hands: exception 40" in text


def test_faults_and_disqualifications_outlive_an_interruption() -> None:
    def sometimes(chances: Probabilities, masks: Masks) -> object:
        chances[len(chances) // 2 :: 5] = np.nan
        return None

    parts: list[MatchResult] = []
    whole = play_match(Doubtful(sometimes), CALLER, 100, seed=11, chunk=16, written=parts.append)
    assert whole.faults[0].total > parts[1].faults[0].total > 0
    assert play_match(Doubtful(sometimes), CALLER, 100, seed=11, chunk=16, earlier=parts[1]) == whole

    hung: list[MatchResult] = []
    slow = Wrong(lambda o, m, a: time.sleep(0.3) or a)  # type: ignore[func-returns-value]
    play_match(slow, CALLER, 48, seed=11, chunk=16, time_limit=(0.01, None), written=hung.append)
    again = play_match(Wrong(lambda o, m, a: a), CALLER, 48, seed=11, chunk=16, time_limit=60, earlier=hung[0])
    assert again == hung[-1]  # quick now, and still out


def seat(monkeypatch: pytest.MonkeyPatch, player: UniformPolicy) -> None:
    """Let the command line know a player by the name ``guest``."""
    command = "evaluation.duplicate.command.load"
    monkeypatch.setattr(command, lambda name, rules: player if name == "guest" else load(name, rules))


def test_the_command_line_counts_faults_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seat(monkeypatch, Wrong(lambda o, m, a: np.full(len(m), 99)))
    file = tmp_path / "match.json"
    assert main(["guest", "call_draw", "--deals", "30", "--json", str(file)]) == 0
    output = capsys.readouterr().out
    assert "FAULTS: wrong forfeited 60 of 60 hands: illegal action 60" in output
    assert output.count("wrong: action 99 is not legal in deal") == REPORTS
    assert json.loads(file.read_text())["faults"][0]["counts"] == {ILLEGAL: 60}
    assert main(["guest", "call_draw", "--deals", "30", "--strict"]) == 2
    assert "error: wrong: action 99 is not legal in deal 0 as dealer" in capsys.readouterr().err


def test_an_interrupted_match_keeps_what_was_played_and_resumes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[int] = []

    def interrupted(observations: Observations, masks: Masks, actions: Actions) -> object:
        calls.append(1)
        if len(calls) == 30:
            press_ctrl_c()
        return actions

    seat(monkeypatch, Wrong(interrupted))
    file = tmp_path / "match.json"
    arguments = ["guest", "call_draw", "--deals", "200", "--chunk", "20", "--json", str(file)]
    assert main(arguments) == 130
    assert f"interrupted; --resume continues from {file}" in capsys.readouterr().err
    begun = MatchResult.from_dict(json.loads(file.read_text()))
    assert 0 < begun.totals.deals < 200
    assert main([*arguments, "--resume"]) == 0
    ended = MatchResult.from_dict(json.loads(file.read_text()))
    assert ended.totals == play_match(CALLER, CALLER, 200, chunk=20).totals


def test_a_policy_in_an_endless_loop_does_not_hold_up_the_end_of_the_program() -> None:
    program = """
from agents import load
from archie_env.policy import UniformPolicy
from evaluation.duplicate.report import format_match
from evaluation.duplicate.match import play_match

class Endless(UniformPolicy):
    name = "endless"
    def act(self, observations, masks, rng):
        while True:
            pass

print(format_match(play_match(Endless(), load("call_draw"), 10, time_limit=(0.2, None))))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert "endless forfeited 20 of 20 hands: time limit 10, disqualified 10" in ended.stdout
    assert ended.stderr == ""
