"""The information state: complete, distinct, and blind to what a seat can't know."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from archie_env import archie_v0
from archie_env._core.jit import JIT_DISABLED
from archie_env.errors import ArchieError, RulesError
from archie_env.game import Game
from archie_env.observation import decode, field, fields, highest, index_table, pot_unit, scaled, unscaled, width
from archie_env.rulebook import rulebook
from archie_env.rules import PRESETS, Rules, Stakes

ROOT = Path(__file__).parents[1]
VARIANTS = {**PRESETS, "high stakes": Rules(stakes=Stakes((5, 10), (10, 10, 20, 20)), raise_cap=6)}
SCALE = 1 if not JIT_DISABLED else 20


def random_action(game: Game, chance: random.Random) -> int:
    legal = list(game.legal_actions())
    return chance.choice(legal[1:] if legal[0] == 0 and chance.random() < 0.85 else legal)


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_tile_the_row_and_name_every_index(name: str) -> None:
    rules = VARIANTS[name]
    at = 0
    for block in fields(rules):
        assert block.start == at
        at += block.size
    assert at == width(rules) == len(highest(rules))
    labels = [label for block in fields(rules) for label in block.labels()]
    assert len(set(labels)) == len(labels) == at
    assert highest(rules).max() <= 127


def test_a_block_is_cut_out_of_rows_of_any_shape() -> None:
    rows = np.arange(2 * 3 * width("archie")).reshape(2, 3, -1)
    for block in fields("archie"):
        assert field("archie", block.name) == block
        expected = rows[:, :, block.start : block.start + block.size].reshape(2, 3, *block.shape)
        np.testing.assert_array_equal(block.of(rows), expected)
        np.testing.assert_array_equal(block.of(rows[1, 2]), expected[1, 2])
    with pytest.raises(ArchieError, match="block 'cards': expected one of 'held', 'slots', "):
        field("archie", "cards")


@pytest.mark.parametrize("name", VARIANTS)
def test_entries_stay_in_range_and_both_forms_are_inverse(name: str) -> None:
    rules, chance = VARIANTS[name], random.Random(name)
    for seed in range(60 // SCALE + 1):
        game = Game(rules, seed=seed)
        while not game.over:
            for seat in (0, 1):
                row = game.observation(seat)
                assert (row >= 0).all()
                assert (row <= highest(rules)).all()
                assert (unscaled(scaled(row, rules), rules) == row).all()
                assert decode(row, rules) == decode(scaled(row, rules), rules)
            game.apply(random_action(game, chance))


def test_pots_too_large_for_a_byte_are_counted_in_larger_units() -> None:
    rules = VARIANTS["high stakes"]
    assert pot_unit(rules) > 1
    assert pot_unit(Rules()) == 1
    game = Game(rules, seed=1)
    while not game.over:
        seen = decode(game.observation(0), rules)
        assert 0 <= sum(game.paid) - seen.pot < pot_unit(rules)
        game.apply(2 if 2 in game.legal_actions() else 3 if game.drawing else 1)


@pytest.mark.parametrize("preset", ["archie", "barge", "mini"])
@pytest.mark.parametrize("replacements", ["shared", "per_seat"])
def test_hidden_cards_change_nothing_a_seat_is_given(preset: str, replacements: str) -> None:
    """200 permutations of all cards this seat has not seen: observation, mask, info and rendering stay byte-identical."""
    chance = random.Random(f"{preset} {replacements}")
    rules, checked = PRESETS[preset], 0
    while checked < 200 // SCALE:
        seat = chance.randrange(2)
        game = Game(rules, seed=chance.randrange(10**6), replacements=replacements)  # type: ignore[arg-type]
        for _ in range(chance.randrange(1, 20)):
            if not game.over:
                game.apply(random_action(game, chance))
        if game.over:
            continue
        other = permuted(game, seat, chance)
        if other is None:
            continue
        checked += 1
        assert given_to(game, seat) == given_to(other, seat)


def permuted(game: Game, seat: int, chance: random.Random) -> Game | None:
    """The same hand for ``seat``, all other cards shuffled; the other's discards keep their counts."""
    mine = {c for event in game.history if event.kind == "deal" and event.seat == seat for c in event.cards}
    places = [i for i, c in enumerate(game.deck) if c not in mine]
    cards = [game.deck[i] for i in places]
    chance.shuffle(cards)
    deck = list(game.deck)
    for place, card in zip(places, cards, strict=True):
        deck[place] = card
    other = Game(game.rules, deck=deck, dealer=game.dealer, replacements=game.replacements)
    for action in game.actions:
        if other.drawing and other.to_act != seat:
            count = (action - 3).bit_count()
            thrown = chance.sample(range(game.rules.hand_size), count)  # which cards go is hidden too
            other.apply(3 + sum(1 << i for i in thrown))
        else:
            other.apply(action)
    assert other.to_act == game.to_act
    return other


