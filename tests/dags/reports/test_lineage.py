"""What OpenLineage is told: names of datasets, columns, rows and positions."""

from __future__ import annotations

from typing import Any

import pytest
from openlineage.client.serde import Serde

from loader.airflow.lineage.dataset_names import catalog_dataset, source_dataset, warehouse_dataset
from loader.airflow.lineage.table_lineage import lineage
from loader.airflow.lineage.task_work import TaskWork
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings, LoadSpec, MaterialiseSpec
from loader.model.table import TableName
from loader.transport.server.address import ServerAddress
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import operator_of

ORDERS = TableName("shop", "orders")
SERVER = ServerAddress(host="db.example.org", port=3307, user="loader", password="file:/secret")


def test_a_source_table_is_named_by_its_server() -> None:
    assert source_dataset(SERVER, ORDERS) == ("mysql://db.example.org:3307", "shop.orders")


@pytest.mark.parametrize(
    ("type_", "warehouse", "uri", "dataset", "symlink"),
    [
        ("hadoop", "/lake", "", ("file", "/lake/shop/orders"), ("iceberg://lake", "shop.orders")),
        ("hadoop", "file:///lake/", "", ("file", "/lake/shop/orders"), ("file:///lake/", "shop.orders")),
        ("hadoop", "hdfs://name:8020/lake", "", ("hdfs://name:8020", "/lake/shop/orders"), ("hdfs://name:8020/lake", "shop.orders")),
        ("jdbc", "s3a://lake/warehouse", "jdbc:postgresql://db/c", ("s3://lake", "warehouse/shop/orders"), ("jdbc:postgresql://db/c", "shop.orders")),
        ("rest", "prod", "https://catalog/", ("https://catalog/", "shop.orders"), ("https://catalog/", "shop.orders")),
        ("glue", "s3://lake", "", ("s3://lake", "shop.orders"), ("s3://lake", "shop.orders")),
    ],
)  # fmt: skip
def test_a_warehouse_table_is_named_by_its_folder(
    type_: str, warehouse: str, uri: str, dataset: tuple[str, str], symlink: tuple[str, str]
) -> None:
    catalog = CatalogSettings(type=type_, warehouse=warehouse, uri=uri)
    assert warehouse_dataset(catalog, ORDERS) == dataset
    assert catalog_dataset(catalog, ORDERS) == symlink


def test_names_are_those_of_the_catalog() -> None:
    catalog = CatalogSettings(type="hadoop", warehouse="/lake")
    assert warehouse_dataset(catalog, TableName("a.b", "c/d")).name == "/lake/a!2eb/c!2fd"


@pytest.fixture
def work(site: Site) -> TaskWork:
    """A delta that applied one staged row of `shop.orders`."""
    site.stage()
    plan = site.follow_up("binlog.000001:200", "rows")
    spec = MaterialiseSpec(
        source="shop",
        generation="0001",
        staging_root=f"file://{site.folder}/staging",
        catalog=CatalogSettings(type="hadoop", warehouse=f"file://{site.folder}/lake"),
        rules=(TableRule(tables=("shop.*",), seqno_column="", committed_at_column="changed_at"),),
        through_seqno=plan.stop_seqno,
    )
    arguments = {"start": plan.start, "stop": plan.stop, "start_seqno": plan.start_seqno, "tables": [STAGED]}
    result = {"tables": [APPLIED, {"table": "shop.quiet", "status": "unchanged"}], "stop": plan.stop}
    return TaskWork("shop", SERVER, spec, arguments, result, 1)


STAGED = {"table": "shop.orders", "inserts": 3, "updates": 2, "deletes": 1}
APPLIED: dict[str, Any] = {
    **STAGED, "status": "applied", "rows_inserted": 4, "position": "binlog.000001:200", "snapshot": 9007199254740993
}  # fmt: skip


