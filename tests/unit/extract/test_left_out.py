"""Row events that cannot be staged stop their table alone, and however an interval is split it is staged in the same way."""

from __future__ import annotations

from pathlib import Path

from loader.binlog.table_registry import UnstagedRow
from loader.errors import UnsupportedError
from loader.extract.accounting.accounts import LEFT_OUT, UNREADABLE
from loader.extract.local_extraction import StagingOptions, count, count_records
from loader.extract.log_ranges import whole_segment
from loader.extract.repair.incomplete_tables import find_incomplete_tables
from loader.model.table import TableName
from loader.reader.locations.uri import resolve
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, enum, integer, varchar
from tests.unit.binlog.reading import fields, records
from tests.unit.extract.intervals import FILE, Extracted, extracted, pieces_of, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 400)))
ITEMS = Table("shop", "items", (integer("id"), varchar("name", 400)))
KEYLESS = Table("shop", "keyless", (integer("id"), varchar("name", 400)), key=())
NOT_TEXT = b"\xff"


def ids(found: Extracted, table: str) -> list[str | None]:
    """The first column of each staged record of a table."""
    texts = [found.files[key] for key in sorted(found.files) if f"/{table}/" in key]
    return [fields(line)[5] for text in texts for line in records(text)]


def one_range(log: LogBuilder, folder: Path) -> Extracted:
    raw = bytes(log.data)
    return extracted(raw, plan_of(raw), folder, [whole_segment(FILE, 1, 4, len(raw), 4096)])


def test_however_split_each_event_stands_alone(tmp_path: Path) -> None:
    log = LogBuilder()
    for number in range(1, 40):
        bad = number in {7, 8, 21}
        log.insert(ORDERS, (number, NOT_TEXT if bad else "o" * 300), (100 + number, "o" * 300), number=2 * number)
        log.insert(ITEMS, (number, "i" * 300), number=2 * number + 1)
    raw = bytes(log.data)
    plan = plan_of(raw, part_bytes=4096)
    whole = extracted(raw, plan, tmp_path / "whole", [whole_segment(FILE, 1, 4, len(raw), 4096)])
    ranges = pieces_of(raw, plan, tmp_path / "split", 5)
    assert len(ranges) > 5
    split = extracted(raw, plan, tmp_path / "split", ranges)
    assert split.files == whole.files
    assert split.manifest.left_out == whole.manifest.left_out
    assert split.manifest.balance == whole.manifest.balance
    (found,) = whole.manifest.left_out
    assert (found.table, found.what, found.why) == ("shop.orders", "a value is not a varchar in utf8mb4", "column name")
    assert whole.manifest.balance.skipped[UNREADABLE] == 3
    assert whole.manifest.balance.row_events_staged == 2 * 39 - 3
    assert ids(whole, "items") == [str(number) for number in range(1, 40)]
    assert ids(whole, "orders")[:12] == [str(n) for number in range(1, 7) for n in (number, 100 + number)]


def test_of_xa_transactions_the_first_to_commit_counts(tmp_path: Path) -> None:
    log = LogBuilder()
    for number, xid in enumerate(("61", "62"), 1):
        log.prepared(ORDERS, (number, NOT_TEXT), xid=xid)
    log.decided(xid="62")
    first = log.end
    log.decided(xid="61")
    found = one_range(log, tmp_path)
    (left_out,) = found.manifest.left_out
    assert left_out.seqno == first + 10**12
    assert (found.files, found.manifest.balance.row_events_released) == ({}, 0)


def test_images_without_the_key_stop_their_table_and_no_other(tmp_path: Path) -> None:
    log = LogBuilder().begin(1)
    log.table_map(KEYLESS, 1)
    log.rows(30, KEYLESS, [KEYLESS.image((1, "x"))[:-2]], table_id=1, last=False, present=b"\xfd")
    log.table_map(ITEMS, 2)
    log.write(ITEMS, (1, "i"), table_id=2)
    log.xid()
    found = one_range(log, tmp_path)
    (left_out,) = found.manifest.left_out
    assert (left_out.table, left_out.what) == (
        "shop.keyless", "a row image leaves out columns that identify its row"
    )  # fmt: skip
    assert "binlog_row_image=FULL" in left_out.hint
    assert (ids(found, "items"), ids(found, "keyless")) == (["1"], [])


def test_a_table_whose_columns_cannot_be_read_stops_alone(tmp_path: Path) -> None:
    odd = Table("shop", "odd", (integer("id"), varchar("name", 400, collation=9999)))
    log = LogBuilder().insert(odd, (1, "x"), number=1).insert(ITEMS, (1, "i"), number=2)
    found = one_range(log, tmp_path)
    (left_out,) = found.manifest.left_out
    assert (left_out.table, left_out.hint) == (
        "shop.odd", "add 'shop.odd' to tables.exclude of the source, or convert the column to utf8mb4"
    )  # fmt: skip
    assert found.manifest.balance.skipped[LEFT_OUT] == 1
    assert ids(found, "items") == ["1"]


def test_definitions_cannot_replace_labels_that_are_no_text(tmp_path: Path) -> None:
    odd = Table("shop", "odd", (integer("id"), enum("kind", (NOT_TEXT,))))
    found = one_range(LogBuilder().insert(odd, (1, 1), number=1).insert(ITEMS, (1, "i"), number=2), tmp_path)
    (left_out,) = found.manifest.left_out
    assert (left_out.what, left_out.hint) == (
        "labels in utf8mb4 are not supported", "add 'shop.odd' to tables.exclude of the source, or convert the column to utf8mb4"
    )  # fmt: skip
    assert ids(found, "items") == ["1"]


def test_rows_of_the_statement_that_made_their_table_need_a_definition_before_its_end() -> None:
    """A given definition applies to transactions that end after its position."""
    plan, name, end = plan_of(bytes(2000)), TableName("shop", "orders"), 10**12 + 900
    error = UnsupportedError("the columns are not known", hint="")
    for at, wanted in ((f"{FILE}:900", f"{FILE}:899"), (f"{FILE}:500", f"{FILE}:500")):
        found = find_incomplete_tables(plan, FILE, {name: UnstagedRow(end, 700, at, error)})
        assert found[name].at == wanted


def test_a_log_that_is_listed_shows_the_values_that_staging_refuses(tmp_path: Path) -> None:
    raw = bytes(LogBuilder().insert(ORDERS, (1, NOT_TEXT)).data)
    (tmp_path / FILE).write_bytes(raw)
    files = resolve(str(tmp_path / FILE))
    (file,) = files.listed()
    found = count_records(count(files, [(file, 4, file.size)], StagingOptions(), lambda _: None))
    assert (found["tables"][0]["inserts"], found["unreadable_values"], found["unreadable_row_events"]) == (1, 1, 0)
    refused = one_range(LogBuilder().insert(ORDERS, (1, NOT_TEXT)), tmp_path / "staged")
    assert [left_out.table for left_out in refused.manifest.left_out] == ["shop.orders"]
