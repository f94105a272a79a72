"""Names of the agents.  Importing this module registers them with `archie_env.policy`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from agents.cfr import CFRPolicy
from agents.human import HumanPolicy
from agents.onnx import OnnxPolicy
from agents.ppo import PPOPolicy
from agents.process import load_bot
from agents.rule_based import RuleBasedPolicy
from agents.sb3 import SB3Policy
from agents.scripted import ScriptedPolicy
from agents.solution import SolutionPolicy
from archie_env.policy import Policy, load_policy, policy_forms, register_policy
from archie_env.rules import Rules

WEIGHTS: Final = Path(__file__).parent / "weights"
"""Folder of the weights that ship."""

_FROM_FILE: Final[dict[str, Callable[..., Policy]]] = {
    "ppo": PPOPolicy.load,
    "ppo_greedy": partial(PPOPolicy.load, greedy=True),
    "solution": SolutionPolicy.load,
    "cfr": CFRPolicy.load,
    "sb3": SB3Policy.load,
    "onnx": OnnxPolicy.load,
}
"""Readers by kind of file, called with a path and the rules."""
_SHIPPED: Final = {"cfr_small": "cfr", "champion": "cfr", "ppo": "ppo"}
"""Agents that ship with weights in ``NAME.npz``, and the kind of each file."""


def _shipped(name: str, rules: Rules) -> Policy:
    policy = _FROM_FILE[_SHIPPED[name]](str(WEIGHTS / f"{name}.npz"), rules)
    policy.name = name
    return policy


for _name, _raises, _draws in (
    ("call", False, False), ("raise", True, False), ("call_draw", False, True), ("raise_draw", True, True),
):  # fmt: skip
    register_policy(_name, partial(ScriptedPolicy, _name, _raises, _draws))
register_policy("rule_based", RuleBasedPolicy)
register_policy("human", HumanPolicy)
for _name in _SHIPPED:
    register_policy(_name, partial(_shipped, _name))
for _name, _read in _FROM_FILE.items():
    register_policy(f"{_name}:", _read)
register_policy("bot:", load_bot, "COMMAND")


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
