"""Results in files, with the manifest of all that they depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from archie_env.errors import ArchieError
from archie_env.files import atomic_write


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write plain values as JSON, whole or not at all; raises `ArchieError` naming the file."""
    atomic_write(path, json.dumps(value, indent=1) + "\n")


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
