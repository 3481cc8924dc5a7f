"""The events of the log: immutable, with the names of the server's documentation.

Sources: the MySQL source documentation, "Binary Log Event Types"; MariaDB's "Replication Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal

from loader.binlog.constants import event_name
from loader.errors import DataError
from loader.model.gtid import Gtid, GtidSet
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.reader.dialect import UNREADABLE
from loader.reader.rows import RowChange, changes_of
from loader.reader.user_variables import user_variable

_SHOWN = 60  # characters of a field in a repr


@dataclass(frozen=True)
class EventHeader:
    """The 19 bytes at the start of every event, and their place.

    Attributes:
        timestamp: start of the statement, in seconds since 1970.
        type: number of the event type; `name` is its name.
        server_id: id of the server on which the event was written first.
        size: bytes of the event with header and checksum; for a row event in fragments, of all its fragments.
        position: offset of its first byte in `file`.
        end: offset of the next event, as logged: it wraps at 4 GiB, and is 0 inside other events. For a row event in
            fragments, the offset of the event after the last fragment.
        flags: as documented by the server; 1 in a format description: the file is in use.
        inner: -1; for an event of a compressed transaction, its offset in the expanded bytes of the event at
            `position`.
    """

    file: str
    position: int
    timestamp: int
    type: int
    server_id: int
    size: int
    end: int
    flags: int
    inner: int = -1

    @property
    def name(self) -> str:
        """`WRITE_ROWS`, ..."""
        return event_name(self.type)

    @property
    def time(self) -> datetime:
        """The timestamp in UTC."""
        return datetime.fromtimestamp(self.timestamp, UTC)


@dataclass(frozen=True)
class Transaction:
    """The transaction that an event belongs to.

    Attributes:
        seqno: lognum * 10^12 + end offset, as in staged records of its rows.
        start, end: position of its first byte, and of the byte after its last one.
        committed: commit time in microseconds since 1970; whole seconds if the server logs no fractions.
        rolled_back: it ends with ROLLBACK.
        prepared: it ends with XA_PREPARE. Its rows take effect with a later XA COMMIT, if there is one.
        gtid: None if the server assigned none.
        is_cut: the log is damaged at `end`, before the transaction ends. It is not known whether it was committed.
    """

    seqno: int
    start: Position
    end: Position
    committed: int
    rolled_back: bool
    prepared: bool
    gtid: Gtid | None
    is_cut: bool = False

    @property
    def time(self) -> datetime:
        """The commit time in UTC."""
        return datetime.fromtimestamp(self.committed // 1_000_000, UTC).replace(microsecond=self.committed % 1_000_000)


@dataclass(frozen=True, repr=False)
class Event:
    """An event. `transaction` is None between transactions."""

    header: EventHeader
    transaction: Transaction | None

    def __repr__(self) -> str:
        fields = "".join(f", {name}={_cut(repr(value))}" for name, value in self._shown_fields())
        return f"{type(self).__name__}({self.header.file}:{self.header.position}{fields})"

    def _shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield the fields that `repr` shows."""
        for field in fields(self):
            if field.name not in {"header", "transaction"}:
                yield field.name, getattr(self, field.name)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@dataclass(frozen=True, repr=False)
class FormatDescriptionEvent(Event):
    """The first event of a file. `created`: seconds since 1970; 0 unless the server started with this file."""

    binlog_version: int
    server_version: str
    created: int
    checksum: bool

    @property
    def in_use(self) -> bool:
        """Whether the server has not closed the file yet."""
        return bool(self.header.flags & 1)


@dataclass(frozen=True, repr=False)
class RotateEvent(Event):
    """The end of a file: name of the next file, and offset of its first event."""

    next_file: str
    next_position: int


@dataclass(frozen=True, repr=False)
class StopEvent(Event):
    """The server was shut down."""


@dataclass(frozen=True, repr=False)
class PreviousGtidsEvent(Event):
    """MySQL: the GTIDs of all files before this one."""

    gtids: GtidSet


@dataclass(frozen=True, repr=False)
class GtidListEvent(Event):
    """MariaDB: the newest GTID of each domain in the files before this one."""

    gtids: GtidSet


@dataclass(frozen=True, repr=False)
class GtidEvent(Event):
    """MySQL: the start of a transaction, with its GTID, tagged or not.

    Attributes:
        last_committed, sequence_number: logical clock: the transaction may run in parallel with all transactions whose
            sequence_number is above its last_committed.
        immediate_commit, original_commit: commit time on this server and on the original one, in microseconds since
            1970; 0 if not logged.
    """

    gtid: Gtid
    last_committed: int
    sequence_number: int
    immediate_commit: int
    original_commit: int


@dataclass(frozen=True, repr=False)
class AnonymousGtidEvent(Event):
    """MySQL: the start of a transaction without a GTID; the fields are those of GtidEvent."""

    last_committed: int
    sequence_number: int
    immediate_commit: int
    original_commit: int


@dataclass(frozen=True, repr=False)
class MariadbGtidEvent(Event):
    """MariaDB: the start of a transaction. `gtid_flags` 1: it is a single statement without COMMIT."""

    gtid: Gtid
    gtid_flags: int


@dataclass(frozen=True, repr=False)
class QueryEvent(Event):
    """A statement, also BEGIN and COMMIT. `execution_time`: seconds; `variables`: the status variables as bytes."""

    thread_id: int
    execution_time: int
    error_code: int
    schema: str
    statement: str
    variables: bytes


