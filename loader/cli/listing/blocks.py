"""Lists a log in blocks: the kernels list most events, and only the others become objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.listing import events as k
from loader.binlog.listing.templates import VALUES
from loader.binlog.listing_stager import ListingStager, StagedEvents
from loader.cli.listing.event_templates import steps_of
from loader.cli.listing.selection import Form, Selection
from loader.cli.listing.template_arrays import EventTemplates
from loader.cli.listing.unreadable_values import UnreadableCount
from loader.cli.listing.window_state import WindowState, block_stager
from loader.errors import BinlogFormatError
from loader.reader.decode import Decoder
from loader.reader.events import Event, FormatDescriptionEvent, RowsEvent
from loader.reader.files.log_walk import BLOCK
from loader.reader.files.raw_events import PiecesAt
from loader.reader.files.window import Window
from loader.reader.log import BinaryLog

_CHUNK = 256 * 1024
"""Bytes of log that are staged at once: staged lines and listing stay in the processor's cache."""

_OUT_BYTES = 4 * 1024 * 1024
_OPERATIONS = {"I": 1, "U": 2, "D": 4}

Block = NDArray[np.uint8]


class BlockListing:
    """Lists a log.

    Args:
        form: text or JSON.
        selection: the events to list.
        write: gets the listing in pieces of UTF-8.
        unreadable: counts what cannot be read.
        advance: gets the bytes of log that are listed.
    """

    def __init__(
        self,
        form: Form,
        selection: Selection,
        write: Callable[[bytes], object],
        unreadable: UnreadableCount,
        advance: Callable[[int], object],
    ) -> None:
        self._form, self._selection = form, selection
        self._write, self._unreadable, self._advance = write, unreadable, advance
        self._templates = EventTemplates()
        self._out = np.empty(_OUT_BYTES, np.uint8)
        self._pending: list[bytes] = []
        self._state = np.zeros(k.STATE, np.int64)
        self._state[k.LISTED] = -1
        self._scratch = [np.zeros(size, np.uint8) for size in (k.KEY_BYTES, k.GTID_BYTES, k.GTID_BYTES)]
        self._values = np.zeros(VALUES, np.int64)

    def list(self, log: BinaryLog) -> None:
        """List a log that is opened with `lenient`.

        Raises:
            LoaderError: as iteration over the log. What precedes the error is listed.
        """
        file, stager = None, None
        with self._flushed():
            for decoder, window in log.windows():
                if decoder is not file or stager is None:
                    self._templates.clear()
                    file, stager = decoder, block_stager(decoder)
                if not self._window(decoder, window, stager):
                    return

    def follow(self, log: BinaryLog) -> None:
        """List a log that is opened with `wait` up to its end in the future, event by event.

        Raises:
            LoaderError: as `list`.
        """
        with self._flushed():
            while event := log.wait_for_next_event():
                if not self._event(event):
                    return
                self._flush()

    @contextmanager
    def _flushed(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._flush()

    def _window(self, decoder: Decoder, window: Window, stager: ListingStager) -> bool:
        """List a window. Return whether more is to be listed."""
        try:
            current = WindowState(decoder, window, stager)
        except BinlogFormatError:  # a table map is damaged: list the events before it
            return all(map(self._event, decoder.events(window)))
        self._state[[k.NUMBER, k.TAKEN, k.INSIDE]] = 0
        at, size = window.start, BLOCK
        while at < window.end:
            block = decoder.log.block(at, min(size, window.end - at))
            taken, more = self._block(current, block, at)
            if not more:
                return False
            size = BLOCK if taken else 2 * len(block)
            at += taken
        return True

    def _block(self, current: WindowState, block: Block, base: int) -> tuple[int, bool]:
        """List the whole events of a block. Return their bytes, and whether more is to be listed."""
        state = self._state
        state[k.AT] = 0
        while (start := int(state[k.AT])) < len(block):
            until = min(start + _CHUNK, len(block))
            current.first += int(state[k.TAKEN])
            state[k.TAKEN] = 0
            rows, staged = current.staged(block, base, until)
            while (status := self._run(current, block, base, until, rows, staged)) != k.DONE:
                if status == k.ENOUGH:
                    return 0, False
                if status == k.FULL:
                    self._make_room()
                elif (taken := self._single(current, block, base, missing=status == k.MISSING)) is None:
                    return 0, False
                elif not taken:
                    break
            self._flush()
            self._advance(int(state[k.AT]) - start)
            if state[k.AT] < until:
                break  # the next event is not whole
        current.first += int(state[k.TAKEN])
        state[k.TAKEN] = 0
        return int(state[k.AT]), True

    def _run(
        self, current: WindowState, block: Block, base: int, until: int, rows: w.Ints, staged: StagedEvents
    ) -> int:
        """Run the kernel; return its status."""
        key, gtid, first = self._scratch
        t = self._templates
        return k.list_events(
            block, base, until, current.transactions, current.decoded.timing.seqnos, rows, staged.spans, staged.lines,
            t.columns.data, t.tables, t.names.data, t.ops.data, t.starts, t.literals.data,
            t.slots, t.key_spans, t.keys.data, key, gtid, first,
            self._values, self._out, self._options(current), self._state,
        )  # fmt: skip

    def _options(self, current: WindowState) -> w.Ints:
        wanted = self._selection
        kinds = sum(_OPERATIONS[letter] for letter in set(wanted.operations))
        found = [current.decoder.log.form.checksum, wanted.only_rows, kinds, wanted.limit, self._form.json]
        return np.array(found, np.int64)

    def _single(self, current: WindowState, block: Block, base: int, *, missing: bool) -> int | None:
        """List one event of the file from its object. Return its bytes; 0 if it is not whole, None if enough is listed.

        Args:
            current: the window.
            block: the block with the event at state[AT].
            base: offset of block[0] in the file.
            missing: make a template of the event.
        """
        state, at = self._state, int(self._state[k.AT])
        current.go_to(state, self._scratch[2], base + at)
        pieces = PiecesAt(current.decoder.log, block, base, base + at)
        for piece in pieces:
            event = current.decoded.event(piece)
            fresh = bool(event.transaction and event.transaction.seqno != state[k.LISTED])
            if not self._event(event):
                return None
            if missing:
                self._learn(current, event, fresh)
        taken = pieces.taken
        state[k.AT] += taken
        current.save(state, self._scratch[1])
        return taken

    def _event(self, event: Event) -> bool:
        """List an event. Return whether more is to be listed."""
        state = self._state
        if not self._selection.has(event):
            return True
        if event.transaction and event.transaction.seqno != state[k.LISTED]:
            if 0 < self._selection.limit <= state[k.COUNT]:
                return False
            state[k.COUNT] += 1
        self._form.resume(int(state[k.LISTED]))
        if event.transaction:
            state[k.LISTED] = event.transaction.seqno
        self._keep_output()
        self._pending.append(self._form.text(event).encode("utf-8", "backslashreplace"))
        self._unreadable.add(event)
        if isinstance(event, FormatDescriptionEvent):
            self._templates.clear()
        return True

    def _learn(self, current: WindowState, event: Event, fresh: bool) -> None:
        """Make a template of an event. The kernel left its key."""
        steps = steps_of(event, lambda marked: self._form.sample(marked, fresh=fresh))
        if steps is None:
            return
        if self._templates.is_full:
            self._templates.clear()
        if isinstance(event, RowsEvent) and event.schema:
            self._templates.add_table(current.newest_program, self._form.formats.of(event.schema))
        key = self._scratch[0][: int(self._state[k.KEY_END])]
        self._templates.add(key, int(self._state[k.HASH]), steps)

    def _keep_output(self) -> None:
        """Move what the kernel wrote to the pending pieces."""
        if self._state[k.OUT]:
            self._pending.append(self._out[: int(self._state[k.OUT])].tobytes())
            self._state[k.OUT] = 0

    def _make_room(self) -> None:
        if self._state[k.OUT]:
            self._flush()
        else:
            self._out = np.empty(2 * len(self._out), np.uint8)

    def _flush(self) -> None:
        self._keep_output()
        pending, self._pending = self._pending, []
        if pending:
            self._write(pending[0] if len(pending) == 1 else b"".join(pending))