def given_to(game: Game, seat: int) -> tuple[object, ...]:
    """Everything the environment hands to a seat at this position."""
    agent = f"player_{seat}"
    env = archie_v0.env(game.rules, render_mode="ansi", viewpoint=agent, replacements=game.replacements)  # type: ignore[arg-type]
    env.reset(seed=0, options={"dealer": f"player_{game.dealer}", "deck": game.deck})
    for action in game.actions:
        env.step(action)
    seen = env.observe(agent)
    picture: bytes | None = None
    if chance_of_picture():
        env.render_mode = "rgb_array"
        drawn = env.render()
        assert isinstance(drawn, np.ndarray)
        picture = drawn.tobytes()
        env.render_mode = "ansi"
    return (
        seen["observation"].tobytes(),
        seen["action_mask"].tobytes(),
        repr(env.infos[agent]),
        env.render(),
        picture,
        game.view(seat),
        game.position(seat),
    )


_pictures = 0


def chance_of_picture() -> bool:
    """Draw the picture for one comparison in ten: it takes a hundred times longer than the rest."""
    global _pictures
    _pictures += 1
    return (_pictures - 1) // 2 % 10 == 0


def test_a_committed_discard_stays_hidden_in_simultaneous_draws_only() -> None:
    """R5.1: the dealer's view does not depend on the big blind's count, unless it is announced."""
    for rules, same in (("archie", True), ("barge", False)):
        views = set()
        for discards in (3, 3 + 1, 3 + 31):
            game = Game(rules, seed=1, dealer=0)
            for action in (1, 1, discards):
                game.apply(action)
            views.add((game.observation(0).tobytes(), game.view(0)))
            assert decode(game.observation(0), rules).other_draws == (() if same else ((discards - 3).bit_count(),))
        assert (len(views) == 1) is same


@pytest.mark.parametrize("preset", ["archie", "barge", "mini"])
def test_distinct_histories_have_distinct_rows(preset: str) -> None:
    """Perfect recall: own cards and public history can be read back, so two different ones never share a row."""
    chance = random.Random(preset)
    seen: dict[bytes, tuple[object, ...]] = {}
    for seed in range(400 // SCALE + 1):
        game = Game(preset, seed=seed % 40)
        while True:
            for seat in (0, 1):
                known = (
                    seat == game.dealer,
                    tuple(e.cards for e in game.history if e.seat == seat and e.kind in ("deal", "draw")),
                    tuple((e.seat == seat, e.action) for e in game.history if e.kind == "bet"),
                    tuple(len(e.cards) for e in game.history if e.kind == "deal" and e.seat != seat),
                )
                assert seen.setdefault(game.observation(seat).tobytes(), known) == known
            if game.over:
                break
            game.apply(random_action(game, chance))


def test_rules_are_arguments_not_constants() -> None:
    assert rulebook(Rules()) is rulebook(Rules())
    assert (rulebook(Rules(raise_cap=3))["legal"] == rulebook(Rules())["legal"]).all()
    with pytest.raises(RulesError, match="rules 'x'"):
        width("x")


def test_the_documentation_names_every_index() -> None:
    """docs/environment.md holds the table that the code makes."""
    text = (ROOT / "docs" / "environment.md").read_text()
    table = re.search(r"<!-- observation table -->\n(.*?)<!-- end of table -->", text, re.DOTALL)
    assert table is not None
    assert table.group(1).strip() == index_table("archie").strip()
    names = [label for block in fields("archie") for label in block.labels()]
    listed = (ROOT / "docs" / "observation-index.txt").read_text().splitlines()
    assert listed == [f"{i} {name}" for i, name in enumerate(names)]
