"""What a Spark task brings back from a range."""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.binlog.statement import LogStatement
from loader.extract.held import XaEvent
from loader.model.table import TableSchema
from loader.staging.documents import StagedFile


@dataclass
class RangeResult:
    """What a range gave: files and the schemas they need, statements and XA events for the driver, its accounts."""

    files: list[StagedFile] = field(default_factory=list)
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    statements: list[LogStatement] = field(default_factory=list)
    xa: list[XaEvent] = field(default_factory=list)
    event_types: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    transactions: int = 0
    row_events: int = 0
    row_events_staged: int = 0
    row_events_held: int = 0
