"""This project's own paths as `evaluation.speed` measures them: each a loop of random legal play."""

from __future__ import annotations

import functools
import random
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from archie_env import Batch, Game, archie_v0
from archie_env._core.jit import JIT_DISABLED, kernel
from archie_env._core.sample import sample_legal
from archie_env._core.showdown import high_value, low_value
from archie_env.cards import DECK
from archie_env.envs.vector import ArchieVectorEnv
from archie_env.hands import HandValues
from archie_env.rulebook import rulebook
from archie_env.rules import Rules
from evaluation.speed.timing import BYTES, DECISIONS, HANDS, Loop, Row, SkippedError

GAMES: Final = 4096
"""Games of the reference row."""
FAR: Final = 2**18
"""Games whose observations, about 100 MB, exceed the caches."""
REFERENCE: Final = f"batch-{GAMES}-int8"

_AT_ONCE: Final = 64 if JIT_DISABLED else 2**18
"""Decisions of a batch between two readings of the clock."""
_PLAYED: Final = 50
_EVALUATED: Final = 1000


def _batch(games: int, dtype: str, threads: int = 1) -> tuple[Loop, str]:
    batch = Batch(games, seed=1, dtype=dtype, threads=threads)
    steps = min(max(_AT_ONCE // games, 1), 1000)

    def loop() -> int:
        for _ in range(steps):
            batch.step(batch.sample_actions())
        return steps * games

    return loop, ""


def _aec() -> tuple[Loop, str]:
    table = archie_v0.env()
    table.reset(seed=1)
    chance = random.Random(1).random  # NumPy's generators are slow to give one number at a time

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            table.reset()
            while True:
                observation, _, over, _, _ = table.last()
                if over:
                    break
                legal = observation["action_mask"].nonzero()[0]
                table.step(legal[int(chance() * len(legal))])
                decisions += 1
        return decisions

    return loop, ""


def _game() -> tuple[Loop, str]:
    chance, seed = random.Random(1).random, 0

    def loop() -> int:
        nonlocal seed
        decisions = 0
        for _ in range(_PLAYED):
            seed += 1
            game = Game(seed=seed)
            while legal := game.legal_actions():
                game.apply(legal[int(chance() * len(legal))])
            decisions += len(game.actions)
        return decisions

    return loop, ""


def _vector(opponent: str, mode: AutoresetMode) -> tuple[Loop, str]:
    envs = ArchieVectorEnv(GAMES, opponent=opponent, autoreset_mode=mode, copy=False)
    rng, actions = np.random.default_rng(1), np.zeros(GAMES, np.int64)
    masks = envs.reset(seed=1)[1]["action_mask"]
    ended = np.zeros(GAMES, np.bool_)

    def loop() -> int:
        nonlocal masks, ended
        decisions = 0
        for _ in range(2):
            sample_legal(masks, rng.random(GAMES), actions)
            decisions += GAMES - int(np.count_nonzero(ended))
            _, _, terminated, _, infos = envs.step(actions)
            masks = infos["action_mask"]
            if mode is AutoresetMode.NEXT_STEP:
                ended = terminated  # the next step of these games deals; it is no decision
        return decisions

    return loop, ""


def _single(opponent: str) -> tuple[Loop, str]:
    try:
        env: gymnasium.Env[Any, Any] = gymnasium.make("Archie-v0", opponent=opponent)
    except (ImportError, gymnasium.error.Error) as missing:
        raise SkippedError(f"Archie-v0 can't be made: {missing}") from missing
    env.reset(seed=1)
    chance, every = random.Random(1).random, env.unwrapped.action_space.n  # type: ignore[attr-defined]

    def loop() -> int:
        decisions = 0
        for _ in range(_PLAYED):
            _, info = env.reset()
            over = False
            while not over:
                legal = info["action_mask"].nonzero()[0]
                _, _, over, _, info = env.step(int(legal[int(chance() * len(legal))]))
                decisions += len(legal) < every  # the mask allows everything only if the hand ended before a decision
        return decisions

    return loop, ""


@kernel
def _value_all(book, hands):  # type: ignore[no-untyped-def]
    """Return the sum of all high and low values, so that the compiler cannot drop a call."""
    total = 0
    for i in range(len(hands)):
        total += high_value(book[0], hands[i]) + low_value(book[0], hands[i])
    return total


def _hands_in_a_kernel() -> tuple[Loop, str]:
    rules, rng = Rules(), np.random.default_rng(1)
    decks = np.argsort(rng.random((10 * _EVALUATED, rules.deck_size)), axis=1)
    hands: NDArray[np.int8] = np.sort(decks[:, : rules.hand_size], axis=1).astype(np.int8)
    book: Any = rulebook(rules)

    def loop() -> int:
        _value_all(book, hands)
        return len(hands)

    return loop, ""


def _hand_by_hand() -> tuple[Loop, str]:
    values, draw = HandValues(), random.Random(1)
    hands = [draw.sample(DECK, values.rules.hand_size) for _ in range(_EVALUATED)]

    def loop() -> int:
        for hand in hands:
            values.of(hand)
        return len(hands)

    return loop, ""


def _fill(games: int) -> tuple[Loop, str]:
    observations = Batch(1).observations
    rows = np.zeros((games, observations.shape[1]), observations.dtype)
    times = 1 if JIT_DISABLED else max(FAR // games // 4, 1)

    def loop() -> int:
        for _ in range(times):
            rows.fill(1)  # processors write zeros up to three times as fast
        return times * rows.nbytes

    return loop, f"{rows.nbytes / 1e6:.3g} MB"


def path_rows() -> list[Row]:
    """Every interface, and the batch in several sizes."""
    part = functools.partial
    one = "sample_actions(), step(): mask, {} observation, rewards, next deal"
    rows = [
        Row(f"batch-{n}-{dtype}", DECISIONS, f"Batch, n={n:,}: {one.format(dtype)}", part(_batch, n, dtype))
        for n, dtype in ((GAMES, "int8"), (GAMES, "float32"), *((n, "int8") for n in (1, 64, 1024, 16384, FAR)))
    ]
    vector = f"{GAMES:,} games, float32, copy=False, opponent call_draw"
    wide, learner = 16384, "learner's decisions alone counted, random choice by a kernel"
    return [
        *rows,
        Row(f"batch-{wide}-int8-2-threads", DECISIONS, f"Batch, n={wide:,}, two cores by the wall clock: {one.format('int8')}",
            part(_batch, wide, "int8", 2), cores=2),
        Row("aec", DECISIONS, "archie_v0.env(): last(), random choice of mask.nonzero(), step()", _aec),
        Row("game", DECISIONS, "Game, the readable interface: legal_actions(), apply(); no observation", _game),
        Row("vector-next-step", DECISIONS, f"ArchieVectorEnv, {vector}, NextStep: {learner}",
            part(_vector, "agents:call_draw", AutoresetMode.NEXT_STEP)),
        Row("vector-same-step", DECISIONS, f"ArchieVectorEnv, {vector}, SameStep: {learner}",
            part(_vector, "agents:call_draw", AutoresetMode.SAME_STEP)),
        Row("single", DECISIONS, 'gymnasium.make("Archie-v0"), opponent uniform: learner\'s decisions alone counted; '
            "random choice of mask.nonzero(), step()", part(_single, "uniform")),
        Row("single-scripted", DECISIONS, "the same, copy=False, opponent call_draw", part(_single, "agents:call_draw")),
    ]  # fmt: skip


def own_hand_rows() -> list[Row]:
    """The hand evaluator, in a kernel and from Python."""
    return [
        Row("hands-kernel", HANDS, "high and low value, a kernel over an array of hands", _hands_in_a_kernel),
        Row("hands-one", HANDS, "HandValues.of: high and low value, checked, called from Python for each hand", _hand_by_hand),
    ]


def memory_rows() -> list[Row]:
    """The rate at which one core can write memory."""
    fill = "NumPy fill with ones of an array as large as the observations of"
    return [
        Row("fill-near", BYTES, f"{fill} {GAMES:,} games", functools.partial(_fill, GAMES)),
        Row("fill-far", BYTES, f"{fill} {FAR:,} games, beyond the caches", functools.partial(_fill, FAR)),
    ]  # fmt: skip


def bytes_per_game() -> dict[str, int]:
    """Bytes of memory per game in a batch, by purpose."""
    batch = Batch(GAMES)
    arrays = [value for value in vars(batch).values() if isinstance(value, np.ndarray) and len(value) == GAMES]
    owners = {id(array if array.base is None else array.base): array.nbytes for array in arrays}
    observation = batch.observations.nbytes
    return {
        "game record": batch.games.itemsize,
        "besides the observation": (sum(owners.values()) - observation) // GAMES,
        "int8 observation": observation // GAMES,
        "mask": batch.masks.nbytes // GAMES,
    }
