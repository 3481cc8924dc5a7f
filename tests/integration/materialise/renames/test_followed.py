"""Tables over two servers: one that goes on from the other's place, and those whose load read more than came along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loader.materialise.load.load_run import load
from loader.materialise.merge.source_run import materialise
from loader.materialise.spec import MaterialiseResult
from loader.model.table import Column, TableSchema
from loader.staging.chain import PlanChain
from loader.staging.documents import Followed, Generation, Mark
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import (
    GENERATION,
    IDENTITY,
    SOURCE,
    Change,
    Staging,
    number,
    position,
    table,
)

pytestmark = pytest.mark.integration

COLUMNS = [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")]
TABLES = ORDERS, BEHIND, INEXACT = [table(name, COLUMNS, ["id"]) for name in ("orders", "behind", "inexact")]
NEW = "g2"


class TwoServers:
    """A lake of a source whose second generation goes on from position 1:2000 of the first."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.old = lake, lake.staging
        keys = [
            self.old.load(ORDERS, [(1, "old")], position(1, 1000), exact=position(1, 2000)),
            self.old.load(BEHIND, [(1, "old"), (2, "lost")], position(1, 2500), exact=position(1, 2500)),
            self.old.load(INEXACT, [(1, "old"), (2, "lost")], position(1, 1000), exact=position(1, 2001)),
        ]
        assert lake.loaded(*keys).exit_code == 0
        self.old.interval(position(1, 1000), position(1, 2000), [(ORDERS, [changed(2, 1, 1500)])])
        PlanChain(self.old.store, SOURCE).begin(
            Generation(
                source=SOURCE,
                name=NEW,
                identity=IDENTITY,
                start=position(5, 4),
                mark=Mark(log="", last=0, event=""),
                follows=Followed(name=GENERATION, stop_seqno=number(1, 2000)),
            )
        )
        self.new = Staging(self.old.root, generation=NEW)
        self.new.interval(position(5, 4), position(5, 900), [(one, [changed(3, 5, 500)]) for one in TABLES])

    def merged(self) -> MaterialiseResult:
        return materialise(self.lake.spark, self.lake.merge_spec().model_copy(update={"generation": NEW}))

    def loaded(self, *keys: str) -> MaterialiseResult:
        return load(self.lake.spark, self.lake.load_spec(keys).model_copy(update={"generation": NEW}))

    def rows(self, schema: TableSchema) -> dict[Any, Any]:
        return dict(self.lake.rows(schema).values())


def changed(key: int, file: int, at: int) -> Change:
    return Change("I", number(file, at), 5, (key, f"{file}:{at}"))


@pytest.fixture
def followed(lake: Lake) -> TwoServers:
    return TwoServers(lake)


def test_a_table_that_was_loaded_beyond_the_place_is_refused_and_loaded_again(followed: TwoServers) -> None:
    for _ in range(2):
        result = followed.merged()
        assert result.exit_code == 4
        errors = {one.table: one.error for one in result.tables if one.error}
        assert set(errors) == {"shop.behind", "shop.inexact"}
        for name, error in errors.items():
            assert (error["error"], error["where"]) == ("GapError", {"table": name})
            assert "loaded from the previous server" in error["what"]
            assert error["hint"].startswith(f"loader initial-load --table {name}")
        assert followed.rows(ORDERS) == {1: "old", 2: "1:1500", 3: "5:500"}
        assert followed.rows(BEHIND) == followed.rows(INEXACT) == {1: "old", 2: "lost"}

    keys = [
        followed.new.load(BEHIND, [(1, "new")], position(5, 450), exact=position(5, 900)),
        followed.new.load(INEXACT, [(1, "new")], position(5, 950), exact=position(5, 950)),
    ]
    assert {one.table: one.status for one in followed.loaded(*keys).tables} == {
        "shop.behind": "applied",
        "shop.inexact": "applied",
    }
    healed = followed.merged()
    assert healed.exit_code == 0 and healed.published
    assert followed.rows(ORDERS) == {1: "old", 2: "1:1500", 3: "5:500"}
    assert followed.rows(BEHIND) == {1: "new", 3: "5:500"}
    assert followed.rows(INEXACT) == {1: "new"}
    assert {one.status for one in followed.merged().tables} <= {"already", "unchanged"}


def test_a_load_of_the_older_server_changes_nothing_in_a_table_that_went_on(followed: TwoServers) -> None:
    followed.merged()
    before = followed.rows(ORDERS)
    key = next(Path(one.key) for one in followed.old.store.list("shop/g1/load/shop/orders/") if "manifest" in one.key)
    again = followed.loaded(str(key))
    assert [one.status for one in again.tables] == ["already"]
    assert followed.rows(ORDERS) == before
