"""Names of players, and the players they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from agents.rule_based import RuleBasedPolicy
from agents.scripted import ScriptedPolicy
from archie_env.errors import ArchieError
from archie_env.policy import Policy, UniformPolicy
from archie_env.rules import Rules, as_rules


def _uniform(rules: Rules) -> Policy:
    return UniformPolicy()


def _call(rules: Rules) -> Policy:
    return ScriptedPolicy("call", raises=False, draws=False, rules=rules)


def _raise(rules: Rules) -> Policy:
    return ScriptedPolicy("raise", raises=True, draws=False, rules=rules)


def _call_draw(rules: Rules) -> Policy:
    return ScriptedPolicy("call_draw", raises=False, draws=True, rules=rules)


def _raise_draw(rules: Rules) -> Policy:
    return ScriptedPolicy("raise_draw", raises=True, draws=True, rules=rules)


def _rule_based(rules: Rules) -> Policy:
    return RuleBasedPolicy(rules)


def _human(rules: Rules) -> Policy:
    from agents.human import HumanPolicy

    return HumanPolicy(rules)


def _ppo(path: str, rules: Rules) -> Policy:
    from agents.ppo import PPOPolicy  # torch is not needed by the others

    policy: Policy = PPOPolicy.load(path, rules=rules)
    return policy


def _ppo_greedy(path: str, rules: Rules) -> Policy:
    from agents.ppo import PPOPolicy

    policy: Policy = PPOPolicy.load(path, rules=rules, greedy=True)
    return policy


def _solution(path: str, rules: Rules) -> Policy:
    from agents.solution import SolutionPolicy

    return SolutionPolicy.load(path, rules)


def _cfr(path: str, rules: Rules) -> Policy:
    from agents.cfr import CFRPolicy

    return CFRPolicy.load(path, rules)


WEIGHTS: Final = Path(__file__).parent / "weights"
"""Where the weights of the players that ship are."""

_NAMED: Final[dict[str, Callable[[Rules], Policy]]] = {
    "uniform": _uniform,
    "call": _call,
    "raise": _raise,
    "call_draw": _call_draw,
    "raise_draw": _raise_draw,
    "rule_based": _rule_based,
    "human": _human,
}
_FROM_FILE: Final[dict[str, Callable[[str, Rules], Policy]]] = {
    "ppo": _ppo,
    "ppo_greedy": _ppo_greedy,
    "solution": _solution,
    "cfr": _cfr,
}
_SHIPPED: Final = {"cfr_small": "cfr", "champion": "cfr", "ppo": "ppo"}
"""Players whose weights come with the code, and their kind; the file is of the player's name."""


def names() -> tuple[str, ...]:
    """The names `load` knows; ``ppo:PATH`` stands for every file of that kind."""
    return *_NAMED, *_SHIPPED, *(f"{kind}:PATH" for kind in _FROM_FILE)


def weights_file(name: str) -> Path | None:
    """The file that a player of that name is read from; None for those that have none."""
    kind, colon, path = name.partition(":")
    if colon:
        return Path(path) if path and kind in _FROM_FILE else None
    return WEIGHTS / f"{name}.npz" if name in _SHIPPED else None


def load(name: str, rules: Rules | str = "archie") -> Policy:
    """The player of that name under these rules.

    Raises:
        ArchieError: for an unknown name, listing the known ones.
    """
    rules = as_rules(rules)
    if isinstance(name, str):
        kind, _, path = name.partition(":")
        if name in _NAMED:
            return _NAMED[name](rules)
        if name in _SHIPPED:
            player = _FROM_FILE[_SHIPPED[name]](str(weights_file(name)), rules)
            player.name = name
            return player
        if path and kind in _FROM_FILE:
            return _FROM_FILE[kind](path, rules)
    raise ArchieError(f"agent {name!r}: expected one of {', '.join(names())}")
