"""Lists staged records as text or as lines of JSON."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from loader import pipeline
from loader.cli.listing.json_lines import typed
from loader.cli.listing.text import literal, visible
from loader.model.table import TableName
from loader.reader.rows import Record, record_of
from loader.settings import SourceSettings
from loader.staging.documents import Manifest, StagedFile
from loader.staging.file_verification import find_fault
from loader.store.base import Store
from loader.store.registry import open_store
from loader.visible_text import exact_json
from loader.visible_text import visible as hidden


def lines(settings: SourceSettings, interval: int, table: str, *, as_json: bool) -> Iterator[str]:
    """Yield the staged records of a table (`schema.table`) in an interval, in log order.

    Raises:
        DataError: the interval has none.
        StagedDataError: a file does not match the manifest.
    """
    manifest, files = pipeline.staged_files(settings, interval, TableName.parse(table))
    store = open_store(settings.staging_root)
    for file in files:
        yield from map(_json if as_json else _text, _records(store, manifest, file))


def _records(store: Store, manifest: Manifest, file: StagedFile) -> Iterator[Record]:
    if found := find_fault(store, file):
        raise found
    schema = manifest.schema_of(file.schema_id)
    # Only a line feed ends a staged record; Python would also split at other characters.
    with store.reading(file.key) as stream, io.TextIOWrapper(stream, "utf-8", newline="\n") as lines:
        for line in lines:
            yield record_of(line.removesuffix("\n"), schema)


def _text(record: Record) -> str:
    values = ", ".join(f"{visible(value.column.name)} = {literal(value)}" for value in record.row)
    return hidden(f"{record.op} {record.seqno}+{record.row_offset} {record.committed_at}  {values}")


def _json(record: Record) -> str:
    found: dict[str, Any] = {name: getattr(record, name) for name in ("op", "seqno", "row_offset", "committed_at")}
    found["row"] = {value.column.name: typed(value) for value in record.row if not value.is_absent}
    return exact_json(found)
