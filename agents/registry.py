"""Names of the agents.  Importing this module registers them with `archie_env.policy`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from agents.rule_based import RuleBasedPolicy
from agents.scripted import ScriptedPolicy
from archie_env.policy import Policy, load_policy, policy_forms, register_policy
from archie_env.rules import Rules


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
    from agents.ppo import PPOPolicy

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


def _sb3(path: str, rules: Rules) -> Policy:
    from agents.sb3 import SB3Policy

    return SB3Policy.load(path, rules)


def _bot(command: str, rules: Rules) -> Policy:
    from agents.process import load_bot

    return load_bot(command, rules)


WEIGHTS: Final = Path(__file__).parent / "weights"
"""Folder of the weights that ship."""

_SHIPPED: Final = {"cfr_small": _cfr, "champion": _cfr, "ppo": _ppo}
"""Agents that ship with weights in ``NAME.npz``, and the reader of each file."""
_FROM_FILE: Final = {"ppo": _ppo, "ppo_greedy": _ppo_greedy, "solution": _solution, "cfr": _cfr, "sb3": _sb3}


def _shipped(name: str, rules: Rules) -> Policy:
    policy = _SHIPPED[name](str(WEIGHTS / f"{name}.npz"), rules)
    policy.name = name
    return policy


for _name, _factory in (
    ("call", _call), ("raise", _raise), ("call_draw", _call_draw), ("raise_draw", _raise_draw),
    ("rule_based", _rule_based), ("human", _human),
):  # fmt: skip
    register_policy(_name, _factory)
for _name in _SHIPPED:
    register_policy(_name, partial(_shipped, _name))
for _name, _read in _FROM_FILE.items():
    register_policy(f"{_name}:", _read)
register_policy("bot:", _bot, "COMMAND")


def names() -> tuple[str, ...]:
    """Names that `load` accepts; ``ppo:PATH`` stands for every file of that kind."""
    return policy_forms()


def weights_file(name: str) -> Path | None:
    """File from which `load` reads the agent ``name``; None if it needs no file."""
    kind, colon, path = name.partition(":")
    if colon:
        return Path(path) if path and kind in _FROM_FILE else None
    return WEIGHTS / f"{name}.npz" if name in _SHIPPED else None


load = load_policy
