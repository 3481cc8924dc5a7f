"""XA transactions that an operator wants to skip: their parts are refused, and nothing is skipped by half."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader import pipeline
from loader.errors import LoaderError, UnsupportedError, UsageError
from loader.model.position import Position
from tests.integration.pipeline.shops import StartServer
from tests.integration.pipeline.skips.skipping_shop import UNCAPTURED, WHOLE, SkippingShop, begun, ids, skipped

pytestmark = pytest.mark.integration
ROWS = (
    "INSERT INTO shop.orders VALUES (1,'a'),(2,'b')", "INSERT INTO other.notes VALUES (1)",
    "INSERT INTO shop.items VALUES (1)",
)  # fmt: skip
LOAD = (
    "correct its rows on the server if they are wrong; then load its tables again:"
    " loader initial-load --table shop.items --table shop.orders --again; then: loader run"
)


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> SkippingShop:
    return begun(fresh_server(request.param), tmp_path)


def refused(shop: SkippingShop, kind: type[LoaderError], place: str, *tables: str) -> LoaderError:
    with pytest.raises(kind) as caught:
        pipeline.find_skippable(shop.settings, place, tables)
    with pytest.raises(kind, match=caught.value.what):
        shop.skip(place, *tables)
    assert shop.states() == []
    return caught.value


def prepared(shop: SkippingShop, *statements: str) -> tuple[Position, str]:
    """The position and the GTID of a prepared transaction."""
    start = shop.end()
    shop.run("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'")
    return start, shop.gtid(shop.end())


def test_both_parts_are_refused_by_any_name_and_all_rows_are_staged(shop: SkippingShop) -> None:
    start, name = prepared(shop, *ROWS)
    middle = shop.end()
    for place in (str(start), name, str(middle.seqno())):
        error = refused(shop, UnsupportedError, place, "shop.orders")
        assert error.what == "a part of an XA transaction cannot be skipped"
        assert "this transaction prepares the XA transaction X'78',X'',1," in error.why
        assert error.hint == f"wait for its XA COMMIT; {LOAD}"
    shop.run("XA COMMIT 'x'")
    stop = shop.end()
    for place in (str(middle), shop.gtid(stop), str(stop.seqno())):
        error = refused(shop, UnsupportedError, place)
        assert "this transaction commits the XA transaction X'78',X'',1," in error.why
        assert error.hint == LOAD
    manifest = shop.delta()
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {
        "shop.orders": [1, 2], "shop.items": [1],
    }  # fmt: skip
    assert (skipped(manifest), manifest.skips, manifest.held) == ({UNCAPTURED: 1}, (), ())


def test_a_commit_whose_rows_are_in_an_older_interval_and_file(shop: SkippingShop) -> None:
    prepared(shop, *ROWS)
    shop.run("FLUSH BINARY LOGS", "INSERT INTO shop.items VALUES (7)")
    assert len(shop.delta().held) == 1
    shop.run("FLUSH BINARY LOGS")
    middle = shop.end()
    shop.run("XA COMMIT 'x'")
    assert refused(shop, UnsupportedError, str(middle)).hint == LOAD
    manifest = shop.delta()
    assert ids(shop.staged(manifest)["shop.orders"]) == [1, 2]
    assert refused(shop, UnsupportedError, str(middle)).hint == LOAD


def test_an_xa_transaction_that_is_rolled_back_has_nothing_to_skip(shop: SkippingShop) -> None:
    prepared(shop, *ROWS)
    middle = shop.end()
    shop.run("XA ROLLBACK 'x'")
    assert "so there is nothing to skip" in refused(shop, UsageError, str(middle)).what


def test_an_xa_transaction_in_one_phase_is_skipped_like_any_other(shop: SkippingShop) -> None:
    start = shop.end()
    shop.run("XA START 'x'", *ROWS, "XA END 'x'", "XA COMMIT 'x' ONE PHASE")
    shop.run("INSERT INTO shop.orders VALUES (3,'c')")
    assert [one.table for one in shop.skip(str(start)).tables] == ["shop.items", "shop.orders"]
    manifest = shop.delta()
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {"shop.orders": [3]}
    assert (skipped(manifest)[WHOLE], len(manifest.skips), shop.again(manifest)) == (3, 1, ())
    assert [one.state for one in shop.states()] == ["used"]
