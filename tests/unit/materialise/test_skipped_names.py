"""The names of tables that lack skipped rows, after renames."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from loader.materialise.plan.skipped_names import follow_names
from loader.model.table import TableName
from loader.staging.documents import Barrier, Manifest
from loader.staging.notes.skips import RowCounts, SkipRecord
from tests.unit.pipeline.forged import forged_manifest

KEY = "shop/skips/0001/1/transaction.json"


def interval(number: int, *statements: str, skips: tuple[str, ...] = ()) -> Manifest:
    """An interval whose statements are at its offsets 10, 20 and so on."""
    manifest = forged_manifest(number)
    barriers = tuple(
        Barrier(
            seqno=manifest.start_seqno + 10 * place, position="binlog.000001:4", statement=statement, database="shop",
            sql_mode=0, mariadb=False, tables=(),
        )
        for place, statement in enumerate(statements, start=1)
    )  # fmt: skip
    return manifest.model_copy(update={"barriers": barriers, "skips": skips})


def skip(seqno: int, *tables: str, generation: str = "0001") -> SkipRecord:
    rows = tuple(RowCounts(table=f"shop.{table}", events=1, inserts=1) for table in tables)
    return SkipRecord(
        source="shop", generation=generation, start="binlog.000001:4", seqno=seqno, rows=rows, reason="r", by="ann",
        since=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


def followed(
    manifests: list[Manifest], record: SkipRecord, known: tuple[str, ...] = (), reached: int = 0, loaded: str = ""
) -> tuple[str, ...]:
    def is_loaded(table: TableName, after: int, before: int) -> bool:
        assert record.seqno <= after <= before
        return table.table == loaded

    found = follow_names(
        {KEY: dict.fromkeys(known, 0)} if known else {}, reached, manifests, lambda _: record, is_loaded
    )
    assert set(found) <= {KEY}
    return tuple(name.removeprefix("shop.") for name in found.get(KEY, ()))


def test_only_renames_after_the_transaction_count() -> None:
    first = interval(0, "RENAME TABLE a TO x", "RENAME TABLE b TO y", skips=(KEY,))
    later = interval(1, "RENAME TABLE y TO z, x TO a")
    assert followed([first, later], skip(first.start_seqno + 15, "x", "b")) == ("a", "z")
    assert followed([interval(0, "RENAME TABLE a TO x")], skip(5, "a")) == ()  # nothing used the skip


def test_what_is_known_is_followed_from_there_on() -> None:
    manifests = [interval(0, "RENAME TABLE a TO x"), interval(1, "RENAME TABLE x TO a")]
    reached = manifests[0].stop_seqno
    assert followed(manifests, skip(5, "a"), ("shop.x",), reached) == ("a",)
    assert followed(manifests[:1], skip(5, "a"), ("shop.x",), reached) == ("x",)


def test_tables_that_exchange_their_names_are_told_apart() -> None:
    swap = "RENAME TABLE a TO t, b TO a, t TO b"
    assert followed([interval(1, swap)], skip(5, "a"), ("shop.a",)) == ("b",)
    assert followed([interval(1, swap)], skip(5, "a", "b"), ("shop.a", "shop.b")) == ("a", "b")


@pytest.mark.parametrize(("loaded", "names"), [("a", ("b",)), ("x", ("b", "x")), ("", ("b", "x"))])
def test_a_table_that_was_loaded_again_before_its_rename_lacks_nothing(loaded: str, names: tuple[str, ...]) -> None:
    manifests = [interval(1, "RENAME TABLE a TO x"), interval(2, "RENAME TABLE y TO z")]
    assert followed(manifests, skip(5, "a", "b"), ("shop.a", "shop.b"), loaded=loaded) == names


def test_a_name_counts_from_the_rename_that_gave_it() -> None:
    """A load before it is of the table that had the name then."""
    asked: list[tuple[str, int, int]] = []

    def is_loaded(table: TableName, after: int, before: int) -> bool:
        asked.append((table.table, after, before))
        return False

    first, second = interval(1, "RENAME TABLE x TO old_x, a TO x"), interval(2, "RENAME TABLE x TO y")
    at = [manifest.start_seqno + 10 for manifest in (first, second)]
    assert follow_names({KEY: {"shop.a": 0}}, 0, [first], lambda _: skip(5, "a"), is_loaded) == {KEY: {"shop.x": at[0]}}
    assert follow_names({KEY: {"shop.x": at[0]}}, 0, [second], lambda _: skip(5, "a"), is_loaded) == {
        KEY: {"shop.y": at[1]}
    }
    assert asked == [("a", 5, at[0]), ("x", at[0], at[1])]


def test_a_statement_that_cannot_be_read_hides_no_other_rename() -> None:
    manifest = interval(1, "RENAME TABLE a TO", "RENAME TABLE a TO x")
    assert followed([manifest], skip(5, "a"), ("shop.a",)) == ("x",)


def test_on_another_server_a_rename_in_the_interval_is_before_or_after_the_transaction() -> None:
    manifest = interval(3, "RENAME TABLE a TO x", skips=(KEY,))
    record = skip(5, "a", generation="0000")
    assert followed([manifest], record) == ("a", "x")
    assert followed([manifest, interval(4, "RENAME TABLE a TO x")], record) == ("x",)
    swap = interval(3, "RENAME TABLE a TO t, b TO a, t TO b", skips=(KEY,))
    assert followed([swap, interval(4, "RENAME TABLE b TO c")], record) == ("a", "c")
