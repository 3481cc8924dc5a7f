"""Log files over the network, dumped into a spool file on local disk.

The spool holds each event at its offset in the file of the server, so later stages work as on a file. It is read while
it still fills. If the connection breaks, a new connection continues the dump.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, sleep_using_event, wait_exponential

from loader.binlog.constants import MAGIC
from loader.binlog.format import log_identity
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, GapError, SourceUnavailable
from loader.model.identity import Identity
from loader.model.position import Interval
from loader.transport.base import AnonymousRefused, LogFile, LogLags
from loader.transport.dump import ANONYMOUS, HEARTBEAT_SECONDS, LOG_ERROR, Dump
from loader.transport.segments import segments
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, log_sizes
from loader.transport.server.driver import socket_of
from loader.transport.spool import Spool

_SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS
_PATIENCE_SECONDS = 300
_LONGEST_PAUSE_SECONDS = 10
_TORN = "truncated in the middle of event"
_NO_FILE = "Could not find first log file"  # the text of both servers for a missing file


class NetworkTransport:
    """Reads the log as a replica does, with a new server id and uuid for each dump.

    Args:
        identity: of the server whose log it is; None accepts any server at the address.
        patience_seconds: how long a broken dump is retried without receiving a byte.
    """

    def __init__(
        self,
        address: ServerAddress,
        identity: Identity | None = None,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._address = address
        self._identity = identity
        self._patience = patience_seconds

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport: uses SHOW BINARY LOGS."""
        try:
            return segments(interval, self._sizes())
        except LogLags as error:
            raise _too_short(error.where["file"], int(error.where["size"])) from error

    def size(self, file: str) -> int:
        """See Transport."""
        return self._sizes()(file)

    def _sizes(self) -> Callable[[str], int]:
        with connected(self._address) as connection:
            sizes = log_sizes(connection)

        def size_of(file: str) -> int:
            if file not in sizes:
                raise _purged(self._address, file, f"the oldest log of the server is {min(sizes, default='none')}")
            return sizes[file]

        return size_of

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport: opens the spool, which is removed at the end."""
        with tempfile.TemporaryFile(prefix="loader-spool-") as disk:
            spool = Spool(disk)
            download = _Download(self._address, file, (start, stop), spool, self._patience)
            download.check(self._identity)
            spool.fill(lambda _: download.run(), stop)
            try:
                yield spool
            finally:
                download.cancel()
                spool.join()


class _Download:
    """Fills a spool with MAGIC, the format event and the bytes from start to stop, with as many dumps as needed."""

    def __init__(self, address: ServerAddress, file: str, span: tuple[int, int], spool: Spool, patience: float) -> None:
        self._address = address
        self._file = file
        self._next, self._stop = span
        self._spool = spool
        self._patience = patience
        self._heard = time.monotonic()
        self._server: tuple[str, ...] = ()
        self._log: object = None
        self._cancelled = Event()
        self._connection: Connection[Any] | None = None

    def check(self, expected: Identity | None) -> None:
        """Check that the first dump can start.

        Raises:
            GapError: another server has the address now.
            LoaderError: see `connected`.
        """
        with connected(self._address, _SILENCE_SECONDS) as connection:
            self._server = _server_of(connection)
        ours = f"server_uuid {expected.uuid}" if expected and expected.uuid else None
        if expected and (ours or f"server_id {expected.server_id}") not in self._server:
            raise GapError(
                "another server has the address of the source now",
                why=f"the interval was planned on {ours or f'server_id {expected.server_id}'},"
                f" this is {' '.join(self._server)}",
                hint="loader run continues on the new server; in Airflow clear the whole run of the DAG",
                source=self._address,
                file=self._file,
            )

    def run(self) -> None:
        """Dump until the spool is complete.

        Raises:
            GapError: the file is gone, or differs from the file before a break.
            BinlogFormatError: the log ends early.
            AnonymousRefused: the server does not send a transaction.
            SourceUnavailable: no byte was received for longer than the patience.
        """
        self._heard = time.monotonic()
        retrying = Retrying(
            retry=retry_if_exception_type(SourceUnavailable),
            stop=self._given_up,
            wait=wait_exponential(0.2, max=_LONGEST_PAUSE_SECONDS),
            sleep=sleep_using_event(self._cancelled),
            reraise=True,
        )
        try:
            retrying(self._dump)
        except SourceUnavailable as error:
            raise SourceUnavailable(
                "the dump of the log broke and could not be continued",
                why=error.why,
                hint="start the server or fix the network, then run again",
                source=self._address,
                file=self._file,
                position=self._next,
            ) from error

    def cancel(self) -> None:
        """End a dump that may still run. Its reader gets an error."""
        self._cancelled.set()
        if self._connection is not None:
            _hang_up(self._connection)

    def _given_up(self, _: RetryCallState) -> bool:
        return self._cancelled.is_set() or time.monotonic() - self._heard > self._patience

    def _dump(self) -> None:
        with connected(self._address, _SILENCE_SECONDS) as connection:
            self._connection = connection
            if self._cancelled.is_set():
                return
            self._check_server(_server_of(connection))
            try:
                whole = self._receive(Dump(connection, self._file, self._next))
            except OperationalError as error:
                if error.args[0] != LOG_ERROR:
                    raise
                if self._is_cut_off(str(error.args[1])):
                    return
                raise self._refused(str(error.args[1])) from error
            finally:
                self._connection = None
        if not whole:
            self._check_end()

    def _receive(self, dump: Dump) -> bool:
        """Copy a dump into the spool; return False if the dump ends too early."""
        if self._log is None:
            self._log = log_identity(dump.form)
            self._spool.write(0, MAGIC + dump.form, ready=dump.at)
        elif self._log != log_identity(dump.form):
            raise self._another("the log file", "its first event differs")
        self._next = dump.begun
        while dump.at < self._stop:
            at = dump.at
            piece = dump.read()
            if not piece:
                return False
            self._spool.write(at, piece[: self._stop - at])
            self._next, self._heard = dump.begun, time.monotonic()
        return True

    def _is_cut_off(self, why: str) -> bool:
        """Return whether MariaDB sent all complete events of a file that a crash truncated inside the next event."""
        return isinstance(self._log, tuple) and b"mariadb" in self._log[2].lower() and _TORN in why

    def _check_server(self, found: object) -> None:
        if found != self._server:
            raise self._another("the server", f"it was {self._server} and is {found}")

    def _check_end(self) -> None:
        """Distinguish a log that is too short from a dump that was ended, for example killed."""
        with connected(self._address) as connection:
            sizes = log_sizes(connection)
        if self._file not in sizes:
            raise _purged(self._address, self._file, "it was purged while it was read")
        if sizes[self._file] < self._stop:
            raise _too_short(self._file, sizes[self._file])
        raise SourceUnavailable(
            "the server ended the dump before the end of the log",
            hint="run again; the error log of the server says why it ended the dump",
            source=self._address,
        )

    def _refused(self, why: str) -> GapError | BinlogFormatError | AnonymousRefused:
        if _NO_FILE in why:
            return _purged(self._address, self._file, why)
        if ANONYMOUS in why:
            return AnonymousRefused(
                "the server does not send transactions without a GTID",
                why=why,
                hint="SET GLOBAL gtid_mode = ON_PERMISSIVE on the server; run again; then SET GLOBAL gtid_mode = ON",
                source=self._address,
                file=self._file,
            )
        return BinlogFormatError(
            "the server cannot read its log from there",
            why=why,
            hint="check with SHOW BINARY LOGS and mysqlbinlog that the position is the boundary of an event",
            file=self._file,
            position=self._next,
        )

    def _another(self, what: str, why: str) -> GapError:
        return GapError(
            f"{what} changed while the connection was broken",
            why=why,
            hint=f"set the source to the old server, or {LOAD_ALL_AGAIN}",
            source=self._address,
            file=self._file,
        )


def _too_short(file: str, size: int) -> BinlogFormatError:
    return BinlogFormatError(
        "the log of the server ends before the interval",
        hint="compare with SHOW BINARY LOGS; if it lost its newest transactions in a crash (sync_binlog=0),"
        f" {LOAD_ALL_AGAIN}",
        file=file,
        position=size,
    )


def _server_of(connection: Connection[Any]) -> tuple[str, ...]:
    """Return what identifies the server: its uuid, which MariaDB lacks, and its id."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid')")
        return tuple(f"{name} {value}" for name, value in sorted(cursor.fetchall()))


def _purged(address: ServerAddress, file: str, why: str) -> GapError:
    return GapError(
        "a log file that is still needed is gone",
        why=why,
        hint=f"restore it from an archive, or {LOAD_ALL_AGAIN}; raise binlog_expire_logs_seconds",
        source=address,
        file=file,
    )


def _hang_up(connection: Connection[Any]) -> None:
    try:
        socket_of(connection).shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        return  # the server closed the connection first, or it is closed already
