"""`loader inspect` on logs of real servers that staging refuses or that have statements instead of rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import DataError
from loader.model.position import Position
from tests.integration.binlog.source import Source

pytestmark = pytest.mark.integration


@pytest.fixture
def mysql(source: Source) -> Source:
    if source.kind != "mysql":
        pytest.skip("a feature of MySQL")
    return source


@pytest.fixture
def mariadb(source: Source) -> Source:
    if source.kind != "mariadb":
        pytest.skip("a feature of MariaDB")
    return source


def listed(source: Source, start: Position, *argv: str) -> Result:
    """What the command makes of the server's own files between a mark and now."""
    span = ("--from", str(start), "--to", str(source.mark()))
    return CliRunner().invoke(app, ["inspect", f"file://{source.server.log_dir}", *span, *argv])


def changes(result: Result) -> list[tuple[Any, Any]]:
    """The images before and after of each row of a listing in JSON."""
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [(row["before"], row["after"]) for line in lines for row in line.get("rows", [])]


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_minimal_images_need_no_key(mysql: Source, metadata: str) -> None:
    mysql.run(
        "DROP TABLE IF EXISTS m", "CREATE TABLE m (id INT, name VARCHAR(20), n INT DEFAULT 7)",
        f"SET GLOBAL binlog_row_metadata = {metadata}", "SET SESSION binlog_row_image = MINIMAL",
    )  # fmt: skip
    start = mysql.mark()
    try:
        mysql.run("INSERT INTO m (id) VALUES (1)", "INSERT INTO m VALUES ()", "UPDATE m SET n = 8 WHERE id = 1")
        mysql.run("DELETE FROM m WHERE id = 1")
    finally:
        mysql.run("SET GLOBAL binlog_row_metadata = FULL", "SET SESSION binlog_row_image = FULL")
    found = listed(mysql, start, "-f", "json")
    assert found.exit_code == 0, found.exception
    a, b, c = ("id", "name", "n") if metadata == "FULL" else ("@1", "@2", "@3")
    before = {a: 1, b: None, c: 7}
    inserted, *_ = rows = changes(found)
    assert inserted == (None, {a: 1})
    assert rows[-2:] == [(before, before | {c: 8}), ({**before, c: 8}, None)]
    stats = listed(mysql, start, "--stats", "-f", "json")
    assert stats.exit_code == 0, stats.exception
    (table,) = json.loads(stats.stdout)["tables"]
    assert (table["schema"], table["table"], table["deletes"]) == (mysql.schema, "m", 2)


def test_a_byte_that_is_no_character_is_marked(mysql: Source) -> None:
    mysql.run("DROP TABLE IF EXISTS c", "CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1251)")
    start = mysql.mark()
    mysql.run("INSERT INTO c VALUES (1, 'б'), (2, CONVERT(X'6198' USING cp1251)), (3, 'в')")
    found = listed(mysql, start, "-f", "json")
    assert isinstance(found.exception, DataError)
    assert (found.exception.exit_code, found.exception.what) == (4, "1 value could not be read")
    after = [row["v"] for _, row in changes(found)]
    assert after == ["б", {"hex": "6198"}, "в"]
    assert "COL(2: v) = 0x6198 (unreadable)" in listed(mysql, start).stdout


def test_a_partial_update_without_its_document_is_shown_as_logged(mysql: Source) -> None:
    mysql.run("DROP TABLE IF EXISTS j", "CREATE TABLE j (id INT PRIMARY KEY, d JSON)")
    mysql.run("INSERT INTO j VALUES (1, JSON_OBJECT('key', REPEAT('x', 100), 'n', 1)), (2, '{}')")
    mysql.run("SET SESSION binlog_row_image = MINIMAL, SESSION binlog_row_value_options = PARTIAL_JSON")
    start = mysql.mark()
    mysql.run("UPDATE j SET d = JSON_SET(d, '$.n', 2) WHERE id = 1", "UPDATE j SET d = '[1]' WHERE id = 2")
    mysql.run("SET SESSION binlog_row_image = FULL, SESSION binlog_row_value_options = ''")
    found = listed(mysql, start, "-f", "json")
    assert isinstance(found.exception, DataError)
    assert found.exception.what == "1 value could not be read"
    (_, first), (_, second) = changes(found)
    assert bytes.fromhex(first["d"]["hex"])[1:5] == b"\x03$.n"  # operation, then the length of the path and the path
    assert second["d"] == "[1]"


