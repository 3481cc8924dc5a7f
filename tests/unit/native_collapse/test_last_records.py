"""The last record of each key in the memory of one machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loader.errors import StagedDataError
from loader.native_collapse import last_records
from loader.native_collapse.last_records import LastRecords
from loader.store.registry import open_store
from tests.unit.native_collapse.test_key_buckets import SCHEMA, WINDOW, staged


def test_a_file_that_changes_before_it_is_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are too large to be held are read twice. The chosen lines would be those of other records."""
    monkeypatch.setattr(last_records, "_HELD_BYTES", 0)
    file = staged(tmp_path, 0, [("I", 5, 0, 1, "a"), ("I", 5, 1, 2, "b")])
    with ThreadPoolExecutor(1) as pool:
        found = LastRecords(open_store(f"file://{tmp_path}"), [file], SCHEMA, *WINDOW, pool, 1)
    assert [row["c0"] for row in found.table(file).to_pylist()] == [1, 2]
    staged(tmp_path, 0, [("I", 5, 0, 2, "x"), ("I", 5, 1, 2, "y")])
    with pytest.raises(StagedDataError, match="a staged file has changed"):
        found.table(file)
