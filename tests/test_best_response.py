"""Lower bounds: the choice of the opponent, the deals, the kept attempts, and the command that plays the bound again."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import load
from archie_env.errors import ArchieError
from archie_env.files import locked
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, UniformPolicy
from archie_env.rules import Rules
from evaluation.best_response import bound as module
from evaluation.best_response.bound import Bound, best_response, format_bound
from evaluation.best_response.command import main
from evaluation.best_response.exploiters import EXPLOITERS, SCRIPTED, Budget, Exploiter, Settings
from evaluation.duplicate.match import play_match
from training.cfr import trainer as cfr
from training.cfr.abstraction import AbstractionConfig
from training.cfr.config import Config as CFRConfig
from training.cfr.config import Report, Stage
from training.ppo.best_response import train_best_response

SETTINGS = Settings(Budget(1000), deals=300, slow_deals=20, seed=7, exploiters=("call", "rule_based"))


@pytest.mark.parametrize(
    ("text", "budget"),
    [("400000", Budget(400_000)), ("4_000", Budget(4000)), ("60s", Budget(seconds=60)), ("1.5s", Budget(seconds=1.5))],
)
def test_budgets_are_decisions_or_seconds(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "0", "-3", "0s", "s", "1e6", "sixty", "60 s"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(ArchieError, match="expected a number of decisions such as 400000, or seconds such as 60s"):
        Budget.parse(text)


def test_the_best_is_chosen_on_some_deals_and_reported_on_others() -> None:
    bound = best_response("call_draw", settings=SETTINGS)
    learn, choose, report = SETTINGS.seeds
    assert len({learn, choose, report}) == 3
    target = load("call_draw")
    assert [attempt.name for attempt in bound.attempts] == ["call", "rule_based"]
    for attempt in bound.attempts:
        assert attempt.result == play_match(load(attempt.name), target, 300, choose)
    assert bound.chosen == "rule_based"
    assert bound.result == play_match(load("rule_based"), target, 300, report)
    assert bound.result.totals != bound.attempts[1].result.totals  # type: ignore[union-attr]
    low, high = bound.mbb.interval
    text = format_bound(bound)
    assert f"{bound.mbb} mbb/hand (95 % interval {low:+,.1f} to {high:+,.1f})" in text
    assert "exploitability" not in text.lower()
    assert bound.replay == f"python -m evaluation.duplicate rule_based call_draw --deals 300 --seed {report}"


def test_seeds_of_neighbouring_settings_share_no_deals() -> None:
    seeds = [seed for s in range(20) for seed in replace(SETTINGS, seed=s).seeds]
    assert len(set(seeds)) == 60


def test_the_choice_goes_by_the_lower_end_and_not_by_the_luckiest_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few deals of an opponent that wins or loses a lot may show any mean."""

    def gambler(target: Policy, rules: Rules, settings: Settings) -> tuple[Policy, str]:
        return load("raise_draw", rules), "made up"

    monkeypatch.setitem(EXPLOITERS, "gambler", Exploiter(gambler, slow=True))
    settings = replace(SETTINGS, deals=4000, exploiters=("gambler", "rule_based"))
    for seed in range(1, 60):
        bound = best_response("uniform", settings=replace(settings, seed=seed, deals=300, slow_deals=4))
        lucky, steady = (attempt.result for attempt in bound.attempts)
        assert lucky is not None
        assert steady is not None
        if lucky.mbb.mean > steady.mbb.mean and lucky.mbb.interval[0] < steady.mbb.interval[0]:
            assert bound.chosen == "rule_based"
            return
    pytest.fail("no seed distinguishes the two ways of choosing")


def test_the_bound_is_reported_as_zero_where_no_opponent_wins() -> None:
    text = format_bound(best_response("rule_based", settings=replace(SETTINGS, exploiters=("uniform", "call"))))
    assert "no opponent wins: the better bound is 0" in text


