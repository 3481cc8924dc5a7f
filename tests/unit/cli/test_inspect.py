"""`loader inspect`: what it prints, which exit code it has, and that bad bytes never end in a traceback."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import LoaderError, UsageError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, blob, decimal, integer, set_of, varchar
from tests.unit.reader.logs import ORDERS, UUID, busy, written


def run(*argv: str) -> str:
    """The output of the command; what it raises is raised."""
    done = CliRunner().invoke(app, ["inspect", *argv])
    if isinstance(done.exception, LoaderError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (path,) = written(tmp_path / "log", [bytes(busy(3).data)])
    return path


TEXT = f"""\
EVENT = FORMAT_DESCRIPTION at binlog.000001:4
- BINLOG_VERSION = 4
- SERVER_VERSION = 8.4.0
- CREATED = 1700000000
- CHECKSUM = True
SEQ# = {{seqno}}
- TIME = 2023-11-14 22:13:20.123456
- EVENTID = binlog.000001:127-{{end}}
- SOURCEID = 1
- GTID = {UUID}:1
- METADATA = [server_version=8.4.0;bytes={{bytes}};last_committed=0;sequence_number=1]
- SQL =
 - ACTION = INSERT
 - SCHEMA = shop
 - TABLE = orders
 - ROW# = 0
  - COL(1: id) = 10
  - COL(2: name) = 'item "0"\\n\\\\'
 - ROW# = 1
  - COL(1: id) = 11
  - COL(2: name) = 'item "1"\\n\\\\'
- SQL =
 - ACTION = UPDATE
 - SCHEMA = shop
 - TABLE = orders
 - ROW# = 0
  - COL(1: id) = 1
  - COL(2: name) = 'b'
  - KEY(1: id) = 1
  - OLD(2: name) = 'a'
 - ROW# = 1
  - COL(1: id) = -1
  - COL(2: name) = NULL
  - KEY(1: id) = 1
  - OLD(2: name) = 'b'
- SQL =
 - ACTION = DELETE
 - SCHEMA = shop
 - TABLE = lines
 - ROW# = 0
  - KEY(1: id) = 1
  - KEY(2: line) = 1
 - ROW# = 1
  - KEY(1: id) = 1
  - KEY(2: line) = 2
