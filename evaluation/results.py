"""Results in files: written whole or not at all, and places that can't be written to told before anything is measured."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from archie_env.errors import ArchieError


def write_text(path: Path, text: str) -> None:
    """Write beside the place and then move there, so that a reader never finds half a file.

    Raises:
        ArchieError: naming the file, if it can't be written.
    """
    part = _beside(path)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _refused(path, error) from None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """As `write_text`, plain values as JSON."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def check_file(path: Path | None) -> None:
    """Raise `ArchieError` for a file that could not be written, which is better known before hours of play than after."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise ArchieError(f"{path}: is a folder: expected a file that can be written")
        part = _beside(path)
        part.touch()
        part.unlink()
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def check_manifest(path: Path, had: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to go on with results that were made otherwise; when they were written does not matter.

    Raises:
        ArchieError: naming the file and every difference.
    """
    if differences := list(_differences(had, wanted)):
        raise ArchieError(f"{path}: the file was made otherwise: {'; '.join(differences)}")


def _differences(had: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*had, *wanted]):
        one, other = had.get(key), wanted.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(one, other, f"{prefix}{key}.")
        elif key != "written" and one != other:
            yield f"{prefix}{key} {one!r} is now {other!r}"


def read_kept(path: Path, made: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `write_json` has left there with the same ``manifest``, or None where nothing is.

    Raises:
        ArchieError: naming the file, if it was made otherwise or can't be read.
    """
    if not path.exists():
        return None
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        check_manifest(path, values["manifest"], made)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ArchieError):
            raise
        raise ArchieError(f"{path}: not a file of results ({type(error).__name__}: {error}); remove it to go on") from None
    return values


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _refused(path: Path, error: Exception) -> ArchieError:
    return ArchieError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a file that can be written")
