"""Phrases for betting, draws and results, as `render` and the terminal print them.

Everything is made from a `View`, so no phrase can reveal a hidden card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archie_env.actions import DISCARD
from archie_env.cards import format_card
from archie_env.events import SEATS, Award, Event, Result, View
from archie_env.hands import HandParts, HandValues
from archie_env.rules import Rules
from archie_env.words import ENGLISH, Words

Names = tuple[str, str]


def phase(view: View, rules: Rules, words: Words = ENGLISH) -> str:
    """Name the stage of the hand: ``betting round 2 of 4``."""
    if view.result is not None:
        return words.say("terminal.over")
    if view.drawing:
        return words.say("terminal.drawing", n=view.round + 1, of=rules.draws)
    return words.say("terminal.betting", n=view.round + 1, of=rules.rounds)


def event_words(event: Event, names: Names = SEATS, words: Words = ENGLISH) -> str:
    """Describe a blind or a betting action: ``you call``, ``player_1 raises to 4``."""
    return words.about(f"event.{event.verb or event.kind}", names[event.seat], chips=event.to)


def betting(view: View, names: Names = SEATS, words: Words = ENGLISH) -> list[list[str]]:
    """Describe the blinds and actions of each betting round."""
    return [[event_words(event, names, words) for event in events] for events in view.betting]


def drawing(view: View, names: Names = SEATS, words: Words = ENGLISH) -> list[list[str]]:
    """Describe the visible part of each draw so far, the big blind first."""
    phrases: list[list[str]] = [[] for _ in range(max(map(len, view.draws)))]
    for seat in (1 - view.dealer, view.dealer):
        for draw, discarded in enumerate(view.draws[seat]):
            waiting = view.committed[seat] and draw == len(view.draws[seat]) - 1
            phrase = words.about(f"event.{'draw' if discarded else 'pat'}", names[seat], n=words.number(discarded))
            phrases[draw].append(words.say("event.committed", phrase=phrase) if waiting else phrase)
    return phrases


def choices(view: View, words: Words = ENGLISH) -> list[tuple[int, str]]:
    """Describe the legal betting actions: ``(1, 'call 2')``; discards are not listed."""
    legal = [action for action in view.legal if action < DISCARD]
    return [
        (action, words.say(f"action.{event.verb}", chips=event.owed if event.verb == "call" else event.to))
        for action, event in zip(legal, view.choices, strict=True)
    ]


def discard_numbers(cards: Sequence[int]) -> str:
    """List the number that each card adds to a discard action: ``2c 1, 7d 2``."""
    return ", ".join(f"{format_card(card)} {1 << bit}" for bit, card in enumerate(cards))


def signed(chips: int) -> str:
    """Format chips as ``+4``, ``-4`` or ``0``."""
    return f"{chips:+d}" if chips else "0"


def award_words(award: Award, names: Names = SEATS, words: Words = ENGLISH) -> str:
    """Name a part of the pot and its winners: ``High half, 24 to player_0``."""
    first, second = award.chips
    if first == second:
        shares = [words.say("award.each", chips=first)]
    else:
        paid = zip(names, award.chips, strict=True)
        shares = [words.about("award.share", name, chips=chips) for name, chips in paid if chips]
    return ", ".join([words.say(f"award.{award.half}"), *shares])


def award_reasons(award: Award, rules: Rules, names: Names = SEATS, words: Words = ENGLISH) -> list[str]:
    """List the reasons for an award, the winner's hand first: ``player_0 has wheel, 5-4-3-2-A``."""
    if award.reason in ("fold", "forfeit"):
        return [words.about(f"award.{award.reason}", names[1 - award.winners[0]])]
    reasons = [] if award.reason == "half" else [words.say(f"award.{award.reason}")]
    if award.values is None:
        return reasons
    if len(award.winners) == 2:
        return [words.say("award.both", hand=HandValues(rules).value_text(award, 0, words)), *reasons]
    winner = award.winners[0]
    return [_holding(HandValues(rules).compared(award, seat), names[seat], words) for seat in (winner, 1 - winner)] + reasons


def _holding(hand: HandParts, name: str, words: Words) -> str:
    if hand.category == "no_low":
        return words.about("award.lacks", name)
    return words.about("award.holds", name, hand=hand.text(words))


def division_words(result: Result, names: Names = SEATS, words: Words = ENGLISH) -> str:
    """Name a scoop or a quartering, or return an empty string: ``player_0 scoops``, ``player_1 is quartered``."""
    if result.scooped is not None:
        return words.about("award.scoop", names[result.scooped])
    if result.quartered is not None:
        return words.about("award.quarter", names[result.quartered])
    return ""


def net_words(view: View, names: Names = SEATS, words: Words = ENGLISH) -> str:
    """Format the net result of a hand: ``player_0 +4, player_1 -4 chips``."""
    if view.result is None:
        return ""
    nets = zip(names, view.result.net, strict=True)
    first, second = (words.about("award.net", name, chips=signed(net)) for name, net in nets)
    return words.say("award.nets", first=first, second=second)


def short(name: str, most: int) -> str:
    """Shorten a name to at most this many characters."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def stack_of(stacks: Mapping[str, int] | None, seat: int) -> int | None:
    """Return the chips of a seat in a session."""
    return None if stacks is None else stacks.get(SEATS[seat])
