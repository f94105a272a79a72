"""The project's file format: an ``.npz`` archive of plain arrays and one JSON text, written atomically.

Files may come from strangers.  Pickles are never read, and no array is read before the names, types and declared sizes of all
arrays have been checked.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, Final, NamedTuple, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from archie_env.errors import ArchieError, described, shown
from archie_env.files import atomic_write, check_replaceable
from archie_env.rules import Rules, as_rules

MOST_BYTES: Final = 1 << 29
"""Maximum size of the arrays of an archive in bytes, unless its form sets another limit or the file itself is larger."""
_MOST_META: Final = 1 << 24
_MOST_MEMBERS: Final = 4096

Arrays = dict[str, NDArray[Any]]
Meta = dict[str, Any]


class Header(NamedTuple):
    """The declared shape and type of an array that has not been read yet."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{shown(self.shape, 60)} of type {self.dtype}"


Check = Callable[[Mapping[str, Header], Meta], None]
"""Raises `ArchieError` unless the headers and the ``meta`` of an archive are valid for its form."""


def found(meta: Mapping[str, Any], name: str) -> str:
    """Format the value of a key of ``meta`` for an error message."""
    return shown(meta[name], 200) if name in meta else "is missing"


def check_names(headers: Mapping[str, object], expected: Mapping[str, object], whole: str) -> None:
    """Raise `ArchieError` unless the archive has the expected arrays and no others."""
    for name in expected:
        if name not in headers:
            raise ArchieError(f"{name} is missing: expected {whole}")
    for name in headers:
        if name not in expected:
            raise ArchieError(f"unknown array {shown(name)}: expected {', '.join(expected)}")


def rules_of(meta: Mapping[str, Any]) -> Rules:
    """Read the rules in the ``meta`` of a file; raises `ArchieError` if they are missing or invalid."""
    if not isinstance(meta.get("rules"), dict):
        raise ArchieError(f"rules {found(meta, 'rules')}: expected a table of rule options")
    try:
        return Rules.from_dict(meta["rules"])
    except ArchieError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ArchieError(
            f"rules {found(meta, 'rules')}: {described(error, place=False)}: expected a table of rule options"
        ) from None


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays with their names, types and shapes."""
    seen = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        seen.update(f"{name} {array.dtype.str} {array.shape}".encode())
        seen.update(array.reshape(-1).view(np.uint8).data)
    return seen.hexdigest()


def write_archive(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], compressed: bool = False
) -> None:
    """Write arrays and a JSON-serialisable ``meta`` as ``.npz``, atomically; raises `ArchieError` naming the file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8)
    write = np.savez_compressed if compressed else np.savez
    members = {"meta": text, **arrays}
    atomic_write(path, lambda file: write(file, **members))  # type: ignore[arg-type]  # the stub takes no keyword arrays


def read_archive(
    path: str | Path, form: str, version: int, check: Check | None = None, most: int = MOST_BYTES
) -> tuple[Arrays, Meta]:
    """Read a file of `write_archive`.

    Args:
        path: a regular file.
        form: the ``format`` that its ``meta`` must name.
        version: of that form.
        check: called with the headers and the ``meta`` before any array is read.
        most: maximum size of the arrays in bytes, unless the file itself is larger.

    Returns:
        The arrays and the ``meta``.

    Raises:
        ArchieError: for a file that is damaged, of another form or version, or too large; errors of ``check`` pass through.
    """
    try:
        with _opened(path) as file, zipfile.ZipFile(file) as archive:
            headers = _read_headers(archive, max(most, os.fstat(file.fileno()).st_size))
            meta = _read_meta(archive, headers)
            kind = meta["format"], meta["version"]
            if kind != (form, version):
                name, number = map(shown, kind)
                raise ArchieError(f"{name} version {number}, expected {form!r} version {version}")
            if check is not None:
                check(headers, meta)
            return {name: _read_array(archive, name) for name in headers}, meta
    except FileNotFoundError:
        raise ArchieError(f"{path}: no such file, expected one of {form!r}") from None
    except ArchieError as error:
        raise type(error)(f"{path}: {str(error)[:1000]}") from None
    except Exception as error:  # a damaged archive fails in more ways than NumPy, zipfile and json document
        raise ArchieError(f"{path}: not a whole file of {form!r} ({described(error, place=False)})") from None


def check_form(path: str | Path, form: str) -> None:
    """Raise `ArchieError` unless a file names this form, in whatever version; no array but its ``meta`` is read.

    Other errors of a damaged file are raised as they are.
    """
    with _opened(path) as file, zipfile.ZipFile(file) as archive:
        meta = _read_meta(archive, _read_headers(archive, max(MOST_BYTES, os.fstat(file.fileno()).st_size)))
    if meta.get("format") != form:
        raise ArchieError(f"format {found(meta, 'format')}: expected {form!r}")


def check_archives(folder: Path, **forms: str) -> None:
    """Raise `ArchieError` if writing these archives into a folder would lose a file of another form.

    Args:
        folder: of the archives.
        forms: form of each archive, by its name without ``.npz``.
    """
    for name, form in forms.items():
        check_replaceable(folder / f"{name}.npz", partial(check_form, form=form))


def _opened(path: str | Path) -> IO[bytes]:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ArchieError("a folder, pipe or device: expected a regular file")  # opening a pipe would wait for a writer
    return open(path, "rb")


