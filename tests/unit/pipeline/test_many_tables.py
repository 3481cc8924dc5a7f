"""What a status asks the store for each table."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier

from loader.model.table import TableName
from loader.pipeline import status
from loader.staging.layout import load_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.staging.published import Published, PublishedTable
from tests.unit.pipeline.forged import CHAIN, ForgedStore, forged_manifest
from tests.unit.pipeline.site import settings_of
from tests.unit.pipeline.test_requests import opened

_INTERVALS = 10


class LoadedStore(ForgedStore):
    """A store with so many tables, each with an initial load that is in the warehouse. The first table is not exact.

    Args:
        tables: how many.
        readers: how many must read a load at once, before any of them gets an answer.
    """

    def __init__(self, tables: int, readers: int) -> None:
        super().__init__(_INTERVALS)
        self._barrier, self._manifests = Barrier(readers), set[str]()
        names = [f"shop.t{number:03d}" for number in range(tables)]
        last = forged_manifest(_INTERVALS - 1)
        for name in names:
            loaded = forged_manifest(3, name).model_copy(update={"files": ()})
            if name == names[0]:
                loaded = loaded.model_copy(update={"exact_at_seqno": last.stop_seqno + 1})
            folder = load_folder("shop", "0001", TableName.parse(name))
            manifest = f"{folder}/{loaded.start_seqno:020d}/manifest.json"
            self._manifests.add(manifest)
            self.objects[manifest] = loaded.canonical()
            note = Loaded(source="shop", table=name, position=loaded.start, warehouse="w")
            self.objects[loaded_key(manifest)] = note.canonical()
        record = Published(
            source="shop", generation="0001", stop=last.stop, stop_seqno=last.stop_seqno, behind={},
            tables={name: PublishedTable(snapshot=1, applied=last.stop_seqno) for name in names},
        )  # fmt: skip
        self.objects[f"{CHAIN}{last.start_seqno:020d}/published.json"] = record.canonical()

    def get(self, key: str) -> bytes:
        if key in self._manifests:
            self._barrier.wait(10)
        return super().get(key)


def requests_of(tables: int, folder: Path, readers: int = 1) -> int:
    with opened(LoadedStore(tables, readers)) as store:
        found = status(settings_of(folder))
    assert [table.exact for table in found.tables] == [False] + [True] * (tables - 1)
    assert found.loads == ()
    return store.requests.total()


def test_a_status_needs_four_requests_for_each_table(tmp_path: Path) -> None:
    """A listing of its loads, for its load that is exact and for its load that is not in the warehouse, and a document
    of each."""
    assert requests_of(60, tmp_path) - requests_of(10, tmp_path) == 50 * 4


def test_a_status_asks_for_several_tables_at_once(tmp_path: Path) -> None:
    assert requests_of(16, tmp_path, readers=8) > 0
