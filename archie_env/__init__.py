"""Archie: heads-up triple-draw poker, split high/low with a qualifier in both directions, as an environment.

>>> from archie_env import archie_v0
>>> env = archie_v0.env()
"""

from gymnasium import register

from archie_env.batch import Batch, Hands
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.game import Game
from archie_env.policy import Policy, UniformPolicy
from archie_env.rules import Rules, Stakes

__all__ = ["ArchieError", "Batch", "Game", "Hands", "IllegalActionError", "Policy", "Rules", "Stakes", "UniformPolicy"]
__version__ = "0.2.0"

register(
    id="Archie-v0",
    entry_point="archie_env.envs.single:ArchieEnv",
    vector_entry_point="archie_env.envs.vector:ArchieVectorEnv",
    order_enforce=False,  # the environments enforce order and legality themselves
    disable_env_checker=True,
)
