"""The reader of rows against a server that does not keep to the protocol."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from loader.errors import DataError, LoaderError
from loader.initial_load.result_set.reader import ResultReader
from loader.model.table import Column, TableName, TableSchema
from loader.transport.server.connection import connected, log_sizes
from tests.unit.initial_load.packets import packed, packet, row
from tests.unit.transport.hostile import EOF, Wire, any_one, described, hostile

pytestmark = pytest.mark.timeout(30)
NAME = TableName("shop", "t")
TEXT = TableSchema(NAME, (Column("v", "varchar", charset="utf8mb4"),), ())
DECIMAL = TableSchema(NAME, (Column("v", "decimal", size=10, scale=2),), ())
ROW = row(packed(b"1.50"))


def server(rows: bytes, column: bytes) -> Callable[[Wire, bytes], bool]:
    """Answers the two commands of a prepared statement; what the rows are is raw."""

    def answer(wire: Wire, command: bytes) -> bool:
        if command[:1] == b"\x16":
            wire.send(b"\0" + struct.pack("<IHHBH", 1, 1, 0, 0, 0), column, EOF)
        elif command[:1] == b"\x17":
            wire.send(b"\1", column, EOF)
            wire.raw(rows)
        return command[:1] != b"\x17"

    return answer


def read(rows: bytes, schema: TableSchema = TEXT, column: bytes = b"") -> bytes:
    column = column or (described() if schema is TEXT else described(kind=246, charset=63, scale=2))
    found = bytearray()
    with hostile(any_one(server(rows, column))) as source, connected(source.address) as connection:
        ResultReader(connection, schema, b"").read("SELECT", found.extend)
    return bytes(found)


def test_rows_of_this_server_are_read() -> None:
    assert read(packet(ROW) + packet(EOF)) == b'"1.50"\n'
    assert read(packet(ROW) + packet(EOF), DECIMAL) == b"1.50\n"


@pytest.mark.parametrize(
    "end", [b"\0\0\0\3", packet(b"\1more"), packet(b"\xfb/etc/passwd"), packet(b"\xfe" + b"x" * 300)]
)
def test_rows_end_only_by_the_packet_that_ends_them(end: bytes) -> None:
    with pytest.raises(DataError, match="violates the MySQL protocol"):
        read(packet(ROW) + end)


@pytest.mark.parametrize(
    "value", [b"1\nI,9,0,,,2", b"1,2", b"", b"-", b"1.2.3", b"0x10", b"1e5", b" 1", b"\\N", b"1.", b"--1"]
)
def test_a_decimal_that_is_no_number_is_not_staged(value: bytes) -> None:
    with pytest.raises(DataError, match="a value is not a decimal"):
        read(packet(row(packed(value))) + packet(EOF), DECIMAL)


def test_a_size_beyond_its_type_is_refused_before_a_row_is_read() -> None:
    for kind, code, size in (("datetime", 12, 200), ("time", 11, 7), ("timestamp", 7, 99)):
        schema = TableSchema(NAME, (Column("v", kind, size=size),), ())
        with pytest.raises(DataError, match="the definition of a table is invalid"):
            read(
                packet(row(packed(struct.pack("<HBB", 2024, 1, 2)))) + packet(EOF),
                schema,
                described(kind=code, scale=size),
            )


@pytest.mark.parametrize(
    "reply", [b"\xfb/etc/passwd", b"\xfc\1", b"\xfe\0\0\0\0", b"\xff", b"\xff\1\4", b"\2", b"\1\2\3"]
)
@pytest.mark.parametrize("command", [b"\x16", b"\x17"])
def test_a_reply_that_is_none_is_an_error_that_says_so(command: bytes, reply: bytes) -> None:
    def answer(wire: Wire, sent: bytes) -> bool:
        if sent[:1] == command:
            wire.send(reply)
        else:
            server(b"", described())(wire, sent)
        return sent[:1] != command

    with pytest.raises(LoaderError), hostile(any_one(answer)) as source, connected(source.address) as connection:
        ResultReader(connection, TEXT, b"").read("SELECT", lambda _: None)


def test_a_request_for_a_local_file_is_refused() -> None:
    def answer(wire: Wire, _: bytes) -> bool:
        wire.send(b"\xfb/etc/passwd")
        wire.receive()
        return False

    with hostile(any_one(answer)) as source:
        with pytest.raises(LoaderError, match="the server sent") as caught, connected(source.address) as connection:
            log_sizes(connection)
        assert "LOAD_LOCAL" in caught.value.why
        assert b"root:" not in source.heard