def _read_headers(archive: zipfile.ZipFile, most: int) -> dict[str, Header]:
    """Return the headers by name of array; refuses any member that `write_archive` would not write."""
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    if len(members) > _MOST_MEMBERS or total > most:
        raise ArchieError(
            f"{len(members):,} arrays of {total:,} bytes: expected at most {_MOST_MEMBERS:,} arrays and {most:,} bytes"
        )
    headers: dict[str, Header] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in headers:
            raise ArchieError(f"member {shown(member.filename)}: expected arrays of different names, ending with .npy")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchieError(f"member {shown(member.filename)}: expected stored or deflated data")
        with archive.open(member) as file:
            headers[name] = _read_header(file, member)
    return headers


def _read_header(file: IO[bytes], member: zipfile.ZipInfo) -> Header:
    if np.lib.format.read_magic(file) != (1, 0):  # later versions are for headers that plain arrays do not have
        raise ArchieError(f"member {shown(member.filename)}: expected an array of format 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    header = Header(shape, dtype)
    if dtype.kind not in "biuf" or min(shape, default=0) < 0:
        raise ArchieError(f"{shown(member.filename)} {header}: expected an array of numbers")
    if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
        raise ArchieError(f"{shown(member.filename)} {header}: expected a member of that size, not {member.file_size:,} bytes")
    return header


def _read_meta(archive: zipfile.ZipFile, headers: dict[str, Header]) -> Meta:
    shape, dtype = headers.pop("meta")
    if dtype != np.uint8 or math.prod(shape) > _MOST_META:
        raise ArchieError(f"meta of {math.prod(shape):,} {dtype}: expected at most {_MOST_META:,} bytes of JSON")
    meta = json.loads(_read_array(archive, "meta").tobytes())
    if not isinstance(meta, dict):
        raise ArchieError(f"meta {shown(meta)}: expected a JSON table")
    return meta


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous view that can't be written to."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


class FilePolicy:
    """A base for players that are read from files and do not change: copies share their arrays, pickles name the file.

    A pickle holds the path, the SHA-256 of the file and the rules as long as the file is there and unchanged, and all arrays
    otherwise.
    """

    rules: Rules
    name: str
    _own: ClassVar[tuple[str, ...]] = ("name",)
    """Attributes that copies and pickles carry besides the contents of the file."""
    _file: _File | None = None

    @classmethod
    def load(cls, path: str | Path, rules: Rules) -> Self:
        """Read a player from its file."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        file = self._file
        if file is None or not file.unchanged():
            return self._by_value(protocol)
        own = {name: self.__dict__[name] for name in self._own if name in self.__dict__}
        return _reopened, (type(self), file.path, file.digest, self.rules), own

    def _by_value(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol)


Version = tuple[int, ...] | None
"""Of a file: device, inode, bytes and time, which a replaced or rewritten file does not share; None where there is no file."""


def version_of(path: str | Path) -> Version:
    """The version of a file, to be looked up before the file is read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _File(NamedTuple):
    path: str
    digest: str
    version: Version

    def unchanged(self) -> bool:
        return version_of(self.path) == self.version


_OPEN: Final[WeakValueDictionary[tuple[type, str, Rules], Any]] = WeakValueDictionary()
"""Players in memory by class, SHA-256 of their file and rules, so that pickles read in one process share them too."""


def note_file(player: FilePolicy, path: str | Path, version: Version) -> None:
    """Note the file of a player, unless it is no longer the one of that version, which the player was read from."""
    try:
        digest = _file_digest(path)
    except OSError:
        return
    file = _File(os.path.abspath(path), digest, version)
    if file.unchanged():
        player._file = file
        _OPEN[type(player), digest, player.rules] = player


def _file_digest(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reopened(kind: type[FilePolicy], path: str, expected: str, rules: Rules) -> FilePolicy:
    player: FilePolicy | None = _OPEN.get((kind, expected, rules))
    if player is None:
        try:
            found = _file_digest(path)
        except OSError as error:
            found = f"no file ({error.strerror})"
        if found == expected:
            player = kind.load(path, rules)
        if player is None or player._file is None or player._file.digest != expected:
            raise ArchieError(
                f"{path}: changed since this player was pickled: expected a file of SHA-256 {expected}, found {found}"
            )
    return copy.copy(player)


Player = TypeVar("Player", bound=FilePolicy)


def load_player(
    path: str | Path,
    form: str,
    version: int,
    rules: Rules | str | None,
    make: Callable[[Arrays, Meta], Player],
    check: Check,
    verb: str = "trained",
) -> Player:
    """Read a player from a file.

    Args:
        path: a file of `write_archive`.
        form: the ``format`` that its ``meta`` must name.
        version: the version of that format.
        rules: the rules of the game, which must equal those of the file; None takes those of the file.
        make: makes the player from the arrays and the ``meta``; the path is added to its errors.
        check: see `read_archive`.
        verb: for the error message: ``trained`` or ``solved`` for rules.

    Raises:
        ArchieError: for a file that is damaged, of another form or version, or for other rules.
    """
    wanted = None if rules is None else as_rules(rules)
    now = version_of(path)
    arrays, meta = read_archive(path, form, version, check)
    try:
        player = make(arrays, meta)
    except ArchieError as error:
        raise ArchieError(f"{path}: {str(error)[:1000]}") from None
    if wanted is not None and wanted != player.rules:
        raise ArchieError(f"{path}: {verb} for rules {player.rules.name}, expected {wanted.name}")
    note_file(player, path, now)
    return player
