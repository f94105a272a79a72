"""Counterfactual regret minimisation: the abstraction, the trainer, the strategies it leaves, and opponents for them."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import load
from agents._cfr_kernels import CLASSES, CLOSED, FOLDED, NO_OPTION, PATTERNS
from agents.abstraction import Abstraction, classify
from agents.archive import digest, read_archive, write_archive
from agents.cfr import CFRPolicy
from agents.registry import WEIGHTS
from archie_env._core.state import DISCARD, FOLD
from archie_env._core.tables import high_classes
from archie_env.batch import Batch, Hands
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError, ConfigError
from archie_env.files import locked
from archie_env.game import Game
from archie_env.hands import HandValues
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, Policy, UniformPolicy, sample
from archie_env.rules import PRESETS, Rules, Stakes
from archie_env.terminal.shell import terminable
from evaluation.duplicate.match import play_match
from evaluation.exploitability.measure import measure
from tests import tampering
from training.cfr import best_response
from training.cfr import trainer as cfr
from training.cfr._kernels import TRAVERSAL
from training.cfr._table_kernels import AVERAGES, REGRETS, quantise
from training.cfr.abstraction import AbstractionConfig, build, discards, hands
from training.cfr.config import Config, Report, Stage
from training.cfr.empirical import EmpiricalPolicy
from training.cfr.tables import Tables, strategy_tables
from training.monitoring import match

ARCHIE = Rules()
WHOLE = AbstractionConfig(cards="exact", pots=((2, 3, 4),), own_draws=3, other_draws=3)
QUIET = Report(agents=())


def hand(text: str) -> tuple[int, ...]:
    return tuple(sorted(parse_cards(text)))


def class_of(text: str) -> int:
    return int(classify(np.array([hand(text)]), ARCHIE)[0])


def kept(text: str) -> set[str]:
    """What the discards of a hand keep, as sorted text."""
    cards = hand(text)
    slots = build(ARCHIE, AbstractionConfig()).parts["slots"][class_of(text)]
    names = dict(zip(parse_cards(text), text.split(), strict=True))
    return {
        " ".join(sorted(names[c] for i, c in enumerate(cards) if not int(slot) >> i & 1)) for slot in slots if slot != NO_OPTION
    }


def trained(rules: str = "mini", detail: AbstractionConfig = WHOLE, traversals: int = 200_000, **changes: object) -> Config:
    return Config(rules=rules, stages=(Stage(abstraction=detail, traversals=traversals),), report=QUIET).model_copy(
        update=changes
    )


# -- hands


def test_a_class_is_the_ranks_and_whether_four_or_five_cards_are_of_a_suit() -> None:
    assert class_of("Ac 2d 3h 4s 8c") == class_of("Ad 2c 3s 4h 8d")
    assert class_of("Ac 2c 3c 4c 8d") != class_of("Ac 2c 3c 4d 8c")
    assert class_of("Ac 2c 3c 4c 8d") == class_of("Ah 2h 3h 4h 8s")
    assert class_of("Ac 2c 3c 4c 8c") % PATTERNS == PATTERNS - 1
    assert class_of("Ac 2c 3c 4d 8h") % PATTERNS == 0


def test_every_hand_that_can_be_dealt_has_a_class_with_its_value() -> None:
    rng = np.random.default_rng(1)
    dealt = np.sort(np.argsort(rng.random((20_000, 52)), axis=1)[:, :5], axis=1)
    known, values = hands(ARCHIE), HandValues(ARCHIE)
    for cards, number in zip(dealt[:2000].tolist(), classify(dealt[:2000], ARCHIE), strict=True):
        seen, (high, low) = known[int(number)], values.of(cards)
        assert [card >> 2 for card in cards] == list(seen.ranks)
        assert seen.low == low
        assert high_classes(5, True)[high - 1] == (seen.category, seen.order)
    assert set(classify(dealt, ARCHIE).tolist()) <= set(known)


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("Ac 2d 4h 7s Kc", {"2d 4h 7s Ac", "2d 4h Ac"}),  # four lows; three
        ("9c 9d 4h 7s Kc", {"9c 9d"}),
        ("9c 9d 4h 4s Kc", {"4h 4s 9c 9d", "9c 9d"}),
        ("9c Tc Jc 3c Kd", {"3c 9c Jc Tc"}),  # a flush draw
        ("9c Td Jc Qh 2d", {"9c Jc Qh Td"}),  # an open straight draw
        ("Kc Qd 9h Ts 9s", {"9h 9s"}),
    ],
)
def test_the_discards_of_a_hand_are_those_a_player_considers(text: str, some: set[str]) -> None:
    assert some <= kept(text)
    assert " ".join(sorted(text.split())) in kept(text)  # standing pat is always one


def test_discards_keep_to_the_limit_and_small_hands_may_throw_any_cards() -> None:
    for name, rules in PRESETS.items():
        for seen in hands(rules).values():
            slots = [slot for slot in discards(seen, rules.max_discard, True) if slot != NO_OPTION]
            assert slots[0] == 0
            assert len(slots) == len(set(slots))
            assert all(slot.bit_count() <= rules.max_discard for slot in slots)
            if name in ("mini", "midi"):
                assert sorted(slots) == list(range(2**rules.hand_size))


def test_finer_abstractions_distinguish_more() -> None:
    kinds = ("coarse", "medium", "fine", "exact")
    sizes = [
        build(ARCHIE, AbstractionConfig.from_values({"cards": cards}, "here")).record[0]["buckets"].tolist() for cards in kinds
    ]
    assert all(fewer[k] < more[k] for fewer, more in pairwise(sizes) for k in (0, 1))
    a = build(ARCHIE, AbstractionConfig())
    b = build(ARCHIE, AbstractionConfig(raisers=2, own_draws=1, other_draws=2))
    assert a.information_sets < b.information_sets


def test_classes_of_draws_distinguish_for_how_long_a_player_stood_pat() -> None:
    def classes(detail: int) -> dict[tuple[int, ...], int]:
        table = build(ARCHIE, AbstractionConfig(own_draws=detail)).parts["own"]
        codes = {draws: sum(n * 6**i for i, n in enumerate(draws)) for r in (1, 2, 3) for draws in product(range(6), repeat=r)}
        return {draws: int(table[len(draws), code]) for draws, code in codes.items()}

    all_classes = [classes(detail) for detail in range(4)]
    for coarse, fine in pairwise(all_classes):
        for r in (1, 2, 3):  # each level refines the one before
            seen: dict[int, set[int]] = {}
            for draws in product(range(6), repeat=r):
                seen.setdefault(fine[draws], set()).add(coarse[draws])
            assert all(len(found) == 1 for found in seen.values())
    for known in all_classes[1:3]:
        assert (
            len({known[draws] for draws in ((0, 0, 0), (1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 2, 0), (1, 1, 1), (1, 2, 1))}) == 7
        )
        assert known[2, 1, 0] == known[1, 1, 0] == known[0, 1, 0]
    assert all_classes[1][1, 2, 0] == all_classes[1][1, 3, 0]
    assert all_classes[2][1, 2, 0] != all_classes[2][1, 3, 0]


@pytest.mark.parametrize("name", ["early", "final", "slots", "pot", "own"])
def test_an_abstraction_of_wrong_arrays_is_refused(name: str) -> None:
    parts = dict(build(ARCHIE, AbstractionConfig()).parts)
    for wrong in (parts[name][:-1], parts[name].astype(np.float32), parts[name].astype(np.int64) - 1 - (name == "slots") * 300):
        with pytest.raises(ArchieError, match=name):
            Abstraction.of(ARCHIE, {**parts, name: wrong})
    with pytest.raises(ArchieError, match=f"{name} is missing"):
        Abstraction.of(ARCHIE, {k: v for k, v in parts.items() if k != name})


def test_rules_that_tables_can_t_hold_are_refused() -> None:
    for rules in (PRESETS["barge"], Rules(draws=0, stakes=Stakes((1, 2), (2,)))):
        with pytest.raises(ArchieError, match="expected simultaneous draws"):
            build(rules, AbstractionConfig())


# -- public state


@pytest.mark.parametrize(
    "rules",
    [
        *map(PRESETS.get, ("archie", "mini", "maxi")),
        Rules(raise_cap=1),
        Rules(raise_cap=6, stakes=Stakes((2, 2), (2, 2, 4, 6))),
    ],
)
def test_the_betting_of_a_round_is_that_of_the_engine(rules: Rules) -> None:
    """Nodes follow random hands that the engine plays: the seat to act, legal actions, chips paid, and the end of the round."""
    a, rng = build(rules, AbstractionConfig()).record[0], np.random.default_rng(1)
    for index in range(200):
        game = Game(rules, seed=2, index=index, dealer=0)
        node, kind, before = 0, 0, 0
        while not game.over:
            if game.drawing:
                game.apply(DISCARD)
                node, kind, before = 0, 1, min(game.paid)
                continue
            legal = game.legal_actions()
            assert a["actor"][kind, node] == game.to_act
            assert [k for k in range(3) if a["legal"][kind, node] >> k & 1] == list(legal)
            called = before + a["wagers"][kind, node] * a["bet"][game.round]  # by both, if this wager is called
            if kind == 0:
                called = a["blinds"][1] + (a["wagers"][kind, node] - 1) * a["bet"][0]
            assert max(game.paid) == called
            action = int(rng.choice([k for k in legal if k != FOLD or rng.random() < 0.2]))
            game.apply(action)
            following = a["next"][kind, node, action]
            if game.over and game.result.folded is not None:
                assert following == FOLDED
            elif game.over or game.drawing:
                assert following == CLOSED
                assert game.paid == (called, called)
            else:
                node = following


@pytest.mark.parametrize("rules", ["archie", "mini", "midi", "maxi"])
def test_two_rows_share_a_block_only_if_they_look_alike(rules: str) -> None:
    """Many random hands: the rows of a block are the same in everything that a block may not merge."""
    played = Rules.preset(rules)
    detail = AbstractionConfig(cards="coarse", pots=((2, 3, 4), (2, 3, 4), (2, 3, 4)), own_draws=3, other_draws=3, raisers=3)
    a = build(played, detail)
    bets = np.zeros((a.bet_blocks, a.width), np.uint8)
    draws = np.zeros((a.draw_blocks, 8), np.uint8)
    policy = CFRPolicy(a, bets, draws)
    batch = Batch(400, rules=played, seed=3)
    seen: dict[tuple[object, ...], tuple[object, ...]] = {}
    for _ in range(30):
        places = policy.index(batch.observations, batch.masks)
        for row, mask, place in zip(batch.observations, batch.masks, places, strict=True):
            what, drawing = decode(row, played), bool(mask[3])
            betting_now = () if drawing else (what.wagers[what.phase // 2])
            key = tuple(place[:3].tolist())
            told = what.phase, what.dealer, what.own_draws, what.other_draws, drawing, betting_now
            assert seen.setdefault(key, told) == told
        batch.step(batch.sample_actions())
    assert len(seen) > 300


def test_a_table_of_its_own_numbers_is_read_where_it_was_written() -> None:
    """A strategy that always raises before the second draw and throws all after it does so, and nothing else."""
    a = build(ARCHIE, AbstractionConfig())
    bets, draws = np.zeros((a.bet_blocks, a.width), np.uint8), np.zeros((a.draw_blocks, 8), np.uint8)
    starts = a.record[0]["bet_start"]
    bets[: starts[2], 2::3] = 255
    policy = CFRPolicy(a, bets, draws)
    batch, rng = Batch(300, seed=5), np.random.default_rng(1)
    for _ in range(40):
        chances = policy.probabilities(batch.observations, batch.masks)
        phases = np.array([decode(row, ARCHIE).phase for row in batch.observations])
        can = batch.masks[:, 2] == 1
        assert (chances[(phases < 4) & can, 2] == 1).all()
        assert (chances[(phases >= 4) & (phases % 2 == 0), 1] == 1).all()  # where nothing is written: check or call
        assert (chances[phases % 2 == 1, 3] == 1).all()  # and stand pat
        assert (chances[np.arange(300), policy.act(batch.observations, batch.masks, rng)] > 0).all()
        batch.step(batch.sample_actions())


def test_acting_is_drawing_from_the_probabilities(tmp_path: Path) -> None:
    policy = cfr.train(trained(traversals=20_000), tmp_path, quiet=True)
    hands_, rng = Hands(np.arange(1), np.zeros(1, np.int8), PRESETS["mini"], 1), np.random.default_rng(1)
    _, rows, masks = hands_.waiting(int(not len(hands_.waiting(0)[0])))
    chances = policy.probabilities(rows, masks)[0]
    assert chances.sum() == pytest.approx(1)
    actions = policy.act(np.repeat(rows, 40_000, axis=0), np.repeat(masks, 40_000, axis=0), rng)
    found = np.bincount(actions, minlength=len(chances)) / 40_000
    np.testing.assert_allclose(found, chances, atol=5 * 0.5 / 200)


# -- training


def test_on_a_small_game_it_comes_close_to_an_equilibrium(tmp_path: Path) -> None:
    """Uniform play loses 2,500 mbb to a best response here; the abstraction merges the cards discarded, which costs some."""
    policy = cfr.train(trained(traversals=3_000_000), tmp_path, quiet=True)
    assert measure(policy, "mini").evaluation.exploitability * 500 < 80


def test_a_run_on_one_thread_is_reproducible_and_its_seed_matters(tmp_path: Path) -> None:
    one, again, other = (
        cfr.train(trained(seed=seed, traversals=20_000), tmp_path / str(i), quiet=True) for i, seed in enumerate((1, 1, 2))
    )
    np.testing.assert_array_equal(one.bets, again.bets)
    np.testing.assert_array_equal(one.draws, again.draws)
    assert (one.bets != other.bets).any()


def test_threads_share_their_tables(tmp_path: Path) -> None:
    config = trained(threads=2, traversals=80_000)
    policy = cfr.train(config, tmp_path, quiet=True)
    assert policy.meta["traversals"] >= 80_000
    assert match(policy, load("uniform", "mini"), 2000, 1, PRESETS["mini"]).mean > 500


def test_threads_write_to_cache_lines_of_their_own(tmp_path: Path) -> None:
    """Apart from what they share: two threads once made but 1.5 times as much, for a record began in the line of another."""
    records, line = np.zeros((2, 1), TRAVERSAL), 64
    assert TRAVERSAL.names is not None
    assert TRAVERSAL.names[-1] == "apart"
    assert TRAVERSAL["apart"].itemsize >= line
    assert records.strides[0] == TRAVERSAL.itemsize
    cfr.train(trained(traversals=4000), tmp_path, quiet=True)
    run = cfr.Run(trained(traversals=4000))
    run.restore(tmp_path / cfr.CHECKPOINT)
    for tables in (Tables.empty(run.abstraction), run.tables, run.tables.refined(run.abstraction, 1.0)):
        assert tables.bets.ctypes.data % line == tables.draws.ctypes.data % line == 0


def test_a_killed_run_resumes_to_the_same_tables(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'rules = "mini"\n[report]\nagents = []\nsave_seconds = 1.0\n'
        '[[stages]]\ntraversals = 400_000\nabstraction = { pots = [[3]] }\n'
        '[[stages]]\ntraversals = 2_000_000\nabstraction = { cards = "exact", pots = [[2, 3, 4]], other_draws = 3 }\n'
    )  # fmt: skip
    config = Config.load(file)
    whole = cfr.train(config, tmp_path / "whole", quiet=True)
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "training.cfr", "--config", str(file), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (out / cfr.CHECKPOINT).exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert not (out / cfr.STRATEGY).exists(), "it ended before it was killed"
    resumed = cfr.train(config, out, resume=True, quiet=True)
    np.testing.assert_array_equal(resumed.bets, whole.bets)
    np.testing.assert_array_equal(resumed.draws, whole.draws)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_first_checkpoint_writes_one(number: signal.Signals, tmp_path: Path) -> None:
    config = trained(traversals=60_000, detail=AbstractionConfig(pots=((3,),)))
    whole = cfr.train(config, tmp_path / "whole", quiet=True)
    rounds, out = 0, tmp_path / "interrupted"

    class Interrupted(cfr.Run):
        def advance(self) -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 5:
                os.kill(os.getpid(), number)  # in the middle of a round
            super().advance()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cfr, "Run", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            cfr.train(config, out, quiet=True)
    assert rounds == 5
    assert not (out / cfr.STRATEGY).exists()
    resumed = cfr.train(config, out, resume=True, quiet=True)
    assert digest(resumed.weights) == digest(whole.weights)


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(ArchieError, match=rf"process {os.getpid()} .*writes there now"):
            cfr.train(trained(traversals=4000), tmp_path, quiet=True)
        assert best_response.main(["call", "--rules", "mini", "--traversals", "4000", "--out", str(tmp_path)]) == 2
    assert not (tmp_path / cfr.CHECKPOINT).exists()


def test_a_checkpoint_that_can_t_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / cfr.CHECKPOINT).mkdir()
    (tmp_path / cfr.CHECKPOINT / "file").touch()
    with pytest.raises(ArchieError, match=cfr.CHECKPOINT):
        cfr.train(trained(traversals=4000), tmp_path, quiet=True)


def former_names(values: Any) -> Any:
    """A configuration as version 0.1 wrote it."""
    former = {"min_probability": "drop", "quantization_levels": "levels", "abstraction": "detail"}
    if isinstance(values, dict):
        return {former.get(key, key): former_names(value) for key, value in values.items()}
    return [former_names(value) for value in values] if isinstance(values, list | tuple) else values


def test_checkpoints_and_strategies_of_version_0_1_are_read(tmp_path: Path) -> None:
    config = trained(traversals=4000, detail=AbstractionConfig(pots=((3,),)))
    target = cfr.train(config, tmp_path, quiet=True)
    arrays, meta = read_archive(tmp_path / cfr.CHECKPOINT, cfr.FORMAT, cfr.VERSION)
    write_archive(tmp_path / cfr.CHECKPOINT, arrays, {**meta, "config": former_names(meta["config"])})
    resumed = cfr.train(config, tmp_path, resume=True, quiet=True)
    assert digest(resumed.weights) == digest(target.weights)
    target.meta["config"] = former_names(target.meta["config"])
    assert best_response.target_config(target) == config.stages[-1].abstraction


def shuffled(a: Abstraction) -> Abstraction:
    return Abstraction.of(a.rules, {**a.parts, "other": a.parts["other"].max() - a.parts["other"]})


def test_a_checkpoint_of_another_configuration_is_refused_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cfr.train(trained(traversals=4000), tmp_path, quiet=True)
    with pytest.raises(ConfigError, match=r"seed = 1 and 2"):
        cfr.train(trained(traversals=4000, seed=2), tmp_path, resume=True, quiet=True)
    longer = cfr.train(trained(traversals=8000), tmp_path, resume=True, quiet=True)
    assert longer.meta["traversals"] == 8000
    with monkeypatch.context() as patched:  # code that makes other classes of the same number
        patched.setattr(cfr, "build", lambda rules, detail: shuffled(build(rules, detail)))
        with pytest.raises(ArchieError, match="its classes are not those that this version makes"):
            cfr.train(trained(traversals=12000), tmp_path, resume=True, quiet=True)
    rough = cfr.train(trained(traversals=8000, quantization_levels=15), tmp_path, resume=True, quiet=True)  # only written anew
    assert set(np.unique(rough.bets)) == set(range(0, 256, 17))
    assert np.abs(rough.bets.astype(int) - longer.bets).max() <= 9
    assert np.abs(rough.draws.astype(int) - longer.draws).max() <= 9


def test_tables_grown_from_coarser_ones_play_as_those_did(tmp_path: Path) -> None:
    coarse = build(ARCHIE, AbstractionConfig())
    fine = build(ARCHIE, AbstractionConfig(cards="medium", raisers=2, own_draws=1, other_draws=2))
    rng = np.random.default_rng(1)
    tables = Tables.empty(coarse)
    tables.bets[:, AVERAGES], tables.draws[:, AVERAGES] = (
        rng.random(tables.bets[:, 1].shape),
        rng.random((coarse.draw_blocks, 8)),
    )
    grown = tables.refined(fine, 0.5)
    old, new = CFRPolicy(coarse, *tables.strategy(0.0)), CFRPolicy(fine, *grown.strategy(0.0))
    batch, alike = Batch(500, seed=2), 0
    for _ in range(25):
        rows, masks = batch.observations, batch.masks
        alike += np.isclose(old.probabilities(rows, masks), new.probabilities(rows, masks), atol=0.02).all(axis=1).sum()
        batch.step(batch.sample_actions())
    assert alike > 0.75 * 25 * 500  # hands that share a fine bucket need not share a coarse one


def test_a_strategy_leaves_out_rare_actions_but_never_the_likeliest() -> None:
    weights = np.array([[1, 4, 95, 0, 0, 0, 0, 0], [0, 0, 0, 30, 40, 30, 0, 0]], np.float32)
    result = np.zeros((2, 8), np.uint8)
    quantise(weights, 3, 0.05, 255, result)
    assert result[0, :3].tolist() == [0, 0, 255]
    assert result[1, :3].tolist() == [0, 0, 0]
    assert result[1, 3:6].sum() in (254, 255, 256)
    quantise(weights, 3, 1.0, 255, result := np.zeros((2, 8), np.uint8))
    assert result[1, 3:6].tolist() == [0, 255, 0]


# -- files


def test_a_strategy_survives_its_file(tmp_path: Path) -> None:
    policy = cfr.train(trained(traversals=20_000), tmp_path, quiet=True)
    again = load(f"cfr:{tmp_path / cfr.STRATEGY}", "mini")
    assert isinstance(again, CFRPolicy)
    np.testing.assert_array_equal(policy.bets, again.bets)
    assert again.meta["config"]["seed"] == 1
    with pytest.raises(ArchieError, match="trained for rules mini, expected archie"):
        load(f"cfr:{tmp_path / cfr.STRATEGY}")


def test_what_is_no_strategy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    cfr.train(trained(traversals=4000), tmp_path, quiet=True).save(path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    meta = json.loads(parts["meta"].tobytes())

    def written(changes: Mapping[str, Any]) -> Path:
        np.savez(path, **{k: v for k, v in {**parts, **changes}.items() if v is not None})
        return path

    def text(**changes: object) -> np.ndarray:
        return np.frombuffer(json.dumps({**meta, **changes}).encode(), np.uint8)

    cases: dict[str, dict[str, Any]] = {
        "version 2.*expected.*version 1": {"meta": text(version=2)},
        "archie-env ppo policy.*expected 'archie-env cfr strategy'": {"meta": text(format="archie-env ppo policy")},
        "bets is missing": {"bets": None},
        "early is missing": {"early": None},
        r"bets \(.*expected uint8": {"bets": parts["bets"][:-1]},
        "hash '.*expected .*the hash of the tables": {"bets": parts["bets"] ^ 1},
        "hash None: expected": {"meta": text(hash=None)},
        "of type object: expected an array of numbers": {"draws": np.array([{}], dtype=object)},
    }
    for words, changes in cases.items():
        with pytest.raises(ArchieError, match=words):
            CFRPolicy.load(written(changes))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArchieError, match="not a whole file"):
        CFRPolicy.load(path)


@pytest.mark.mutants
def test_of_tampered_checkpoints_only_archie_errors_come_out(tmp_path: Path) -> None:
    """Run under NUMBA_BOUNDSCHECK=1 too: what is accepted goes on without a read or write outside of arrays."""
    config = trained(traversals=4000, detail=AbstractionConfig(pots=((3,),)))
    cfr.train(config, tmp_path, quiet=True)
    source = read_archive(tmp_path / cfr.CHECKPOINT, cfr.FORMAT, cfr.VERSION)

    def restored(path: Path) -> cfr.Run:
        run = cfr.Run(config)
        run.restore(path)
        return run

    accepted = tampering.survive(
        source, restored, lambda run: run.pool.round(run.tables, None, 1.0), tmp_path / "it.npz", tampering.many(400, 700), 3
    )
    assert accepted > 10, "mutants that are all refused try nothing"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["bets", "draws"])
def test_a_checkpoint_with_values_that_are_no_numbers_is_refused(name: str, value: float, tmp_path: Path) -> None:
    config = trained(traversals=4000)
    target = cfr.train(config, tmp_path, quiet=True)
    arrays, meta = read_archive(tmp_path / cfr.CHECKPOINT, cfr.FORMAT, cfr.VERSION)
    arrays[name][-1, 0, 0] = value
    write_archive(path := tmp_path / "it.npz", arrays, meta)
    with pytest.raises(ArchieError, match=rf"it\.npz: {name} holds nan or infinite values: expected finite numbers"):
        cfr.Run(config).restore(path)
    with pytest.raises(ArchieError, match=rf"it\.npz: {name} holds nan or infinite values"):
        best_response.train_response(target, traversals=4000, checkpoint=path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("explor = 0.5", "unknown key 'explor': expected one of"),
        ("explore = 2", "explore = 2: expected a number 0 to 1"),
        ("quantization_levels = 50", "quantization_levels = 50: expected a divisor of 255"),
        ("drop = 0.1", "drop is called min_probability since version 0.2"),
        ("levels = 15", "levels is called quantization_levels since version 0.2"),
        (
            "[[stages]]\ntraversals = 1\n[stages.detail]",
            r"stages\[0\].detail is called stages\[0\].abstraction since version 0.2",
        ),
        ("[[stages]]\ntraversals = 0", r"stages\[0\]: traversals = 0 and seconds = 0"),
        (
            '[[stages]]\ntraversals = 1\nabstraction = { cards = "grand" }',
            r"stages\[0\].abstraction.cards = 'grand': expected one of",
        ),
        (
            "[[stages]]\ntraversals = 1\nabstraction = { pots = [[2], [3]] }",
            r"stages\[0\].abstraction.pots .* 3 rounds after the first",
        ),
        ("stages = []", r"stages = \[\]: expected a list of at least one item, each a table"),
        ('rules = "poker"', "rules = 'poker'"),
        ('[report]\nagents = ["human"]\n[[stages]]\ntraversals = 1', "report.agents: human: expected players that need no"),
    ],
)
def test_a_wrong_configuration_names_file_key_value_and_what_is_allowed(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"bad.toml.*{words}"):
        Config.load(file)


def test_a_configuration_survives_its_plain_form() -> None:
    config = Config.load(Path(__file__).parent.parent / "configs/cfr/champion.toml")
    assert Config.from_values(json.loads(json.dumps(config.model_dump())), "text") == config


# -- opponents


def test_a_responder_wins_from_what_can_be_won_from(tmp_path: Path) -> None:
    """Against a strategy that always calls and stands pat, on mini, nearly all that a best response wins."""
    a = build(PRESETS["mini"], WHOLE)
    caller = CFRPolicy(a, np.zeros((a.bet_blocks, a.width), np.uint8), np.zeros((a.draw_blocks, 8), np.uint8))
    response = best_response.train_response(caller, traversals=400_000, abstraction=WHOLE)
    best = measure(caller, "mini").evaluation.exploitability * 500
    won = match(response, caller, 20_000, 5, PRESETS["mini"])
    assert best - 6 * won.standard_error - 60 < won.mean < best + 6 * won.standard_error


def test_a_responder_starts_from_the_regrets_of_its_target(tmp_path: Path) -> None:
    detail = AbstractionConfig(pots=((3,),))
    target = cfr.train(trained(traversals=200_000, detail=detail), tmp_path, quiet=True)
    fine = best_response.finer(best_response.target_config(target))
    assert build(PRESETS["mini"], fine).information_sets >= target.abstraction.information_sets
    for level in range(4):
        config = detail.model_copy(update={"raisers": level, "own_draws": level, "other_draws": level})
        more = best_response.finer(config)
        assert more.raisers >= config.raisers
        assert more.own_draws >= config.own_draws
        assert more.other_draws >= config.other_draws
    response = best_response.train_response(target, traversals=200_000, checkpoint=tmp_path / cfr.CHECKPOINT)
    assert match(response, target, 8000, 9, PRESETS["mini"]).mean > 0
    other = cfr.train(trained(traversals=4000), tmp_path / "other", quiet=True)
    with pytest.raises(ArchieError, match="not of the target's abstraction"):
        best_response.train_response(other, traversals=4000, checkpoint=tmp_path / cfr.CHECKPOINT)
    with pytest.raises(ArchieError, match="no budget"):
        best_response.train_response(target)


def test_the_responder_s_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cfr.train(trained(traversals=4000), tmp_path, quiet=True)
    command = [f"cfr:{tmp_path / cfr.STRATEGY}", "--rules", "mini", "--traversals", "4000", "--out", str(tmp_path / "response")]
    assert best_response.main([*command, "--deals", "200"]) == 0
    assert "200 deals played twice" in capsys.readouterr().out
    assert load(f"cfr:{tmp_path / 'response' / best_response.RESPONSE}", "mini").meta["traversals"] >= 4000  # type: ignore[attr-defined]
    for wrong, words in (
        (["--threads", "0"], "threads 0: expected a whole number of at least 1"),  # it would wait for nobody, for ever
        (["--seed", "-1"], "seed -1: expected"),
        (["--traversals", "-9", "--seconds", "1"], "traversals -9: expected"),
        (["--start", "-1"], "start -1.0: expected 0 to 1"),
        (["--deals", "1"], "deals 1: expected a whole number of at least 2"),
        (["--traversals", "0"], "no budget"),
        (["--rules", "midi"], "trained for rules mini, expected midi"),
        (["--checkpoint", "none.npz"], "none.npz: no such file"),
    ):
        assert best_response.main([*command, *wrong, "--fresh"]) == 2
        assert words in capsys.readouterr().err
    again = [*command[3:], "--rules", "mini", "rule_based"]
    assert best_response.main([*again, "--deals", "200"]) == 2
    assert "response-checkpoint.npz exists: expected --resume, --fresh or another --out" in capsys.readouterr().err
    assert best_response.main([*again, "--deals", "200", "--resume"]) == 2
    assert "made otherwise (target, weights, abstraction): expected the same arguments" in capsys.readouterr().err
    assert best_response.main([*again, "--deals", "200", "--fresh"]) == 0
    assert "200 deals played twice" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["best_response", *again, "--deals", "200", "--resume"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(best_response.__file__, run_name="__main__")
    assert "200 deals played twice" in capsys.readouterr().out, "printed by the command too, not only from Python"
    assert best_response.main([*again, "--fresh", "--checkpoint", "none.npz"]) == 2
    assert "rule_based is no CFR strategy, so it has no regrets to begin with" in capsys.readouterr().err
    assert best_response.main(["human", "--traversals", "4000"]) == 2
    assert "human: expected a player that needs no terminal" in capsys.readouterr().err
    assert best_response.main(["rule_based", "--rules", "barge", "--traversals", "4000"]) == 2
    assert "expected simultaneous draws" in capsys.readouterr().err


@pytest.mark.parametrize("rules", ["mini", "midi"])
@pytest.mark.parametrize("name", ["rule_based", "call_draw"])
def test_a_responder_to_an_empirical_policy_wins_most_of_what_can_be_won_from_the_player(name: str, rules: str) -> None:
    player = load(name, rules)
    response = best_response.train_response(player, rules=rules, traversals=200_000, seed=3)
    best = measure(player, rules).evaluation.exploitability * 500
    won = match(response, player, 20_000, 5, PRESETS[rules])
    assert 0.85 * best - 5 * won.standard_error < won.mean < best + 5 * won.standard_error


def test_a_player_is_observed_only_while_there_is_budget_left(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = []
    monkeypatch.setattr(EmpiricalPolicy, "observe", lambda self, other, *budget, **more: observed.append(other))
    # Two threads do all of it in their first round
    best_response.train_response(load("call", "mini"), rules="mini", traversals=60_000, threads=2)
    assert observed == [None, None]
    best_response.train_response(load("call", "mini"), rules="mini", traversals=60_000)
    assert len(observed) == 2 + 7


def test_a_responder_to_an_empirical_policy_is_reproducible_by_traversals() -> None:
    player = load("rule_based", "mini")
    first, second = (best_response.train_response(player, rules="mini", traversals=60_000, seed=3) for _ in range(2))
    other = best_response.train_response(player, rules="mini", traversals=60_000, seed=4)
    assert digest(first.weights) == digest(second.weights) != digest(other.weights)


def test_an_empirical_policy_plays_like_the_player() -> None:
    """On mini, with every hand a class of its own, all that `rule_based` looks at is distinguished."""
    player, rules = load("rule_based", "mini"), PRESETS["mini"]
    model = EmpiricalPolicy(player, rules, WHOLE, 1)
    model.observe(None, 400_000)
    model.observe(load("uniform", "mini"), 200_000)
    assert model.decisions >= 600_000
    table, batch = model.policy(), Batch(4096, rules, seed=8)
    gaps = []
    for _ in range(12):
        own, modelled = (p.probabilities(batch.observations, batch.masks) for p in (player, table))
        assert np.allclose(modelled.sum(axis=1), 1, atol=1e-5)
        gaps.append(np.abs(own - modelled).sum(axis=1).mean() / 2)
        batch.step(sample(own, np.random.default_rng(1)))
    assert np.mean(gaps) < 0.02


def test_a_player_that_plays_illegal_actions_is_not_modelled() -> None:
    class Cheat(UniformPolicy):
        name = "cheat"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), wrong)

    with pytest.raises(ArchieError, match="no budget"):
        EmpiricalPolicy(UniformPolicy(), PRESETS["mini"], AbstractionConfig(), 1).observe(None)
    for wrong in (-1, 2, 99):
        with pytest.raises(ArchieError, match=f"cheat plays {wrong}, which is not legal: it can't be modelled"):
            EmpiricalPolicy(Cheat(), PRESETS["mini"], AbstractionConfig(), 1).observe(None, 100_000)


def by_class(a: Abstraction, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables that raise where the class on an axis of the public past is odd, else call, and mostly stand pat."""
    bets, record, ends = np.zeros((a.bet_blocks, a.width), np.uint8), a.record[0], [*a.record[0]["bet_start"][1:], a.bet_blocks]
    for r, (start, end) in enumerate(zip(record["bet_start"], ends, strict=True)):
        sizes = [int(record[name][r]) for name in ("pots", "raisers", "owns", "others")]
        part = np.moveaxis(bets[start:end].reshape(2, *sizes, -1, a.width), 1 + axis, 0)
        part[..., 1::3] = 255
        part[1::2, ..., 1::3], part[1::2, ..., 2::3] = 1, 254
    return bets, np.tile(np.array([[200, 8, 8, 8, 8, 8, 8, 7]], np.uint8), (a.draw_blocks, 1))


