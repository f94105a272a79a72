"""What a PPO run is: a frozen dataclass for each section, filled from TOML, changed by flags, checked before anything starts.

Every field is listed once, with its default, what is allowed and what it means; an unknown key lists the known ones.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archie_env.errors import ConfigError, RulesError
from archie_env.rules import PRESETS, Rules


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


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(default: int, low: int, high: int) -> Any:
    """A whole number from ``low`` to ``high``."""
    return field(
        default=default,
        metadata={"allowed": Allowed(f"a whole number {low} to {high}", lambda v: _is_whole(v) and low <= v <= high)},
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


def several(default: Sequence[Any], words: str, holds: Callable[[Any], bool]) -> Any:
    """A list of values that each hold."""
    return field(
        default=tuple(default),
        metadata={"allowed": Allowed(f"a list of {words}", lambda v: isinstance(v, (list, tuple)) and all(map(holds, v)))},
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to train; learning rate and prior anneal over it.  Whichever ends first counts."""

    decisions: int = whole(2_000_000, 1, 10**13)
    """Decisions of the learner, both seats counted."""
    seconds: float = real(0.0, 0.0, 1e9)
    """Wall time spent training, reports excluded; 0 = no limit.  A run with a limit is not reproducible."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is played between updates."""

    games: int = whole(1024, 2, 10**6)
    steps: int = whole(16, 2, 10**4)
    """Learner decisions in each game."""
    decay: float = real(0.8, 0.0, 1.0)
    """Lambda of the advantage estimates."""
    chips: float = real(8.0, 0.1, 1e4)
    """Chips that make one unit of reward."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How the network is changed."""

    rate: float = real(1.5e-3, 1e-8, 1.0)
    """Adam's learning rate at the start."""
    last_rate: float = real(0.05, 0.0, 1.0)
    """The share of it that is left at the end."""
    batch: int = whole(1024, 2, 10**7)
    """Samples in a minibatch; the last of a rollout may be smaller, but not one sample: advantages are normalised in each."""
    epochs: int = whole(1, 1, 100)
    clip: float = real(0.2, 0.01, 1.0)
    """Of the probability ratio."""
    value_weight: float = real(0.5, 0.0, 100.0)
    prior_weight: float = real(0.1, 0.0, 100.0)
    """Weight at the start of the divergence from the prior (of minus the entropy where ``network.prior`` is 0)."""
    last_prior_weight: float = real(0.05, 0.0, 1.0)
    """The share of it that is left at the end."""
    gradient_norm: float = real(0.5, 1e-3, 1e6)


@dataclass(frozen=True, slots=True)
class Network:
    """See `training.network`."""

    widths: tuple[int, ...] = several((256, 256), "whole numbers 1 to 8192", lambda v: _is_whole(v) and 1 <= v <= 8192)
    hand_features: bool = flag(True)
    slots: bool = flag(True)
    bias: float = real(1.5, 0.0, 10.0)
    prior: float = real(20.0, 0.0, 1e4)
    hidden_cards: bool = flag(True)
    """The critic sees the other's cards while training."""
    bfloat16: str = choice("auto", "auto", "on", "off")
    """Of the hidden layers while training; auto: where the processor has it."""


