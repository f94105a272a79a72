"""Bots that fail: every fault is filed under its kind and costs the hands that it happens in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agents import load
from agents.process import Bot
from archie_env.errors import (
    DISQUALIFIED,
    EXCEPTION,
    ILLEGAL,
    MALFORMED,
    PROBABILITIES,
    TIME_LIMIT,
    ArchieError,
    BotError,
    IllegalActionError,
)
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from archie_env.rules import PRESETS
from evaluation.duplicate.match import play_match
from evaluation.duplicate.report import format_match
from tests.bots import CALLER, Passive, decisions, deuce_match, gone, odd, play


@pytest.mark.parametrize(
    ("oddity", "kind", "words"),
    [
        ("another action", ILLEGAL, "action 77 is not legal"),
        ("a huge action", ILLEGAL, "action 10{30} is not legal"),
        ("a card of the other", ILLEGAL, "discard 2[cdhs]: the hand is"),
        ("words", MALFORMED, """'{"i": \\d+, "a": "dance"}': action 'dance': expected fold, check"""),
        ("null", MALFORMED, "action None: expected a number or words"),
        ("a float", MALFORMED, r"action 1\.0: expected a number or words"),
        ("true", MALFORMED, "action True: expected a number or words"),
        ("a list of actions", MALFORMED, r"action \[1\]: expected a number or words"),
        ("half", PROBABILITIES, r"an illegal action has a probability|the probabilities sum to 0\.5"),
        ("negative", PROBABILITIES, "a probability is negative"),
        ("infinite", PROBABILITIES, "a probability is infinite"),
        ("NaN", PROBABILITIES, "NaN probabilities"),
        ("an illegal chance", PROBABILITIES, r"an illegal action has a probability \(1: 0\.5, 3: 0\.5\)"),
        ("action 99", PROBABILITIES, "an illegal action has a probability"),
        ("words of chance", MALFORMED, "p '1' 'much': expected numbers by action"),
        ("no numbers", MALFORMED, "p 'call' 1: expected numbers by action"),
        ("no table", MALFORMED, "expected probabilities by action"),
        ("another index", MALFORMED, r"answers 10000\d\d, but was asked \d+"),
        ("no index", MALFORMED, "answers None, but was asked"),
        ("brackets", MALFORMED, "brackets nested too deeply|answers .*, but was asked"),
        ("no JSON", MALFORMED, r"'\{what\?\}': JSONDecodeError: Expecting property name .*: expected an answer"),
        ("a key twice", MALFORMED, "a key stands there twice"),
        ("a long line", MALFORMED, "a line of more than 64 KiB"),
    ],
)
def test_a_fault_costs_the_hands_it_happens_in(oddity: str, kind: str, words: str) -> None:
    result = play(odd(f"{oddity} at the deuce"))
    assert result.faults[0].counts == {kind: deuce_match().faults[0].total}
    assert result.totals == deuce_match().totals
    report = result.faults[0].reports[0]
    assert re.search(words, report), report
    assert re.search(r" in deal \d+ as (dealer|big blind), round 1, holding ", report)
    assert report.isprintable()
    assert "FAULTS: bot:" in format_match(result)


def test_a_time_limit_for_each_call_ends_the_process_too(tmp_path: Path) -> None:
    notes = tmp_path / "numbers"
    result = play(odd("is deaf", notes, options="--start 600 --no-clock "), time_limit=(0.5, None))
    assert set(result.faults[0].counts) == {TIME_LIMIT, DISQUALIFIED}
    assert gone(list(map(int, notes.read_text().split())))


def test_a_second_answer_costs_its_hand_or_that_of_the_next_answer() -> None:
    result = play(odd("twice at the deuce"))
    assert set(result.faults[0].counts) == {MALFORMED}
    assert result.faults[0].total >= deuce_match().faults[0].total
    assert re.search(r"answers \d+ twice|answers \d+, but was asked", result.faults[0].reports[0])
    always = play(odd("twice"), 8)
    assert always.faults[0].counts == {MALFORMED: 16}


@pytest.mark.parametrize(("oddity", "last_words"), [("dies", r"out of \x1b[2Jaces"), ("aborts", "SIGABRT")])
def test_a_bot_that_dies_on_a_hand_is_started_again_and_loses_that_hand(oddity: str, last_words: str) -> None:
    expected = play_match(Passive(lambda held: "As" in held[-1] and "Ac" in held[-1]), CALLER, 60, seed=2, chunk=60)
    assert expected.faults[0].total in range(1, 9)  # twice as many restarts are allowed
    result = play_match(load(odd(f"{oddity} at aces")), CALLER, 60, seed=2, chunk=60)
    assert result.totals == expected.totals
    assert result.faults[0].counts == {EXCEPTION: expected.faults[0].total}
    assert "the process " in result.faults[0].reports[0]
    assert last_words in result.faults[0].reports[0]
    assert ("ended with status 3" if oddity == "dies" else "was ended by SIGABRT") in result.faults[0].reports[0]
    assert re.search(r"ended \d+ times and was started again, at last: the process ", result.faults[0].remarks[0])


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("read -r line; echo no >&2; exit 3", EXCEPTION, "the process ended with status 3; its last words: no"),
        ("exec >&-; sleep 1000", EXCEPTION, "the process closed its standard output"),
        ("yes", MALFORMED, "more than 100 lines that are no answers, the first 'y'"),
        ("head -c 100000000 /dev/zero", MALFORMED, "more than 100 lines that are no answers"),
    ],
)
def test_a_bot_that_always_ends_is_started_again_so_often_and_then_disqualified(
    body: str, kind: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.process.policy.RESTARTS", 3)
    if "closed" in words:  # it does not end by itself
        monkeypatch.setattr("agents.process.child._EXIT", 0.1)
    monkeypatch.setattr("agents.process.child.MOST_NOISE", 100)
    bot = "bot:--no-clock " + shlex.join(["sh", "-c", f"""read -r line; echo '{{"archie":1}}'; {body}"""])
    result = play(bot, 8)
    counts = result.faults[0].counts
    assert set(counts) == {DISQUALIFIED}
    assert counts[DISQUALIFIED] == 16
    assert "ended 4 times, expected at most 3; at last " in result.faults[0].reports[0]
    assert words in result.faults[0].reports[0]
    assert result.chips.mean == -1.5  # the blinds
    with pytest.raises(BotError, match="ended 4 times") as caught:
        play(bot, 8, strict=True)
    assert caught.value.kind == DISQUALIFIED
    monkeypatch.setattr("agents.process.policy.RESTARTS", 1)
    later = play_match(load(bot), CALLER, 4, seed=1, chunk=1).faults[0].reports
    assert any("ended 2 times" in report for report in later)
    assert any("disqualified before" in report for report in later)
    assert not any("running out of time" in report for report in later)
    single = Bot(bot[4:])
    rows, masks = decisions(PRESETS["archie"], 60)
    assert single.ask(rows[:1], masks[:1], np.zeros(1, np.int64), False).failures[0][0] == kind
    single.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bot:", "nothing after the colon"),
        ("bot: ", "expected a command, such as"),
        ("bot:no-such-program --deep", "'no-such-program' is no program: expected an executable file, or a name in PATH"),
        ("bot:/etc/passwd", "'/etc/passwd' is no program"),
        ("bot:'x", "No closing quotation: expected a command line"),
        ("bot:--fast ./x", "--fast: expected --start S, --each S, --bank S, --no-clock or --hash FILE, and a command"),
        ("bot:--bank much ./x", "--bank 'much': expected seconds"),
        ("bot:--bank nan ./x", "--bank 'nan': expected seconds"),
        ("bot:true", "the process ended with status 0: expected an answer to the first line"),
        (odd("ends at once"), "ended with status 1; its last words: no weights here: expected an answer to the first line"),
        (odd("says nothing", options="--start 0.2 "), "no answer to the first line within 0.2 s"),
        (odd("another version"), "version 2: expected 'archie':1"),
        (odd("no version"), "version None: expected 'archie':1"),
        (odd("a list"), "JSONDecodeError"),
        (odd("brackets at first"), "expected {'archie':1"),
        (odd("a long name"), "expected at most 40 printable letters"),
        (odd("half a row"), "batch 0.5: expected a whole number of at least 1"),
    ],
)
def test_a_bot_that_can_not_play_is_refused_before_the_match(name: str, words: str) -> None:
    with pytest.raises(ArchieError) as caught:
        load(name)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


class Tells(UniformPolicy):
    """A policy in this process that names its own faults."""

    name = "tells"

    def __init__(self, error: Callable[[int], BotError]) -> None:
        self.error = error

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        raise self.error(len(masks))


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (lambda n: BotError(MALFORMED, "no"), {MALFORMED}),
        (lambda n: BotError(TIME_LIMIT, "no"), {TIME_LIMIT, DISQUALIFIED}),
        (lambda n: BotError("nonsense", "no"), {EXCEPTION}),
        (lambda n: BotError(ILLEGAL, "no", rows={0: (ILLEGAL, "no")}, answer=np.full(n, 99)), {ILLEGAL}),
        (lambda n: BotError(ILLEGAL, "no", rows={n: (ILLEGAL, "no")}, answer=np.full(n, 1)), {EXCEPTION}),
        (lambda n: BotError(ILLEGAL, "no", rows={0: ("nonsense", "no")}, answer=np.full(n, 1)), {EXCEPTION}),
        (lambda n: BotError(ILLEGAL, "no", rows={0: (ILLEGAL, "no")}), {EXCEPTION}),
        (lambda n: BotError(ILLEGAL, "no", rows=5, answer=np.full(n, 1)), {EXCEPTION}),  # type: ignore[arg-type]
    ],
)
def test_any_policy_may_name_its_faults(error: Callable[[int], BotError], kinds: set[str]) -> None:
    result = play_match(Tells(error), CALLER, 10, chunk=5)
    assert set(result.faults[0].counts) == kinds
    assert result.faults[0].total == 20


def test_strict_matches_name_the_row_of_a_bot() -> None:
    with pytest.raises(IllegalActionError, match=r"action 77 is not legal in deal \d+ as dealer, round 1, holding"):
        play(odd("another action"), strict=True)
