"""Learner adapters: who is paid what, when a hand ends, and what the Gymnasium and SB3 faces show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from archie_env.actions import CALL, FOLD, RAISE, STAND_PAT
from archie_env.batch import Batch
from archie_env.envs.learner import SingleAgentBatch, divide_games
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.errors import ArchieError, IllegalActionError
from archie_env.observation import decode, field, width
from archie_env.policy import StochasticPolicy, UniformPolicy
from tests.records import cards_of

OVER = field("archie", "dealer").start - 1


class ByHash(StochasticPolicy):
    """Plays a legal action picked by a hash of what it sees: arbitrary, and the same wherever the same is seen."""

    name = "by_hash"

    def __init__(self, salt: int = 1) -> None:
        self._weights = np.random.default_rng(salt).integers(1, 2**40, 4096)

    def act(self, observations: Any, masks: Any, rng: Any = None) -> NDArray[np.int64]:
        hashed = (observations.astype(np.int64) * self._weights[: observations.shape[1]]).sum(axis=1) >> 7
        chosen = hashed % masks.sum(axis=1)
        actions: NDArray[np.int64] = (masks.cumsum(axis=1) == chosen[:, None] + 1).argmax(axis=1)
        return actions


class FirstOf(StochasticPolicy):
    """Takes the first legal action of a list."""

    name = "first_of"

    def __init__(self, *actions: int) -> None:
        self._actions = actions

    def act(self, observations: Any, masks: Any, rng: Any = None) -> NDArray[np.int64]:
        return np.array([next(a for a in self._actions if mask[a]) for mask in masks], np.int64)


FOLDER = FirstOf(FOLD, CALL, STAND_PAT)
CALLER = FirstOf(CALL, STAND_PAT)


def rewards_of_finished_hands(tables: SingleAgentBatch, learner: StochasticPolicy, steps: int) -> list[list[int]]:
    """Every reward of each game, in order."""
    paid: list[list[int]] = [[] for _ in range(len(tables))]
    rng = np.random.default_rng(0)
    for _ in range(steps):
        tables.step(learner.act(tables.observations, tables.masks, rng))
        for i in np.flatnonzero(tables.done):
            paid[i].append(int(tables.rewards[i]))
        assert not tables.rewards[~tables.done].any()
    return paid


def test_a_dealer_who_folds_at_once_pays_the_big_blind_one_chip() -> None:
    tables = SingleAgentBatch(64, [FOLDER], seed=3)  # alternate: every second hand the opponent opens, and folds
    paid = rewards_of_finished_hands(tables, CALLER, 40)
    assert (tables.walks > 0).all()
    checked_down = np.array([sum(p) for p in paid])
    assert (tables.chips - checked_down == tables.walks).all(), "each walk is worth exactly +1"


def test_a_learner_who_folds_as_dealer_loses_one_chip_at_that_step() -> None:
    tables = SingleAgentBatch(64, [CALLER], seed=3, seat="dealer")
    for _ in range(5):
        tables.step(np.full(64, FOLD))
        assert tables.done.all()
        assert (tables.rewards == -1).all()
    assert (tables.chips == -5).all()
    assert (tables.hands == 5).all()


def test_a_raise_that_is_folded_to_wins_the_big_blind() -> None:
    tables = SingleAgentBatch(64, [FOLDER], seed=3, seat="dealer")
    tables.step(np.full(64, RAISE))
    assert (tables.rewards == 2).all()


def test_a_seat_that_never_gets_to_decide_is_an_error_not_an_endless_loop() -> None:
    with pytest.raises(ArchieError, match="leaves nothing to learn"):
        SingleAgentBatch(2, [FOLDER], seed=3, seat="big_blind")


@pytest.mark.parametrize("seat", ["alternate", "dealer", "big_blind"])
@pytest.mark.parametrize("rules", ["archie", "pagat"])
def test_returns_are_the_engines_payoffs_hand_by_hand(seat: Any, rules: str) -> None:
    n, steps = 24, 300
    learner, opponent = ByHash(1), ByHash(2)
    tables = SingleAgentBatch(n, [opponent], rules=rules, seed=11, seat=seat)
    paid = rewards_of_finished_hands(tables, learner, steps)

    batch = Batch(n, rules, seed=11)  # the same cards: a function of seed, game and hand number
    expected: list[list[int]] = [[] for _ in range(n)]
    chips = [[0] for _ in range(n)]  # running totals of all hands, walks included
    decided = np.zeros(n, bool)
    for _ in range(8 * steps):
        positions = batch.games["turn"]
        learners_turn = {
            "alternate": batch.to_act == 0,
            "dealer": positions == 0,
            "big_blind": positions == 1,
        }[seat]
        dealer = batch.games["dealer"].copy()
        learners_seat: NDArray[Any] = {"alternate": np.zeros(n, int), "dealer": dealer, "big_blind": 1 - dealer}[seat]
        decided |= learners_turn
        actions = np.where(
            learners_turn, learner.act(batch.observations, batch.masks), opponent.act(batch.observations, batch.masks)
        )
        rewards, done = batch.step(actions)
        for i in np.flatnonzero(done):
            result = int(rewards[i, learners_seat[i]])
            chips[i].append(chips[i][-1] + result)
            if decided[i]:
                expected[i].append(result)
            decided[i] = False
    assert sum(map(len, paid)) > 1000
    for game in range(n):
        assert paid[game] == expected[game][: len(paid[game])]
        assert tables.chips[game] == chips[game][tables.hands[game]]


def test_in_self_play_the_hand_pays_whoever_ended_it() -> None:
    tables = SingleAgentBatch(32, [None], seed=5)
    policy = ByHash(1)
    batch = Batch(32, seed=5)
    for _ in range(400):
        assert np.array_equal(tables.observations, batch.observations)
        actions = policy.act(batch.observations, batch.masks)
        actor = batch.to_act.copy()
        tables.step(actions)
        rewards, done = batch.step(actions)
        assert np.array_equal(tables.done, done)
        assert np.array_equal(tables.rewards, rewards[np.arange(32), actor])
    assert not tables.walks.any()


def test_a_game_does_not_depend_on_the_size_of_the_batch() -> None:
    many = SingleAgentBatch(9, [ByHash(2)], seed=6)
    few = SingleAgentBatch(4, [ByHash(2)], seed=6)
    for _ in range(200):
        many.step(ByHash(1).act(many.observations, many.masks))
        few.step(ByHash(1).act(few.observations, few.masks))
        assert np.array_equal(many.observations[:4], few.observations)
        assert np.array_equal(many.rewards[:4], few.rewards)


def test_an_illegal_action_changes_nothing() -> None:
    tables = SingleAgentBatch(5, [UniformPolicy()], seed=6)
    before = tables.games.tobytes(), tables.stats.tobytes()
    actions = ByHash(1).act(tables.observations, tables.masks)
    actions[3] = STAND_PAT
    with pytest.raises(IllegalActionError, match="game 3: action 3 is not legal"):
        tables.step(actions)
    assert (tables.games.tobytes(), tables.stats.tobytes()) == before
    with pytest.raises(IllegalActionError, match=r"expected \(5,\) integers"):
        tables.step(np.zeros(5))


def test_an_opponent_that_plays_an_illegal_action_is_named() -> None:
    class Cheat(FirstOf):
        name = "cheat"

        def act(self, observations: Any, masks: Any, rng: Any = None) -> NDArray[np.int64]:
            return np.full(len(masks), 40)

    with pytest.raises(IllegalActionError, match="opponent 'cheat'"):
        SingleAgentBatch(4, [Cheat()], seed=1)


def test_hidden_cards_are_those_of_the_other_player() -> None:
    tables = SingleAgentBatch(64, [None], seed=5, hidden=True)
    for _ in range(60):
        tables.step(ByHash(1).act(tables.observations, tables.masks))
        for i in range(8):
            other, turn = 1 - tables.games["turn"][i], tables.games["turn"][i]
            phase, thrown = int(tables.games["phase"][i]), int(tables.games["thrown"][i, other])
            draw = thrown >> 6 * (phase >> 1)
            cards = set(cards_of(int(tables.games["held"][i, other, (phase >> 1) + (draw > 0)])))
            assert len(cards) == (5 if draw == 0 else 5 - draw.bit_length() + 1)
            assert set(np.flatnonzero(tables.hidden[i]).tolist()) == cards
            assert not cards & set(decode(tables.observations[i], "archie").hand)
            assert turn != other


def test_shares_are_kept_to_the_nearest_game() -> None:
    assert np.bincount(divide_games(10, [0.5, 0.3, 0.2])).tolist() == [5, 3, 2]
    assert np.bincount(divide_games(7, [1, 1, 0, 1]), minlength=4).tolist() == [2, 3, 0, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"n \(games\) 0"),
        ({"dtype": "float64"}, "dtype"),
        ({"seat": "button"}, "alternate"),
        ({"shares": [1.0, 2.0]}, "shares"),
        ({"opponents": []}, "shares"),
        ({"shares": [-1.0]}, "shares"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"n": 2, "opponents": [UniformPolicy()]} | arguments
    with pytest.raises(ValueError, match=message):
        SingleAgentBatch(**values)


# The Gymnasium face


def episodes(mode: str, steps: int) -> tuple[list[list[float]], list[list[bytes]]]:
    """Returns of every episode and the observations they ended with, by environment."""
    envs = ArchieVectorEnv(16, ByHash(2), autoreset_mode=mode, dtype="int8")
    learner = ByHash(1)
    observations, infos = envs.reset(seed=8)
    returns: list[list[float]] = [[] for _ in range(16)]
    endings: list[list[bytes]] = [[] for _ in range(16)]
    ended = np.zeros(16, bool)
    for _ in range(steps):
        actions = learner.act(observations, infos["action_mask"])
        actions[ended] = FOLD  # never looked at in NextStep; there is no ended game in SameStep
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        assert not truncations.any()
        assert infos["_action_mask"].all()
        assert not rewards[~terminations].any()
        assert envs.observation_space.contains(observations)
        if mode == "NextStep":
            assert not (terminations & ended).any()
            assert not rewards[ended].any()
            assert (infos["action_mask"][terminations] == 1).all()
            shown_over = observations[:, OVER] == 1
            assert shown_over[terminations].all()
            assert (infos["action_mask"][shown_over] == 1).all(), "an ended hand, or a walk that the next action pays"
            last = observations
            ended = terminations
        else:
            assert (infos["action_mask"][observations[:, OVER] == 1] == 1).all(), "a walk that the next action pays"
            assert ("final_obs" in infos) == terminations.any()
            if terminations.any():
                assert np.array_equal(infos["_final_obs"], terminations)
                assert np.array_equal(infos["_final_info"], terminations)
                assert np.array_equal(infos["final_info"]["_action_mask"], terminations)
                assert (infos["final_info"]["action_mask"][terminations] == 1).all()
                assert [row is None for row in infos["final_obs"]] == (~terminations).tolist()
                last = infos["final_obs"]
        for i in np.flatnonzero(terminations):
            returns[i].append(float(rewards[i]))
            endings[i].append(last[i].tobytes())
    return returns, endings


def test_both_autoreset_modes_play_the_same_hands() -> None:
    returns, endings = episodes("NextStep", 240)
    at_once, endings_at_once = episodes("SameStep", 240)
    assert sum(map(len, returns)) > 400
    for i in range(16):
        n = len(returns[i])
        assert at_once[i][:n] == returns[i]
        assert endings_at_once[i][:n] == endings[i]


def test_the_vector_environment_states_its_mode_and_spaces() -> None:
    envs = ArchieVectorEnv(3)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert ArchieVectorEnv(3, autoreset_mode="SameStep").metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_observation_space.shape == (width("archie"),)
    assert envs.action_space.shape == (3,)
    observations, infos = envs.reset(seed=1)
    assert observations.dtype == np.float32
    assert envs.observation_space.contains(observations)
    assert infos["action_mask"].dtype == np.int8
    assert np.array_equal(infos["action_mask"], envs.action_masks())
    with pytest.raises(ValueError, match="NEXT_STEP or SAME_STEP"):
        ArchieVectorEnv(3, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ValueError, match="options"):
        envs.reset(options={"deck": "As"})


def test_what_the_vector_environment_returned_never_changes() -> None:
    envs = ArchieVectorEnv(8, UniformPolicy(), autoreset_mode="SameStep")
    observations, infos = envs.reset(seed=2)
    kept = []
    for _ in range(30):
        arrays = [observations, infos["action_mask"]]
        if "final_obs" in infos:
            arrays += [row for row in infos["final_obs"] if row is not None]
        kept += [(array, array.copy()) for array in arrays]
        observations, rewards, terminations, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
        kept += [(rewards, rewards.copy()), (terminations, terminations.copy())]
    assert all(np.array_equal(array, copy) for array, copy in kept)


def test_a_seed_decides_the_hands_and_none_goes_on() -> None:
    envs = ArchieVectorEnv(8, UniformPolicy())

    def opening(seed: int | None) -> NDArray[Any]:
        observations, infos = envs.reset(seed=seed)
        np.random.seed(0)  # noqa: NPY002  # the global generator must not matter
        return np.concatenate([observations, envs.step(infos["action_mask"].argmax(axis=1))[0]])

    first, second = opening(5), opening(None)
    assert np.array_equal(opening(5), first)
    assert np.array_equal(opening(None), second)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_arrays_given_out_are_new_or_on_request_reused(mode: str) -> None:
    copied, reused = (ArchieVectorEnv(32, autoreset_mode=mode, copy=copy) for copy in (True, False))
    kept = []
    a, infos = copied.reset(seed=2)
    b, same = reused.reset(seed=2)
    for _ in range(40):
        assert (a == b).all()
        assert (infos["action_mask"] == same["action_mask"]).all()
        kept.append((a, a.copy(), infos["action_mask"], infos["action_mask"].copy()))
        actions = infos["action_mask"].argmax(axis=1)
        a, rewards, *_, infos = copied.step(actions)
        b, others, *_, same = reused.step(actions)
        assert (rewards == others).all()
    assert all((x == y).all() and (m == n).all() for x, y, m, n in kept)
    assert b is reused.tables.observations


# Snapshots


@pytest.mark.parametrize("rules", ["archie", "mini", "pagat"])
@pytest.mark.parametrize(
    "options", [{}, {"keep_walks": True}, {"seat": "dealer"}, {"seat": "big_blind", "replacements": "per_seat"}]
)
def test_a_restored_batch_equals_the_one_that_was_stored(rules: str, options: dict[str, Any]) -> None:
    batch, other = (SingleAgentBatch(100, [None, UniformPolicy()], None, rules, seed=3, **options) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(3):
        for _ in range(7):
            batch.step((batch.masks * rng.random(batch.masks.shape)).argmax(axis=1))
        other.restore(*batch.snapshot())
        assert other.games.tobytes() == batch.games.tobytes()
        assert other.stats.tobytes() == batch.stats.tobytes()
        assert np.array_equal(other.observations, batch.observations)
    chosen = batch.masks.argmax(axis=1)
    batch.step(chosen)
    other.step(chosen)
    assert other.games.tobytes() == batch.games.tobytes(), "their opponents draw the same random numbers"


def test_a_tampered_snapshot_restores_a_reachable_position_or_nothing() -> None:
    batch = SingleAgentBatch(20, [None, UniformPolicy()], seed=3)
    for _ in range(9):
        batch.step(batch.masks.argmax(axis=1))
    arrays, generators = batch.snapshot()
    before, rng, refused = batch.games.tobytes(), np.random.default_rng(1), 0
    for _ in range(300):
        changed = {name: array.copy() for name, array in arrays.items()}
        array = changed[list(changed)[int(rng.integers(len(changed)))]]
        info = np.iinfo(array.dtype)
        array.flat[rng.integers(array.size)] = rng.choice([info.min, info.max, -1, 0, 1, 2, 34])
        try:
            batch.restore(changed, generators)
        except ArchieError:
            refused += 1
            assert batch.games.tobytes() == before, "nothing was changed"
        else:
            assert (np.sort(batch.games["deck"], axis=1) == np.arange(52)).all()
            assert (batch.masks.sum(axis=1) > 0).all()
            batch.restore(arrays, generators)
    assert 100 < refused < 300


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("dtype", ["float32", "packed"])
@pytest.mark.parametrize("copy", [True, False])
def test_what_a_caller_writes_into_arrays_it_was_given_decides_nothing(mode: str, dtype: str, copy: bool) -> None:
    """Wrappers write into ``infos["action_mask"]``; legality, replacements and messages come from the games."""
    kept = ArchieVectorEnv(64, autoreset_mode=mode, dtype=dtype, illegal="replace", copy=copy)
    spoilt = ArchieVectorEnv(64, autoreset_mode=mode, dtype=dtype, illegal="replace", copy=copy)
    kept.reset(seed=3)
    _, infos = spoilt.reset(seed=3)
    rng = np.random.default_rng(1)
    for _ in range(30):
        infos["action_mask"][:] = 1
        assert (spoilt.action_masks() == kept.action_masks()).all()
        actions = rng.integers(-3, 40, 64)
        _, expected, ended, _, _ = kept.step(actions)
        _, rewards, done, _, infos = spoilt.step(actions)
        assert (rewards == expected).all()
        assert (done == ended).all()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "packed"])
def test_observations_of_the_vector_environment_hold_the_masks_where_asked_for(mode: str, dtype: str) -> None:
    envs = ArchieVectorEnv(64, autoreset_mode=mode, dtype=dtype, masks="observation", illegal="replace")
    plain = ArchieVectorEnv(64, autoreset_mode=mode, dtype=dtype, illegal="replace")
    (seen, infos), (rows, _) = envs.reset(seed=2), plain.reset(seed=2)
    rng, ended = np.random.default_rng(1), 0
    for _ in range(30):
        assert envs.observation_space.contains(seen)
        assert (seen["observation"] == rows).all()
        assert (seen["action_mask"] == infos["action_mask"]).all()
        actions = rng.integers(0, 35, 64)
        (seen, _, done, _, infos), (rows, _, _, _, _) = envs.step(actions), plain.step(actions)
        ended += done.sum()
        if mode == "SameStep" and done.any():
            final = infos["final_obs"][done.argmax()]
            assert envs.single_observation_space.contains(final)
            assert (final["action_mask"] == (2**35 - 1 if dtype == "packed" else 1)).all()
    assert ended > 50


def test_the_message_of_an_illegal_action_does_not_quote_what_a_caller_wrote() -> None:
    for games in (Batch(4, seed=1), SingleAgentBatch(4, [UniformPolicy()], seed=1, seat="dealer")):
        games.masks[:] = 1
        with pytest.raises(
            IllegalActionError, match=r"action 34 is not legal; legal: 0 \(fold\), 1 \(check/call\), 2 \(bet/raise\)\. "
        ):
            games.step(np.full(4, 34))


def test_a_seat_of_a_batch_is_shown_what_it_may_do_whatever_was_written_into_the_masks() -> None:
    batch, spoilt = Batch(256, seed=1), Batch(256, seed=1)
    for _ in range(20):
        spoilt.masks[:] = 1
        for seat in (0, 1):
            assert (spoilt.seat(seat)[1] == batch.masks * (batch.to_act == seat)[:, None]).all()
        actions = batch.sample_actions().copy()
        batch.step(actions)
        spoilt.step(actions)
