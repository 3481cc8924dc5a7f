"""A catalog or a store that is gone in the middle of a merge: worth a retry, by its class, and exact after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from infra.hdfs import HdfsNodes, run_hdfs
from infra.postgres import PASSWORD, PostgresServer, run_postgres
from infra.s3server import S3Process, run_s3
from loader import retries
from loader.errors import StoreUnavailable
from loader.materialise.spec import CatalogSettings, MaterialiseResult
from loader.model.table import Column
from loader.s3 import open_client
from loader.spark.job import failure
from loader.store.registry import open_store
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.outage import at, lost_replies
from tests.integration.materialise.staged_writer import Change, fold, number, position, table

pytestmark = pytest.mark.integration

NAME = Column("name", "varchar", charset="utf8mb4")
ORDERS = table("orders", [Column("id", "int"), NAME], ["id"])
QUIET = table("quiet", [Column("id", "int"), NAME], ["id"])
P0, P1 = position(1, 1000), position(1, 2000)
ROWS = [(key, f"row {key}") for key in range(20)]
CHANGES = [Change("U", number(1, 1100), key, (key, "changed")) for key in range(0, 30, 3)] + [
    Change("D", number(1, 1200), key, (key, "")) for key in range(0, 30, 5)
]
POINTS = ["table.before", "branch.after", "delete.after", "insert.after", "publish.before", "publish.after"]


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with run_postgres() as server:
        yield server


def ready(lake: Lake) -> Lake:
    for schema in (ORDERS, QUIET):
        assert lake.one(lake.loaded(lake.staging.load(schema, ROWS, P0))).status == "applied"
    lake.staging.interval(P0, P1, [(ORDERS, CHANGES)])
    return lake


def on_postgres(spark: SparkSession, folder: Path, uri: str) -> Lake:
    password = folder / "password"
    password.write_text(PASSWORD)
    catalog = CatalogSettings(
        name=f"lake_{folder.name}",
        type="jdbc",
        uri=uri,
        warehouse=f"file://{folder}/warehouse",
        properties={"jdbc.user": "postgres", "jdbc.schema-version": "V1"},
        secrets={"jdbc.password": f"file:{password}"},
    )
    return ready(Lake(spark, folder, catalog))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, database: PostgresServer) -> Lake:
    return on_postgres(spark, tmp_path, database.uri)


def impatient(patch: pytest.MonkeyPatch) -> None:
    """Fail a run at once that would wait."""
    patch.setattr(retries.Retries, "_taken", lambda *_: None)
    patch.setattr("loader.materialise.iceberg.publication._PAUSES", (0, 0))


def told(result: MaterialiseResult) -> dict[str, str]:
    """What each table's error says; a retry must be able to help every one."""
    assert result.tables
    errors = {one.table: one.error for one in result.tables if one.error}
    assert {error["retryable"] for error in errors.values()} == {True}, errors
    assert (result.exit_code, result.published) == (3, "")
    return {name: f"{error['what']}: {error['why']}" for name, error in errors.items()}


