"""Local best response: the hands it samples against the exact range, and what it wins against the exact best response."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from agents import load
from archie_env._core.state import BIG_BLIND, CALL, DEALER, DISCARD, FOLD, GAME, RAISE
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, StochasticPolicy, UniformPolicy
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, as_rules
from evaluation.best_response import _decision_kernels, _range_kernels
from evaluation.best_response.lbr import LocalBestResponse
from evaluation.duplicate.match import play_match
from evaluation.exploitability.measure import measure
from tests.records import hands_in


class Patternless(StochasticPolicy):
    """Probabilities without any pattern from the whole row, so that every action reveals something about the hand."""

    name = "patternless"

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        directions = np.random.default_rng(1).normal(size=(observations.shape[1], masks.shape[1]))
        chances = np.exp(2 * np.sin(3 * observations.astype(float) @ directions)) * masks
        probabilities: Probabilities = (chances / chances.sum(axis=1, keepdims=True)).astype(np.float32)
        return probabilities


class Fixed(UniformPolicy):
    """The first legal action of a list, always."""

    name = "fixed"

    def __init__(self, *actions: int) -> None:
        self.actions = actions

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        certain = np.zeros(masks.shape, np.float32)
        certain[np.arange(len(masks)), self.act(observations, masks, np.random.default_rng(0))] = 1
        return certain

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        choices = np.array(self.actions)
        first: Actions = choices[(masks[:, choices] != 0).argmax(axis=1)]
        return first


Seen = Sequence[tuple[int, int]]
"""What a player has seen: (position, action) each; of the other's discards only how many cards they throw, as -count."""


def exact_range(
    policy: Policy, rules: str, me: int, mine: Sequence[int], new: Sequence[int], seen: Seen
) -> dict[tuple[int, ...], float]:
    """The chance of each hand the other may hold now, from every deal and every discard that agrees with what was seen."""
    played = as_rules(rules)
    unseen = [card for card in played.deck if card not in (*mine, *new)]
    found = defaultdict[tuple[int, ...], float](float)

    def walk(deck: list[int], actions: list[int], chance: float) -> None:
        game = Game(rules, deck=deck, dealer=0, replacements="per_seat")
        for action in actions:
            game.apply(action)
        if len(actions) == len(seen):
            found[game.hands[1 - me]] += chance
            return
        position, action = seen[len(actions)]
        assert game.to_act == position
        if position == me:
            walk(deck, [*actions, action], chance)
            return
        row, mask = game.observation(position)[None], game.mask(position)[None]
        chances = policy.probabilities(row, mask)[0]
        wanted = [action] if action >= 0 else [DISCARD + m for m in range(1 << played.hand_size) if m.bit_count() == -action]
        for choice in wanted:
            if chances[choice] > 0:
                walk(deck, [*actions, choice], chance * float(chances[choice]))

    size, reach = played.hand_size, played.draws * played.max_discard
    block = {BIG_BLIND: 2 * size, DEALER: 2 * size + reach}
    for theirs in itertools.permutations(unseen, size + reach):
        if list(theirs[:size]) != sorted(theirs[:size]):
            continue  # the order of a first hand doesn't matter
        deck = [-1] * played.deck_size
        for k in range(size):
            deck[2 * k + 1 - me], deck[2 * k + me] = mine[k], theirs[k]
        for k, card in enumerate(new):
            deck[block[me] + k] = card
        for k in range(reach):
            deck[block[1 - me] + k] = theirs[size + k]
        rest = iter(card for card in unseen if card not in theirs)
        walk([card if card >= 0 else next(rest) for card in deck], [], 1.0)
    total = sum(found.values())
    return {hand: chance / total for hand, chance in found.items()}


def row_of(
    rules: str, me: int, mine: Sequence[int], new: Sequence[int], seen: Seen
) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """What the player to act sees after that, the other's cards being any."""
    played = as_rules(rules)
    size, reach = played.hand_size, played.draws * played.max_discard
    block = 2 * size + (reach if me == DEALER else 0)
    deck = [-1] * played.deck_size
    for k in range(size):
        deck[2 * k + 1 - me] = mine[k]
    for k, card in enumerate(new):
        deck[block + k] = card
    rest = iter(card for card in played.deck if card not in (*mine, *new))
    game = Game(rules, deck=[card if card >= 0 else next(rest) for card in deck], dealer=0, replacements="per_seat")
    for _, action in seen:
        game.apply(action if action >= 0 else DISCARD + (1 << -action) - 1)
    return game.observation(me)[None]


HAND = parse_cards("2c Ad")
BEFORE: Seen = [(DEALER, RAISE)]
AFTER: Seen = [(DEALER, CALL), (BIG_BLIND, CALL), (BIG_BLIND, -1), (DEALER, DISCARD + 1), (BIG_BLIND, RAISE)]
DEALERS: Seen = [(DEALER, RAISE), (BIG_BLIND, CALL), (BIG_BLIND, DISCARD), (DEALER, -2), (BIG_BLIND, CALL), (DEALER, RAISE)]


@pytest.mark.parametrize(
    ("me", "new", "seen"), [(BIG_BLIND, [], BEFORE), (DEALER, parse_cards("5d"), AFTER), (BIG_BLIND, [], DEALERS)]
)
def test_sampled_hands_are_those_of_the_exact_range(me: int, new: list[int], seen: Seen) -> None:
    policy = Patternless()
    exact = exact_range(policy, "mini", me, sorted(HAND), new, seen)
    local = LocalBestResponse(policy, "mini", particles=80_000)
    row = row_of("mini", me, sorted(HAND), new, seen)
    scripts, games, weights = local.range(row, np.array([1], np.uint64))
    assert scripts["me"][0] == me
    found = defaultdict[tuple[int, ...], float](float)
    r = games["phase"][0] >> 1
    for hand, weight in zip(hands_in(games, "mini")[:, 1 - me, r, :2].tolist(), weights.tolist(), strict=True):
        found[tuple(hand)] += weight / weights.sum()
    assert sum(exact.values()) == pytest.approx(1)
    away = sum(abs(found[hand] - exact.get(hand, 0)) for hand in {*found, *exact}) / 2
    even = sum(abs(1 / len(exact) - chance) for chance in exact.values()) / 2
    assert away < 0.03 < 0.1 < even  # the range is far from even, and the sample near it


