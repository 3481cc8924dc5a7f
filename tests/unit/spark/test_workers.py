"""The Python workers of Spark's tasks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from loader.spark.workers import work_with


@pytest.fixture
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
def test_a_task_leaves_nothing_to_do_for_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tasks pyspark collects garbage, and makes importers of zip files read these files again."""
    with ZipFile(tmp_path / "code.zip", "w") as archive:
        archive.writestr("of_an_archive.py", "VALUE = 1")
    monkeypatch.syspath_prepend(str(tmp_path / "code.zip"))
    import of_an_archive  # type: ignore[import-not-found]

    assert of_an_archive.VALUE == 1
    assert work_with({}, lambda piece: piece + 1, 2) == 3
    assert gc.get_freeze_count() > 0
    assert not [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
