"""The events of the log, immutable, named as in the server's documentation.

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
    """The 19 bytes before every event, and where they stand.

    Attributes:
        timestamp: of the statement, in seconds since 1970.
        type: number of the event's type; `name` is its name.
        server_id: of the server that logged it first.
        size: bytes of the event with header and checksum; of a row event in fragments, those of all its fragments.
        position: offset of its first byte in `file`.
        end: offset of the next event as the event itself has it; it wraps at 4 GiB, and is 0 inside other events. Of
            a row event in fragments: of the event behind the last.
        flags: as the server documents them; 1 of a format description: the file is in use.
        inner: -1, or for an event of a compressed transaction its offset in the expanded bytes of the event that
            stands at `position`.
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
        seqno: lognum * 10^12 + end offset: what its rows are staged with.
        start, end: its first byte and the byte behind its last one.
        committed: microseconds since 1970, to the second where the server logs no more.
        rolled_back: it ends in ROLLBACK.
        prepared: it ends in XA_PREPARE: its rows count from the XA COMMIT further on, if one comes.
        is_cut: its end is not in the log, which is damaged at `end`: whether it was committed is not known.
        gtid: None where the server gave it none.
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
        """The commit in UTC."""
        return datetime.fromtimestamp(self.committed // 1_000_000, UTC).replace(microsecond=self.committed % 1_000_000)


@dataclass(frozen=True, repr=False)
class Event:
    """Any event; `transaction` is None for those between transactions."""

    header: EventHeader
    transaction: Transaction | None

    def __repr__(self) -> str:
        told = "".join(f", {name}={_cut(repr(value))}" for name, value in self._told())
        return f"{type(self).__name__}({self.header.file}:{self.header.position}{told})"

    def _told(self) -> Iterator[tuple[str, object]]:
        """The fields that `repr` shows."""
        for field in fields(self):
            if field.name not in {"header", "transaction"}:
                yield field.name, getattr(self, field.name)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@dataclass(frozen=True, repr=False)
class FormatDescriptionEvent(Event):
    """The first of a file. `created`: seconds since 1970, 0 unless the server started with this file."""

    binlog_version: int
    server_version: str
    created: int
    checksum: bool

    @property
    def in_use(self) -> bool:
        """Whether the server has not closed the file."""
        return bool(self.header.flags & 1)


@dataclass(frozen=True, repr=False)
class RotateEvent(Event):
    """The end of a file: the name of the next one, and where its events start."""

    next_file: str
    next_position: int


@dataclass(frozen=True, repr=False)
class StopEvent(Event):
    """The server was shut down."""


@dataclass(frozen=True, repr=False)
class PreviousGtidsEvent(Event):
    """All GTIDs of the files before this one, on MySQL."""

    gtids: GtidSet


@dataclass(frozen=True, repr=False)
class GtidListEvent(Event):
    """The same on MariaDB: the newest of each domain."""

    gtids: GtidSet


@dataclass(frozen=True, repr=False)
class GtidEvent(Event):
    """The start of a transaction on MySQL, also with a tag.

    Attributes:
        last_committed, sequence_number: logical clock: it may run beside all with a sequence number above the first.
        immediate_commit, original_commit: microseconds since 1970 on this server and on the first; 0: not logged.
    """

    gtid: Gtid
    last_committed: int
    sequence_number: int
    immediate_commit: int
    original_commit: int


@dataclass(frozen=True, repr=False)
class AnonymousGtidEvent(Event):
    """The same where GTIDs are off."""

    last_committed: int
    sequence_number: int
    immediate_commit: int
    original_commit: int


@dataclass(frozen=True, repr=False)
class MariadbGtidEvent(Event):
    """The start of a transaction on MariaDB; flag 1: a single statement without COMMIT."""

    gtid: Gtid
    gtid_flags: int


@dataclass(frozen=True, repr=False)
class QueryEvent(Event):
    """A statement, BEGIN and COMMIT among them. `execution_time` in seconds; `variables`: status variables, raw."""

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
    """The next bytes of such a file."""

    file_id: int
    data: bytes


@dataclass(frozen=True, repr=False)
class DeleteFileEvent(Event):
    """The LOAD DATA statement of such a file failed; the file is of no use."""

    file_id: int


@dataclass(frozen=True, repr=False)
class ExecuteLoadQueryEvent(QueryEvent):
    """A LOAD DATA statement, logged as a statement.

    Attributes:
        file_id: of the events that have the content of its file.
        name_start, name_end: where the name of the file stands in the bytes of `statement`, from LOCAL or INFILE on.
        duplicates: what becomes of rows whose key is there: 0 an error, 1 they are ignored, 2 they replace the row.
    """

    file_id: int
    name_start: int
    name_end: int
    duplicates: int


@dataclass(frozen=True, repr=False)
class RowsQueryEvent(Event):
    """The statement that the next row events come from (binlog_rows_query_log_events; MariaDB: ANNOTATE_ROWS)."""

    statement: str


@dataclass(frozen=True, repr=False)
class TableMapEvent(Event):
    """Which table a number stands for until the statement ends. `wire_types`: the column types' numbers."""

    table_id: int
    table: TableName
    wire_types: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class RowsEvent(Event):
    """Changes of rows of one table, read from the very text that extraction stages for them.

    Attributes:
        table: its name.
        schema: its columns and key at this position; None when the table was not asked for.
        staged: the staged lines, every update as `D` and `I`.
        error: why the rows cannot be read: only of a log that is opened with `lenient`, which else raises it.
    """

    table: TableName
    schema: TableSchema | None
    staged: bytes
    error: DataError | None = None

    @property
    def unreadable(self) -> int:
        """How many values are given as the hex of their bytes, since they are none of their column's type."""
        return self.staged.count(UNREADABLE)

    @property
    def rows(self) -> tuple[RowChange, ...]:
        """All changes of the event."""
        return tuple(self)

    def _told(self) -> Iterator[tuple[str, object]]:
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
    """A compressed transaction, whose events come next. `compression`: 0 zstd, 255 none; `expanded`: their bytes."""

    compression: int
    expanded: int


@dataclass(frozen=True, repr=False)
class XidEvent(Event):
    """The commit of a transaction."""

    xid: int


@dataclass(frozen=True, repr=False)
class XaPrepareEvent(Event):
    """The end of the first phase of an XA transaction, or of all of it (`one_phase`); `xid` as XA COMMIT takes it."""

    one_phase: bool
    xid: str


@dataclass(frozen=True, repr=False)
class IncidentEvent(Event):
    """Something that the log does not hold happened on the server; 1: events were lost."""

    incident: int
    message: str


@dataclass(frozen=True, repr=False)
class IntvarEvent(Event):
    """A value that the next statement uses: 1 LAST_INSERT_ID, 2 INSERT_ID."""

    kind: int
    value: int

    @property
    def variable(self) -> str:
        """The name of the session variable that it sets."""
        return {1: "LAST_INSERT_ID", 2: "INSERT_ID"}.get(self.kind, f"variable {self.kind}")


@dataclass(frozen=True, repr=False)
class RandEvent(Event):
    """The seeds of RAND() in the next statement."""

    seed1: int
    seed2: int


@dataclass(frozen=True, repr=False)
class UserVarEvent(Event):
    """A user variable that the next statement uses.

    Attributes:
        name: without `@`.
        value: its bytes as logged; None for NULL.
        kind: `string`, `real`, `int`, `decimal`, or `type 9` for another number; empty for NULL.
        charset: of a string, `binary` for bytes; empty for others.
        unsigned: of an integer.
    """

    name: str
    value: bytes | None
    kind: str = ""
    charset: str = ""
    unsigned: bool = False

    def native(self) -> int | float | Decimal | str | bytes | None:
        """Return the value as a Python type; bytes for binary strings and for what cannot be decoded."""
        return user_variable(self.kind, self.value, self.charset, unsigned=self.unsigned)


@dataclass(frozen=True, repr=False)
class BinlogCheckpointEvent(Event):
    """MariaDB: the oldest file that crash recovery needs."""

    oldest_file: str


@dataclass(frozen=True, repr=False)
class HeartbeatEvent(Event):
    """The server is there and has nothing new."""

    file: str


@dataclass(frozen=True, repr=False)
class UnknownEvent(Event):
    """An event that is passed over: its body without checksum. `header.name` has its name where it has one."""

    body: bytes
