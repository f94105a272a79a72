"""Result files: their manifest, checks of values that are read, and files that a command resumes.

A result file is a JSON object with a ``manifest``, the flag ``finished``, and the values of its report.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from agents import weights_file
from agents.archive import digest
from agents.process import BotPlayer, program_hash
from archie_env import __version__
from archie_env.errors import ArchieError, described, shown
from archie_env.files import atomic_write, check_writable, is_special
from archie_env.policy import Policy, registered_policies
from archie_env.rules import Rules, as_rules

WRITE_EVERY: Final = 2.0
"""Seconds between two writings of an unfinished result."""
Model = TypeVar("Model", bound=BaseModel)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write plain values as JSON, whole or not at all; raises `ArchieError` naming the file."""
    atomic_write(path, json.dumps(values, indent=1) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that has a ``manifest``; raises `ArchieError` naming the file for any other file."""
    try:
        if is_special(path):
            raise ArchieError("not a plain file")
        values = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(values, dict) or not isinstance(values.get("manifest"), dict):
            raise ArchieError("no manifest")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or described(error, place=False)
        raise ArchieError(f"{path}: not a file of results ({reason}): choose another file, or delete it") from None
    return values


@contextlib.contextmanager
def reading(path: Path | None) -> Iterator[None]:
    """Name the file in an `ArchieError` about values that were read from it."""
    try:
        yield
    except ArchieError as error:
        raise ArchieError(f"{path}: not a file of results ({error})") from None


def check_new(path: Path | None) -> None:
    """Raise `ArchieError` for a file that can't be written or that holds anything: a command without --resume would lose it."""
    check_writable(path)
    if path is not None and not is_special(path) and path.exists() and path.stat().st_size:
        raise ArchieError(f"{path}: is not empty: expected another file, or that it be deleted")


PICTURE_MARK: Final = "archie-env"
"""The text ``Software`` in every picture that is drawn here."""


def check_picture(path: Path) -> None:
    """Raise `ArchieError` unless a file is a PNG that `evaluation.plotting` drew."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or b"tEXtSoftware\0" + PICTURE_MARK.encode() not in head:
        raise ArchieError("no picture of archie-env")


def check_text(path: Path, beginning: str) -> None:
    """Raise `ArchieError` unless the first 4,096 letters of a text match a regular expression."""
    with path.open(encoding="utf-8", newline="") as file:
        head = file.read(4096)
    if not re.match(beginning, head):
        raise ArchieError(f"begins with {shown(head, 40)}")


def check_values(path: Path, names: Iterable[str]) -> None:
    """Raise `ArchieError` unless a file is a JSON object that has values of these names."""
    values = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(values, dict):
        raise ArchieError("no JSON object")
    if missing := [name for name in names if name not in values]:
        raise ArchieError(f"a JSON object without {', '.join(missing)}")


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters")
    return text


Line = Annotated[str, AfterValidator(_line)]
"""A text that is printed as part of a line, so that it can't move a cursor."""


class Form(BaseModel):
    """Base of the forms that values of a file are checked against: every number finite and of its type, nothing converted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def checked(model: type[Model], values: object) -> Model:
    """Validate values read from a file.

    Raises:
        ArchieError: naming the first value that the model refuses.
    """
    try:
        return model.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = shown(".".join(map(str, first["loc"])) or "values").strip("'")
        reason = shown(first["msg"].removeprefix("Value error, "), 400)[1:-1]
        raise ArchieError(f"{where} {shown(first['input'])}: {reason}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ArchieError(f"not plain values ({type(error).__name__}: {error})") from None


def weights_hash(name: str, policy: Policy | None = None) -> str | None:
    """Return the SHA-256 of the file that a policy was loaded from, or None.

    The file is the shipped one of that name, ``PATH`` of ``ppo:PATH``, the module of ``module:Name``, or the policy's ``path``.
    A policy without a file whose ``weights`` are arrays by name is hashed by these.  Of ``bot:COMMAND`` the program, its
    script and the files of ``--hash`` are hashed; after the hash stands the name that the bot gives itself.

    Raises:
        ArchieError: if the file can't be read.
    """
    kind, colon, path = name.partition(":")
    if f"{kind}{colon}" == "bot:":
        called = policy.bot.called if isinstance(policy, BotPlayer) else ""
        return f"{program_hash(path)} {called}".rstrip()
    module = sys.modules.get(kind) if colon and f"{kind}:" not in registered_policies() else None
    files = [module and getattr(module, "__file__", None), weights_file(name), getattr(policy, "path", None), path or None]
    found = [Path(file) for file in files[:2] if file] or [Path(file) for file in files[2:] if file and Path(file).is_file()]
    if found:
        try:
            return hashlib.sha256(found[0].read_bytes()).hexdigest()
        except OSError as error:
            raise ArchieError(f"agent {name!r}: {error.strerror or error}: {found[0]}") from None
    weights = getattr(policy, "weights", None)
    return digest(weights) if isinstance(weights, Mapping) else None


def versions() -> dict[str, str]:
    """Return the versions of Python and the packages that a result depends on."""
    found = {"archie-env": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "torch"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def rules_hash(rules: Rules | str) -> str:
    """Return the SHA-256 of all options, which changes if a preset changes its meaning."""
    return hashlib.sha256(json.dumps(as_rules(rules).to_dict(), sort_keys=True).encode()).hexdigest()


def manifest(
    agents: Sequence[str], rules: Rules | str, *, weights: Sequence[str | None] | None = None, **conditions: Any
) -> dict[str, Any]:
    """Return everything that a result depends on.

    Args:
        agents: names of the players.
        rules: a preset's name or a `Rules` value.
        weights: see `weights_hash`; None hashes by name.
        conditions: plain values such as deals and seed.
    """
    return {
        "agents": list(agents),
        "weights": [weights_hash(name) for name in agents] if weights is None else list(weights),
        "rules": as_rules(rules).name,
        "rules_hash": rules_hash(rules),
        **conditions,
        "versions": versions(),
        "machine": platform.machine(),
    }


def check_manifest(path: Path, had: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to continue results of another manifest; the time of writing is ignored.

    Raises:
        ArchieError: naming the file and every difference.
    """
    if differences := list(_differences(had, json.loads(json.dumps(wanted)))):
        raise ArchieError(f"{path}: its manifest differs: {'; '.join(differences)}")


def _differences(had: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*had, *wanted]):
        one, other = had.get(key), wanted.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(one, other, f"{prefix}{key}.")
        elif key != "written" and one != other:
            yield f"{shown(prefix + key)[1:-1]} {shown(one)} is now {shown(other)}"


