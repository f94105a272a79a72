"""The words behind a row, and the single instructions that write them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from archie_env._core.jit import kernel
from archie_env._core.wide import lowest, write_32, write_64
from archie_env.batch import Batch
from archie_env.errors import ArchieError
from archie_env.observation import width
from archie_env.rulebook import bits_of_row, rulebook
from archie_env.rules import PRESETS, Rules


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
