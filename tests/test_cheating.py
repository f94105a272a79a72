"""Players that cheat with what they are handed: rows, masks, a generator, and the array they answer with."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from archie_env.batch import Hands
from archie_env.errors import EXCEPTION, MALFORMED, PROBABILITIES, ArchieError, IllegalActionError
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, Policy, Probabilities, UniformPolicy, private_generator
from archie_env.rules import PRESETS
from archie_env.terminal.shell import terminable
from archie_env.validation import seed_word
from evaluation.aivat.match import play_adjusted
from evaluation.aivat.value_function import learn
from evaluation.duplicate.deals import DealPairs, read_secret, secret_hash, seed_of_deals
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.duplicate.report import format_match
from evaluation.players import TimeLimitError
from evaluation.tournament.crosstable import crosstable
from tests.records import hands_in
from training.monitoring import match

CALLER = load("call_draw")
SECRET = bytes(range(32))
SEED, DEALS = 13, 100


class Cheat:
    """Plays as the caller does, and keeps copies of what it is handed."""

    name = "cheat"

    def __init__(self) -> None:
        self.rows: list[Observations] = []
        self.bases: list[object] = []
        self.generators: list[np.random.Generator] = []

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.rows.append(observations.copy())
        self.bases += [observations.base, masks.base]
        self.generators.append(rng)
        return CALLER.act(observations, masks, rng)

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        return CALLER.probabilities(observations, masks)


def first_hands(rows: Observations) -> list[tuple[int, ...]]:
    return [tuple(decode(row, "archie").hand) for row in rows]


def dealt(seed: int, deals: int = DEALS) -> NDArray[np.int8]:
    """``(deals, 2, 5)``: the first hands of dealer and big blind."""
    return hands_in(Hands(np.arange(deals), np.zeros(deals, int), seed=seed).games)[:, :, 0]


def ints_in(value: object) -> list[int]:
    """Every whole number within lists, tuples, dicts and arrays."""
    if isinstance(value, (int, np.integer)):
        return [int(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, np.ndarray)):
        return [number for part in value for number in ints_in(part)]
    return []


def vars_of(rng: np.random.Generator) -> list[object]:
    seeds = rng.bit_generator.seed_seq
    assert isinstance(seeds, np.random.SeedSequence)
    return [seeds.entropy, seeds.spawn_key]


@pytest.mark.parametrize("secret", [None, SECRET])
def test_the_generator_of_a_player_leads_to_no_seed_of_the_cards(secret: bytes | None) -> None:
    cheat = Cheat()
    play_match(cheat, CALLER, DEALS, SEED, chunk=50, secret=secret)
    fixed = seed_of_deals(SEED, secret)
    for rng in cheat.generators:
        numbers = ints_in([vars_of(rng), rng.bit_generator.state])
        assert numbers
        for number in numbers:
            assert number not in (fixed, int(seed_word(fixed)))
            if number < 2**63:
                assert seed_word(number) != seed_word(fixed)
        assert SEED not in numbers


def test_a_player_that_rebuilds_the_decks_from_its_generator_finds_other_cards() -> None:
    cheat = Cheat()
    play_match(cheat, CALLER, DEALS, SEED)
    held = set(first_hands(cheat.rows[0]))
    entropy = ints_in(vars_of(cheat.generators[0]))
    guesses = {*entropy, *(number & (2**64 - 1) for number in entropy)}
    for guess in guesses:
        rebuilt = dealt(guess)[:, 0]
        assert not held & {tuple(sorted(hand)) for hand in rebuilt.tolist()}
    assert held <= {tuple(sorted(hand)) for hand in dealt(SEED)[:, 0].tolist()}  # the attack works with the right seed


def test_the_streams_of_players_order_and_deals_are_all_different() -> None:
    keys = [("player", 0, 0), ("player", 1, 0), ("player", 0, 64), ("order", 0), ("order", 64)]
    streams = [private_generator(source, *key) for source in (0, 1, SECRET) for key in keys]
    streams += [np.random.default_rng(seed) for seed in (0, 1, [0, 1], [0, 2])]
    draws = [tuple(rng.integers(0, 2**63, 4).tolist()) for rng in streams]
    assert len(set(draws)) == len(draws)
    for key in keys:
        assert private_generator(SEED, *key).random() == private_generator(SEED, *key).random()


def pairs_found(rows: Observations, deals: dict[tuple[int, ...], int]) -> int:
    """How many neighbours are the two hands of one deal."""
    numbers = [deals[hand] for hand in first_hands(rows)]
    return sum(one == other for one, other in itertools.pairwise(numbers))


def match_in_training(first: Policy, second: Policy, deals: int, seed: int) -> object:
    return match(first, second, deals, seed, PRESETS["archie"])


@pytest.mark.parametrize("play", [play_match, match_in_training])
def test_a_player_cannot_pair_its_hands_by_their_rows(play: Callable[..., object]) -> None:
    """In one hand of a pair a player holds what its opponent holds in the other: neighbours would give the cards away."""
    cheat = Cheat()
    play(cheat, CALLER, DEALS, SEED)
    fixed = dealt(SEED).tolist()
    deals = {tuple(sorted(hand)): i for i, both in enumerate(fixed) for hand in both}
    numbers = [deals[hand] for hand in first_hands(cheat.rows[0])]
    assert len(numbers) == DEALS  # as dealer in every deal
    assert numbers != sorted(numbers)
    firsts = [np.array([row for row in rows if decode(row, "archie").phase < 2]) for rows in cheat.rows]
    mixed = [rows for rows in firsts if len({decode(row, "archie").dealer for row in rows}) == 2]
    assert sum(pairs_found(rows, deals) for rows in mixed) < 0.05 * sum(map(len, mixed))


def test_what_a_player_is_handed_is_its_own_memory() -> None:
    cheat, other = Cheat(), Cheat()
    play_match(cheat, other, 20, SEED)
    assert all(base is None for base in cheat.bases + other.bases)


def test_rows_that_were_handed_out_do_not_change_later() -> None:
    hands = Hands(np.arange(50), np.arange(50) % 2, seed=SEED)
    places, rows, masks = hands.waiting(0)
    before = places.copy(), rows.copy(), masks.copy()
    hands.waiting(1)
    hands.play(places, np.ones(len(places), int))
    hands.waiting(0)
    assert np.array_equal(places, before[0])
    assert np.array_equal(rows, before[1])
    assert np.array_equal(masks, before[2])


class Scribbler(Cheat):
    """Writes over all it is handed after looking at it."""

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        actions = super().act(observations, masks, rng)
        observations[:] = 1
        masks[:] = 1
        rng.bit_generator.state = np.random.default_rng(0).bit_generator.state
        return actions


def test_writing_over_what_is_handed_out_changes_nothing() -> None:
    fair = play_match(Cheat(), load("uniform"), DEALS, SEED)
    assert play_match(Scribbler(), load("uniform"), DEALS, SEED) == fair


@pytest.mark.parametrize("secret", [None, SECRET])
def test_pairs_are_put_together_again_after_the_match(secret: bytes | None) -> None:
    pairs = DealPairs(64, 30, SEED, secret)
    assert np.array_equal(np.sort(pairs.numbers), np.arange(128, 188))
    assert not np.array_equal(np.sort(pairs.numbers[:30]), pairs.numbers[:30])
    together = pairs.paired(np.stack([pairs.indices, pairs.dealers], axis=1))
    assert np.array_equal(together[:, :, 0], np.repeat(np.arange(64, 94), 2).reshape(-1, 2))
    assert np.array_equal(together[:, :, 1], np.tile([0, 1], (30, 1)))


def test_the_cards_follow_from_the_secret_seed_and_its_hash_is_in_the_result() -> None:
    open_match = play_match(CALLER, load("raise_draw"), DEALS, SEED)
    assert open_match.secret is None
    secret = play_match(CALLER, load("raise_draw"), DEALS, SEED, secret=SECRET)
    assert secret.secret == secret_hash(SECRET)
    assert secret == play_match(CALLER, load("raise_draw"), DEALS, SEED, secret=SECRET)
    assert secret.totals != open_match.totals
    assert secret.totals != play_match(CALLER, load("raise_draw"), DEALS, SEED + 1, secret=SECRET).totals
    assert secret.totals != play_match(CALLER, load("raise_draw"), DEALS, SEED, secret=bytes(32)).totals
    assert MatchResult.from_dict(secret.to_dict()) == secret
    with pytest.raises(ArchieError, match="the earlier part of the match has secret"):
        play_match(CALLER, load("raise_draw"), 2 * DEALS, SEED, chunk=DEALS, earlier=secret)
    table = crosstable([CALLER, load("raise_draw")], DEALS, SEED, secret=SECRET)
    assert table.results[0].totals == secret.totals


@pytest.mark.parametrize("content", [b"", bytes(31), bytes(33)])
def test_a_secret_of_another_length_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(ArchieError, match="secret: expected exactly 32 random bytes"):
        read_secret(file)
    with pytest.raises(ArchieError, match="found no file"):
        read_secret(tmp_path / "missing")
    file.write_bytes(SECRET)
    assert read_secret(file) == SECRET


# ---- what an umpire judges is what is played and corrected


class TwoFaced:
    """Converts to another array each time it is asked to."""

    def __init__(self, *answers: NDArray[np.float32]) -> None:
        self.answers = list(answers)

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[np.float32]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Flatterer(UniformPolicy):
    """Plays at random, and lets its correction be made with probabilities that suit it."""

    def __init__(self, flatter: bool) -> None:
        self.flatter = flatter

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        fair = UniformPolicy().probabilities(observations, masks)
        if not self.flatter:
            return fair
        folds = np.zeros_like(fair)
        folds[np.arange(len(masks)), masks.argmax(axis=1)] = 1
        return TwoFaced(fair, folds)  # type: ignore[return-value]


def test_a_player_cannot_change_its_adjusted_result_by_answering_twice() -> None:
    value = learn(UniformPolicy(), load("call_draw", "mini"), 200, 9, "mini")
    fair, flattered = (
        play_adjusted(Flatterer(flatter), load("call_draw", "mini"), 200, 1, "mini", value, samples=2, known=(True, True))
        for flatter in (False, True)
    )
    assert np.array_equal(fair.raw, flattered.raw)
    assert np.array_equal(fair.corrections, flattered.corrections)


class Rewriter(Cheat):
    """Writes into its last answer, as a thread of its own could at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = np.zeros(0, np.int64)

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        self.answer = super().act(observations, masks, rng)
        return self.answer


