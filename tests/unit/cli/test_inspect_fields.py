"""What `loader inspect` shows of statements and names, and the schemas that `--schema` gives it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from loader.errors import DataError, UsageError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, enum, integer, varchar
from tests.unit.cli.test_inspect_lenient import listed, rows_of


def user_variable(log: LogBuilder, name: str, kind: int, value: bytes, collation: int = 63, flags: int = 0) -> None:
    """A USER_VAR event; `kind` as `Item_result` of the server."""
    head = struct.pack("<I", len(name)) + name.encode() + b"\0"
    log.event(14, head + struct.pack("<BII", kind, collation, len(value)) + value + bytes([flags]))


def by_statement() -> LogBuilder:
    """A transaction of statements with the values that they use."""
    log = LogBuilder()
    log.begin(1)
    log.event(5, b"\x02" + (2**63).to_bytes(8, "little"))
    log.event(13, (7).to_bytes(8, "little") + (2**60).to_bytes(8, "little"))
    user_variable(log, "i", 2, (2**64 - 1).to_bytes(8, "little"), flags=1)
    user_variable(log, "n", 2, (-5).to_bytes(8, "little", signed=True))
    user_variable(log, "r", 1, struct.pack("<d", 1.5))
    user_variable(log, "s", 0, "é".encode("cp1252"), collation=8)
    user_variable(log, "b", 0, b"\0\xff")
    user_variable(log, "d", 4, bytes([4, 2, 0x80 | 12, 34]))
    user_variable(log, "m", 4, bytes([4, 2, 0x7F ^ 12, 0xFF ^ 34]))
    log.event(14, struct.pack("<I", 1) + b"z\1")
    log.event(17, struct.pack("<I", 3) + b"1,2\n")
    log.event(9, struct.pack("<I", 3) + b"3,4\n")
    head = struct.pack("<IIBHH", 1, 0, 4, 0, 0) + struct.pack("<IIIB", 3, 10, 20, 2)
    log.event(18, head + b"shop\0LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t")
    log.query("COMMIT")
    log.event(11, struct.pack("<I", 4))
    return log


def test_statements_are_listed_with_the_values_that_they_use(tmp_path: Path) -> None:
    found = listed(tmp_path, by_statement())
    assert found.exit_code == 0, found.exception
    assert [line for line in found.stdout.splitlines() if line.startswith("- ")][-16:] == [
        "- INTVAR = INSERT_ID 9223372036854775808",
        "- RAND = 7 1152921504606846976",
        "- USER_VAR = @i 18446744073709551615",
        "- USER_VAR = @n -5",
        "- USER_VAR = @r 1.5",
        "- USER_VAR = @s 'é'",
        "- USER_VAR = @b 0x00ff",
        "- USER_VAR = @d 12.34",
        "- USER_VAR = @m -12.34",
        "- USER_VAR = @z NULL",
        "- LOAD_FILE = 3 4 bytes",
        "- LOAD_FILE = 3 4 bytes",
        "- SCHEMA = shop",
        "- SQL(0) = LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t",
        "- END = COMMIT",
        "- FILE_ID = 4",
    ]


def test_statements_in_json(tmp_path: Path) -> None:
    lines: dict[str, list[dict[str, Any]]] = {}
    for text in listed(tmp_path, by_statement(), "-f", "json", "--json-bigint=string").stdout.splitlines():
        line = json.loads(text)
        lines.setdefault(line["type"], []).append(line)
    assert (lines["INTVAR"][0]["kind"], lines["INTVAR"][0]["value"]) == (2, "9223372036854775808")
    assert lines["RAND"][0]["seed2"] == "1152921504606846976"
    assert [one["value"] for one in lines["USER_VAR"]] == [
        "18446744073709551615", "-5", 1.5, "é", "00ff", "12.34", "-12.34", None,
    ]  # fmt: skip
    load = lines["EXECUTE_LOAD_QUERY"][0]
    assert (load["file_id"], load["duplicates"], load["schema"]) == (3, 2, "shop")
    assert load["statement"] == "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t"
    assert lines["BEGIN_LOAD_QUERY"][0]["data"] == b"1,2\n".hex()


def test_names_with_points_have_fields_of_their_own(tmp_path: Path) -> None:
    one, other = (Table(*name, (integer("id"),)) for name in (("a.b", "c"), ("a", "b.c")))
    log = LogBuilder().insert(one, (1,)).insert(other, (2,), number=2)
    lines = [json.loads(line) for line in listed(tmp_path, log, "-f", "json").stdout.splitlines()]
    for kind in ("TABLE_MAP", "WRITE_ROWS"):
        found = [(line["schema"], line["table"]) for line in lines if line["type"] == kind]
        assert found == [("a.b", "c"), ("a", "b.c")]
    counted = [line.split()[0] for line in listed(tmp_path, log, "--stats").stdout.splitlines()[-2:]]
    assert sorted(counted) == ["`a.b`.c", "a.b.c"]


def test_integers_of_64_bits_as_strings(tmp_path: Path) -> None:
    table = Table("s", "t", (integer("id", 8), integer("n", 4)))
    log = LogBuilder().insert(table, (-(2**62), 5))
    assert rows_of(listed(tmp_path, log, "-f", "json"))[0]["after"] == {"id": -(2**62), "n": 5}
    as_text = listed(tmp_path, log, "-f", "json", "--json-bigint", "string")
    assert rows_of(as_text)[0]["after"] == {"id": str(-(2**62)), "n": 5}


def nameless() -> LogBuilder:
    """A row of a table of which the log has only types and character sets."""
    table = Table("shop", "orders", (integer("id"), enum("mood", ["low", "high"]), varchar("name")))
    log = LogBuilder()
    log.begin(1)
    optional = table.optional()
    log.event(19, table.body(100, optional=optional[: optional.index(b"\x04\x0d")]))
    log.write(table, (1, 2, "x"))
    log.xid()
    return log


DUMP = """\
-- MySQL dump 10.13  Distrib 8.4.0; it isn't a statement
/*!40101 SET @saved_cs_client = @@character_set_client */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int NOT NULL COMMENT 'of the shop; not of ''ours''',
  `mood` enum('low','high') DEFAULT NULL,
  `name` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `id`*/;
