"""Reads the rows of one statement as staged lines, through the binary result of a prepared statement.

Format: the protocol's COM_STMT_PREPARE and COM_STMT_EXECUTE. PyMySQL manages the connection, but does not parse the
rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from pymysql.connections import Connection
from pymysql.constants import CLIENT
from pymysql.err import OperationalError
from pymysql.protocol import FieldDescriptorPacket

from loader.binlog.native.buffer import Bytes
from loader.binlog.program import why_not_text
from loader.binlog.stager import HEX_HINT
from loader.errors import DataError
from loader.initial_load.result_set import kernel as k
from loader.initial_load.result_set.program import Program, compile_program
from loader.model.table import TableSchema
from loader.resources import sql
from loader.transport.dump import raise_error
from loader.transport.server.driver import read_packet, reply_stream, send_command

_PREPARE, _EXECUTE, _CLOSE = 0x16, 0x17, 0x19
_BLOCK = 1024 * 1024
_OUT_BYTES = 4 * 1024 * 1024
_PREPARED = struct.Struct("<xIHH")
_EOF_MOST = 8  # bytes of an EOF packet; a longer packet with the same first byte is a value
_MOST = 8 * 1024 * 1024 * 1024

Write = Callable[[memoryview], object]


def prepare_session(connection: Connection[Any]) -> None:
    """Make the connection send text in the character sets of its columns; see sql/initial_load/session.sql."""
    with connection.cursor() as cursor:
        cursor.execute(sql("initial_load/session"))


def line_head(seqno: int, committed_at: str) -> bytes:
    """Return the start of the line of every loaded row: an insert at offset 0 of its transaction, no column absent."""
    return f"I,{seqno},0,{committed_at},,".encode()


class ResultReader:
    """Reads results on one connection. `schema` describes the columns that its statements select.

    `hex_fallback`: bytes that are invalid in their character set are written as hex. Otherwise they are an error.
    """

    def __init__(
        self, connection: Connection[Any], schema: TableSchema, head: bytes, *, hex_fallback: bool = False
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._hex_fallback = hex_fallback
        self._head = np.frombuffer(head, np.uint8).copy()
        self._block: Bytes = np.empty(_BLOCK, np.uint8)
        self._out: Bytes = np.empty(_OUT_BYTES, np.uint8)

    def read(self, statement: str, write: Write) -> int:
        """Run the statement, pass its rows as whole lines to `write`, in blocks, and return the number of rows.

        Raises:
            MySQLError: from the driver: the server refuses, possibly between rows, or the connection is lost.
            DataError: the result does not fit the schema.
        """
        number = self._prepare(statement)
        program = compile_program(self._schema, self._execute(number), hex_fallback=self._hex_fallback)
        state = np.zeros(4, np.int64)
        size = self._buffered()
        while True:
            state[k.AT] = 0
            status = self._stage(size, program, state, write)
            kept = size - int(state[k.AT])
            self._block[:kept] = self._block[size - kept : size].copy()
            if status == k.REPLY:
                break
            size = kept + self._fill(kept)
        self._end(kept)
        send_command(self._connection, _CLOSE, struct.pack("<I", number))
        return int(state[k.ROWS])

    def _prepare(self, statement: str) -> int:
        connection = self._connection
        send_command(connection, _PREPARE, statement)
        reply = read_packet(connection).get_all_data()
        if reply[0] != 0 or len(reply) < _PREPARED.size:
            raise self._no_result("the server did not answer COM_STMT_PREPARE")
        number, columns, _ = _PREPARED.unpack_from(reply)
        self._described(columns)
        return int(number)

    def _execute(self, number: int) -> list[FieldDescriptorPacket]:
        connection = self._connection
        send_command(connection, _EXECUTE, struct.pack("<IBI", number, 0, 1))
        columns = read_packet(connection).read_length_encoded_integer()
        if columns is None:  # 0xfb: the server requests a local file (LOAD DATA LOCAL)
            raise self._no_result("the server asks for a file instead of sending rows")
        return self._described(columns)

    def _described(self, columns: int) -> list[FieldDescriptorPacket]:
        connection = self._connection
        found = [read_packet(connection, FieldDescriptorPacket) for _ in range(columns)]
        if not self._ends_with_ok:
            read_packet(connection)
        return found

    def _buffered(self) -> int:
        """Take over the bytes that the driver has read ahead, and return their number."""
        stream = reply_stream(self._connection)
        size = len(stream.peek())
        return int(stream.readinto(self._block.data[:size]))

    def _fill(self, kept: int) -> int:
        """Read the next bytes after the kept ones. A row larger than the block makes the block grow."""
        if kept == len(self._block):
            self._block = np.concatenate([self._block, np.empty(self._grown(self._block), np.uint8)])
        got = reply_stream(self._connection).raw.readinto(self._block.data[kept:])
        if not got:
            raise OperationalError(2013, "Lost connection to the server during the result")
        return got

    def _stage(self, size: int, program: Program, state: k.Ints, write: Write) -> int:
        """Write the lines of all whole rows in the block; return MORE or REPLY."""
        while True:
            status = k.stage_result(self._block, size, self._head, program.columns, program.tables, self._out, state)
            filled = int(state[k.OUT])
            if status == k.NO_ROOM and not filled:
                self._out = np.empty(len(self._out) + self._grown(self._out), np.uint8)
                continue
            if filled and status != k.MORE:
                write(self._out.data[:filled])
                state[k.OUT] = 0
            if status in {k.BAD_VALUE, k.DAMAGED}:
                self._refuse(status, state)
            if status != k.NO_ROOM:
                return status

    def _grown(self, block: Bytes) -> int:
        if len(block) >= _MOST:
            raise DataError("a row of the result is larger than 8 GiB", table=self._schema.name)
        return len(block)

    def _end(self, size: int) -> None:
        """Check that the packet after the rows ends them, so that no rows are missing."""
        reply = self._block[4:size].tobytes()[: int.from_bytes(self._block[:3].tobytes(), "little")]
        if reply[:1] == b"\xff":
            raise_error(reply)
        if reply[:1] != b"\xfe" or (len(reply) > _EOF_MOST and not self._ends_with_ok):
            raise self._no_result("the result does not end after its rows")

    @property
    def _ends_with_ok(self) -> bool:
        """Whether rows end with an OK packet instead of an EOF packet."""
        connection = self._connection
        return bool(connection.client_flag & connection.server_capabilities & CLIENT.DEPRECATE_EOF)

    def _no_result(self, why: str) -> DataError:
        return DataError(
            "the server's answer violates the MySQL protocol",
            why=why,
            hint="check for a proxy between the loader and the server that modifies the traffic",
            table=self._schema.name,
        )

    def _refuse(self, status: int, state: k.Ints) -> NoReturn:
        if status == k.BAD_VALUE:
            column = self._schema.columns[int(state[k.COLUMN])]
            raise DataError(
                f"a value is not a {column}" + (f" in {column.charset}" if column.charset else ""),
                why=why_not_text(column, self._schema.key, hex_fallback=self._hex_fallback),
                hint="fix the value at the source and run the load again"
                + (HEX_HINT if column.charset and not self._hex_fallback else ""),
                table=self._schema.name,
                column=column.name,
            )
        raise DataError("a row of the result does not fit its columns", table=self._schema.name)
