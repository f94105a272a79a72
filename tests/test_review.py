"""Reviews: values against exact ones, only what the seat knew, silence where too little fits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from archie_env.errors import ArchieError, OrderError
from archie_env.game import Game
from archie_env.notation import dump
from archie_env.observation import width
from archie_env.policy import Masks, Observations, Policy, Probabilities, StochasticPolicy
from archie_env.review import ENOUGH, review_hand
from archie_env.review.particles import DOUBT
from archie_env.rules import Rules
from archie_env.terminal.main import main as archie
from archie_env.words import LANGUAGES
from evaluation.calibration import main, samples


class Leaning(StochasticPolicy):
    """Plays by every entry of a row, so that its actions tell much of its cards."""

    name = "leaning"

    def __init__(self, rules: str, strength: float = 0.8) -> None:
        self._weights = strength * np.random.default_rng(3).normal(
            size=(width(Rules.preset(rules)), Rules.preset(rules).actions)
        )

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        p = np.where(masks, np.exp(np.minimum(observations, 1) @ self._weights), 0)
        rows: Probabilities = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
        return rows


def played(rules: str, policy: Policy, seed: int) -> Game:
    """A hand of self-play."""
    game, rng = Game(rules, seed=seed, replacements="per_seat"), np.random.default_rng(seed)
    while (seat := game.to_act) is not None:
        game.apply(int(policy.act(game.observation(seat)[None], game.mask(seat)[None], rng)[0]))
    return game


def believed(game: Game, policy: Policy) -> NDArray[np.float64]:
    """What the review takes the seat to act to do."""
    seat = game.to_act
    assert seat is not None
    mask = game.mask(seat)
    p: NDArray[np.float64] = (1 - DOUBT) * policy.probabilities(game.observation(seat)[None], mask[None])[
        0
    ] + DOUBT * mask / mask.sum()
    return p


def possible(game: Game, seat: int, call: int, policy: Policy) -> Iterator[tuple[float, int]]:
    """Every hand that the other may have had on the way to ``call`` in mini: its weight, and the seat's chips after a call."""
    rules, dealer = game.rules, game.dealer
    own = [event.cards for event in game.history if event.kind == "deal" and event.seat == seat]
    (count,) = (len(event.cards) for event in game.history if event.kind == "draw" and event.seat != seat)
    actions = [event for event in game.history[:call] if event.action is not None]
    rest = [card for card in rules.deck if card not in {*own[0], *own[1]}]
    for first in itertools.combinations(rest, 2):
        left = [card for card in rest if card not in first]
        for new in itertools.combinations(left, count):
            spare = [card for card in left if card not in new]
            blocks = [[*(own[1] if s == seat else new)] for s in (1 - dealer, dealer)]  # the big blind's first
            padded = [block + [spare.pop() for _ in range(2 - len(block))] for block in blocks]
            hands = [own[0] if s == seat else first for s in (1 - dealer, dealer)]
            deck = [*itertools.chain(*zip(*hands, strict=True)), *padded[0], *padded[1]]
            start = Game(rules, dealer=dealer, deck=deck, replacements="per_seat")
            for mask in (m for m in range(4) if m.bit_count() == count):
                weight, at = 1.0, start.clone()
                for event in actions:
                    action = event.action
                    assert action is not None
                    if event.seat != seat:
                        action = 3 + mask if event.kind == "draw" else action
                        weight *= believed(at, policy)[action]
                    at.apply(action)
                at.apply(1)
                assert at.over
                yield weight, at.result.net[seat]


def test_calling_the_last_bet_is_worth_its_exact_value() -> None:
    policy, checked, off = Leaning("mini"), 0, []
    for seed in range(400):
        game = played("mini", policy, seed)
        calls = [i for i, event in enumerate(game.history) if event.round == 1 and event.verb in ("call", "fold")]
        if not calls:
            continue
        seat = game.history[calls[-1]].seat
        exact = np.array(list(possible(game, seat, calls[-1], policy)))
        value = (exact[:, 0] * exact[:, 1]).sum() / exact[:, 0].sum()
        spread = np.sqrt((exact[:, 0] * (exact[:, 1] - value) ** 2).sum() / exact[:, 0].sum())
        (decision,) = review_hand(game, seat, policy, particles=4000, seed=seed, moves=[calls[-1]]).decisions
        values = {action.action: action.value for action in decision.actions}
        assert values[0] == _paid(game, calls[-1], seat)
        assert values[1] is not None
        if spread:
            off.append((values[1] - value) / (spread / np.sqrt(min(1024, decision.effective))))
        else:
            assert values[1] == value
        checked += 1
        if checked == 6:
            break
    assert checked == 6
    assert np.abs(off).max() < 4
    assert abs(np.mean(off)) < 3 / np.sqrt(len(off))


def _paid(game: Game, move: int, seat: int) -> float:
    """The net chips of a seat that folds at a move."""
    before = Game(game.rules, dealer=game.dealer, deck=game.deck, replacements="per_seat")
    for event in game.history[:move]:
        if event.action is not None:
            before.apply(event.action)
    return -before.paid[seat]


def test_a_review_knows_only_what_the_seat_knew() -> None:
    policy = Leaning("archie", 0.2)
    game = played("archie", policy, 5)
    seat = 0
    mine = [event.cards for event in game.history if event.kind == "deal" and event.seat == seat]
    own = {card for cards in mine for card in cards}
    for seed in range(2):
        other = list(game.deck)
        free = [i for i, card in enumerate(other) if card not in own]
        for i, card in zip(free, np.random.default_rng(seed).permutation([other[i] for i in free]).tolist(), strict=True):
            other[i] = card
        again = Game(game.rules, dealer=game.dealer, deck=other, replacements="per_seat")
        for event in game.history:
            if event.action is not None:
                again.apply(event.action)
        assert again.hands[1] != game.hands[1]
        first, second = (review_hand(g, seat, policy, particles=300).to_dict()["decisions"] for g in (game, again))
        assert first == second


