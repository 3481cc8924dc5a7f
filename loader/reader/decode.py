"""Decodes the events of a window of log. Row events go through the kernels that stage them."""

from __future__ import annotations

from collections.abc import Iterator

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, ROWS
from loader.binlog.index import error_place
from loader.binlog.listing_stager import ListingStager
from loader.binlog.stager import Stager, Timing
from loader.binlog.table_registry import TableRegistry
from loader.model.gtid import Gtid
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.reader.event_bodies import read_body
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
from loader.reader.files.log_walk import LogBytes
from loader.reader.files.raw_events import Piece, pieces
from loader.reader.files.window import Window

_ROWS = {23: WriteRowsEvent, 24: UpdateRowsEvent, 25: DeleteRowsEvent,
         30: WriteRowsEvent, 31: UpdateRowsEvent, 32: DeleteRowsEvent, 39: UpdateRowsEvent}  # fmt: skip
_GTIDS = (33, 42, 162)
_NO_TABLE = TableName("", "")


class Decoder:
    """Decodes windows of one log file, one after the other. `lenient`: see open_log."""

    def __init__(self, log: LogBytes, place: Position, registry: TableRegistry, *, lenient: bool = False) -> None:
        self._log = log
        self._place = place
        self._registry = registry
        self._staged: list[bytes] = []
        kind = ListingStager if lenient else Stager
        self._stager = kind(registry, log.name, place.lognum, log.form.checksum, 0, True, self._write, any_image=True)
        self._tables: dict[int, TableName] = {}

    def events(self, window: Window) -> Iterator[Event]:
        """Yield the window's events, in log order.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: with file and position, after all events before it.
        """
        timing = self._stager.timing(window.index.transactions)
        begins = timing.begins.tolist()
        ends = window.index.transactions[:, w.T_END].tolist()
        transaction: Transaction | None = None
        number = taken = 0
        for piece in pieces(self._log, window):
            position = piece.header.position
            while number < len(ends) and position >= ends[number]:
                number, transaction = number + 1, None
                self._tables.clear()
            if transaction is None and number < len(ends) and position >= begins[number]:
                transaction = self._transaction(window, number, piece)
            if CLASSES[piece.kind] == ROWS:
                mine = self._row(window.index.rows, taken, piece)
                taken += len(mine)
                yield self._rows(piece, transaction, mine, timing)
                continue
            with error_place(self._log.name, position):
                event = read_body(piece.header, transaction, piece.body(), piece.kind)
            if isinstance(event, TableMapEvent):
                self._tables[event.table_id] = event.table
            yield event

    def _row(self, rows: w.Ints, number: int, piece: Piece) -> w.Ints:
        """Return the index entry of a row event: the next one, or none if the event has no table."""
        row = rows[number : number + 1]
        offset = piece.base + piece.first
        if len(row) and row[0, w.R_EVENT] == piece.header.position and row[0, w.R_OFFSET] == offset:
            return row
        return rows[:0]

    def _write(self, _schema: TableSchema, lines: memoryview) -> None:
        self._staged.append(bytes(lines))

    def _transaction(self, window: Window, number: int, piece: Piece) -> Transaction:
        start, end, committed, outcome = (int(field) for field in window.index.transactions[number][:4])
        place = self._place
        ends = Position(place.basename, place.lognum, end)
        gtid = gtid_of(piece.header, piece.body()) if piece.kind in _GTIDS else None
        begins = Position(place.basename, place.lognum, start)
        undone, prepared, is_cut = (outcome == wanted for wanted in (w.ROLLED_BACK, w.PREPARED, w.CUT_OFF))
        return Transaction(ends.seqno(), begins, ends, committed, undone, prepared, gtid, is_cut)

    def _rows(self, piece: Piece, transaction: Transaction | None, row: w.Ints, timing: Timing) -> RowsEvent:
        kind = _ROWS[piece.kind]
        name = self._tables.get(int.from_bytes(piece.body(6), "little"), _NO_TABLE)
        row = self._registry.assign_programs(row, timing.seqnos)
        if not len(row) or row[0, w.R_TABLE] < 0:
            unstaged = self._registry.unstaged.get(name) if len(row) and row[0, w.R_TABLE] == w.UNSTAGED else None
            return kind(piece.header, transaction, name, None, b"", unstaged.error if unstaged else None)
        schema = self._registry.programs[int(row[0, w.R_TABLE])].schema
        self._staged = []
        self._stager.stage(piece.block, piece.base, row, timing)
        error = self._stager.take_error()
        return kind(piece.header, transaction, schema.name, schema, b"".join(self._staged), error)


def gtid_of(header: EventHeader, body: bytes) -> Gtid | None:
    """Return the GTID in the first event of a transaction; None if that is not a GTID event."""
    if header.type not in _GTIDS:
        return None
    with error_place(header.file, header.position):
        event = read_body(header, None, body)
    return event.gtid if isinstance(event, GtidEvent | MariadbGtidEvent) else None
