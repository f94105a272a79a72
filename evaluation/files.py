"""Results in files: written whole or not at all, and places that can't be written to told before anything is measured."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
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


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _refused(path: Path, error: Exception) -> ArchieError:
    return ArchieError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a file that can be written")
