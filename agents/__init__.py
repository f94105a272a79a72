"""Reference agents and trained policies, by name.

>>> from agents import load, names
>>> load("call_draw").name
'call_draw'
"""

from agents.registry import load, names, weights_file

__all__ = ["load", "names", "weights_file"]
