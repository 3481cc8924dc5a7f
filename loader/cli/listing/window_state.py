"""The state of the listing of a window: for the kernels, and for single events in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import HEADER
from loader.binlog.listing import events as k
from loader.binlog.listing_stager import ListingStager, StagedEvents
from loader.reader.decode import Decoder, WindowDecoder
from loader.reader.files.raw_events import Piece, header_at
from loader.reader.files.window import Window

Block = NDArray[np.uint8]


def block_stager(decoder: Decoder) -> ListingStager:
    """Return the stager of a file's blocks. The decoder's own one stages single events in between."""
    log, lognum = decoder.log, decoder.place.lognum
    return ListingStager(decoder.registry, log.name, lognum, log.form.checksum, 0, True, lambda *_: None)


class WindowState:
    """A window that is listed.

    Attributes:
        decoder: of its file.
        decoded: decodes single events.
        transactions: fields walk.T_*.
        first: number of the first row event of the current chunk.
    """

    def __init__(self, decoder: Decoder, window: Window, stager: ListingStager) -> None:
        self.decoder = decoder
        self._stager = stager
        self.decoded = WindowDecoder(decoder, window)
        self.transactions = np.require(window.index.transactions, np.int64, ["C", "W"])
        self._rows = decoder.registry.assign_programs(window.index.rows, self.decoded.timing.seqnos)
        self.first = 0
        self._known = -1

    @property
    def newest_program(self) -> int:
        """Number of the program of the newest row event that `decoded` returned."""
        return int(self._rows[self.decoded.taken - 1, w.R_TABLE])

    def staged(self, block: Block, base: int, until: int) -> tuple[w.Ints, StagedEvents]:
        """Return the row events of the chunk that ends at `until`, and their lines."""
        last = int(np.searchsorted(self._rows[:, w.R_EVENT], base + until))
        rows = self._rows[self.first : last]
        if len(rows) and not rows[-1, w.R_INNER] and rows[-1, w.R_OFFSET] + rows[-1, w.R_SIZE] > base + len(block):
            rows = rows[:-1]
        return np.require(rows, np.int64, ["C", "W"]), self._stager.stage_events(block, base, rows, self.decoded.timing)

    def go_to(self, state: w.Ints, first: Block, position: int) -> None:
        """Let `decoded` continue where the kernel stopped. `first`: the transaction's first event."""
        decoded = self.decoded
        decoded.number, decoded.taken = int(state[k.NUMBER]), self.first + int(state[k.TAKEN])
        if not state[k.INSIDE]:
            decoded.transaction = None
        elif self._known != decoded.number:
            size = int(state[k.FIRST_END])
            header = header_at(self.decoder.log.name, first, 0, position)
            kind = header.type if size else 0
            decoded.transaction = decoded.begin(Piece(header, kind, first, 0, 0, max(size, HEADER)))
            self._known = decoded.number

    def save(self, state: w.Ints, gtid: Block) -> None:
        """Let the kernel continue where `decoded` is."""
        decoded = self.decoded
        state[[k.NUMBER, k.TAKEN, k.INSIDE]] = decoded.number, decoded.taken - self.first, bool(decoded.transaction)
        if decoded.transaction:
            self._known = decoded.number
            text = str(decoded.transaction.gtid or "").encode()
            gtid[: len(text)] = np.frombuffer(text, np.uint8)
            state[k.GTID_END] = len(text)
