"""Rules in words, every sentence derived from the `Rules` value that the engine plays by."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
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
from archie_env.actions import CALL, STAND_PAT
from archie_env.cards import RANKS
from archie_env.game import Game
from archie_env.hands import CATEGORIES, HandValues
from archie_env.rendering import wording
from archie_env.rules import PRESETS, Rules
from archie_env.words import ENGLISH, Words

WIDTH: Final = 96
_LABEL: Final = 12
PLAYERS: Final = ("Anna", "Ben")
EXAMPLES: Final = (("As 2d 3c 4h 5s", "9c 9h 7d 7s 2c"), ("Kh 9d 7c 4s 2h", "4c 4d Qs 8h 3c"))
"""Hands of the guide's two showdowns: a scoop, and a hand in which nobody qualifies."""
_SUITS_NEEDED: Final = {PAIR: 2, TWO_PAIR: 2, TRIPS: 3, FULL_HOUSE: 3, QUADS: 4}


def explain(rules: Rules, words: Words = ENGLISH) -> str:
    """The whole game under these rules, a paragraph for each subject, and two hands where the deck allows them."""
    paragraphs = [
        ("table", _table(rules, words)),
        ("betting", _betting(rules, words)),
        ("draws", _draws(rules, words)),
        ("high", _high(rules, words)),
        ("low", _low(rules, words)),
        ("pot", _pot(rules, words)),
    ]
    labelled = [(words.say(f"rules.{key}"), text) for key, text in paragraphs]
    labelled += [(words.say("rules.example", n=n), text) for n, text in enumerate(_examples(rules, words), 1)]
    lines = [words.say("rules.title", rules=rules.name), ""]
    for label, text in labelled:
        lines += textwrap.wrap(f"{label:{_LABEL}}{text}", WIDTH, subsequent_indent=" " * _LABEL, break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines[:-1])


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _chips(sizes: Sequence[int], words: Words, many: str = "rules.chips_by_round") -> str:
    """``1 chip``, ``2 chips``, or ``2, 2, 4, 4 chips by round``."""
    if len(set(sizes)) > 1:
        return words.say(many, chips=", ".join(map(str, sizes)))
    return words.count("count.chip", sizes[0], chips=sizes[0])


def _table(rules: Rules, words: Words) -> str:
    small, big = rules.stakes.blinds
    return words.say(
        "rules.table_text",
        deck=rules.deck_size,
        ranks=rules.ranks,
        suits=rules.suits,
        cards=words.count("count.card", rules.hand_size),
        dealt=2 * rules.hand_size + 2 * rules.draws * rules.max_discard,
        small=small,
        big=big,
        reserve=_chips([rules.reserve], words),
    )


def _betting(rules: Rules, words: Words) -> str:
    say, bets, raises = words.say, rules.stakes.bets, rules.raise_cap - 1
    blind = say("rules.blind_option" if raises else "rules.blind_closed")
    facing = say("rules.facing_raise" if raises else "rules.facing_call")
    if raises:
        wagers = say("rules.wagers_raises", chips=_chips(bets, words), raises=words.count("count.raise", raises))
        free = say("rules.free_bet")
    elif rules.draws:
        later = _chips(bets[1:], words, "rules.chips_by_round_from_second")
        wagers, free = say("rules.wagers_no_raise", chips=later), say("rules.free_later")
    else:
        wagers, free = say("rules.wagers_one_round"), say("rules.free_check")
    rounds = _capitalised(words.count("count.round", rules.rounds))
    first = say("rules.first_then" if rules.draws else "rules.first_only")
    last = say("rules.last_round", n=rules.rounds) if rules.draws else say("rules.only_round")
    return " ".join(
        [
            say("rules.betting_open", rounds=rounds, wagers=wagers, blind=blind, first=first),
            say("rules.betting_choice", free=free, facing=facing),
            # checking and then raising takes a round that opens without a wager, a bet and a raise
            *([say("rules.check_raise")] if rules.draws and raises else []),
            say("rules.betting_close", last=last),
        ]
    )


def _draws(rules: Rules, words: Words) -> str:
    if not rules.draws:
        return words.say("rules.no_draws")
    when = words.say("rules.when_several" if rules.draws > 1 else "rules.when_one")
    draws = _capitalised(words.count("count.draw", rules.draws))
    if not rules.max_discard:
        return words.say("rules.draws_closed", draws=draws, when=when)
    cards, order = words.count("count.card", rules.max_discard), words.say(f"rules.{rules.draw_order}")
    return words.say("rules.draws_text", draws=draws, when=when, cards=cards, order=order)


