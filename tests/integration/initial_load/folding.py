"""The rows that the staged records of a source give: those of the initial load, then those of the log after it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from loader import pipeline
from loader.extract.extraction import extract
from loader.initial_load.run import stage_tables
from loader.initial_load.spec import InitialLoadResult, InitialLoadSpec
from loader.model.table import TableName
from loader.pipeline import chain_of, plan_interval
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from loader.staging.documents import Manifest, StagedFile
from loader.store.base import Store
from loader.store.registry import open_store

Rows = Counter[tuple[str, ...]]


def load(settings: SourceSettings, readers: int) -> InitialLoadResult:
    """Stage the initial load of all captured tables."""
    spec = cast("InitialLoadSpec", pipeline.read_tables_job(settings).spec)
    return stage_tables(Threads(readers), spec)


def extract_all(settings: SourceSettings) -> None:
    """Stage everything that the log has. Nobody may write to it."""
    while extract_next(settings):
        pass


def extract_next(settings: SourceSettings) -> bool:
    """Stage the next interval, and return whether there was one."""
    chosen = plan_interval(settings)
    if chosen is None or not chosen.new:
        return False
    extract(Threads(2), cast("Any", pipeline.extract_job(settings, chosen.start_seqno).spec))
    return True


def folded_rows(settings: SourceSettings, loads: InitialLoadResult, keys: dict[str, int]) -> dict[str, Rows]:
    """Return the rows of each table as texts.

    Args:
        settings: of the source.
        loads: the staged loads.
        keys: by table, the number of leading columns that are its key; 0 without a key.
    """
    store, chain = open_store(settings.staging_root), chain_of(settings)
    rows = {}
    intervals = []
    for generation in chain.lineage(chain.require_generation().name):
        plans = chain.plans(generation)
        intervals += [found for plan in plans if (found := chain.manifest(generation.name, plan.start_seqno))]
    for load in loads.tables:
        name = TableName.parse(load.table)
        first = Manifest.read(store.get(load.manifest), load.manifest)
        after = [file for interval in intervals for file in interval.files if file.name == name]
        logged = [record for file in after for record in _records(store, file) if record[0] > first.start_seqno]
        loaded = [record for file in first.files for record in _records(store, file)]
        assert max([interval.stop_seqno for interval in intervals]) >= first.exact_at_seqno
        rows[name.table] = _fold(loaded + sorted(logged), keys[name.table])
    return rows


Record = tuple[int, int, str, tuple[str, ...]]


def _records(store: Store, file: StagedFile) -> Iterator[Record]:
    text = store.get(file.key).decode("utf-8")
    for op, seqno, offset, _, _, *values in csv.reader(io.StringIO(text, newline="\n")):
        yield int(seqno), int(offset), op, tuple(values)


def _fold(records: list[Record], key: int) -> Rows:
    if not key:
        rows: Rows = Counter()
        for _, _, op, values in records:
            rows[values] += -1 if op == "D" else 1
        assert min(rows.values(), default=0) >= 0
        return +rows
    last = {values[:key]: (op, values) for _, _, op, values in records}
    return Counter(values for op, values in last.values() if op != "D")
