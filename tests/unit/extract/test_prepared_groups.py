"""XA transactions: held from their PREPARE to their outcome, and staged as of their COMMIT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, UnsupportedError
from loader.extract.log_ranges import whole_segment
from loader.extract.xa.prepared_groups import Release, find_unknown_commits, group_releases, match_events
from loader.extract.xa_events import Decided, Prepared
from loader.materialise.plan.ddl_events import collect_events
from loader.model.table import TableName
from loader.staging.chain import Checkpoint
from loader.staging.documents import HeldGroup
from tests.unit.binlog.builder import MICROS, LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.reading import fields, records
from tests.unit.extract.intervals import FILE, Extracted, extracted, pieces_of, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name")))
ITEMS = Table("shop", "items", (integer("id"),))


def lines(found: Extracted) -> list[tuple[str | None, ...]]:
    """Operation, seqno and first column of each record, in the order of its seqno."""
    every = [fields(line) for text in found.files.values() for line in records(text)]
    return sorted(((line[0], line[1], line[5]) for line in every), key=lambda line: int(line[1] or 0))


def whole(log: LogBuilder, folder: Path, held: Sequence[HeldGroup] = (), **plan: object) -> Extracted:
    raw = bytes(log.data)
    found = plan_of(raw, **plan)  # type: ignore[arg-type]
    start = found.interval.start.logpos
    ranges = [whole_segment(FILE, 1, start, found.interval.stop.logpos, 4096)]
    return extracted(raw, found, folder, ranges, before=Checkpoint(found.interval.start, "", None, tuple(held)))


def seqno(offset: int) -> str:
    return str(10**12 + offset)


def test_rows_count_from_the_commit_with_its_seqno_and_time(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"), (2, "y"))
    log.insert(ORDERS, (3, "z"), number=2)
    between = log.end
    log.decided(micros=MICROS + 5_000_000)
    found = whole(log, tmp_path)
    assert lines(found) == [("I", seqno(between), "3"), ("I", seqno(log.end), "1"), ("I", seqno(log.end), "2")]
    (text,) = [text for key, text in found.files.items() if "-xa-" in key]
    assert [fields(line)[3] for line in records(text)] == ["2023-11-14 22:13:25.123456"] * 2
    assert (found.manifest.balance.row_events_staged, found.manifest.balance.row_events_held) == (1, 1)
    assert found.manifest.balance.row_events_released == 1
    assert found.manifest.held == ()


@pytest.mark.parametrize("outcome", ["ROLLBACK", ""])
def test_rows_without_a_commit_are_not_staged(outcome: str, tmp_path: Path) -> None:
    log = LogBuilder()
    start = log.end
    log.prepared(ORDERS, (1, "x"))
    end = log.end
    if outcome:
        log.decided(outcome)
    found = whole(log, tmp_path)
    assert found.files == {}
    expected = () if outcome else (HeldGroup(xid="X'61',X'',1", file=FILE, start=start, end=end),)
    assert found.manifest.held == expected


def test_a_one_phase_commit_is_a_transaction_like_any_other(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"), one_phase=True)
    found = whole(log, tmp_path)
    assert lines(found) == [("I", seqno(log.end), "1")]
    assert found.manifest.balance.row_events_held == 0


def test_mariadb_says_of_a_commit_that_more_follows(tmp_path: Path) -> None:
    log = LogBuilder(server="10.11.6-MariaDB-log")
    log.mariadb_gtid(1)
    log.table_map(ORDERS)
    log.write(ORDERS, (1, "x"))
    log.query("XA END X'61',X'',1")
    log.xa_prepare()
    log.mariadb_gtid(2)
    log.query("XA COMMIT X'61',X'',1")
    after = log.end
    log.mariadb_gtid(3)
    log.table_map(ORDERS)
    log.write(ORDERS, (2, "y"))
    log.xid()
    assert lines(whole(log, tmp_path)) == [("I", seqno(after), "1"), ("I", seqno(log.end), "2")]


def test_the_commit_in_a_later_interval_stages_what_an_earlier_one_held(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"), xid="aa").prepared(ORDERS, (2, "y"), xid="bb")
    middle = log.end
    log.insert(ORDERS, (3, "z")).decided("ROLLBACK", "aa").decided("COMMIT", "bb")
    first = whole(log, tmp_path / "1", stop=middle)
    assert first.files == {}
    assert [group.xid for group in first.manifest.held] == ["X'aa',X'',1", "X'bb',X'',1"]
    second = whole(log, tmp_path / "2", start=middle, held=first.manifest.held)
    assert [line[2] for line in lines(second)] == ["3", "2"]
    assert second.manifest.held == ()
    assert second.files == whole(log, tmp_path / "3", start=middle, held=first.manifest.held).files


def test_an_undecided_group_is_carried_on(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"))
    middle = log.end
    log.insert(ORDERS, (3, "z"))
    held = whole(log, tmp_path / "1", stop=middle).manifest.held
    assert whole(log, tmp_path / "2", start=middle, held=held).manifest.held == held


def test_a_group_that_was_prepared_before_the_first_interval_is_found_in_the_log(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x")).decided("ROLLBACK").prepared(ORDERS, (2, "y"))
    middle = log.end
    log.decided()
    assert lines(whole(log, tmp_path, start=middle)) == [("I", seqno(log.end), "2")]


def test_a_group_in_an_older_file_is_found_too(tmp_path: Path) -> None:
    older = LogBuilder().prepared(ORDERS, (1, "x"))
    log = LogBuilder().decided()
    (tmp_path / "binlog.000001").write_bytes(bytes(older.data))
    (tmp_path / "binlog.000002").write_bytes(bytes(log.data))
    plan = plan_of(b"", stop=5, start=4).model_copy(
        update={"start": "binlog.000002:4", "stop": f"binlog.000002:{log.end}"}
    )
    span = whole_segment("binlog.000002", 2, 4, log.end, 4096)
    found = extracted(bytes(older.data), plan, tmp_path, [span])
    assert lines(found) == [("I", str(2 * 10**12 + log.end), "1")]


@pytest.mark.parametrize("before", ["nothing", "a decided one"])
def test_a_commit_whose_rows_are_gone_stops_all_tables(before: str, tmp_path: Path) -> None:
    log = LogBuilder()
    if before != "nothing":
        log.prepared(ORDERS, (1, "x")).decided()
    middle = log.end
    log.decided()
    found = whole(log, tmp_path, start=middle)
    (barrier,) = found.manifest.barriers
    assert (barrier.tables, barrier.position, barrier.seqno) == ((), f"{FILE}:{log.end}", log.end + 10**12)
    with pytest.raises(
        UnsupportedError, match="an XA transaction was committed whose rows are in no available log file"
    ) as caught:
        collect_events(TableName("shop", "orders"), [found.manifest], 0, barrier.seqno)
    assert caught.value.hint == "loader initial-load --table shop.orders --again"
    assert collect_events(TableName("shop", "orders"), [found.manifest], barrier.seqno, barrier.seqno + 1) == []


def test_a_rollback_without_its_group_changes_nothing(tmp_path: Path) -> None:
    log = LogBuilder().decided("ROLLBACK").insert(ITEMS, (1,))
    found = whole(log, tmp_path)
    assert found.manifest.barriers == found.manifest.held == ()
    assert lines(found) == [("I", seqno(log.end), "1")]


def test_of_several_outcomes_the_one_without_rows_is_named(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"), xid="aa")
    middle = log.end
    log.decided(xid="aa").decided(xid="bb")
    found = whole(log, tmp_path, start=middle)
    (barrier,) = found.manifest.barriers
    assert "X'bb'" in barrier.statement
    assert [line[2] for line in lines(found)] == ["1"]


def test_a_group_that_is_prepared_twice_is_an_error(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"))
    second = log.end
    log.prepared(ORDERS, (2, "y")).decided()
    with pytest.raises(DataError, match="prepared twice") as caught:
        whole(log, tmp_path)
    assert caught.value.where == {"file": FILE, "position": str(second)}


def test_tables_that_are_not_captured_stage_nothing(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ITEMS, (1,)).decided()
    assert whole(log, tmp_path, include=["shop.orders"]).files == {}
    assert lines(whole(log, tmp_path / "all")) == [("I", seqno(log.end), "1")]


def test_the_parts_depend_on_no_number_of_ranges(tmp_path: Path) -> None:
    log = LogBuilder()
    for number in range(60):
        log.prepared(ORDERS, (number, "x" * 200), xid=f"{number:04x}")
        if number % 3 == 2:
            log.insert(ORDERS, (1000 + number, "y" * 300))
            for back in (0, 2, 1):
                log.decided("ROLLBACK" if back == 1 else "COMMIT", f"{number - back:04x}")
    raw = bytes(log.data)
    plan = plan_of(raw)
    one = extracted(raw, plan, tmp_path / "1", pieces_of(raw, plan, tmp_path / "1", 1))
    many = extracted(raw, plan, tmp_path / "2", pieces_of(raw, plan, tmp_path / "2", 50))
    assert one.files == many.files
    assert one.manifest.balance == many.manifest.balance
    assert len(lines(one)) == 60
    for file in one.manifest.files:
        seqnos = [int(fields(line)[1] or 0) for line in records(one.files[file.key.replace("/a/", "/")])]
        assert (file.min_seqno, file.max_seqno) == (min(seqnos), max(seqnos))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=40), st.integers(0, 40))
def test_settling_in_two_steps_is_settling_in_one(story: list[tuple[int, bool, bool]], cut: int) -> None:
    held: set[int] = set()
    events: list[Prepared | Decided] = []
    for at, (name, commit, captured) in enumerate(story, 1):
        xid, place = str(name), at * 100
        if name in held:
            events.append(Decided(xid, FILE, place + 50, commit, place, 0))
            held.discard(name)
        else:
            events.append(Prepared(xid, FILE, place, place + 50, captured))
            held.add(name)
    once = match_events((), events)
    first = match_events((), events[:cut])
    second = match_events(first.held, events[cut:])
    assert second.held == once.held
    assert {group.xid for group in once.held} == {str(name) for name in held}
    # Of a group that is carried nobody knows any more whether captured tables are in it: it is looked at.
    assert set(once.releases) <= {*first.releases, *second.releases}
    assert find_unknown_commits(first.held, events[cut:]) == []
    assert find_unknown_commits((), events) == []


def test_runs_are_of_one_file_near_each_other_and_not_too_long() -> None:
    def release(file: str, start: int, end: int) -> Release:
        return Release(file, start, end, 1, 1)

    a, b = release("l.000001", 4, 100), release("l.000001", 150, 300)
    far, long, other = release("l.000001", 2000, 2100), release("l.000001", 2100, 9000), release("l.000002", 4, 50)
    assert list(group_releases([a, b, far, long, other], 3000, 1000)) == [[a, b], [far], [long], [other]]
