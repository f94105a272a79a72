"""Settings of a run: frozen pydantic models, read from TOML, changed by ``--set``, and checked before the run starts.

A bad value raises one line that names the file, the key, the value and what is allowed:

>>> class Walk(Settings):
...     renamed = {"count": "steps"}
...     steps: int = Field(default=10, ge=1, le=99)
>>> Walk.from_values({"steps": 3}, "walk.toml")
Walk(steps=3)
>>> Walk.from_values({"steps": 0}, "walk.toml")
Traceback (most recent call last):
    ...
archie_env.errors.ConfigError: walk.toml: steps = 0: expected a whole number 1 to 99
>>> Walk.from_values({"count": 3}, "walk.toml")
Traceback (most recent call last):
    ...
archie_env.errors.ConfigError: walk.toml: count is called steps since version 0.2
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from archie_env.errors import ConfigError, RulesError, shown
from archie_env.rules import PRESETS, Rules

Item = TypeVar("Item")
Several = Annotated[tuple[Item, ...], Field(strict=False)]
"""A list in the file and a tuple in the model."""
AgentName = Annotated[str, Field(title="a name that agents.load takes")]
"""``title`` replaces the text after "expected" in errors if type and bounds do not describe the values."""

_TYPES: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


class Settings(BaseModel):
    """A table of a configuration file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of version 0.1 and their names now; a file with an old key is refused with the new one."""

    @classmethod
    def from_values(cls, values: Any, source: str) -> Self:
        """Validate plain values, as ``model_dump(mode="json")`` gives them; ``source`` is named in errors.

        Raises:
            ConfigError: naming the source, the key, the value and what is allowed.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            fault = _words(cls, error)
        raise ConfigError(f"{source}: {fault}")

    @classmethod
    def load(cls, path: str | Path, changes: Sequence[str] = ()) -> Self:
        """Read a TOML file in UTF-8, with changes such as ``learning.vf_coef=0.3``.

        Raises:
            ConfigError: naming the file, the key, the value and what is allowed.
        """
        try:
            values: Any = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}, expected a TOML file") from None
        except RecursionError:
            raise ConfigError(f"{path}: not TOML that can be read: tables or lists nested too deep") from None
        except ValueError as error:  # not UTF-8, not TOML, or an int of more digits than Python reads
            raise ConfigError(f"{path}: not TOML in UTF-8: {error}") from None
        for text in changes:
            _change(values, text)
        return cls.from_values(values, f"{path} with --set" if changes else str(path))


class Words(Settings):
    """The two 128-bit words of PCG64."""

    state: int = Field(ge=0, le=2**128 - 1)
    inc: int = Field(ge=0, le=2**128 - 1)


class Generator(Settings):
    """The state of a NumPy generator, as ``bit_generator.state`` has it."""

    bit_generator: Literal["PCG64"]
    state: Words
    has_uint32: int = Field(ge=0, le=1)
    uinteger: int = Field(ge=0, le=2**32 - 1)

    @classmethod
    def of(cls, generator: np.random.Generator) -> Self:
        """Read the state of a generator."""
        return cls.model_validate(generator.bit_generator.state)


def _known_rules(value: Any) -> str | dict[str, Any]:
    if not isinstance(value, (str, dict)):
        raise ValueError(f"expected one of {', '.join(PRESETS)}, or a table of rules")
    try:
        _rules(value)
    except (RulesError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)[:500]) from None
    return value


def _rules(value: str | Mapping[str, Any]) -> Rules:
    return Rules.preset(value) if isinstance(value, str) else Rules.from_dict(value)


class RunSettings(Settings):
    """A configuration of a training run."""

    rules: Annotated[str | dict[str, Any], PlainValidator(_known_rules)] = "archie"
    """The rules: a preset's name, or a table of options of `archie_env.rules.Rules`."""

    def resolved_rules(self) -> Rules:
        """Return the rules of the run."""
        return _rules(self.rules)