class ResultFile:
    """The file of one result, which is rewritten while the result grows and can be resumed.

    Args:
        path: the file; None keeps nothing.  A FIFO or device is written once, when the result is finished, and never read.
        made: the `manifest`.
        every: seconds between two writings.
    """

    def __init__(self, path: Path | None, made: Mapping[str, Any], every: float = WRITE_EVERY) -> None:
        self.path, self.manifest, self._every = path, dict(made), every
        self._written = -math.inf
        self._unfinished: Callable[[], Mapping[str, Any]] | None = None

    def read(self, resume: bool = True) -> dict[str, Any] | None:
        """Return the values to continue from, or None if there are none yet.

        Raises:
            ArchieError: for a file that can't be written, that is not a result, that has another manifest, or that would be
                overwritten because ``resume`` is false.
        """
        path = self.path
        check_writable(path)
        if path is None or is_special(path) or not path.exists():
            return None
        if not resume and path.stat().st_size == 0:
            return None
        values = read_json(path)
        if not resume:
            state = "a finished result" if values.get("finished", True) else "an unfinished result"
            raise ArchieError(f"{path}: holds {state}: expected --resume, another file, or that it be deleted")
        check_manifest(path, values["manifest"], self.manifest)
        return values

    def keep(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """Write ``values()`` as an unfinished result, unless the last writing was less than ``every`` seconds ago."""
        self._unfinished = values
        if self.path is not None and time.monotonic() - self._written >= self._every:
            self.write(values(), finished=False)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Write what `keep` was last given if an exception, such as that of Ctrl-C, ends the block."""
        try:
            yield
        except BaseException:
            if self._unfinished is not None:
                self.write(self._unfinished(), finished=False)
            raise

    def write(self, values: Mapping[str, Any], finished: bool = True) -> None:
        """Write now; raises `ArchieError` naming the file."""
        if self.path is None or (is_special(self.path) and not finished):
            return
        self._written = time.monotonic()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_json(self.path, {"manifest": self.manifest | {"written": stamp}, "finished": finished, **values})


def check_resumed(folder: Path, resume: bool) -> None:
    """Raise `ArchieError` for a folder that holds results already, unless they are to be resumed."""
    if not resume and (found := list(folder.glob("*.json"))):
        count = f"{len(found)} result{'s' * (len(found) != 1)}"
        raise ArchieError(f"{folder}: holds {count}; resume to continue from there, or choose another folder")


class ResultFolder:
    """Results of one manifest in a folder, each in a file of its own, so that a run can be resumed after the last whole one.

    Args:
        path: a folder that exists; None keeps nothing.
        made: the `manifest` of every file.
        resume: continue from the files in the folder, instead of refusing a folder that holds some.
    """

    def __init__(self, path: Path | None, made: Mapping[str, Any], resume: bool) -> None:
        self.path, self.manifest = path, dict(made)
        if path is not None:
            check_resumed(path, resume)

    def place(self, name: str, end: str) -> Path | None:
        """Path of the file of a result, or of something beside it; None if nothing is kept."""
        if self.path is None:
            return None
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[-80:]
        if plain != name:  # different names may have the same plain form
            plain += f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.path / f"{plain}{end}"

    def file(self, name: str, end: str = ".json") -> ResultFile:
        """Return the file of a result."""
        return ResultFile(self.place(name, end), self.manifest)

    def read(self, name: str, check: Callable[[dict[str, Any]], object], end: str = ".json") -> dict[str, Any] | None:
        """Return the values of a result, or None; raises `ArchieError` if its manifest differs or ``check`` refuses them."""
        file = self.file(name, end)
        values = file.read()
        if values is not None:
            try:
                check(values)
            except ArchieError as error:
                raise ArchieError(f"{file.path}: not a result of this command ({error}); delete it to make it again") from None
        return values
