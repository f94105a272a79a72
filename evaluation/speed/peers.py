"""Loops of random legal play in other environments, and loops over hands in other evaluators.

This project needs none of these peers: ``pip install 'archie-env[peers]'`` installs them, and missing ones are skipped by name.
"""

from __future__ import annotations

import functools
import importlib
import random
from collections.abc import Callable
from typing import Any, Final

from evaluation.speed.timing import DECISIONS, HANDS, Loop, Row, SkippedError, spent

_PLAYED: Final = 20
"""Hands of a slow peer between two readings of the clock."""
_EVALUATED: Final = 1000
"""Hands evaluated between two readings of the clock."""
_LIMIT_HOLDEM: Final = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=1 2,firstPlayer=1 2 2 2,raiseSize=2 2 4 4,maxRaises=3 4 4 4,"
    "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,stack=100 100)"
)
_PGX_SIZES: Final = (1024, 4096, 16384, 65536)
_PGX_STEPS: Final = 50

DISTRIBUTIONS: Final = ("rlcard", "pygame", "open_spiel", "pgx", "jax", "jaxlib", "pokerkit", "eval7", "phevaluator")
"""Names on PyPI of the peers and of the libraries that run them."""


def _load(module: str) -> Any:
    """Import a peer's module; raise `SkippedError` for any failure."""
    try:
        return importlib.import_module(module)
    except Exception as broken:  # a peer may fail in any way, such as on a newer release of a dependency
        raise SkippedError(f"{module} can't be loaded: {type(broken).__name__}: {broken}") from broken


def _pettingzoo_holdem(constructor: str) -> tuple[Loop, str]:
    table = getattr(_load("pettingzoo.classic.texas_holdem_v4"), constructor)()
    table.reset(seed=1)
    chance = random.Random(1).random

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            table.reset()
            while True:
                observation, _, terminated, truncated, _ = table.last()
                if terminated or truncated:
                    break
                legal = observation["action_mask"].nonzero()[0]
                table.step(int(legal[int(chance() * len(legal))]))
                decisions += 1
        return decisions

    return loop, ""


def _rlcard_holdem() -> tuple[Loop, str]:
    table = _load("rlcard").make("limit-holdem", config={"seed": 1})
    chance = random.Random(1).random

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            state, _ = table.reset()
            while not table.is_over():
                legal = list(state["legal_actions"])
                state, _ = table.step(legal[int(chance() * len(legal))])
                decisions += 1
            table.get_payoffs()
        return decisions

    return loop, ""


def _open_spiel(name: str, tensor: bool) -> tuple[Loop, str]:
    pyspiel = _load("pyspiel")
    if (short := name.partition("(")[0]) not in pyspiel.registered_names():
        raise SkippedError(f"this build of open_spiel has no {short}")
    game = pyspiel.load_game(name)
    chance = random.Random(1).random

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            state = game.new_initial_state()
            while not state.is_terminal():
                if not state.is_chance_node():
                    decisions += 1
                    if tensor:
                        state.information_state_tensor()
                legal = state.legal_actions()  # all remaining cards are equally likely, so chance_outcomes adds nothing
                state.apply_action(legal[int(chance() * len(legal))])
            state.returns()
        return decisions

    return loop, ""


def _pokerkit_draw() -> tuple[Loop, str]:
    pokerkit = _load("pokerkit")
    automation = pokerkit.Automation
    automated = tuple(automation)
    chance = random.Random(1).random
    deal = functools.partial(
        pokerkit.FixedLimitDeuceToSevenLowballTripleDraw.create_state, automated, True, 0, (1, 2), 2, 4, 1000, 2
    )

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            state = deal()
            while state.status:
                decisions += 1
                drawer = state.stand_patter_or_discarder_index
                if drawer is not None:
                    state.stand_pat_or_discard([card for card in state.hole_cards[drawer] if chance() < 0.5])
                    continue
                legal = [state.check_or_call]
                if state.checking_or_calling_amount:
                    legal.append(state.fold)
                if state.can_complete_bet_or_raise_to():
                    legal.append(state.complete_bet_or_raise_to)
                legal[int(chance() * len(legal))]()
        return decisions

    return loop, ""


def _pgx(name: str) -> tuple[Loop, str]:
    """Take the fastest of several batch sizes, found by a short trial of each."""
    trials = {size: _pgx_of(name, size) for size in _PGX_SIZES}
    rates = {}
    for size, loop in trials.items():
        loop()  # compiles
        rates[size] = max(spent(loop, 0.2)[0] for _ in range(2))
    best = max(rates, key=lambda size: rates[size])
    return trials[best], f"{best:,} games, the fastest of {', '.join(f'{size:,}' for size in _PGX_SIZES)}"