def test_a_decision_does_not_depend_on_what_came_later() -> None:
    policy = Leaning("archie", 0.2)
    game = played("archie", policy, 6)
    review = review_hand(game, 0, policy, particles=2000)
    first = review.decisions[0]
    (alone,) = review_hand(game, 0, policy, particles=2000, moves=[first.move]).decisions
    assert alone == first


def test_nothing_is_said_below_fifty_effective_particles() -> None:
    policy = Leaning("archie", 1.0)
    games = [played("archie", policy, seed) for seed in range(3)]
    decisions = [d for game in games for d in review_hand(game, 0, policy, particles=300).decisions]
    silent = [d for d in decisions if d.effective < ENOUGH]
    assert silent
    assert len(silent) < len(decisions)
    for decision in decisions:
        said = [action.value is not None for action in decision.actions]
        assert all(said) if decision.effective >= ENOUGH else not any(said)
        assert (decision.equity is not None) == all(said)


def test_the_parts_sum_to_the_result() -> None:
    policy = Leaning("archie", 0.2)
    for seed in range(3):
        game = played("archie", policy, seed)
        review = review_hand(game, 1, policy, particles=500, seed=seed)
        assert review.luck - review.given_up == pytest.approx(game.result.net[1])
        worse = [a.loss or 0 for d in review.decisions for a in d.actions if a.played and a.verdict == "worse"]
        assert review.given_up == pytest.approx(sum(worse))
        moves = [i for i, event in enumerate(game.history) if event.action is not None and event.seat == 1]
        assert [d.move for d in review.decisions] == moves
        values = json.loads(json.dumps(review.to_dict()))
        assert [sum(a["played"] for a in d["actions"]) for d in values["decisions"]] == [1] * len(moves)


class Actor:
    """A player without probabilities."""

    name = "actor"

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
        actions: NDArray[np.int64] = masks.argmax(axis=1)
        return actions


def test_reviewers_and_hands_that_can_not_be_reviewed_are_refused() -> None:
    game = played("archie", Leaning("archie", 0.2), 1)
    with pytest.raises(ArchieError, match="reviewer 'actor': probabilities raised AttributeError"):
        review_hand(game, 0, Actor())  # type: ignore[arg-type]
    with pytest.raises(ArchieError, match="reviewer 'leaning': probabilities raised ValueError"):
        review_hand(game, 0, Leaning("mini"))
    with pytest.raises(OrderError, match="hand is not over"):
        review_hand(Game(seed=1), 0, "uniform")
    with pytest.raises(ArchieError, match="particles 3: "):
        review_hand(game, 0, "uniform", particles=3)


def test_values_of_self_play_are_unbiased() -> None:
    found = list(samples(Leaning("mini"), "mini", 80, seed=3, particles=1000))
    bias = np.array([sample.bias for sample in found if sample.value is not None])
    assert len(bias) == 80
    assert abs(bias.mean()) < 3 * bias.std() / np.sqrt(len(bias))


def test_the_calibration_command_prints_a_line_for_each_round(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule_based", "--rules", "mini", "--hands", "20", "--particles", "200"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("rule_based, rules mini, 20 hands, seed 0, 200 particles; chips\n")
    assert "| betting round 1 |" in out
    assert "| all " in out


def test_the_command_reviews_each_hand_and_seat_in_each_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, games = tmp_path / "hands.txt", []
    for seed in (1, 2):
        games.append(Game("mini", seed=seed))
        while not games[-1].over:
            games[-1].apply(games[-1].legal_actions()[-1 if games[-1].round else 1])
    file.write_text("\n".join(map(dump, games)))
    said = {}
    for language in LANGUAGES:
        assert archie(["review", str(file), "--reviewer", "uniform", "--lang", language]) == 0
        said[language] = capsys.readouterr().out
        assert said[language].count("player_0") == said[language].count("player_1") == 2
        played = sum(event.action is not None for game in games for event in game.history)
        assert sum(line.startswith("  * ") for line in said[language].splitlines()) == played
    assert len(set(said.values())) == len(LANGUAGES)
    assert archie(["review", str(file), "--reviewer", "uniform", "--lang", "en", "--hand", "2", "--seat", "1"]) == 0
    assert capsys.readouterr().out == "Hand 2, player_1\n" + said["en"].rpartition("Hand 2, player_1\n")[2]
    page = tmp_path / "hands.html"
    assert archie(["export", str(file), "-o", str(page), "--review"]) == 0
    assert page.read_text(encoding="utf-8").count('"given_up":') == 4
    unfinished = tmp_path / "unfinished.txt"
    unfinished.write_text(dump(Game("mini", seed=1)))
    capsys.readouterr()
    for arguments, words in (
        ([str(file), "--hand", "3"], "hand 3: expected 1 to 2"),
        ([str(unfinished)], "hand 1 is not over: expected finished hands"),
        ([str(file), "--reviewer", "nosuch"], "nosuch"),
        ([str(file), "--reviewer", "cfr_small"], "cfr_small"),
    ):
        assert archie(["review", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert archie(["export", str(file), "-o", str(tmp_path / "a.json"), "--review"]) == 2
    assert "expected a name that ends with .html" in capsys.readouterr().err
