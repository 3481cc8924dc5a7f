"""Writes staged records as a Parquet file of a table, on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loader.materialise.iceberg.data_files import FileContent
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
_BOUND_BYTES = 4096
"""Arrow leaves longer values out of the statistics of a row group (DEFAULT_MAX_STATISTICS_SIZE of its C++ writer)."""


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


def write_parquet(store: Store, files: Sequence[StagedFile], rows: RowFormat, path: Path) -> FileContent:
    """Write the records of staged files, and return what the file holds.

    Raises:
        StagedDataError: a staged file is missing or changed.
        NotSupportedNatively: Spark must write the rows.
    """
    unbounded: set[str] = set()
    with pq.ParquetWriter(path, rows.fields, compression="zstd", store_decimal_as_integer=True) as writer:
        for group in _row_groups(store, files, rows):
            writer.write_table(group, row_group_size=len(group))
            unbounded.update(_columns_with_long_values(group))
    return FileContent(_split_offsets(path), sorted(unbounded))


def _columns_with_long_values(group: pa.Table) -> Iterator[str]:
    """Yield the names of columns whose smallest or largest value may be missing in the statistics of a row group."""
    for field in group.schema:
        if field.type in {pa.string(), pa.binary()}:
            longest = pc.max(pc.binary_length(group[field.name])).as_py()
            if longest is not None and longest > _BOUND_BYTES:
                yield field.name


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
