"""What an earlier version staged and materialised is read, and goes on as if this version had made it.

`earlier.tar.gz` is made by `make.py`. It has an applied interval, a staged one, a planned one, a quarantined table, and the
log, so that no server is needed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from loader.config.file import load_config
from loader.extract.extraction import extract, reextract
from loader.materialise.merge.source_run import materialise
from loader.pipeline import extract_job, materialise_job
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from tests.integration.compatibility.make import HOME, configuration, plain
from tests.support.spark import jars, settings, spark

pytestmark = pytest.mark.integration

__all__ = ["jars", "settings", "spark"]  # fixtures


@pytest.fixture
def earlier(jars: str) -> Iterator[SourceSettings]:
    with HOME.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)  # of another run of these tests on this machine
        shutil.rmtree(HOME, ignore_errors=True)
        shutil.unpack_archive(Path(__file__).with_name("earlier.tar.gz"), HOME)
        config = HOME / "loader.toml"
        config.write_text(configuration(jars, 9, HOME / "log"))
        yield load_config(str(config)).source("shop")
        shutil.rmtree(HOME)


def test_an_earlier_version_goes_on(earlier: SourceSettings, spark: SparkSession) -> None:
    expected = json.loads((HOME / "expected.json").read_text())
    applied, staged, planned = (one["start_seqno"] for one in expected["intervals"])
    for start in (applied, staged):
        assert reextract(Threads(1), cast("Any", extract_job(earlier, start).spec)).differences == ()
    done = extract(Threads(1), cast("Any", extract_job(earlier, planned, expected["planned"]["through_seqno"]).spec))
    assert (done.status, done.stop) == ("staged", expected["planned"]["stop"])
    found = materialise(spark, cast("Any", materialise_job(earlier).spec))
    assert {one.table: one.status for one in found.tables} == {
        "shop.bag": "applied",
        "shop.events": "applied",
        "shop.kept": "applied",
        "shop.named": "applied",
        "shop.plain": "applied",
        "shop.renamed": "applied",
        "shop.stopped": "quarantined",
    }
    tables = ("plain", "bag", "named", "kept")
    assert {name: _rows(name) for name in tables} == {name: expected["tables"][name] for name in tables}
    assert len(_rows("events")) == 120 + 4 + 1  # loaded, changed, and one of the table that was made again
    again_found = materialise(spark, cast("Any", materialise_job(earlier).spec))
    assert {one.status for one in again_found.tables} == {"already", "quarantined"}


def _rows(table: str) -> list[list[Any]]:
    """The rows that PyIceberg finds, in the form of `expected.json`."""
    folder = HOME / "warehouse" / "shop" / table / "metadata"
    version = (folder / "version-hint.text").read_text().strip()
    scan = StaticTable.from_metadata(str(folder / f"v{version}.metadata.json")).scan()
    rows = [row for row in scan.to_arrow().to_pylist() if not row.get("_is_deleted")]
    values = [[plain(value) for name, value in row.items() if not name.startswith("_")] for row in rows]
    return sorted(values, key=repr)
