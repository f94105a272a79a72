"""A PPO policy trained against one fixed policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents import load
from archie_env.errors import ArchieError, ConfigError
from archie_env.observation import field
from archie_env.policy import Actions, Masks, Observations, StochasticPolicy
from archie_env.rules import Rules
from training.monitoring import match, self_play_statistics
from training.ppo.best_response import best_response_config, train_best_response


class Nameless(StochasticPolicy):
    """Always folds to a wager, and counts its decisions."""

    def __init__(self) -> None:
        self.asked, self.as_dealer = 0, 0
        self._dealer = field("mini", "dealer")

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.asked += len(masks)
        self.as_dealer += int((self._dealer.of(observations) != 0).sum())
        lowest: Actions = masks.argmax(axis=1)
        return lowest


def test_it_learns_to_beat_whoever_it_is_trained_against() -> None:
    for target in (load("call", "mini"), Nameless()):
        player = train_best_response(target, "mini", decisions=50_000, seed=2)
        score = match(player, target, 4096, seed=9, rules=Rules.preset("mini"))
        assert score.mean > 400 + 4 * score.standard_error, target.name


def test_the_target_alone_is_played_from_both_positions() -> None:
    target, told = Nameless(), []
    train_best_response(target, "mini", decisions=20_000, progress=lambda *told_now: told.append(told_now))
    assert target.asked > 5_000
    opponents = best_response_config("mini", 1.0, None, 1).opponents
    assert (opponents.self_play, opponents.snapshots, list(opponents.named)) == (0.0, 0.0, ["target"])
    assert 0.3 < target.as_dealer / target.asked < 0.7
    assert [decisions for _, decisions, _ in told] == [16_384, 32_768]
    assert [share for share, _, _ in told] == [pytest.approx(16_384 / 20_000), 1.0]


def test_it_may_start_as_another_player() -> None:
    player = train_best_response(load("call", "mini"), "mini", decisions=1, start=load("raise", "mini"))
    score = match(player, load("raise", "mini"), 1024, seed=9, rules=Rules.preset("mini"))
    habit = self_play_statistics(player, 1024, 9, Rules.preset("mini"))
    assert abs(score.mean) < 6 * score.standard_error + 100, "it still is nearly the player it was cloned from"
    assert habit.entropy["round_1"] < 0.1


def test_the_same_decisions_and_seed_give_the_same_player() -> None:
    first, again, other = (train_best_response(load("call_draw", "mini"), "mini", decisions=1, seed=s) for s in (4, 4, 5))
    assert all(np.array_equal(first.weights[name], again.weights[name]) for name in first.weights)
    assert not np.array_equal(first.weights["layer0.weight"], other.weights["layer0.weight"])


def test_it_stops_after_so_many_seconds() -> None:
    told: list[tuple[float, int, float]] = []
    train_best_response(load("call", "mini"), "mini", seconds=0.5, progress=lambda *now: told.append(now))
    assert told[-1][0] == 1.0
    assert all(share < 1 for share, _, _ in told[:-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": 0.0}, "best response: seconds = 0.0: expected a number above 0"),
        ({"seconds": float("nan")}, "best response: seconds = nan"),
        ({"decisions": 0}, "best response: budget.decisions = 0: expected a whole number 1 to"),
        ({"seed": -1, "decisions": 1}, "best response: seed = -1"),
    ],
)
def test_a_budget_or_seed_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_best_response(load("call"), **arguments)


def test_a_target_that_plays_what_is_not_legal_is_named() -> None:
    class Illegal(StochasticPolicy):
        name = "cheat"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), 34)

    with pytest.raises(ArchieError, match=r"opponent 'cheat', game .*: action 34 is not legal"):
        train_best_response(Illegal(), decisions=1)
