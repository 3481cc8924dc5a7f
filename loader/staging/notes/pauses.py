"""Paused tables: people have stopped the merges of these tables until they resume them.

Each table has one document, in the folder of the source and outside its generations. The changes of a paused table are
staged as usual. A pause decides whether a table is merged. It never decides what is in the table.
"""

from __future__ import annotations

from datetime import UTC, datetime

from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.layout import pause_folder, pause_key
from loader.store.base import Store


class Pause(Document):
    """Who paused a table, when (UTC), and why."""

    source: str
    table: str
    since: datetime
    by: str
    reason: str

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return TableName.parse(self.table)

    @property
    def note(self) -> str:
        """The pause in one line."""
        return f"paused since {self.since:%F %T} UTC by {self.by}: {self.reason}"


class Pauses:
    """The paused tables of a source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def all(self) -> dict[TableName, Pause]:
        """Return all pauses by table."""
        keys = [info.key for info in self._store.list(f"{pause_folder(self._source)}/")]
        found = [one for key in keys if (one := Pause.find(self._store, key))]
        return {one.name: one for one in sorted(found, key=lambda one: one.table)}

    def begin(self, table: TableName, by: str, reason: str) -> Pause:
        """Pause a table. If it is paused already, the first pause is kept and returned."""
        since = datetime.now(UTC).replace(microsecond=0)
        made = Pause(source=self._source, table=str(table), since=since, by=by, reason=reason)
        key = pause_key(self._source, table)
        self._store.create(key, made.canonical())
        return Pause.find(self._store, key) or made

    def end(self, found: Pause) -> None:
        """End a pause, so that the next run merges the table again."""
        self._store.delete(pause_key(self._source, found.name))
