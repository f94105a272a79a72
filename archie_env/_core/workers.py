"""Threads that share out one short piece of work after another.

An executor's queue takes tens of microseconds to hand work over, a twentieth of what thousands of games take to step.  Here a
thread waits at a lock of its own and is woken by its release.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence

Call = Callable[[], None]


class _Post:
    """Where one thread waits for work."""

    def __init__(self) -> None:
        self.begin, self.end = threading.Lock(), threading.Lock()
        self.begin.acquire()
        self.end.acquire()
        self.call: Call | None = None
        self.error: BaseException | None = None

    def serve(self) -> None:
        """Work until there is none."""
        while True:
            self.begin.acquire()
            if self.call is None:
                return
            try:
                self.call()
            except BaseException as error:  # the caller gets it
                self.error = error
            self.call = None  # what it refers to must not live on here
            self.end.release()


def _dismiss(posts: Sequence[_Post]) -> None:
    for post in posts:
        post.begin.release()


class Workers:
    """So many threads besides the caller's; they end when this object is gone."""

    def __init__(self, count: int) -> None:
        self._posts = [_Post() for _ in range(count)]
        for post in self._posts:
            threading.Thread(target=post.serve, daemon=True).start()
        weakref.finalize(self, _dismiss, self._posts)

    def run(self, calls: Sequence[Call]) -> None:
        """Make all calls, the first in this thread and one in each of the others; raises what one of them raised."""
        first, *others = calls
        posts = self._posts[: len(others)]
        for post, call in zip(posts, others, strict=True):
            post.call = call
            post.begin.release()
        try:
            first()
        finally:
            errors = []
            for post in posts:
                post.end.acquire()
                errors.append(post.error)
                post.error = None
        for error in errors:
            if error is not None:
                raise error
