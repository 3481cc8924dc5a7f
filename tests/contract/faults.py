"""A network between a store and its server that fails where a test wants it to, request by request."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

HOST = "127.0.0.1"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


@dataclass(frozen=True)
class Fault:
    """What happens to the first requests whose head matches.

    Attributes:
        request: a pattern over the first line and the headers.
        kind: `cut` the request in its body; `refuse` it before the server has it; `drop` the reply; `shorten` the
            reply; `twice` gives it to the server twice and returns the second reply; `answer` by `reply` instead of
            the server; `change` the reply to `reply`; `delay` does nothing but `meanwhile`.
        meanwhile: is called first, whatever the kind.
    """

    request: str
    kind: str
    times: int = 1
    reply: bytes = b""
    meanwhile: Callable[[], object] = lambda: None


@dataclass
class FaultyNetwork:
    """Forwards HTTP from `port` to `server_port`. `renamed` are ports in replies, which become others."""

    server_port: int
    renamed: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        self._clients: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        self.heads: list[bytes] = []
        self.done = 0

    def fail(self, *faults: Fault) -> None:
        """Have these faults, once each or as often as they say."""
        self._faults += [fault for fault in faults for _ in range(fault.times)]

    @property
    def pending(self) -> int:
        """How many faults no request has met yet. `heads` are those of all requests, `done` counts them once over."""
        return len(self._faults)

    def accept(self) -> None:
        """Serve until closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._clients.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Stop."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream, suppress(OSError):
            while head := _head(stream):
                if re.search(rb"\r\nexpect: *100-continue", head, re.IGNORECASE):
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = _body(stream, head)
                reply = self._reply(head, body, self._met(head))
                with self._lock:
                    self.done += 1
                client.sendall(reply)
                if not _whole(reply):
                    return

    def _met(self, head: bytes) -> Fault | None:
        with self._lock:
            self.heads.append(head)
            for fault in self._faults:
                if re.search(fault.request.encode(), head, re.IGNORECASE | re.DOTALL):
                    self._faults.remove(fault)
                    return fault
        return None

    def _reply(self, head: bytes, body: bytes, fault: Fault | None) -> bytes:
        if not fault:
            return self._asked(head, body)
        fault.meanwhile()
        if fault.kind == "answer":
            return fault.reply
        if fault.kind == "refuse":
            return b""
        if fault.kind == "cut":
            assert body, "there is nothing to cut"
            return self._asked(head, body[: len(body) // 2], wait=False)
        reply = self._asked(head, body)
        if fault.kind == "twice":
            return self._asked(head, body)
        if fault.kind == "change":
            return fault.reply
        return {"drop": b"", "shorten": reply[:-1], "delay": reply}[fault.kind]

    def _asked(self, head: bytes, body: bytes, *, wait: bool = True) -> bytes:
        with socket.create_connection((HOST, self.server_port), 60) as server, server.makefile("rb") as stream:
            server.sendall(head + body)
            if not wait:
                server.shutdown(socket.SHUT_WR)
                with suppress(OSError):
                    stream.read()  # until the server has given it up
                return b""
            reply = _head(stream)
            while reply.startswith(b"HTTP/1.1 100"):
                reply = _head(stream)
            without = head.startswith(b"HEAD") or reply.split(b" ")[1] in {b"204", b"304"}
            reply += b"" if without else _body(stream, reply, to_the_end=True)
        for old, new in self.renamed.items():
            reply = reply.replace(b":%d/" % old, b":%d/" % new)
        return reply


def _head(stream: socket.SocketIO) -> bytes:
    lines = []
    while line := stream.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return b""


def _body(stream: socket.SocketIO, head: bytes, *, to_the_end: bool = False) -> bytes:
    if length := _LENGTH.search(head):
        return stream.read(int(length[1]))
    if not _CHUNKED.search(head):
        return stream.read() if to_the_end else b""
    found = []
    while True:
        size = stream.readline()
        found.append(size + stream.read(int(size.split(b";")[0], 16) + 2))
        if found[-1].startswith(b"0\r\n"):
            return b"".join(found)


def _whole(reply: bytes) -> bool:
    """Whether another request can follow on the connection."""
    head, _, body = reply.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(reply) and (not length or int(length[1]) == len(body))


@contextmanager
def faulty(server_port: int, renamed: dict[int, int] | None = None) -> Iterator[FaultyNetwork]:
    """Such a network until the end of the block; every fault must have been met."""
    network = FaultyNetwork(server_port, renamed or {})
    threading.Thread(target=network.accept, daemon=True).start()
    try:
        yield network
        assert not network.pending
    finally:
        network.close()