def differences(first: Settings, second: Settings) -> list[str]:
    """List every key whose value differs between two models of a class, with both values: ``seed = 3 and 4``."""
    one, other = (dict(_flat(settings.model_dump())) for settings in (first, second))

    def value(table: dict[str, Any], key: str) -> str:
        return shown(table[key]) if key in table else "not set"

    differing = [key for key in {**one, **other} if key not in one or key not in other or one[key] != other[key]]
    return [f"{key} = {value(one, key)} and {value(other, key)}" for key in differing]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _change(values: dict[str, Any], text: str) -> None:
    keys, value = _parse_change(text)
    table: Any = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {shown(text)}: {shown(key)} is not a table")
    table[keys[-1]] = value


def _parse_change(text: str) -> tuple[list[str], Any]:
    """Split ``section.key=value`` into a path and a value; the value is TOML, or else a string."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"--set {shown(text)}: expected key=value, such as seed=7")
    try:
        document = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):  # not TOML, or a number or depth beyond what Python reads
        document = {}
    parsed = document["value"] if len(document) == 1 else value
    return path.strip().split("."), parsed


# The words of an error


def _words(model: type[Settings], error: ValidationError) -> str:
    """Put the first error into words: the key, the value, and what is allowed."""
    first = error.errors(include_url=False)[0]
    loc, value = first["loc"], first["input"]
    if first["type"] == "extra_forbidden":
        table = _annotation(model, loc[:-1])
        if new := table.renamed.get(str(loc[-1])):
            return f"{_path(loc)} is called {'.'.join(filter(None, (_path(loc[:-1]), new)))} since version 0.2"
        return f"unknown key {shown(_path(loc))}: expected one of {', '.join(table.model_fields)}"
    if first["type"] in ("invalid_key", "string_unicode"):  # surrogates, of an argument that is not UTF-8
        return f"{shown(value)}: expected characters of Unicode"
    if first["type"] == "value_error":
        reason = str(first["ctx"]["error"])
        return reason if not loc else f"{_path(loc)} = {shown(value)}: {reason}"
    if first["type"] == "missing":
        return f"{_path(loc)} is missing: expected {_allowed(_annotation(model, loc))}"
    return f"{_path(loc) or 'configuration'} = {shown(value)}: expected {_allowed(_annotation(model, loc))}"


def _path(loc: Sequence[int | str]) -> str:
    """``("stages", 0, "seconds")`` -> ``stages[0].seconds``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{_key(key)}" for key in loc).removeprefix(".")


def _key(key: str) -> str:
    """Return a key as TOML writes it bare, or quoted and cut where it can't be bare."""
    return key if len(key) < 60 and key.replace("-", "_").isidentifier() else shown(key, 60)


def _annotation(model: Any, loc: Sequence[int | str]) -> Any:
    """Return the annotated type of the key at ``loc``."""
    found = model
    for key in loc:
        if get_origin(found) is Annotated:
            found = get_args(found)[0]
        if isinstance(found, type) and issubclass(found, Settings):
            field = found.model_fields[str(key)]
            found = Annotated[field.annotation, field]
        elif key != "[key]":  # of a table, which has no type of its own here
            found = get_args(found)[0 if get_origin(found) is tuple else 1]
    return found


def _allowed(annotation: Any) -> str:
    """Put an annotated type and its bounds into words."""
    bounds: dict[str, Any] = {}
    while get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        for extra in extras:
            bounds |= {"title": extra.title} if getattr(extra, "title", None) else {}
            for bound in getattr(extra, "metadata", ()):
                bounds |= {name: getattr(bound, name) for name in ("ge", "le", "min_length") if hasattr(bound, name)}
    if "title" in bounds:
        return str(bounds["title"])
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return f"one of {', '.join(map(repr, get_args(annotation)))}"
    if kind is tuple:
        return f"a list{' of at least one item' * bool(bounds.get('min_length'))}, each {_allowed(get_args(annotation)[0])}"
    if kind is dict or issubclass(kind, Settings):
        return "a table"
    if kind not in (int, float):
        return _TYPES[kind]
    low, high = (f"{bounds[name]:g}" if kind is float else bounds[name] for name in ("ge", "le"))
    return f"{_TYPES[kind]} {low} to {high}"
