"""The engine against two judges that have never seen it: the referee and PokerKit."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from archie_env._core import table
from archie_env._core.jit import JIT_DISABLED
from archie_env._core.state import GAME
from archie_env.game import Game, deck_order
from archie_env.observation import decode
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, Replacements, Rules, Stakes
from tests import pokerkit_oracle
from tests.records import hands_in
from tests.referee import Referee

HANDS = 100_000 if not JIT_DISABLED else 400
ODD_CHIPS = Rules(stakes=Stakes((1, 3), (3, 3, 6, 6)))
VARIANTS: dict[str, Rules] = {
    **PRESETS,
    "archie sequential, equal split": Rules(draw_order="sequential", no_qualifier="equal_split"),
    "pagat simultaneous": replace(PRESETS["pagat"], draw_order="simultaneous"),
    "odd chips": ODD_CHIPS,
    "odd chips, equal split": replace(ODD_CHIPS, no_qualifier="equal_split", high_qualifier="T"),
    "mini sequential": replace(PRESETS["mini"], draw_order="sequential", no_qualifier="equal_split"),
    "four cards, two draws of at most two": Rules(
        hand_size=4,
        draws=2,
        max_discard=2,
        stakes=Stakes((2, 3), (3, 5, 7)),
        raise_cap=3,
        ranks="A23456789",
        suits="chs",
    ),
    "one card, no draw": Rules(
        hand_size=1,
        draws=0,
        max_discard=0,
        stakes=Stakes((1, 1), (1,)),
        raise_cap=2,
        high_qualifier=None,
        low_qualifier=None,
        ranks="JQK",
        suits="s",
    ),
    "no flushes, 28 cards": Rules(
        ranks="A234567",
        draws=1,
        stakes=Stakes((1, 2), (2, 4)),
        flushes=False,
        max_discard=3,
        high_qualifier="A",
        low_qualifier="6",
    ),
    "no low, one wager": Rules(low_qualifier=None, raise_cap=1),
    "no high, six wagers": Rules(high_qualifier=None, raise_cap=6, no_qualifier="equal_split"),
}


def choose(legal: list[int], chance: random.Random) -> int:
    """A random legal action that folds less than it might, so that hands reach the showdown."""
    if legal[0] == 0 and chance.random() < 0.85:
        legal = legal[1:]
    if legal[0] >= 3 and chance.random() < 0.3:
        return 3  # stand pat
    return chance.choice(legal)


def play_beside_referee(rules: Rules, hand: int, chance: random.Random, replacements: Replacements, look: bool) -> None:
    """Play one random hand in both; every decision must agree."""
    deck = list(rules.deck)
    chance.shuffle(deck)
    dealer = hand & 1
    referee = Referee(rules, deck, dealer, replacements)
    games, books = np.zeros(1, GAME), rulebook(rules, replacements)
    table.deal_table(games, books, 0, dealer, deck_order(rules, deck)[0], len(deck))
    masks, size, phase = np.zeros((2, rules.actions), np.int8), rules.hand_size, -1
    while True:
        seat = table.look_masks(games, books, masks)
        if referee.over or seat == table.ENDED:
            break
        legal = np.flatnonzero(masks[seat]).tolist()
        assert (seat, legal) == (referee.to_act, referee.legal_actions())
        assert not masks[1 - seat].any()
        if games["phase"][0] != phase:
            phase = games["phase"][0]
            cards = hands_in(games, rules)[0, :, phase >> 1, :size].tolist()
            assert cards == [referee.hands[dealer], referee.hands[1 - dealer]]
        if look:
            compare_views(rules, referee, games, books)
        action = choose(legal, chance)
        assert table.play_table(games, books, action) != table.ILLEGAL
        referee.apply(action)
    assert referee.over
    assert seat == table.ENDED
    net = int(games["net"][0])
    assert (referee.net[dealer], referee.net[1 - dealer]) == (net, -net)


def compare_views(rules: Rules, referee: Referee, games: np.ndarray, books: np.ndarray) -> None:
    """What each seat's observation says is what the referee lets it know."""
    for seat in (0, 1):
        row = np.zeros(int(books["width"][0]), np.int8)
        table.look_seat(games, books, seat, row, np.int8(1), np.int8(1))
        seen = decode(row, rules)
        known = referee.known_draw_counts(seat)
        assert seen.own_draws == tuple(known[seat])
        assert seen.other_draws == tuple(known[1 - seat])
        assert seen.owed == referee.owes(seat)
        assert seen.dealer == (seat == referee.dealer)
        assert seen.phase == 2 * referee.round + referee.drawing
        assert seen.wagers == tuple(map(tuple, referee.wagers))
        assert 0 <= sum(referee.paid) - seen.pot < int(books["pot_unit"][0])
        committed = len(known[seat]) > len(referee.draw_counts[seat])
        if committed:
            assert len(seen.hand) == rules.hand_size - known[seat][-1]
            assert set(seen.hand) <= set(referee.hands[seat])
        else:
            assert list(seen.hand) == referee.hands[seat]


@pytest.mark.parametrize("name", VARIANTS)
def test_engine_agrees_with_the_referee(name: str) -> None:
    """R1 to R6 on random hands: seat, legal actions, cards and result at every decision; 100,000 hands over all variants."""
    rules, chance = VARIANTS[name], random.Random(f"referee {name}")
    for hand in range(HANDS // len(VARIANTS) + 1):
        play_beside_referee(rules, hand, chance, ("shared", "per_seat")[hand // 2 & 1], look=hand % 16 == 0)


@pytest.mark.parametrize("preset", ["archie", "barge", "pagat"])
def test_engine_agrees_with_pokerkit(preset: str) -> None:
    """R1 to R4 on whole hands: actors, legal actions and result; 5,000 hands over three presets."""
    rules, chance = PRESETS[preset], random.Random(f"PokerKit {preset}")
    for hand in range((5_000 if not JIT_DISABLED else 60) // 3 + 1):
        deck = list(range(52))
        chance.shuffle(deck)
        game = Game(rules, deck=deck, dealer=hand & 1)
        actors, legal = [], []
        while not game.over:
            assert game.to_act is not None
            actors.append(game.to_act)
            legal.append(list(game.legal_actions()))
            game.apply(choose(legal[-1], chance))
        assert pokerkit_oracle.play(rules, deck, hand & 1, game.actions, actors, legal) == game.result.net
