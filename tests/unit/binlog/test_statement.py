"""The statement of a QUERY event, its default database and where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.statement import LogStatement, read_statement
from loader.errors import BinlogFormatError
from tests.unit.binlog.builder import LogBuilder


def body(text: str | bytes, database: str = "") -> bytes:
    log = LogBuilder(checksum=False)
    at = log.query(text, database)
    return bytes(log.data[at + 19 :])


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200), st.text(max_size=40).filter(lambda name: len(name.encode()) < 256 and "\0" not in name))
def test_text_and_database_of_any_characters(text: str, database: str) -> None:
    found = read_statement(body(text, database), 5, "binlog.000001:77", mariadb=False)
    assert found == LogStatement(5, "binlog.000001:77", database, text, False)


def test_bytes_that_are_not_utf8_are_shown_by_their_numbers() -> None:
    found = read_statement(body(b"ALTER TABLE t COMMENT 'caf\xe9'"), 5, "binlog.000001:77", mariadb=True)
    assert found.text == r"ALTER TABLE t COMMENT 'caf\xe9'"
    assert found.mariadb


def test_a_statement_that_is_cut_inside_its_head_is_damage() -> None:
    whole = body("X", "db")
    for length in range(len(whole) - 1):
        with pytest.raises(BinlogFormatError, match="ends before its content"):
            read_statement(whole[:length], 5, "binlog.000001:77", mariadb=False)
