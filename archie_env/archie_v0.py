"""Version 0 of the environment: ``archie_v0.env(rules="archie", render_mode=None)``.

The environment itself enforces order and legality, so ``env`` and ``raw_env`` are the same: no wrapper slows a step down.
"""

from archie_env.envs.aec import raw_env

env = raw_env

__all__ = ["env", "raw_env"]
