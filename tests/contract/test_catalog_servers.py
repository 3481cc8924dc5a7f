"""Catalogs that are servers of their own: replies are lost, and the server dies, in the middle of a publication.

The rows are also read without Spark: by PyIceberg, from the metadata that the catalog names.
"""

from __future__ import annotations

import pytest

from loader import retries
from loader.doctor.job import look
from loader.doctor.spec import DoctorSpec
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.outage import at, lost_replies
from tests.integration.materialise.staged_writer import Change, fold, number, position, table
from tests.support.catalogs import SERVERS, CatalogServer, table_from_outside
from tests.support.spark import NewLake

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
ROWS = [(key, f"row {key}") for key in range(20)]
CHANGES = [Change("U", number(1, 1100), key, (key, "changed")) for key in range(0, 30, 3)] + [
    Change("D", number(1, 1200), key, (key, "")) for key in range(0, 30, 5)
]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> CatalogServer:
    return request.getfixturevalue(f"{request.param}_catalog")


def ready(lake: Lake) -> Lake:
    """A table with its rows, and an interval to merge."""
    assert lake.one(lake.loaded(lake.staging.load(ORDERS, ROWS, position(1, 1000)))).status == "applied"
    lake.staging.interval(position(1, 1000), position(1, 2000), [(ORDERS, CHANGES)])
    return lake


def exact_once(lake: Lake, server: CatalogServer) -> None:
    """The rows are right, inside and outside of Spark, and one commit of main has each position."""
    wanted = fold(ORDERS, ROWS, 0, CHANGES)
    assert lake.rows(ORDERS) == wanted
    outside = table_from_outside(server, lake.catalog, "shop", "orders").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in outside) == sorted(wanted.values())
    assert [one.seqno for one in lake.metadata(ORDERS).applied_positions()] == [number(1, 2000), number(1, 1000)]
    assert lake.one(lake.merged()).status == "already"
    # One that was published, and that nobody could drop then, goes with the next merge.
    metadata = lake.metadata(ORDERS)
    assert set(metadata.branches.values()) == {metadata.head}


def test_a_commit_whose_reply_is_lost_counts_once(
    server: CatalogServer, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lost_replies(server.port, server.commit) as network:
        lake = ready(new_lake(server.kind, network.port))
        with monkeypatch.context() as patch:
            at("publish.before", lambda: setattr(network, "armed", True), patch)
            assert lake.one(lake.merged()).status == "applied"
        assert network.lost == 1
        exact_once(lake, server)


@pytest.mark.sweep
def test_a_server_that_dies_in_a_commit_and_comes_back(
    server: CatalogServer, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the request and may have executed it, or not. The same run finds out."""

    def crash() -> None:
        server.kill()
        server.start()

    with lost_replies(server.port, server.commit, crash) as network:
        lake = ready(new_lake(server.kind, network.port))
        with monkeypatch.context() as patch:
            at("publish.before", lambda: setattr(network, "armed", True), patch)
            while (result := lake.merged()).exit_code == 3:
                assert result.tables[0].error["retryable"]
        assert result.exit_code == 0
        assert not network.armed
        exact_once(lake, server)


@pytest.mark.sweep
@pytest.mark.parametrize("point", ["table.before", "branch.after", "insert.after", "publish.before", "publish.after"])
def test_a_server_that_is_gone_is_worth_a_retry(
    server: CatalogServer, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    lake = ready(new_lake(server.kind))
    try:
        with monkeypatch.context() as patch:
            patch.setattr(retries.Retries, "_taken", lambda *_: None)
            patch.setattr("loader.materialise.iceberg.publication._PAUSES", (0, 0))
            passed = at(point, server.kill, patch)
            result = lake.merged()
    finally:
        server.start()
    assert passed == [point]
    (failed,) = result.tables
    assert failed.error
    assert failed.error["retryable"], failed.error
    assert GONE[server.kind] in f"{failed.error['what']}: {failed.error['why']}"
    lake.merged()
    exact_once(lake, server)


GONE = {
    "postgresql": "the database of the catalog does not answer",
    "mysql": "the database of the catalog does not answer",
    "rest": "a server does not answer, or a connection to it broke",
    "hive": "the Hive Metastore does not answer",
}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [*SERVERS, "strict_hive"])
def test_the_doctor_looks_into_each_catalog(kind: str, new_lake: NewLake) -> None:
    lake = new_lake(kind)
    (lake.folder / "object").write_text("text")
    spec = DoctorSpec(catalog=lake.catalog, uri=f"file://{lake.folder}/object", text="text")
    found = {one["name"]: one["severity"] for one in look(lake.spark, spec)["findings"]}
    of_hive = {"hive": {"hive_columns": "ok"}, "strict_hive": {"hive_columns": "warning"}}
    assert found == {"spark": "ok", "staging": "ok", "catalog": "ok", **of_hive.get(kind, {})}
