"""Writes collapsed records, which kernels have left in files, as data files of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loader.materialise.collapse.native_records import group_by_size
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.parquet.row_format import RowFormat, to_rows
from loader.materialise.parquet.row_writer import write_rows
from loader.materialise.plan.frame_columns import key_places

_FILE_BYTES = 64 * 1024 * 1024
"""Size in memory of the records of a data file, if they must be sorted. Compressed Parquet takes a tenth to a third."""
_VALUE_BYTES = 8
_MOST_THREADS = 8
"""Threads. Each holds the records of a data file three times: as they are, those to insert, and sorted."""


class RecordFiles(Protocol):
    """Gives the collapsed records of a table as data files."""

    def write(self, rows: RowFormat, files: DataFiles, *, deleted: bool) -> None:
        """Write the records, unless they are written, and add the files.

        Args:
            rows: of the table.
            files: get the data files.
            deleted: also write records whose op is D.

        Raises:
            LoaderError: a store does not answer.
            NotSupportedNatively: Spark must write the rows.
        """


class _RowGroup(NamedTuple):
    path: Path
    number: int
    bytes: int


class LocalRecordFiles:
    """Writes records in Parquet files of this machine: see RecordFiles.

    Args:
        folder: of the files.
        threads: the number of files to write at the same time.
        sorted_: each file is sorted by key, and has a contiguous range of it.
    """

    def __init__(self, folder: Path, threads: int, *, sorted_: bool) -> None:
        self._folder, self._threads, self._sorted = folder, min(threads, _MOST_THREADS), sorted_

    def write(self, rows: RowFormat, files: DataFiles, *, deleted: bool) -> None:
        """See RecordFiles."""
        with TemporaryDirectory(prefix="rows-", dir=self._folder) as scratch, ThreadPoolExecutor(self._threads) as pool:
            write = partial(self._write_file, rows, files, Path(scratch), deleted)
            for _ in pool.map(write, count(), self._parts()):
                pass

    def _parts(self) -> Iterator[Sequence[_RowGroup]]:
        """Return the row groups of each data file."""
        files = map(_row_groups, sorted(self._folder.glob("*.parquet")))
        return files if self._sorted else group_by_size(chain.from_iterable(files), _FILE_BYTES)

    def _write_file(
        self, rows: RowFormat, files: DataFiles, scratch: Path, deleted: bool, number: int, part: Sequence[_RowGroup]
    ) -> None:
        records = pa.concat_tables([pq.ParquetFile(group.path).read_row_group(group.number) for group in part])
        found = rows_to_insert(records, rows, deleted=deleted, sorted_=self._sorted)
        if len(found):
            path = scratch / f"{number:05d}.parquet"
            files.upload(path, number, write_rows([found], rows.fields, path))
            path.unlink()


def rows_to_insert(records: pa.Table, rows: RowFormat, *, deleted: bool, sorted_: bool = False) -> pa.Table:
    """Return the rows to insert for collapsed records, sorted by key.

    Args:
        records: one record per key.
        rows: of the table.
        deleted: also return rows for records whose op is D.
        sorted_: the records are sorted.

    Raises:
        NotSupportedNatively: Spark must write the rows.
    """
    kept = None if deleted else pc.not_equal(records["_op"], "D")
    if sorted_:
        return to_rows(records if kept is None else records.filter(kept), rows)
    # Numbers of rows are chosen and sorted first, so that the records are copied once.
    keys = records.select(key_places(rows.records)).append_column("place", pa.array(np.arange(len(records))))
    keys = keys if kept is None else keys.filter(kept)
    order = pc.sort_indices(keys, [(name, "ascending") for name in key_places(rows.records)])
    return to_rows(records.take(keys["place"].take(order)), rows)


def _row_groups(path: Path) -> list[_RowGroup]:
    metadata = pq.read_metadata(path)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    # Parquet takes hardly any bytes for a NULL, and Arrow as many as for a value.
    sizes = (max(group.total_byte_size, _VALUE_BYTES * group.num_rows * group.num_columns) for group in groups)
    return [_RowGroup(path, number, size) for number, size in enumerate(sizes)]
