"""From a window of log to its events. Row events go through the very kernels that stage them; the rest is plain."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, FORMAT_DESCRIPTION, HEADER, ROWS
from loader.binlog.index import placed
from loader.binlog.registry import TableRegistry
from loader.binlog.stager import Stager, Timing
from loader.model.gtid import Gtid
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.reader.bodies import OLD_FORMAT, read_body
from loader.reader.events import (
    DeleteRowsEvent,
    Event,
    EventHeader,
    GtidEvent,
    MariadbGtidEvent,
    RowsEvent,
    TableMapEvent,
    Transaction,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from loader.reader.window import BLOCK, Block, LogBytes, Window

_HEADER = struct.Struct("<IBIIIH")
_ROWS = {23: WriteRowsEvent, 24: UpdateRowsEvent, 25: DeleteRowsEvent,
         30: WriteRowsEvent, 31: UpdateRowsEvent, 32: DeleteRowsEvent}  # fmt: skip
_NO_TABLE = TableName("", "")


class Decoder:
    """Decodes windows of one log file, one after the other."""

    def __init__(self, log: LogBytes, place: Position, registry: TableRegistry) -> None:
        self._log = log
        self._place = place
        self._registry = registry
        self._staged: list[bytes] = []
        self._stager = Stager(registry, log.name, place.lognum, log.form.checksum, 0, True, self._write)
        self._tables: dict[int, TableName] = {}

    def events(self, window: Window) -> Iterator[Event]:
        """The window's events in their order.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: by file and position; what stands before was given.
        """
        timing = self._stager.timing(window.index.transactions)
        rows = window.index.rows
        offsets = rows[:, w.R_OFFSET]
        transaction: Transaction | None = None
        number, count = 0, len(window.index.transactions)
        for header, block, base in self._headers(window):
            while number < count and header.position >= window.index.transactions[number, w.T_END]:
                number, transaction = number + 1, None
                self._tables.clear()
            inside = number < count and header.position >= timing.begins[number]
            body = block[
                header.position - base + HEADER : header.position - base + header.size - self._log.form.checksum
            ]
            if inside and transaction is None:
                transaction = self._transaction(window, number, header, body.tobytes())
            if CLASSES[header.type] == ROWS:
                at = int(np.searchsorted(offsets, header.position))
                mine = rows[at : at + 1] if at < len(rows) and offsets[at] == header.position else rows[:0]
                yield self._rows(header, transaction, (block, base), mine, timing)
                continue
            with placed(self._log.name, header.position):
                event = read_body(header, transaction, self._body(header, block, base))
            if isinstance(event, TableMapEvent):
                self._tables[event.table_id] = event.table
            yield event

    def _headers(self, window: Window) -> Iterator[tuple[EventHeader, Block, int]]:
        """Each header, and a block that holds the whole event, with the offset of the block's first byte."""
        at, size = window.start, BLOCK
        while at < window.end:
            base = at
            block = self._log.block(base, min(size, window.end - base))
            data, size = block.data, BLOCK
            while at + HEADER <= base + len(block):
                header = EventHeader(self._log.name, at, *_HEADER.unpack_from(data, at - base))
                if at + header.size > base + len(block):
                    break
                yield header, block, base
                at += header.size
            if at == base:
                size = 2 * len(block)

    def _body(self, header: EventHeader, block: Block, base: int) -> bytes:
        """What stands between header and checksum; a format description has one whatever its algorithm."""
        checksum = self._log.form.checksum
        if header.type == FORMAT_DESCRIPTION:
            checksum = 4 if header.size > HEADER + OLD_FORMAT else 0
        first = header.position - base
        return bytes(block.data[first + HEADER : first + header.size - checksum])

    def _write(self, _schema: TableSchema, lines: memoryview) -> None:
        self._staged.append(bytes(lines))

    def _transaction(self, window: Window, number: int, header: EventHeader, body: bytes) -> Transaction:
        start, end, committed, rolled_back = (int(field) for field in window.index.transactions[number][:4])
        place = self._place
        ends = Position(place.basename, place.lognum, end)
        return Transaction(
            ends.seqno(), Position(place.basename, place.lognum, start), ends, committed, bool(rolled_back),
            gtid_of(header, body),
        )  # fmt: skip

    def _rows(
        self,
        header: EventHeader,
        transaction: Transaction | None,
        block: tuple[Block, int],
        row: w.Ints,
        timing: Timing,
    ) -> RowsEvent:
        kind = _ROWS[header.type]
        data, base = block
        at = header.position - base + HEADER
        name = self._tables.get(int.from_bytes(data[at : at + 6].tobytes(), "little"), _NO_TABLE)
        schema: TableSchema | None = None
        self._staged = []
        if len(row) and row[0, w.R_TABLE] != w.UNCAPTURED:
            schema = self._registry.programs[int(row[0, w.R_TABLE])].schema
            self._stager.stage(data, base, row, timing)
        return kind(header, transaction, schema.name if schema else name, schema, b"".join(self._staged))


def header_at(file: str, block: Block, offset: int, position: int) -> EventHeader:
    """The header of the event at `offset` of a block, which stands at `position` of the file."""
    return EventHeader(file, position, *_HEADER.unpack_from(block.data, offset))


def gtid_of(header: EventHeader, body: bytes) -> Gtid | None:
    """The GTID in the first event of a transaction."""
    if header.type not in (33, 42, 162):
        return None
    with placed(header.file, header.position):
        event = read_body(header, None, body)
    return event.gtid if isinstance(event, GtidEvent | MariadbGtidEvent) else None
