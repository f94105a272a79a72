"""Rules in words, every sentence derived from the `Rules` value that the engine plays by."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from archie_env._core.state import MAX_HAND
from archie_env._core.tables import (
    FLUSH,
    FULL_HOUSE,
    PAIR,
    QUADS,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
    high_classes,
)
from archie_env.cards import RANKS
from archie_env.hands import CATEGORY_NAMES, HandValues
from archie_env.rendering.wording import counted
from archie_env.rules import PRESETS, Rules

WIDTH: Final = 96
_LABEL: Final = 12
_SUITS_NEEDED: Final = {PAIR: 2, TWO_PAIR: 2, TRIPS: 3, FULL_HOUSE: 3, QUADS: 4}


def _chips(sizes: Sequence[int]) -> str:
    """``1 chip``, ``2 chips``, or ``2, 2, 4, 4 chips by round``."""
    if len(set(sizes)) > 1:
        return f"{', '.join(map(str, sizes))} chips by round"
    return f"{sizes[0]} chip{'' if sizes[0] == 1 else 's'}"


def explain(rules: Rules) -> str:
    """The whole game under these rules, a paragraph for each subject."""
    lines = [f"Archie, rules {rules.name}", ""]
    for label, sentences in (
        ("Table", _table(rules)),
        ("Betting", _betting(rules)),
        ("Draws", _draws(rules)),
        ("High", _high(rules)),
        ("Low", _low(rules)),
        ("The pot", _pot(rules)),
    ):
        lines += textwrap.wrap(f"{label:{_LABEL}}{sentences}", WIDTH, subsequent_indent=" " * _LABEL, break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines[:-1])


def _table(rules: Rules) -> str:
    small, big = rules.stakes.blinds
    dealt = 2 * rules.hand_size + 2 * rules.draws * rules.max_discard
    return (
        f"Two players, {rules.deck_size} cards (ranks {rules.ranks}, suits {rules.suits}), no joker. "
        f"Each is dealt {counted(rules.hand_size, 'card')} face down, one card at a time, the big blind first; "
        "no card is burnt. "
        f"At most {dealt} cards are dealt in a hand, so nothing is ever reshuffled. "
        f"There is no ante. The dealer posts the small blind {small}, the other player the big blind {big}; "
        "both count as paid. The seed, or the caller, decides who deals first; then positions swap for every hand. "
        f"A player can pay at most {_chips([rules.reserve])} in a hand "
        "and needs that much to be dealt in, so nobody is ever all-in."
    )


def _betting(rules: Rules) -> str:
    bets, raises = rules.stakes.bets, rules.raise_cap - 1
    if raises:
        wagers = f"bets and raises are {_chips(bets)}, at most one bet and {counted(raises, 'raise')} a round"
        blind = "is the bet, and keeps the option to raise when merely called"
        free, facing = "check or bet", "fold, call or raise"
    elif rules.draws:
        wagers = f"bets are {_chips(bets[1:])}, at most one bet and no raise a round"
        wagers = wagers.replace("by round", "by round from the second")
        blind = "is the bet, so nobody can bet or raise"
        free, facing = "check or, after the first round, bet", "fold or call"
    else:
        wagers = "at most one bet and no raise"
        blind = "is the bet, so nobody can bet or raise"
        free, facing = "check", "fold or call"
    later = " in the first round, the big blind in every later one" if rules.draws else ""
    return (
        f"{counted(rules.rounds, 'round').capitalize()}; {wagers}. "
        f"In the first round the big blind {blind}. The dealer acts first{later}. "
        f"With nothing to call: {free}; facing a wager: {facing}. "
        f"{_check_raise(rules)}A round ends when both players have acted and their wagers match. "
        "A fold ends the hand at once: the other player takes the pot, whatever qualifies, and no cards are shown. "
        f"Otherwise both hands are shown after {_last_round(rules)}."
    )


def _check_raise(rules: Rules) -> str:
    """Checking and then raising takes a round that opens without a wager, a bet and a raise."""
    return "Checking and then raising is allowed. " if rules.draws and rules.raise_cap > 1 else ""


def _last_round(rules: Rules) -> str:
    return f"round {rules.rounds}" if rules.draws else "the round"


def _draws(rules: Rules) -> str:
    if not rules.draws:
        return "None: the cards dealt are played to the end."
    when = "after each betting round but the last" if rules.draws > 1 else "between the two betting rounds"
    if not rules.max_discard:
        return (
            f"{counted(rules.draws, 'draw').capitalize()}, {when}, in which no card may be replaced: both players stand pat, "
            "and the cards dealt are played to the end."
        )
    order = (
        "Both commit their discards before either sees the other's number; numbers become public with the replacements."
        if rules.draw_order == "simultaneous"
        else "The big blind discards first, and the dealer knows that number before discarding."
    )
    return (
        f"{counted(rules.draws, 'draw').capitalize()}, {when}: "
        f"replace up to {counted(rules.max_discard, 'card')} or stand pat. "
        f"{order} Replacements are dealt face down, the big blind's first."
    )


def _high(rules: Rules) -> str:
    names = [CATEGORY_NAMES[category] for category in _possible_categories(rules)]
    ranks = "then ranks from the largest group and the highest card down"
    order = f"From best to worst: {', '.join(names)}; {ranks}. {_straights(rules)}Suits never rank."
    if rules.high_qualifier is None:
        return f"No hand qualifies for the high half. {order}"
    values = HandValues(rules)
    if values.high_qualifier > len(high_classes(rules.hand_size, rules.flushes)):
        return f"No hand is good enough to qualify. {order}"
    least = values.high_name(values.high_qualifier)
    more = "; two pair of any ranks qualify" if CATEGORY_NAMES[TWO_PAIR] in names else ""
    straights = "" if rules.hand_size == 5 else " Straights and flushes do not count."
    return f"A {least} or better qualifies{more}. {order}{straights}"


def _possible_categories(rules: Rules) -> list[int]:
    """Categories that some hand of this deck has, best first."""
    if rules.flushes and rules.hand_size == MAX_HAND and len(rules.suits) == 1:
        return [STRAIGHT_FLUSH, FLUSH] if _straight_tops(rules) else [FLUSH]
    found = {category for category, order in high_classes(rules.hand_size, rules.flushes) if _in_play(order, rules)}
    if not _straight_tops(rules):
        found -= {STRAIGHT, STRAIGHT_FLUSH}
    return sorted((c for c in found if _SUITS_NEEDED.get(c, 1) <= len(rules.suits)), reverse=True)


def _in_play(order: tuple[int, ...], rules: Rules) -> bool:
    return all(RANKS[rank] in rules.ranks for rank in order)


def _straight_tops(rules: Rules) -> list[str]:
    """Highest cards of the straights in this deck, ascending; the lowest straight, A-2-3-4-5, has the five."""
    if rules.hand_size < MAX_HAND:
        return []
    ladder = RANKS[-1] + RANKS
    runs = (ladder[i : i + MAX_HAND] for i in range(len(ladder) - MAX_HAND + 1))
    return [run[-1] for run in runs if set(run) <= set(rules.ranks)]


def _straights(rules: Rules) -> str:
    tops = _straight_tops(rules)
    return "A-2-3-4-5 is the lowest straight, and no straight goes round the ace. " if tops[:1] == ["5"] else ""


def _low(rules: Rules) -> str:
    if rules.low_qualifier is None:
        return "No hand qualifies for the low half."
    ace_low = sorted(rules.ranks, key=(RANKS[-1] + RANKS[:-1]).index)
    allowed = ace_low[: ace_low.index(rules.low_qualifier) + 1]
    top = rules.low_qualifier
    text = (
        f"{counted(rules.hand_size, 'different rank').capitalize()}, none above {top}, qualify"
        if rules.hand_size > 1
        else (f"A card not above {top} qualifies")
    )
    if len(allowed) < rules.hand_size:
        return f"{text}; this deck has too few such ranks, so no hand does."
    best = "-".join(reversed(allowed[: rules.hand_size]))
    ignored = "; straights and flushes are ignored" if rules.hand_size == 5 else ""
    return f"{text}; the ace is low{ignored}. Compared from the highest card down, the lower wins: {best} is best."


def _pot(rules: Rules) -> str:
    neither = (
        "the best ordinary high hand takes everything"
        if rules.no_qualifier == "best_high"
        else "the players divide the pot equally"
    )
    return (
        "There is no declaring: every hand competes wherever it qualifies. "
        "Hands that qualify in both directions: half to the best high, half to the best low. "
        f"In one direction only: its best hand takes everything. In neither: {neither}. "
        f"Both have paid the same, so the halves are equal. Equal hands share the part they tie for. {_odd_chips(rules)} "
        "A player's result is the award minus the chips paid; the two results sum to zero."
    )


def _odd_chips(rules: Rules) -> str:
    """A shared half is odd only where each player has paid an odd number; a whole pot never is (R4.4)."""
    text = (
        "An odd chip of one shared half goes to the first player after the dealer, the big blind; "
        "where both halves are shared, each player gets one, as nobody gets more than one odd chip."
    )
    return text if _can_be_odd(rules) else f"{text} At these stakes no share is ever odd."


def _can_be_odd(rules: Rules) -> bool:
    if rules.high_qualifier is None or rules.low_qualifier is None:
        return False
    big_blind, bets = rules.stakes.blinds[1], rules.stakes.bets
    first = bets[:1] if rules.raise_cap > 1 else ()
    return any(chips % 2 for chips in (big_blind, *first, *bets[1:]))


def preset_table() -> str:
    """Every preset in a row."""
    rows = [("preset", "cards", "hand", "draws", "discards", "high", "low", "nobody qualifies", "blinds", "bets", "wagers")]
    for name, rules in PRESETS.items():
        rows.append(
            (
                name,
                str(rules.deck_size),
                str(rules.hand_size),
                str(rules.draws),
                rules.draw_order,
                f"pair of {rules.high_qualifier}s" if rules.high_qualifier else "none",
                f"{rules.low_qualifier} or lower" if rules.low_qualifier else "none",
                rules.no_qualifier.replace("_", " "),
                "/".join(map(str, rules.stakes.blinds)),
                "/".join(map(str, rules.stakes.bets)),
                str(rules.raise_cap),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
