"""Phrases for betting, draws and results, as `render` and the terminal print them.

Everything is made from a `View`, so no phrase can reveal a hidden card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from archie_env.actions import DISCARD
from archie_env.cards import format_card
from archie_env.events import SEATS, Award, Event, Result, View
from archie_env.hands import HandValues
from archie_env.rules import Rules

YOU: Final = "you"
"""The name that is conjugated in the second person."""
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six")
REASONS: Final = {
    "only_high": "only high qualifies",
    "only_low": "only low qualifies",
    "best_high": "nobody qualifies, so the best high takes the pot",
    "equal_split": "nobody qualifies, so the pot is divided",
}
_THIRD_PERSON: Final = {"have": "has", "are": "is"}

Names = tuple[str, str]


def counted(n: int, noun: str) -> str:
    """Return a number and its noun: ``one card``, ``two cards``."""
    return f"{NUMBERS[n]} {noun}{'s' * (n != 1)}"


def says(name: str, verb: str) -> str:
    """Return a name and its verb: ``you call``, ``player_1 calls``."""
    return f"{name} {verb if name == YOU else _THIRD_PERSON.get(verb, verb + 's')}"


def phase(view: View, rules: Rules) -> str:
    """Name the stage of the hand: ``betting round 2 of 4``."""
    if view.result is not None:
        return "hand over"
    if view.drawing:
        return f"draw {view.round + 1} of {rules.draws}"
    return f"betting round {view.round + 1} of {rules.rounds}"


def amount(event: Event) -> str:
    """Format the chips of a betting action for after its verb: `` 2`` after call and bet, `` to 4`` after raise."""
    return {"call": f" {event.owed}", "bet": f" {event.to}", "raise": f" to {event.to}"}.get(event.verb, "")


def _betting_phrase(event: Event, names: Names) -> str:
    name = names[event.seat]
    if event.kind == "post":
        return f"{says(name, 'post')} {event.to}"
    return says(name, event.verb) + ("" if event.verb == "call" else amount(event))


def betting(view: View, names: Names = SEATS) -> list[list[str]]:
    """Describe the blinds and actions of each betting round."""
    return [[_betting_phrase(event, names) for event in events] for events in view.betting]


def drawing(view: View, names: Names = SEATS) -> list[list[str]]:
    """Describe the visible part of each draw so far, the big blind first."""
    phrases: list[list[str]] = [[] for _ in range(max(map(len, view.draws)))]
    for seat in (1 - view.dealer, view.dealer):
        for draw, discarded in enumerate(view.draws[seat]):
            waiting = view.committed[seat] and draw == len(view.draws[seat]) - 1
            phrase = f"{says(names[seat], 'draw')} {NUMBERS[discarded]}" if discarded else f"{says(names[seat], 'stand')} pat"
            phrases[draw].append(f"{phrase} (committed)" if waiting else phrase)
    return phrases


def choices(view: View) -> list[tuple[int, str]]:
    """Describe the legal betting actions: ``(1, 'call 2')``; discards are not listed."""
    legal = [action for action in view.legal if action < DISCARD]
    return [(action, event.verb + amount(event)) for action, event in zip(legal, view.choices, strict=True)]


def discard_numbers(cards: Sequence[int]) -> str:
    """List the number that each card adds to a discard action: ``2c 1, 7d 2``."""
    return ", ".join(f"{format_card(card)} {1 << bit}" for bit, card in enumerate(cards))


def signed(chips: int) -> str:
    """Format chips as ``+4``, ``-4`` or ``0``."""
    return f"{chips:+d}" if chips else "0"


def award_words(award: Award, names: Names = SEATS) -> str:
    """Name a part of the pot and its winners: ``High half, 24 to player_0``."""
    part = "Whole pot" if award.half == "pot" else f"{award.half.capitalize()} half"
    first, second = award.chips
    if not (first and second):
        return f"{part}, {first or second} to {names[second > 0]}"
    return f"{part}, " + (f"{first} to each" if first == second else f"{first} to {names[0]}, {second} to {names[1]}")


def award_reasons(award: Award, rules: Rules, names: Names = SEATS) -> list[str]:
    """List the reasons for an award, the winner's hand first: ``player_0 has wheel, 5-4-3-2-A``."""
    if award.reason in ("fold", "forfeit"):
        past = "folded" if award.reason == "fold" else "gave the hand up"
        return [f"{names[1 - award.winners[0]]} {past}"]
    reasons = [REASONS[award.reason]] if award.reason in REASONS else []
    if award.values is None:
        return reasons
    text = HandValues(rules).value_text
    if len(award.winners) == 2:
        return [f"both have {text(award, 0)}", *reasons]
    winner = award.winners[0]
    return [f"{says(names[seat], 'have')} {text(award, seat)}" for seat in (winner, 1 - winner)] + reasons


def division_words(result: Result, names: Names = SEATS) -> str:
    """Name a scoop or a quartering, or return an empty string: ``player_0 scoops``, ``player_1 is quartered``."""
    if result.scooped is not None:
        return f"{says(names[result.scooped], 'scoop')}: both halves"
    if result.quartered is not None:
        return f"{says(names[result.quartered], 'are')} quartered: one half shared, the other lost"
    return ""


def net_words(view: View, names: Names = SEATS) -> str:
    """Format the net result of a hand: ``player_0 +4, player_1 -4 chips``."""
    if view.result is None:
        return ""
    return ", ".join(f"{name} {signed(net)}" for name, net in zip(names, view.result.net, strict=True)) + " chips"


def short(name: str, most: int) -> str:
    """Shorten a name to at most this many characters."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def stack_of(stacks: Mapping[str, int] | None, seat: int) -> int | None:
    """Return the chips of a seat in a session."""
    return None if stacks is None else stacks.get(SEATS[seat])
