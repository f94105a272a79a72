"""Policies: the `Policy` protocol that every agent follows, the uniform policy, and look-up by name.

A policy sees observations and masks and nothing else.  Observations are rows of the information state, int8 as the engine
writes them or float32 as the environments give them; `archie_env.observation.unscaled` makes the first of either.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from archie_env._core.sample import sample_legal, sample_rows
from archie_env.errors import ArchieError, described, shown
from archie_env.observation import scaled, unscaled
from archie_env.rules import Rules, as_rules

Observations = NDArray[np.int8] | NDArray[np.float32]
Masks = NDArray[np.int8]
Actions = NDArray[np.int64]
Probabilities = NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """Chooses actions for a batch of decisions.

    The arrays passed in may be overwritten after the call: a policy that keeps them must copy them.
    """

    name: str
    """Label in tables; where the policy can be loaded by name, that name."""

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """``(n, d), (n, a) -> (n, a)``: the probability of each action; rows sum to 1, illegal actions have 0."""
        ...

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """``(n, d), (n, a) -> (n,)``: one legal action for each row; all randomness comes from ``rng``."""
        ...


def sample(probabilities: Probabilities, rng: np.random.Generator) -> Actions:
    """Draw one action for each row: ``(n, a) -> (n,)``, one uniform number each."""
    actions = np.empty(len(probabilities), np.int64)
    sample_rows(probabilities, rng.random(len(probabilities)), actions)
    return actions


def private_generator(seed: int | bytes | None, *key: str | int) -> np.random.Generator:
    """A generator that may be handed to a policy: neither its state nor its seed leads back to ``seed``, or to the cards.

    Its own seed is a keyed hash of ``seed`` and ``key``.  A seed that can be guessed, such as 0, can still be found by trying;
    32 random bytes can't.

    Args:
        seed: an int of at least 0, or up to 64 secret bytes; None takes fresh ones from the system.
        key: distinguishes the streams of one seed, such as ``("player", seat, first_deal)``.
    """
    if seed is None:
        seed = os.urandom(32)
    secret, number = (seed, ()) if isinstance(seed, bytes) else (b"archie-env", (seed,))
    text = "/".join(str(part) for part in (*number, *key))
    hashed = hashlib.blake2b(text.encode(), digest_size=32, key=secret, person=b"generator")
    return np.random.default_rng(int.from_bytes(hashed.digest(), "big"))


class StochasticPolicy:
    """Base class for policies that define ``probabilities``: `act` samples from them."""

    name = "stochastic"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        raise NotImplementedError(f"{type(self).__name__} must define probabilities(observations, masks)")

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        return sample(self.probabilities(observations, masks), rng)


class UniformPolicy(StochasticPolicy):
    """Plays every legal action with the same probability."""

    name = "uniform"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        legal = masks.astype(np.float32)
        counts = legal.sum(axis=1, keepdims=True)
        self._check_legal(counts[:, 0] > 0)
        rows: Probabilities = legal / counts
        return rows

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        actions = np.full(len(masks), -1, np.int64)
        sample_legal(masks, rng.random(len(masks)), actions)
        self._check_legal(actions >= 0)
        return actions

    def _check_legal(self, legal: NDArray[np.bool_]) -> None:
        if not legal.all():
            raise ArchieError(f"masks[{legal.argmin()}]: no action is legal, expected at least one in every row")


class Scaled:
    """A policy that learnt from float32 rows, as the environments give them by default, as a player or opponent.

    Matches and `opponents` hand out int8 rows, in which pot and wager are whole numbers; cast alone they would look many times
    larger to a network than anything it has seen.  Float32 rows pass as they are.

    Args:
        policy: the policy, or its name.
        rules: the rules it plays.
    """

    def __init__(self, policy: Policy | str, rules: Rules | str = "archie") -> None:
        self._rules = as_rules(rules)
        self.policy = as_policy(policy, self._rules)
        self.name = name_of(self.policy)

    def _scaled(self, observations: Observations) -> NDArray[np.float32]:
        return scaled(unscaled(observations, self._rules), self._rules)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`."""
        return self.policy.probabilities(self._scaled(observations), masks)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        """See `Policy.act`."""
        return self.policy.act(self._scaled(observations), masks, rng)


