"""Single instructions that Numba does not offer: the bits of a word as entries of an array, and the lowest bit of a word.

A loop over entries moves them one at a time.  Here LLVM is told to write a vector: every byte of the word is repeated eight
times and each copy compared with a bit of its own, a form that x86-64 of any level and ARM turn into a few instructions.
Without the JIT, and under ``NUMBA_BOUNDSCHECK=1``, plain loops write the same entries.
"""

# Kernels are typed by the compiler from their arguments.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config
from numba.core.errors import TypingError
from numba.extending import intrinsic

from archie_env._core.jit import JIT_DISABLED, inner

_ONE = np.uint64(1)
_BYTE = ir.IntType(8)


def _spread(builder: Any, word: Any, n: int) -> Any:
    """The bits of an ``n``-bit word as a vector of truth values, lowest first."""
    octets = builder.bitcast(word, ir.VectorType(_BYTE, n // 8))
    places = ir.Constant(ir.VectorType(ir.IntType(32), n), [i // 8 for i in range(n)])
    copies = builder.shuffle_vector(octets, ir.Constant(octets.type, ir.Undefined), places)
    own = builder.and_(copies, ir.Constant(copies.type, [1 << i % 8 for i in range(n)]))
    return builder.icmp_unsigned("!=", own, ir.Constant(copies.type, [0] * n))


def _plain_writer(n: int) -> Any:
    @inner
    def write(row, at, word):
        for i in range(n):
            row[at + np.uint64(i)] = np.int8(word >> np.uint64(i) & _ONE)

    return write


def _vector_writer(n: int) -> Any:
    @intrinsic
    def write(context, row, at, word):
        if not (isinstance(row, types.Array) and row.ndim == 1 and row.layout == "C"):
            raise TypingError(f"{row}: expected a row whose entries lie side by side")
        if row.dtype not in (types.int8, types.float32, types.uint64):
            raise TypingError(f"{row}: expected int8 or float32, or uint64 for a packed row, which is never written to here")

        def generate(target, builder, signature, arguments):
            array = target.make_array(row)(target, builder, arguments[0])
            bits = _spread(builder, builder.trunc(arguments[2], ir.IntType(n)) if n < 64 else arguments[2], n)
            if row.dtype == types.float32:
                entries = builder.uitofp(bits, ir.VectorType(ir.FloatType(), n))
            else:
                entries = builder.zext(bits, ir.VectorType(_BYTE, n))
            if row.dtype != types.uint64:
                place = builder.gep(array.data, [arguments[1]])
                builder.store(entries, builder.bitcast(place, entries.type.as_pointer()), align=1)
            return target.get_dummy_value()

        return types.void(row, types.uint64, types.uint64), generate

    return write


_PLAIN = JIT_DISABLED or bool(config.BOUNDSCHECK)
_writer = _plain_writer if _PLAIN else _vector_writer
write_64, write_32 = _writer(64), _writer(32)
"""``(row, at, word)``: write the lowest 64 or 32 bits of a word as entries of an int8 or float32 row from ``at`` on."""

if JIT_DISABLED:

    def lowest(word):
        """The index of the lowest bit that is set, 64 if there is none."""
        return np.uint64((int(word) & -int(word)).bit_length() - 1 if word else 64)

else:

    @intrinsic
    def lowest(context, word):
        """The index of the lowest bit that is set, 64 if there is none."""

        def generate(target, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), generate
