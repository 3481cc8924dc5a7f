"""Runs the codec over a built log, and reads staged lines back."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field

import numpy as np

from loader.binlog.format import HEAD_BYTES, read_format
from loader.binlog.index import LogIndex, Walk
from loader.binlog.stager import Counts, Stager
from loader.binlog.table_registry import TableRegistry
from loader.errors import LoaderError
from loader.extract.log_ranges import LogRange
from loader.extract.windows import Window, read_windows
from loader.model.table import TableName, TableSchema
from loader.reader.files.log_walk import LogBytes, log_bytes

FILE = "binlog.000001"
UNIT = 10**12
_UNDONE = {r"\n": "\n", r"\r": "\r", r"\0": "\0", r"\\": "\\", '""': '"'}
_ESCAPED = re.compile(r'\\.|""', re.DOTALL)
_GUARD = 1 << 14
_ROOM = 1 << 16
_MARK = 0xA5


class GuardedStager(Stager):
    """A stager that notices when its kernel writes behind the output block."""

    def give_room(self, size: int) -> None:
        """An output block of that size, with a guard behind it."""
        self._whole = np.full(size + _GUARD, _MARK, np.uint8)
        self._out = self._whole[:size]

    def check(self) -> None:
        """Fail when the guard was written to."""
        assert (self._whole[len(self._out) :] == _MARK).all(), "the codec wrote behind its output block"

    def _grow(self) -> None:
        self.check()
        super()._grow()
        self.give_room(len(self._out))


@dataclass
class Staged:
    """What a log came out as: lines and counts by schema, and each block that was written."""

    index: LogIndex
    text: dict[TableSchema, bytes] = field(default_factory=dict)
    counts: dict[TableSchema, Counts] = field(default_factory=dict)
    writes: list[int] = field(default_factory=list)

    def of(self, table: str) -> list[list[str | None]]:
        """The records of one table, by the name `schema.table`."""
        found = [text for schema, text in self.text.items() if str(schema.name) == table]
        return [fields(line) for text in found for line in records(text)]


def everything(_: TableName) -> bool:
    """Captures all tables."""
    return True


def walked(
    log: bytes,
    blocks: Iterable[int] = (),
    captured: Callable[[TableName], bool] = everything,
    markers: Container[TableName] = (),
) -> LogIndex:
    """The index of a log, walked in blocks that end at these offsets."""
    return _walk(log, blocks, TableRegistry(captured, markers=markers))


def staged(
    log: bytes,
    *,
    blocks: Iterable[int] = (),
    captured: Callable[[TableName], bool] = everything,
    every_update: bool = False,
    room: int = _ROOM,
    shift: int = 0,
    nameless: bool = False,
    hex_fallback: bool = False,
    mariadb: bool = False,
    known: TableSchema | None = None,
) -> Staged:
    """All of a log, by way of an output block of `room` bytes."""
    form = read_format(log[:HEAD_BYTES], FILE)
    registry = TableRegistry(
        captured, mariadb=mariadb, known=lambda _: known, nameless=nameless, hex_fallback=hex_fallback
    )
    result = Staged(_walk(log, blocks, registry))

    def write(schema: TableSchema, lines: memoryview) -> None:
        result.text[schema] = result.text.get(schema, b"") + bytes(lines)
        result.writes.append(len(lines))

    stager = GuardedStager(registry, FILE, 1, form.checksum, shift, every_update, write, any_image=nameless)
    stager.give_room(room)
    window = Window(result.index, np.frombuffer(log, np.uint8).copy(), 0)
    timing = stager.timing(result.index.transactions)
    rows = result.index.rows
    try:
        for block, base, run in window.holding(LogBytes(FILE, io.BytesIO(log), form), rows):
            stager.stage(block, base, run, timing)
    finally:
        stager.check()
    result.counts = stager.counts
    return result


def outcome(
    log: bytes, captured: Callable[[TableName], bool] = everything, *, nameless: bool = False
) -> Staged | LoaderError:
    """What comes of a log that may be damaged, read as the extraction reads a file: only LoaderErrors are caught."""
    span = LogRange(file=FILE, lognum=1, read_from=4, read_to=max(len(log), 4), first_part=0, end_part=1)
    try:
        registry = TableRegistry(captured, nameless=nameless)
        for _ in read_windows(log_bytes(io.BytesIO(log), FILE), span, registry, 1 << 62):
            pass
        return staged(log, captured=captured, nameless=nameless)
    except LoaderError as error:
        return error


def _walk(log: bytes, blocks: Iterable[int], registry: TableRegistry) -> LogIndex:
    form = read_format(log[:HEAD_BYTES], FILE)
    file = LogBytes(FILE, io.BytesIO(log), form)
    walk = Walk(registry, FILE, 4, form.checksum, (0, 1 << 62))
    for end in (*blocks, len(log)):
        walk.feed(np.frombuffer(log[walk.position : end], np.uint8).copy())
        while walk.outer and file.is_whole(walk.outer, len(log)):
            walk.expand(file.expanded(walk.outer.offset))
            walk.feed(np.frombuffer(log[walk.position : max(end, walk.position)], np.uint8).copy())
    assert walk.position == len(log), "the log ends with a cut event"
    return walk.finish()


def records(text: bytes) -> list[str]:
    """Lines of a staged file: only the line feed ends one."""
    lines = text.decode().split("\n")
    assert lines.pop() == "", "the last line is cut"
    return lines


def fields(line: str) -> list[str | None]:
    """The fields of a record by the rules of the dialect; None for NULL."""
    found: list[str | None] = []
    at = 0
    while True:
        if line[at : at + 1] == '"':
            text, at = _quoted(line, at + 1)
            found.append(text)
        else:
            end = line.find(",", at)
            end = len(line) if end < 0 else end
            found.append(None if line[at:end] == "\\N" else line[at:end])
            at = end
        if at == len(line):
            return found
        assert line[at] == ",", f"no comma at {at} of {line!r}"
        at += 1


def _quoted(line: str, at: int) -> tuple[str, int]:
    end = line.index('"', at)
    while line[end + 1 : end + 2] == '"':
        end = line.index('"', end + 2)
    return _ESCAPED.sub(lambda found: _UNDONE[found[0]], line[at:end]), end + 1