- END = XID 7
"""


def test_the_listing(log: Path) -> None:
    built = busy(3)
    end = [at for at, _, kind in built.events if kind == 33][1]
    assert built.events[1][0] == 127
    assert run(str(log), "--limit", "1") == TEXT.format(seqno=10**12 + end, end=end, bytes=end - 127)
    statement = run(str(log)).splitlines()[-3:]
    assert statement[1:] == ["- SCHEMA = shop", "- SQL(0) = ALTER TABLE t ADD c3 INT"]


def test_headers(log: Path) -> None:
    lines = [line for line in run(str(log), "--headers").splitlines() if line.startswith("#")]
    assert len(lines) == len(busy(3).events)
    assert lines[1] == "# binlog.000001:127 GTID time 2023-11-14 22:13:20 server 1 size 73 end 200 flags 0x0000"


def test_filters_leave_only_rows_of_a_table_and_an_operation(log: Path) -> None:
    lines = run(str(log), "--table", "shop.o*", "--op", "U,D").splitlines()
    assert {line for line in lines if "ACTION" in line or "TABLE" in line} == {
        " - ACTION = UPDATE",
        " - TABLE = orders",
    }
    assert [line[:4] for line in lines if not line.startswith((" ", "-"))] == ["SEQ#"] * 3
    with pytest.raises(UsageError, match="'x' is not a list of operations"):
        run(str(log), "--op", "x")


def test_json_has_a_line_per_event_and_typed_values(tmp_path: Path) -> None:
    table = Table(
        "s", "t", (integer("id", 8, unsigned=True), decimal("d"), blob("b"), set_of("e", ["x", "y"]), varchar("v"))
    )
    from decimal import Decimal

    log = LogBuilder().insert(table, (2**64 - 1, Decimal("-0.50"), b"\0\xff", 3, None), (0, None, b"", 0, ""))
    log.query("CREATE TABLE é (id INT)", "s")
    (path,) = written(tmp_path, [bytes(log.data)])
    lines = [json.loads(line) for line in run(str(path), "--format", "json").splitlines()]
    assert [line["type"] for line in lines] == [
        "FORMAT_DESCRIPTION", "GTID", "QUERY", "TABLE_MAP", "WRITE_ROWS", "XID", "QUERY",
    ]  # fmt: skip
    rows = lines[4]
    assert [change["after"] for change in rows["rows"]] == [
        {"id": 2**64 - 1, "d": "-0.50", "b": "00ff", "e": ["x", "y"], "v": None},
        {"id": 0, "d": None, "b": "", "e": [], "v": ""},
    ]
    assert (rows["schema"], rows["table"], rows["rows"][0]["op"], rows["rows"][0]["before"]) == ("s", "t", "I", None)
    assert [column["type"] for column in rows["columns"]] == [
        "bigint unsigned", "decimal(10,2)", "blob", "set('x','y')", "varchar",
    ]  # fmt: skip
    assert (rows["columns"][4], rows["key"]) == ({"name": "v", "type": "varchar", "charset": "utf8mb4"}, ["id"])
    assert (rows["position"], rows["file"], rows["server_id"]) == (log.events[4][0], "binlog.000001", 1)
    assert (rows["seqno"], rows["committed"]) == (10**12 + log.events[6][0], "2023-11-14T22:13:20.123456+00:00")
    assert rows["transaction_gtid"] == lines[1]["gtid"] == f"{UUID}:1"
    assert (lines[6]["statement"], lines[6]["schema"]) == ("CREATE TABLE é (id INT)", "s")
    assert "header" not in rows
    headed = json.loads(run(str(path), "-f", "json", "--headers").splitlines()[5])
    assert headed["header"] == {"size": 31, "end": log.events[6][0], "flags": 0, "type": 16}


def test_characters_that_act_on_a_terminal_are_shown_escaped(tmp_path: Path) -> None:
    log = LogBuilder().insert(ORDERS, (1, "\x1b[31m\x07\x9b\t"))
    (path,) = written(tmp_path, [bytes(log.data)])
    assert "COL(2: name) = '\\x1b[31m\\x07\\x9b\\t'" in run(str(path))


def test_csv(log: Path, tmp_path: Path) -> None:
    printed = run(str(log), "--format", "csv", "--output", str(tmp_path / "out"), "--threads", "2")
    assert [line.split() for line in printed.splitlines()] == [
        ["table", "inserts", "updates", "deletes", "bytes"],
        ["shop.lines", "0", "0", "6", printed.split()[9]],
        ["shop.orders", "9", "3", "3", printed.split()[14]],
        ["the", "log", "also", "has", "1", "statements;", "the", "files", "only", "have", "changes", "of", "rows"],
    ]
    (file,) = (tmp_path / "out" / "shop" / "lines").glob("*/part-000001-000000.csv")
    seqno = file.read_text().split(",")[1]
    assert [line.split(",")[0::5] for line in file.read_text().splitlines()][:2] == [["D", "1"], ["D", "1"]]
    again = tmp_path / "again"
    run(str(log), "--format", "csv", "--output", str(again), "--from", seqno, "--limit", "1", "--table", "*.lines")
    (second,) = again.rglob("*.csv")
    assert second.read_text().splitlines() == file.read_text().splitlines()[2:4]
    with pytest.raises(UsageError, match="needs a folder"):
        run(str(log), "--format", "csv")
    with pytest.raises(UsageError, match="--output"):
        run(str(log), "--output", str(again))


def test_csv_of_a_file_in_use_ends_before_its_torn_tail(tmp_path: Path) -> None:
    live = busy(3, in_use=True)
    (path,) = written(tmp_path / "log", [bytes(live.data[:-5])])
    run(str(path), "--format", "csv", "--output", str(tmp_path / "out"), "--table", "*.lines")
    (file,) = (tmp_path / "out").rglob("*.csv")
    assert len(file.read_text().splitlines()) == 6
    (path,) = written(tmp_path / "closed", [bytes(busy(3).data[:-5])])
    with pytest.raises(LoaderError):
        run(str(path), "--format", "csv", "--output", str(tmp_path / "out2"))


def test_stats(log: Path) -> None:
    found = json.loads(run(str(log), "--stats", "--format", "json"))
    built = busy(3)
    counts = {row["type"]: (row["events"], row["bytes"]) for row in found["events"]}
    assert counts["GTID"] == (4, 4 * 73)
    assert counts["DELETE_ROWS"] == (3, sum(size for _, size, kind in built.events if kind == 32))
    assert sum(size for _, size in counts.values()) == built.end - 4
    assert found["transactions"] == 4
    assert [one["bytes"] for one in found["largest"]] == sorted(
        (one["bytes"] for one in found["largest"]), reverse=True
    )
    assert found["largest"][0]["start"] == f"binlog.000001:{[at for at, _, kind in built.events if kind == 33][1]}"
    tables = [(t["schema"], t["table"], t["inserts"], t["updates"], t["deletes"]) for t in found["tables"]]
    assert tables == [("shop", "lines", 0, 0, 6), ("shop", "orders", 9, 3, 3)]
    assert "4 transactions, the largest:" in run(str(log), "--stats")


def command(*argv: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "loader", *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("argv", "code"), [(("{log}",), 0), (("/nowhere",), 2), (("{log}", "--from", "1:5"), 2), (("{bad}",), 4)]
)
def test_exit_codes(log: Path, argv: tuple[str, ...], code: int) -> None:
    bad = log.with_name("bad.000001")
    bad.write_bytes(b"no log")
    done = command("inspect", *(word.format(log=log, bad=bad) for word in argv))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(code)


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(400).data)])
    argv = [sys.executable, "-m", "loader", "inspect", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith(b"EVENT")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_bad_bytes_are_shown_or_refused(tmp_path: Path, form: str) -> None:
    good = bytes(busy(3, checksum=False).data)
    chance = random.Random(7)
    refused = 0
    for number in range(150):
        data = bytearray(good)
        for _ in range(chance.choice([1, 2, 20])):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
        (path,) = written(
            tmp_path / str(number), [bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])]
        )
        done = CliRunner().invoke(app, ["inspect", str(path), "--format", form, "--headers"])
        if done.exception:
            assert isinstance(done.exception, LoaderError), f"{number}: {done.exception!r}"
            refused += 1
    assert 20 < refused < 150


def test_what_can_show_nothing_is_refused(log: Path, tmp_path: Path) -> None:
    empty, file = tmp_path / "empty.000001", tmp_path / "file"
    empty.touch()
    file.touch()
    first, last = "1:127", f"1:{log.stat().st_size}"
    for argv, says in (
        ((f"file://{empty}",), "the file is empty"),
        ((f"file://{log}", "-t", "orders"), "'orders' matches no table"),
        ((f"file://{log}", "--from", last, "--to", first), "ends before it begins"),
        ((f"file://{log}", "--stats", "--from", last, "--to", first), "ends before it begins"),
        ((f"file://{log}", "-f", "csv", "-o", str(file)), "the output folder cannot be created"),
        ((f"file://{log}", "-f", "csv", "-o", str(file / "below")), "the output folder cannot be created"),
    ):
        with pytest.raises(UsageError, match=says):
            run(*argv)
    assert run(f"file://{log}", "-t", "*.orders") == run(f"file://{log}", "-t", "shop.orders") != ""


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_listing_shows_its_progress_on_a_terminal_only(form: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(30).data)])
    argv = [sys.executable, "-m", "loader", "inspect", str(path), "-f", form]
    piped = subprocess.run(argv, capture_output=True, check=True)
    terminal, stderr = pty.openpty()
    with os.fdopen(terminal, "rb", 0) as shown:
        listed = subprocess.run(argv, stdout=subprocess.PIPE, stderr=stderr, check=True)
        os.close(stderr)
        bar = shown.read(1 << 16)
    assert listed.stdout == piped.stdout
    assert piped.stderr == b""
    assert re.search(rb"[\d.]+/[\d.]+ (kB|bytes)", bar)