@pytest.mark.parametrize("name", ["uniform", "call", "call_draw", "rule_based"])
def test_it_wins_no_more_than_the_best_response_and_most_of_it(name: str) -> None:
    target = load(name, "mini")
    most = sum(measure(target, "mini", "rank_isomorphic").evaluation.best_responses) / 2 * 500  # mbb/hand
    won = play_match(LocalBestResponse(target, "mini"), target, 1500, seed=1, rules="mini").mbb
    assert won.mean < most + 4 * won.standard_error
    assert won.mean > 0.5 * most + 2 * won.standard_error


def test_it_wins_nothing_from_a_solution() -> None:
    target = load("solution:agents/weights/solution-mini.npz", "mini")
    won = play_match(LocalBestResponse(target, "mini"), target, 1500, seed=2, rules="mini").mbb
    assert won.mean < 4 * won.standard_error


def test_it_takes_every_pot_from_a_player_that_always_folds() -> None:
    """The big blind whenever the other is in it, for it must raise; the small blind before it is asked."""
    target = Fixed(FOLD, CALL, DISCARD)
    won = play_match(LocalBestResponse(target), target, 50, seed=3)
    assert won.chips.mean == 1.5
    assert won.totals.as_dealer.standard_error == 0


def test_a_raise_is_worth_less_where_those_who_fold_are_those_it_beats() -> None:
    """The hand that is beaten folds to a bet, the other calls: a bet wins the pot or loses 2, a check wins the pot as often."""
    games, scripts = np.zeros(2, GAME), np.zeros(1, _range_kernels.SCRIPT)
    games["paid"] = 2
    shares, actions = np.array([1.0, 0.0]), np.zeros(1, np.int64)
    for folds, best in (([1.0, 0.0], CALL), ([0.0, 1.0], RAISE), ([1.0, 1.0], RAISE), ([0.0, 0.0], CALL)):
        _decision_kernels.choose_bets(
            games, rulebook(as_rules("archie")), scripts, np.ones(2), shares, np.array(folds), actions
        )
        assert actions.tolist() == [best]


def test_it_beats_the_simple_players_of_the_full_game() -> None:
    target = load("call_draw")
    result = play_match(LocalBestResponse(target), target, 300, seed=4)
    assert result.mbb.significance > 4
    assert result.faults[0].total == 0


def test_it_stands_pat_on_what_cannot_be_beaten() -> None:
    deck = dict(enumerate(parse_cards("Ac 2h 2c 3h 3c 4h 4c 9h 5c Th")))
    rest = [card for card in as_rules("archie").deck if card not in deck.values()]
    game = Game(deck=[*deck.values(), *rest], dealer=0, replacements="per_seat")
    for action in (CALL, CALL):
        game.apply(action)
    row, mask = game.observation(1)[None], game.mask(1)[None]
    local = LocalBestResponse(load("uniform"))
    assert local.act(row, mask, np.random.default_rng(0)).tolist() == [DISCARD]
    assert local.probabilities(row, mask)[0, DISCARD] == 1


@pytest.mark.parametrize("rules", PRESETS)
def test_it_plays_legally_under_all_rules(rules: str) -> None:
    target = load("rule_based", rules)
    play_match(LocalBestResponse(target, rules, particles=8), target, 40, seed=5, rules=rules, strict=True)


def test_the_same_row_and_generator_give_the_same_action_whatever_came_before() -> None:
    target = load("uniform")
    game = Game(seed=6, dealer=0)
    row, mask = np.repeat(game.observation(0)[None], 200, 0), np.repeat(game.mask(0)[None], 200, 0)
    fresh = LocalBestResponse(target, particles=4).act(row, mask, np.random.default_rng(7))
    used = LocalBestResponse(target, particles=4)
    used.act(row, mask, np.random.default_rng(8))
    assert np.array_equal(used.act(row, mask, np.random.default_rng(7)), fresh)
    assert len(set(fresh.tolist())) > 1  # so few samples differ from each other


def test_invalid_probabilities_count_as_uniform_and_other_answers_are_refused() -> None:
    class Spoilt(UniformPolicy):
        def __init__(self, value: float, columns: int) -> None:
            self.value, self.columns = value, columns

        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            return np.full((len(masks), self.columns), self.value, np.float32)

    row, mask = Game(seed=9, dealer=0).observation(0)[None], Game(seed=9, dealer=0).mask(0)[None]
    rng = np.random.default_rng(0)
    assert mask[0, LocalBestResponse(Spoilt(np.nan, mask.shape[1])).act(row, mask, rng)[0]] == 1
    with pytest.raises(ArchieError, match=r"uniform: probabilities of shape \(\d+, 3\)"):
        LocalBestResponse(Spoilt(0.5, 3)).act(row, mask, rng)
    with pytest.raises(ArchieError, match="particles 0: expected at least 1"):
        LocalBestResponse(UniformPolicy(), particles=0)
    with pytest.raises(ArchieError, match="whose probabilities can be asked for"):
        LocalBestResponse(object())  # type: ignore[arg-type]