@pytest.mark.parametrize("axis", range(4), ids=["pot", "raisers", "own draws", "other's draws"])
def test_traversals_and_play_read_the_same_tables(axis: int) -> None:
    """What a strategy is worth in traversals that learn nothing is what it wins in play, whatever of the past it goes by."""
    a = build(ARCHIE, AbstractionConfig(pots=((2,), (3,), (4,)), raisers=2, own_draws=1, other_draws=1))
    bets, draws = by_class(a, axis)
    strategy, blind = (
        CFRPolicy(a, bets, draws),
        CFRPolicy(a, np.full_like(bets, 85), np.full_like(draws, 31)),
    )  # who does anything
    tables, pool = strategy_tables(a, bets, draws, 1.0), cfr.TraversalPool(ARCHIE, 1, 3, 0.0)
    worth = np.array([pool.round(tables, blind, 0.0) for _ in range(12)])
    played = play_match(strategy, blind, 10_000, 2).totals
    for position, seat in enumerate((played.as_dealer, played.as_big_blind)):
        error = np.hypot(seat.standard_error, worth[:, position].std(ddof=1) / np.sqrt(12))
        assert abs(worth[:, position].mean() - seat.mean) < 4 * error


def test_a_responder_does_not_change_its_target() -> None:
    a = build(PRESETS["mini"], WHOLE)
    tables = Tables.empty(a)
    pool = cfr.TraversalPool(PRESETS["mini"], 1, 1, 0.25)
    target = CFRPolicy(a, np.full((a.bet_blocks, a.width), 85, np.uint8), np.full((a.draw_blocks, 8), 30, np.uint8))
    before = target.bets.copy()
    pool.round(tables, target, 1.0)
    np.testing.assert_array_equal(target.bets, before)
    assert not tables.bets[:, AVERAGES].any()
    assert tables.bets[:, REGRETS].any()


