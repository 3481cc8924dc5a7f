"""What an extraction reports: rows by table, and the balance of its interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.extract.extraction import split_interval
from loader.extract.log_ranges import whole_segment
from loader.extract.spec import TableRows, TransportSettings, backlog_result, result_of
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, integer
from tests.unit.extract.intervals import FILE, extracted, plan_of

A, B = (Table("shop", name, (integer("id"), integer("n"))) for name in "ab")


def built() -> LogBuilder:
    made = LogBuilder()
    for number in range(1, 41):
        made.begin(number)
        made.table_map(A, 1)
        made.write(A, *((n, n) for n in range(20)), table_id=1)
        made.table_map(B, 2)
        made.update(B, ((1, 1), (1, 2)), ((1, 1), (2, 1)), table_id=2, last=False)
        made.delete(B, (5, 5), table_id=2)
        made.xid()
    return made


def test_the_report_sums_rows_over_parts(tmp_path: Path) -> None:
    log = built()
    raw = bytes(log.data)
    found = extracted(raw, plan_of(raw), tmp_path, [whole_segment(FILE, 1, 4, len(raw), 4096)])
    assert len(found.manifest.files) > 4
    report = result_of(found.manifest, "staged")
    sizes = {name: sum(one.bytes for one in found.manifest.files if one.table == name) for name in "ab"}
    assert report.tables == (
        TableRows(table="shop.a", inserts=800, bytes=sizes["a"]),
        TableRows(table="shop.b", inserts=40, updates=40, deletes=80, bytes=sizes["b"]),
    )
    assert backlog_result([report, report]).tables[0] == TableRows(table="shop.a", inserts=1600, bytes=2 * sizes["a"])
    assert (report.start, report.stop, report.status) == (f"{FILE}:4", f"{FILE}:{len(raw)}", "staged")
    assert (report.bytes, report.events) == (len(raw) - 4, len(log.events))


def test_the_balance_says_what_was_skipped_and_why(tmp_path: Path) -> None:
    log = built()
    raw = bytes(log.data)
    plan = plan_of(raw, include=["shop.b"])
    balance = extracted(raw, plan, tmp_path, [whole_segment(FILE, 1, 4, len(raw), 4096)]).manifest.balance
    assert balance is not None
    assert balance.transactions == 40
    assert balance.row_events_staged == 80
    assert balance.skipped == {"row events of tables that are not captured": 40}
    assert balance.event_types == {
        "FORMAT_DESCRIPTION": 1, "GTID": 40, "QUERY": 40, "TABLE_MAP": 80, "WRITE_ROWS": 40, "UPDATE_ROWS": 40,
        "DELETE_ROWS": 40, "XID": 40,
    }  # fmt: skip


@pytest.mark.parametrize("pieces", [1, 2, 1000])
def test_the_driver_cuts_files_at_hand_into_parts(pieces: int, tmp_path: Path) -> None:
    raw = bytes(built().data)
    (tmp_path / FILE).write_bytes(raw)
    ranges = split_interval(plan_of(raw), TransportSettings(kind="file", path=str(tmp_path)), pieces)
    assert len(ranges) == (1 if pieces == 1 else -(-len(raw) // 4096))
    assert (ranges[0].first_part, ranges[-1].end_part) == (0, (len(raw) - 1) // 4096 + 1)
    assert (ranges[0].read_from, ranges[-1].read_to) == (4, len(raw))


def test_an_interval_over_several_files_has_the_ranges_of_each(tmp_path: Path) -> None:
    raw = bytes(built().data)
    for number in (1, 2, 3):
        (tmp_path / f"binlog.{number:06d}").write_bytes(raw)
    plan = plan_of(raw, 4).model_copy(update={"stop": f"binlog.000003:{len(raw)}"})
    ranges = split_interval(plan, TransportSettings(kind="file", path=str(tmp_path)), 1)
    assert [(span.file, span.lognum, span.read_from, span.read_to) for span in ranges] == [
        (f"binlog.{number:06d}", number, 4, len(raw)) for number in (1, 2, 3)
    ]


def test_an_interval_that_ends_where_a_file_begins_reads_nothing_of_it(tmp_path: Path) -> None:
    raw = bytes(built().data)
    for number in (1, 2):
        (tmp_path / f"binlog.{number:06d}").write_bytes(raw)
    plan = plan_of(raw, 4).model_copy(update={"stop": "binlog.000002:4"})
    ranges = split_interval(plan, TransportSettings(kind="file", path=str(tmp_path)), 1)
    assert [span.file for span in ranges] == ["binlog.000001"]


def test_the_plan_shapes_the_lines(tmp_path: Path) -> None:
    """Both images of every update, and seqnos moved by the generation's shift."""
    raw = bytes(built().data)
    span = [whole_segment(FILE, 1, 4, len(raw), 1 << 20)]
    after = extracted(raw, plan_of(raw, include=["shop.b"], part_bytes=1 << 20), tmp_path / "after", span)
    plan = plan_of(raw, include=["shop.b"], part_bytes=1 << 20, update_rows="both", shift=7)
    both = extracted(raw, plan, tmp_path / "both", span)
    letters = [b"".join(line[:1] for text in one.files.values() for line in text.splitlines()) for one in (after, both)]
    assert letters == [b"UDID" * 40, b"DIDID" * 40]
    assert (plan.start_seqno, both.manifest.files[0].min_seqno - after.manifest.files[0].min_seqno) == (
        8 * 10**12 + 4,
        7 * 10**12,
    )
