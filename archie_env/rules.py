"""The rules of a game as one frozen, validated value, and the presets by name.

>>> Rules.preset("pagat").high_qualifier
'9'
>>> Rules(high_qualifier="1")
Traceback (most recent call last):
    ...
archie_env.errors.RulesError: high_qualifier '1': expected one of the ranks in play 23456789TJQKA, or None
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, get_args

from archie_env._core.state import DISCARD, MAX_CAP, MAX_DRAWS, MAX_HAND
from archie_env.cards import RANKS, SUITS
from archie_env.errors import RulesError

NoQualifier = Literal["best_high", "equal_split"]
DrawOrder = Literal["simultaneous", "sequential"]
Replacements = Literal["shared", "per_seat"]

MAX_STAKE: Final = 1000
"""Maximum of a blind or bet in chips: the chips that one player pays must fit 16 bits."""


class Stakes(NamedTuple):
    """Chips of the blinds and of a bet or raise in each betting round."""

    blinds: tuple[int, int]
    """Small blind (the dealer's) and big blind, in chips."""
    bets: tuple[int, ...]
    """One bet size in chips for each betting round."""


_GUIDE_STAKES: Final = Stakes((1, 2), (2, 2, 4, 4))


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise RulesError(f"{name} {value!r}: expected a whole number {low} to {high}")
    return value


def _subset(name: str, value: Any, alphabet: str) -> str:
    """Check a non-empty set of letters, and return it in the order of the alphabet."""
    letters = isinstance(value, str) and value and set(value) <= set(alphabet) and len(set(value)) == len(value)
    if not letters:
        raise RulesError(f"{name} {value!r}: expected different letters out of {alphabet}")
    return "".join(c for c in alphabet if c in value)


def _stakes(value: Any, rounds: int) -> Stakes:
    expected = f"expected ((small blind, big blind), ({rounds} bets, one for each betting round))"
    try:
        blinds, bets = value["blinds"], value["bets"]
    except (TypeError, KeyError, IndexError):
        try:
            blinds, bets = value
        except (TypeError, ValueError):
            raise RulesError(f"stakes {value!r}: {expected}") from None
    try:
        blinds, bets = tuple(blinds), tuple(bets)
    except TypeError:
        raise RulesError(f"stakes {value!r}: {expected}") from None
    if len(blinds) != 2 or len(bets) != rounds:
        raise RulesError(f"stakes {(blinds, bets)!r}: {expected}")
    big = _whole("stakes.blinds[1] (big blind)", blinds[1], 1, MAX_STAKE)
    small = _whole("stakes.blinds[0] (small blind)", blinds[0], 0, big)
    return Stakes((small, big), tuple(_whole(f"stakes.bets[{i}]", b, 1, MAX_STAKE) for i, b in enumerate(bets)))


@functools.cache
def _deck(ranks: str, suits: str) -> tuple[int, ...]:
    return tuple(4 * RANKS.index(r) + SUITS.index(s) for r in ranks for s in suits)


def _choice(name: str, value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise RulesError(f"{name} {value!r}: expected one of {', '.join(map(repr, get_args(kind)))}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a game.  The defaults are Archie as BARGE plays it heads-up, with simultaneous draws.

    Raises `RulesError` naming the field, the value and what is allowed.
    """

    stakes: Stakes = _GUIDE_STAKES
    """Blinds and the bet of each round, in chips."""
    raise_cap: int = 4
    """Maximum number of wagers in a round, 1 to 6: a bet and ``raise_cap - 1`` raises.  In round 1 the big blind is the bet."""
    high_qualifier: str | None = "6"
    """Rank of the lowest pair that qualifies for high; None: no hand ever qualifies for high."""
    low_qualifier: str | None = "8"
    """Highest rank allowed in a low (ace is low); None: no hand ever qualifies for low."""
    no_qualifier: NoQualifier = "best_high"
    """If no hand qualifies for either half: the best ordinary high hand takes the pot, or each player takes half."""
    draw_order: DrawOrder = "simultaneous"
    """``sequential``: the dealer sees the big blind's number of discards before discarding."""
    draws: int = 3
    """Number of draws, 0 to 3; there is one more betting round than draws."""
    max_discard: int = 5
    """Maximum number of cards that a player may replace in one draw, 0 to ``hand_size``."""
    ranks: str = RANKS
    """Ranks in the deck, in any order; they are sorted."""
    suits: str = SUITS
    """Suits in the deck."""
    hand_size: int = 5
    """Cards in a hand, 1 to 5.  Straights and flushes count in five-card hands only."""
    flushes: bool = True
    """Whether flushes (and so straight flushes) count."""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)  # the class is frozen

        _whole("draws", self.draws, 0, MAX_DRAWS)
        put("stakes", _stakes(self.stakes, self.draws + 1))
        _whole("raise_cap", self.raise_cap, 1, MAX_CAP)
        _whole("hand_size", self.hand_size, 1, MAX_HAND)
        _whole("max_discard", self.max_discard, 0, self.hand_size)
        put("ranks", _subset("ranks", self.ranks, RANKS))
        put("suits", _subset("suits", self.suits, SUITS))
        for name in ("high_qualifier", "low_qualifier"):
            rank = getattr(self, name)
            if rank is not None and (not isinstance(rank, str) or len(rank) != 1 or rank not in self.ranks):
                raise RulesError(f"{name} {rank!r}: expected one of the ranks in play {self.ranks}, or None")
        _choice("no_qualifier", self.no_qualifier, NoQualifier)
        _choice("draw_order", self.draw_order, DrawOrder)
        if not isinstance(self.flushes, bool):
            raise RulesError(f"flushes {self.flushes!r}: expected True or False")
        need = 2 * self.hand_size + 2 * self.draws * self.max_discard
        if self.deck_size < need:
            raise RulesError(
                f"ranks and suits give {self.deck_size} cards: expected at least {need} (two hands of {self.hand_size} "
                f"and {self.draws} draws of up to {self.max_discard} each), as nothing is ever reshuffled"
            )

        put("_hash", hash(tuple(getattr(self, f.name) for f in fields(self) if f.init)))

    def __hash__(self) -> int:
        return self._hash  # rules are the key of every cache, and hashing twelve fields takes longer than a step

    def __reduce__(self) -> tuple[Any, ...]:
        return Rules.from_dict, (self.to_dict(),)  # hashes of strings differ between processes

    @property
    def deck(self) -> tuple[int, ...]:
        """The cards in play, ascending."""
        return _deck(self.ranks, self.suits)

    @property
    def deck_size(self) -> int:
        """Number of cards in the deck."""
        return len(self.ranks) * len(self.suits)

    @property
    def rounds(self) -> int:
        """Number of betting rounds."""
        return self.draws + 1

    @property
    def actions(self) -> int:
        """Size of the action space: fold, check/call, bet/raise and every subset of the hand."""
        return DISCARD + (1 << self.hand_size)

    @property
    def reserve(self) -> int:
        """Maximum number of chips that a player can pay in a hand, and the minimum to be dealt in (48 by default)."""
        big_blind, bets = self.stakes.blinds[1], self.stakes.bets
        return big_blind + (self.raise_cap - 1) * bets[0] + self.raise_cap * sum(bets[1:])

    @property
    def mbb_per_chip(self) -> float:
        """Thousandths of a big blind (mbb) in one chip."""
        return 1000 / self.stakes.blinds[1]

    @property
    def name(self) -> str:
        """The preset's name, or ``custom``."""
        return next((name for name, rules in PRESETS.items() if rules == self), "custom")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for TOML or JSON; the inverse of `from_dict`."""
        plain = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        plain["stakes"] = {"blinds": list(self.stakes.blinds), "bets": list(self.stakes.bets)}
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Rules:
        """Make rules from plain values; a missing field has its default, an unknown one is refused."""
        if not isinstance(values, Mapping):
            raise RulesError(f"rules {values!r}: expected a mapping from option to value")
        known = [f.name for f in fields(cls) if f.init]
        for key in values:
            if key not in known:
                raise RulesError(f"unknown rule {key!r}: expected one of {', '.join(known)}")
        return cls(**values)

    @classmethod
    def preset(cls, name: str) -> Rules:
        """Return the rules named archie, barge, pagat, mini, midi or maxi."""
        if not isinstance(name, str) or name not in PRESETS:
            raise RulesError(f"rules {name!r}: expected one of {', '.join(PRESETS)}, or a Rules value")
        return PRESETS[name]


_MINI = Rules(
    stakes=Stakes((1, 2), (2, 4)),
    high_qualifier="3",
    low_qualifier="4",
    draws=1,
    hand_size=2,
    max_discard=2,
    ranks="A23456",
    suits="cd",
)
_MIDI = Rules(
    stakes=Stakes((1, 2), (2, 4)),
    high_qualifier="5",
    low_qualifier="4",
    draws=1,
    hand_size=3,
    max_discard=3,
    ranks="A2345",
    suits="cdh",
)
_MAXI = Rules(
    stakes=Stakes((1, 2), (2, 4)),
    high_qualifier="A",
    low_qualifier="6",
    draws=1,
    max_discard=2,
    ranks="A234567",
    suits="cdh",
    flushes=False,
)
PRESETS: Final[Mapping[str, Rules]] = {
    "archie": Rules(),
    "barge": Rules(draw_order="sequential"),
    "pagat": Rules(high_qualifier="9", no_qualifier="equal_split", draw_order="sequential"),
    "mini": _MINI,
    "midi": _MIDI,
    "maxi": _MAXI,
}
"""Rules by name.  BARGE's fallback and Pagat's belong to different games and are never combined."""


def as_rules(value: Rules | str) -> Rules:
    """Return a `Rules` value unchanged, or look up a preset by name."""
    return value if isinstance(value, Rules) else Rules.preset(value)