def _pgx_of(name: str, size: int) -> Loop:
    jax, pgx, wrappers = _load("jax"), _load("pgx"), _load("pgx.experimental.wrappers")
    numbers, table = jax.numpy, pgx.make(name)
    step = jax.vmap(wrappers.auto_reset(table.step, table.init))

    def once(carry: Any, _: Any) -> tuple[Any, None]:
        state, key = carry
        key, choice, deal = jax.random.split(key, 3)
        legal = numbers.cumsum(state.legal_action_mask, axis=1)
        wanted = numbers.floor(jax.random.uniform(choice, (size,)) * legal[:, -1])
        action = numbers.argmax(legal > wanted[:, None], axis=1)
        return (step(state, action, jax.random.split(deal, size)), key), None

    play = jax.jit(lambda carry: jax.lax.scan(once, carry, None, length=_PGX_STEPS)[0])
    carry = (jax.jit(jax.vmap(table.init))(jax.random.split(jax.random.PRNGKey(1), size)), jax.random.PRNGKey(2))

    def loop() -> int:
        nonlocal carry
        carry = jax.block_until_ready(play(carry))
        return size * _PGX_STEPS

    return loop


def _hands(seed: int = 1) -> list[list[int]]:
    """Random five-card hands, each card an int 4 * rank + suit."""
    draw = random.Random(seed)
    return [draw.sample(range(52), 5) for _ in range(_EVALUATED)]


def _texts(hand: list[int]) -> list[str]:
    return ["23456789TJQKA"[card // 4] + "cdhs"[card % 4] for card in hand]


def _eval7() -> tuple[Loop, str]:
    eval7 = _load("eval7")
    evaluate: Callable[[Any], int] = eval7.evaluate
    hands = [[eval7.Card(text) for text in _texts(hand)] for hand in _hands()]

    def loop() -> int:
        for hand in hands:
            evaluate(hand)
        return len(hands)

    return loop, ""


def _phevaluator() -> tuple[Loop, str]:
    evaluate: Callable[..., int] = _load("phevaluator").evaluate_cards
    hands = _hands()

    def loop() -> int:
        for hand in hands:
            evaluate(*hand)
        return len(hands)

    return loop, ""


def _pokerkit_hands() -> tuple[Loop, str]:
    pokerkit = _load("pokerkit")
    high, low = pokerkit.StandardHighHand, pokerkit.EightOrBetterLowHand
    hands = [tuple(pokerkit.Card.parse("".join(_texts(hand)))) for hand in _hands()]

    def loop() -> int:
        for hand in hands[: _EVALUATED // 5]:
            high.lookup.get_entry(hand)
            low.lookup.has_entry(hand)
        return _EVALUATED // 5

    return loop, ""


_SPIEL = "new_initial_state, legal_actions and apply_action (C++ called from Python), chance events"
_PGX = "step with its observation and mask, random choice, next deal: 50 steps under one jit (XLA on the CPU)"
_TENSOR = "information_state_tensor of the player to act"
_ZOO = "last(), random choice of mask.nonzero(), step()"


def _row(name: str, unit: str, includes: str, make: Callable[..., tuple[Loop, str]], *arguments: Any) -> Row:
    """Make a row that is skipped if its first loop fails in any way: peers change their interfaces."""

    def tried() -> tuple[Loop, str]:
        try:
            loop, note = make(*arguments)
            loop()
        except SkippedError:
            raise
        except Exception as broken:
            raise SkippedError(f"{type(broken).__name__}: {broken}") from broken
        return loop, note

    return Row(name, unit, includes, tried)


def peer_rows() -> list[Row]:
    """The environments."""
    d = DECISIONS
    return [
        _row("pettingzoo-holdem", d, f"PettingZoo texas_holdem_v4.env(): {_ZOO}", _pettingzoo_holdem, "env"),
        _row("pettingzoo-holdem-raw", d, f"the same without its wrappers, raw_env(): {_ZOO}", _pettingzoo_holdem, "raw_env"),
        _row("rlcard-holdem", d, "RLCard limit-holdem: step() with state and legal actions, payoffs", _rlcard_holdem),
        _row("openspiel-holdem-tensor", d, f"OpenSpiel limit hold'em: {_SPIEL}, {_TENSOR}", _open_spiel, _LIMIT_HOLDEM, True),
        _row("openspiel-holdem", d, f"OpenSpiel limit hold'em: {_SPIEL}", _open_spiel, _LIMIT_HOLDEM, False),
        _row("openspiel-leduc-tensor", d, f"OpenSpiel Leduc: {_SPIEL}, {_TENSOR}", _open_spiel, "leduc_poker", True),
        _row("openspiel-leduc", d, f"OpenSpiel Leduc: {_SPIEL}", _open_spiel, "leduc_poker", False),
        _row("pokerkit-draw", d, "PokerKit fixed-limit 2-7 triple draw: all automations, no observation", _pokerkit_draw),
        _row("pgx-leduc", d, f"pgx Leduc: {_PGX}", _pgx, "leduc_holdem"),
        _row("pgx-kuhn", d, f"pgx Kuhn: {_PGX}", _pgx, "kuhn_poker"),
    ]


def hand_rows() -> list[Row]:
    """The hand evaluators."""
    made = "Card objects made before"
    return [
        _row("hands-eval7", HANDS, f"eval7.evaluate: high only, C called from Python for each hand, {made}", _eval7),
        _row("hands-phevaluator", HANDS, "phevaluator.evaluate_cards: high only, Python, ints", _phevaluator),
        _row("hands-pokerkit", HANDS, f"PokerKit lookups: high, and whether eight-or-better low, {made}", _pokerkit_hands),
    ]
