"""Decodes the events of a window of log. Row events go through the kernels that stage them."""

from __future__ import annotations

from collections.abc import Iterator

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, ROWS
from loader.binlog.index import error_place
from loader.binlog.listing_stager import ListingStager
from loader.binlog.stager import Stager
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
    """Decodes windows of one log file, one after the other. `lenient`: see open_log.

    Attributes:
        log: the file.
        place: a position in it.
        registry: its table maps.
        stager: stages its row events.
        staged: lines of the newest row event.
        tables: the table of each table id.
    """

    def __init__(self, log: LogBytes, place: Position, registry: TableRegistry, *, lenient: bool = False) -> None:
        self.log = log
        self.place = place
        self.registry = registry
        self.staged: list[bytes] = []
        self.tables: dict[int, TableName] = {}
        kind = ListingStager if lenient else Stager
        self.stager = kind(registry, log.name, place.lognum, log.form.checksum, 0, True, self._write, any_image=True)

    def events(self, window: Window) -> Iterator[Event]:
        """Yield the window's events, in log order.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: with file and position, after all events before it.
        """
        decoded = WindowDecoder(self, window)
        for piece in pieces(self.log, window):
            yield decoded.event(piece)

    def _write(self, _schema: TableSchema, lines: memoryview) -> None:
        self.staged.append(bytes(lines))


class WindowDecoder:
    """Decodes the events of a window.

    Attributes:
        timing: of the window's transactions.
        number: number of the transaction at the next event, or after it.
        taken: row events before the next event.
        transaction: of the newest event.
    """

    def __init__(self, decoder: Decoder, window: Window) -> None:
        self._decoder = decoder
        self._index = window.index
        self.timing = decoder.stager.timing(window.index.transactions)
        self._begins = self.timing.begins.tolist()
        self._ends = window.index.transactions[:, w.T_END].tolist()
        self.transaction: Transaction | None = None
        self.number = self.taken = 0

    def event(self, piece: Piece) -> Event:
        """Return the next event.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: with file and position.
        """
        self._enter(piece)
        if CLASSES[piece.kind] == ROWS:
            mine = self._row(piece)
            self.taken += len(mine)
            return self._rows(piece, mine)
        with error_place(self._decoder.log.name, piece.header.position):
            event = read_body(piece.header, self.transaction, piece.body(), piece.kind)
        if isinstance(event, TableMapEvent):
            self._decoder.tables[event.table_id] = event.table
        return event

    def _enter(self, piece: Piece) -> None:
        """Go to the transaction of the event."""
        position, ends = piece.header.position, self._ends
        while self.number < len(ends) and position >= ends[self.number]:
            self.number, self.transaction = self.number + 1, None
        if self.transaction is None and self.number < len(ends) and position >= self._begins[self.number]:
            self.transaction = self.begin(piece)

    def _row(self, piece: Piece) -> w.Ints:
        """Return the index entry of a row event: the next one, or none if the event has no table."""
        row = self._index.rows[self.taken : self.taken + 1]
        offset = piece.base + piece.first
        if len(row) and row[0, w.R_EVENT] == piece.header.position and row[0, w.R_OFFSET] == offset:
            return row
        return row[:0]

    def begin(self, piece: Piece) -> Transaction:
        """Return the transaction of this number, whose first event is given.

        Raises:
            BinlogFormatError: its GTID cannot be read.
        """
        gtid = gtid_of(piece.header, piece.body()) if piece.kind in _GTIDS else None
        start, end, committed, outcome = (int(field) for field in self._index.transactions[self.number][:4])
        place = self._decoder.place
        ends = Position(place.basename, place.lognum, end)
        begins = Position(place.basename, place.lognum, start)
        undone, prepared, is_cut = (outcome == wanted for wanted in (w.ROLLED_BACK, w.PREPARED, w.CUT_OFF))
        return Transaction(ends.seqno(), begins, ends, committed, undone, prepared, gtid, is_cut)

    def _rows(self, piece: Piece, row: w.Ints) -> RowsEvent:
        kind, decoder = _ROWS[piece.kind], self._decoder
        name = decoder.tables.get(int.from_bytes(piece.body(6), "little"), _NO_TABLE)
        row = decoder.registry.assign_programs(row, self.timing.seqnos)
        if not len(row) or row[0, w.R_TABLE] < 0:
            unstaged = decoder.registry.unstaged.get(name) if len(row) and row[0, w.R_TABLE] == w.UNSTAGED else None
            return kind(piece.header, self.transaction, name, None, b"", unstaged.error if unstaged else None)
        schema = decoder.registry.programs[int(row[0, w.R_TABLE])].schema
        decoder.staged = []
        decoder.stager.stage(piece.block, piece.base, row, self.timing)
        error = decoder.stager.take_error()
        return kind(piece.header, self.transaction, schema.name, schema, b"".join(decoder.staged), error)


def gtid_of(header: EventHeader, body: bytes) -> Gtid | None:
    """Return the GTID in the first event of a transaction; None if that is not a GTID event."""
    if header.type not in _GTIDS:
        return None
    with error_place(header.file, header.position):
        event = read_body(header, None, body)
    return event.gtid if isinstance(event, GtidEvent | MariadbGtidEvent) else None
