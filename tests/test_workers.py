"""Threads that share out short pieces of work."""

from __future__ import annotations

import gc
import threading
import time
from functools import partial

import numpy as np
import pytest

from archie_env._core.workers import Workers
from archie_env.batch import Batch
from archie_env.errors import IllegalActionError


def test_every_call_is_made_once_in_a_thread_of_its_own() -> None:
    workers, made = Workers(3), []
    meet = threading.Barrier(4)  # nobody passes unless all four run at once

    def call(k: int) -> None:
        meet.wait(timeout=10)
        made.append((k, threading.get_ident()))

    for _ in range(50):
        made.clear()
        workers.run([partial(call, k) for k in range(4)])
        assert sorted(k for k, _ in made) == [0, 1, 2, 3]
        assert len({thread for _, thread in made}) == 4


@pytest.mark.parametrize("guilty", [0, 1, 2])
def test_an_error_reaches_the_caller_once_the_others_are_done(guilty: int) -> None:
    workers, done = Workers(2), []

    def call(k: int) -> None:
        if k == guilty:
            raise ValueError(f"call {k}")
        time.sleep(0.01)
        done.append(k)

    with pytest.raises(ValueError, match=f"call {guilty}"):
        workers.run([partial(call, k) for k in range(3)])
    assert sorted(done) == [k for k in range(3) if k != guilty]
    workers.run([lambda: done.append(9)] * 3)  # and they go on working
    assert done.count(9) == 3


def test_threads_end_with_their_batch() -> None:
    before = set(threading.enumerate())
    batch = Batch(64, seed=1, threads=4)
    batch.step(batch.sample_actions())
    own = set(threading.enumerate()) - before
    assert len(own) == 3
    del batch
    gc.collect()
    for thread in own:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_threaded_batch_refuses_before_anything_is_played() -> None:
    batch = Batch(64, seed=1, threads=4)
    before = batch.games.copy()
    actions = batch.sample_actions().copy()
    actions[50] = 34
    with pytest.raises(IllegalActionError, match="game 50"):
        batch.step(actions)
    np.testing.assert_array_equal(batch.games, before)
