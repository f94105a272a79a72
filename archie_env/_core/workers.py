"""Threads that share out one short piece of work after another.

An executor takes tens of microseconds to hand work over, a twentieth of the time that thousands of games take to step.  Here
each thread waits at a queue of its own.  `queue.SimpleQueue` is one call into C, so an interrupt leaves it whole.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue

Call = Callable[[], None]
_Errors = SimpleQueue[BaseException | None]
_Queue = SimpleQueue[tuple[Call, _Errors] | None]


def _serve(queue: _Queue) -> None:
    """Make one call after another until there is none; the caller gets the errors."""
    while (item := queue.get()) is not None:
        call, errors = item
        try:
            call()
        except BaseException as error:
            errors.put(error)
        else:
            errors.put(None)
        del item, call, errors  # a waiting thread must not keep the objects alive that it worked on


def _dismiss(queues: Sequence[_Queue]) -> None:
    for queue in queues:
        queue.put(None)


def _nothing() -> None:
    """Reach the end of a queue."""


class Workers:
    """So many threads besides the caller's; they end when this object is gone.  A forked child has none of them."""

    def __init__(self, count: int) -> None:
        self._queues: list[_Queue] = [SimpleQueue() for _ in range(count)]
        self._process = os.getpid()
        weakref.finalize(self, _dismiss, self._queues)
        for queue in self._queues:
            threading.Thread(target=_serve, args=(queue,), daemon=True).start()

    @property
    def present(self) -> bool:
        """Whether the threads belong to this process: a fork copies the object, not the threads."""
        return self._process == os.getpid()

    def run(self, calls: Sequence[Call]) -> None:
        """Make all calls, the first in this thread and one in each of the others; raise one of their errors.

        After an interrupt every call has either been made or will not be.
        """
        first, *others = calls
        errors: _Errors = SimpleQueue()
        try:
            for queue, call in zip(self._queues, others, strict=False):
                queue.put((call, errors))
            first()
            raised = [errors.get() for _ in others]
        except BaseException:
            self.wait()
            raise
        for error in raised:
            if error is not None:
                raise error

    def wait(self) -> None:
        """Wait until every thread has nothing left to do."""
        errors: _Errors = SimpleQueue()
        for queue in self._queues:
            queue.put((_nothing, errors))
        for _ in self._queues:
            errors.get()
