"""The binary log as a sequence of events: iterate over them, wait for new ones, go to any position."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from typing import Self

from loader.binlog.table_registry import TableRegistry
from loader.errors import GapError, UsageError
from loader.model.position import Position
from loader.model.table import TableName
from loader.reader.decode import Decoder
from loader.reader.events import Event
from loader.reader.files.log_files import ListedFile, LogFiles
from loader.reader.files.log_walk import FIRST, LogBytes
from loader.reader.files.window import Window, opened, windows
from loader.reader.handlers import Chain, Handler
from loader.reader.known_schemas import Known, knows_nothing
from loader.reader.locations.uri import resolve
from loader.reader.seek.position_spec import End, Place, Since, place_of
from loader.reader.seek.seek import Locator, check_range, position_in
from loader.staging.filters import matches

AnyPlace = Place | Position | datetime | str


class BinaryLog:
    """An open log; see open_log. Not safe for several threads."""

    def __init__(
        self,
        files: LogFiles,
        tables: Iterable[str] = (),
        handlers: Iterable[Handler] = (),
        *,
        live: bool | None = None,
        wait: bool = False,
        poll_seconds: float = 0.5,
        known: Known = knows_nothing,
        lenient: bool = False,
    ) -> None:
        self._files = files
        self._patterns = tuple(tables)
        self._chain = Chain(handlers)
        self._live, self._wait, self._poll = live, wait, poll_seconds
        self._lenient = lenient
        self._registry = TableRegistry(
            self._wanted,
            known=known,
            nameless=True,
            hex_fallback=lenient,
            same_keys=True,
            isolate=lenient,
            whole_times=lenient,
        )
        self._final: set[int] = set()
        self._stop: Position | None = None
        self._until: int | None = None
        self._at = position_in(files.listed()[0], FIRST)
        self._reading: Generator[Event] | None = None

    @property
    def assumed(self) -> set[TableName]:
        """The tables with times in an old format of MariaDB that were taken to have no fractions; see `lenient`."""
        return self._registry.assumed

    @property
    def handlers(self) -> list[Handler]:
        """The content handlers. The list may be changed while the log is read."""
        return self._chain.handlers

    def inject(self, event: Event) -> None:
        """Insert an event before the next one of the log. It goes through all handlers."""
        self._chain.inject(event)

    def position(self) -> Position:
        """Return the position at which reading can continue later: a boundary, as `set_position` takes it.

        Inside a transaction it is the start of the transaction, which is then read again.
        """
        return self._at

    def set_position(self, place: AnyPlace) -> Position:
        """Go to a place; return its position.

        Raises:
            UsageError: the place is not a boundary or not in the log, or it is a time in the future without `wait`.
            GapError: transactions after the place are in files that are missing.
            BinlogFormatError, UnsupportedError, SourceUnavailable: the log cannot be read up to the place.
        """
        self._at = self._found(place_of(place))
        self._close()
        return self._at

    @property
    def end(self) -> Position | None:
        """The position at which reading stops; None for the end of the log, or for a time in the future."""
        return self._stop

    def set_end(self, place: AnyPlace) -> None:
        """Stop reading at a place. `end` is the default: the end of the log at the time when it is reached.

        Raises:
            UsageError, ...: as `set_position`. With `wait`, a time in the future is waited for.
        """
        wanted = place_of(place)
        self._stop = self._until = None
        if isinstance(wanted, Since) and self._wait:
            self._until = wanted.micros
        elif not isinstance(wanted, End):
            self._stop = self._found(wanted)
        self._close()

    def size(self) -> int:
        """Return the bytes of log from the position to `end`, or to the end of the log as it is now."""
        at, stop = self._at, self._stop
        found = 0
        for file in self._files.listed():
            if file.lognum < at.lognum or (stop and file.lognum > stop.lognum):
                continue
            last = stop.logpos if stop and stop.lognum == file.lognum else file.size
            found += last - (at.logpos if file.lognum == at.lognum else FIRST)
        return max(found, 0)

    def __iter__(self) -> Iterator[Event]:
        """Yield the events up to `end`, or to the end of the log at the time when it is reached.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: with file and position, after all events before it.
            GapError: a file between two others is missing.
            SourceUnavailable: folder or server do not answer.
        """
        while (event := self._next()) is not None:
            yield event

    def wait_for_next_event(self, timeout_seconds: float | None = None) -> Event | None:
        """Wait for the next event and return it; None at the end given to `set_end`, or after the timeout.

        Raises:
            LoaderError: as iteration.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while (event := self._next()) is None and not self._ended():
            left = self._poll if deadline is None else min(self._poll, deadline - time.monotonic())
            if left <= 0:
                return None
            time.sleep(left)
        return event

    def close(self) -> None:
        """Close the open log file."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._reading:
            self._reading.close()
        self._reading = None

    def _ended(self) -> bool:
        return self._stop is not None and (self._at.lognum, self._at.logpos) >= (self._stop.lognum, self._stop.logpos)

    def _found(self, place: Place) -> Position:
        while (position := Locator(self._files).find(place)) is None:
            if not self._wait:
                raise UsageError(
                    "the log has not reached that time yet",
                    hint="give a time in the past, or open the log with wait=True",
                )
            time.sleep(self._poll)
        return position

    def _wanted(self, table: TableName) -> bool:
        return not self._patterns or matches(table, self._patterns)

    def _next(self) -> Event | None:
        """Return the next event that the handlers return; None if there is none yet."""
        while True:
            if event := self._chain.waiting():
                return event
            if self._reading is None:
                self._reading = self._read()
            found = next(self._reading, None)
            if found is None:
                self._reading = None
                return None
            if event := self._chain.passed(found):
                return event

    def windows(self) -> Iterator[tuple[Decoder, Window]]:
        """Yield the windows of the log up to `end`, with the decoders of their files, instead of single events.

        Handlers do not get the events. The position is that of the newest window.

        Raises:
            LoaderError: as iteration.
        """
        for decoder, window in self._windows():
            yield decoder, window
            if not window.is_cut:
                self._at = Position(self._at.basename, self._at.lognum, window.end)

    def _read(self) -> Generator[Event]:
        """Yield the events from the position to the current end of the log."""
        for decoder, window in self._windows():
            for event in decoder.events(window):
                if self._until is not None and event.transaction and event.transaction.committed >= self._until:
                    self._stop = event.transaction.start
                    return
                self._at = self._after(event)
                yield event
            if not window.is_cut:
                self._at = Position(self._at.basename, self._at.lognum, window.end)

    def _windows(self) -> Iterator[tuple[Decoder, Window]]:
        """Yield windows from the position to the current end of the log. The caller moves the position."""
        while not self._ended():
            listed = self._files.listed()
            file = self._current(listed)
            last = listed[-1].lognum == file.lognum
            stop = file.size
            if self._stop and self._stop.lognum == file.lognum:
                stop = self._stop.logpos
            if self._at.logpos < stop:
                yield from self._read_file(file, stop, last)
            if last or self._ended():
                return
            # Once its successor is listed, a file does not grow any more. The size listed before may be too small.
            if file.lognum in self._final:
                self._at = position_in(listed[listed.index(file) + 1], FIRST)
            self._final.add(file.lognum)

    def _current(self, listed: list[ListedFile]) -> ListedFile:
        for file in listed:
            if file.lognum == self._at.lognum:
                return file
        raise GapError(
            "the log file of the position is missing",
            why=f"the log has {listed[0].name} to {listed[-1].name}",
            hint="restore it from an archive, or read from the beginning of the log, which leaves a gap",
            position=self._at,
        )

    def _read_file(self, file: ListedFile, stop: int, last: bool) -> Iterator[tuple[Decoder, Window]]:
        with opened(self._files, ListedFile(file.name, file.lognum, stop), self._at.logpos) as log:
            self._registry.mariadb = log.form.mariadb
            decoder = Decoder(log, self._at, self._registry, lenient=self._lenient)
            closed = file.lognum in self._final or (last and not self._is_live(log))
            for window in windows(log, self._registry, self._at.logpos, stop, closed=closed, cut=self._lenient):
                yield decoder, window

    def _is_live(self, log: LogBytes) -> bool:
        return log.form.in_use if self._live is None else self._live

    def _after(self, event: Event) -> Position:
        """Return the position at which reading continues after this event."""
        header = event.header
        # All events of a compressed transaction have the position of the event that contains them.
        end = header.position + (header.size if header.inner < 0 else 0)
        if event.transaction and (end < event.transaction.end.logpos or event.transaction.is_cut):
            end = event.transaction.start.logpos
        return Position(self._at.basename, self._at.lognum, end)


def open_log(
    uri: str,
    *,
    start: AnyPlace = "begin",
    stop: AnyPlace = "end",
    tables: Iterable[str] = (),
    handlers: Iterable[Handler] = (),
    live: bool | None = None,
    wait: bool = False,
    poll_seconds: float = 0.5,
    known: Known = knows_nothing,
    lenient: bool = False,
) -> BinaryLog:
    """Open a log.

    Args:
        uri: address of the log; see loader.reader.locations.uri.
        start: place of the first event; see loader.reader.seek.position_spec.
        stop: place at which reading stops.
        tables: shell patterns over `schema.table`. Only rows of these tables are read; by default all.
        handlers: content handlers, in the order in which events pass them.
        live: whether the newest file may end inside an event that the server still writes. By default, the flag in the
            file decides.
        wait: wait for a `start` or `stop` in the future instead of raising UsageError.
        poll_seconds: seconds between two looks for new events while waiting.
        known: returns the schema of a table whose column names are not in the log (binlog_row_metadata=MINIMAL).
            Without it columns are named `@1`, `@2`, ..., ENUM and SET are numbers, and there is no key. For MariaDB, it
            also supplies types that the log does not describe; see TableMap.schema.
        lenient: return everything that can be read, for listings. An invalid value is returned as the hex of its bytes
            (Value.is_unreadable), an unreadable row event has an `error`, times in an old format of MariaDB are assumed
            to have no fractions (`assumed`), and the whole events of a damaged transaction are returned before the
            error (Transaction.is_cut). Without `lenient`, each of these raises an error.

    Raises:
        UsageError, GapError, SourceUnavailable, AccessDenied, DataError: as BinaryLog.set_position; also if `stop` is
            before `start`.
    """
    log = BinaryLog(
        resolve(uri), tables, handlers, live=live, wait=wait, poll_seconds=poll_seconds, known=known, lenient=lenient
    )
    log.set_end(stop)
    check_range(log.set_position(start), log.end)
    return log
