"""What goes wrong at a failpoint of a merge in this process: an action, or a reply of the catalog that is lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from loader.materialise.iceberg import branch, publication
from loader.materialise.merge import merge_stages, table_merge
from loader.materialise.plan import interval_chain


def at(point: str, action: Callable[[], object], patch: pytest.MonkeyPatch) -> list[str]:
    """Do it at the first passage of a point; what is returned holds the point once it was passed."""
    passed: list[str] = []
    original = branch.failpoint

    def failpoint(name: str) -> None:
        original(name)
        if name == point and not passed:
            passed.append(name)
            action()

    for module in (branch, publication, merge_stages, interval_chain, table_merge):
        patch.setattr(module, "failpoint", failpoint)
    return passed


def lose_reply(patch: pytest.MonkeyPatch) -> None:
    """Lose the reply of the next commit that swaps the metadata of a table."""
    swap = publication.swap_metadata

    def lost(*arguments: Any) -> None:
        swap(*arguments)
        patch.setattr(publication, "swap_metadata", swap)
        raise ConnectionResetError("the reply of the catalog was lost")

    patch.setattr(publication, "swap_metadata", lost)


class LostReplies:
    """Forwards connections to a catalog; once `armed`, it cuts one off after a commit of Iceberg was executed.

    Attributes:
        lost: how many replies were lost.

    Args:
        port: of the catalog.
        commit: bytes that only the request for a commit has.
        meanwhile: what happens after the request was forwarded.
    """

    def __init__(self, port: int, commit: bytes, meanwhile: Callable[[], object]) -> None:
        self._to, self._commit, self._meanwhile = port, commit, meanwhile
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.armed = False
        self.lost = 0

    def serve(self) -> None:
        """Serve until closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._to))
                except OSError:  # killed
                    client.close()
                    continue
                for work in (self._asks, self._answers):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _asks(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                # The reply to a commit comes before anything else is asked.
                met = self.armed and self._commit in data
                if met:
                    self.armed = False
                    self._losing = client
                server.sendall(data)
                if met:
                    self._meanwhile()
        _cut(client, server)

    _losing: socket.socket | None = None

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if self._losing is client:
                    self.lost += 1
                    break
                client.sendall(data)
        _cut(client, server)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def lost_replies(
    port: int, commit: bytes = b".metadata.json", meanwhile: Callable[[], object] = lambda: None
) -> Iterator[LostReplies]:
    """In front of the catalog at that port; see LostReplies. A database's commit alone names files of metadata."""
    found = LostReplies(port, commit, meanwhile)
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.close()
        thread.join()