@dataclass(frozen=True, slots=True)
class Opponents:
    """Shares of the games by who sits across; they need not sum to 1."""

    itself: float = real(0.95, 0.0, 1.0)
    """The learner plays both seats."""
    past: float = real(0.05, 0.0, 1.0)
    """Frozen past selves, drawn anew before each rollout."""
    past_at_once: int = whole(1, 1, 64)
    """Different past selves in one rollout."""
    past_kept: int = whole(12, 1, 1000)
    past_every: int = whole(16, 1, 10**6)
    """Updates between one past self and the next."""
    named: Mapping[str, float] = field(
        default_factory=dict,
        metadata={
            "allowed": Allowed(
                "a table of names that agents.load takes and shares from 0 to 1",
                lambda v: (
                    isinstance(v, Mapping)
                    and all(isinstance(s, (int, float)) and not isinstance(s, bool) and 0 <= s <= 1 for s in v.values())
                ),
            )
        },
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What is measured and written on the way; none of it changes the training."""

    times: int = whole(4, 0, 10**4)
    """Matches against the reference agents, spread over the budget, the last at its end."""
    deals: int = whole(2048, 2, 10**8)
    """Of each match on the way, each dealt twice with seats swapped."""
    last_deals: int = whole(8192, 2, 10**8)
    """The same at the end."""
    agents: tuple[str, ...] = several(
        ("uniform", "call", "raise"), "names that agents.load takes", lambda v: isinstance(v, str)
    )
    log_every: int = whole(4, 1, 10**6)
    """Updates between TensorBoard points."""
    save_every: int = whole(32, 1, 10**6)
    """Updates between checkpoints."""


@dataclass(frozen=True, slots=True)
class Config:
    """A whole run."""

    seed: int = whole(1, 0, 2**32 - 1)
    """Of everything that is random; NumPy's global generator, which SB3 seeds, takes 32 bits."""
    threads: int = whole(1, 1, 1024)
    """Of torch.  Only a run on one thread is resumed to exactly the same weights."""
    rules: str | dict[str, Any] = field(
        default="archie",
        metadata={
            "allowed": Allowed(f"one of {', '.join(PRESETS)}, or a table of rules", lambda v: isinstance(v, (str, dict)))
        },
    )
    budget: Budget = field(default_factory=Budget)
    rollout: Rollout = field(default_factory=Rollout)
    learning: Learning = field(default_factory=Learning)
    network: Network = field(default_factory=Network)
    opponents: Opponents = field(default_factory=Opponents)
    report: Report = field(default_factory=Report)

    def played(self) -> Rules:
        """The rules of the run."""
        return Rules.preset(self.rules) if isinstance(self.rules, str) else Rules.from_dict(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `config_from`."""
        return dataclasses.asdict(self)


def _section(kind: type[Any], values: Any, source: str, prefix: str) -> Any:
    """A dataclass from a table, every key and value checked."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{source}: {prefix.rstrip('.') or 'configuration'} = {shown(values)}: expected a table")
    known = {f.name: f for f in dataclasses.fields(kind)}
    filled = {}
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
        filled[key] = tuple(value) if isinstance(value, list) else float(value) if known[key].type == "float" else value
    return kind(**filled)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def differences(first: Config, second: Config) -> list[str]:
    """Every key whose value differs, with both: ``seed = 3 and 4``."""
    one, other = (dict(_flat(config.to_dict())) for config in (first, second))

    def value(table: dict[str, Any], key: str) -> str:
        return shown(table[key]) if key in table else "not set"

    differing = [key for key in {**one, **other} if key not in one or key not in other or one[key] != other[key]]
    return [f"{key} = {value(one, key)} and {value(other, key)}" for key in differing]


def config_from(values: Mapping[str, Any], source: str) -> Config:
    """A configuration from plain values; ``source`` is named in errors."""
    config: Config = _section(Config, values, source, "")
    try:
        config.played()
    except (RulesError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: rules = {shown(config.rules)}: {str(error)[:500]}") from None
    opponents, rollout, network = config.opponents, config.rollout, config.network
    if opponents.itself + opponents.past + sum(opponents.named.values()) <= 0:
        raise ConfigError(f"{source}: opponents: every share is 0, expected at least one above it")
    samples, batch = rollout.games * rollout.steps, config.learning.batch
    if batch > samples:
        raise ConfigError(f"{source}: learning.batch = {batch}: expected at most rollout.games x rollout.steps = {samples}")
    if samples % batch == 1:
        raise ConfigError(
            f"{source}: learning.batch = {batch}: rollout.games x rollout.steps = {samples} leaves a last minibatch of one "
            "sample, whose advantage can't be normalised: expected a remainder of 0 or at least 2"
        )
    if not network.widths:
        raise ConfigError(f"{source}: network.widths = []: expected at least one layer")
    return config


def parse_override(text: str) -> tuple[list[str], Any]:
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


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """A configuration from a TOML file, with ``section.key=value`` overrides.

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
    source = str(path)
    for text in overrides:
        keys, value = parse_override(text)
        table: Any = values
        for key in keys[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--set {shown(text)}: {shown(key)} is not a table")
        table[keys[-1]] = value
        source = f"{path} with --set"
    return config_from(values, source)
