"""Writes the last records as Parquet files on this machine, from which Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from loader.native_collapse.key_ends import KeyEnds, count_deleted, join_ends, key_ends
from loader.native_collapse.last_records import LastRecords

_SORTED_ROWS = 1_000_000
_SORTED_BYTES = 512 * 1024 * 1024
"""Up to these numbers of rows and of staged bytes, all rows are sorted by key."""
_FEWEST = 200_000
"""The smallest number of rows per file, if the rows are split into several files."""
_GROUP = 500_000


@dataclass(frozen=True)
class WrittenFiles:
    """The content of the files.

    Attributes:
        deleted: the number of `D` records.
        low, high: the smallest and largest value of the first key column as text, bytes as hex; None without rows.
        sorted: the rows are sorted by key, and each file has a contiguous range. Otherwise they have the staged order.
    """

    deleted: int
    low: str | None
    high: str | None
    sorted: bool


def write_parquet(latest: LastRecords, folder: Path, key: Sequence[str], pool: Executor, most: int) -> WrittenFiles:
    """Write the last records: few rows into up to `most` sorted files, many rows into one file per staged file.

    Args:
        latest: the last records.
        folder: where to write.
        key: frame names of the key columns.
        pool: threads.
        most: the largest number of sorted files.

    Raises:
        NotSupportedNatively: a value does not fit its column, or a key has a NULL.
    """
    few = latest.count <= _SORTED_ROWS and sum(file.bytes for file in latest.files) <= _SORTED_BYTES
    if not few:
        ends = list(pool.map(partial(_write_each, latest, folder, key), range(len(latest.files))))
    else:
        ends = [_write_sorted(list(pool.map(latest.table, latest.files)), folder, key, pool, most)]
    low, high = join_ends(end.key for end in ends)
    return WrittenFiles(sum(end.deleted for end in ends), low, high, sorted=few)


class _Ends(NamedTuple):
    deleted: int
    key: KeyEnds


def _write_each(latest: LastRecords, folder: Path, key: Sequence[str], number: int) -> _Ends:
    table = latest.table(latest.files[number])
    _write_file(table, folder / f"{number:06d}.parquet", _GROUP)
    return _ends(table, key)


def _write_sorted(tables: list[pa.Table], folder: Path, key: Sequence[str], pool: Executor, most: int) -> _Ends:
    table = pa.concat_tables(tables).combine_chunks()
    tables.clear()  # the rows are in memory once
    ends = _ends(table, key)
    order = pc.sort_indices(table, [(name, "ascending") for name in key])
    files = max(1, min(most, len(table) // _FEWEST))
    each = -(-len(table) // files)

    def stretch(number: int) -> None:
        rows = table.take(order.slice(number * each, each))
        _write_file(rows, folder / f"{number:06d}.parquet", each)

    list(pool.map(stretch, range(files)))
    return ends


def _ends(table: pa.Table, key: Sequence[str]) -> _Ends:
    return _Ends(count_deleted(table), key_ends(table, key))


def _write_file(table: pa.Table, file: Path, rows: int) -> None:
    """Write a file. Spark reads each row group in one task."""
    pa.parquet.write_table(
        table,
        file,
        row_group_size=max(rows, 1),
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        store_decimal_as_integer=True,
    )
