"""The view of row events in fragments: one event each, with the rows; torn at every byte it is as any event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import BinlogFormatError, LoaderError
from loader.model.position import Position
from loader.reader.events import Event, RowsEvent
from loader.reader.log import open_log
from tests.unit.binlog.builder import WRITE, LogBuilder
from tests.unit.binlog.fragments import events, fragmented, of, of_bytes
from tests.unit.binlog.reading import outcome, staged
from tests.unit.reader.logs import ORDERS, blocks_of, busy, names, read, staged_by_table, written


def log_of(*, in_use: bool) -> bytes:
    """Two transactions, each with a row event in three fragments and another behind them."""
    log = LogBuilder(server="12.3.1-MariaDB-log", in_use=in_use)
    for number in (1, 2):
        log.begin(number)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "text"), last=False)
        log.delete(ORDERS, (number, "text"))
        log.xid()
    return fragmented(bytes(log.data), lambda event: of(3)(event) if event[4] == WRITE else ())


LIVE, CLOSED = log_of(in_use=True), log_of(in_use=False)


def places(log: bytes) -> list[tuple[int, int, int]]:
    """Place, size and type of each event in a log file."""
    found, at = [], 4
    for event in events(log):
        found.append((at, len(event), event[4]))
        at += len(event)
    return found


LAST = [at for at, _, kind in places(LIVE) if kind == 33][-1]


def rows_of(found: list[Event]) -> list[object]:
    """The row events with all their rows."""
    return [
        (type(event), event.table, [(c.before and c.before.as_dict(), c.after and c.after.as_dict()) for c in event])
        for event in found
        if isinstance(event, RowsEvent)
    ]


@pytest.mark.parametrize("block", [60, 700, 1 << 20])
@pytest.mark.parametrize("most", [1, 40, 3000])
def test_events_and_rows_are_those_of_the_log_uncut(
    most: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = bytes(busy(6).data)
    cut = fragmented(plain, of_bytes(most))
    blocks_of(block, monkeypatch)
    found = read(written(tmp_path / "cut", [cut])[0])
    expected = read(written(tmp_path / "plain", [plain])[0])
    assert names(found) == names(expected)
    assert rows_of(found) == rows_of(expected)
    assert staged_by_table(found) == {
        str(schema.name): text for schema, text in staged(cut, every_update=True).text.items()
    }


def test_the_header_of_a_row_event_in_fragments_is_of_all_of_them(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [CLOSED])
    groups = [event.header for event in read(path) if event.header.type == 172]
    found = [place for place in places(CLOSED) if place[2] == 172]
    assert len(found) == 3 * len(groups)
    for header, (at, _, _), (last, size, _) in zip(groups, found[::3], found[2::3], strict=True):
        assert (header.position, header.size, header.end) == (at, last + size - at, last + size)
        assert (header.name, header.inner) == ("PARTIAL_ROW_DATA", -1)


@pytest.mark.parametrize("options", ["", "--table shop.orders", "--op U", "--op I,D --table *.lines"])
def test_the_command_lists_the_rows_of_the_log_uncut(tmp_path: Path, options: str) -> None:
    shown = []
    for name, log in (("plain", bytes(busy(2).data)), ("cut", fragmented(bytes(busy(2).data), of(3)))):
        (path,) = written(tmp_path / name, [log])
        done = CliRunner().invoke(app, ["inspect", str(path), "--format", "json", *options.split()])
        assert done.exit_code == 0, done.output
        found = [json.loads(line) for line in done.stdout.splitlines()]
        shown.append([(event["table"], event["rows"]) for event in found if "rows" in event])
    assert shown[0] == shown[1]
    assert shown[0]


def test_the_command_stages_and_counts_them(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "cut", [CLOSED])
    done = CliRunner().invoke(app, ["inspect", str(path), "--format", "csv", "--output", str(tmp_path / "csv")])
    assert done.exit_code == 0, done.output
    found = {file.parent.parent.name: file.read_bytes() for file in (tmp_path / "csv").rglob("*.csv")}
    assert found == {schema.name.table: text for schema, text in staged(CLOSED).text.items()}
    counted = CliRunner().invoke(app, ["inspect", str(path), "--stats", "--format", "json"])
    events_by_type = {one["type"]: (one["events"], one["bytes"]) for one in json.loads(counted.stdout)["events"]}
    found_sizes = [size for _, size, kind in places(CLOSED) if kind == 172]
    assert events_by_type["PARTIAL_ROW_DATA"] == (len(found_sizes), sum(found_sizes))


def given(path: Path) -> tuple[list[int], Position, LoaderError | None]:
    """The places of the events that a log gives, where it stands then, and the error that ends them."""
    found: list[int] = []
    with open_log(str(path)) as log:
        try:
            found.extend(event.header.position for event in log)
        except LoaderError as error:
            return found, log.position(), error
        return found, log.position(), None


@pytest.mark.parametrize("at", range(LAST, len(LIVE)))
def test_a_growing_file_gives_what_is_whole_and_then_the_rest(tmp_path: Path, at: int) -> None:
    (path,) = written(tmp_path, [LIVE])
    expected = [event.header.position for event in read(path)]
    path.write_bytes(LIVE[:at])
    with open_log(str(path)) as log:
        assert [event.header.position for event in log] == [place for place in expected if place < LAST]
        assert log.position().logpos == LAST
        path.write_bytes(LIVE)
        assert [event.header.position for event in log] == [place for place in expected if place >= LAST]
        assert log.position().logpos == len(LIVE)


@pytest.mark.parametrize("at", range(LAST + 1, len(CLOSED)))
def test_a_closed_file_that_is_cut_is_damaged(tmp_path: Path, at: int) -> None:
    for logs in ([CLOSED[:at]], [LIVE[:at], bytes(busy(1, first=9).data)]):
        paths = written(tmp_path / f"{len(logs)}", logs)
        found, position, error = given(paths[0].parent if len(logs) > 1 else paths[0])
        assert isinstance(error, BinlogFormatError)
        assert (error.where["file"], position.lognum, position.logpos) == (paths[0].name, 1, LAST)
        assert all(place < LAST for place in found)
    assert isinstance(outcome(CLOSED[:at]), BinlogFormatError)


@pytest.mark.parametrize("lost", range(3))
def test_a_group_that_is_not_whole_is_damage_and_what_stands_before_is_given(tmp_path: Path, lost: int) -> None:
    at, size, _ = [place for place in places(CLOSED) if place[2] == 172][-3 + lost]
    (path,) = written(tmp_path, [CLOSED[:at] + CLOSED[at + size :]])
    found, position, error = given(path)
    assert isinstance(error, BinlogFormatError)
    assert error.where == {"file": path.name, "position": str(at)}
    assert position.logpos == LAST
    assert found
    assert all(place < LAST for place in found)
