"""A server that speaks the protocol and says what a test tells it to."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from loader.transport.server import session
from loader.transport.server.address import ServerAddress

SALT = b"12345678abcdefghijkl"
OK = b"\0\0\0\2\0\0\0"
EOF = b"\xfe\0\0\2\0"
_SSL = 1 << 11
_CAPABILITIES = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 1 << 19 | 1 << 21  # protocol 4.1, salted passwords, plug-ins
_VARIABLES = {**session.COMMON, "tx_isolation": "REPEATABLE-READ"}


def packed(value: bytes) -> bytes:
    """A string with its length before it; shorter than 251 bytes."""
    return bytes([len(value)]) + value


def described(
    name: str = "v", kind: int = 253, *, charset: int = 255, length: int = 100, flags: int = 0, scale: int = 0
) -> bytes:
    """The description of a column in a result."""
    parts = b"".join(map(packed, (b"def", b"", b"t", b"t", name.encode(), name.encode())))
    return parts + b"\x0c" + struct.pack("<HIBHBH", charset, length, kind, flags, scale, 0)


@dataclass
class Wire:
    """One connection to a client. `heard`: every payload that it sent."""

    socket: socket.socket
    heard: list[bytes] = field(default_factory=list)
    number: int = 0

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def send(self, *payloads: bytes) -> None:
        """Send each payload as a packet."""
        for payload in payloads:
            self.raw(struct.pack("<I", len(payload))[:3] + bytes([self.number & 255]) + payload)
            self.number += 1

    def receive(self) -> bytes:
        """The payload of the next packet; empty once the client is gone."""
        head = self._exactly(4)
        if len(head) < 4:
            return b""
        self.number = head[3] + 1
        self.heard.append(self._exactly(int.from_bytes(head[:3], "little")))
        return self.heard[-1]

    def rows(self, names: list[str], rows: list[tuple[str, ...]]) -> None:
        """A result of texts."""
        self.send(bytes([len(names)]), *map(described, names), EOF)
        self.send(*(b"".join(packed(value.encode()) for value in row) for row in rows), EOF)

    def greet(self, plugin: str = "mysql_native_password", *, tls: bool = False, version: str = "8.0.40") -> None:
        """The first packet."""
        capabilities = _CAPABILITIES | (_SSL if tls else 0)
        self.send(
            b"\x0a" + version.encode() + b"\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
            + struct.pack("<HBHH", capabilities & 0xFFFF, 255, 2, capabilities >> 16) + bytes([len(SALT) + 1]) + bytes(10)
            + SALT[8:] + b"\0" + plugin.encode() + b"\0"
        )  # fmt: skip

    def wrap(self, context: ssl.SSLContext) -> None:
        """Go on with TLS, which the client asked for."""
        self.receive()
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def log_in(self) -> None:
        """Let anybody in and answer what every connection begins with."""
        self.greet()
        self.receive()
        self.send(OK)

    def serve(self, answer: Callable[[Wire, bytes], bool]) -> None:
        """Answer statements until the client leaves, or `answer` returns False."""
        while command := self.receive():
            if command[1:].startswith(b"SHOW SESSION VARIABLES"):
                self.rows(["Variable_name", "Value"], list(_VARIABLES.items()))
            elif command[1:].startswith(b"SET "):
                self.send(OK)
            elif command[:1] == b"\1" or not answer(self, command):
                return

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size and (piece := self.socket.recv(size - len(found))):
            found += piece
        return found


@dataclass
class Hostile:
    """A running server of this kind, and the connections that it had."""

    address: ServerAddress
    wires: list[Wire]

    @property
    def heard(self) -> bytes:
        """All that clients sent, but for what was encrypted by TLS."""
        return b"".join(payload for wire in self.wires for payload in wire.heard)


@contextmanager
def hostile(script: Callable[[Wire], None], **address: object) -> Iterator[Hostile]:
    """Run the script for each connection; `address`: fields of the address that differ."""
    listener = socket.create_server(("127.0.0.1", 0))
    wires: list[Wire] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            wires.append(Wire(connection))
            threading.Thread(target=run, args=(wires[-1],), daemon=True).start()

    def run(wire: Wire) -> None:
        try:
            script(wire)
        except OSError:
            pass  # the client was first to leave
        finally:
            wire.socket.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        fields = {"host": "127.0.0.1", "port": listener.getsockname()[1], "user": "loader"} | address
        yield Hostile(ServerAddress.model_validate(fields), wires)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def any_one(answer: Callable[[Wire, bytes], bool]) -> Callable[[Wire], None]:
    """A script that lets anybody in and then answers statements."""

    def script(wire: Wire) -> None:
        wire.log_in()
        wire.serve(answer)

    return script
