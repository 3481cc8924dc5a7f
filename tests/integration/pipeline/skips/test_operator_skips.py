"""Transactions, and rows of tables in them, that an operator skips: on real servers, with and without GTIDs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.binlog import index
from loader.errors import BinlogFormatError, DataError, UnsupportedError, UsageError
from loader.extract.accounting.accounts import SKIPPED_BYTES, SKIPPED_TABLES, UNREADABLE
from loader.extract.spec import TransportSettings
from loader.pipeline import chain_of
from loader.staging.notes.skips import RowCounts
from loader.store.registry import open_store
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import StartServer
from tests.integration.pipeline.skips.skipping_shop import (
    SERVERS,
    TABLES,
    UNCAPTURED,
    WHOLE,
    SkippingShop,
    begun,
    ids,
    skipped,
)
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "no-gtids", "mariadb", pytest.param("compressed", marks=pytest.mark.sweep)])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> SkippingShop:
    kind, options = SERVERS[request.param]
    return begun(fresh_server(kind, options), tmp_path)


def test_a_whole_transaction_of_a_planned_interval(shop: SkippingShop) -> None:
    shop.run("INSERT INTO shop.orders VALUES (1,'a')")
    start, stop = shop.transaction(
        "INSERT INTO shop.orders VALUES (2,'b'),(3,'c')",
        "UPDATE shop.orders SET name = 'x' WHERE id = 1",
        "DELETE FROM shop.orders WHERE id = 3",
        "INSERT INTO shop.items VALUES (1)",
        "INSERT INTO other.notes VALUES (1)",
    )
    name = shop.gtid(stop)
    shop.run("INSERT INTO shop.orders VALUES (4,'d')")
    chosen = shop.planned()
    seen = pipeline.find_skippable(shop.settings, name)
    assert seen.tables == (
        RowCounts(table="shop.items", events=1, inserts=1),
        RowCounts(table="shop.orders", events=3, inserts=2, updates=1, deletes=1),
    )
    assert (seen.start, seen.stop, seen.seqno) == (str(start), str(stop), stop.seqno())
    assert (seen.interval, seen.staged, seen.records) == (chosen.start, False, ())
    assert shop.states() == []
    for place in (name, str(start), f"{start.file}:{stop.logpos - 1}", str(stop.seqno())):
        assert pipeline.find_skippable(shop.settings, place) == seen
    (record,) = shop.skip(name).records
    assert (record.state, record.whole, record.tables) == ("waiting", True, ("shop.items", "shop.orders"))
    assert (record.reason, record.by, record.rows) == ("poison", "ann", 5)
    assert record.gtid == (name if "-" in name else "")
    again = pipeline.skip_transaction(shop.settings, str(start), (), reason="another", by="bob").records
    assert again == (record,)
    manifest = shop.extract(chosen)
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {"shop.orders": [1, 4]}
    assert skipped(manifest) == {UNCAPTURED: 0, WHOLE: 5, SKIPPED_BYTES: stop.logpos - start.logpos}
    assert manifest.balance is not None and manifest.balance.row_events_staged == 2
    assert len(manifest.skips) == 1
    assert [shop.again(manifest, threads) for threads in (1, 3)] == [(), ()]
    (used,) = shop.states()
    assert (used.state, used.applies_from) == ("used", stop.seqno())
    for place, tables in ((name, ()), (str(start), ("shop.items",))):  # a cleared task, or a repeated command
        assert pipeline.find_skippable(shop.settings, place, tables).records == (used,)
        assert shop.skip(place, *tables).records == (used,)
    assert shop.states() == [used]
    before = chain_of(shop.settings).require_generation().start
    error = shop.refused(UsageError, before)
    assert error.why == "the rows of shop.orders are staged or applied"
    assert "loader initial-load --table shop.orders --again" in error.hint
    if shop.settings.transport.kind == "network":
        store = open_store(shop.settings.staging_root)
        lost = manifest.files[0].key
        data = store.get(lost)
        store.delete(lost)
        assert (shop.restore(manifest), store.get(lost)) == (1, data)


def test_the_rows_of_one_table_in_a_transaction_before_it_is_planned(shop: SkippingShop) -> None:
    start, _ = shop.transaction(
        "INSERT INTO shop.orders VALUES (1,'a'),(2,'b')", "INSERT INTO shop.items VALUES (1)", "DELETE FROM shop.orders"
    )
    shop.run("INSERT INTO shop.orders VALUES (3,'c')")
    found = shop.skip(str(start), "shop.orders")
    assert found.tables == (RowCounts(table="shop.orders", events=2, inserts=2, deletes=2),)
    assert found.interval == ""
    assert [(one.state, one.whole, one.tables) for one in found.records] == [("waiting", False, ("shop.orders",))]
    chosen = shop.planned()
    plan = chain_of(shop.settings).require_plan(chosen.generation, chosen.start_seqno)
    assert [(one.place, one.table) for one in plan.skips] == [(str(start), "shop.orders")]
    manifest = shop.extract(chosen)
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {
        "shop.orders": [3], "shop.items": [1],
    }  # fmt: skip
    assert skipped(manifest) == {UNCAPTURED: 0, SKIPPED_TABLES: 2}
    assert manifest.skips == tuple(one.key for one in plan.skips)
    assert shop.again(manifest) == ()
    assert [one.state for one in shop.states()] == ["used"]


def test_two_skips_of_one_transaction_and_others_in_one_interval(shop: SkippingShop) -> None:
    first, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    second, stop = shop.transaction("INSERT INTO shop.orders VALUES (2,'b')")
    shop.run("INSERT INTO shop.items VALUES (2)")
    shop.planned()
    shop.skip(str(first), "shop.orders")
    shop.skip(str(first), "shop.items")
    shop.skip(str(second))
    manifest = shop.extract(shop.planned())
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {"shop.items": [2]}
    assert skipped(manifest) == {
        UNCAPTURED: 0, SKIPPED_TABLES: 2, WHOLE: 1, SKIPPED_BYTES: stop.logpos - second.logpos,
    }  # fmt: skip
    assert len(manifest.skips) == 3
    assert shop.again(manifest) == ()


def test_a_row_that_cannot_be_staged_is_skipped_in_an_interval_that_left_its_table_out(shop: SkippingShop) -> None:
    """The usual case: the interval is staged, and the table is quarantined before the bad row."""
    shop.run("INSERT INTO shop.orders VALUES (1,'a')")
    start, stop = shop.transaction(
        "INSERT INTO shop.orders VALUES (2, _hebrew X'61A1')", "INSERT INTO shop.items VALUES (1)"
    )
    bad = shop.gtid(stop)
    shop.run("INSERT INTO shop.orders VALUES (3,'c')")
    later, _ = shop.transaction("INSERT INTO shop.orders VALUES (4, _hebrew X'62A1')")
    manifest = shop.delta()
    (left_out,) = manifest.left_out
    assert (left_out.table, left_out.seqno, left_out.skippable) == ("shop.orders", stop.seqno(), True)
    error = shop.refused(UsageError, bad)
    assert error.why == "the rows of shop.items are staged or applied"
    assert f"loader skip {start} --table shop.orders --reason TEXT" in error.hint
    assert shop.refused(UsageError, bad, "shop.items").why == "the rows of shop.items are staged or applied"
    found = shop.skip(left_out.position, "shop.orders")  # as the hint of the error says
    assert (found.staged, found.interval) == (True, manifest.start)
    assert [one.state for one in found.records] == ["waiting"]
    assert found.records[0].why == f"stage the other rows: loader extract --interval {manifest.start}"
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="do not cover all rows of the table") as caught:
            shop.stage_again(manifest)
        assert f"or skip this row too: loader skip {later.file}:" in caught.value.hint
    assert [one.state for one in shop.states()] == ["waiting"]
    shop.skip(str(later), "shop.orders")
    for _ in range(2):
        filled = shop.stage_again(manifest)
        assert filled.left_out == ()
        assert {table: ids(lines) for table, lines in shop.staged(filled).items()} == {
            "shop.orders": [1, 3], "shop.items": [1],
        }  # fmt: skip
    extracted = chain_of(shop.settings).extracted_manifest(manifest.generation, manifest.start_seqno)
    assert extracted == manifest and skipped(manifest)[UNREADABLE] == 2
    assert [one.state for one in shop.states()] == ["used", "used"]
    assert shop.again(manifest) == ()
    shop.run("INSERT INTO shop.orders VALUES (5,'e')")
    following = shop.delta()
    assert (following.left_out, following.skips) == ((), ())
    assert ids(shop.staged(following)["shop.orders"]) == [5]


def test_rows_before_the_first_missing_one_may_be_applied_and_are_not_skipped(shop: SkippingShop) -> None:
    good, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    shop.run("INSERT INTO shop.orders VALUES (2, _hebrew X'61A1')")
    assert shop.delta().left_out
    assert "staged or applied" in shop.refused(UsageError, str(good), "shop.orders").why


def test_what_cannot_be_skipped_is_refused(shop: SkippingShop) -> None:
    read = shop.end()
    shop.run("INSERT INTO shop.items VALUES (1)")
    shop.delta()
    notes, _ = shop.transaction("INSERT INTO other.notes VALUES (1)")
    assert "changes no captured table" in shop.refused(UsageError, str(notes)).what
    orders, stop = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    newest = shop.gtid(stop)
    error = shop.refused(UsageError, str(orders), "shop.items")
    assert (error.what, error.why) == ("the transaction has no rows of shop.items", "it has rows of shop.orders")
    altered = shop.end()
    shop.run("ALTER TABLE shop.items ADD n INT")
    error = shop.refused(UnsupportedError, str(altered))
    assert error.why.endswith("ALTER TABLE shop.items ADD n INT")
    created = shop.end()
    shop.run("CREATE TABLE shop.copied SELECT * FROM shop.items")
    assert "changes tables" in shop.refused(UnsupportedError, str(created)).what
    logged = shop.end()
    shop.run("SET SESSION binlog_format = STATEMENT", "INSERT INTO shop.items VALUES (9,9)")
    assert "changes tables" in shop.refused(UnsupportedError, str(logged)).what
    prepared = shop.end()
    shop.run("XA START 'x'", "INSERT INTO shop.orders VALUES (7,'x')", "XA END 'x'", "XA PREPARE 'x'")
    decided = shop.end()
    shop.run("XA COMMIT 'x'")
    for place in (prepared, decided):
        assert "XA transaction" in shop.refused(UnsupportedError, str(place)).what
    assert "before the log that was read" in shop.refused(UsageError, f"{read.file}:5").what
    nothing = "no such transaction"
    assert nothing in shop.refused(UsageError, str(shop.end())).what
    assert nothing in shop.refused(UsageError, str(stop.seqno() - 1)).what
    assert "does not name one transaction" in shop.refused(UsageError, "0-1-1,1-1-1").what
    assert "not a GTID set" in shop.refused(UsageError, "orders").why
    if "-" in newest:
        absent = f"{newest.rpartition('-')[0]}-999999" if shop.server.kind == "mariadb" else f"{newest[:36]}:999999"
        assert nothing in shop.refused(UsageError, absent).what
    with pytest.raises(UsageError, match="needs a reason"):
        pipeline.skip_transaction(shop.settings, str(orders), (), reason=" ", by="ann")
    assert shop.states() == []


@pytest.mark.parametrize("name", ["other.aside", "shop.aside"])
def test_a_temporary_table_that_mariadb_logs_among_rows(name: str, fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb", {}), tmp_path)
    with_table, row = shop.end(), "INSERT INTO shop.orders VALUES (1, LEFT(UUID(), 20))"
    made = f"CREATE TEMPORARY TABLE {name} (id INT)"
    shop.run("SET SESSION binlog_format = MIXED", "BEGIN", row, made, "COMMIT")
    if name.startswith("shop."):
        error = shop.refused(UnsupportedError, str(with_table))
        assert error.why.endswith(made)
    else:
        assert [one.inserts for one in shop.skip(str(with_table)).tables] == [1]
        assert shop.staged(shop.delta()) == {}


def test_an_attempt_that_began_before_the_record_wins_and_the_skip_is_shown_as_not_used(
    shop: SkippingShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    chosen = shop.planned()
    skips = pipeline.skips.records.Skips  # type: ignore[attr-defined]
    keep = skips.keep

    def late(self: Any, record: Any) -> Any:
        shop.extract(chosen)
        return keep(self, record)

    monkeypatch.setattr(skips, "keep", late)
    with pytest.raises(DataError, match="the interval was staged with the rows") as caught:
        shop.skip(str(start))
    assert "loader initial-load --table shop.orders --again" in caught.value.hint
    (state,) = shop.states()
    assert (state.state, state.why) == ("not used", f"the interval from {chosen.start} was staged with the rows")


def test_a_record_of_another_log_stops_its_interval(shop: SkippingShop) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    chosen = shop.planned()
    shop.skip(str(start))
    store = open_store(shop.settings.staging_root)
    (key,) = (info.key for info in store.list("shop/skips/"))
    text = store.get(key)
    store.delete(key)
    store.create(key, text.replace(str(start).encode(), f"{start.file}:{start.logpos + 1}".encode()))
    for _ in range(2):
        with pytest.raises(DataError, match="no transaction at a position where an operator skipped one") as caught:
            shop.extract(chosen)
    place = f"{start.file}:{start.logpos + 1}"
    assert f"withdraw it: loader skip {place} --withdraw --reason TEXT;" in caught.value.hint
    (withdrawn,) = shop.withdraw(place)
    assert withdrawn.state == "withdrawn"
    assert ids(shop.staged(shop.extract(chosen))["shop.orders"]) == [1]


def test_a_gtid_with_a_tag(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mysql"), tmp_path)
    shop.run(
        "SET gtid_next = 'AUTOMATIC:bulk'", "INSERT INTO shop.orders VALUES (1,'a')", "SET gtid_next = 'AUTOMATIC'"
    )
    shop.run("INSERT INTO shop.orders VALUES (2,'b')")
    name = f"{shop.run('SELECT UPPER(@@server_uuid)')[0][0]}:bulk:1"
    (record,) = shop.skip(name).records
    assert record.gtid == name.lower()
    manifest = shop.extract(shop.planned())
    assert ids(shop.staged(manifest)["shop.orders"]) == [2]
    assert [one.state for one in shop.skip(name).records] == ["used"]


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
@pytest.mark.parametrize("tables", [(), ("shop.orders",)], ids=["whole", "table"])
def test_a_damaged_row_that_stops_every_extraction(
    kind: str, tables: tuple[str, ...], fresh_server: StartServer, tmp_path: Path
) -> None:
    """Without checksums the walk accepts the bytes, and no table can be blamed: the interval is never staged."""
    server = fresh_server(kind, {"binlog_checksum": "NONE"})
    run(server, *TABLES)
    settings = settings_of(address_of(server), "shop.*", tmp_path)
    files = TransportSettings(kind="file", path=str(server.log_dir), server=address_of(server))
    settings = settings.model_copy(update={"transport": files})
    pipeline.begin(settings)
    shop = SkippingShop(server, settings)
    shop.run("INSERT INTO shop.orders VALUES (1,'a')")
    start, _ = shop.transaction("INSERT INTO shop.items VALUES (2)", "INSERT INTO shop.orders VALUES (2,'POISON')")
    shop.run("INSERT INTO shop.orders VALUES (3,'c')")
    log = server.log_dir / start.file
    at = log.read_bytes().rindex(b"\x06POISON")
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"\xf0")
    chosen = shop.planned()
    with pytest.raises(BinlogFormatError, match="does not fit its table map") as caught:
        shop.extract(chosen)
    command, place, *_ = shlex.split(caught.value.hint.rpartition("loader ")[2])
    found = shop.skip(place, *tables)
    assert command == "skip"
    whole = (RowCounts(table="shop.items", events=1), RowCounts(table="shop.orders", events=1))
    assert found.tables == (whole[1:] if tables else whole)
    manifest = shop.extract(chosen)
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {
        "shop.orders": [1, 3], **({"shop.items": [2]} if tables else {}),
    }  # fmt: skip
    assert (skipped(manifest)[SKIPPED_TABLES if tables else WHOLE], shop.again(manifest)) == (1 if tables else 2, ())


@pytest.mark.parametrize("tables", [1, 2])
def test_a_command_that_is_killed_between_two_records_is_repeated(
    shop: SkippingShop, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    names = ("shop.items", "shop.orders")[:tables]
    chosen = shop.planned()
    store = open_store(shop.settings.staging_root)
    kept = type(store).create

    def killed(self: Any, key: str, data: bytes) -> bool:
        done = kept(self, key, data)
        if key.startswith("shop/skips/"):
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "create", killed)
        with pytest.raises(KeyboardInterrupt):
            shop.skip(str(start), *names)
    assert [one.tables for one in shop.states()] == [("shop.items",)]
    assert [one.state for one in shop.skip(str(start), *names).records] == ["waiting"] * tables
    manifest = shop.extract(chosen)
    assert skipped(manifest)[SKIPPED_TABLES] == tables
    assert len(manifest.skips) == tables
    assert {one.state for one in shop.states()} == {"used"}


@pytest.mark.parametrize("tables", [(), ("shop.orders",)], ids=["whole", "table"])
def test_a_long_transaction_over_many_parts(
    shop: SkippingShop, tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LONG", 100)
    start, stop = shop.transaction(
        *(f"INSERT INTO shop.orders VALUES ({n},'{'x' * 20}')" for n in range(400)), "INSERT INTO shop.items VALUES (1)"
    )
    name = shop.gtid(stop)
    shop.run("INSERT INTO shop.orders VALUES (1000,'a')")
    found = shop.skip(name, *tables)
    assert [(one.events, one.inserts) for one in found.tables] == [(1, 1), (400, 400)][len(tables) :]
    manifest = shop.extract(shop.planned())
    assert {table: ids(lines) for table, lines in shop.staged(manifest).items()} == {
        "shop.orders": [1000], **({"shop.items": [1]} if tables else {}),
    }  # fmt: skip
    if tables:
        assert skipped(manifest) == {UNCAPTURED: 0, SKIPPED_TABLES: 400}
    else:
        assert skipped(manifest) == {UNCAPTURED: 0, WHOLE: 401, SKIPPED_BYTES: stop.logpos - start.logpos}
    assert [shop.again(manifest, threads) for threads in (1, 4)] == [(), ()]


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_skip_follows_the_source_to_another_server(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    """The interval was planned on the old server and never staged there. On the new one, other bytes are before it."""
    shop = begun(fresh_server(kind), tmp_path)
    replica = fresh_server(kind, options_of_replica(kind))
    replicating(shop.server, replica)
    shop.run("INSERT INTO shop.orders VALUES (1,'a')")
    shop.delta()
    start, stop = shop.transaction("INSERT INTO shop.orders VALUES (2,'b')", "INSERT INTO shop.items VALUES (1)")
    name = shop.gtid(stop)
    shop.run("INSERT INTO shop.orders VALUES (3,'c')")
    shop.planned()
    shop.skip(name, "shop.orders")
    caught_up(shop.server, replica)
    there = SkippingShop(replica, shop.at(replica).settings)
    manifest = there.delta()
    assert manifest.generation == "0002"
    assert {table: ids(lines) for table, lines in there.staged(manifest).items()} == {
        "shop.orders": [3], "shop.items": [1],
    }  # fmt: skip
    (state,) = there.states()
    assert (state.state, state.start, state.gtid) == ("used", str(start), name)
    assert there.again(manifest) == ()
    there.run("INSERT INTO shop.orders VALUES (4,'d')")
    following = there.delta()
    assert (following.skips, ids(there.staged(following)["shop.orders"])) == ((), [4])


def test_a_rename_on_another_server_in_the_interval_of_a_skip_marks_both_names(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """The place of the transaction in the interval is not known, so the rename can come before or after it."""
    shop = begun(fresh_server("mysql"), tmp_path)
    replica = fresh_server("mysql", options_of_replica("mysql"))
    replicating(shop.server, replica)
    _, stop = shop.transaction("INSERT INTO shop.orders VALUES (2,'b')")
    name = shop.gtid(stop)
    shop.run("RENAME TABLE shop.orders TO shop.sold, shop.items TO shop.orders")
    shop.planned()
    shop.skip(name)
    caught_up(shop.server, replica)
    there = SkippingShop(replica, shop.at(replica).settings)
    there.delta()
    (state,) = there.states()
    assert (state.state, state.names) == ("used", ("shop.orders", "shop.sold"))
