"""Quarantined tables: tables that are stopped until somebody has looked at them, and why.

Each table has one document, in the folder of the source and outside its generations. It remains until the table is
released or its applied position changes. A quarantine decides whether a table is attempted. It never decides what is in
the table.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from loader.errors import UsageError
from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.layout import quarantine_folder, quarantine_key
from loader.store.base import Store


class Quarantine(Document):
    """Why a table is stopped, and its applied position at that time.

    Attributes:
        error: in the form of `LoaderError.as_dict()`.
        applied, applied_seqno: the applied position of the table; None if it has none or it is unknown.
        stop, stop_seqno: of the interval that the merge had to reach.
        since: UTC time of the first failure.
    """

    source: str
    table: str
    error: dict[str, Any]
    applied: str = ""
    applied_seqno: int | None = None
    stop: str
    stop_seqno: int
    since: datetime

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return TableName.parse(self.table)

    def error_with_release(self) -> dict[str, Any]:
        """Return the error to report now. Its hint also says how to release the table."""
        command = f"loader release {self.name.argument}"
        release = f"unless the table was loaded again: {command} (quarantined since {self.since:%F %T} UTC)"
        return {**self.error, "hint": "; then, ".join(filter(None, (self.error["hint"], release)))}


class Quarantines:
    """The quarantined tables of a source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def all(self) -> dict[TableName, Quarantine]:
        """Return all quarantines by table."""
        keys = [info.key for info in self._store.list(f"{quarantine_folder(self._source)}/")]
        found = [one for key in keys if (one := Quarantine.find(self._store, key))]
        return {one.name: one for one in sorted(found, key=lambda one: one.table)}

    def begin(
        self, table: TableName, error: dict[str, Any], applied: tuple[str, int] | None, stop: tuple[str, int]
    ) -> Quarantine:
        """Quarantine a table. If two processes do so, the first reason is kept."""
        made = Quarantine(
            source=self._source,
            table=str(table),
            error=error,
            applied=applied[0] if applied else "",
            applied_seqno=applied[1] if applied else None,
            stop=stop[0],
            stop_seqno=stop[1],
            since=datetime.now(UTC).replace(microsecond=0),
        )
        key = quarantine_key(self._source, table)
        self._store.create(key, made.canonical())
        return Quarantine.find(self._store, key) or made

    def find_current(self, table: TableName, applied_seqno: int | None) -> Quarantine | None:
        """Return the quarantine of a table whose applied position is `applied_seqno`, or None.

        If the applied position has changed since the failure, the quarantine ends: the table was loaded again or rolled
        back.
        """
        found = Quarantine.find(self._store, quarantine_key(self._source, table))
        if found and found.applied_seqno != applied_seqno:
            self.end(found)
            return None
        return found

    def end(self, found: Quarantine) -> None:
        """End a quarantine, so that the next run attempts the table again."""
        self._store.delete(quarantine_key(self._source, found.name))

    def require(self, table: TableName) -> Quarantine:
        """Return the quarantine of a table.

        Raises:
            UsageError: the table is not quarantined.
        """
        standing = self.all()
        if table in standing:
            return standing[table]
        raise UsageError(
            f"table {table} is not quarantined",
            why=f"quarantined tables: {', '.join(map(str, standing)) or 'none'}",
            hint="loader status",
            source=self._source,
            table=table,
        )