def test_an_opponent_that_fails_does_not_end_the_others_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(UniformPolicy):
        name = "silent"

        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            raise ValueError("I only act")

    def refuses(target: Policy, rules: Rules, settings: Settings) -> tuple[Policy, str]:
        raise ArchieError("not this one")

    monkeypatch.setitem(EXPLOITERS, "refuses", Exploiter(refuses))
    bound = best_response(Silent(), settings=replace(SETTINGS, exploiters=("lbr", "refuses", "rule_based")))
    local, refused, _ = bound.attempts
    assert local.result is None
    assert local.how.startswith("failed: lbr: act raised ValueError: I only act")
    assert refused.how == "failed: not this one"
    assert bound.chosen == "rule_based"
    assert "refuses failed: not this one" in format_bound(bound)
    with pytest.raises(ArchieError, match="silent: no opponent could be made: refuses failed: not this one"):
        best_response(Silent(), settings=replace(SETTINGS, exploiters=("refuses",)))


def test_a_target_that_hangs_fails_opponents_that_ask_it_outside_of_matches() -> None:
    released = threading.Event()

    class Hanging(UniformPolicy):
        name = "hanging"

        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            released.wait(60)
            return super().probabilities(observations, masks)

    settings = replace(SETTINGS, time_limit=0.3, exploiters=("lbr", "call"))
    bound = best_response(Hanging(), settings=settings)
    released.set()
    assert "hanging: probabilities gave no answer within 0.3 s" in bound.attempts[0].how
    assert bound.chosen == "call"


def test_a_learned_opponent_is_kept_and_plays_the_match_of_the_bound_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = replace(SETTINGS, budget=Budget(40_000), exploiters=("uniform", "ppo"))
    caplog.set_level("INFO", "evaluation")
    bound = best_response("call", "mini", settings, tmp_path / "bound")
    assert bound.chosen == "ppo"
    assert bound.mbb.significance > 4
    weights = load(f"ppo:{tmp_path / 'bound' / 'ppo.npz'}", "mini")
    assert play_match(weights, load("call", "mini"), 300, settings.seeds[2], "mini") == bound.result
    assert bound.replay is not None
    assert "ppo.npz call --deals 300 --seed 23 --rules mini" in bound.replay
    assert weights.meta["config"]["seed"] == settings.seeds[0]  # type: ignore[attr-defined]
    assert any("decisions" in line or "mbb/hand" in line for line in caplog.messages)