def name_of(policy: object) -> str:
    """Name of ``policy`` for messages; without a name, its type's."""
    return str(getattr(policy, "name", type(policy).__name__))


Factory = Callable[..., Policy]
_REGISTERED: Final[dict[str, Factory]] = {"uniform": lambda rules: UniformPolicy()}
_ARGUMENTS: Final[dict[str, str]] = {}


def register_policy(name: str, factory: Factory, argument: str = "PATH") -> None:
    """Make a policy loadable by name; a later registration of the same name replaces an earlier one.

    Args:
        name: ``my_bot``, or ``my_kind:`` for a family whose members are written ``my_kind:ARGUMENT``.
        factory: called with the `Rules` of the game; for a family with the argument and the rules.
        argument: what the argument of a family is called in help.
    """
    if not isinstance(name, str) or not name.removesuffix(":").replace("-", "_").replace(".", "_").isidentifier():
        raise ArchieError(f"policy name {shown(name)}: expected a word, with a colon after it for a family")
    if not callable(factory):
        raise ArchieError(f"policy {name!r}: factory {shown(factory)}: expected a function of rules")
    _REGISTERED[name], _ARGUMENTS[name] = factory, argument


def registered_policies() -> tuple[str, ...]:
    """Names that `load_policy` accepts, in the order of registration; a family ends with a colon."""
    return tuple(_REGISTERED)


def policy_forms() -> tuple[str, ...]:
    """As `registered_policies`, with the argument of each family, such as ``ppo:PATH``."""
    return tuple(f"{name}{_ARGUMENTS.get(name, 'PATH')}" if name.endswith(":") else name for name in _REGISTERED)


def known_names() -> str:
    """Every form of a policy's name, for error messages and help."""
    return ", ".join((*policy_forms(), "module:Name"))


def as_policy(policy: Policy | str, rules: Rules | str = "archie") -> Policy:
    """Return ``policy`` unchanged, or look it up by name."""
    if isinstance(policy, str):
        return load_policy(policy, rules)
    if not callable(getattr(policy, "act", None)) or isinstance(policy, type):
        raise ArchieError(f"policy {shown(policy)}: expected a Policy, which has act(observations, masks, rng), or a name")
    return policy


def load_policy(name: str, rules: Rules | str = "archie") -> Policy:
    """Load a policy by name.

    Args:
        name: a registered name, ``FAMILY:ARGUMENT`` for a registered family, or ``module:Name``: the module is imported, and
            ``Name`` is a `Policy` in it, a class or function that makes one (called with ``rules`` if it has a parameter of
            that name), or a name that importing the module registers, such as ``agents:rule_based`` or ``agents:ppo:PATH``.
        rules: the rules of the game.

    Raises:
        ArchieError: naming the file, the part at fault and what was expected; whatever a module raises becomes one.
    """
    rules = as_rules(rules)
    module_name, colon, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if isinstance(name, str) and (policy := _registered(name, rules)) is not None:
        return policy
    if not attribute:
        fault = ": nothing after the colon" if colon else ""
        raise ArchieError(f"policy {shown(name)}{fault}: expected one of {known_names()}")
    module = _imported(name, module_name)
    where = f"policy {shown(name)}: {getattr(module, '__file__', None) or module_name}"
    found = _attribute(where, module, attribute)
    if found is _MISSING or isinstance(found, ModuleType):  # agents:ppo is both a module and a name that it registers
        if (policy := _registered(attribute, rules)) is not None:
            return policy
        fault = f"there is no {shown(attribute)}" if found is _MISSING else f"{attribute} is a module"
        raise ArchieError(f"{where}: {fault}: {_EXPECTED}")
    if isinstance(found, type) or not hasattr(found, "act"):
        where = f"{where}: {attribute}"
        found = _made(where, found, **_arguments(where, found, rules))
    return _checked(where, name, found)


