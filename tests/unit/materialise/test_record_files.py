"""Which local records become one data file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loader.materialise.collapse import record_files
from loader.materialise.collapse.record_files import LocalRecordFiles


def write_nulls(folder: Path, files: int) -> None:
    """Files of 10 rows with 10 columns without values: 800 bytes in memory, and hardly any in the file."""
    table = pa.table({f"c{place}": pa.nulls(10, pa.int64()) for place in range(10)})
    for number in range(files):
        pq.write_table(table, folder / f"{number:06d}.parquet")


def parts(records: LocalRecordFiles) -> list[list[str]]:
    return [[group.path.stem for group in part] for part in records._parts()]


def test_a_part_counts_nulls_as_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "_FILE_BYTES", 1600)
    write_nulls(tmp_path, 5)
    found = parts(LocalRecordFiles(tmp_path, 2, sorted_=False))
    assert found == [["000000", "000001"], ["000002", "000003"], ["000004"]]


def test_each_sorted_file_is_a_part(tmp_path: Path) -> None:
    write_nulls(tmp_path, 3)
    assert parts(LocalRecordFiles(tmp_path, 2, sorted_=True)) == [["000000"], ["000001"], ["000002"]]
