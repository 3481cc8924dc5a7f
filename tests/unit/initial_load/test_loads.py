"""Which load of a table counts, over the generations of its source."""

from __future__ import annotations

import pytest

from loader.initial_load.documents import LoadPlan
from loader.initial_load.loads import Loads
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.staging.chain import PlanChain
from loader.staging.documents import Followed, Generation, Manifest, Mark
from tests.support.memory_store import MemoryStore

ORDERS = TableSchema(TableName("shop", "orders"), (Column("id", "int"),), ("id",))
IDENTITY = Identity(kind="mysql", version="8.4.0", server_id=1, uuid="u")
STOP = Position("binlog", 1, 2000)


def generation(name: str, start: str, follows: Followed | None = None) -> Generation:
    mark = Mark(log="", last=0, event="")
    return Generation(source="shop", name=name, identity=IDENTITY, start=start, mark=mark, follows=follows)


def planned(loads: Loads, position: str) -> LoadPlan:
    plan = LoadPlan(
        source="shop",
        generation="0001",
        identity=IDENTITY,
        position=position,
        shift=0,
        taken_at="2026-01-01 00:00:00.000000",
        table_schema=ORDERS.as_dict(),
        index="PRIMARY",
        key=(),
        bounds=(),
        select=("id",),
        undecodable="error",
    )
    return loads.begin(plan)


def finished(loads: Loads, plan: LoadPlan, exact_at: Position) -> None:
    manifest = Manifest(
        source="shop",
        generation="0001",
        identity=IDENTITY,
        start=plan.position,
        stop=plan.position,
        start_seqno=plan.seqno,
        stop_seqno=plan.seqno,
        files=(),
        schemas={},
        exact_at=str(exact_at),
        exact_at_seqno=exact_at.seqno(),
        loader_version="",
    )
    loads.publish(plan, manifest)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    chain = PlanChain(store, "shop")
    chain.begin(generation("0001", "binlog.000001:4"))
    chain.begin(generation("0002", "binlog.000007:4", Followed(name="0001", stop_seqno=STOP.seqno())))
    return store


def test_a_load_of_the_older_server_counts_if_the_newer_one_goes_on_from_all_it_has_read(store: MemoryStore) -> None:
    old, new = (Loads(store, "shop", name) for name in ("0001", "0002"))
    assert new.newest_followed(ORDERS.name) is None
    plan = planned(old, "binlog.000001:1000")
    assert new.newest_followed(ORDERS.name) is None, "it is not finished"
    finished(old, plan, STOP)
    assert new.newest_followed(ORDERS.name) == plan
    assert old.newest_followed(ORDERS.name) is None
    assert new.newest(ORDERS.name, 0) is None


def test_a_load_that_has_read_more_does_not_count(store: MemoryStore) -> None:
    old, new = (Loads(store, "shop", name) for name in ("0001", "0002"))
    finished(old, planned(old, "binlog.000001:1000"), Position("binlog", 1, 2001))
    assert new.newest_followed(ORDERS.name) is None