def test_classes_fit_their_number() -> None:
    assert max(hands(ARCHIE)) < CLASSES


@pytest.mark.parametrize(("name", "config", "most"), [("cfr_small", "small", 1e6), ("champion", "champion", 10e6)])
def test_the_strategies_that_ship_are_those_of_their_configurations(name: str, config: str, most: float) -> None:
    policy = load(name)
    assert isinstance(policy, CFRPolicy)
    assert policy.name == name
    settings = Config.load(Path(__file__).parent.parent / f"configs/cfr/{config}.toml")
    assert Config.from_meta(policy.meta["config"], name) == settings
    assert policy.meta["traversals"] >= sum(stage.traversals for stage in settings.stages)
    assert (WEIGHTS / f"{name}.npz").stat().st_size < most
    against = match(policy, load("call_draw"), 3000, 11, ARCHIE)
    assert against.mean > 485 - 4 * against.standard_error
    against = match(policy, load("rule_based"), 3000, 11, ARCHIE)
    assert against.mean > -3 * against.standard_error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", ["uniform", "strategy"])
def test_a_stopped_responder_goes_on_to_the_same_strategy(target: str, number: signal.Signals, tmp_path: Path) -> None:
    """Stopped in its first round, in a later one, and while it observes the player."""
    player: Policy = load("uniform", "mini")
    if target == "strategy":
        player = cfr.train(trained(traversals=4000), tmp_path, quiet=True)
    budget: dict[str, Any] = {"rules": "mini", "traversals": 24_000, "seed": 3}
    whole = best_response.train_response(player, **budget)
    path, rounds, observed = tmp_path / best_response.CHECKPOINT, [0], [0]
    advance, observe = best_response.Responder._round, EmpiricalPolicy.observe

    def counted(responder: best_response.Responder) -> None:
        rounds[0] += 1
        if rounds[0] in (1, 6):
            signal.raise_signal(number)  # the round is finished first
        advance(responder)

    def interrupted(policy: EmpiricalPolicy, *arguments: Any) -> None:
        observe(policy, *arguments)
        observed[0] += 1
        if observed[0] == 9:  # two of each start, and some in between
            signal.raise_signal(number)

    stops = 0
    with pytest.MonkeyPatch.context() as patched, terminable():
        patched.setattr(best_response.Responder, "_round", counted)
        patched.setattr(EmpiricalPolicy, "observe", interrupted)
        resumed = None
        while resumed is None:
            try:
                resumed = best_response.train_response(player, **budget, keep=path, resume=path.exists())
            except KeyboardInterrupt:
                stops += 1
                assert path.exists()
    assert stops == (3 if target == "uniform" else 2)
    assert rounds[0] == 12, "no round was lost or played twice"
    assert digest(resumed.weights) == digest(whole.weights)
    assert resumed.meta == whole.meta
    ended = best_response.train_response(player, **budget, keep=path, resume=True)
    assert digest(ended.weights) == digest(whole.weights)


