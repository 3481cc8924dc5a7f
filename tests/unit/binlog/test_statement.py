"""The statement of a QUERY event, its default database and its position."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.events.statement import read_query
from loader.errors import BinlogFormatError
from tests.unit.binlog.builder import LogBuilder

FLAGS = b"\0" + bytes(4)


def body(text: str | bytes, database: str = "", variables: bytes = FLAGS) -> bytes:
    log = LogBuilder(checksum=False)
    at = log.query(text, database, variables=variables)
    return bytes(log.data[at + 19 :])


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200), st.text(max_size=40).filter(lambda name: len(name.encode()) < 256 and "\0" not in name))
def test_text_and_database_of_any_characters(text: str, database: str) -> None:
    assert read_query(2, body(text, database)) == (database, text, 0, "")


def test_bytes_that_are_not_utf8_are_marked() -> None:
    assert read_query(2, body(b"ALTER TABLE t COMMENT 'caf\xe9'")) == ("", "ALTER TABLE t COMMENT 'caf\ufffd'", 0, "")


ANSI_AND_STRICT = 1 << 2 | 1 << 22 | 1 << 32
SQL_MODE = b"\1" + ANSI_AND_STRICT.to_bytes(8, "little")
CATALOG = b"\6\3std"


def charset(collation: int) -> bytes:
    """The client's, the connection's and the server's collation."""
    return b"\4" + struct.pack("<HHH", collation, 8, 255)


@pytest.mark.parametrize(
    ("collation", "raw", "text"),
    [
        (8, b"DROP TABLE `caf\xe9\x80`", "DROP TABLE `caf\xe9\u20ac`"), (13, b"DROP TABLE \x83\x5c", "DROP TABLE ソ"),
        (255, "DROP TABLE `ソ`".encode(), "DROP TABLE `ソ`"), (63, "DROP TABLE `é`".encode(), "DROP TABLE `é`"),
        (9999, b"DROP TABLE \xe9", "DROP TABLE \ufffd"), (8, b"DROP TABLE t", "DROP TABLE t"),
    ],
)  # fmt: skip
def test_mode_and_character_set_come_from_the_status_variables(collation: int, raw: bytes, text: str) -> None:
    variables = FLAGS + SQL_MODE + CATALOG + b"\3\1\0\2\0" + charset(collation) + b"\5\6SYSTEM" + b"\x63what follows"
    assert read_query(2, body(raw, "shop", variables)) == ("shop", text, ANSI_AND_STRICT, "utf8mb4")


def test_variables_of_unknown_length_end_the_reading() -> None:
    assert read_query(2, body("X", "shop", FLAGS + b"\x7f" + SQL_MODE)) == ("shop", "X", 0, "")


def test_a_load_data_statement_has_more_before_it() -> None:
    plain = body("LOAD DATA INFILE 'x' INTO TABLE t", "shop")
    event = plain[:13] + struct.pack("<IIIB", 1, 10, 20, 0) + plain[13:]
    assert read_query(18, event) == ("shop", "LOAD DATA INFILE 'x' INTO TABLE t", 0, "")


def test_a_statement_that_is_cut_inside_its_head_is_damage() -> None:
    whole = body("X", "db")
    for length in range(len(whole) - 1):
        with pytest.raises(BinlogFormatError, match="ends before its last field"):
            read_query(2, whole[:length])