def test_statements_and_the_values_that_they_use(source: Source, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,one\n2,two\n")
    source.run(
        "DROP TABLE IF EXISTS l", "CREATE TABLE l (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), d DECIMAL(8,3))",
        "SET SESSION binlog_format = STATEMENT",
    )  # fmt: skip
    start = source.mark()
    try:
        source.run("SET @text = 'é', @whole = -5, @exact = -12.345, @real = 1.5e0, @bytes = X'00ff'")
        source.run("INSERT INTO l (v, d) VALUES (@text, @exact), (@bytes, @whole + @real)")
        source.run("INSERT INTO l (id, v) VALUES (RAND() * 0 + 50, LAST_INSERT_ID())")
    finally:
        source.run("SET SESSION binlog_format = ROW")
    text = listed(source, start)
    assert text.exit_code == 0, text.exception
    shown = [line for line in text.stdout.splitlines() if line.startswith(("- INTVAR", "- USER_VAR", "- END"))]
    assert "- INTVAR = INSERT_ID 1" in shown
    assert {line for line in shown if "USER_VAR" in line} == {
        "- USER_VAR = @text 'é'", "- USER_VAR = @whole -5", "- USER_VAR = @exact -12.345", "- USER_VAR = @real 1.5",
        "- USER_VAR = @bytes 0x00ff",
    }  # fmt: skip
    assert "- RAND = " in text.stdout
    assert sum(line.startswith("- END = XID ") for line in shown) == 2
    variables = [json.loads(line) for line in listed(source, start, "-f", "json").stdout.splitlines()]
    values = {line["name"]: line["value"] for line in variables if line["type"] == "USER_VAR"}
    assert values == {"text": "é", "whole": -5, "exact": "-12.345", "real": 1.5, "bytes": "00ff"}


def test_load_data_as_a_statement(source: Source) -> None:
    (folder,) = source.rows("SELECT @@secure_file_priv, @@datadir")
    file = Path(str(folder[0] or folder[1])) / "listing.csv"
    file.write_text("1,one\n2,two\n")
    file.chmod(0o644)
    source.run("DROP TABLE IF EXISTS ld", "CREATE TABLE ld (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("SET SESSION binlog_format = STATEMENT")
    start = source.mark()
    try:
        source.run(f"LOAD DATA INFILE '{file}' REPLACE INTO TABLE ld FIELDS TERMINATED BY ','")
    finally:
        source.run("SET SESSION binlog_format = ROW")
        file.unlink()
    text = listed(source, start).stdout
    # The server numbers the files of all its statements.
    assert re.search(r"- LOAD_FILE = \d+ 12 bytes", text)
    assert "LOAD DATA INFILE" in text
    lines = [json.loads(line) for line in listed(source, start, "-f", "json").stdout.splitlines()]
    (begin,) = [line for line in lines if line["type"] == "BEGIN_LOAD_QUERY"]
    (load,) = [line for line in lines if line["type"] == "EXECUTE_LOAD_QUERY"]
    assert bytes.fromhex(begin["data"]) == b"1,one\n2,two\n"
    assert (load["file_id"], load["schema"], load["duplicates"]) == (begin["file_id"], source.schema, 2)
    name = load["statement"].encode()[load["name_start"] : load["name_end"]].decode()
    assert "INFILE" in name
    assert file.name in name


def test_old_times_of_mariadb_are_read_without_fractions(mariadb: Source) -> None:
    mariadb.run(
        "SET GLOBAL mysql56_temporal_format = OFF", "DROP TABLE IF EXISTS o",
        "CREATE TABLE o (id INT PRIMARY KEY, ts TIMESTAMP, dt DATETIME, tm TIME)",
        "CREATE TABLE o3 (id INT PRIMARY KEY, ts TIMESTAMP(3), v VARCHAR(100))",
        "SET GLOBAL mysql56_temporal_format = ON",
    )  # fmt: skip
    start = mariadb.mark()
    mariadb.run("INSERT INTO o VALUES (1, '2024-02-03 04:05:06', '2024-02-03 04:05:06', '-12:34:56')")
    found = listed(mariadb, start, "-f", "json")
    assert found.exit_code == 0, found.exception
    assert list(changes(found)[0][1].values())[1:] == ["2024-02-03 04:05:06", "2024-02-03 04:05:06", "-12:34:56"]
    assert f"times in an old format of {mariadb.schema}.o are read without fractions" in found.stderr
    start = mariadb.mark()
    mariadb.run("INSERT INTO o3 VALUES (1, '2024-02-03 04:05:06.789', 'text')")
    wrong = listed(mariadb, start, "-f", "json")
    assert isinstance(wrong.exception, DataError)
    assert wrong.exception.what == "1 row event could not be read"
    address = f"mysql://{mariadb.address.user}@{mariadb.address.host}:{mariadb.address.port}/"
    right = listed(mariadb, start, "-f", "json", "--schema", address)
    assert right.exit_code == 0, right.exception
    assert changes(right) == [(None, {"id": 1, "ts": "2024-02-03 04:05:06.789", "v": "text"})]


def test_a_server_gives_the_names_that_its_log_lacks(source: Source) -> None:
    lacking, whole = ("MINIMAL", "FULL") if source.kind == "mysql" else ("NO_LOG", "FULL")
    source.run("DROP TABLE IF EXISTS s", "CREATE TABLE s (id INT PRIMARY KEY, e ENUM('x', 'y'), v VARCHAR(9))")
    source.run(f"SET GLOBAL binlog_row_metadata = {lacking}")
    start = source.mark()
    source.run("INSERT INTO s VALUES (1, 'y', 'é')", f"SET GLOBAL binlog_row_metadata = {whole}")
    assert [list(row) for _, row in changes(listed(source, start, "-f", "json"))] == [["@1", "@2", "@3"]]
    address = f"mysql://{source.address.user}@{source.address.host}:{source.address.port}/"
    found = listed(source, start, "-f", "json", "--schema", address)
    assert found.exit_code == 0, found.exception
    assert changes(found) == [(None, {"id": 1, "e": "y", "v": "é"})]
