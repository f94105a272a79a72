"""Settings of a run: frozen dataclasses filled from TOML, changed by flags, checked before anything starts.

A field says with `whole`, `real`, `flag`, `choice` or `several` what it may be; a field that is a dataclass itself is a table
of the file.  What depends on several fields is told by a method ``faults()`` of the dataclass, text by text, each
``key = value: expected ...``.  Every error names the file, the key, the value and what is allowed.

>>> @dataclass(frozen=True)
... class Walk:
...     steps: int = whole(10, 1, 99)
>>> from_values(Walk, {"steps": 3}, "walk.toml")
Walk(steps=3)
>>> from_values(Walk, {"steps": 0}, "walk.toml")
Traceback (most recent call last):
    ...
archie_env.errors.ConfigError: walk.toml: steps = 0: expected a whole number 1 to 99
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from archie_env.errors import ConfigError, RulesError
from archie_env.rules import PRESETS, Rules

Settings = TypeVar("Settings")
"""A frozen dataclass."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a value may be, and the words for it."""

    words: str
    holds: Callable[[Any], bool]


def shown(value: Any, most: int = 120) -> str:
    """A value for an error message: its ``repr``, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python prints, tables in tables in tables
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= most else f"{text[:most]}..."


def is_whole(value: Any) -> bool:
    """Whether a value is an ``int`` that is no ``bool``."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole(default: int, low: int, high: int) -> Any:
    """A whole number from ``low`` to ``high``."""
    return field(
        default=default,
        metadata={"allowed": Allowed(f"a whole number {low} to {high}", lambda v: is_whole(v) and low <= v <= high)},
    )


def real(default: float, low: float, high: float) -> Any:
    """A number from ``low`` to ``high``; whole ones are taken as floats."""
    return field(
        default=default,
        metadata={
            "allowed": Allowed(
                f"a number {low:g} to {high:g}",
                lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and low <= v <= high,
            )
        },
    )


def flag(default: bool) -> Any:
    """True or false."""
    return field(default=default, metadata={"allowed": Allowed("true or false", lambda v: isinstance(v, bool))})


def choice(default: str, *options: str) -> Any:
    """One of some words."""
    words = f"one of {', '.join(map(repr, options))}"
    return field(default=default, metadata={"allowed": Allowed(words, lambda v: isinstance(v, str) and v in options)})


def text(default: str, words: str) -> Any:
    """A word or words."""
    return field(default=default, metadata={"allowed": Allowed(words, lambda v: isinstance(v, str))})


def several(default: Sequence[Any], words: str, holds: Callable[[Any], bool]) -> Any:
    """A list of values that each hold."""
    return field(
        default=tuple(default),
        metadata={"allowed": Allowed(f"a list of {words}", lambda v: isinstance(v, (list, tuple)) and all(map(holds, v)))},
    )


RULES: Final = {"allowed": Allowed(f"one of {', '.join(PRESETS)}, or a table of rules", lambda v: isinstance(v, (str, dict)))}
"""Metadata of a field for the rules of a run; see `Played`."""


class Played:
    """A base for the configuration of a run, which has a field ``rules`` with the metadata `RULES`."""

    __slots__ = ()
    rules: str | dict[str, Any]

    def played(self) -> Rules:
        """The rules of the run."""
        return Rules.preset(self.rules) if isinstance(self.rules, str) else Rules.from_dict(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_values`."""
        plain: dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]  # only dataclasses have this base
        return plain

    def rules_faults(self) -> Iterator[str]:
        """Why these rules can't be played."""
        try:
            self.played()
        except (RulesError, TypeError, ValueError, RecursionError) as error:
            yield f"rules = {shown(self.rules)}: {str(error)[:500]}"


def tables(kind: type[Any], words: str) -> Any:
    """A list of at least one table, each a dataclass of that kind, told apart in errors as ``key[0]``."""
    allowed = Allowed(f"a list of {words}", lambda v: isinstance(v, (list, tuple)) and len(v) > 0)
    return field(default_factory=lambda: (kind(),), metadata={"allowed": allowed, "each": kind})


def from_values(kind: type[Settings], values: Any, source: str) -> Settings:
    """A dataclass from plain values, as ``dataclasses.asdict`` gives them; ``source`` is named in errors.

    Raises:
        ConfigError: naming the source, the key, the value and what is allowed.
    """
    settings = _section(kind, values, source, "")
    faults: Callable[[], Iterator[str]] | None = getattr(settings, "faults", None)
    for fault in faults() if faults else ():
        raise ConfigError(f"{source}: {fault}")
    return settings


def load(kind: type[Settings], path: str | Path, changes: Sequence[str] = ()) -> Settings:
    """A dataclass from a TOML file, with changes such as ``learning.rate=3e-4``.

    Raises:
        ConfigError: naming the file, the key, the value and what is allowed.
    """
    try:
        values: Any = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}, expected a TOML file") from None
    except RecursionError:
        raise ConfigError(f"{path}: not TOML that can be read: tables or lists nested too deep") from None
    except ValueError as error:  # no UTF-8, no TOML, or a number of more digits than Python reads
        raise ConfigError(f"{path}: not TOML: {error}") from None
    for text in changes:
        _change(values, text)
    return from_values(kind, values, f"{path} with --set" if changes else str(path))


def _change(values: dict[str, Any], text: str) -> None:
    keys, value = _parse_change(text)
    table: Any = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {shown(text)}: {shown(key)} is not a table")
    table[keys[-1]] = value


def _parse_change(text: str) -> tuple[list[str], Any]:
    """``section.key=value`` as a path and a value; the value is TOML, or text where it is none."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"--set {shown(text)}: expected key=value, such as learning.rate=3e-4")
    try:
        document = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):  # no TOML, or a number or depth beyond what Python reads
        document = {}
    parsed = document["value"] if len(document) == 1 else value
    return path.strip().split("."), parsed


def differences(first: Any, second: Any) -> list[str]:
    """Every key whose value differs between two dataclasses of a kind, with both: ``seed = 3 and 4``."""
    one, other = (dict(_flat(dataclasses.asdict(settings))) for settings in (first, second))

    def value(table: dict[str, Any], key: str) -> str:
        return shown(table[key]) if key in table else "not set"

    differing = [key for key in {**one, **other} if key not in one or key not in other or one[key] != other[key]]
    return [f"{key} = {value(one, key)} and {value(other, key)}" for key in differing]


def _section(kind: type[Settings], values: Any, source: str, prefix: str) -> Settings:
    """A dataclass from a table, every key and value checked."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{source}: {prefix.rstrip('.') or 'configuration'} = {shown(values)}: expected a table")
    known = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]  # a TypeVar can't be bound to dataclasses
    filled: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{source}: unknown key {shown(prefix + str(key))}: expected one of {', '.join(known)}")
        factory = known[key].default_factory
        if isinstance(factory, type) and dataclasses.is_dataclass(factory):
            filled[key] = _section(factory, value, source, f"{prefix}{key}.")
            continue
        allowed: Allowed = known[key].metadata["allowed"]
        if not allowed.holds(value):
            raise ConfigError(f"{source}: {prefix}{key} = {shown(value)}: expected {allowed.words}")
        if each := known[key].metadata.get("each"):
            filled[key] = tuple(_section(each, entry, source, f"{prefix}{key}[{i}].") for i, entry in enumerate(value))
            continue
        filled[key] = float(value) if known[key].type == "float" else _frozen(value)
    return kind(**filled)


def _frozen(value: Any) -> Any:
    """Lists as tuples, however deep."""
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
