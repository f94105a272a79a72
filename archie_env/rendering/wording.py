"""A view of the table in words: betting, draws, hands and results, as `render` and the terminal say them.

Everything is made from a `View`, so nothing can be said that the viewer may not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from archie_env.actions import CALL, DISCARD, FOLD, RAISE
from archie_env.cards import format_card
from archie_env.game import SEATS, Award, View
from archie_env.hands import HandValues
from archie_env.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Mapping

YOU: Final = "you"
"""The name that takes verbs without an s."""
NUMBERS: Final = ("no", "one", "two", "three", "four", "five")
_HAVE: Final = {"have": "has"}

Names = tuple[str, str]


def says(name: str, verb: str) -> str:
    """A name and its verb: ``you call``, ``player_1 calls``."""
    return f"{name} {verb if name == YOU else _HAVE.get(verb, verb + 's')}"


def phase(view: View, rules: Rules) -> str:
    """Where the hand stands: ``betting round 2 of 4``."""
    if view.result is not None:
        return "hand over"
    if view.drawing:
        return f"draw {view.round + 1} of {rules.draws}"
    return f"betting round {view.round + 1} of {rules.rounds}"


def round_start(view: View, rules: Rules, betting_round: int) -> list[int]:
    """Chips each seat has in front of it when a betting round opens: the blinds in the first, else none."""
    blinds = rules.stakes.blinds if betting_round == 0 else (0, 0)
    return [blinds[seat != view.dealer] for seat in (0, 1)]


def betting(view: View, rules: Rules, names: Names = SEATS) -> tuple[list[list[str]], list[int]]:
    """What was done in each betting round, and the chips of each seat in the current one."""
    told: list[list[str]] = []
    wagered = [0, 0]
    for betting_round, actions in enumerate(view.wagers):
        wagered = round_start(view, rules, betting_round)
        told.append([])
        for seat, action in actions:
            name, owed, most = names[seat], wagered[1 - seat] - wagered[seat], max(wagered)
            if action == FOLD:
                told[-1].append(says(name, "fold"))
            elif action == CALL:
                told[-1].append(says(name, "call" if owed > 0 else "check"))
                wagered[seat] = most
            else:
                wagered[seat] = most + rules.stakes.bets[betting_round]
                told[-1].append(f"{says(name, 'raise')} to {wagered[seat]}" if most else f"{says(name, 'bet')} {wagered[seat]}")
    return told, wagered


def drawing(view: View, names: Names = SEATS) -> list[list[str]]:
    """What is known of each draw so far, the big blind first."""
    told: list[list[str]] = [[] for _ in range(max(map(len, view.draws)))]
    for seat in (1 - view.dealer, view.dealer):
        for draw, thrown in enumerate(view.draws[seat]):
            waiting = view.committed[seat] and draw == len(view.draws[seat]) - 1
            phrase = f"{says(names[seat], 'draw')} {NUMBERS[thrown]}" if thrown else says(names[seat], "stand") + " pat"
            told[draw].append(f"{phrase} (committed)" if waiting else phrase)
    return told


def choices(view: View, rules: Rules) -> list[tuple[int, str]]:
    """Legal betting actions in words: ``(1, 'call 2')``; discards are not listed one by one."""
    _, wagered = betting(view, rules)
    seat = view.to_act or 0
    owed, most = wagered[1 - seat] - wagered[seat], max(wagered)
    raised = most + rules.stakes.bets[view.round]
    words = {
        FOLD: "fold",
        CALL: f"call {owed}" if owed > 0 else "check",
        RAISE: f"raise to {raised}" if most else f"bet {raised}",
    }
    return [(action, words[action]) for action in view.legal if action < DISCARD]


def hand_words(cards: Sequence[int], rules: Rules) -> str:
    """A hand as a player would call it, both ways: ``pair of nines, no low``."""
    values = HandValues(rules)
    high, low = values.of(cards)
    short = "" if values.qualifies_high(high) else " (does not qualify)"
    return f"{values.high_name(high)}{short}, {values.low_name(low)}"


def discard_numbers(cards: Sequence[int]) -> str:
    """What each card adds to the number of a discard action: ``2c 1, 7d 2``."""
    return ", ".join(f"{format_card(card)} {1 << place}" for place, card in enumerate(cards))


def signed(chips: int) -> str:
    """``+4``, ``-4`` or ``0``."""
    return f"{chips:+d}" if chips else "0"


def award_words(award: Award, names: Names = SEATS) -> tuple[str, str]:
    """A part of the pot and who gets it (``High half, 24 to player_0``), and why."""
    part = "Whole pot" if award.half == "pot" else f"{award.half.capitalize()} half"
    first, second = award.chips
    if first and second:
        takers = f"{first} to each" if first == second else f"{first} to {names[0]}, {second} to {names[1]}"
    else:
        takers = f"{first or second} to {names[second > 0]}"
    return f"{part}, {takers}", renamed(award.reason, names)


def renamed(reason: str, names: Names) -> str:
    """A reason of `Result` with other names for the seats."""
    for seat, name in zip(SEATS, names, strict=True):
        holds = says(name, "have")
        reason = reason.replace(f"{seat} has", holds).replace(f", {seat} ", f"; {holds} ").replace(seat, name)
    return reason


def net_words(view: View, names: Names = SEATS) -> str:
    """What the hand paid: ``player_0 +4, player_1 -4 chips``."""
    if view.result is None:
        return ""
    return ", ".join(f"{name} {signed(net)}" for name, net in zip(names, view.result.net, strict=True)) + " chips"


def short(name: str, most: int) -> str:
    """A name of at most so many characters."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def stack_of(stacks: Mapping[str, int] | None, seat: int) -> int | None:
    """A seat's chips in a session."""
    return None if stacks is None else stacks.get(SEATS[seat])
