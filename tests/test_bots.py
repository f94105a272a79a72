"""Bots in processes of their own: the protocol, the clock, and what is left when they end."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from agents.process import Bot, BotPolicy, wire
from agents.process._kernels import read_answers
from archie_env.actions import CALL, DISCARD, STAND_PAT
from archie_env.cards import format_cards
from archie_env.errors import (
    DISQUALIFIED,
    TIME_LIMIT,
    ArchieError,
)
from archie_env.observation import decode, fields
from archie_env.policy import Actions, Masks, Observations, Policy
from archie_env.rules import PRESETS, Rules
from evaluation.aivat.match import play_adjusted
from evaluation.aivat.value_function import learn
from evaluation.best_response.bound import best_response
from evaluation.best_response.exploiters import Budget, Settings
from evaluation.duplicate.command import main
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.duplicate.report import format_match
from evaluation.exploitability.measure import measure
from evaluation.results import weights_hash
from evaluation.tournament.round_robin import Conditions
from evaluation.tournament.round_robin import play as play_tournament
from tests.bots import CALLER, ODD, PATIENT, Passive, decisions, gone, odd, passive_match, play

CUSTOM = {
    "high stakes": Rules(stakes=((500, 1000), (500, 500, 1000, 1000))),  # type: ignore[arg-type]
    "two cards a draw": Rules(max_discard=2),
    "no draws": Rules(draws=0, max_discard=0, stakes=((1, 2), (2,))),  # type: ignore[arg-type]
    "one card": Rules(hand_size=1, max_discard=1, draws=1, stakes=((1, 2), (2, 4))),  # type: ignore[arg-type]
}
EVERY_RULES: dict[str, Rules] = {**PRESETS, **CUSTOM}


def written(row: NDArray[np.int8], mask: NDArray[np.int8], rules: Rules, i: int, left: int, u: int) -> str:
    """A message as `decode` and plain Python make it."""
    seen = decode(row, rules)
    now, drawing = divmod(seen.phase, 2)
    values: dict[str, Any] = {"i": i, "left": left, "round": now + 1, "draw": drawing, "dealer": int(seen.dealer)}
    values |= {"pot": seen.pot, "owe": seen.owed}
    legal = np.flatnonzero(mask).tolist()
    if drawing:
        values["most"] = max((action - DISCARD).bit_count() for action in legal)
    else:
        values["legal"] = legal
    values["held"] = [format_cards(hand) for hand in seen.held[: now + 1]]
    values |= {"drew": seen.own_draws, "other": seen.other_draws}
    values["bets"] = ["".join("kr"[a - 1] for a in actions) for actions in (*seen.wagers, *(4 * [()]))[: now + 1]]
    return json.dumps(values, separators=(",", ":")).removesuffix("}") + f',"u":0.{u:09}}}'


@pytest.mark.parametrize("rules", EVERY_RULES.values(), ids=EVERY_RULES)
def test_a_message_holds_the_whole_row_and_nothing_else(rules: Rules) -> None:
    rows, masks = decisions(rules)
    chances = np.random.default_rng(1).integers(0, wire.BILLION, len(rows))
    lines = wire.messages(rows, masks, rules, 7, chances).decode().splitlines()
    assert len(lines) == len(rows)
    for k, line in enumerate(lines):
        assert line == written(rows[k], masks[k], rules, 7 + k, len(rows) - 1 - k, int(chances[k]))
        row, mask = wire.row_of(json.loads(line), rules)
        assert np.array_equal(row, rows[k])
        assert np.array_equal(mask, masks[k])


def test_rows_that_no_engine_wrote_fit_into_their_lines() -> None:
    rules = PRESETS["archie"]
    rows, masks = decisions(rules)
    for block in fields(rules):
        if block.name not in ("held", "phase"):
            rows[:, block.start : block.start + block.size] = 127
    lines = wire.messages(np.ascontiguousarray(rows), masks, rules, 10**18, np.full(len(rows), wire.BILLION - 1))
    assert len(lines) < len(rows) * 340
    assert all(json.loads(line)["drew"] == [0, 0, 0] for line in lines.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "", "{", '{"i":5,"a":1}', '{"i":5,"a":}\n', '{"i":,"a":1}\n', '{"i":5, "a":1}\n', '{"i":5,"a":1} \n', '{"a":1,"i":5}\n',
        '{"i":5,"a":1}\r\n',
        '{"i":-5,"a":1}\n', '{"i":5,"a":1.0}\n', '{"i":5,"a":"pat"}\n', '{"i":9,"a":1}\n', '{"i":4,"a":1}\n',
        '{"i":9999999999999999999999,"a":1}\n', '{"i":5,"a":99999999999999999999}\n', '{"i":18446744073709551621,"a":1}\n',
        "x" * 40 + "\n", '{"i":5,"b":1}\n', '{"i":5,"a":1,"u":0}\n',
    ],
)  # fmt: skip
def test_the_compiled_reader_leaves_what_is_not_canonical(line: str) -> None:
    actions, answered = np.full(4, -1), np.zeros(4, np.bool_)
    good = b'{"i":6,"a":34}\n{"i":8,"a":0}\n'
    data = np.frombuffer(good + line.encode(), np.uint8)
    assert read_answers(data, 0, 5, actions, answered, 4) == (len(good), 2)
    assert actions.tolist() == [-1, 34, -1, 0]
    assert answered.tolist() == [False, True, False, True]


def test_the_compiled_reader_stops_after_the_answers_that_are_wanted() -> None:
    data = np.frombuffer(b'{"i":0,"a":1}\n{"i":1,"a":2}\n', np.uint8)
    assert read_answers(data, 0, 0, np.zeros(2, np.int64), np.zeros(2, np.bool_), 1) == (14, 1)
    assert read_answers(data, 14, 0, np.zeros(2, np.int64), np.zeros(2, np.bool_), 2) == (28, 1)


@pytest.mark.parametrize("message", [{}, {"held": [5]}, {"held": ["2c"], "drew": [9]}, {"held": ["xx"]}, {"held": "2c"}])
def test_what_is_no_message_makes_no_row(message: dict[str, object]) -> None:
    with pytest.raises(ArchieError, match=r"^message \{.*: expected one of rules 'archie'|card"):
        wire.row_of(message, "archie")


@pytest.mark.parametrize("oddity", ["", "by words", "certain", "sevens", "single", "debugs", "complains", "leaves a child"])
def test_what_is_allowed_changes_nothing(oddity: str) -> None:
    result = play(odd(oddity))
    assert result.totals == passive_match().totals
    assert not result.faults[0].total
    assert bool(result.faults[0].remarks) == (oddity == "debugs")
    if oddity == "debugs":
        assert re.search(r"printed [\d,]+ lines that are no answers, the first: thinking about 0$", result.faults[0].remarks[0])
        assert result.faults[0].remarks[0] in format_match(result)
        assert MatchResult.from_dict(result.to_dict()).faults[0].remarks == result.faults[0].remarks


def test_a_bot_that_hangs_is_killed_with_its_group_and_disqualified(tmp_path: Path) -> None:
    notes = tmp_path / "numbers"
    result = play(odd("is deaf", notes, options="--start 600 --each 0 --bank 0.3 "))
    counts = result.faults[0].counts
    assert set(counts) == {TIME_LIMIT, DISQUALIFIED}
    assert sum(counts.values()) == 80
    assert re.search(
        r"no answer within 0\.3 s, 0 of \d+ answered: are its answers flushed\? in deal", result.faults[0].reports[0]
    )
    numbers = list(map(int, notes.read_text().split()))
    assert len(numbers) == 2  # the bot and its child, and it was not started again
    assert gone(numbers)


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    notes = tmp_path / "numbers"
    policy = load(odd("leaves a child", notes))
    play_match(policy, CALLER, 2)  # closes it
    assert gone(list(map(int, notes.read_text().split())))
    play_match(policy, CALLER, 2)  # starts it again
    numbers = list(map(int, notes.read_text().split()))
    assert len(numbers) == 4
    policy = load(odd("leaves a child", notes))
    del policy
    assert gone(list(map(int, notes.read_text().split())))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_match_that_was_killed_goes_on_to_the_same_totals_and_leaves_no_bot(end: signal.Signals, tmp_path: Path) -> None:
    notes, file = tmp_path / "numbers", tmp_path / "match.json"
    match = [odd("by chance", notes), "call_draw", "--deals", "400", "--chunk", "20"]
    arguments = [*match, "--json", str(file), "--write-every", "0"]
    host = subprocess.Popen(
        [sys.executable, "-m", "evaluation.duplicate", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not file.exists() and host.poll() is None:
        time.sleep(0.01)
    host.send_signal(end)
    assert host.wait(60) in (0, 130, -9)
    assert gone(list(map(int, notes.read_text().split())))
    assert main([*arguments, "--resume"]) == 0
    ended = MatchResult.from_dict(json.loads(file.read_text()))
    assert ended.totals == play_match(load(odd("by chance")), CALLER, 400, chunk=20).totals


@pytest.mark.parametrize("oddity", ["hangs", "is deaf"])
def test_a_bot_ends_with_its_host_also_where_it_does_not_listen(oddity: str, tmp_path: Path) -> None:
    notes = tmp_path / "numbers"
    program = (
        f"import time; from agents import load; bot = load({odd(oddity, notes)!r}); print('up', flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "up\n"
        host.kill()
    assert gone(list(map(int, notes.read_text().split())))


def test_totals_depend_on_no_width_of_a_batch() -> None:
    class ByChance(Passive):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            u = np.floor(rng.random(len(masks)) * wire.BILLION) / wire.BILLION
            choices = [[3, 4, 34] if mask[STAND_PAT] else np.flatnonzero(mask).tolist() for mask in masks]
            return np.array([legal[int(x * len(legal))] for legal, x in zip(choices, u, strict=True)])

    expected = play_match(ByChance(), CALLER, 100, seed=3)
    for width in (4096, 7, 1):
        policy = load(odd("by chance"))
        assert isinstance(policy, BotPolicy)
        policy.bot.batch = width
        assert play_match(policy, CALLER, 100, seed=3).totals == expected.totals


def test_the_rule_based_player_behind_a_pipe_plays_as_it_does_here() -> None:
    cache = f"NUMBA_CACHE_DIR={os.environ.get('NUMBA_CACHE_DIR', '')}"  # compiled kernels; the environment of a bot is small
    behind = load(f"bot:{PATIENT}{shlex.join(['env', cache, sys.executable, '-m', 'agents.process', 'rule_based'])}")
    result = play_match(behind, CALLER, 150, seed=4)
    assert result.totals == play_match(load("rule_based"), CALLER, 150, seed=4).totals
    value = learn(CALLER, CALLER, 20, seed=5)
    adjusted = play_adjusted(behind, CALLER, 20, seed=4, value=value, samples=4)
    assert adjusted.known[0]
    here = play_adjusted(load("rule_based"), CALLER, 20, seed=4, value=value, samples=4)
    assert np.array_equal(adjusted.adjusted, here.adjusted)
    behind.close()  # type: ignore[attr-defined]


def test_full_pipes_stop_neither_side() -> None:
    rows, masks = decisions(PRESETS["archie"], 4096)
    for oddity in ("", "debugs"):  # reads everything first; answers each line at once, with 70 kB more
        policy = load(odd(oddity, options="--start 600 --no-clock "))
        n = 4096 if not oddity else 60
        actions = policy.act(rows[:n], masks[:n], np.random.default_rng(1))
        assert np.array_equal(actions, np.where(masks[:n, CALL] != 0, CALL, STAND_PAT))
        policy.close()  # type: ignore[attr-defined]


def test_the_clock_gives_time_for_each_decision_and_takes_what_was_used() -> None:
    times = iter(range(0, 100000, 200))
    bot = Bot(odd("", options="--start 600 --each 10 --bank 1000 ")[4:], now=lambda: float(next(times)))
    rows, masks = decisions(PRESETS["archie"], 60)
    left = [bot.bank]
    for n in (5, 5, 60):
        bot.ask(rows[:n], masks[:n], np.zeros(n, np.int64), False)
        left.append(bot.bank)
    assert left == [1000, 800, 650, 800]  # each call takes 200 seconds; the bank never holds more than 1000
    bot.close()
    assert bot.bank == 1000
    assert bot.ask(rows[:0], masks[:0], np.zeros(0, np.int64), False).failures == {}


def test_a_bot_is_a_player_wherever_players_are_named(tmp_path: Path) -> None:
    name = odd("certain")
    env = gymnasium.make("Archie-v0", opponent=f"agents:{name}")
    env.reset(seed=1)
    env.step(1)
    env.close()
    table = play_tournament([name, "call_draw"], Conditions(20, 1, "archie"), tmp_path)
    assert table.table.names == (name, "call_draw")
    assert not table.faults
    tiny = Rules(
        hand_size=1, draws=0, max_discard=0, ranks="A23", suits="cdh", high_qualifier=None,
        stakes=((1, 2), (2,)),  # type: ignore[arg-type]
        low_qualifier="3",
    )  # fmt: skip
    assert measure(load(name, tiny), tiny).evaluation == measure(load("call", tiny), tiny).evaluation
    with pytest.raises(ArchieError, match="gives no probabilities"):
        measure(load(odd(""), tiny), tiny)
    settings = Settings(Budget(1), 60, 4, 4, exploiters=("call", "rule_based"))
    assert best_response(name, settings=settings).mbb == best_response("call", settings=settings).mbb


def test_the_manifest_holds_the_hash_of_the_files_of_a_bot(tmp_path: Path) -> None:
    script, weights, log = tmp_path / "bot.py", tmp_path / "weights", tmp_path / "log"
    name = f"bot:--hash {weights} {sys.executable} {script} oddity {log}"

    def write(path: Path, text: str) -> str | None:
        path.write_text(text)
        return weights_hash(name)

    script.write_text(ODD.read_text())
    found = write(weights, "1")
    assert found is not None
    assert re.fullmatch("[0-9a-f]{64}", found)
    assert weights_hash(name, load(name)) == f"{found} odd"
    assert write(log, "more") == found
    assert write(weights, "2") != found
    assert write(weights, "1") == found
    assert write(script, "") != found
    weights.unlink()
    with pytest.raises(ArchieError, match="No such file or directory: "):
        weights_hash(name)


def test_a_bot_sees_little_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "shown")
    with pytest.raises(ArchieError) as caught:
        load("bot:sh -c 'env >&2; exit 1'")
    assert "SECRET" not in str(caught.value)


def test_a_copy_of_a_bot_is_a_process_of_its_own(tmp_path: Path) -> None:
    notes = tmp_path / "numbers"
    policy = load(odd("by chance", notes))
    expected = play_match(policy, CALLER, 20, seed=6).totals
    for copied in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert play_match(copied, CALLER, 20, seed=6).totals == expected
    assert len(set(notes.read_text().split())) == 3


def test_policies_agree_on_the_protocol() -> None:
    for policy in (load(odd("")), load(odd("certain"))):
        assert isinstance(policy, Policy)
        assert policy.name.startswith("bot:")
