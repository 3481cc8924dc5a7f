"""A receiver of StatsD on this machine: a socket that keeps every metric it is sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_END = b"end"


class StatsdReceiver:
    """What was sent.

    Attributes:
        port: where it listens.
        lines: all metrics, in order, such as `airflow.dagrun.duration:1|ms`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.port: int = connection.getsockname()[1]
        self.lines: list[str] = []

    @property
    def settings(self) -> dict[str, str]:
        """The variables that let an Airflow send its metrics here."""
        values = {"STATSD_ON": "True", "STATSD_HOST": "127.0.0.1", "STATSD_PORT": str(self.port)}
        return {f"AIRFLOW__METRICS__{name}": value for name, value in values.items()}

    def gauges(self, prefix: str) -> dict[str, float]:
        """Return the newest values of the gauges whose names begin with a prefix, by the rest of their names."""
        return dict(self._values(prefix, "g"))

    def counters(self, prefix: str) -> dict[str, float]:
        """Return the sums of the counters whose names begin with a prefix, by the rest of their names."""
        found: dict[str, float] = {}
        for name, value in self._values(prefix, "c"):
            found[name] = found.get(name, 0) + value
        return found

    def _values(self, prefix: str, kind: str) -> Iterator[tuple[str, float]]:
        for line in self.lines:
            name, _, value = line.partition(":")
            number, _, found = value.partition("|")
            if name.startswith(prefix) and found == kind:
                yield name.removeprefix(prefix), float(number)

    def listen(self) -> None:
        """Keep what is sent, until the end of the block of `receiving`."""
        while (packet := self._connection.recv(1 << 16)) != _END:
            self.lines += packet.decode().splitlines()


@contextmanager
def receiving() -> Iterator[StatsdReceiver]:
    """Receive metrics during the block."""
    with socket.socket(type=socket.SOCK_DGRAM) as connection:
        connection.bind(("127.0.0.1", 0))
        found = StatsdReceiver(connection)
        listener = Thread(target=found.listen)
        listener.start()
        try:
            yield found
        finally:
            with socket.socket(type=socket.SOCK_DGRAM) as sender:
                sender.sendto(_END, ("127.0.0.1", found.port))
            listener.join()
