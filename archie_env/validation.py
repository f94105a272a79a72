"""Checks of arguments: whole numbers, seeds, actions, seats, choices.

Every value is checked in plain Python integers before it indexes, casts or allocates.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archie_env._core.state import MAX_ACTIONS
from archie_env.errors import ArchieError, IllegalActionError


def whole_number(name: str, value: object, least: int) -> int:
    """Convert to int; raises `ArchieError` unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArchieError(f"{name} {value!r}: expected a whole number of at least {least}")
    return int(value)


def positive(name: str, value: float, unit: str = "") -> None:
    """Raise `ArchieError` unless ``value`` is above 0, which NaN is not; ``unit`` is named in the error."""
    if not value > 0:
        raise ArchieError(f"{name} {value}: expected more than 0{unit and f' {unit}'}")


def game_number(name: str, value: object) -> int:
    """Check the number of a game or hand, which is below 2 ** 62 in the engine."""
    number = whole_number(name, value, 0)
    if number >= 2**62:
        raise ArchieError(f"{name} {value!r}: expected a whole number below 2 ** 62")
    return number


def seed_word(seed: int | None) -> np.uint64:
    """Derive 64 bits from any non-negative seed, or take fresh ones from the system for None."""
    entropy = None if seed is None else whole_number("seed", seed, 0)
    return np.uint64(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def whole_actions(actions: ArrayLike, n: int, who: str = "") -> NDArray[np.int64]:
    """A new array ``(n,)`` of integers, which nobody can change once it is checked.

    Raises:
        IllegalActionError: for any other shape or type.
    """
    try:
        array = np.asarray(actions)
    except ValueError:
        array = np.empty(0, object)  # rows of different lengths
    if array.shape != (n,) or not np.issubdtype(array.dtype, np.integer):
        found = f"actions of shape {array.shape} and dtype {array.dtype}"
        raise IllegalActionError(f"{who}{': ' if who else ''}{found}: expected ({n},) integers")
    return array.astype(np.int64)


def check_seat(name: str, seat: object, otherwise: str = "") -> None:
    """Raise `ArchieError` unless ``seat`` is 0 or 1; ``otherwise`` is appended to the message."""
    if isinstance(seat, bool) or not isinstance(seat, (int, np.integer)) or seat not in (0, 1):
        raise ArchieError(f"{name} {seat!r}: expected seat 0 or 1{otherwise}")


def action_number(action: object) -> int:
    """Convert an action to int; anything but an integer becomes -1, which is never legal."""
    try:
        number = operator.index(action)  # type: ignore[arg-type]
    except TypeError:
        return -1
    return number if 0 <= number < MAX_ACTIONS and type(action) is not bool else -1


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise `ArchieError` unless the value is one of those allowed."""
    if value not in allowed:
        raise ArchieError(f"{name} {value!r}: expected one of {', '.join(map(repr, allowed))}")
