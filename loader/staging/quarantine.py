"""Tables that are stopped until somebody has looked at them, and why.

A document per table, in the source's folder and outside its generations: it stands until the table is released, or has
moved on by itself. It decides whether a table is attempted, never what is in it.
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
    """Why a table is stopped, and where it stood.

    Attributes:
        error: in the form of `LoaderError.as_dict()`.
        applied, applied_seqno: the table's applied position; None where it has none, or none that is known.
        stop, stop_seqno: of the interval that it was to be brought to.
        since: when it failed first, in UTC.
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
        """The table."""
        return TableName.parse(self.table)

    def told(self) -> dict[str, Any]:
        """The error for whoever runs the loader now: with the way out of the quarantine."""
        command = f"loader release {self.name.argument}"
        release = f"unless it was loaded again: {command} (quarantined since {self.since:%F %T})"
        return {**self.error, "hint": "; then, ".join(filter(None, (self.error["hint"], release)))}


class Quarantines:
    """The quarantined tables of a source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def all(self) -> dict[TableName, Quarantine]:
        """All that stand, by table."""
        keys = [info.key for info in self._store.list(f"{quarantine_folder(self._source)}/")]
        found = [one for key in keys if (one := Quarantine.find(self._store, key))]
        return {one.name: one for one in sorted(found, key=lambda one: one.table)}

    def begin(
        self, table: TableName, error: dict[str, Any], applied: tuple[str, int] | None, stop: tuple[str, int]
    ) -> Quarantine:
        """Stop a table; of two that do, the first one's reason stands."""
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

    def still(self, table: TableName, applied_seqno: int | None) -> Quarantine | None:
        """The quarantine of a table that stands at this position now; None where there is none.

        It ends by itself once the table stands elsewhere than when it failed: it was loaded again, or rolled back.
        """
        found = Quarantine.find(self._store, quarantine_key(self._source, table))
        if found and found.applied_seqno != applied_seqno:
            self.end(found)
            return None
        return found

    def end(self, found: Quarantine) -> None:
        """Let the next run attempt the table again."""
        self._store.delete(quarantine_key(self._source, found.name))

    def require(self, table: TableName) -> Quarantine:
        """The quarantine of a table.

        Raises:
            UsageError: it is not quarantined.
        """
        standing = self.all()
        if table in standing:
            return standing[table]
        raise UsageError(
            f"table {table} is not quarantined",
            why=f"quarantined are {', '.join(map(str, standing))}" if standing else "no table of the source is",
            hint="see: loader status",
            source=self._source,
            table=table,
        )
