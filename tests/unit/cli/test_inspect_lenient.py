"""`loader inspect` on logs that staging refuses: it lists everything that it can, marks the rest, and ends with code 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import BinlogFormatError, DataError
from loader.reader.events import Event, RowsEvent
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, blob, enum, integer, varchar
from tests.unit.binlog.fields import json as document
from tests.unit.binlog.reading import outcome
from tests.unit.reader.logs import ORDERS, busy, names, written

KEYLESS = Table("shop", "log", (integer("id"), varchar("name"), integer("n")), key=())


def listed(folder: Path, log: LogBuilder | bytes, *argv: str) -> Result:
    """What the command makes of a log."""
    (path,) = written(folder / "log", [log if isinstance(log, bytes) else bytes(log.data)])
    return CliRunner().invoke(app, ["inspect", str(path), *argv])


def rows_of(result: Result) -> list[dict[str, object]]:
    """The rows of a listing in JSON."""
    return [row for line in result.stdout.splitlines() for row in json.loads(line).get("rows", [])]


def minimal() -> LogBuilder:
    """Changes of a table without a key, with images of some columns, and of none."""
    log = LogBuilder()
    log.begin(1)
    log.table_map(KEYLESS)
    log.rows(30, KEYLESS, [KEYLESS.image((1, 5), (0, 2))], present=b"\x05", last=False)
    log.rows(31, KEYLESS, [KEYLESS.image(("a",), (1,)), KEYLESS.image((6,), (2,))], present=b"\x02\x04", last=False)
    log.rows(32, KEYLESS, [KEYLESS.image((7,), (2,)), KEYLESS.image((None,), (2,))], present=b"\x04", last=False)
    log.rows(30, KEYLESS, [], present=b"\x00")
    log.xid()
    return log


def test_rows_whose_images_do_not_identify_them_are_listed_and_never_staged(tmp_path: Path) -> None:
    refused = outcome(bytes(minimal().data))
    assert isinstance(refused, DataError)
    assert refused.what == "a row image leaves out columns that identify its row"
    found = listed(tmp_path, minimal(), "-f", "json")
    assert found.exit_code == 0
    assert [(row["op"], row["before"], row["after"]) for row in rows_of(found)] == [
        ("I", None, {"id": 1, "n": 5}),
        ("U", {"name": "a"}, {"name": "a", "n": 6}),
        ("D", {"n": 7}, None),
        ("D", {"n": None}, None),
    ]
    text = listed(tmp_path, minimal()).stdout
    assert "  - COL(1: id) = 1\n  - COL(2: name) = (not logged)\n  - COL(3: n) = 5" in text
    assert text.count("ACTION = INSERT") == 2  # one of them logs no column, and so no row
    counted = json.loads(listed(tmp_path, minimal(), "--stats", "-f", "json").stdout)
    assert [counted["tables"][0][name] for name in ("inserts", "updates", "deletes")] == [
        2,
        0,
        3,
    ]  # an update without a key is both


def test_row_bytes_under_an_image_without_columns_are_damage(tmp_path: Path) -> None:
    log = LogBuilder()
    log.begin(1)
    log.table_map(KEYLESS)
    log.rows(32, KEYLESS, [b"\x01\x02"], present=b"\x00")
    log.xid()
    found = listed(tmp_path, log)
    assert isinstance(found.exception, BinlogFormatError)
    assert "does not fit its table map" in found.exception.what


MOODS = Table(
    "shop", "moods", (integer("id"), enum("mood", ["low", "high"]), varchar("name"), document("j"), blob("b"))
)
BAD_TEXT, BAD_JSON = b"a\xff", b"\xee\x01"
TRUE, FALSE = b"\x04\x01", b"\x04\x02"


def bad_values() -> LogBuilder:
    """A row with three values that are none of their types between two good ones, and an update to a bad text."""
    log = LogBuilder()
    log.insert(MOODS, (1, 1, "one", TRUE, b"\1"), (2, 9, BAD_TEXT, BAD_JSON, b""), (3, 2, "three", FALSE, None))
    log.begin(2)
    log.table_map(MOODS)
    log.update(
        MOODS,
        ((3, 2, "three", None, None), (3, 0, BAD_TEXT, None, None)),
        ((1, 1, "", None, None), (1, 2, "x", None, None)),
    )
    log.xid()
    return log


def test_an_unreadable_value_is_marked_and_the_listing_goes_on(tmp_path: Path) -> None:
    refused = outcome(bytes(bad_values().data))
    assert isinstance(refused, DataError)
    assert refused.what == "a value is not a enum('low','high') in utf8mb4"
    found = listed(tmp_path, bad_values(), "-f", "json")
    error = found.exception
    assert isinstance(error, DataError)
    assert (error.exit_code, error.what) == (4, "4 values could not be read")
    hexed = {name: {"hex": raw.hex()} for name, raw in (("mood", b"\x09"), ("name", BAD_TEXT), ("j", BAD_JSON))}
    assert [row["after"] for row in rows_of(found)] == [
        {"id": 1, "mood": "low", "name": "one", "j": "true", "b": "01"},
        {"id": 2, **hexed, "b": ""},
        {"id": 3, "mood": "high", "name": "three", "j": "false", "b": None},
        {"id": 3, "mood": "", "name": {"hex": BAD_TEXT.hex()}, "j": None, "b": None},
        {"id": 1, "mood": "high", "name": "x", "j": None, "b": None},
    ]
    assert rows_of(found)[3]["before"] == {"id": 3, "mood": "high", "name": "three", "j": None, "b": None}
    text = listed(tmp_path, bad_values())
    assert "  - COL(2: mood) = 0x09 (unreadable)\n  - COL(3: name) = 0x61ff (unreadable)" in text.stdout
    assert text.stdout.endswith("- END = XID 7\n")


@pytest.mark.parametrize("how", [("--stats",), ("-f", "csv")])
def test_unreadable_values_count_in_statistics_and_files_too(how: tuple[str, ...], tmp_path: Path) -> None:
    out = ("-o", str(tmp_path / "out")) if "csv" in how else ()
    found = listed(tmp_path, bad_values(), *how, *out)
    assert isinstance(found.exception, DataError)
    assert found.exception.what == "4 values could not be read"
    assert "shop.moods" in found.stdout
    if out:
        (file,) = (tmp_path / "out").rglob("*.csv")
        assert '2,"\\x09","\\x61ff","\\xee01",""' in file.read_text()


def test_a_library_that_does_not_ask_for_leniency_gets_the_error(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "log", [bytes(bad_values().data)])
    with pytest.raises(DataError, match="a value is not a enum"), open_log(str(path)) as log:
        list(log)


def gathered(path: Path, *, lenient: bool) -> tuple[list[Event], BinlogFormatError, str]:
    """The events of a damaged log, the error behind them, and where reading would go on."""
    events: list[Event] = []
    log = open_log(str(path), lenient=lenient)
    with pytest.raises(BinlogFormatError) as error, log:
        events.extend(log)
    return events, error.value, str(log.position())


def test_the_events_of_a_damaged_transaction_are_listed_before_the_error(tmp_path: Path) -> None:
    log = busy(2)
    last = next(at for at, _, kind in reversed(log.events) if kind == 31)
    data = bytearray(log.data)
    data[last + 30] ^= 1
    (path,) = written(tmp_path / "log", [bytes(data)])
    events, error, position = gathered(path, lenient=True)
    strict, same, start = gathered(path, lenient=False)
    assert (error.what, error.where) == (same.what, same.where)
    assert int(error.where["position"]) == last
    assert position == start
    assert events[: len(strict)] == strict
    more = events[len(strict) :]
    assert names(more) == ["Gtid", "Query", "TableMap", "WriteRows"]
    assert isinstance(more[-1], RowsEvent)
    assert len(more[-1].rows) == 3
    assert [event.transaction and (event.transaction.is_cut, event.transaction.end.logpos) for event in more] == [
        (True, last)
    ] * 4
    assert str(more[0].transaction and more[0].transaction.start) == start
    assert "damaged=True" in listed(tmp_path, bytes(data)).stdout


def test_a_copy_that_ends_inside_a_transaction_shows_its_beginning(tmp_path: Path) -> None:
    log = busy(1)
    end = next(at for at, _, kind in reversed(log.events) if kind == 16)
    for cut in (end, end + 3):
        found = listed(tmp_path, bytes(log.data[:cut]))
        assert isinstance(found.exception, BinlogFormatError)
        assert found.stdout.count("ACTION = DELETE") == 1
        assert "- END" not in found.stdout


def test_a_commit_without_begin_is_refused_for_what_it_is(tmp_path: Path) -> None:
    log = LogBuilder(server="5.1.22-rc", checksum=False)
    log.query("INSERT INTO t VALUES (1)", "test")
    log.xid()
    found = listed(tmp_path, log)
    assert isinstance(found.exception, BinlogFormatError)
    assert found.exception.what == "a commit (XID) has no BEGIN before it"
    assert "INSERT INTO t VALUES (1)" in found.stdout


def test_a_table_of_a_type_that_is_not_known_does_not_end_the_listing(tmp_path: Path) -> None:
    odd = Table("shop", "odd", (integer("id"), varchar("v")), key=())
    log = LogBuilder()
    log.begin(1)
    body = bytearray(odd.body(7))
    body[body.index(bytes([3, 15]))] = 200
    log.event(19, bytes(body))
    log.write(odd, (1, "x"), table_id=7)
    log.xid()
    log.insert(ORDERS, (1, "a"), number=2)
    found = listed(tmp_path, log, "-f", "json")
    assert isinstance(found.exception, DataError)
    assert found.exception.what == "1 row event could not be read"
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    (odd_rows,) = [line for line in lines if line.get("table") == "odd" and "rows" in line]
    assert odd_rows["unreadable"] == "column type 200 of the log is unknown"
    assert rows_of(found)[-1]["after"] == {"id": 1, "name": "a"}
    assert listed(tmp_path, log, "-t", "shop.orders").exit_code == 0
