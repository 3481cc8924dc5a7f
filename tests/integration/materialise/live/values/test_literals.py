"""Literals of statements that the server reads otherwise than their text: the table stops, or is equal."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pymysql
import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ID = "id INT PRIMARY KEY"
U8 = "VARCHAR(10) CHARACTER SET utf8mb4 NOT NULL DEFAULT"
L1 = "VARCHAR(10) CHARACTER SET latin1 NOT NULL DEFAULT"
BOTH = ("mysql", "mariadb")
CASES: dict[str, tuple[tuple[str, ...], str, str, list[str]]] = {
    # A literal with an introducer, or N'...', is not in the character set of the client.
    "introducer": (BOTH, ID, "(1)", ["SET NAMES latin1", f"ALTER TABLE t ADD c {U8} _utf8mb4'é'"]),
    "national": (BOTH, ID, "(1)", ["SET NAMES latin1", f"ALTER TABLE t ADD c {U8} N'é'"]),
    # Nothing is converted from or to the character set binary.
    "names_binary": (BOTH, ID, "(1)", ["SET NAMES binary", f"ALTER TABLE t ADD c {L1} 'é'"]),
    "names_binary_enum": (BOTH, ID, "(1)", ["SET NAMES binary", "ALTER TABLE t ADD c ENUM('é','b') CHARACTER SET latin1 NOT NULL"]),
    "client_binary": (BOTH, ID, "(1)", ["SET character_set_client=binary, character_set_connection=latin1", f"ALTER TABLE t ADD c {U8} 'é'"]),
    "connection_binary": (BOTH, ID, "(1)", ["SET character_set_connection=binary", f"ALTER TABLE t ADD c {L1} 'é'"]),
    "latin1_to_binary": (BOTH, ID, "(1)", ["SET character_set_client=latin1, character_set_connection=binary", f"ALTER TABLE t ADD c {U8} 'é'"]),
    # Bytes that are invalid in the client's character set become question marks, although they may be valid UTF-8.
    "client_ascii": (BOTH, ID, "(1)", ["SET character_set_client=ascii", f"ALTER TABLE t ADD c {U8} 'é'"]),
    "client_utf8mb3": (BOTH, ID, "(1)", ["SET character_set_client=utf8mb3", f"ALTER TABLE t ADD c {U8} 'a😀b'"]),
    "client_utf8mb3_enum": (BOTH, ID, "(1)", ["SET character_set_client=utf8mb3", "ALTER TABLE t ADD c ENUM('a😀b','x') CHARACTER SET utf8mb4 NOT NULL"]),
    "client_gbk": (BOTH, ID, "(1)", ["SET character_set_client=gbk", f"ALTER TABLE t ADD c {U8} '漢'"]),
    "client_cp1257": (BOTH, ID, "(1)", ["SET character_set_client=cp1257", f"ALTER TABLE t ADD c {U8} 'á'"]),
    # ASCII bytes are other characters in swe7; a binary column gets the bytes of the connection's character set.
    "client_swe7": (BOTH, ID, "(1)", ["SET NAMES swe7", f"ALTER TABLE t ADD c {U8} 'a[b'"]),
    "client_swe7_backslash": (BOTH, ID, "(1)", ["SET NAMES swe7", f"ALTER TABLE t ADD c {U8} 'a\\\\b'"]),
    "client_swe7_pattern": (BOTH, ID, "(1)", ["SET NAMES swe7", f"ALTER TABLE t ADD c {U8} 'a\\%b'"]),
    "client_swe7_plain": (BOTH, ID, "(1)", ["SET NAMES swe7, sql_mode='NO_BACKSLASH_ESCAPES'", f"ALTER TABLE t ADD c {U8} 'a\\b'"]),
    "connection_swe7_backslash": (BOTH, ID, "(1)", ["SET character_set_connection=swe7", f"ALTER TABLE t ADD c {U8} 'a\\\\b'"]),
    "connection_swe7": (BOTH, ID, "(1)", ["SET character_set_connection=swe7", f"ALTER TABLE t ADD c {U8} 'a[b'"]),
    "connection_ucs2": (BOTH, ID, "(1)", ["SET character_set_connection=ucs2", "ALTER TABLE t ADD c VARBINARY(20) NOT NULL DEFAULT 'ab'"]),
    # A removed label that the server reads as a number becomes the label with that number.
    "label_plus": (BOTH, f"{ID}, v ENUM('+1','no')", "(1, '+1')", ["ALTER TABLE t MODIFY v ENUM('yes','no')"]),
    "label_space": (BOTH, f"{ID}, v ENUM(' 1','no')", "(1, ' 1')", ["ALTER TABLE t MODIFY v ENUM('yes','no')"]),
    "label_tab": (BOTH, f"{ID}, v ENUM('\\t2','no')", "(1, '\\t2')", ["ALTER TABLE t MODIFY v ENUM('yes','no')"]),
    "label_minus": (("mysql",), f"{ID}, v ENUM('-0','no')", "(1, '-0')", ["ALTER TABLE t MODIFY v ENUM('yes','no')"]),
    # A TIMESTAMP that becomes a part of the primary key gets the time of the statement for NULL.
    "timestamp_key": (("mariadb",), "id INT NOT NULL, ts TIMESTAMP NULL", "(1, NULL)", ["ALTER TABLE t ADD PRIMARY KEY (id, ts)"]),
    # Strict mode cuts trailing whitespace that is no space as well.
    "char_tab": (BOTH, f"{ID}, v CHAR(10)", "(1, 'abc\\t')", ["ALTER TABLE t MODIFY v CHAR(3)"]),
    "char_newlines": (BOTH, f"{ID}, v CHAR(10)", "(1, 'abc\\r\\n')", ["ALTER TABLE t MODIFY v VARCHAR(3)"]),
    "text_newline": (BOTH, f"{ID}, v TEXT", "(1, 'abc\\n')", ["ALTER TABLE t MODIFY v VARCHAR(3)"]),
    "latin1_space": (BOTH, f"{ID}, v CHAR(10) CHARACTER SET latin1", "(1, 'abc\u00a0')", ["ALTER TABLE t MODIFY v CHAR(3) CHARACTER SET latin1"]),
    "varchar_tab": (BOTH, f"{ID}, v VARCHAR(10) CHARACTER SET latin1", "(1, 'abc\\t')", ["ALTER TABLE t MODIFY v VARCHAR(3)"]),
    "tinytext_tab": (BOTH, f"{ID}, v VARCHAR(400)", "(1, CONCAT(REPEAT('x', 255), '\\t'))", ["ALTER TABLE t MODIFY v TINYTEXT"]),
    "label_cut": (BOTH, f"{ID}, v ENUM('abc\\n','b')", "(1, 1)", ["ALTER TABLE t MODIFY v VARCHAR(3)"]),
    # A column that must not be NULL gets its implicit default, although the statement says DEFAULT NULL.
    "default_null": (("mysql",), ID, "(1)", ["SET sql_mode=''", "ALTER TABLE t ADD c INT NOT NULL DEFAULT (NULL)"]),
    "default_null_key": (("mariadb",), "id INT NOT NULL", "(1)", ["ALTER TABLE t ADD c INT DEFAULT NULL, ADD PRIMARY KEY (id, c)"]),
    "default_null_lax_key": (BOTH, "id INT NOT NULL", "(1)", ["SET sql_mode=''", "ALTER TABLE t ADD c INT DEFAULT (NULL), ADD PRIMARY KEY (id, c)"]),
    # Literals that are not stored as they are written.
    "negative_zero": (BOTH, ID, "(1)", ["ALTER TABLE t ADD c DOUBLE NOT NULL DEFAULT '-0.0'"]),
    "date_text": (("mariadb",), ID, "(1)", ["ALTER TABLE t ADD c VARCHAR(30) NOT NULL DEFAULT DATE'20-1-1'"]),
    "negative_time": (BOTH, ID, "(1)", ["ALTER TABLE t ADD c TIME NOT NULL DEFAULT '-00:00:00'"]),
    "hex_string": (("mariadb",), ID, "(1)", ["ALTER TABLE t ADD c BIGINT NOT NULL DEFAULT x'3132'"]),
    "underscore": (("mysql",), ID, "(1)", ["SET sql_mode=''", "ALTER TABLE t ADD c DECIMAL(9,2) NOT NULL DEFAULT '1_0'"]),
    "empty_is_null": (("mariadb",), ID, "(1)", ["SET sql_mode='EMPTY_STRING_IS_NULL,STRICT_TRANS_TABLES'", "ALTER TABLE t ADD c VARCHAR(5) DEFAULT ''"]),
    # The event has the sql_mode inside the statement, which was parsed with the one before it.
    "set_statement": (("mariadb",), ID, "(1)", ["SET STATEMENT sql_mode='NO_BACKSLASH_ESCAPES' FOR ALTER TABLE t ADD c VARCHAR(10) NOT NULL DEFAULT 'a\\\\b'"]),
}  # fmt: skip


def seen(value: Any) -> str:
    """A value as the warehouse has it."""
    if isinstance(value, timedelta):
        return f"{str(value).rjust(8, '0')}"
    if isinstance(value, datetime):
        return str(value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC))
    return repr(value) if isinstance(value, float) else str(value)


def test_existing_rows(live: LiveSource) -> None:
    kind = "mariadb" if "MariaDB" in live.run("SELECT VERSION()")[0][0] else "mysql"
    cases = {name: case[1:] for name, case in CASES.items() if kind in case[0]}
    for name, (columns, row, _) in cases.items():
        live.run("SET sql_mode = ''", f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES {row}")
    live.load()
    refused = []
    for name, (_, _, statements) in cases.items():
        strict = "SET sql_mode = 'STRICT_TRANS_TABLES'"
        try:
            live.run(strict, *(one.replace("TABLE t ", f"TABLE {name} ") for one in statements))
        except pymysql.MySQLError as error:
            refused.append(f"{name}: {error}")
    by = {one.table.partition(".")[2]: one for one in live.delta().tables}
    wrong = []
    for name in cases:
        there, here = live.server_rows(name), live.warehouse_rows(name) or {}
        same = sorted(tuple(map(seen, row)) for row in there) == sorted(tuple(map(seen, row)) for row in here)
        if not same and by[name].status in {"applied", "unchanged", "already"}:
            wrong.append(f"{name}: {by[name].status}, server {list(there)}, warehouse {list(here)}")
    assert refused == []
    assert wrong == [], "\n".join(wrong)


def test_names_without_quotes_that_end_with_a_space_of_unicode(live: LiveSource) -> None:
    """The server takes the space for a letter of the name, so it is the name of another table."""
    names = ("t", "t\u3000", "t€")
    live.run(*(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)" for name in names))
    live.run(*(f"INSERT INTO `{name}` VALUES (1)" for name in names))
    live.load()
    live.run("SET NAMES utf8mb4", "TRUNCATE TABLE t\u3000", "DROP TABLE t€")
    assert {one.table.partition(".")[2]: one.error for one in live.delta().tables} == dict.fromkeys(names)
    assert (live.server_rows("t"), live.warehouse_rows("t")) == (Counter([(1,)]), Counter([(1,)]))


def test_names_in_sessions_whose_ascii_bytes_are_letters(live: LiveSource) -> None:
    """In swe7, the bytes of `t[` are the name `tÄ`."""
    names = ("t", "t[", "tÄ")
    live.run(*(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)" for name in names))
    live.run(*(f"INSERT INTO `{name}` VALUES (1)" for name in names))
    live.load()
    live.run("SET NAMES swe7", "TRUNCATE TABLE `t[`", "SET NAMES utf8mb4", "INSERT INTO t VALUES (2)")
    assert live.run("SELECT COUNT(*) FROM `tÄ`") == [(0,)]
    assert live.statuses(live.delta()) == dict.fromkeys(names, "quarantined")


def test_labels_of_logs_without_names(live: LiveSource) -> None:
    """Labels come from the statement if the log has none. So every row has the wrong label, not only existing ones."""
    kind = "mariadb" if "MariaDB" in live.run("SELECT VERSION()")[0][0] else "mysql"
    full, less = ("FULL", "NO_LOG") if kind == "mariadb" else ("FULL", "MINIMAL")
    live.run("CREATE TABLE first (id INT PRIMARY KEY)")
    live.run(f"SET GLOBAL binlog_row_metadata = {less}")
    try:
        live.load()
        live.run(
            "SET NAMES binary",
            "CREATE TABLE labels (id INT PRIMARY KEY, v ENUM('é','x') CHARACTER SET latin1)",
            "INSERT INTO labels VALUES (1, 1)",
            "SET character_set_client=ascii, character_set_connection=utf8mb4",
            "CREATE TABLE other (id INT PRIMARY KEY, v ENUM('é','x') CHARACTER SET utf8mb4)",
            "INSERT INTO other VALUES (1, 1)",
        )
        statuses = live.statuses(live.delta())
    finally:
        live.run(f"SET GLOBAL binlog_row_metadata = {full}")
    assert [name for name in live.differences() if statuses.get(name) == "applied"] == []
