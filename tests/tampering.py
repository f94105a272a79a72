"""Tampered archives: seeded mutants of a good file, signed anew, and attacks that once reached memory outside of arrays.

``make mutants`` tries 20,000 hand histories, 5,000 archives (strategies, solutions, policies, checkpoints) and 2,000 results.
What fails there goes into ``tests/corpus``.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.archive import digest, write_archive
from archie_env.errors import ArchieError

Arrays = dict[str, NDArray[Any]]
Meta = dict[str, Any]
Sign = Callable[[Arrays, Meta], Meta]
MOST_WORDS = 2500
FULL = os.environ.get("MUTANTS") == "full"
"""Whether to try as many mutants as ``make mutants`` does."""


def many(usually: int, full: int) -> int:
    """The number of mutants to try: in every run of the suite, or on demand."""
    return full if FULL else usually


_JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 255, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 2**64, -(2**63), 10**40,
    0.5, -0.0, 1e308, math.nan, math.inf,
    "", "x", "archie", "\x1b[2J\u202e", "9" * 5000,
    [], [[]], [1, 2], [None], {}, {"x": 1}, [[1] * 99], [0] * 1000,
)  # fmt: skip
_TYPES = ("u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8", ">i8", ">u8", "f2", "f4", "f8", "?", "c16", "U3")


def sign_tables(arrays: Arrays, meta: Meta) -> Meta:
    """The ``meta`` with the hash of the arrays, which anybody can compute."""
    return {**meta, "hash": digest(arrays)}


def mutants(
    arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], count: int, seed: int
) -> Iterator[tuple[Arrays, Meta]]:
    """``count`` variants of an archive, each with one to three changes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        changed, told = dict(arrays), copy.deepcopy(dict(meta))
        for _ in range(rng.integers(1, 4)):
            if changed and rng.random() < 0.6:
                _change_array(changed, rng)
            else:
                _change_meta(told, rng)
        yield changed, told


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _change_array(arrays: Arrays, rng: np.random.Generator) -> None:
    name = _pick(rng, sorted(arrays))
    array = arrays[name]
    kind = int(rng.integers(8))
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[_pick(rng, ("extra", "../evil", "", "x" * 300, _pick(rng, sorted(arrays))))] = array
    elif kind == 2:
        arrays[name] = _pick(rng, (array[:-1], array[..., :1], array.T, array[None], np.repeat(array[:1], 3, 0), array[:0])) \
            if array.ndim else array[None]  # fmt: skip
    elif kind == 3:
        arrays[name] = np.zeros(_pick(rng, ((), (0,), (1,), (0, 1 << 40), (3, 3), (1,) * 20)), array.dtype)
    elif kind == 4:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(_pick(rng, _TYPES)) if array.dtype.kind in "biuf" else array
    elif array.size and array.dtype.kind in "biuf":
        arrays[name] = _with_values(array, rng, kind)


def _with_values(array: NDArray[Any], rng: np.random.Generator, kind: int) -> NDArray[Any]:
    """Some entries at extremes, off by one, or of a type that wraps to legal values when it is cast."""
    if kind == 5 and array.dtype.kind in "iu":
        wide = array.astype(np.uint64)
        wide.flat[rng.integers(array.size, size=3)] = [_pick(rng, (2**64 - 1, 2**64 - 2, 2**63, 2**32, 2**32 - 1, 2**16, 256))]
        return wide
    result = array.copy()
    at = rng.integers(array.size, size=int(_pick(rng, (1, 1, 5, array.size))))
    if array.dtype.kind == "f":
        result.flat[at] = _pick(rng, (np.nan, np.inf, -np.inf, -1.0, 0.0, float(np.finfo(array.dtype).max)))
    elif array.dtype.kind == "b":
        result.flat[at] = ~result.flat[at]
    else:
        info = np.iinfo(array.dtype)
        result.flat[at] = _pick(
            rng, (info.min, info.max, 0, 1, info.max - 1, *(v for v in (-1, 64, 216, 300) if v >= info.min and v <= info.max))
        )
    return result