@dataclass(frozen=True, repr=False)
class BeginLoadQueryEvent(Event):
    """The first bytes of the file that a LOAD DATA statement reads. `file_id` is that of the statement."""

    file_id: int
    data: bytes


@dataclass(frozen=True, repr=False)
class AppendBlockEvent(Event):
    """The next bytes of the file of a LOAD DATA statement."""

    file_id: int
    data: bytes


@dataclass(frozen=True, repr=False)
class DeleteFileEvent(Event):
    """The LOAD DATA statement of a file failed; the file is not used."""

    file_id: int


@dataclass(frozen=True, repr=False)
class ExecuteLoadQueryEvent(QueryEvent):
    """A LOAD DATA statement, logged as a statement.

    Attributes:
        file_id: the events that carry the content of the file have the same id.
        name_start, name_end: offsets in the bytes of `statement` of the clause with the file's name, from LOCAL or
            INFILE on.
        duplicates: rows whose key exists: 0 are an error, 1 are ignored, 2 replace the existing row.
    """

    file_id: int
    name_start: int
    name_end: int
    duplicates: int


@dataclass(frozen=True, repr=False)
class RowsQueryEvent(Event):
    """The statement that caused the next row events (binlog_rows_query_log_events; MariaDB: ANNOTATE_ROWS)."""

    statement: str


@dataclass(frozen=True, repr=False)
class TableMapEvent(Event):
    """The table of a table id, until the statement ends. `wire_types`: the numbers of the column types."""

    table_id: int
    table: TableName
    wire_types: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class RowsEvent(Event):
    """Changes of rows of one table, parsed from the text that extraction stages for them.

    Attributes:
        table: name of the table.
        schema: its columns and key at this position; None if its rows are not wanted or cannot be read.
        staged: the staged lines; every update is a `D` and an `I`.
        error: why the rows cannot be read, in a log that is opened with `lenient`. Otherwise it is raised.
    """

    table: TableName
    schema: TableSchema | None
    staged: bytes
    error: DataError | None = None

    @property
    def unreadable(self) -> int:
        """Number of invalid values, whose text is the hex of their bytes."""
        return self.staged.count(UNREADABLE)

    @property
    def rows(self) -> tuple[RowChange, ...]:
        """All changes of the event."""
        return tuple(self)

    def _shown_fields(self) -> Iterator[tuple[str, object]]:
        yield "table", str(self.table)
        yield "staged_bytes", len(self.staged)

    def __iter__(self) -> Iterator[RowChange]:
        if self.schema:
            yield from changes_of(self.staged, self.schema, update=isinstance(self, UpdateRowsEvent))


class WriteRowsEvent(RowsEvent):
    """Inserts."""


class UpdateRowsEvent(RowsEvent):
    """Updates."""


class DeleteRowsEvent(RowsEvent):
    """Deletes."""


@dataclass(frozen=True, repr=False)
class TransactionPayloadEvent(Event):
    """A compressed transaction; its events follow. `compression`: 0 zstd, 255 none; `expanded`: bytes of its events."""

    compression: int
    expanded: int


@dataclass(frozen=True, repr=False)
class XidEvent(Event):
    """The commit of a transaction, with the number that InnoDB knows it by."""

    xid: int


@dataclass(frozen=True, repr=False)
class XaPrepareEvent(Event):
    """The end of the first phase of an XA transaction, or of both (`one_phase`). `xid`: as XA COMMIT takes it."""

    one_phase: bool
    xid: str


@dataclass(frozen=True, repr=False)
class IncidentEvent(Event):
    """Changes happened on the server that the log does not contain. `incident` 1: events were lost."""

    incident: int
    message: str


@dataclass(frozen=True, repr=False)
class IntvarEvent(Event):
    """A value that the next statement uses. `kind`: 1 LAST_INSERT_ID, 2 INSERT_ID."""

    kind: int
    value: int

    @property
    def variable(self) -> str:
        """Name of the session variable."""
        return {1: "LAST_INSERT_ID", 2: "INSERT_ID"}.get(self.kind, f"variable {self.kind}")


@dataclass(frozen=True, repr=False)
class RandEvent(Event):
    """The seeds of RAND() for the next statement."""

    seed1: int
    seed2: int


@dataclass(frozen=True, repr=False)
class UserVarEvent(Event):
    """A user variable that the next statement uses.

    Attributes:
        name: without `@`.
        value: bytes as logged; None for NULL.
        kind: `string`, `real`, `int`, `decimal`, or `type 9` for an unknown number; empty for NULL.
        charset: character set of a string, `binary` for bytes; empty for other kinds.
        unsigned: whether an integer is unsigned.
    """

    name: str
    value: bytes | None
    kind: str = ""
    charset: str = ""
    unsigned: bool = False

    def native(self) -> int | float | Decimal | str | bytes | None:
        """Return the value as a Python type; bytes for binary strings and values that cannot be decoded."""
        return user_variable(self.kind, self.value, self.charset, unsigned=self.unsigned)


@dataclass(frozen=True, repr=False)
class BinlogCheckpointEvent(Event):
    """MariaDB: the oldest file that crash recovery needs."""

    oldest_file: str


@dataclass(frozen=True, repr=False)
class HeartbeatEvent(Event):
    """The server is alive and has no new event."""

    file: str


@dataclass(frozen=True, repr=False)
class UnknownEvent(Event):
    """An event that is not decoded. `body`: without checksum; `header.name`: the name of its type."""

    body: bytes