@pytest.mark.parametrize(("text", "given"), [("500", {"decisions": 500}), ("0.5s", {"seconds": 0.5})])
def test_the_budget_reaches_the_learner(text: str, given: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Learnt(UniformPolicy):
        def __init__(self) -> None:
            self.meta = {"decisions": 512}

    def learn(target: Policy, rules: Rules, **arguments: Any) -> Policy:
        asked.append({key: value for key, value in arguments.items() if key != "progress"})
        arguments["progress"](1.0, 512, 0.0)
        return Learnt()

    monkeypatch.setattr("training.ppo.best_response.train_best_response", learn)
    settings = replace(SETTINGS, budget=Budget.parse(text), exploiters=("ppo",))
    assert best_response("call", settings=settings).attempts[0].how.startswith("512 decisions in")
    assert asked == [given | {"seed": 21}]


def test_resuming_plays_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = best_response("call_draw", settings=SETTINGS)
    stop = {"after": 1}

    def play(*arguments: Any, **named: Any) -> Any:
        if stop["after"] == 0:
            raise KeyboardInterrupt
        stop["after"] -= 1
        return play_match(*arguments, **named)

    monkeypatch.setattr(module, "play_match", play)
    with pytest.raises(KeyboardInterrupt):
        best_response("call_draw", settings=SETTINGS, folder=tmp_path)
    with pytest.raises(ArchieError, match="holds 1 result; resume to continue from there"):
        best_response("call_draw", settings=SETTINGS, folder=tmp_path)
    stop["after"] = 2  # the second attempt and the bound
    assert _same(best_response("call_draw", settings=SETTINGS, folder=tmp_path, resume=True), whole)
    stop["after"] = 0
    assert _same(best_response("call_draw", settings=SETTINGS, folder=tmp_path, resume=True), whole)
    with pytest.raises(ArchieError, match=r"call\.attempt\.json: its manifest differs: settings.seed 7 is now 8"):
        best_response("call_draw", settings=replace(SETTINGS, seed=8), folder=tmp_path, resume=True)
    stop["after"] = 1  # one opponent more, who is not chosen
    more = replace(SETTINGS, exploiters=(*SETTINGS.exploiters, "uniform"))
    assert best_response("call_draw", settings=more, folder=tmp_path, resume=True).result == whole.result


def test_a_bound_of_other_weights_is_not_taken_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was reported of an opponent that has been learnt anew since, or of a file that has changed, is not kept."""
    budget = {"seed": 1}

    def learns(target: Policy, rules: Rules, settings: Settings) -> tuple[Policy, str]:
        return load("raise_draw" if budget["seed"] == 1 else "rule_based", rules), "in some seconds"

    monkeypatch.setitem(EXPLOITERS, "learns", Exploiter(learns))
    settings = replace(SETTINGS, exploiters=("learns",))
    first = best_response("call", settings=settings, folder=tmp_path)
    budget["seed"] = 2
    assert best_response("call", settings=settings, folder=tmp_path, resume=True).result == first.result
    (tmp_path / "learns.attempt.json").unlink()
    with pytest.raises(ArchieError, match="holds 1 result;"):
        best_response("call", settings=settings, folder=tmp_path)
    again = best_response("call", settings=settings, folder=tmp_path, resume=True)
    assert again.result == play_match(load("rule_based"), load("call"), 300, SETTINGS.seeds[2])
    assert again.result != first.result


def test_an_opponent_from_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    files = [tmp_path / "a-b.npz", tmp_path / "a" / "b.npz"]
    for seed, file in enumerate(files):
        train_best_response(load("call", "mini"), "mini", decisions=1, seed=seed).save(file)
    settings = replace(SETTINGS, exploiters=tuple(f"ppo:{file}" for file in files))
    bound = best_response("call", "mini", settings, tmp_path / "bound")
    assert bound.attempts[0].result != bound.attempts[1].result
    assert len(list((tmp_path / "bound").glob("*.attempt.json"))) == 2  # similar names get different files
    assert bound.replay is not None
    assert bound.replay.startswith(f"python -m evaluation.duplicate {bound.chosen} call --deals 300 --seed 23")
    files[1].write_bytes(files[0].read_bytes())
    with pytest.raises(ArchieError, match=r"attempt of another ppo:.*b\.npz, whose weights have changed since"):
        best_response("call", "mini", settings, tmp_path / "bound", resume=True)


def test_the_command_that_plays_a_bound_again_is_complete() -> None:
    settings = replace(SETTINGS, chunk=100, time_limit=30.0)
    replay = best_response("call_draw", "mini", settings).replay
    assert replay is not None
    assert replay.endswith("rule_based call_draw --deals 300 --seed 23 --rules mini --chunk 100 --time-limit 30")
    assert best_response(load("call_draw", "mini"), "mini", SETTINGS).replay is None  # it has no name to load it by
    other = replace(Rules.preset("mini"), draw_order="sequential")
    assert best_response("call_draw", other, SETTINGS).replay is None


def test_the_cfr_responder_takes_no_part_where_rules_have_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lbr", "ppo"):
        monkeypatch.delitem(EXPLOITERS, name)
    names = [attempt.name for attempt in best_response("call", "barge", replace(SETTINGS, exploiters=())).attempts]
    assert names == list(SCRIPTED)


def test_a_target_that_raises_fails_opponents_that_learn_from_it() -> None:
    class Broken(UniformPolicy):
        name = "broken"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            raise ZeroDivisionError("a bug of its own")

    bound = best_response(Broken(), "mini", replace(SETTINGS, exploiters=("ppo", "call")))
    assert bound.attempts[0].how.startswith("failed: ZeroDivisionError: a bug of its own (test_best_response.py:")
    assert bound.chosen == "call"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deals": 1}, "deals 1: expected a whole number of at least 2"),
        ({"deals": 50.5}, "deals 50.5: expected a whole number"),
        ({"seed": -1}, "seed -1"),
        ({"particles": 0}, "particles 0"),
        ({"particles": 10**11}, "particles 100000000000: expected at most 1,000,000"),
        ({"chunk": 10**11}, "chunk 100000000000: expected at most 1,000,000"),
        ({"time_limit": -1.0}, "time limit -1.0: expected more than 0 seconds"),
        ({"time_limit": float("nan")}, "time limit nan"),
    ],
)
def test_invalid_settings_are_refused_before_the_first_attempt(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ArchieError, match=words):
        best_response("call", settings=replace(SETTINGS, **changes))


@pytest.mark.parametrize("both", [(None, None), (5, 5.0)])
def test_a_budget_is_of_one_kind(both: tuple[int | None, float | None]) -> None:
    with pytest.raises(ArchieError, match="expected one of the two"):
        Budget(*both)


def _same(one: Bound, other: Bound) -> bool:
    return one.attempts == other.attempts and one.result == other.result and one.chosen == other.chosen


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["call", "--rules", "mini", "--deals", "200", "--exploiters", "uniform", "rule_based", "--seed", "3"]
    assert main([*command, "--out", str(tmp_path / "bound")]) == 0
    out = capsys.readouterr().out
    assert "lower bound on the winnings of a best response: +" in out
    assert "by rule_based, chosen in the table, on 200 fresh duplicate deals" in out
    kept = json.loads((tmp_path / "bound" / "bound.json").read_text())
    assert kept["lower_bound"]["interval_95"][0] < kept["lower_bound"]["mbb_per_hand"]
    assert kept["seeds"] == {"learn": 9, "choose": 10, "report": 11}
    for wrong, words in (
        (["call", "--budget", "soon"], "budget 'soon': expected"),
        (["nobody"], "policy 'nobody': expected one of"),
        (["human"], "agent human"),
        (["call", "--exploiters", "nobody"], "policy 'nobody'"),
        (["call", "--exploiters", "call", "call"], "exploiters call: named twice"),
        (["call", "--deals", "1"], "deals 1: expected a whole number of at least 2"),
        (["call", "--resume"], "--resume: expected --out"),
    ):
        assert main(wrong) == 2
        assert words in capsys.readouterr().err


def test_bots_in_any_folder_are_targets_and_opponents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bound_bots.py").write_text("from archie_env.policy import UniformPolicy as Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    bound = best_response("bound_bots:Mine", "mini", replace(SETTINGS, exploiters=("bound_bots:Mine", "rule_based")))
    assert bound.target == "bound_bots:Mine"
    assert [attempt.name for attempt in bound.attempts if attempt.result] == ["bound_bots:Mine", "rule_based"]
    assert bound.replay is not None
    assert "rule_based bound_bots:Mine --deals 300" in bound.replay


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(ArchieError, match=str(tmp_path)):
        best_response("call", "mini", SETTINGS, tmp_path)


def test_the_faults_of_a_target_are_reported() -> None:
    class Cheat(UniformPolicy):
        name = "cheat"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), 99)

    text = format_bound(best_response(Cheat(), settings=SETTINGS))
    assert "FAULTS: cheat forfeited 600 of 600 hands: illegal action 600" in text


def test_the_cfr_responder_answers_tables_and_imitations_of_others(tmp_path: Path) -> None:
    detail = AbstractionConfig(cards="exact", pots=((3,),))
    config = CFRConfig(rules="mini", stages=(Stage(abstraction=detail, traversals=40_000),), report=Report(agents=()))
    cfr.train(config, tmp_path / "target", quiet=True)
    settings = Settings(
        Budget(40_000), 2_000, seed=1, exploiters=("cfr", "call"), checkpoint=str(tmp_path / "target" / cfr.CHECKPOINT)
    )
    bound = best_response(f"cfr:{tmp_path / 'target' / cfr.STRATEGY}", "mini", settings, tmp_path / "bound")
    made = bound.attempts[0]
    assert made.result is not None
    assert made.how.startswith("120,000 traversals from its regrets")
    assert bound.chosen == "cfr"
    assert bound.result.mbb.mean > 0
    settings = replace(settings, exploiters=("cfr", "raise"))
    refused = best_response("call", "mini", settings)
    assert refused.attempts[0].result is None
    assert "call is no CFR strategy, so it has no regrets" in refused.attempts[0].how
    imitated = best_response("call", "mini", replace(settings, checkpoint=None))
    assert imitated.attempts[0].how.startswith("120,000 traversals against an empirical policy")
    assert imitated.chosen == "cfr"
