"""Machine code of kernels on disk: checked when it is read, and never a reason to fail.

Numba's own cache looks only at the file that defines a function, so a kernel that *calls* an edited kernel of another file
would run stale code.  Here a folder is named after a digest of every source file whose code a kernel could contain; an edit
to any of them starts another folder.  A file holds one kernel for one signature behind a hash of its bytes.  Whatever cannot
be read or written (no home, a full or read-only disk, a damaged file, a folder that is gone) is compiled anew, in memory.

Layout: ``ROOT/archie-env-kernels/<digest>/<module>.<function>-<line>.<hash>.kernel``, and a ``CACHEDIR.TAG`` in each folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_HERE = Path(__file__).resolve().parent
_STDLIB = sysconfig.get_path("stdlib")
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# Compiled kernels of archie-env, safe to remove\n"  # bford.info/cachedir
)
_HASH_BYTES = 32
_DAY = 24 * 3600
_KEPT_DAYS = 30  # folders unused for longer are removed
_KEPT_FOLDERS = 128  # so that an edited checkout does not fill the disk; those used within a day stay in any case


def _root() -> Path | None:
    """The folder that holds all of ours, or None where the user has no place for caches."""
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return Path(base or Path.home() / ".cache") / "archie-env-kernels"
    except RuntimeError:  # neither HOME nor an entry in the password file
        return None


def _digest(sources: tuple[Path, ...]) -> str:
    """A name for these sources and for everything else that decides the machine code."""
    versions = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__, config.BOUNDSCHECK
    seen = hashlib.sha256(repr(versions).encode())
    for source in sources:
        seen.update(source.name.encode())
        seen.update(source.read_bytes())
    return seen.hexdigest()[:16]


_IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.MULTILINE)


def _sources(file: str) -> tuple[Path, ...]:
    """The sources that decide the machine code of kernels in ``file``: the engine's, and all of our files that it imports.

    Read from the text of the import statements, because values that kernels freeze (numbers, dtypes) carry no origin.
    """
    found = {Path(__file__).resolve(), *_HERE.glob("*.py")}
    waiting = [Path(file).resolve()]
    while waiting:
        source = waiting.pop()
        if source in found or source.is_relative_to(_HERE.parent):
            continue  # outside of `_core`, archie_env defines nothing that kernels read
        found.add(source)
        for package, names, module in _IMPORT.findall(source.read_text(encoding="utf-8", errors="replace")):
            for name in (package or module, *(f"{package}.{part}" for part in re.findall(r"\w+", names) if package)):
                imported = getattr(sys.modules.get(name), "__file__", None)
                if imported and "site-packages" not in imported and not imported.startswith(_STDLIB):
                    waiting.append(Path(imported).resolve())
    return tuple(sorted(found))


@functools.cache
def _folder(file: str) -> Path | None:
    """The folder for kernels of a source file, which need not exist; None if there is no root or no readable source."""
    try:
        root = _root()
        folder = root and root / _digest(_sources(file))
    except OSError:  # compiled from a zip file, a notebook or a string
        return None
    if folder is not None:
        with contextlib.suppress(OSError):
            os.utime(folder)  # in use; see `_remove_old`
    return folder


def _make(folder: Path) -> None:
    """Make a folder of ours, and make room for it."""
    if (folder / _TAG).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _TAG).write_text(_TAG_TEXT)
    _remove_old(folder.parent)


def _is_ours(folder: Path) -> bool:
    tag = folder / _TAG
    return tag.is_file() and tag.read_bytes() == _TAG_TEXT.encode()


def _remove_old(root: Path) -> None:
    """Remove folders that nobody has used for long, and the oldest beyond a number.

    Only files that this module writes, in folders with its mark, are ever removed.  A process that has one of them open only
    compiles again what it had not yet loaded.
    """
    used = {folder: folder.stat().st_mtime for folder in root.iterdir() if _is_ours(folder)}
    now = time.time()
    for place, folder in enumerate(sorted(used, key=lambda folder: -used[folder])):
        age = now - used[folder]
        if age < _DAY or (age < _KEPT_DAYS * _DAY and place < _KEPT_FOLDERS):
            continue
        with contextlib.suppress(OSError):  # another process removes it too, or somebody keeps other files there
            for file in (*folder.glob("*.kernel"), *folder.glob("*.kernel.*.tmp"), folder / _TAG):
                file.unlink(missing_ok=True)
            folder.rmdir()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function, with one checked file for each signature and no index to share between processes."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_func, self._folder = function, folder
        code = function.__code__
        self._name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}".replace("<locals>", "local")

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr(self._index_key(signature, codegen)).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}.{key}.kernel"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None if it has to be compiled."""
        target_context.refresh()
        try:
            stored = self._file(sig, target_context.codegen()).read_bytes()
            code = memoryview(stored)[_HASH_BYTES:]
            if hashlib.sha256(code).digest() == stored[:_HASH_BYTES]:
                return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # missing, unreadable, or made by something else: whatever it is, it can be compiled
            pass
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function where that is possible."""
        if data.library.has_dynamic_globals:  # addresses of this process
            return
        file = self._file(sig, data.codegen)
        partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.tmp")  # of one writer: processes start at the same time
        with contextlib.suppress(OSError):
            _make(self._folder)
            code = dumps(data._reduce())
            try:
                partial.write_bytes(hashlib.sha256(code).digest() + code)
                partial.replace(file)
            finally:
                partial.unlink(missing_ok=True)


def kernel_cache(function: Callable[..., Any]) -> KernelCache | None:
    """The cache of a function, or None where kernels can't be kept."""
    folder = _folder(function.__code__.co_filename)
    return None if folder is None else KernelCache(function, folder)
