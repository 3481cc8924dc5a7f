"""Faults that happen during a command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from infra.servers.process import wait_until

_LIMIT_SECONDS = 600


@contextmanager
def fault_when(condition: Callable[[], bool], fault: Callable[[], None]) -> Iterator[None]:
    """Let a fault happen as soon as a condition holds; fail if it never does."""
    happened = threading.Event()

    def watch() -> None:
        if wait_until(condition, _LIMIT_SECONDS):
            fault()
            happened.set()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield
    assert happened.is_set()
    thread.join()
