"""The rules of Archie as compiled functions over one plain record per game.

Imports numpy and ``archie_env._core.jit`` only.  Everything is indexed by *position* (0 = dealer, 1 = big blind); seats
(``player_0``, ``player_1``) exist only where results leave the engine.
"""
