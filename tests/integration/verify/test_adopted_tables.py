"""Copies of tables of real servers that are adopted, and then compared with the server, which has changed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader import pipeline
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.adoption import adopt
from loader.model.table import TableSchema
from loader.pipeline.verification import Verified
from loader.source.schemas import read_schemas
from loader.verify import key_sample
from loader.verify.server_rows import count_rows, server_sums
from loader.verify.spec import KeySample, TableSums
from loader.verify.warehouse_rows import sampled_rows, warehouse_sums
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.verify.verified import verified

pytestmark = pytest.mark.integration

ROWS = {key: (key, f"n{key}", key / 2) for key in range(1, 21)}
COPIES = {
    "wrong": ROWS | {7: (7, "n7", 0.5)},
    "missing": {key: row for key, row in ROWS.items() if key != 7},
    "additional": ROWS | {99: (99, "of others", 1.0)},
    "overwritten": ROWS | {1: (1, "n1", 9.9), 2: (2, "n2", 9.9)},  # rows that change later on the server
}
"""By table, the rows of its copy."""
LATER = (
    "UPDATE {} SET name = 'later', ratio = NULL WHERE id = 1",
    "DELETE FROM {} WHERE id = 2",
    "INSERT INTO {} VALUES (30, 'later', 1e-9)",
)


class Copied:
    """A source whose tables were copied into a lake as of a place, and then changed."""

    def __init__(self, server: SourceServer, spark: SparkSession, folder: Path) -> None:
        self.server, self.spark = server, spark
        self.settings = settings_of(server.address, f"{server.schema}.*", folder)
        self.session = Warehouse(spark, self.settings.catalog).session
        self.names = {table: f"{server.schema}.{table}" for table in COPIES}
        for name in self.names.values():
            server.run(
                f"CREATE TABLE {name} (id INT PRIMARY KEY, name VARCHAR(20), ratio DOUBLE)",
                f"INSERT INTO {name} VALUES {_values(ROWS)}",
            )
        self.place = str(server.log_end())
        self.session.sql(f"CREATE NAMESPACE lake.{server.schema}")
        for table, name in self.names.items():
            copy = f"lake.{name}"
            self.session.sql(f"CREATE TABLE {copy} (id int, name string, ratio double) USING iceberg")
            self.session.sql(f"INSERT INTO {copy} VALUES {_values(COPIES[table])}")
            server.run(*(statement.format(name) for statement in LATER))
            server.run(f"ANALYZE NO_WRITE_TO_BINLOG TABLE {name}")

    def adopted(self, *, sampled: bool) -> tuple[set[str], dict[str, Any]]:
        """Adopt all tables as the command does: the states of the adoptions, and the comparisons by table."""
        adoption = pipeline.plan_adoption(self.settings, tuple(self.names.values()), self.place, compared=True)
        job = pipeline.adopt_job(self.settings, *adoption)
        done = adopt(self.spark, job.spec).model_dump(mode="json")  # type: ignore[arg-type]
        pipeline.record_adoption(self.settings, adoption, done)
        verified = self.verified(sampled=sampled)
        found = {one.table.partition(".")[2]: one for one in verified.tables}
        return {one["status"] for one in done["tables"]}, found

    def verified(self, *, sampled: bool) -> Verified:
        return verified(self.spark, self.settings, tuple(self.names.values()), sampled=sampled)

    def commits(self) -> dict[str, list[int]]:
        """The snapshots of each table."""
        return {
            table: [
                row.snapshot_id for row in self.session.sql(f"SELECT snapshot_id FROM lake.{name}.snapshots").collect()
            ]
            for table, name in self.names.items()
        }


def _values(rows: dict[int, tuple[int, str, float]]) -> str:
    return ", ".join(map(str, rows.values()))


@pytest.fixture
def copied(mysql: SourceServer, spark: SparkSession, tmp_path: Path) -> Copied:
    return Copied(mysql, spark, tmp_path)


def test_differences_that_the_log_leaves_are_found(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    states, found = copied.adopted(sampled=False)
    assert states == {"applied"}
    assert {table: (one.error, one.status, one.differences, one.at_least) for table, one in found.items()} == {
        "wrong": (None, "different", 2, False),
        "missing": (None, "different", 1, False), "additional": (None, "different", 1, False),
        "overwritten": (None, "equal", 0, False),
    }  # fmt: skip
    assert found["missing"].samples == ("only in the server: {'id': '7', 'name': 'n7', 'ratio': '3.5'}",)
    assert found["additional"].samples == ("only in the warehouse: {'id': '99', 'name': 'of others', 'ratio': '1.0'}",)
    assert found["wrong"].samples == (
        "only in the server: {'id': '7', 'name': 'n7', 'ratio': '3.5'}",
        "only in the warehouse: {'id': '7', 'name': 'n7', 'ratio': '0.5'}",
    )

    before = copied.commits()
    monkeypatch.setattr(key_sample, "SAMPLE_ROWS", 5)
    states, sampled = copied.adopted(sampled=True)
    assert states == {"already"}
    assert {table: (one.server_rows, one.warehouse_rows, one.at_least) for table, one in sampled.items() if table != "wrong"} == {
        "missing": (20, 19, True), "additional": (20, 21, True),
        "overwritten": (20, 20, False),
    }  # fmt: skip
    assert [sampled[table].differences for table in ("missing", "additional", "overwritten")] == [1, 1, 0]
    assert {one.compared_rows < 20 for one in sampled.values()} == {True}
    assert copied.commits() == before


KEYED = """CREATE TABLE t (
 name VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci, code BINARY(2), price DECIMAL(8,2), at DATETIME(3),
 value DOUBLE, PRIMARY KEY (name, code, price, at))"""
FILL = """INSERT INTO t
WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 300)
SELECT CONCAT('ä ', seq), UNHEX(LPAD(HEX(seq), 4, '0')), seq / 100, '2026-01-01' + INTERVAL seq SECOND, seq / 8 FROM n"""


def test_each_row_is_in_one_part_and_in_the_same_part_on_both_sides(source: SourceServer, spark: SparkSession) -> None:
    source.run(KEYED, FILL)
    with source.connected() as connection:
        (schema,) = read_schemas(connection, [source.name("t")])
        source_rows = source.run("SELECT * FROM t")
        types = "name string, code binary, price decimal(8,2), at timestamp_ntz, value double"
        rows = spark.createDataFrame(source_rows, types)
        wrong = rows.replace(300 / 8, 0.5, ["value"])
        parts = [KeySample(parts=2, part=part) for part in range(2)]
        server = [server_sums(connection, schema, 4, sample) for sample in parts]
        tables = [_table(schema, sample) for sample in parts]
        assert [warehouse_sums(sampled_rows(rows, table), table) for table in tables] == server
        assert sum(count for sums in server for count, _ in sums.values()) == count_rows(connection, schema) == 300
        assert all(sums for sums in server)
        found = [warehouse_sums(sampled_rows(wrong, table), table) for table in tables]
    assert [one == other for one, other in zip(found, server, strict=True)].count(False) == 1


def _table(schema: TableSchema, sample: KeySample) -> TableSums:
    return TableSums(definition=schema.as_dict(), rows=300, sample=sample, buckets=4, sums={})