DELIMITER ;;
CREATE TRIGGER `t` BEFORE INSERT ON `orders` FOR EACH ROW BEGIN SET @a = 1; CREATE TABLE other (i INT); END ;;
DELIMITER ;
"""


@pytest.mark.parametrize("dump", [DUMP, DUMP[DUMP.index("DROP TABLE") :]], ids=["with USE", "without"])
def test_a_dump_gives_names_keys_and_labels(dump: str, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(dump)
    given = ("--schema", str(tmp_path / "dump.sql"))
    assert rows_of(listed(tmp_path, nameless(), "-f", "json"))[0]["after"] == {"@1": 1, "@2": 2, "@3": "x"}
    found = listed(tmp_path, nameless(), "-f", "json", *given)
    assert rows_of(found)[0]["after"] == {"id": 1, "mood": "high", "name": "x"}
    (line,) = [json.loads(line) for line in found.stdout.splitlines() if '"rows"' in line]
    assert line["key"] == ["id"]
    listed(tmp_path, nameless(), "-f", "csv", "-o", str(tmp_path / "out"), *given)
    (file,) = (tmp_path / "out").rglob("*.csv")
    assert file.read_text().endswith(',1,"high","x"\n')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT 1;", "the file of --schema defines no table"),
        ("CREATE TABLE t (a NONSENSE);", "a CREATE TABLE statement cannot be read"),
        (None, "the file of --schema cannot be read"),
    ],
)
def test_a_dump_that_gives_nothing_is_refused(text: str | None, says: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "dump.sql").write_text(text)
    error = listed(tmp_path, nameless(), "--schema", str(tmp_path / "dump.sql")).exception
    assert isinstance(error, UsageError)
    assert error.what == says


def test_a_schema_that_is_not_that_of_the_log_marks_the_rows(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text("CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(10)) CHARSET utf8mb4;")
    found = listed(tmp_path, nameless(), "--schema", str(tmp_path / "dump.sql"))
    assert isinstance(found.exception, DataError)
    assert found.exception.what == "1 row event could not be read"
    assert " - UNREADABLE = the schema given for a table does not match the log: the log has 3 columns" in found.stdout
