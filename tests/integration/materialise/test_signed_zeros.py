"""Keys -0.0 and 0.0: one key on the server, and two texts in staged files."""

from __future__ import annotations

from collections import Counter

import pytest

from loader.materialise.collapse import last_versions, native_tasks
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.integration.materialise.test_table_replay import replayed

pytestmark = pytest.mark.integration

P0, P1, P2 = position(1, 1000), position(1, 2000), position(1, 3000)


@pytest.mark.parametrize(("kind", "way"), [("float", "threads"), ("double", "tasks"), ("double", "sql")])
@pytest.mark.parametrize(("before", "after"), [("-0", "0"), pytest.param("0", "-0", marks=pytest.mark.sweep)])
def test_a_zero_changes_its_sign(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, kind: str, way: str, before: str, after: str
) -> None:
    if way != "threads":
        monkeypatch.setattr(last_versions, "collapse_natively", lambda *_: None)
    if way == "tasks":
        monkeypatch.setattr(native_tasks, "on_one_machine", lambda _: False)
    zeros = table("zeros", [Column("k", kind), Column("n", "int")], ["k"])
    lake.loaded(lake.staging.load(zeros, [("1.5", 1)], P0))
    lake.staging.interval(P0, P1, [(zeros, [Change("I", number(1, 1100), 5, (before, 1))])])
    assert lake.merged().exit_code == 0
    changed = [Change("D", number(1, 2100), 5, (before, 1)), Change("I", number(1, 2100), 9, (after, 2))]
    lake.staging.interval(P1, P2, [(zeros, changed)])
    assert lake.merged().exit_code == 0
    wanted = {"1.5": 1, f"{after}.0": 2}
    assert texts(lake, zeros.name) == Counter(wanted.items())
    (same,) = replayed(lake, number(1, 1000), publish=True).tables
    assert (same.status, same.error) == ("same", None)
    name = lake.warehouse.name(zeros.name)
    lake.sql(f"INSERT INTO {name} VALUES ({before}e0, 1, 0, NULL)")
    (found,) = replayed(lake, number(1, 2000), publish=True).tables
    assert (found.status, found.deletes) == ("published", 1)
    assert texts(lake, zeros.name) == Counter(wanted.items())


def texts(lake: Lake, name) -> Counter[tuple[str, int]]:
    rows = lake.sql(f"SELECT CAST(k AS STRING) AS k, n FROM {lake.warehouse.name(name)}")
    return Counter((row.k, row.n) for row in rows)
