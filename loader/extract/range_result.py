"""What a Spark task brings back from a range."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.binlog.events.statement import LogStatement
from loader.extract.xa_events import XaEvent
from loader.model.table import TableName, TableSchema
from loader.staging.documents import IncompleteTable, Mark, StagedFile

Part = tuple[str, int, int]
"""GTIDs of one source (`uuid`, `uuid:tag`, or `domain-server` of MariaDB): first and last of an unbroken run."""


@dataclass
class RangeResult:
    """What a range gave: files and the schemas they need, statements and XA events for the driver, its accounts.

    `before`: where the range starts with its log file, the GTID set that the file says is before it. `gtids`: of the
    transactions that begin in its bytes of the file `file`. `mark`: of the place behind the last of them.
    `committed`: when the newest of its transactions was, in microseconds since 1970; 0 when it has none.
    `row_events_skipped`: by reason. `bytes_cut_off`: of a transaction that a crash of the server left unfinished;
    `bytes_torn`: those of them that are no whole event, and so not walked.
    `left_out`: of each table with rows that cannot be staged, the first one.
    `nameless`: captured tables without names of columns; an extraction that was not told of them stops at the first.
    """

    files: list[StagedFile] = field(default_factory=list)
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    statements: list[LogStatement] = field(default_factory=list)
    xa: list[XaEvent] = field(default_factory=list)
    file: str = ""
    before: str = ""
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
    left_out: dict[TableName, IncompleteTable] = field(default_factory=dict)
    nameless: set[TableName] = field(default_factory=set)
