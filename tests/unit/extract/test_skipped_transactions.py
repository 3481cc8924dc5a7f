"""Transactions that are skipped whole: by the server id of their events, or for a row event of a marker table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog import index
from loader.errors import DataError
from loader.extract import windows
from loader.extract.log_ranges import whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.reader.files import log_walk
from loader.staging.chain import Checkpoint
from loader.staging.documents import HeldGroup, Skip
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.events.test_compressed_events import payload, zipped
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.fragments import fragmented, of_bytes
from tests.unit.binlog.reading import fields, records
from tests.unit.extract.intervals import FILE, Extracted, extracted, pieces_of, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name")))
ITEMS = Table("shop", "items", (integer("id"),))
MARKER = Table("loader", "marker", (integer("id"),))
BOTH = Skip(server_ids=(2, 4_000_000_000), marker_tables=("loader.marker",))
UNCAPTURED = "row events of tables that are not captured"
SERVERS = "row events of transactions from server ids that are skipped"
ROLLED_BACK = "row events of captured tables in transactions that end in ROLLBACK"
MARKED = "row events of transactions that touch a marker table"


def whole(
    log: LogBuilder | bytes, folder: Path, skip: Skip = BOTH, held: Sequence[HeldGroup] = (), **plan: object
) -> Extracted:
    raw = bytes(log.data) if isinstance(log, LogBuilder) else log
    found = plan_of(raw, include=["shop.*"], skip=skip, **plan)  # type: ignore[arg-type]
    start, stop = found.interval.start, found.interval.stop
    before = Checkpoint(start, "", None, tuple(held))
    return extracted(raw, found, folder, [whole_segment(FILE, 1, start.logpos, stop.logpos, 4096)], before=before)


def keys(found: Extracted) -> list[int]:
    """The first column of each staged record, in order."""
    return sorted(int(fields(line)[5] or 0) for text in found.files.values() for line in records(text))


def skipped(found: Extracted) -> dict[str, int]:
    assert found.manifest.balance
    return found.manifest.balance.skipped


def rows(log: LogBuilder, table: Table, *numbers: int) -> LogBuilder:
    """A row event of a table of its own table map for each number."""
    for number in numbers:
        log.table_map(table)
        log.write(table, (number, "x") if table is ORDERS else (number,))
    return log


def content(log: LogBuilder, number: int, where: str, count: int = 3) -> LogBuilder:
    """So many orders from that number on in row events of their own, and a row of the marker table somewhere; COMMIT."""
    rows(log, MARKER, *[1] * (where == "first"))
    rows(log, ORDERS, number)
    rows(log, MARKER, *[1] * (where == "between"))
    rows(log, ORDERS, *range(number + 1, number + count))
    rows(log, MARKER, *[1] * (where == "last"))
    log.xid()
    return log


def marked(log: LogBuilder, number: int, where: str) -> LogBuilder:
    """A transaction of that."""
    return content(log.begin(), number, where)


def test_transactions_from_a_server_id_are_skipped(tmp_path: Path) -> None:
    log = LogBuilder()
    for number, server in enumerate([1, 2, 3, 4_000_000_000, 1, 2], 1):
        log.server_id = server
        log.insert(ORDERS, (number, "x")).insert(ITEMS, (10 * number,))
    found = whole(log, tmp_path)
    assert keys(found) == [1, 3, 5, 10, 30, 50]
    assert skipped(found) == {UNCAPTURED: 0, SERVERS: 6}
    assert found.manifest.balance and found.manifest.balance.row_events_staged == 6
    assert found.manifest.balance.transactions == 12
    assert found.manifest.gtids == "00010203-0405-0607-0809-0a0b0c0d0e0f:1-12"


@pytest.mark.parametrize("kind", ["gtid", "mariadb", "begin"])
def test_the_first_event_of_a_transaction_says_where_it_comes_from(kind: str, tmp_path: Path) -> None:
    log = LogBuilder(server="11.8.2-MariaDB-log" if kind == "mariadb" else "8.4.0")
    for number, (first, rest) in enumerate([(1, 2), (2, 1), (1, 1)], 1):
        log.server_id = first
        if kind == "gtid":
            log.gtid(number)
            log.server_id = rest
            log.query("BEGIN")
        elif kind == "mariadb":
            log.mariadb_gtid(number)
        else:
            log.query("BEGIN")
        log.server_id = rest
        rows(log, ORDERS, number).xid()
    assert keys(whole(log, tmp_path)) == [1, 3]


@pytest.mark.parametrize("where", ["first", "between", "last"])
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_row_event_of_a_marker_table_skips_its_transaction(where: str, size: int, tmp_path: Path) -> None:
    log = marked(LogBuilder(), 10, "")
    marked(marked(log, 20, where), 30, "")
    with patch.object(log_walk, "BLOCK", size), patch.object(windows, "BLOCK", size):
        found = whole(log, tmp_path)
        assert whole(log, tmp_path).files == found.files
    assert keys(found) == [10, 11, 12, 30, 31, 32]
    assert skipped(found) == {UNCAPTURED: 0, MARKED: 4}


def test_a_table_map_alone_touches_nothing(tmp_path: Path) -> None:
    log = LogBuilder().begin()
    log.table_map(MARKER, 7)
    rows(log, ORDERS, 1).xid()
    assert keys(whole(log, tmp_path)) == [1]


def test_a_marker_table_is_the_one_of_that_very_name(tmp_path: Path) -> None:
    log = LogBuilder()
    for number, name in enumerate([("loader", "markers"), ("Loader", "marker"), ("shop", "marker")], 1):
        rows(rows(log.begin(), Table(*name, (integer("id"),)), 100), ORDERS, number).xid()
    assert keys(whole(log, tmp_path)) == [1, 2, 3, 100]


def test_a_server_id_counts_before_a_marker_and_both_before_what_is_captured(tmp_path: Path) -> None:
    log = LogBuilder()
    log.server_id = 2
    rows(marked(log, 1, "first").begin(), MARKER, 1, 2).xid()
    log.server_id = 1
    rows(marked(log, 10, "last").begin(), Table("other", "t", (integer("id"),)), 1, 2).xid()
    assert skipped(whole(log, tmp_path)) == {UNCAPTURED: 2, SERVERS: 6, MARKED: 4}
    assert skipped(whole(log, tmp_path / "2", Skip())) == {UNCAPTURED: 2 + 4}


@pytest.mark.parametrize("touches", [False, True])
def test_statements_and_rolled_back_rows_of_skipped_transactions_are_skipped_too(touches: bool, tmp_path: Path) -> None:
    log = LogBuilder()
    log.server_id = 1 if touches else 2
    log.begin()
    rows(log, ORDERS, 1)
    if touches:
        rows(log, MARKER, 1)
    log.query("ROLLBACK TO `s`")
    log.query("INSERT INTO shop.orders VALUES (2, 'x')")
    log.query("ROLLBACK")
    if not touches:
        log.gtid()
        log.query("TRUNCATE shop.orders")
    log.server_id = 1
    log.gtid()
    log.query("TRUNCATE shop.items")
    found = whole(log, tmp_path)
    assert [barrier.tables for barrier in found.manifest.barriers] == [("shop.items",)]
    assert found.files == {}
    kept = whole(log, tmp_path / "kept", Skip())
    named = [(one.statement.split()[0], one.tables) for one in kept.manifest.barriers]
    assert named[:2] == [("ROLLBACK", ("shop.orders",)), ("ROLLBACK", ("shop.orders",))]
    assert kept.manifest.barriers[2].statement.startswith("INSERT")
    assert (kept.files, skipped(kept)[ROLLED_BACK]) == ({}, 1)


def test_a_marker_table_that_a_statement_changes_stops_the_interval(tmp_path: Path) -> None:
    log = rows(LogBuilder().begin(), ORDERS, 1)
    log.query("INSERT INTO loader.marker VALUES (1)")
    log.xid()
    with pytest.raises(DataError, match="the log holds a statement that changed rows") as caught:
        whole(log, tmp_path)
    assert caught.value.where["table"] == "loader.marker"
    assert keys(whole(log, tmp_path, Skip())) == [1]


def test_row_events_that_are_not_accounted_for_are_an_error(tmp_path: Path) -> None:
    log = marked(marked(LogBuilder(), 1, "last"), 10, "")
    found = whole(log, tmp_path)
    found.results[0].row_events_skipped[MARKED] -= 1
    plan = plan_of(bytes(log.data), include=["shop.*"], skip=BOTH)
    segments = [(FILE, 4, len(log.data))]
    with pytest.raises(DataError, match="row events are missing or counted twice") as caught:
        build_manifest(plan, Checkpoint(plan.interval.start, "", None), segments, found.results)
    assert "of 7 row events 3 were staged, 0 held and 3 skipped" in caught.value.why


def transaction(log: LogBuilder, number: int, where: str, count: int, packs: bool) -> None:
    """The same, in a payload or not."""
    log.gtid()
    if not packs:
        log.query("BEGIN")
        content(log, number, where, count)
        return
    inner = LogBuilder(checksum=False)
    start, inner.server_id = inner.end, log.server_id
    inner.query("BEGIN")
    content(inner, number, where, count)
    log.event(40, payload(bytes(inner.data[start:])))


TRANSACTIONS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3]), st.sampled_from(["", "first", "between", "last"]), st.booleans(), st.integers(1, 30)
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=100)
@given(
    TRANSACTIONS,
    st.sampled_from([Skip(), BOTH, Skip(server_ids=(1,)), Skip(marker_tables=("loader.marker",))]),
    st.sampled_from([1, 3, 8, 500_000]),
    st.sampled_from([64, 1000, 1 << 23]),
    st.integers(1, 9),
)
def test_what_is_staged_is_all_but_the_transactions_that_are_skipped(
    story: list[tuple[int, str, bool, int]], skip: Skip, most: int, size: int, pieces: int
) -> None:
    log, gone = LogBuilder(), set()
    expected: Counter[str] = Counter()
    for number, (server, where, packs, count) in enumerate(story):
        log.server_id = server
        transaction(log, 1000 * number, where, count, packs)
        reason = SERVERS if server in skip.server_ids else MARKED if where and skip.marker_tables else ""
        if reason:
            gone.add(10**12 + log.end)
            expected[reason] += count + bool(where)
        elif where:
            expected[UNCAPTURED] += 1
    raw = bytes(log.data)
    with TemporaryDirectory() as name:
        folder = Path(name)
        every = whole(raw, folder, Skip())
        kept = {key: _without_seqnos(text, gone) for key, text in every.files.items()}
        plan = plan_of(raw, include=["shop.*"], skip=skip)
        with patch.object(index, "LONG", most), patch.object(log_walk, "BLOCK", size):
            found = extracted(raw, plan, folder / "skipping", pieces_of(raw, plan, folder / "skipping", pieces))
    assert found.files == {key: text for key, text in kept.items() if text}
    assert found.manifest.balance and every.manifest.balance
    assert found.manifest.balance.skipped == {UNCAPTURED: 0, **expected}
    assert found.manifest.balance.event_types == every.manifest.balance.event_types
    assert found.manifest.gtids == every.manifest.gtids


def _without_seqnos(text: bytes, gone: set[int]) -> bytes:
    return b"".join(line for line in text.splitlines(True) if int(line.split(b",", 2)[1]) not in gone)


@pytest.mark.parametrize("where", ["first", "last"])
def test_row_events_that_mariadb_compresses_or_cuts(where: str, tmp_path: Path) -> None:
    log = LogBuilder(server="12.3.1-MariaDB-log")
    for number, place in enumerate(["", where, ""], 1):
        log.mariadb_gtid(number)
        content(log, 10 * number, place)
    expected = [10, 11, 12, 30, 31, 32]
    packed_rows = LogBuilder(server="12.3.1-MariaDB-log")
    for event in [bytes(log.data[at : at + size - 4]) for at, size, _ in log.events[1:]]:
        body = event[19:]
        packed_rows.event(*((169, body[:12] + zipped(body[12:])) if event[4] == 30 else (event[4], body)))
    for name, raw in {
        "plain": bytes(log.data),
        "packed": bytes(packed_rows.data),
        "cut": fragmented(bytes(log.data), of_bytes(9)),
    }.items():
        found = whole(raw, tmp_path / name)
        assert (keys(found), skipped(found)) == (expected, {UNCAPTURED: 0, MARKED: 4}), name


def prepared(log: LogBuilder, number: int, xid: str = "61", marker: bool = False) -> LogBuilder:
    """An order in an XA transaction up to its PREPARE, maybe with a row of the marker table."""
    log.gtid()
    log.query(f"XA START X'{xid}',X'',1")
    rows(rows(log, ORDERS, number), MARKER, *[1] * marker)
    log.query(f"XA END X'{xid}',X'',1")
    log.xa_prepare(xid)
    return log


def groups() -> LogBuilder:
    """Three prepared groups: one to keep, one of another server, one with a row of the marker table."""
    log = prepared(LogBuilder(), 1, "61")
    log.server_id = 2
    prepared(log, 2, "62")
    log.server_id = 1
    return prepared(log, 3, "63", marker=True)


def decided(log: LogBuilder) -> LogBuilder:
    """They are committed, the one to keep on the server whose transactions are skipped: after a failover."""
    log.server_id = 2
    log.decided(xid="61")
    log.server_id = 1
    return log.decided(xid="62").decided(xid="63").insert(ORDERS, (9, "x"))


def test_a_prepared_group_is_skipped_by_its_own_events(tmp_path: Path) -> None:
    found = whole(decided(groups()), tmp_path)
    assert keys(found) == [1, 9]
    assert skipped(found) == {UNCAPTURED: 0, SERVERS: 1, MARKED: 2}
    assert found.manifest.balance
    assert (found.manifest.balance.row_events_held, found.manifest.balance.row_events_released) == (1, 1)
    assert found.manifest.held == ()


@pytest.mark.parametrize("later", [BOTH, Skip()])
def test_a_group_that_was_skipped_stays_so_in_a_later_interval(later: Skip, tmp_path: Path) -> None:
    log = groups()
    middle = log.end
    decided(log)
    first = whole(log, tmp_path / "1", stop=middle)
    assert [(group.xid, group.skipped) for group in first.manifest.held] == [
        ("X'61',X'',1", False), ("X'62',X'',1", True), ("X'63',X'',1", True)
    ]  # fmt: skip
    assert first.files == {}
    assert keys(whole(log, tmp_path / "2", later, first.manifest.held, start=middle)) == [1, 9]


def test_a_group_that_was_held_is_released_though_it_would_be_skipped_now(tmp_path: Path) -> None:
    log = groups()
    middle = log.end
    decided(log)
    held = whole(log, tmp_path / "1", Skip(), stop=middle).manifest.held
    found = whole(log, tmp_path / "2", BOTH, held, start=middle)
    assert keys(found) == [1, 2, 3, 9]
    assert skipped(found) == {UNCAPTURED: 0}
    assert found.manifest.balance and found.manifest.balance.row_events_released == 3


def test_a_group_that_was_prepared_before_the_chain_began_is_skipped_by_the_plan_of_its_outcome(tmp_path: Path) -> None:
    log = groups()
    middle = log.end
    decided(log)
    assert keys(whole(log, tmp_path / "1", start=middle)) == [1, 9]
    assert keys(whole(log, tmp_path / "2", Skip(), start=middle)) == [1, 2, 3, 9]


def test_a_long_prepared_group_with_a_marker_behind_all_its_rows(tmp_path: Path) -> None:
    log = LogBuilder()
    log.gtid()
    log.query("XA START X'61',X'',1")
    rows(rows(log, ORDERS, *range(50)), MARKER, 1)
    log.query("XA END X'61',X'',1")
    log.xa_prepare()
    log.decided()
    with patch.object(index, "LONG", 5), patch.object(log_walk, "BLOCK", 200):
        found = whole(log, tmp_path)
    assert found.files == {}
    assert skipped(found) == {UNCAPTURED: 0, MARKED: 51}