def test_the_array_that_a_player_answers_with_is_not_the_one_that_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    player, play = Rewriter(), Hands.play

    def late(self: Hands, places: NDArray[np.int64], actions: Actions) -> None:
        player.answer[:] = 99
        play(self, places, actions)

    fair = play_match(Cheat(), CALLER, 50, SEED)
    monkeypatch.setattr(Hands, "play", late)
    assert play_match(player, CALLER, 50, SEED) == fair


# ---- whatever a player does costs it its hands, and nobody the match


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NamelessError(BaseException):
    """No Exception."""


class Raises(Cheat):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        raise self.error


@pytest.mark.parametrize("time_limit", [None, 10.0])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnprintableError(), "act raised UnprintableError: an error whose text raises RuntimeError"),
        (NamelessError("out"), "act raised NamelessError: out"),
        (GeneratorExit(), "act raised GeneratorExit"),
        (SystemExit(0), "act raised SystemExit: 0"),
        (KeyboardInterrupt(), "act raised KeyboardInterrupt"),
        (TimeLimitError("said so itself"), "act raised TimeLimitError: said so itself"),
        (ValueError("\x1b[2J\udcff\u202e"), r"act raised ValueError: \x1b[2J\udcff\u202e"),
    ],
)
def test_whatever_a_player_raises_is_a_fault(error: BaseException, text: str, time_limit: float | None) -> None:
    result = play_match(Raises(error), CALLER, 5, time_limit=time_limit)
    assert result.faults[0].counts == {EXCEPTION: 10}
    assert text in result.faults[0].reports[0]
    format_match(result).encode()
    with pytest.raises(type(error) if isinstance(error, Exception) else IllegalActionError):
        play_match(Raises(error), CALLER, 5, strict=True, time_limit=time_limit)


