"""The statement of a QUERY event, its default database and where it stands."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.statement import read_query
from loader.errors import BinlogFormatError
from tests.unit.binlog.builder import LogBuilder


def body(text: str | bytes, database: str = "") -> bytes:
    log = LogBuilder(checksum=False)
    at = log.query(text, database)
    return bytes(log.data[at + 19 :])


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200), st.text(max_size=40).filter(lambda name: len(name.encode()) < 256 and "\0" not in name))
def test_text_and_database_of_any_characters(text: str, database: str) -> None:
    assert read_query(2, body(text, database)) == (database, text)


def test_bytes_that_are_not_utf8_are_shown_by_their_numbers() -> None:
    assert read_query(2, body(b"ALTER TABLE t COMMENT 'caf\xe9'")) == ("", r"ALTER TABLE t COMMENT 'caf\xe9'")


def test_a_load_data_statement_has_more_before_it() -> None:
    plain = body("LOAD DATA INFILE 'x' INTO TABLE t", "shop")
    event = plain[:13] + struct.pack("<IIIB", 1, 10, 20, 0) + plain[13:]
    assert read_query(18, event) == ("shop", "LOAD DATA INFILE 'x' INTO TABLE t")


def test_a_statement_that_is_cut_inside_its_head_is_damage() -> None:
    whole = body("X", "db")
    for length in range(len(whole) - 1):
        with pytest.raises(BinlogFormatError, match="ends before its content"):
            read_query(2, whole[:length])
