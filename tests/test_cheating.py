"""Players that cheat with what they are handed: rows, masks, a generator, and the array they answer with."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import load
from archie_env.batch import Hands
from archie_env.errors import ArchieError
from archie_env.observation import decode
from archie_env.policy import Actions, Masks, Observations, Probabilities, private_generator
from archie_env.validation import seed_word
from evaluation.duplicate.deals import DealPairs, read_secret, secret_hash, seed_of_deals
from evaluation.duplicate.match import MatchResult, play_match
from evaluation.tournament.crosstable import crosstable

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
    hands: NDArray[np.int8] = Hands(np.arange(deals), np.zeros(deals, int), seed=seed).games["hand"][:, :, 0, :5]
    return hands


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


def test_a_player_cannot_pair_its_hands_by_their_rows() -> None:
    """In one hand of a pair a player holds what its opponent holds in the other: neighbours would give the cards away."""
    cheat = Cheat()
    play_match(cheat, CALLER, DEALS, SEED)
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