_MISSING: Final = object()
_EXPECTED: Final = "expected a Policy, or a class or function that makes one from rules or from nothing"


def _registered(name: str, rules: Rules) -> Policy | None:
    """Return the registered policy ``name``, or the member of a registered family; None for any other name."""
    family, colon, argument = name.partition(":")
    factory = _REGISTERED.get(f"{family}{colon}")
    if factory is None or (colon and not argument):
        return None
    where = f"policy {shown(name)}"
    return _checked(where, name, _made(where, factory, *([argument] if colon else []), rules))


def _imported(name: str, module_name: str) -> ModuleType:
    """Import a module; whatever it raises, except `KeyboardInterrupt`, becomes an `ArchieError`."""
    where, expected = f"policy {shown(name)}", f"expected one of {known_names()}"
    if module_name.endswith(".py") or not all(part.isidentifier() for part in module_name.split(".")):
        raise ArchieError(f"{where}: {shown(module_name)} is no module's name, as my_bots in my_bots:MyBot: {expected}")
    try:
        module: ModuleType = pkgutil.resolve_name(f"{module_name}:")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if not missing or not f"{module_name}.".startswith(f"{missing}."):
            raise ArchieError(f"{where}: importing {module_name} raised {described(error)}") from error
        folders = [entry or "." for entry in map(str, sys.path)]
        looked = ", ".join(folders[:3]) + (f" and {len(folders) - 3} more" if len(folders) > 3 else "")
        raise ArchieError(f"{where}: no module {missing!r} in {looked}: {expected}") from None
    return module


def _attribute(where: str, owner: Any, path: str) -> Any:
    """Return the object at a dotted path; `_MISSING` where there is none."""
    try:
        return functools.reduce(getattr, path.split("."), owner)
    except AttributeError:
        return _MISSING
    except Exception as error:
        raise ArchieError(f"{where}: reading {path} raised {described(error)}") from error


def _arguments(where: str, factory: Any, rules: Rules) -> dict[str, Rules]:
    """Return the keyword arguments of a class or function found in a module: the rules, or nothing."""
    if not callable(factory):
        raise ArchieError(f"{where} is {shown(factory)}: {_EXPECTED}")
    try:
        signature = inspect.signature(factory)
        arguments = {"rules": rules} if "rules" in signature.parameters else {}
        signature.bind(**arguments)
    except Exception as error:
        raise ArchieError(f"{where} has the wrong signature, {described(error, place=False)}: {_EXPECTED}") from None
    return arguments


def _made(where: str, factory: Factory, *arguments: str | Rules, **keywords: Rules) -> Policy:
    """Call ``factory``; the `ArchieError` of a registered one, which gets arguments by position, passes as it is."""
    try:
        return factory(*arguments, **keywords)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if arguments and isinstance(error, ArchieError):
            raise
        raise ArchieError(f"{where}: making it raised {described(error)}") from error


def _checked(where: str, name: str, policy: Any) -> Policy:
    """Check that ``policy`` follows the protocol; one without a name of its own gets the name it was loaded by."""
    for method, arguments in (("act", "observations, masks, rng"), ("probabilities", "observations, masks")):
        found = _attribute(where, policy, method)
        if isinstance(policy, type) or not callable(found):
            raise ArchieError(f"{where}: {shown(policy)} has no {method}({arguments}): expected a Policy")
        try:
            inspect.signature(found).bind(*arguments.split(", "))
        except TypeError as error:
            raise ArchieError(f"{where}: {method}: {error}: expected {method}({arguments})") from None
        except ValueError:  # compiled callables may have no signature
            pass
    own = _attribute(where, policy, "name")
    if any(own is unnamed for unnamed in (_MISSING, None, StochasticPolicy.name)):
        try:
            own = policy.name = name
        except Exception as error:
            raise ArchieError(f"{where}: no name, and setting it raised {described(error)}: expected a string") from None
    if not isinstance(own, str) or not own.strip() or not own.isprintable():
        raise ArchieError(f"{where}: name {shown(own)}: expected a printable string")
    checked: Policy = policy
    return checked
