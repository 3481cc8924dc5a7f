"""Writes staged records as a Parquet file of a table, on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.table_layout import IS_DELETED, TableColumn
from loader.model.table import TableSchema
from loader.native_collapse.last_records import NotSupportedNatively, check_keys
from loader.native_collapse.staged_batches import read_batches
from loader.staging.documents import StagedFile
from loader.store.base import Store
from loader.types.warehouse import widened_type

_GROUP_BYTES = 32 * 1024 * 1024
"""Size of a row group in memory. Each thread or task holds one row group and one batch."""


@dataclass(frozen=True)
class RowFormat:
    """How records become rows of a table.

    Attributes:
        records: the schema of the staged records.
        columns: of the table.
        fields: of the Parquet file, one for each column.
    """

    records: TableSchema
    columns: tuple[TableColumn, ...]
    fields: pa.Schema


def write_parquet(store: Store, files: Sequence[StagedFile], rows: RowFormat, path: Path) -> list[int]:
    """Write the records of staged files, and return the offset of each row group in the file.

    Raises:
        StagedDataError: a staged file is missing or changed.
        NotSupportedNatively: Spark must write the rows.
    """
    with pq.ParquetWriter(path, rows.fields, compression="zstd", store_decimal_as_integer=True) as writer:
        for group in _row_groups(store, files, rows):
            writer.write_table(group, row_group_size=len(group))
    return _split_offsets(path)


def _row_groups(store: Store, files: Sequence[StagedFile], rows: RowFormat) -> Iterator[pa.Table]:
    pending, size = list[pa.Table](), 0
    for file in files:
        for batch in read_batches(store, file, rows.records):
            pending.append(_rows(batch, rows))
            size += pending[-1].nbytes
            if size >= _GROUP_BYTES:
                yield pa.concat_tables(pending)
                pending, size = [], 0
    if pending:
        yield pa.concat_tables(pending)


def _rows(batch: pa.Table, rows: RowFormat) -> pa.Table:
    """Return the rows of the table for a batch of staged records."""
    check_keys(batch, key_places(rows.records))
    columns = zip(rows.columns, rows.fields, strict=True)
    return pa.table([_values(batch, column, field) for column, field in columns], schema=rows.fields)


def _values(batch: pa.Table, column: TableColumn, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if column.value == IS_DELETED:
        return pc.equal(batch["_op"], "D")
    if column.value not in batch.column_names:
        return pa.nulls(len(batch), field.type)  # the text of a misfit: a batch with misfits is refused
    values = batch[column.value]
    if values.type == field.type:
        return values
    if not _is_wider(values.type, field.type):
        raise NotSupportedNatively(f"column {column.name} is {field.type} in the table and {values.type} in the rows")
    return values.cast(field.type)


def _is_wider(staged: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the table's type holds every value of the staged type."""
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double"}
    one, other = (
        names.get(kind) or str(kind).replace("decimal128", "decimal").replace(", ", ",") for kind in (staged, wanted)
    )
    return widened_type(one, other) == other


def _split_offsets(path: Path) -> list[int]:
    """Return the offset of each row group."""
    metadata = pq.read_metadata(path)
    first = (metadata.row_group(number).column(0) for number in range(metadata.num_row_groups))
    return [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in first]