def exact_once(lake: Lake) -> None:
    """Run again: every row is right, and one commit of main carries the position."""
    result = lake.merged()
    assert {one.table: one.status for one in result.tables}.keys() == {"shop.orders", "shop.quiet"}
    assert (result.exit_code, bool(result.published)) == (0, True)
    assert lake.rows(ORDERS) == fold(ORDERS, ROWS, 0, CHANGES)
    assert lake.rows(QUIET) == {(row[0],): row for row in ROWS}
    stood = [one.seqno for one in lake.metadata(ORDERS).applied_positions()]
    assert stood == [number(1, 2000), number(1, 1000)]
    # One that was published, and that nobody dropped then, goes with the next merge.
    assert set(lake.metadata(ORDERS).branches.values()) == {lake.metadata(ORDERS).head}


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=[] if point == "publish.before" else pytest.mark.sweep) for point in POINTS]
)
def test_a_catalog_that_goes_away_in_a_merge(
    lake: Lake, database: PostgresServer, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    try:
        with monkeypatch.context() as patch:
            impatient(patch)
            passed = at(point, database.stop, patch)
            errors = told(lake.merged())
    finally:
        database.start()
    assert passed == [point]
    assert "the database of the catalog does not answer" in errors["shop.orders"]
    exact_once(lake)


def test_a_catalog_that_comes_back_is_waited_for(
    lake: Lake, database: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("loader.materialise.iceberg.publication._PAUSES", (0, 0))
        passed = at("delete.after", database.stop, patch)
        patch.setattr(retries.Retries, "_taken", lambda *_: database.start() or 0.001)
        result = lake.merged()
    assert passed == ["delete.after"]
    assert {one.table: one.status for one in result.tables} == {"shop.orders": "applied", "shop.quiet": "unchanged"}
    exact_once(lake)


def test_a_commit_whose_reply_is_lost_counts_once(
    spark: SparkSession, tmp_path: Path, database: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(database.uri.removeprefix("jdbc:")).port or 0
    with lost_replies(port) as network:
        lake = on_postgres(spark, tmp_path, database.uri.replace(f":{port}/", f":{network.port}/"))
        with monkeypatch.context() as patch:
            at("publish.before", lambda: setattr(network, "armed", True), patch)
            result = lake.merged()
        assert network.lost == 1
        assert {one.table: one.status for one in result.tables} == {"shop.orders": "applied", "shop.quiet": "unchanged"}
        exact_once(lake)


@pytest.fixture
def bucket(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lake, S3Process]]:
    """A warehouse on an S3 server of its own."""
    folder = tmp_path / "buckets"
    folder.mkdir()
    name = f"lake-{os.getpid()}-{abs(hash(tmp_path))}"
    with run_s3(folder) as process:
        server = process.server
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        open_client(endpoint=server.endpoint).create_bucket(Bucket=name)
        hadoop = {
            "endpoint": server.endpoint, "path.style.access": "true", "endpoint.region": "us-east-1",
            "access.key": server.access_key, "secret.key": server.secret_key,
            "attempts.maximum": "1", "retry.limit": "1", "retry.interval": "100ms",
        }  # fmt: skip
        for key, value in hadoop.items():
            spark.sparkContext._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{name}.{key}", value)
        catalog = CatalogSettings(
            name=f"lake_{tmp_path.name}",
            type="jdbc",
            uri=f"jdbc:sqlite:{tmp_path}/catalog.db?busy_timeout=60000&journal_mode=WAL",
            warehouse=f"s3a://{name}/warehouse",
            properties={"jdbc.schema-version": "V1"},
        )
        yield ready(Lake(spark, tmp_path, catalog)), process


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # Iceberg tries for a minute and a half to read a table's metadata
def test_an_object_store_that_goes_away_in_a_merge(
    bucket: tuple[Lake, S3Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, process = bucket
    point = "delete.after"
    try:
        with monkeypatch.context() as patch:
            impatient(patch)
            passed = at(point, process.stop, patch)
            errors = told(lake.merged())
    finally:
        process.start()
    assert passed == [point]
    assert "does not answer" in errors["shop.orders"]
    exact_once(lake)


@pytest.fixture
def staged_on_s3(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Lake, S3Process]]:
    """A lake on the disk whose staging is on an S3 server of its own."""
    folder = tmp_path / "buckets"
    folder.mkdir()
    with run_s3(folder) as process:
        for variable, value in process.server.environment.items():
            monkeypatch.setenv(variable, value)
        open_client(endpoint=process.server.endpoint).create_bucket(Bucket="staging")
        lake = Lake(spark, tmp_path)
        lake.staging.move_to(open_store(f"s3://staging/a?endpoint={process.server.endpoint}&path_style=True"))
        yield ready(lake), process


@pytest.mark.sweep
@pytest.mark.parametrize("point", ["table.before", "delete.after", "publish.after"])
def test_a_staging_store_that_goes_away_in_a_merge(
    staged_on_s3: tuple[Lake, S3Process], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Behind `table.before` the staged files are read, behind the others the record of the run is written."""
    lake, process = staged_on_s3
    try:
        with monkeypatch.context() as patch:
            impatient(patch)
            passed = at(point, process.stop, patch)
            if point == "table.before":
                errors = told(lake.merged())
                assert "S3 does not answer" in errors["shop.orders"]
            else:
                with pytest.raises(StoreUnavailable, match="S3 does not answer"):
                    lake.merged()
    finally:
        process.start()
    assert passed == [point]
    exact_once(lake)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsNodes]:
    with run_hdfs(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture
def on_hdfs(spark: SparkSession, tmp_path: Path, nodes: HdfsNodes) -> Lake:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in {"ipc.client.connect.max.retries": "1", "ipc.client.connect.retry.interval": "100"}.items():
        conf.set(key, value)
    warehouse = f"{nodes.server.address}/{tmp_path.name}"
    return ready(Lake(spark, tmp_path, CatalogSettings(type="hadoop", warehouse=warehouse)))


@pytest.mark.sweep
@pytest.mark.parametrize("point", ["table.before", "branch.after", "delete.after", "publish.before", "publish.after"])
def test_a_name_node_that_goes_away_in_a_merge(
    on_hdfs: Lake, nodes: HdfsNodes, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    try:
        with monkeypatch.context() as patch:
            impatient(patch)
            passed = at(point, nodes.stop, patch)
            errors = told(on_hdfs.merged())
    finally:
        nodes.start()
    assert passed == [point]
    assert "does not answer" in errors["shop.orders"]
    exact_once(on_hdfs)


@pytest.mark.sweep
def test_a_name_node_that_is_gone_hides_no_table(on_hdfs: Lake, nodes: HdfsNodes) -> None:
    nodes.stop()
    try:
        with pytest.raises(Exception, match="ConnectException") as caught:
            on_hdfs.warehouse.metadata(QUIET.name)
    finally:
        nodes.start()
    assert failure(caught.value)["retryable"]


@pytest.mark.sweep
def test_a_name_node_in_safe_mode_is_worth_a_retry(
    on_hdfs: Lake, nodes: HdfsNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        impatient(patch)
        passed = at("branch.after", lambda: nodes.safe_mode("enter"), patch)
        errors = told(on_hdfs.merged())
    nodes.safe_mode("leave")
    assert passed == ["branch.after"]
    assert "HDFS accepts no requests at the moment" in errors["shop.orders"]
    exact_once(on_hdfs)
