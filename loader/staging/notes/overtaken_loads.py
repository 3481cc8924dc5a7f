"""Initial loads that merges have overtaken: such a load sets the applied position of its table back.

The newest published record then says more of the table than is true, until a run has merged the log again. Each load
has one document, in the folder of the source and outside its generations. It is made before the load is committed, and
removed by a run that has merged the table and published a record. It decides whether a run has work, never what is in
the table.
"""

from __future__ import annotations

from collections.abc import Container

from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.layout import loaded_key, overtaken_folder, overtaken_key
from loader.staging.notes.finished_work import Loaded
from loader.store.base import Store


class OvertakenLoad(Document):
    """An overtaken load: its table, the key of its manifest, and the seqno of its position."""

    source: str
    table: str
    manifest: str
    seqno: int

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return TableName.parse(self.table)


class OvertakenLoads:
    """The overtaken loads of a source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def all(self) -> list[OvertakenLoad]:
        """Return all overtaken loads."""
        keys = [info.key for info in self._store.list(f"{overtaken_folder(self._source)}/")]
        return [one for key in keys if (one := OvertakenLoad.find(self._store, key))]

    def applied(self) -> list[OvertakenLoad]:
        """Return the overtaken loads that are in the warehouse."""
        return [one for one in self.all() if Loaded.find(self._store, loaded_key(one.manifest))]

    def contradict(self, behind: Container[str]) -> bool:
        """Return whether the newest published record says more than is true; `behind`: tables behind in it."""
        return any(load.table not in behind for load in self.all())

    def begin(self, table: TableName, manifest: str, seqno: int) -> None:
        """Note that merges have overtaken the load with this manifest key."""
        made = OvertakenLoad(source=self._source, table=str(table), manifest=manifest, seqno=seqno)
        self._store.create(overtaken_key(self._source, table, seqno), made.canonical())

    def end(self, table: TableName, seqno: int) -> None:
        """Remove the note of a load, if any: the log was merged again over it, or it was refused."""
        self._store.delete(overtaken_key(self._source, table, seqno))
