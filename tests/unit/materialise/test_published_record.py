"""When a published record may be written, and when it may stand for a table's applied position."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from loader.errors import LoaderError
from loader.materialise.iceberg.table_metadata import Applied
from loader.materialise.merge.published_record import complete_seqno, publish
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import TableResult
from loader.model.identity import Identity
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.published import Published, PublishedTable
from tests.integration.materialise.staged_writer import Staging, number
from tests.unit.pipeline.site import Site, shop

RECORD = Published(
    source="shop",
    generation="g1",
    stop="binlog.000001:50",
    stop_seqno=50,
    tables={"shop.orders": PublishedTable(snapshot=7, applied=20)},
)


@pytest.mark.parametrize(
    ("snapshot", "applied", "through"),
    [(7, 20, 50), (8, 60, 60), (8, 20, 20), (6, 10, 10), (7, 19, 19)],
    ids=["quiet since", "merged since", "loaded again", "rolled back", "another table of that name"],
)
def test_only_the_same_newest_commit_counts(snapshot: int, applied: int, through: int) -> None:
    stands = Applied(applied, f"binlog.000001:{applied}", "shop", "g1", snapshot, "s")
    assert complete_seqno(RECORD, TableName("shop", "orders"), stands) == through


def test_without_a_record_the_applied_position_stands() -> None:
    stands = Applied(20, "binlog.000001:20", "shop", "g1", 7, "s")
    assert complete_seqno(None, TableName("shop", "orders"), stands) == 20
    assert complete_seqno(RECORD, TableName("shop", "other"), stands) == 20


def manifest() -> Manifest:
    identity = Identity(kind="mysql", version="9.4.0", server_id=1, uuid="11111111-1111-1111-1111-111111111111")
    return Manifest(
        source="shop",
        generation="g1",
        identity=identity,
        start="binlog.000001:4",
        stop="binlog.000001:50",
        start_seqno=number(1, 4),
        stop_seqno=number(1, 50),
        files=(),
        schemas={},
        loader_version="0",
    )


def result(name: str, complete: int | None, status: Literal["applied", "unchanged", "quarantined"]) -> TableResult:
    return TableResult(table=name, status=status, applied_seqno=number(1, 20), snapshot=7, complete_through=complete)


@pytest.mark.parametrize("complete", [None, number(1, 49)])
def test_no_record_is_written_while_a_table_is_short_of_its_stop(tmp_path: Path, complete: int | None) -> None:
    chain = Staging(tmp_path).store
    done = [result("shop.a", number(1, 50), "applied"), result("shop.b", complete, "unchanged")]
    with pytest.raises(LoaderError, match="may lack records up to its stop") as caught:
        publish(Chain(chain, "shop", "g1"), manifest(), done)
    assert caught.value.where["table"] == "shop.b"
    assert list(tmp_path.rglob("published.json")) == []


def test_a_quarantined_table_is_listed_as_behind(tmp_path: Path) -> None:
    store = Staging(tmp_path).store
    done = [result("shop.a", number(1, 50), "unchanged"), result("shop.b", None, "quarantined")]
    key = publish(Chain(store, "shop", "g1"), manifest(), done)
    record = Published.read(store.get(key), key)
    assert (set(record.tables), record.behind) == ({"shop.a"}, {"shop.b": number(1, 20)})


def test_a_record_adds_the_staged_rows_of_its_tables_to_those_of_the_record_before(tmp_path: Path) -> None:
    log, ends = shop(6)
    site = Site(tmp_path, log)
    staged = [site.extract(site.plan(end)) for end in ends[1::2]]
    tables = (
        {"orders": "applied", "items": "applied"},
        {"orders": "unchanged", "items": "quarantined"},
        {"orders": "applied"},
    )
    found = []
    for last, statuses in zip(staged, tables, strict=True):
        results = [
            TableResult.model_validate(
                {"table": f"shop.{name}", "status": status, "applied_seqno": last.start_seqno, "snapshot": 7}
                | {"complete_through": last.stop_seqno}
            )
            for name, status in statuses.items()
        ]
        key = publish(Chain(site.store, "shop", "0001"), last, results)
        found.append(Published.read(site.store.get(key), key))
    sizes = [{str(file.name): file.bytes for file in manifest.files} for manifest in staged]
    totals = {table: sum(size[table] for size in sizes) for table in sizes[0]}
    assert [record.staged_bytes for record in found] == [
        sizes[0],
        {table: size + sizes[1][table] for table, size in sizes[0].items()},
        {"shop.orders": totals["shop.orders"]},
    ]
    assert [record.rows for record in found] == [
        {"shop.items": (2, 0, 0), "shop.orders": (2, 0, 0)},
        {"shop.items": (4, 0, 0), "shop.orders": (4, 0, 0)},  # also of a table that is behind
        {"shop.orders": (6, 0, 0)},  # the other table is gone
    ]


def test_a_record_of_an_older_version_lets_the_rows_count_from_there_on(tmp_path: Path) -> None:
    log, ends = shop(4)
    site = Site(tmp_path, log)
    plans = [site.plan(end) for end in ends[1::2]]
    first, second = map(site.extract, plans)
    site.publish(plans[0], "shop.orders")
    done = TableResult(
        table="shop.orders",
        status="applied",
        applied_seqno=second.stop_seqno,
        snapshot=8,
        complete_through=second.stop_seqno,
    )
    key = publish(Chain(site.store, "shop", "0001"), second, [done])
    assert Published.read(site.store.get(key), key).rows == {"shop.orders": (2, 0, 0)}
    before = publish(
        Chain(site.store, "shop", "0001"), first, [done.model_copy(update={"applied_seqno": first.stop_seqno})]
    )
    assert Published.read(site.store.get(before), before).rows == {}