def test_a_name_with_control_characters_is_escaped() -> None:
    cheat = Cheat()
    cheat.name = "\x1b[2J\ud800 cheat"
    result = play_match(cheat, CALLER, 4)
    assert result.a == r"\x1b[2J\ud800 cheat"


STOPS = signal.SIGINT, signal.SIGTERM


class Meddler(Cheat):
    """Changes the process it runs in, so that the harmless warnings of others become exceptions."""

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        np.seterr(all="raise")
        warnings.simplefilter("error")
        sys.setrecursionlimit(sys.getrecursionlimit() + 1)
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        return super().act(observations, masks, rng)


class Careless(Cheat):
    """Divides by zero and warns, as a network of anybody may."""

    def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
        np.float32(1e38) * np.float32(1e38)
        warnings.warn("harmless", stacklevel=1)
        return super().act(observations, masks, rng)


def test_what_a_player_changes_in_the_process_is_undone_after_its_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = np.geterr(), list(warnings.filters), sys.getrecursionlimit(), *map(signal.getsignal, STOPS)
        result = play_match(Meddler(), Careless(), 20, SEED)
        after = np.geterr(), list(warnings.filters), sys.getrecursionlimit(), *map(signal.getsignal, STOPS)
        assert after == before
    assert result == play_match(Cheat(), Cheat(), 20, SEED)


def test_probabilities_too_large_for_single_precision_are_a_fault_when_warnings_are_errors() -> None:
    class Huge(Flatterer):
        def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
            return np.full(masks.shape, 1e300)

    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        result = play_match(Huge(False), CALLER, 5, probabilities=True)
    assert result.faults[0].counts == {PROBABILITIES: 10}
    assert not result.faults[1].total


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("swallowed", [True, False])
def test_a_person_s_signal_ends_the_match_whatever_the_player_makes_of_it(number: signal.Signals, swallowed: bool) -> None:
    class Swallower(Cheat):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            with contextlib.suppress(*[KeyboardInterrupt] * swallowed):
                signal.raise_signal(number)
            return super().act(observations, masks, rng)

    with terminable(), pytest.raises(KeyboardInterrupt):
        play_match(Swallower(), CALLER, 5)


@pytest.mark.parametrize("answer", [np.full(1, 1, "timedelta64[s]"), np.array(["1"]), np.array([1 + 0j]), np.array([True])])
def test_numbers_of_other_kinds_are_malformed(answer: NDArray[Any]) -> None:
    class Odd(Cheat):
        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.repeat(answer, len(masks))

    assert set(play_match(Odd(), CALLER, 5).faults[0].counts) == {MALFORMED}
