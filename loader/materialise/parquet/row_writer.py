"""Writes rows as a Parquet file of a table, on any machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loader.materialise.iceberg.data_files import FileContent

_GROUP_BYTES = 32 * 1024 * 1024
"""Size of a row group in memory. Each thread or task holds one row group and one batch."""
_BOUND_BYTES = 4096
"""Arrow leaves longer values out of the statistics of a row group (DEFAULT_MAX_STATISTICS_SIZE of its C++ writer)."""


def write_rows(batches: Iterable[pa.Table], fields: pa.Schema, path: Path) -> FileContent:
    """Write rows into a file, and return what it holds.

    Args:
        batches: the rows, with the columns of `fields`.
        fields: the columns with their field ids.
        path: of the file.
    """
    unbounded: set[str] = set()
    with pq.ParquetWriter(path, fields, compression="zstd", store_decimal_as_integer=True) as writer:
        for group in _row_groups(batches):
            writer.write_table(group, row_group_size=len(group))
            unbounded.update(_columns_with_long_values(group))
    return FileContent(_split_offsets(path), sorted(unbounded))


def _row_groups(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending, size = list[pa.Table](), 0
    for batch in batches:
        for part in _parts(batch):
            pending.append(part)
            size += part.nbytes
            if size >= _GROUP_BYTES:
                yield pa.concat_tables(pending)
                pending, size = [], 0
    if pending:
        yield pa.concat_tables(pending)


def _parts(batch: pa.Table) -> Iterator[pa.Table]:
    """Yield parts of a batch that are not much larger than a row group."""
    rows = max(1, len(batch) * _GROUP_BYTES // max(_GROUP_BYTES, batch.nbytes))
    return (batch.slice(first, rows) for first in range(0, len(batch), rows))


def _columns_with_long_values(group: pa.Table) -> Iterator[str]:
    """Yield the names of columns whose smallest or largest value may be missing in the statistics of a row group."""
    for field in group.schema:
        if field.type in {pa.string(), pa.binary()}:
            longest = pc.max(pc.binary_length(group[field.name])).as_py()
            if longest is not None and longest > _BOUND_BYTES:
                yield field.name


def _split_offsets(path: Path) -> list[int]:
    """Return the offset of each row group."""
    metadata = pq.read_metadata(path)
    first = (metadata.row_group(number).column(0) for number in range(metadata.num_row_groups))
    return [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in first]
