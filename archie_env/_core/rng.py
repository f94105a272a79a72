"""Random bits: splitmix64 as a hash of a counter (Steele, Lea, Flood 2014), so that any place of any stream is one call."""

from __future__ import annotations

import numpy as np

from archie_env._core.jit import inner

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = (np.uint64(n) for n in (27, 30, 31, 32))
ONE = np.uint64(1)


@inner
def mix(x):
    """Hash 64 bits to 64 bits."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@inner
def stream_key(seed, index):
    """The key of game ``index`` under a 64-bit seed word: hashed twice, so that neighbours share nothing."""
    return mix(mix(seed + np.uint64(index + 1) * GOLDEN) ^ _FIRST)


@inner
def below(bits, n):
    """A number 0 .. n - 1 from 64 random bits; n is small, so the bias is under 2 ** -26."""
    return np.int64(((bits >> _32) * np.uint64(n)) >> _32)
