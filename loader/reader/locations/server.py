"""The log files of a running server, read in the way of a replica."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from loader.model.gtid import GtidSet
from loader.model.position import Position
from loader.reader.files.log_files import ListedFile, continuous, lognum_of
from loader.source.server_facts import log_end
from loader.transport.base import LogFile
from loader.transport.gtid_search import first_outside
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, log_sizes

_FRESH_SECONDS = 0.2


class ServerFiles:
    """The files that SHOW BINARY LOGS lists. An opened file is copied into a spool on local disk."""

    at_hand = False

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._transport = NetworkTransport(address)
        self._known: list[ListedFile] = []
        self._asked = -_FRESH_SECONDS

    def listed(self) -> list[ListedFile]:
        """See LogFiles. The size of the newest file is the end of its last whole transaction."""
        if time.monotonic() - self._asked >= _FRESH_SECONDS:
            with connected(self._address) as connection:
                end = log_end(connection)
                sizes = log_sizes(connection)
            # A file that was started between the two statements is listed by the next call.
            found = [
                ListedFile(name, lognum_of(name), size) for name, size in sizes.items() if lognum_of(name) < end.lognum
            ]
            self._known = continuous([*found, ListedFile(end.file, end.lognum, end.logpos)], str(self._address))
            self._asked = time.monotonic()
        return self._known

    def first_outside(self, gtids: GtidSet) -> Position:
        """See AsksServer."""
        newest = self.listed()[-1]
        return first_outside(self._address, gtids) or Position.at(newest.name, newest.size)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See LogFiles."""
        return self._transport.open(file, start, stop)
