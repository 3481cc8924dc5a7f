"""A record that says more of a table than is true is not carried over to a later interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.materialise.merge.carry_over import carry_over
from loader.materialise.merge.published_record import publish
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import CatalogSettings, MaterialiseSpec, TableResult
from loader.model.table import Column, TableName, TableSchema
from loader.staging.documents import TableFilter
from loader.staging.layout import loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.staging.notes.overtaken_loads import OvertakenLoads
from tests.integration.materialise.staged_writer import Change, Staging, number, position

pytestmark = pytest.mark.integration

NAME = TableName("shop", "t")
SCHEMA = TableSchema(NAME, (Column("id", "int"),), ("id",))


def test_a_quiet_interval_does_not_stand_for_a_load_that_merges_overtook(tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    staging.interval(position(1, 4), position(1, 1000), [(SCHEMA, [Change("I", number(1, 500), 0, ("1",))])])
    chain = Chain(staging.store, "shop", "g1")
    newest = chain.interval_ending_at(None)
    assert newest is not None
    stop = newest.stop_seqno
    merged = TableResult(table="shop.t", status="applied", applied_seqno=stop, snapshot=7, complete_through=stop)
    publish(chain, newest, [merged])
    staging.interval(position(1, 1000), position(1, 2000))
    key = staging.load(SCHEMA, [("1",)], position(1, 400))  # read before the merge, applied after it
    OvertakenLoads(staging.store, "shop").begin(NAME, key, number(1, 400))
    note = Loaded(source="shop", table="shop.t", position=position(1, 400), warehouse="w")
    staging.store.create(loaded_key(key), note.canonical())
    spec = MaterialiseSpec(
        source="shop",
        generation="g1",
        staging_root=f"file://{tmp_path}",
        catalog=CatalogSettings(type="hadoop", warehouse="w"),
        tables=TableFilter(include=("*.*",)),
        through_seqno=number(1, 2000),
        rules=(),
    )
    assert carry_over(spec) is None
    OvertakenLoads(staging.store, "shop").end(NAME, number(1, 400))
    done = carry_over(spec)
    assert done is not None
    assert [one.status for one in done.tables] == ["unchanged"]
