"""Archie: heads-up triple-draw poker, split high/low with a qualifier in both directions, as an environment.

>>> from archie_env import archie_v0
>>> env = archie_v0.env()
"""

from typing import TYPE_CHECKING, Any

from gymnasium import register

from archie_env.errors import ArchieError, IllegalActionError
from archie_env.rules import Rules, Stakes

if TYPE_CHECKING:
    from archie_env.batch import Batch, Hands
    from archie_env.game import Game
    from archie_env.policy import Policy, UniformPolicy

__all__ = ["ArchieError", "Batch", "Game", "Hands", "IllegalActionError", "Policy", "Rules", "Stakes", "UniformPolicy"]
__version__ = "0.2.0"

register(
    id="Archie-v0",
    entry_point="archie_env.envs.single:ArchieEnv",
    vector_entry_point="archie_env.envs.vector:ArchieVectorEnv",
    order_enforce=False,  # the environments enforce order and legality themselves
    disable_env_checker=True,
)


_HOMES = {"Batch": "batch", "Hands": "batch", "Game": "game", "Policy": "policy", "UniformPolicy": "policy"}
_MODULES = ("actions", "batch", "cards", "events", "game", "observation", "policy")


def __getattr__(name: str) -> Any:
    """Import what needs the engine, and with it Numba, when it is first asked for: that is more than half of an import."""
    home = _HOMES.get(name, name)
    if home not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = getattr(__import__(f"{__name__}.{home}"), home)
    found = globals()[name] = module if home == name else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
