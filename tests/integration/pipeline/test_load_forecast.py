"""What a dry run of an initial load says about each table, and that the load does the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loader import pipeline
from loader.errors import UsageError
from loader.initial_load.run import stage_tables
from loader.initial_load.sample import sample_rows_per_second
from loader.initial_load.server.read_limits import ReadLimits
from loader.initial_load.spec import InitialLoadSpec
from loader.pipeline import TableForecast
from loader.spark.settings import SparkSettings
from loader.spark.workers import Threads
from tests.integration.pipeline.conftest import Source

pytestmark = pytest.mark.integration


def forecast(source: Source, *tables: str, again: bool = False) -> dict[str, TableForecast]:
    names = tuple(f"{source.server.schema}.{table}" for table in tables)
    found = pipeline.forecast_load(source.settings, names, again=again)
    return {table.table.partition(".")[2]: table for table in found.tables}


def stage(source: Source, *tables: str) -> dict[str, str]:
    """The status of each table, or its error."""
    spec = pipeline.read_tables_job(source.settings, tuple(f"{source.server.schema}.{table}" for table in tables)).spec
    assert isinstance(spec, InitialLoadSpec)
    done = stage_tables(Threads(2), spec).tables
    return {table.table.partition(".")[2]: table.error["what"] if table.error else table.status for table in done}


def test_tables_sizes_and_refusals(source: Source) -> None:
    schema = source.server.schema
    source.server.run(
        *(f"INSERT INTO {schema}.orders VALUES ({number}, 'x')" for number in range(3)),
        "SET SESSION cte_max_recursion_depth = 10000",
        f"CREATE TABLE {schema}.big (id INT PRIMARY KEY, name VARCHAR(20))",
        f"INSERT INTO {schema}.big WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 2499)"
        " SELECT i, CONCAT('row ', i) FROM n",
        f"CREATE TABLE {schema}.bag (id INT)",
        f"CREATE TABLE {schema}.old (id INT) ENGINE=MyISAM",
        f"CREATE TABLE {schema}.reserved (_file INT PRIMARY KEY)",
        f"ANALYZE TABLE {schema}.orders, {schema}.big, {schema}.bag",
    )
    found = forecast(source)
    assert {name: table.status for name, table in found.items()} == {
        "bag": "new",
        "big": "new",
        "old": "refused",
        "orders": "new",
        "reserved": "new",
    }
    big = found["big"]
    assert (big.rows, big.chunks, big.staged, big.key) == (2500, 3, 0, ("id",))
    assert big.bytes >= 16384
    assert (found["orders"].rows, found["orders"].chunks) == (3, 1)
    assert (found["bag"].chunks, found["bag"].key) == (1, ())
    errors = {name: table.error["what"] for name, table in found.items() if table.error}
    assert errors == {
        "old": "a table of engine MyISAM without a primary key is not supported",
    }
    assert pipeline.forecast_load(source.settings).exit_code == 4
    # The load refuses the same tables.
    assert stage(source, *found) == {
        "bag": "staged", "big": "staged", "old": errors["old"], "orders": "staged",
        "reserved": "staged",
    }  # fmt: skip
    assert (forecast(source, "big")["big"].status, forecast(source, "big")["big"].staged) == ("staged", 3)
    assert (forecast(source, "big", again=True)["big"].status) == "new"
    with pytest.raises(UsageError, match="no such captured table"):
        forecast(source, "missing")


def test_the_time_of_a_load(source: Source) -> None:
    """By a sample at first, then by the chunks that the unfinished load has staged."""
    schema = source.server.schema
    source.insert(1)
    source.server.run(
        f"CREATE TABLE {schema}.texts (id INT PRIMARY KEY, body MEDIUMTEXT)",
        "SET SESSION cte_max_recursion_depth = 10000",
        f"INSERT INTO {schema}.texts WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4999)"
        " SELECT i, REPEAT('x', 5000) FROM n",
        f"ANALYZE TABLE {schema}.orders, {schema}.texts",
    )
    source.settings = source.settings.model_copy(
        update={
            "chunk_rows": 500,
            "initial_load": ReadLimits(readers=2),
            "spark": SparkSettings(jars="", master="local[4]"),
        }
    )
    found = pipeline.forecast_load(source.settings)
    assert found.rate is not None
    assert (found.rate.measured_by, found.rate.table, found.rate.readers) == ("sample", f"{schema}.texts", 2)
    orders, texts = found.tables
    assert texts.seconds == pytest.approx(0.1 + texts.bytes / found.rate.bytes_per_second, abs=0.1)
    assert 0.1 <= orders.seconds <= texts.seconds
    assert found.seconds == pytest.approx(orders.seconds + texts.seconds)
    assert pipeline.forecast_load(source.settings, (f"{schema}.orders",)).rate is None

    assert stage(source, "texts") == {"texts": "staged"}
    assert forecast(source, "texts")["texts"].seconds == 0
    folder = Path(f"{source.settings.staging_root.removeprefix('file://')}/shop/0001/load/{schema}/texts")
    (manifest,) = folder.rglob("manifest.json")
    manifest.unlink()
    for number in range(4, 11):
        (manifest.parent / "chunks" / f"{number:06}.json").unlink()
    for number in range(4):  # a chunk in every second
        os.utime(manifest.parent / "chunks" / f"{number:06}.json", (number, number))
    found = pipeline.forecast_load(source.settings)
    assert found.rate is not None
    assert (found.rate.measured_by, found.rate.table) == ("chunks", f"{schema}.texts")
    orders, texts = found.tables
    assert (texts.staged, texts.chunks, texts.seconds) == (4, 11, 7.1)
    assert found.rate.bytes_per_second == pytest.approx(texts.bytes / 11)


def test_a_sample_reads_text_that_a_load_refuses(source: Source) -> None:
    """The load stops the table later. The other tables still have a forecast."""
    source.server.run(
        f"CREATE TABLE {source.server.schema}.texts (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)",
        f"INSERT INTO {source.server.schema}.texts VALUES (1, _hebrew X'61A1')",
    )
    assert stage(source, "texts") == {"texts": "a value is not a varchar in hebrew"}
    assert sample_rows_per_second(source.settings.server, source.server.name("texts"), 10) > 0


def test_the_missing_chunks_of_an_unfinished_load_are_counted(source: Source) -> None:
    source.insert(*range(5))
    source.settings = source.settings.model_copy(update={"chunk_rows": 2})
    assert stage(source, "orders") == {"orders": "staged"}
    folder = f"{source.settings.staging_root.removeprefix('file://')}/shop/0001/load/{source.server.schema}/orders"
    (manifest,) = Path(folder).rglob("manifest.json")
    manifest.unlink()
    (manifest.parent / "chunks" / "000001.json").unlink()
    found = forecast(source, "orders")["orders"]
    assert (found.status, found.staged, found.chunks) == ("unfinished", 2, 3)
    assert stage(source, "orders") == {"orders": "staged"}
    assert forecast(source, "orders")["orders"].status == "staged"


def test_chunks_of_large_rows_have_fewer_rows(source: Source) -> None:
    schema = source.server.schema
    source.settings = source.settings.model_copy(update={"chunk_rows": 0})
    source.server.run(
        f"CREATE TABLE {schema}.texts (id INT PRIMARY KEY, body MEDIUMTEXT)",
        "SET SESSION cte_max_recursion_depth = 10000",
        f"INSERT INTO {schema}.texts WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5999)"
        " SELECT i, REPEAT('x', 10000) FROM n",
        f"ANALYZE TABLE {schema}.texts",
    )
    texts = forecast(source, "texts")["texts"]
    assert 2 <= texts.chunks <= 4
    assert texts.bytes > 60_000_000
    assert stage(source, "texts") == {"texts": "staged"}
    staged = forecast(source, "texts")["texts"]
    assert (staged.status, staged.staged) == ("staged", staged.chunks)
    assert 2 <= staged.chunks <= 4
