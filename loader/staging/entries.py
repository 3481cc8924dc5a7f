"""Parts of the durable documents."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Entry(BaseModel):
    """A part of a document. `LATER` works as in Document."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    LATER: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _serialized(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = whole(self)
        return {name: value for name, value in found.items() if value or name not in self.LATER}


class SkippedRows(BaseModel):
    """The rows of a transaction that an operator skips: all rows, or those of one table.

    Attributes:
        key: of the record in the store; see loader.staging.notes.skips.
        place: where the transaction begins, `binlog.000054:123`; empty if only its GTID is known in this log.
        gtid: of the transaction; empty if its place identifies it.
        table: `schema.table`; empty for the whole transaction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    place: str = ""
    gtid: str = ""
    table: str = ""


class Balance(BaseModel):
    """Accounts for every event and row event of an interval: read = staged + held + skipped for a named reason.

    `row_events_held`: of XA transactions prepared in the interval. `row_events_released`: of XA transactions prepared
    in this interval or earlier, and staged because the interval contains their XA COMMIT.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: int
    bytes: int
    transactions: int
    event_types: dict[str, int]
    row_events_staged: int
    row_events_held: int = 0
    row_events_released: int = 0
    skipped: dict[str, int]


class UnloggedChanges(Entry):
    """Captured tables whose rows the server may change without a log entry, as planning finds them.

    Attributes:
        parents: by the name of a table, the captured tables whose rows foreign keys change with its rows. Only of
            servers that log this, see loader.source.foreign_keys. Row events say whether it was logged.
        memory: MEMORY tables of MariaDB, see loader.source.memory_tables.
        virtual: tables with virtual columns of MariaDB, see loader.source.update_triggers.
        triggered: those of them that have a BEFORE UPDATE trigger.
    """

    LATER = ("parents", "memory", "virtual", "triggered")

    parents: dict[str, tuple[str, ...]] = {}
    memory: tuple[str, ...] = ()
    virtual: tuple[str, ...] = ()
    triggered: tuple[str, ...] = ()