def _change_meta(meta: Meta, rng: np.random.Generator) -> None:
    """Replace, remove or add a value at any depth."""
    table: Any = meta
    while True:
        keys = sorted(table) if isinstance(table, dict) else list(range(len(table)))
        if not keys:
            return
        key = _pick(rng, keys)
        inner = table[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.7:
            table = inner
            continue
        kind = int(rng.integers(4))
        if kind == 0 and isinstance(table, dict):
            del table[key]
        elif kind == 1 and isinstance(table, dict):
            table[_pick(rng, ("extra", "", "x" * 300))] = copy.deepcopy(_pick(rng, _JUNK))  # the next change may be made in it
        else:
            table[key] = copy.deepcopy(_pick(rng, _JUNK))
        return


def spoilt_bytes(whole: bytes, count: int, seed: int) -> Iterator[bytes]:
    """``count`` variants of a file: bytes changed, cut off, doubled."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 6)):
            # Most of what decides how a file is read stands at its end
            data[int(rng.integers(len(data)) if rng.random() < 0.5 else len(data) - 1 - rng.integers(min(1200, len(data))))] = (
                int(rng.integers(256))
            )
        kind = rng.integers(8)
        if kind == 0:
            del data[int(rng.integers(len(data))) :]
        elif kind == 1:
            data *= 2
        yield bytes(data)


def refused_or_used(read: Callable[[Path], Any], path: Path, use: Callable[[Any], None]) -> bool:
    """Read a file; whether it was accepted and used.  Anything but an `ArchieError` of bounded length goes through."""
    refusal: ArchieError | None = None
    try:
        player = read(path)
    except ArchieError as error:
        refusal = error
    if refusal is not None:
        assert len(str(refusal)) - len(str(path)) < MOST_WORDS, f"an error of {len(str(refusal))} characters"
        assert str(refusal).startswith(str(path)), f"the error does not name the file: {str(refusal)[:200]}"
        return False
    use(player)
    return True


def survive(
    source: tuple[Arrays, Meta], read: Callable[[Path], Any], use: Callable[[Any], None], path: Path, count: int, seed: int,
    sign: Sign = lambda arrays, meta: meta,
) -> int:  # fmt: skip
    """Read ``count`` mutants of an archive, signed anew; returns how many were accepted and used without a fault."""
    accepted = 0
    for arrays, meta in mutants(*source, count, seed):
        try:
            write_archive(path, arrays, sign(arrays, meta))
        except (OSError, ValueError, TypeError):  # names and numbers that no file can be written with
            continue
        accepted += refused_or_used(read, path, use)
    return accepted


# -- attacks that are kept: each takes the arrays of a good strategy and returns those of a bad one


def slots_beyond_bytes(arrays: Arrays) -> Arrays:
    """Discards that pass as small numbers once they are cast to a byte or a signed integer."""
    slots = arrays["slots"].astype(np.uint64)
    slots[:, 1] = 2**64 - 2
    return {**arrays, "slots": slots}


def slots_of_another_byte(arrays: Arrays) -> Arrays:
    slots = arrays["slots"].astype(np.int64)
    slots[:, 1] = 256
    return {**arrays, "slots": slots}


def classes_whose_product_wraps(arrays: Arrays) -> Arrays:
    """Numbers of pots and raisers whose product is 0 in 64 bits."""
    pot, raiser = arrays["pot"].astype(np.uint64), arrays["raiser"].astype(np.uint64)
    pot[1, 3] = raiser[1, 0, 1] = 2**32 - 1
    return {**arrays, "pot": pot, "raiser": raiser}


def buckets_that_wrap_to_none(arrays: Arrays) -> Arrays:
    early = arrays["early"].astype(np.uint64)
    early[-1] = 2**64 - 1
    return {**arrays, "early": early}


def buckets_beyond_int32(arrays: Arrays) -> Arrays:
    early = arrays["early"].astype(np.int64)
    early[-1] = 2**32
    return {**arrays, "early": early}


def pots_beyond_int16(arrays: Arrays) -> Arrays:
    pot = arrays["pot"].astype(np.int64)
    pot[1, 3] = 2**16 + 1
    return {**arrays, "pot": pot}


ATTACKS: tuple[Callable[[Arrays], Arrays], ...] = (
    slots_beyond_bytes,
    slots_of_another_byte,
    classes_whose_product_wraps,
    buckets_that_wrap_to_none,
    buckets_beyond_int32,
    pots_beyond_int16,
)
