"""Files of ours: an ``.npz`` archive of plain arrays and one JSON text, written whole or not at all; no pickle is ever read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from archie_env.errors import ArchieError
from archie_env.files import atomic_write
from archie_env.rules import Rules, as_rules


class HasRules(Protocol):
    """A player that knows what it plays."""

    rules: Rules


Player = TypeVar("Player", bound=HasRules)


def found(meta: Mapping[str, Any], name: str) -> str:
    """What ``meta`` says under a name, for an error message."""
    return repr(meta[name])[:200] if name in meta else "is missing"


def rules_of(meta: Mapping[str, Any]) -> Rules:
    """The rules in the ``meta`` of a file of ours; raises `ArchieError` where there are none, or none that can be played."""
    if not isinstance(meta.get("rules"), dict):
        raise ArchieError(f"rules {found(meta, 'rules')}: expected a table of rule options")
    try:
        return Rules.from_dict(meta["rules"])
    except ArchieError:
        raise
    except (TypeError, ValueError) as error:
        raise ArchieError(f"rules {found(meta, 'rules')}: {error}: expected a table of rule options") from None


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of arrays, their names, types and shapes."""
    seen = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        seen.update(f"{name} {array.dtype.str} {array.shape}".encode())
        seen.update(array.tobytes())
    return seen.hexdigest()


def write_archive(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], compressed: bool = False
) -> None:
    """Write arrays and a JSON-able ``meta`` as ``.npz``, whole or not at all; raises `ArchieError` naming the file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8)
    write = np.savez_compressed if compressed else np.savez
    members = {"meta": text, **arrays}
    atomic_write(path, lambda file: write(file, **members))  # type: ignore[arg-type]  # the stub takes no keyword arrays


def read_archive(path: str | Path, form: str, version: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the ``meta`` of a file of `write_archive`, refused unless it is whole and of this form and version."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        kind = meta["format"], meta["version"]
    except FileNotFoundError:
        raise ArchieError(f"{path}: no such file, expected one of {form!r}") from None
    except Exception as error:  # a damaged archive fails in more ways than NumPy, zipfile and json say
        raise ArchieError(f"{path}: not a whole file of {form!r} ({type(error).__name__}: {error})") from None
    if kind != (form, version):
        raise ArchieError(f"{path}: {kind[0]!r} version {kind[1]!r}, expected {form!r} version {version}")
    return arrays, meta


def load_player(
    path: str | Path,
    form: str,
    version: int,
    rules: Rules | str | None,
    make: Callable[[dict[str, NDArray[Any]], dict[str, Any]], Player],
    verb: str = "trained",
) -> Player:
    """A player from a file of this form.

    Args:
        path: what `write_archive` wrote.
        form: what its ``meta`` has to say it is.
        version: of that form.
        rules: what will be played; the file must be for the same.  None takes the file's.
        make: the player of the file's arrays and ``meta``; what it raises is told with the path.
        verb: what was done for the file's rules.

    Raises:
        ArchieError: for a file that is not ours, broken, of another version or for other rules.
    """
    wanted = None if rules is None else as_rules(rules)
    arrays, meta = read_archive(path, form, version)
    try:
        player = make(arrays, meta)
    except ArchieError as error:
        raise ArchieError(f"{path}: {error}") from None
    if wanted is not None and wanted != player.rules:
        raise ArchieError(f"{path}: {verb} for rules {player.rules.name}, expected {wanted.name}")
    return player
