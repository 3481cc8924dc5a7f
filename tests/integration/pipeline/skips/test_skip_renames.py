"""Tables that are renamed around a transaction whose rows were skipped: the skip names them as they are called now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.pipeline.shops import StartServer
from tests.integration.pipeline.skips.skipping_shop import SkippingShop, begun

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> SkippingShop:
    return begun(fresh_server(request.param), tmp_path)


def names(shop: SkippingShop) -> tuple[str, ...]:
    (state,) = shop.states()
    assert state.state == "used"
    return state.names


def skip(shop: SkippingShop, *tables: str) -> None:
    """Skip rows of these tables in a new transaction."""
    start, _ = shop.transaction(*(f"INSERT INTO {table} (id) VALUES (9)" for table in tables))
    shop.skip(str(start))


def test_renames_before_and_after_in_the_same_interval(shop: SkippingShop) -> None:
    shop.run("RENAME TABLE shop.orders TO shop.bought")
    skip(shop, "shop.bought", "shop.items")
    assert shop.states()[0].names == ()
    shop.run(
        "RENAME TABLE shop.bought TO shop.tmp, shop.tmp TO shop.sales", "ALTER TABLE shop.items RENAME TO shop.goods"
    )
    shop.delta()
    assert names(shop) == ("shop.goods", "shop.sales")
    assert shop.states()[0].table_text == "shop.bought, shop.items (now shop.goods, shop.sales)"


def test_tables_that_change_their_names_in_the_same_interval(shop: SkippingShop) -> None:
    skip(shop, "shop.orders")
    shop.run("RENAME TABLE shop.orders TO shop.tmp, shop.items TO shop.orders, shop.tmp TO shop.items")
    shop.delta()
    assert names(shop) == ("shop.items",)
