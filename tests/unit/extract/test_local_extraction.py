"""Staging into a folder without Spark: the same bytes as the extraction of ranges, with any number of threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import BinlogFormatError, UsageError
from loader.extract.local_extraction import StagingOptions, count, count_records, stage
from loader.extract.log_ranges import whole_segment
from loader.reader.locations.uri import resolve
from tests.unit.binlog.builder import LogBuilder
from tests.unit.extract.intervals import extracted, plan_of
from tests.unit.reader.logs import ORDERS, blocks_of, busy, written


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def long_log() -> bytes:
    """Small transactions around one that goes over several parts."""
    log = busy(20)
    log.begin(500)
    for number in range(60):
        log.table_map(ORDERS)
        log.write(ORDERS, *((number * 100 + n, "x" * 50) for n in range(10)))
    log.xid()
    for number in range(600, 640):
        log.insert(ORDERS, (number, "y" * 30), number=number)
    return bytes(log.data)


@pytest.mark.parametrize(("threads", "part_bytes"), [
    (1, 700), (2, 700), (5, 700), (1, 4096), (2, 4096), (2, 333), (2, 1111), (2, 2048), (2, 1 << 24),
])  # fmt: skip
def test_the_files_are_those_of_the_extraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, part_bytes: int
) -> None:
    blocks_of(1500, monkeypatch)
    log = long_log()
    plan = plan_of(log, part_bytes=part_bytes)
    expected = extracted(log, plan, tmp_path / "one", [whole_segment("binlog.000001", 1, 4, len(log), part_bytes)])
    files = resolve(str(tmp_path / "one" / "binlog.000001"))
    (file,) = files.listed()
    seen: list[int] = []
    wanted = StagingOptions(part_bytes=part_bytes, threads=threads)
    results = stage(files, [(file, 4, file.size)], tmp_path / "out", wanted, seen.append)
    assert files_of(tmp_path / "out") == {key.split("/", 3)[3]: text for key, text in expected.files.items()}
    assert sum(result.bytes for result in results.ranges) == len(log) - 4
    assert len(seen) == len(results.ranges)
    if threads > 1 and part_bytes == 700:
        assert len(results.ranges) > 8
    rows = dict.fromkeys(("inserts", "updates", "deletes"), 0)
    for one in expected.manifest.files:
        rows = {name: rows[name] + getattr(one, name) for name in rows}
    found = count_records(results)
    assert {name: sum(table[name] for table in found["tables"]) for name in rows} == rows
    assert [(table["schema"], table["table"]) for table in found["tables"]] == [("shop", "lines"), ("shop", "orders")]
    assert (found["transactions"], found["statements"]) == (20 + 6 + 41, 6)
    assert sum(table["bytes"] for table in found["tables"]) == sum(map(len, expected.files.values()))
    assert count_records(count(files, [(file, 4, file.size)], wanted, seen.append)) == found


@pytest.mark.parametrize(
    ("letters", "counts"), [("I", (2, 0, 0)), ("U", (1, 1, 1)), ("D", (0, 0, 2)), ("ID", (2, 0, 2))]
)
def test_some_operations_and_some_tables(tmp_path: Path, letters: str, counts: tuple[int, int, int]) -> None:
    (path,) = written(tmp_path / "log", [bytes(busy(1).data)])
    files = resolve(str(path))
    segments = [(file, 4, file.size) for file in files.listed()]
    found = count_records(count(files, segments, StagingOptions(operations=letters), lambda _: None))["tables"]
    assert tuple(sum(t[n] for t in found) for n in ("inserts", "updates", "deletes")) == counts
    found = count_records(
        count(files, segments, StagingOptions(tables=("*.lines",), operations=letters), lambda _: None)
    )["tables"]
    assert [t["table"] for t in found] == (["lines"] if "D" in letters else [])


def test_damage_stops_it_with_its_place_and_leaves_no_half_file(tmp_path: Path) -> None:
    log = busy(30)
    data = bytearray(log.data)
    data[log.events[-3][0] + 30] ^= 1
    (path,) = written(tmp_path / "log", [bytes(data)])
    files = resolve(str(path))
    (file,) = files.listed()
    with pytest.raises(BinlogFormatError, match="checksum") as raised:
        stage(
            files, [(file, 4, file.size)], tmp_path / "out", StagingOptions(part_bytes=1000, threads=2), lambda _: None
        )
    assert raised.value.where["position"] == str(log.events[-3][0])
    assert all(text.endswith(b"\n") for text in files_of(tmp_path / "out").values())
    assert not [name for name in files_of(tmp_path / "out") if "unfinished" in name]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "log", [bytes(LogBuilder().data)])
    files = resolve(str(path))
    segments = [(file, 4, file.size) for file in files.listed()]
    with pytest.raises(UsageError, match="not empty"):
        stage(files, segments, tmp_path / "log", StagingOptions(), lambda _: None)
    assert stage(files, segments, tmp_path / "new" / "folder", StagingOptions(), lambda _: None)
    assert files_of(tmp_path / "new" / "folder") == {}


def test_parts_that_begin_exactly_where_transactions_do(tmp_path: Path) -> None:
    """The second transaction begins at twice the size of a part, the first one's end."""
    log = LogBuilder().insert(ORDERS, (1, "x" * 200))
    size = log.end
    if size % 2:
        log = LogBuilder().insert(ORDERS, (1, "x" * 201))
        size = log.end
    for number in range(2, 9):
        log.insert(ORDERS, (number, "y" * 100), number=number)
    plan = plan_of(bytes(log.data), part_bytes=size // 2)
    span = whole_segment("binlog.000001", 1, 4, log.end, size // 2)
    expected = extracted(bytes(log.data), plan, tmp_path / "one", [span])
    files = resolve(str(tmp_path / "one" / "binlog.000001"))
    (file,) = files.listed()
    results = stage(
        files, [(file, 4, file.size)], tmp_path / "out", StagingOptions(part_bytes=size // 2, threads=2), print
    )
    assert files_of(tmp_path / "out") == {key.split("/", 3)[3]: text for key, text in expected.files.items()}
    assert sum(result.bytes for result in results.ranges) == log.end - 4


def test_a_log_without_gtid_events_has_a_range_per_thread(tmp_path: Path) -> None:
    log = LogBuilder()
    for number in range(20):
        log.query("BEGIN")
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "text"))
        log.xid()
    (path,) = written(tmp_path / "log", [bytes(log.data)])
    files = resolve(str(path))
    (file,) = files.listed()
    results = count(files, [(file, 4, file.size)], StagingOptions(part_bytes=500, threads=2), lambda _: None)
    assert [result.row_events for result in results.ranges] == [12, 8]
    assert count_records(results)["tables"][0]["inserts"] == 20
