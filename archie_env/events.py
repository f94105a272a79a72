"""The course of a hand, the view of a seat and the result: the plain values that `Game` gives out.

All chips in them come from the engine, so a reader of these values never computes a wager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SEATS = ("player_0", "player_1")
Half = Literal["high", "low", "pot"]
Reason = Literal["half", "only_high", "only_low", "best_high", "equal_split", "fold", "forfeit"]
"""Why a part of the pot was paid: both directions have a qualifier, one has, none has (`Rules.no_qualifier`), or a hand ended
without a showdown."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a hand."""

    kind: Literal["post", "bet", "draw", "deal", "forfeit"]
    seat: int
    round: int
    """Betting round of the event, from 0; draw r follows round r."""
    action: int | None = None
    """The action taken, for ``bet`` and ``draw``."""
    verb: str = ""
    """``fold``, ``check``, ``call``, ``bet`` or ``raise``, for ``bet``."""
    owed: int = 0
    """Chips this seat had to add to call, before a ``bet``."""
    to: int = 0
    """Chips this seat has put in during this round, after a ``post`` or ``bet``."""
    cards: tuple[int, ...] = ()
    """Cards discarded (``draw``) or dealt (``deal``), ascending."""


@dataclass(frozen=True, slots=True)
class Award:
    """A part of the pot and its winners."""

    half: Half
    """``high`` or ``low`` half, or the whole ``pot``."""
    chips: tuple[int, int]
    """By seat."""
    reason: Reason
    winners: tuple[int, ...]
    """Seats that get this part: one, or both where they share it."""
    values: tuple[int, int] | None = None
    """High or low values compared, by seat (see `HandValues`); None where no hands were compared."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a hand."""

    net: tuple[int, int]
    """Chips won or lost, by seat; sums to 0."""
    paid: tuple[int, int]
    """Chips put in, by seat."""
    folded: int | None
    """Seat that folded or forfeited the hand, or None after a showdown."""
    awards: tuple[Award, ...]
    """The parts of the pot in order: high, then low."""

    @property
    def scooped(self) -> int | None:
        """Seat that won both halves alone, or None."""
        winners = {award.winners for award in self.awards}
        alone = len(self.awards) == 2 and len(winners) == 1 and winners <= {(0,), (1,)}
        return self.awards[0].winners[0] if alone else None

    @property
    def quartered(self) -> int | None:
        """Seat that shares one half and loses the other, so that it gets a quarter of the pot; or None."""
        alone = [award.winners[0] for award in self.awards if len(award.winners) == 1]
        return 1 - alone[0] if len(self.awards) == 2 and len(alone) == 1 else None


@dataclass(frozen=True, slots=True)
class View:
    """The knowledge of one seat, or, seen from above, everything."""

    seat: int | None
    """The seat that looks; None sees both hands."""
    dealer: int
    to_act: int | None
    round: int
    drawing: bool
    paid: tuple[int, int]
    """Chips in the pot, by seat."""
    wagered: tuple[int, int]
    """Those of them put in during this betting round."""
    hands: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """Cards by seat, ascending; None = face down."""
    draws: tuple[tuple[int, ...], tuple[int, ...]]
    """Cards discarded in each draw so far, by seat, where this seat may know."""
    committed: tuple[bool, bool]
    """Seats that have committed a discard and wait for the replacements, where this seat may know."""
    betting: tuple[tuple[Event, ...], ...]
    """Blinds and betting actions of each round."""
    legal: tuple[int, ...]
    """Legal actions, if this seat is to act; from above, those of the seat to act."""
    choices: tuple[Event, ...]
    """The events that the betting actions among ``legal`` would be."""
    result: Result | None
