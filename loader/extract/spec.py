"""The input and the results of the extraction job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.model.identity import Identity
from loader.staging.documents import IncompleteTable, Manifest
from loader.transport.base import Transport
from loader.transport.keys import NO_KEYS, KeyFiles
from loader.transport.server.address import ServerAddress

if TYPE_CHECKING:
    from loader.reader.files.log_files import LogFiles

_S3 = "s3://"


class TransportSettings(BaseModel):
    """The source of log bytes: the server over the network, or log files that every executor can read.

    Attributes:
        path: of a folder of log files, of a server's index file or option file (my.cnf), or `s3://bucket/folder`.
        keys: the key files of encrypted logs, on paths that every executor can read.
        archive: a folder that every executor can read, or `s3://bucket/folder`, with copies of purged files; empty for
            none.
        identity: of the server that wrote the log, and the archive; None if unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["network", "file"]
    server: ServerAddress | None = None
    path: str = ""
    keys: KeyFiles = NO_KEYS
    archive: str = ""
    identity: Identity | None = None

    @property
    def at_hand(self) -> bool:
        """Whether reading a file twice, or a piece of it, costs almost nothing."""
        return self.kind == "file" and not self.path.startswith(_S3)

    def open(self) -> Transport:
        """Return the transport."""
        if not self.archive:
            return self._primary()
        from loader.transport.archive import WithArchive
        from loader.transport.file import FileTransport
        from loader.transport.s3 import S3Transport

        archive = S3Transport if self.archive.startswith(_S3) else FileTransport
        return WithArchive(self._primary(), archive(self.archive, self.keys), self.identity)

    def _primary(self) -> Transport:
        # Not at the top: the network transport loads the codec's kernels, which takes about a second.
        from loader.reader.files.index_transport import ListedTransport
        from loader.transport.file import FileTransport
        from loader.transport.network import NetworkTransport
        from loader.transport.s3 import S3Transport

        if self.kind == "file" and self.path.startswith(_S3):
            return S3Transport(self.path, self.keys)
        if self.kind == "file":
            in_folder = Path(self.path).is_dir()
            return FileTransport(self.path, self.keys) if in_folder else ListedTransport(self.files())
        if self.server is None:
            raise ValueError("a network transport needs a server")
        return NetworkTransport(self.server, self.identity)

    def files(self) -> LogFiles:
        """Return the log files of a file transport.

        Raises:
            UsageError: the path does not exist, or is a single log file.
        """
        from loader.reader.files.log_files import ArchivedFiles
        from loader.reader.locations.uri import log_at

        return ArchivedFiles(self.path, self.keys) if self.path.startswith(_S3) else log_at(Path(self.path), self.keys)


class ExtractSpec(BaseModel):
    """Extract the planned interval that starts at `start_seqno`, and the intervals after it up to a stop.

    Attributes:
        through_seqno: the stop of the last interval to extract; 0: only the first interval.
        seconds: no further interval is started after this time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    generation: str
    staging_root: str
    start_seqno: int
    transport: TransportSettings
    through_seqno: int = 0
    seconds: float = 0


class RestoreResult(BaseModel):
    """The number of an interval's files that were lost or changed and have been restored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start_seqno: int
    files: int


class TableRows(BaseModel):
    """The numbers of staged records of one table, and the bytes of its staged files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    bytes: int = 0


class ExtractResult(BaseModel):
    """An extracted interval. `status` is `already` if it was staged before, or by a faster attempt.

    `bytes`: of log. `left_out`: tables with missing rows. A merge stops them before their first missing row.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Literal["staged", "already"]
    start: str
    stop: str
    start_seqno: int
    stop_seqno: int
    tables: tuple[TableRows, ...]
    left_out: tuple[IncompleteTable, ...] = ()
    bytes: int
    events: int


class BacklogResult(ExtractResult):
    """Several extracted intervals, reported as one.

    Attributes:
        intervals: their number.
        failed: why the next interval is not staged, in the form of `LoaderError.as_dict()`; None if it was not started.
    """

    intervals: int
    failed: dict[str, Any] | None = None


def result_of(manifest: Manifest, status: Literal["staged", "already"]) -> ExtractResult:
    """Return the report of a manifest."""
    rows = _summed((str(file.name), file.inserts, file.updates, file.deletes, file.bytes) for file in manifest.files)
    return ExtractResult(
        status=status,
        start=manifest.start,
        stop=manifest.stop,
        start_seqno=manifest.start_seqno,
        stop_seqno=manifest.stop_seqno,
        tables=rows,
        left_out=manifest.left_out,
        bytes=manifest.balance.bytes if manifest.balance else 0,
        events=manifest.balance.events if manifest.balance else 0,
    )


def backlog_result(extracts: Sequence[ExtractResult], failed: dict[str, Any] | None = None) -> BacklogResult:
    """Return the report of one or more consecutive intervals."""
    tables = (rows for one in extracts for rows in one.tables)
    rows = ((rows.table, rows.inserts, rows.updates, rows.deletes, rows.bytes) for rows in tables)
    return BacklogResult(
        status="already" if all(one.status == "already" for one in extracts) else "staged",
        start=extracts[0].start,
        stop=extracts[-1].stop,
        start_seqno=extracts[0].start_seqno,
        stop_seqno=extracts[-1].stop_seqno,
        tables=_summed(rows),
        left_out=tuple(left_out for one in extracts for left_out in one.left_out),
        bytes=sum(one.bytes for one in extracts),
        events=sum(one.events for one in extracts),
        intervals=len(extracts),
        failed=failed,
    )


def _summed(rows: Iterable[tuple[str, int, int, int, int]]) -> tuple[TableRows, ...]:
    """Return inserts, updates, deletes and bytes per table, sorted by table name."""
    sums: dict[str, list[int]] = {}
    for table, *counts in rows:
        sums[table] = list(map(add, sums.get(table, (0, 0, 0, 0)), counts))
    return tuple(
        TableRows(table=table, inserts=inserts, updates=updates, deletes=deletes, bytes=size)
        for table, (inserts, updates, deletes, size) in sorted(sums.items())
    )
