"""What happened in a hand, what a seat sees of it, and how it ended: the plain values that `Game` gives out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SEATS = ("player_0", "player_1")
Half = Literal["high", "low", "pot"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, in the order it did."""

    kind: Literal["post", "bet", "draw", "deal"]
    seat: int
    round: int
    """Betting round it belongs to, from 0; draw r follows round r."""
    action: int | None = None
    """The action taken, for ``bet`` and ``draw``."""
    wager: int = 0
    """Chips this player has put in during this round, for ``post`` and ``bet``."""
    cards: tuple[int, ...] = ()
    """Cards thrown (``draw``) or dealt (``deal``), ascending."""


@dataclass(frozen=True, slots=True)
class Award:
    """A part of the pot and who got it."""

    half: Half
    """``high`` or ``low`` half, or the whole ``pot``."""
    chips: tuple[int, int]
    """By seat."""
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """How a hand ended."""

    net: tuple[int, int]
    """Chips won or lost, by seat; sums to 0."""
    paid: tuple[int, int]
    """Chips put in, by seat."""
    folded: int | None
    """Seat that folded, or None after a showdown."""
    awards: tuple[Award, ...]
    """The parts of the pot in order: high, then low."""


@dataclass(frozen=True, slots=True)
class View:
    """What one seat knows (or everything, seen from above)."""

    seat: int | None
    """The seat that looks; None sees both hands."""
    dealer: int
    to_act: int | None
    round: int
    drawing: bool
    paid: tuple[int, int]
    """Chips in the pot, by seat."""
    hands: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """Cards by seat, ascending; None = face down."""
    draws: tuple[tuple[int, ...], tuple[int, ...]]
    """Cards thrown in each draw so far, by seat, where this seat may know."""
    committed: tuple[bool, bool]
    """Seats that have committed a discard and wait for the replacements, where this seat may know."""
    wagers: tuple[tuple[tuple[int, int], ...], ...]
    """(seat, action) for each betting action of each round."""
    legal: tuple[int, ...]
    """Legal actions, if this seat is to act (from above: of whoever is)."""
    result: Result | None
