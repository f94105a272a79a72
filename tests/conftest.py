"""What every test may rely on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _an_interrupt_raises_keyboardinterrupt() -> Iterator[None]:
    """Undo what a shell does to jobs in its background: they ignore SIGINT, and Python then installs no handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
