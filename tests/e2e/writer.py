"""A writer that changes rows while commands run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from loader.transport.server.connection import connected
from tests.e2e.loaded import Loaded


@contextmanager
def writing(loaded: Loaded, pause: float, *statements: str) -> Iterator[Event]:
    """Repeat statements until the block ends, with a pause in seconds; the event is set after each repetition."""
    stop, wrote = Event(), Event()

    def write() -> None:
        with connected(loaded.address) as connection, connection.cursor() as cursor:
            while not stop.wait(pause):
                for statement in statements:
                    cursor.execute(statement)
                wrote.set()

    writer = Thread(target=write)
    writer.start()
    try:
        yield wrote
    finally:
        stop.set()
        writer.join()
