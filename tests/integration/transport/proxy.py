"""A network between the loader and a server that breaks where a test wants it to."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from infra.servers import Server

_RECEIVED_BYTES = 262_144
_SLOW_BYTES = 8192
Break = Callable[[], None]


class Proxy:
    """Forwards connections; of each that sends more than a limit, it calls a break at that byte before it goes on.

    While the break lasts, no new connection comes through.

    `limits` are used one per such connection, in order; a connection without one is left alone. After the break what
    the server still sends is forwarded, until it or the break closes the connection. With `bytes_per_second`, each
    connection of the server is that slow. With `other`, one connection leads to that server: the second one, or that with the number `stray`.
    """

    def __init__(
        self,
        server: Server,
        limits: list[int],
        broken: Callable[[Proxy], None],
        bytes_per_second: int = 0,
        other: Server | None = None,
        stray: int = 2,
    ) -> None:
        self._strays = {stray - 1: other} if other else {}
        self._bytes_per_second = bytes_per_second
        self._server = server
        self._limits = limits
        self._broken = broken
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.port = int(self._listener.getsockname()[1])
        self.breaks = 0
        self.failures: list[BaseException] = []

    def let_through(self) -> None:
        """Let new connections through during a break, too."""
        self._open.set()

    def refuse(self) -> None:
        """Take no connections from now on."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self) -> None:
        """Close all connections, on both sides."""
        for pair in self._pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        """Serve until the listener is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.wait()
            target = self._strays.get(len(self._pairs), self._server)
            try:
                server = socket.create_connection((target.host, target.port), 10)
            except OSError:
                client.close()
                continue
            # So that the server is still sending when a connection breaks in the middle of a few megabytes.
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            self._pairs.append((client, server))
            for work in (lambda c=client, s=server: self._up(c, s), lambda c=client, s=server: self._down(c, s)):
                threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self.refuse()
        self.cut()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        sent, broken = 0, False
        with suppress(OSError):
            while data := server.recv(_SLOW_BYTES if self._bytes_per_second else 65536):
                if not broken and self._limits and sent + len(data) > self._limits[0]:
                    keep = self._limits.pop(0) - sent
                    client.sendall(data[:keep])
                    broken = True
                    self._break()
                    data = data[keep:]
                client.sendall(data)
                sent += len(data)
                if self._bytes_per_second:
                    time.sleep(len(data) / self._bytes_per_second)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        # With a reset (socket(7), SO_LINGER): a server that is still sending would wait for somebody who reads.
        with suppress(OSError):
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.close()

    def _break(self) -> None:
        self.breaks += 1
        self._open.clear()
        try:
            self._broken(self)
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            self._open.set()


@contextmanager
def breaking(
    server: Server,
    limits: list[int],
    broken: Callable[[Proxy], None] = Proxy.cut,
    bytes_per_second: int = 0,
    other: Server | None = None,
    stray: int = 2,
) -> Iterator[Proxy]:
    """A proxy to that server until the end of the block."""
    proxy = Proxy(server, limits, broken, bytes_per_second, other, stray)
    threading.Thread(target=proxy.accept, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
    assert not proxy.failures
