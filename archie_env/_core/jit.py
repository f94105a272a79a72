"""The one way to Numba: ``kernel`` compiles a function and keeps its machine code on disk (`archie_env._core.kernel_cache`).

``NUMBA_DISABLE_JIT=1`` runs every kernel as ordinary Python; ``NUMBA_CACHE_DIR`` moves the cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from numba.core import config

from archie_env._core.kernel_cache import kernel_cache

JIT_DISABLED = bool(config.DISABLE_JIT)
"""True when kernels run as ordinary Python (``NUMBA_DISABLE_JIT=1``)."""


def _compile(function: Callable[..., Any], python_calls_it: bool, inline: str = "never") -> Callable[..., Any]:
    if JIT_DISABLED:

        @functools.wraps(function)
        def plain(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):  # unsigned 64-bit arithmetic wraps by design
                return function(*arguments)

        return plain
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        no_cfunc_wrapper=True,
        no_cpython_wrapper=not python_calls_it,
        inline=inline,
    )(function)
    cache = kernel_cache(function)
    if cache is not None:
        compiled._cache = cache
    return cast(Callable[..., Any], compiled)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on its first call, releasing the GIL while it runs; C rules for division, no bounds checks."""
    return _compile(function, python_calls_it=True)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `kernel`, for functions that only kernels call: without an entrance from Python they compile a quarter faster."""
    return _compile(function, python_calls_it=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `inner`, pasted into its callers: for short loops over an array, which cost less than passing the array."""
    return _compile(function, python_calls_it=False, inline="always")


def entry_point(compiled: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """Return a kernel for arguments of exactly the types of ``examples``.

    A call from Python spends more time on the types of its arguments than a small kernel takes.  Here they are looked up once,
    so the caller promises them: arguments of other types would be misread.
    """
    if JIT_DISABLED:
        return compiled
    types = tuple(numba.typeof(example) for example in examples)
    dispatcher = cast(Any, compiled)
    dispatcher.compile(types)
    return cast(Callable[..., Any], dispatcher.overloads[types].entry_point)
