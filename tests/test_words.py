"""The words behind a row, and the single instructions that write them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import agents
from archie_env._core.jit import JIT_DISABLED, kernel
from archie_env._core.wide import lowest, write_32, write_64
from archie_env.batch import Batch
from archie_env.envs.learner import SingleAgentBatch
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.observation import bits_of_row, unpack, unpack_masks, width
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, Rules, Stakes


@kernel
def _write(row, words, lowest_bits):  # type: ignore[no-untyped-def]
    """Write 64 entries of each word from 3 on, then 32, and list the lowest bits."""
    for i in range(len(words)):
        write_64(row[i], np.uint64(3), words[i])
        write_32(row[i], np.uint64(67), words[i])
        lowest_bits[i] = lowest(words[i])  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_words_are_written_bit_by_bit_and_nothing_beside_them(dtype: str) -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 20, np.uint64)
    words[:4] = 0, 1, 2**63, 2**64 - 1
    rows, lowest_bits = np.full((20, 100), 7, dtype), np.zeros(20, np.int64)
    _write(rows, words, lowest_bits)
    for row, word, bit in zip(rows.tolist(), words.tolist(), lowest_bits.tolist(), strict=True):
        assert row == [7] * 3 + [word >> i & 1 for i in range(64)] + [word >> i & 1 for i in range(32)] + [7]
        assert bit == next((i for i in range(64) if word >> i & 1), 64)


@pytest.mark.parametrize("name", PRESETS)
def test_every_entry_has_a_bit_of_its_own(name: str) -> None:
    rules = PRESETS[name]
    bits, book = bits_of_row(rules), rulebook(rules)[0]
    assert len(set(bits.tolist())) == len(bits) == width(rules) - 2
    if name in ("archie", "barge", "pagat"):
        assert book["runs"] == 0  # rows are the words themselves
    else:
        starts = [(64 * word + right - left, 64 - right) for word, left, right, _, _ in book["run"][: book["runs"]].tolist()]
        assert [start + i for start, n in starts for i in range(n)] == bits.tolist()


@pytest.mark.parametrize("cap", [1, 5, 6])
def test_other_numbers_of_wagers_have_every_betting_entry(cap: int) -> None:
    rules = replace(Rules(), raise_cap=cap)
    assert len(set(bits_of_row(rules).tolist())) == width(rules) - 2


def test_a_pickle_of_other_records_is_refused() -> None:
    batch = Batch(2, seed=1)
    again = pickle.loads(pickle.dumps(batch))
    assert (again.games == batch.games).all()
    batch.games = np.zeros(2, [("hand", "i1", (2, 4, 5))])
    with pytest.raises(ArchieError, match="Batch: pickled by another version of archie-env"):
        pickle.loads(pickle.dumps(batch))


# ---- packed rows

ROUNDS = 40 if not JIT_DISABLED else 2


@pytest.mark.parametrize("name", [*PRESETS, "six wagers, large stakes"])
def test_packed_batches_hold_the_same_rows_and_masks(name: str) -> None:
    large = Stakes((500, 1000), (1000, 1000, 1000, 1000))
    rules = PRESETS.get(name, Rules(raise_cap=6, stakes=large))
    plain, packed = Batch(50, rules, seed=3), Batch(50, rules, seed=3, dtype="packed")
    for _ in range(ROUNDS):
        assert packed.observations.shape == (50, 7)
        assert (unpack(packed.observations, rules) == plain.observations).all()
        assert (unpack_masks(packed.masks, rules) == plain.masks).all()
        for seat in (0, 1):
            (rows, masks), (words, mask_words) = plain.seat(seat), packed.seat(seat)
            assert (unpack(words, rules) == rows).all()
            assert (unpack_masks(mask_words, rules) == masks).all()
        actions = plain.sample_actions()
        assert (packed.sample_actions() == actions).all()
        assert all((a == b).all() for a, b in zip(packed.step(actions), plain.step(actions), strict=True))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_packed_vector_environments_hold_the_same_rows_and_masks(mode: str) -> None:
    plain, packed = (ArchieVectorEnv(20, autoreset_mode=mode, dtype=dtype, illegal="replace") for dtype in ("int8", "packed"))
    (rows, infos), (words, word_infos) = plain.reset(seed=4), packed.reset(seed=4)
    rng, ended = np.random.default_rng(1), 0
    for _ in range(ROUNDS):
        assert words in packed.observation_space
        assert (unpack(words) == rows).all()
        assert (unpack_masks(word_infos["action_mask"]) == infos["action_mask"]).all()
        actions = rng.integers(-1, 36, 20)  # some of them illegal
        rows, rewards, done, _, infos = plain.step(actions)
        words, word_rewards, word_done, _, word_infos = packed.step(actions)
        assert (word_rewards == rewards).all()
        assert (word_done == done).all()
        ended += done.sum()
        if "final_obs" in infos:
            for final, words_of_it in zip(infos["final_obs"][done], word_infos["final_obs"][done], strict=True):
                assert (unpack(words_of_it) == final).all()
            assert (unpack_masks(word_infos["final_info"]["action_mask"]) == infos["final_info"]["action_mask"]).all()
    assert ended or JIT_DISABLED


def test_an_illegal_action_on_packed_masks_names_the_legal_ones() -> None:
    for batch in (Batch(4, seed=1, dtype="packed"), SingleAgentBatch(4, [None], seed=1, dtype="packed")):
        with pytest.raises(IllegalActionError, match=r"game 0: action 9 is not legal; legal: 0 \(fold\), 1 \(check/call\)"):
            batch.step(np.full(4, 9))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (np.zeros((3, 6), np.uint64), r"words \(3, 6\) of type uint64: expected \(..., 7\) of type uint64"),
        (np.zeros((3, 7), np.int64), r"words \(3, 7\) of type int64: expected \(..., 7\) of type uint64"),
        (np.zeros((), np.uint64), r"words \(\) of type uint64"),
        ([[0] * 7], "words of type list"),
    ],
)
def test_other_words_are_refused(words: Any, message: str) -> None:
    with pytest.raises(ArchieError, match=message):
        unpack(words)
    with pytest.raises(ArchieError, match=r"expected \(..., 1\) of type uint64"):
        unpack_masks(words)


def test_a_policy_refuses_packed_rows_with_what_it_expects() -> None:
    batch = Batch(2, seed=1, dtype="packed")
    with pytest.raises(ArchieError, match=r"expected \(n, 388\) and \(n, 35\)"):
        agents.load("rule_based").act(batch.observations, batch.masks, np.random.default_rng(1))


def test_unknown_types_of_rows_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ArchieError, match="dtype 'float64': expected 'int8', 'float32' or 'packed'"):
        Batch(2, dtype="float64")