def told(work: TaskWork) -> dict[str, Any]:
    """The lineage as it is sent, without the addresses of schemas and producers."""
    found: dict[str, Any] = Serde.to_dict(lineage(work))
    return _plain(found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if not name.startswith("_")}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def test_a_delta_leads_from_source_tables_to_warehouse_tables(work: TaskWork, site: Site) -> None:
    found = told(work)
    field = {"namespace": "mysql://db.example.org:3307", "name": "shop.orders", "field": "id"}
    assert found["run_facets"] == {
        "binlogLoader_interval": {"source": "shop", "start": "binlog.000001:100", "stop": "binlog.000001:200"}
    }
    (read,) = found["inputs"]
    assert (read["namespace"], read["name"]) == ("mysql://db.example.org:3307", "shop.orders")
    assert read["facets"] == {
        "schema": {"fields": [{"name": "id", "type": "int", "ordinal_position": 1, "fields": []}]}
    }
    assert read["inputFacets"] == {"inputStatistics": {"rowCount": 6}}
    (written,) = found["outputs"]
    assert (written["namespace"], written["name"]) == ("file", f"{site.folder}/lake/shop/orders")
    assert written["outputFacets"] == {"outputStatistics": {"rowCount": 4}}
    assert written["facets"] == {
        "symlinks": {"identifiers": [{"namespace": f"file://{site.folder}/lake", "name": "shop.orders", "type": "TABLE"}]},
        "catalog": {"framework": "iceberg", "type": "hadoop", "name": "lake", "warehouseUri": f"file://{site.folder}/lake", "catalogProperties": {}},
        "binlogLoader_position": {"position": "binlog.000001:200", "snapshot": "9007199254740993", "inserts": 3, "updates": 2, "deletes": 1},
        "version": {"datasetVersion": "9007199254740993"},
        "schema": {"fields": [
            {"name": "id", "type": "int", "ordinal_position": 1, "fields": []},
            {"name": "changed_at", "type": "timestamp", "ordinal_position": 2, "fields": []},
        ]},
        "columnLineage": {"fields": {"id": {"inputFields": [{**field, "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}]}}, "dataset": []},
    }  # fmt: skip


def test_a_second_try_tells_what_the_first_one_committed(work: TaskWork) -> None:
    again = {**APPLIED, "status": "already", "inserts": 0, "updates": 0, "deletes": 0, "rows_inserted": 0}
    first = TaskWork("shop", SERVER, work.spec, work.arguments, {"tables": [again]}, 1)
    assert told(first)["outputs"] == []
    (written,) = told(TaskWork("shop", SERVER, work.spec, work.arguments, {"tables": [again]}, 2))["outputs"]
    assert written["outputFacets"]["outputStatistics"] == {"rowCount": 5}


def test_a_load_has_no_interval(work: TaskWork, site: Site) -> None:
    plan = site.follow_up("binlog.000001:300", "loaded since")
    (key,) = [
        one.key
        for one in site.chain.store.list("shop")
        if one.key.endswith(f"/{plan.start_seqno:020d}/manifest.json") and "new" in one.key
    ]
    shared = {name: getattr(work.spec, name) for name in ("source", "generation", "staging_root", "catalog")}
    loaded = {**APPLIED, "table": "shop.new", "inserts": 7, "rows_inserted": 7}
    spec = LoadSpec(**shared, manifests=(key,))
    found = told(TaskWork("shop", SERVER, spec, {"manifests": [key]}, {"tables": [loaded]}, 1))
    assert found["run_facets"]["binlogLoader_interval"] == {"source": "shop", "start": "", "stop": ""}
    (written,) = found["outputs"]
    assert written["outputFacets"] == {"outputStatistics": {"rowCount": 7}}
    assert [field["name"] for field in written["facets"]["schema"]["fields"]] == ["_seqno", "_committed_at"]


def test_the_operator_tells_what_it_did(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    site.follow_up("binlog.000001:200", "rows")
    spark_submit_program.result = {"tables": [APPLIED], "stop": "binlog.000001:200"}
    operator = operator_of("materialise", site, stop_seqno=1_000_000_000_200)
    assert operator.get_openlineage_facets_on_complete(None) is None
    operator.execute(running.context)
    found = operator.get_openlineage_facets_on_complete(None)
    assert [(one.namespace, one.name) for one in found.inputs] == [("mysql://127.0.0.1:1", "shop.orders")]
