"""Who plays: the `Policy` protocol every agent follows, and the uniform policy.

A policy sees observations and masks and nothing else.  Observations are rows of the information state, int8 as the engine
writes them or float32 as the environments give them; `archie_env.observation.unscaled` makes the first of either.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from archie_env._core.sample import sample_legal, sample_rows
from archie_env.errors import ArchieError
from archie_env.rules import Rules, as_rules

Observations = NDArray[np.int8] | NDArray[np.float32]
Masks = NDArray[np.int8]
Actions = NDArray[np.int64]
Probabilities = NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """Chooses actions for a batch of decisions.

    The arrays handed over may be overwritten after the call: a policy that wants to keep them copies them.
    """

    name: str
    """What tables call it, and what ``agents.load`` takes where it can be loaded."""

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """``(n, d), (n, a) -> (n, a)``: the probability of each action; rows sum to 1, illegal actions have 0."""
        ...

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """``(n, d), (n, a) -> (n,)``: one legal action for each row, random ones drawn from ``rng``."""
        ...


def sample(probabilities: Probabilities, rng: np.random.Generator) -> Actions:
    """``(n, a) -> (n,)``: one action for each row of probabilities, by one uniform number each."""
    actions = np.empty(len(probabilities), np.int64)
    sample_rows(probabilities, rng.random(len(probabilities)), actions)
    return actions


class StochasticPolicy:
    """A base for policies that know their probabilities: acting is sampling from them."""

    name = "stochastic"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        raise NotImplementedError(f"{type(self).__name__} must define probabilities(observations, masks)")

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        return sample(self.probabilities(observations, masks), rng)


class UniformPolicy(StochasticPolicy):
    """Every legal action equally likely."""

    name = "uniform"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        legal = masks.astype(np.float32)
        rows: Probabilities = legal / legal.sum(axis=1, keepdims=True)
        return rows

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        actions = np.empty(len(masks), np.int64)
        sample_legal(masks, rng.random(len(masks)), actions)
        return actions


def name_of(policy: object) -> str:
    """What messages call a policy."""
    return str(getattr(policy, "name", type(policy).__name__))


Factory = Callable[..., Policy]
_REGISTERED: Final[dict[str, Factory]] = {"uniform": lambda rules: UniformPolicy()}


def register_policy(name: str, factory: Factory) -> None:
    """Make a policy loadable by name.

    Args:
        name: ``my_bot``, or ``my_kind:`` for a family whose members are written ``my_kind:ARGUMENT``.
        factory: called with the `Rules` to be played, for a family with the argument and the rules.
    """
    _REGISTERED[name] = factory


def registered_policies() -> tuple[str, ...]:
    """Names that `load_policy` knows, in the order of registration; a family ends with a colon."""
    return tuple(_REGISTERED)


def load_policy(name: str, rules: Rules | str = "archie") -> Policy:
    """The policy of that name.

    Args:
        name: a registered name, ``FAMILY:ARGUMENT`` for a registered family, or ``module:Name``: the module is imported, and
            ``Name`` is a `Policy` in it, a class or function that makes one (called with ``rules`` if it takes an argument of
            that name), or a name that importing the module has registered, such as ``agents:rule_based``.
        rules: what will be played.

    Raises:
        ArchieError: saying what was looked for, where, and what was expected.
    """
    rules = as_rules(rules)
    if not isinstance(name, str):
        raise ArchieError(f"policy {shown(name)}: expected one of {known_names()}")
    if name in _REGISTERED and not name.endswith(":"):
        return _loaded(name, _REGISTERED[name], rules)
    family, colon, argument = name.partition(":")
    if colon and f"{family}:" in _REGISTERED:
        if not argument:
            raise ArchieError(f"policy {name!r}: nothing after the colon, expected one of {known_names()}")
        return _loaded(name, _REGISTERED[f"{family}:"], argument, rules)
    if not colon:
        raise ArchieError(f"policy {name!r}: expected one of {known_names()}")
    return _from_module(name, family, argument, rules)


def _loaded(name: str, factory: Factory, *arguments: Any) -> Policy:
    try:
        return factory(*arguments)
    except ModuleNotFoundError as error:
        raise ArchieError(f"policy {name!r} needs {error.name or 'a package'}, which can't be imported: {error}") from error


def known_names() -> str:
    """What a policy may be called, for error messages and help."""
    plain = [name for name in _REGISTERED if not name.endswith(":")]
    families = [f"{name}PATH" for name in _REGISTERED if name.endswith(":")]
    return ", ".join([*plain, *families, "module:Name"])


def _from_module(name: str, module_name: str, attribute: str, rules: Rules) -> Policy:
    try:
        module = pkgutil.resolve_name(module_name)
    except (ImportError, ValueError, AttributeError) as error:
        raise ArchieError(
            f"policy {name!r}: no module {module_name!r} can be imported ({_one_line(error)}), expected one of {known_names()}"
        ) from None
    except Exception as error:
        raise ArchieError(f"policy {name!r}: importing {module_name!r} raised {_one_line(error)}") from error
    try:
        found: Any = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError:
        found = None
    if found is None or isinstance(found, ModuleType):
        if attribute in _REGISTERED and not attribute.endswith(":"):
            return _loaded(name, _REGISTERED[attribute], rules)
        where = getattr(module, "__file__", None) or module_name
        raise ArchieError(
            f"policy {name!r}: {where} has no {attribute!r}: expected a Policy, or a class or function that makes one"
        )
    if isinstance(found, type) or not hasattr(found, "act"):
        found = _made(name, found, rules)
    return _checked(name, found)


def _made(name: str, factory: Any, rules: Rules) -> Any:
    """What a class or function makes, called with the rules if it takes them."""
    if not callable(factory):
        raise ArchieError(f"policy {name!r}: found {shown(factory)}, expected a Policy, or a class or function that makes one")
    try:
        parameters = inspect.signature(factory).parameters
        arguments = {"rules": rules} if "rules" in parameters else {}
        inspect.signature(factory).bind(**arguments)
    except (TypeError, ValueError) as error:
        raise ArchieError(f"policy {name!r}: {_one_line(error)}: expected no argument without a default except rules") from None
    try:
        return factory(**arguments)
    except ArchieError as error:
        raise ArchieError(f"policy {name!r}: {error}") from error
    except Exception as error:
        raise ArchieError(f"policy {name!r}: making it raised {_one_line(error)}") from error


def _checked(name: str, policy: Any) -> Policy:
    """A policy that follows the protocol; one without a name of its own is called as it was loaded."""
    for method, words in (("act", "act(observations, masks, rng)"), ("probabilities", "probabilities(observations, masks)")):
        if not callable(getattr(policy, method, None)):
            raise ArchieError(f"policy {name!r}: {type(policy).__name__} has no {words}: expected a Policy")
    if not isinstance(getattr(policy, "name", None), str):
        with contextlib.suppress(AttributeError):
            policy.name = name
    checked: Policy = policy
    return checked


def shown(value: object, most: int = 120) -> str:
    """A value for an error message: its ``repr`` on one line, cut where it is long."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}..."


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def as_policy(policy: Policy | str, rules: Rules | str = "archie") -> Policy:
    """Return ``policy`` unchanged, or look it up by name."""
    if isinstance(policy, str):
        return load_policy(policy, rules)
    if not callable(getattr(policy, "act", None)) or isinstance(policy, type):
        raise ArchieError(f"policy {policy!r}: expected a Policy, which has act(observations, masks, rng), or a name")
    return policy
