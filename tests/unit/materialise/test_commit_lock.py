"""The lock of a table in a hadoop catalog on a local disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loader.errors import RetryableError
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName

ONE, OTHER = TableName("shop", "one"), TableName("shop", "other")


@pytest.mark.parametrize("address", ["{folder}", "file://{folder}", "file:{folder}"])
def test_a_second_holder_waits_and_then_says_so(tmp_path: Path, address: str) -> None:
    catalog = CatalogSettings(type="hadoop", warehouse=address.format(folder=tmp_path / "lake"))
    with table_lock(catalog, ONE):
        with table_lock(catalog, OTHER):
            pass
        with pytest.raises(RetryableError, match="another process"), table_lock(catalog, ONE, patience=0.0):
            pass
    with table_lock(catalog, ONE, patience=0.0):
        pass


def test_it_ends_with_its_process(tmp_path: Path) -> None:
    catalog = CatalogSettings(type="hadoop", warehouse=f"file://{tmp_path}")
    code = (
        "import os, signal\n"
        "from loader.materialise.iceberg.commit_lock import table_lock\n"
        "from loader.materialise.spec import CatalogSettings\n"
        "from loader.model.table import TableName\n"
        f"with table_lock(CatalogSettings(type='hadoop', warehouse='file://{tmp_path}'), TableName('shop', 'one')):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    with table_lock(catalog, ONE, patience=0.0):
        pass


@pytest.mark.parametrize(("kind", "warehouse"), [("jdbc", "file:///nowhere/lake"), ("hadoop", "hdfs://name:8020/lake")])
def test_catalogs_that_compare_and_swap_need_none(kind: str, warehouse: str) -> None:
    catalog = CatalogSettings(type=kind, warehouse=warehouse)
    with table_lock(catalog, ONE), table_lock(catalog, ONE, patience=0.0):
        pass
