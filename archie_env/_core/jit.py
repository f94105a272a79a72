"""The one door to Numba: ``kernel`` compiles a function and keeps its machine code on disk.

Numba's own cache looks only at the file that defines a function, so a kernel that *calls* an edited kernel of another file
would run stale code.  Here the cache folder is named after a digest of every source file whose code a kernel could
contain; an edit to any of them starts a fresh folder.  Where no folder is writable, kernels compile anew in each process.

``NUMBA_DISABLE_JIT=1`` runs every kernel as ordinary Python; ``NUMBA_CACHE_DIR`` moves the cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
from numba.core import config

JIT_DISABLED = bool(config.DISABLE_JIT)
"""True when kernels run as ordinary Python (``NUMBA_DISABLE_JIT=1``)."""

_KEPT_CACHES = 64  # older digests are removed, so that an edited checkout does not fill the disk
_HERE = Path(__file__).resolve().parent
_STDLIB = sysconfig.get_path("stdlib")


def _cache_root() -> Path:
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or str(Path.home() / ".cache")
    return Path(base) / "archie_env"


@functools.cache
def _digest(sources: tuple[Path, ...]) -> str:
    """A name for these sources and for what else decides the machine code."""
    seen = hashlib.sha256(f"{numba.__version__} {np.__version__} {config.BOUNDSCHECK}".encode())
    for source in sources:
        seen.update(source.name.encode())
        seen.update(source.read_bytes())
    return seen.hexdigest()[:16]


@functools.cache
def _cache_folder(sources: tuple[Path, ...]) -> str | None:
    """A writable folder for these sources, or None."""
    root = _cache_root()
    folder = root / _digest(sources)
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


_IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.MULTILINE)


@functools.cache
def _sources(file: str) -> tuple[Path, ...]:
    """The sources that decide the machine code of kernels in ``file``: the engine's, and all that the file imports of ours.

    Read from the text of the import statements, as values that kernels freeze (numbers, dtypes) don't say where they come from.
    """
    found = set(_HERE.glob("*.py"))
    waiting = [Path(file).resolve()]
    while waiting:
        source = waiting.pop()
        if source in found or source.is_relative_to(_HERE.parent):
            continue  # outside of `_core`, archie_env defines nothing that kernels read
        found.add(source)
        for package, names, module in _IMPORT.findall(source.read_text(encoding="utf-8")):
            for name in (package or module, *(f"{package}.{part}" for part in re.findall(r"\w+", names) if package)):
                imported = getattr(sys.modules.get(name), "__file__", None)
                if imported and "site-packages" not in imported and not imported.startswith(_STDLIB):
                    waiting.append(Path(imported).resolve())
    return tuple(sorted(found))


def _compile(function: Callable[..., Any], python_calls_it: bool, inline: str = "never") -> Callable[..., Any]:
    if JIT_DISABLED:

        @functools.wraps(function)
        def plain(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):  # unsigned 64-bit arithmetic wraps by design
                return function(*arguments)

        return plain
    folder = _cache_folder(_sources(function.__code__.co_filename))
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