def test_a_tampered_checkpoint_of_a_responder_is_refused(tmp_path: Path) -> None:
    player, path = load("rule_based", "mini"), tmp_path / best_response.CHECKPOINT
    budget: dict[str, Any] = {"rules": "mini", "traversals": 4000, "keep": path}
    best_response.train_response(player, **budget)
    arrays, meta = read_archive(path, best_response.FORMAT, 1)

    def refused(words: str, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
        write_archive(path, arrays, meta)
        with pytest.raises(ArchieError, match=words):
            best_response.train_response(player, **budget, resume=True)

    for name, value, words in (
        ("batch/actions", 35, "actions of game 0: 35 is not legal"),
        ("batch/hands", -1, "hands -1"),
        ("observed/bets", np.nan, "observed/bets holds nan"),
        ("outline/draws", -1, "outline/draws holds nan, infinite or negative"),
        ("bets", np.inf, "bets holds nan or infinite"),
    ):
        changed = arrays[name].copy()
        changed[:1] = value
        refused(words, {**arrays, name: changed}, meta)
    refused("walks is missing", {name: array for name, array in arrays.items() if name != "walks"}, meta)
    refused("bets", {**arrays, "bets": arrays["bets"][1:]}, meta)
    changes: tuple[tuple[str, Any, str], ...] = (
        ("progress", {**meta["progress"], "turn": 9}, "turn = 9: expected a whole number 1 to 6"),
        ("progress", {**meta["progress"], "observed": 0}, "observed 0: expected those of such a run"),
        ("player", None, "observed"),
        ("player", {**meta["player"], "decisions": -1}, "decisions = -1"),
        ("player", {**meta["player"], "generators": meta["player"]["generators"][1:]}, "2 generators: expected 3"),
        ("made", [], "made otherwise"),
        ("made", {**meta["made"], "seed": 2}, r"made otherwise \(seed\)"),
    )
    for key, other, words in changes:
        refused(words, arrays, {**meta, key: other})
