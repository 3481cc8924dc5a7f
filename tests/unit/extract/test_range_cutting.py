"""However an interval is split, it is staged in the same bytes, and each event is accounted for once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.constants import EVENT_NAMES
from loader.errors import BinlogFormatError, DataError, GapError
from loader.extract import range_cutting as ranges_module
from loader.extract.log_ranges import whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.model.position import Position
from loader.staging.chain import Checkpoint
from loader.transport.base import LogLags
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, blob, integer, varchar
from tests.unit.extract.intervals import FILE, event_counts, extracted, pieces_of, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 4000)))
ITEMS = Table("shop", "items", (integer("id"), integer("line")), key=(0, 1))
OTHER = Table("other", "log", (integer("id"), varchar("name", 4000)), key=())
ITEMS_AND_ONE = Table("shop", "items", (integer("id"), integer("line"), integer("more")))
TABLES = [ORDERS, ITEMS, OTHER]

TRANSACTION = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12), st.integers(0, 400)), min_size=0, max_size=14)
LOGS = st.lists(
    st.one_of(TRANSACTION, st.sampled_from(["CREATE TABLE shop.x (a INT)", "stop", "padding"])), max_size=25
)

BEFORE = Checkpoint(Position.parse("binlog.000001:4"), "", None)


def built(steps: list[object]) -> LogBuilder:
    """A log of transactions (row events of tables), statements, and events between transactions."""
    log = LogBuilder()
    log.event(35, bytes(8))
    for number, step in enumerate(steps, 1):
        if step == "stop":
            log.event(29, b"\x05hello")
        elif step == "padding":
            log.event(100, bytes(700), flags=0x80)
        elif isinstance(step, str):
            log.gtid(number)
            log.query(step)
        else:
            log.begin(number)
            for which, rows, size in step:  # type: ignore[attr-defined]
                table = TABLES[which]
                log.table_map(table, 100 + which)
                values = [(n, n) if which == 1 else (n, "x" * size) for n in range(rows)]
                log.write(table, *values, table_id=100 + which)
            log.xid()
    log.rotate()
    return log


@settings(deadline=None, max_examples=60)
@given(
    LOGS, st.sampled_from([4096, 5000, 8192, 20_000]), st.lists(st.integers(1, 40), min_size=1, max_size=3), st.data()
)
def test_any_split_stages_the_same_files_and_counts_each_event_once(
    steps: list[object], part_bytes: int, splits: list[int], data: st.DataObject
) -> None:
    log = built(steps)
    raw = bytes(log.data)
    boundaries = sorted({4, len(raw), *boundaries_of(log)})
    start = data.draw(st.sampled_from(boundaries[:-1]))
    stop = data.draw(st.sampled_from([at for at in boundaries if at > start]))
    plan = plan_of(raw, start, stop, include=["shop.*"], part_bytes=part_bytes)
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = extracted(raw, plan, folder, [whole_segment(FILE, 1, start, stop, part_bytes)])
        for number, pieces in enumerate(splits):
            with patch.object(ranges_module, "LOOK", data.draw(st.sampled_from([40, 300, 3000, 1 << 18]))):
                ranges = pieces_of(raw, plan, folder, pieces)
            assert [r.first_part for r in ranges[1:]] == [r.end_part for r in ranges[:-1]]
            found = extracted(raw, plan, folder, ranges, f"attempt{number}")
            assert found.files == whole.files
            assert found.manifest.balance == whole.manifest.balance
            assert found.manifest.schemas == whole.manifest.schemas
            assert [f.model_copy(update={"key": ""}) for f in found.manifest.files] == [
                f.model_copy(update={"key": ""}) for f in whole.manifest.files
            ]
    balance = whole.manifest.balance
    assert balance is not None
    assert balance.bytes == stop - start
    assert balance.event_types == event_counts(log.events, start, stop, {**EVENT_NAMES, 100: "event type 100"})
    assert balance.events == sum(balance.event_types.values())


def boundaries_of(log: LogBuilder) -> list[int]:
    """Where intervals may start and stop: before a GTID, and before events that stand between transactions."""
    inside, found = False, []
    for at, _, kind in log.events:
        if kind in (33, 35, 29, 100, 4) and not inside:
            found.append(at)
        inside = kind == 33 or (inside and kind not in (16, 2)) or (inside and kind == 2 and followed(log, at))
    return found


def followed(log: LogBuilder, at: int) -> bool:
    """Whether this query is a BEGIN."""
    size = next(size for start, size, _ in log.events if start == at)
    return log.data[at : at + size - 4].endswith(b"BEGIN")


def files_of(
    log: LogBuilder, folder: Path, part_bytes: int = 4096, include: tuple[str, ...] = ("*.*",)
) -> dict[str, bytes]:
    raw = bytes(log.data)
    plan = plan_of(raw, part_bytes=part_bytes, include=include)
    return extracted(raw, plan, folder, [whole_segment(FILE, 1, 4, len(raw), part_bytes)]).files


def test_a_part_holds_the_row_events_that_start_in_its_bytes(tmp_path: Path) -> None:
    log = built([[(0, 1, 300)] * 40])
    files = files_of(log, tmp_path)
    expected = {}
    for at, _, kind in log.events:
        if kind == 30:
            expected[at // 4096] = expected.get(at // 4096, 0) + 1
    found = {int(key.rpartition("-")[2].removesuffix(".csv")): len(text.splitlines()) for key, text in files.items()}
    assert found == expected
    assert len(found) > 3


def test_what_is_staged_of_a_table_depends_on_no_other_table(tmp_path: Path) -> None:
    log = built([[(0, 3, 200), (1, 2, 0), (2, 1, 50)] * 8] * 3)
    everything = files_of(log, tmp_path / "all")
    alone = files_of(log, tmp_path / "one", include=("shop.items",))
    assert alone == {key: text for key, text in everything.items() if "/items/" in key}
    assert alone


def test_the_manifest_says_what_the_files_hold(tmp_path: Path) -> None:
    raw = bytes(built([[(0, 3, 200), (1, 2, 0)]] * 5).data)
    result = extracted(raw, plan_of(raw), tmp_path, [whole_segment(FILE, 1, 4, len(raw), 4096)])
    for file in result.manifest.files:
        text = result.files[file.key.replace("/a/", "/")]
        seqnos = [int(line.split(b",")[1]) for line in text.splitlines()]
        assert file.bytes == len(text)
        assert file.sha256 == hashlib.sha256(text).hexdigest()
        assert (file.inserts, file.updates, file.deletes) == (len(seqnos), 0, 0)
        assert (file.min_seqno, file.max_seqno) == (min(seqnos), max(seqnos))
        assert result.manifest.schema_of(file.schema_id).name == file.name


def test_a_transaction_larger_than_its_parts_keeps_one_seqno_and_its_offsets(tmp_path: Path) -> None:
    log = built([[(0, 12, 300)] * 6])
    raw = bytes(log.data)
    plan = plan_of(raw)
    result = extracted(raw, plan, tmp_path, pieces_of(raw, plan, tmp_path, 50))
    lines = [line.split(b",") for key in sorted(result.files) for line in result.files[key].splitlines()]
    assert len(result.files) > 4
    assert {line[1] for line in lines} == {str(10**12 + log.events[-1][0]).encode()}
    offsets = [int(line[2]) for line in lines]
    assert offsets == sorted(set(offsets))


def test_accounts_that_do_not_close_are_an_error(tmp_path: Path) -> None:
    raw = bytes(built([[(0, 12, 300)] * 6]).data)
    plan = plan_of(raw)
    result = extracted(raw, plan, tmp_path, pieces_of(raw, plan, tmp_path, 3))
    with pytest.raises(DataError, match="bytes were not walked, or were walked twice"):
        build_manifest(plan, BEFORE, [(FILE, 4, len(raw))], result.results[:-1])
    with pytest.raises(DataError, match="bytes were not walked, or were walked twice"):
        build_manifest(plan, BEFORE, [(FILE, 4, len(raw))], [*result.results, result.results[0]])


def test_the_accounts_close_in_each_log_file(tmp_path: Path) -> None:
    raw = bytes(built([[(0, 12, 300)] * 6]).data)
    found = extracted(raw, plan_of(raw), tmp_path, pieces_of(raw, plan_of(raw), tmp_path, 3)).results
    files = [f"{FILE[:-1]}{number}" for number in (1, 2, 3)]
    plan = plan_of(raw).model_copy(update={"stop": f"{files[-1]}:{len(raw)}"})
    segments = [(file, 4, len(raw)) for file in files]
    every = [replace(result, file=file, gtids=()) for file in files for result in found]
    balance = build_manifest(plan, BEFORE, segments, every).balance
    assert balance is not None and balance.bytes == 3 * (len(raw) - 4)
    for lost in range(len(every)):
        with pytest.raises(DataError, match="bytes were not walked, or were walked twice") as caught:
            build_manifest(plan, BEFORE, segments, every[:lost] + every[lost + 1 :])
        assert caught.value.where["file"] == every[lost].file
    # What one file lacks, another one has too many of.
    moved = [*every[:-1], replace(every[-1], file=files[0])]
    with pytest.raises(DataError, match="bytes were not walked, or were walked twice"):
        build_manifest(plan, BEFORE, segments, moved)


@pytest.mark.parametrize("where", ["inside an event", "inside a transaction", "beyond the end"])
def test_an_interval_that_does_not_end_at_a_boundary_is_an_error(where: str, tmp_path: Path) -> None:
    log = built([[(0, 1, 10)]] * 2)
    raw = bytes(log.data)
    stop = {"inside an event": len(raw) - 3, "inside a transaction": log.events[4][0], "beyond the end": len(raw) + 9}[
        where
    ]
    with pytest.raises(LogLags if where == "beyond the end" else BinlogFormatError):
        extracted(raw, plan_of(raw, 4, stop), tmp_path, [whole_segment(FILE, 1, 4, stop, 4096)])


@pytest.mark.parametrize("event", [4, 5, 6])
def test_an_interval_that_starts_inside_a_transaction_is_an_error(event: int, tmp_path: Path) -> None:
    log = built([[(0, 1, 10)]] * 2)
    raw = bytes(log.data)
    start = log.events[event][0]
    with pytest.raises(BinlogFormatError):
        extracted(raw, plan_of(raw, start), tmp_path, [whole_segment(FILE, 1, start, len(raw), 4096)])


def test_a_log_file_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    raw = bytes(built([]).data)
    plan = plan_of(raw)
    with pytest.raises(GapError, match="gone") as caught:
        extracted(raw, plan, tmp_path, [whole_segment("binlog.000009", 9, 4, len(raw), 4096)])
    assert caught.value.where["file"] == "binlog.000009"


def test_rows_that_were_rolled_back_stop_captured_tables_only(tmp_path: Path) -> None:
    log = LogBuilder().insert(ITEMS, (1, 2))
    start = log.end
    log.begin()
    log.table_map(ORDERS)
    log.write(ORDERS, (1, "x"))
    log.query("ROLLBACK")
    raw = bytes(log.data)
    span = whole_segment(FILE, 1, 4, len(raw), 4096)
    found = extracted(raw, plan_of(raw), tmp_path, [span])
    (barrier,) = found.manifest.barriers
    assert (barrier.position, barrier.statement, barrier.tables) == (f"{FILE}:{start}", "ROLLBACK", ("shop.orders",))
    assert {str(file.name) for file in found.manifest.files} == {"shop.items"}
    other = extracted(raw, plan_of(raw, include=["other.*"]), tmp_path / "other", [span])
    assert (other.files, other.manifest.barriers) == ({}, ())


def test_nothing_of_a_part_that_failed_is_visible(tmp_path: Path) -> None:
    log = LogBuilder().insert(ITEMS, (1, 2)).begin(2)
    log.table_map(ORDERS)
    log.write(ITEMS_AND_ONE, (1, 2, 3))
    log.xid()
    raw = bytes(log.data)
    with pytest.raises(BinlogFormatError, match="does not fit its table map"):
        extracted(raw, plan_of(raw), tmp_path, [whole_segment(FILE, 1, 4, len(raw), 4096)])
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("look", [40, 500, 3000])
def test_a_log_in_a_value_is_not_taken_for_the_log(look: int, checksum: bool, tmp_path: Path) -> None:
    inner = bytes(built([[(0, 5, 100)] * 3] * 6).data)
    files = Table("shop", "files", (integer("id"), blob("content", 4)))
    log = LogBuilder(checksum=checksum)
    for number in range(12):
        log.insert(files, (number, inner[: 900 * (number + 1)]), number=number + 1)
        log.insert(ITEMS, (number, number), number=100 + number)
    raw = bytes(log.data)
    plan = plan_of(raw)
    whole = extracted(raw, plan, tmp_path / "whole", [whole_segment(FILE, 1, 4, len(raw), 4096)])
    with patch.object(ranges_module, "LOOK", look):
        ranges = pieces_of(raw, plan, tmp_path / "cut", 8)
    assert len(ranges) > 8
    assert extracted(raw, plan, tmp_path / "cut", ranges).files == whole.files
