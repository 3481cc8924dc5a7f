"""Notes on tables that are stopped: the first reason stands, until the table is released or stands elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import StagedDataError, UsageError
from loader.model.table import TableName
from loader.staging.notes.quarantine import Quarantines
from loader.store.local import LocalStore
from tests.unit.pipeline.site import GENERATION, Site, shop

ORDERS, ODD = TableName("shop", "orders"), TableName("shop", "a/../b")
STOP = ("binlog.000001:90", 90)


def error(what: str) -> dict[str, object]:
    return StagedDataError(what, table="shop.orders").as_dict()


@pytest.fixture
def quarantines(tmp_path: Path) -> Quarantines:
    return Quarantines(LocalStore(f"file://{tmp_path}"), "shop")


def test_the_first_reason_stands_until_it_is_released(quarantines: Quarantines) -> None:
    first = quarantines.begin(ORDERS, error("first"), ("binlog.000001:50", 50), STOP)
    assert quarantines.begin(ORDERS, error("second"), ("binlog.000001:50", 50), STOP) == first
    assert quarantines.require(ORDERS) == first
    quarantines.end(first)
    assert quarantines.begin(ORDERS, error("second"), None, STOP).error["what"] == "second"


@pytest.mark.parametrize("now", [49, 51, None])
def test_it_ends_when_the_table_stands_elsewhere(quarantines: Quarantines, now: int | None) -> None:
    made = quarantines.begin(ORDERS, error("first"), ("binlog.000001:50", 50), STOP)
    assert quarantines.find_current(ORDERS, 50) == made
    assert quarantines.find_current(ORDERS, now) is None
    assert quarantines.all() == {}


def test_tables_of_any_name_and_of_this_source_alone(quarantines: Quarantines, tmp_path: Path) -> None:
    other = Quarantines(LocalStore(f"file://{tmp_path}"), "shop2")
    other.begin(ORDERS, error("other"), None, STOP)
    for table in (ORDERS, ODD):
        quarantines.begin(table, error(str(table)), None, STOP)
    assert list(quarantines.all()) == [ODD, ORDERS]
    assert len(other.all()) == 1


def test_a_table_that_is_not_quarantined_is_told_which_are(quarantines: Quarantines) -> None:
    with pytest.raises(UsageError, match="quarantined tables: none"):
        quarantines.require(ORDERS)
    quarantines.begin(ODD, error("odd"), None, STOP)
    with pytest.raises(UsageError, match=r"table shop\.orders is not quarantined") as caught:
        quarantines.require(ORDERS)
    assert "quarantined tables: shop.a/../b" in caught.value.why


def test_it_is_of_no_generation(tmp_path: Path) -> None:
    site = Site(tmp_path, shop(1)[0])
    made = Quarantines(site.store, "shop").begin(ORDERS, error("first"), ("binlog.000001:50", 50), STOP)
    assert site.chain.generations() == [site.generation]
    newer = GENERATION.model_copy(update={"name": site.chain.name_after(site.chain.generation())})
    site.chain.begin(newer)
    assert (newer.name, site.chain.generation()) == ("0002", newer)
    assert Quarantines(site.store, "shop").find_current(ORDERS, 50) == made