def _high(rules: Rules, words: Words) -> str:
    categories = _possible_categories(rules)
    names = ", ".join(words.say(f"category.{CATEGORIES[category]}") for category in categories)
    order = [words.say("rules.order", names=names)]
    if _straight_tops(rules)[:1] == ["5"]:
        order.append(words.say("rules.wheel_straight"))
    order.append(words.say("rules.suits"))
    if rules.high_qualifier is None:
        return " ".join([words.say("rules.no_high"), *order])
    values = HandValues(rules)
    if values.high_qualifier > len(high_classes(rules.hand_size, rules.flushes)):
        return " ".join([words.say("rules.no_high_possible"), *order])
    key = "rules.high_least_two_pair" if TWO_PAIR in categories else "rules.high_least"
    least = words.say(key, hand=values.high_name(values.high_qualifier, words))
    straights = [] if rules.hand_size == MAX_HAND else [words.say("rules.no_straights")]
    return " ".join([least, *order, *straights])


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


def _low(rules: Rules, words: Words) -> str:
    top = rules.low_qualifier
    if top is None:
        return words.say("rules.no_low")
    ace_low = sorted(rules.ranks, key=(RANKS[-1] + RANKS[:-1]).index)
    allowed = ace_low[: ace_low.index(top) + 1]
    if rules.hand_size > 1:
        low = words.say("rules.low_ranks", ranks=words.count("count.rank", rules.hand_size), top=top)
    else:
        low = words.say("rules.low_card", top=top)
    low = _capitalised(low)
    if len(allowed) < rules.hand_size:
        return words.say("rules.low_impossible", low=low)
    key = "rules.low_text_straights" if rules.hand_size == MAX_HAND else "rules.low_text"
    return words.say(key, low=low, best="-".join(reversed(allowed[: rules.hand_size])))


def _pot(rules: Rules, words: Words) -> str:
    neither = words.say("rules.neither_high" if rules.no_qualifier == "best_high" else "rules.neither_split")
    odd = ["rules.odd_chip"] if _can_be_odd(rules) else ["rules.odd_chip", "rules.never_odd"]
    return " ".join([words.say("rules.pot_text", neither=neither), *map(words.say, [*odd, "rules.result"])])


def _examples(rules: Rules, words: Words) -> Iterator[str]:
    """The guide's two showdowns, played by the engine; none where the deck or the hand is another."""
    if rules.hand_size != MAX_HAND or rules.deck_size != len(PRESETS["archie"].deck):
        return
    for hands in EXAMPLES:
        dealt = [f"{ben} {anna}" for anna, ben in zip(*map(str.split, hands), strict=True)]  # the big blind's card first
        game = Game(rules, deck=" ".join(dealt), dealer=0)
        while not game.over:
            game.apply(STAND_PAT if game.drawing else CALL)
        values = HandValues(rules)
        sentences = [
            words.say("rules.example_holds", name=name, cards=cards, hand=values.summary(cards, words))
            for name, cards in zip(PLAYERS, hands, strict=True)
        ]
        for award in game.result.awards:
            reasons = "; ".join(wording.award_reasons(award, rules, PLAYERS, words))
            part = wording.award_words(award, PLAYERS, words)
            sentences.append(words.say("rules.example_part", part=part, reasons=reasons))
        division = wording.division_words(game.result, PLAYERS, words)
        yield " ".join([*sentences, *([f"{division}."] if division else [])])


def _can_be_odd(rules: Rules) -> bool:
    """A shared half is odd only where each player has paid an odd number; a whole pot never is (R4.4)."""
    if rules.high_qualifier is None or rules.low_qualifier is None:
        return False
    big_blind, bets = rules.stakes.blinds[1], rules.stakes.bets
    first = bets[:1] if rules.raise_cap > 1 else ()
    return any(chips % 2 for chips in (big_blind, *first, *bets[1:]))


def preset_table(words: Words = ENGLISH) -> str:
    """Every preset in a row."""
    columns = ("preset", "cards", "hand", "draws", "discards", "high", "low", "nobody", "blinds", "bets", "wagers")
    none = words.say("preset.none")
    rows = [[words.say(f"preset.{column}") for column in columns]]
    for name, rules in PRESETS.items():
        rows.append(
            [
                name,
                str(rules.deck_size),
                str(rules.hand_size),
                str(rules.draws),
                words.say(f"preset.{rules.draw_order}"),
                words.say("preset.pair_of", rank=rules.high_qualifier) if rules.high_qualifier else none,
                words.say("preset.or_lower", rank=rules.low_qualifier) if rules.low_qualifier else none,
                words.say(f"preset.{rules.no_qualifier}"),
                "/".join(map(str, rules.stakes.blinds)),
                "/".join(map(str, rules.stakes.bets)),
                str(rules.raise_cap),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
