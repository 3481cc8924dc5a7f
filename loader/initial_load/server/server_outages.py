"""Outages of the server during an initial load: the load of a table goes on once the server answers again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from loader.errors import SourceUnavailable
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_PATIENCE_SECONDS = 300.0  # as long as a broken dump of the log is retried
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_MOST_OUTAGES = 10  # of one table in one run
_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class ServerOutages:
    """The outages of a run, shared by the threads that load tables.

    Work that lost its connection is done again as soon as all servers answer, at most ten times. If one does not answer
    for `patience` seconds, the run does not wait for it any more. So a long outage fails a run with many tables as soon
    as a run with one table.

    Args:
        servers: the source, and the replica that is read instead, if there is one.
        patience: in seconds.
    """

    def __init__(self, servers: Sequence[ServerAddress], patience: float = _PATIENCE_SECONDS) -> None:
        self._servers = servers
        self._patience = patience
        self._given_up = False
        self._lock = Lock()

    def call(self, name: str, work: Callable[[], _Result]) -> _Result:
        """Do the work, again after each outage, and return its result. `name` is for the log.

        Raises:
            Exception: what the work raises that is no outage, or the last outage.
        """
        for _ in range(_MOST_OUTAGES):
            try:
                return work()
            except SourceUnavailable as lost:
                _LOG.warning("%s: the connection to the server was lost: %s", name, lost.why)
                if not self._answers_again():
                    raise
        return work()

    def _answers_again(self) -> bool:
        """Return whether all servers answer within the patience. Other threads wait for the answer of the first."""
        with self._lock:
            until, pause = time.monotonic() + self._patience, _FIRST_PAUSE_SECONDS
            while not self._given_up:
                try:
                    for server in self._servers:
                        with connected(server):
                            pass
                except SourceUnavailable as error:
                    left = until - time.monotonic()
                    self._given_up = left <= 0
                    _LOG.info("the server does not answer yet: %s", error.why)
                    time.sleep(max(0.0, min(pause, left)))
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                else:
                    return True
            return False
