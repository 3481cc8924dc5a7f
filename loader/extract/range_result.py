"""The result of extracting one range in a Spark task."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.binlog.events.statement import LogStatement
from loader.extract.xa_events import XaEvent
from loader.model.table import TableName, TableSchema
from loader.staging.documents import IncompleteTable, Mark, StagedFile

Part = tuple[str, int, int]
"""GTIDs of one source (`uuid`, `uuid:tag`, or MariaDB's `domain-server`): first and last number of an unbroken run."""


@dataclass
class RangeResult:
    """The result of a range: files, their schemas, statements and XA events for the driver, and counters.

    Attributes:
        file: name of the log file.
        before: if the range starts with its log file, the GTID set that the file declares to be before it.
        started: the seqno behind the first event of the log file, if the range starts with the file and the server
            started with it; otherwise 0.
        gtids: of the transactions that begin in the counted bytes.
        mark: of the position after the last of these transactions.
        committed: commit time of the newest transaction, in microseconds since 1970; 0 without transactions.
        row_events_skipped: by reason.
        bytes_cut_off: of a transaction that a server crash left unfinished.
        bytes_skipped: of transactions that operators skipped.
        skips: keys of the records of operators that were used.
        bytes_torn: the part of `bytes_cut_off` that is no whole event, and so is not walked.
        left_out: for each incomplete table, its first and last missing row.
        unlogged: by name, the tables whose rows foreign keys changed without a log entry.
        nameless: captured tables without column names. An extraction without their schemas stops at the first one.
    """

    files: list[StagedFile] = field(default_factory=list)
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    statements: list[LogStatement] = field(default_factory=list)
    xa: list[XaEvent] = field(default_factory=list)
    file: str = ""
    before: str = ""
    started: int = 0
    gtids: tuple[Part, ...] = ()
    mark: Mark | None = None
    event_types: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    transactions: int = 0
    committed: int = 0
    row_events: int = 0
    row_events_staged: int = 0
    row_events_held: int = 0
    row_events_skipped: dict[str, int] = field(default_factory=dict)
    bytes_cut_off: int = 0
    bytes_torn: int = 0
    bytes_skipped: int = 0
    skips: set[str] = field(default_factory=set)
    left_out: dict[TableName, IncompleteTable] = field(default_factory=dict)
    unlogged: dict[str, IncompleteTable] = field(default_factory=dict)
    nameless: set[TableName] = field(default_factory=set)
