"""The one door to Numba: ``kernel`` compiles a function and keeps its machine code on disk.

Numba's own cache looks only at the file that defines a function, so a kernel that *calls* an edited kernel of another file
would run stale code.  Here the cache folder is named after a digest of every source file a kernel could
call; an edit anywhere starts a fresh folder.  Where no folder is writable, kernels compile anew in each process.

``NUMBA_DISABLE_JIT=1`` runs every kernel as ordinary Python; ``NUMBA_CACHE_DIR`` moves the cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numba
import numpy as np
from numba.core import config

JIT_DISABLED = bool(config.DISABLE_JIT)
"""True when kernels run as ordinary Python (``NUMBA_DISABLE_JIT=1``)."""

_KEPT_CACHES = 8  # older digests are removed, so that an edited checkout does not fill the disk
_HERE = Path(__file__).resolve().parent


def _cache_root() -> Path:
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or str(Path.home() / ".cache")
    return Path(base) / "archie_env"


@functools.cache
def _digest(roots: tuple[Path, ...]) -> str:
    """A name for the sources under ``roots`` and for what else decides the machine code."""
    seen = hashlib.sha256(f"{numba.__version__} {np.__version__} {config.BOUNDSCHECK}".encode())
    for root in roots:
        for source in sorted(root.rglob("*.py")):
            seen.update(str(source.relative_to(root)).encode())
            seen.update(source.read_bytes())
    return seen.hexdigest()[:16]


@functools.cache
def _cache_folder(roots: tuple[Path, ...]) -> str | None:
    """A writable folder for these sources, or None."""
    root = _cache_root()
    folder = root / _digest(roots)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        os.utime(folder)
        caches = sorted((p for p in root.iterdir() if len(p.name) == 16), key=lambda p: p.stat().st_mtime)
        for old in caches[:-_KEPT_CACHES]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return None
    return str(folder)


@functools.cache
def _roots_of_file(file: str) -> frozenset[Path]:
    """The folder whose sources name the cache of kernels in ``file``: the engine, or the file's own top-level package."""
    folder = Path(file).resolve().parent
    if folder.is_relative_to(_HERE.parent):  # the engine's callers in archie_env define no kernels for one another
        return frozenset((_HERE,))
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return frozenset((folder,))


def _source_roots(function: Callable[..., Any]) -> tuple[Path, ...]:
    """The folders a kernel of this function could call into: its own package, and those of the kernels its module imports."""
    roots = {_HERE, *_roots_of_file(function.__code__.co_filename)}
    for value in function.__globals__.values():
        parts = vars(value).values() if isinstance(value, ModuleType) else (value,)
        for part in parts:
            callee = getattr(part, "py_func", None)
            if callee is not None and callee.__globals__ is not function.__globals__:
                roots |= _roots_of_file(callee.__code__.co_filename)
    return tuple(sorted(roots))


def _compile(function: Callable[..., Any], python_calls_it: bool, inline: str = "never") -> Callable[..., Any]:
    if JIT_DISABLED:

        @functools.wraps(function)
        def plain(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):  # unsigned 64-bit arithmetic wraps by design
                return function(*arguments)

        return plain
    folder = _cache_folder(_source_roots(function))
    users_choice, config.CACHE_DIR = config.CACHE_DIR, folder or ""
    try:
        compiled = numba.njit(
            cache=folder is not None,
            nogil=True,
            error_model="numpy",
            no_cfunc_wrapper=True,
            no_cpython_wrapper=not python_calls_it,
            inline=inline,
        )(function)
    finally:
        config.CACHE_DIR = users_choice
    return cast(Callable[..., Any], compiled)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on its first call, releasing the GIL while it runs; C rules for division, no bounds checks."""
    return _compile(function, python_calls_it=True)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `kernel`, for what only kernels call: without an entrance from Python it compiles a quarter faster."""
    return _compile(function, python_calls_it=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `inner`, pasted into its callers: for short loops over an array, whose passing costs more than they do."""
    return _compile(function, python_calls_it=False, inline="always")


def entry_point(compiled: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """A kernel for arguments of exactly the types of ``examples``.

    Finding out the types of its arguments costs a call from Python more than a small kernel takes.  Here it is done once, so
    the caller promises them: arguments of other types would be misread.
    """
    if JIT_DISABLED:
        return compiled
    types = tuple(numba.typeof(example) for example in examples)
    dispatcher = cast(Any, compiled)
    dispatcher.compile(types)
    return cast(Callable[..., Any], dispatcher.overloads[types].entry_point)
