"""Registers table maps: the arrays in which the walk looks them up, and the program of each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from loader.binlog.events.table_map import NamelessTable, TableMap, read_table_map
from loader.binlog.program import Program, compile_program
from loader.binlog.walk import MARKER, R_EVENT, R_TABLE, R_TRANSACTION, UNCAPTURED, UNSTAGED, WATCHED
from loader.errors import BinlogFormatError, DataError, UnsupportedError
from loader.model.table import SchemaVersion, TableName, TableSchema, logged_as

Ints = NDArray[np.int64]

_ROOM = 256  # table maps that the arrays hold at first
_Number = TypeVar("_Number", bound=np.generic)
_OPEN = 1 << 32  # the first number of table maps whose program depends on the transaction


def _no_versions(_: TableName) -> Sequence[SchemaVersion]:
    return ()


@dataclass(frozen=True)
class _OpenMap:
    """A table map whose program depends on the transaction, such as one without column names.

    Attributes:
        table: the table map.
        versions: the schemas of its table, ordered by seqno.
        programs: number of the program by index of the version, compiled when the first row needs it.
        errors: why a version has no program.
        follows: False for a table that cannot be staged at all: its only version has an error.
    """

    table: TableMap
    versions: Sequence[SchemaVersion]
    programs: dict[int, int] = field(default_factory=dict)
    errors: dict[int, DataError] = field(default_factory=dict)
    follows: bool = True

    def numbers(self, seqnos: Ints) -> Ints:
        """Return the index of the version of each transaction; -1 before the first version."""
        since = np.array([version.since for version in self.versions], np.int64)
        return np.searchsorted(since, seqnos, "right") - 1

    def unread(self, number: int, seqno: int, event: int) -> UnstagedRow:
        """Return why a row event of version `number` cannot be staged."""
        version, error = self.versions[max(number, 0)], self.errors[number]
        return UnstagedRow(
            seqno, event, "" if version.schema else version.at, error, "" if self.follows else error.hint
        )


@dataclass(frozen=True, order=True)
class UnstagedRow:
    """The first row event of a table that cannot be staged, and where the last one is.

    Attributes:
        seqno: of its transaction.
        event: its offset in the file.
        at: the position from which on the table's columns are not known; empty if they are known but do not fit the
            log.
        error: why it cannot be staged.
        hint: what to do before the table is loaded again; empty if `loader schema set` can help.
        last_seqno: of the last row event of the table that cannot be staged. Events between the two may be staged.
    """

    seqno: int
    event: int
    at: str = field(compare=False)
    error: DataError = field(compare=False)
    hint: str = field(default="", compare=False)
    alone: bool = field(default=False, compare=False)
    last_seqno: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_seqno", max(self.seqno, self.last_seqno))

    def with_other(self, other: UnstagedRow) -> UnstagedRow:
        """Return the first one of two, with the last seqno of both."""
        return replace(min(self, other), last_seqno=max(self.last_seqno, other.last_seqno))


class TableRegistry:
    """Distinct table maps by their bytes: each is parsed once, however often the log repeats it.

    The arrays `slots`, `hashes`, `spans`, `numbers` and `map_bytes` are the hash table in which the walk looks up
    table maps.

    Args:
        captured: whether a table is staged.
        mariadb: the log was written by MariaDB.
        known: see `TableMap.schema`. Without `nameless` it is not used for table maps that have no column names: the
            definition of one moment is not right for all of their rows.
        nameless: see `TableMap.schema`.
        versions: the schemas of a table whose table maps have no column names, ordered by seqno. `assign_programs`
            gives each of its row events a program.
        named_versions: the same for a table whose table maps have column names, where one schema (`known`) is not
            right for all of its rows.
        hex_fallback, same_keys: see `compile_program`.
        markers: tables that mark a transaction to skip. They are not captured.
        watched: tables whose row events get a number of `watched_numbers`, even if they are not captured.
        ignore_sequences: do not capture MariaDB's sequences, whatever their names.
        isolate: note a captured table whose rows cannot be staged in `unstaged`, instead of raising the reason.
        whole_times: see `TableMap.schema`.

    Attributes:
        programs: one program per captured table map, in order of arrival.
        schema_numbers: int64 (programs): programs of equal schemas have equal numbers.
        unstaged: the first row event of each table that got no program or could not be staged.
        assumed: the tables for which `whole_times` was assumed.
    """

    def __init__(
        self,
        captured: Callable[[TableName], bool],
        *,
        mariadb: bool = False,
        known: Callable[[TableName], TableSchema | None] = lambda _: None,
        nameless: bool = False,
        versions: Callable[[TableName], Sequence[SchemaVersion]] = _no_versions,
        named_versions: Callable[[TableName], Sequence[SchemaVersion]] = _no_versions,
        hex_fallback: bool = False,
        same_keys: bool = False,
        markers: Container[TableName] = (),
        watched: Sequence[TableName] = (),
        ignore_sequences: bool = False,
        isolate: bool = False,
        whole_times: bool = False,
    ) -> None:
        self._captured = captured
        self._known = known
        self._versions = versions
        self._named_versions = named_versions
        self._open: list[_OpenMap] = []
        self.unstaged: dict[TableName, UnstagedRow] = {}
        self._nameless = nameless
        self._hex_fallback = hex_fallback
        self._same_keys = same_keys
        self._markers = markers
        self._watched = {name: WATCHED - number for number, name in enumerate(watched)}
        self._ignores_sequences = ignore_sequences and mariadb
        self._isolates = isolate
        self._whole_times = whole_times
        self.assumed: set[TableName] = set()
        self.mariadb = mariadb
        self._count = 0
        self._schema_numbers: dict[TableSchema, int] = {}
        self.programs: list[Program] = []
        self.schema_numbers = np.zeros(_ROOM, np.int64)
        self.slots = np.full(4 * _ROOM, -1, np.int64)
        self.hashes = np.zeros(_ROOM, np.uint32)
        self.spans = np.zeros(_ROOM + 1, np.int64)
        self.numbers = np.zeros(_ROOM, np.int64)
        self.map_bytes = np.zeros(64 * _ROOM, np.uint8)

    def add(self, body: bytes) -> None:
        """Register a table map by the body of its TABLE_MAP event, from the table id on, without checksum.

        Raises:
            BinlogFormatError: see `read_table_map`.
            DataError, UnsupportedError: see `TableMap.schema`; only for captured tables that are not isolated.
        """
        table = read_table_map(body)
        number = MARKER if table.name in self._markers else self._watched.get(table.name, UNCAPTURED)
        if number != MARKER and self._captured(table.name):
            versions = (self._named_versions if table.named else self._versions)(table.name)
            if self._ignores_sequences and table.is_sequence:
                number = self._watched.get(table.name, UNCAPTURED)
            elif versions:
                number = _OPEN + len(self._open)
                self._open.append(_OpenMap(table, versions))
            else:
                number = self._known_program(table)
        self._note(body[6:], number)

    def table_names(self, numbers: Iterable[int]) -> set[TableName]:
        """Return the captured tables with these numbers (values of field walk.R_TABLE)."""
        return {
            self._open[number - _OPEN].table.name if number >= _OPEN else self.programs[number].schema.name
            for number in numbers
            if number >= 0
        }

    def numbers_of(self, names: Container[TableName]) -> list[int]:
        """Return all numbers (values of field walk.R_TABLE) of captured tables with these names."""
        known = [number for number, program in enumerate(self.programs) if program.schema.name in names]
        return known + [_OPEN + number for number, one in enumerate(self._open) if one.table.name in names]

    def watched_numbers(self) -> dict[int, TableName]:
        """Return the watched tables by all their numbers (values of field walk.R_TABLE)."""
        found = {number: name for name, number in self._watched.items()}
        for name in self._watched:
            found.update(dict.fromkeys(self.numbers_of({name}), name))
        return found

    def assign_programs(self, rows: Ints, seqnos: Ints) -> Ints:
        """Return the row events with the program that their table has in their transaction.

        Row events whose table has no known schema there, or a schema that does not fit the log, get walk.UNSTAGED.
        Row events of tables with one schema stay as they are.

        Args:
            rows: captured row events of the walk, fields walk.R_*.
            seqnos: seqno of each transaction.

        Raises:
            BinlogFormatError: a table map is damaged.
        """
        tables = rows[:, R_TABLE]
        if not self._open or tables.max(initial=0) < _OPEN:
            return rows
        rows, mine = rows.copy(), np.flatnonzero(tables >= _OPEN)
        for number in np.unique(tables[mine]).tolist():
            at = mine[tables[mine] == number]
            found = self._open[number - _OPEN]
            numbers = found.numbers(seqnos[rows[at, R_TRANSACTION]])
            for version in np.unique(numbers).tolist():
                same = at[numbers == version]
                program = self._versioned(found, version)
                if program == UNSTAGED:
                    first, places = rows[same[0]], seqnos[rows[same, R_TRANSACTION]]
                    unread = found.unread(version, int(places[0]), int(first[R_EVENT]))
                    self._keep_unstaged(found.table.name, replace(unread, last_seqno=int(places.max())))
                rows[same, R_TABLE] = program
        return rows

    def note_unstaged(self, name: TableName, unread: UnstagedRow) -> None:
        """Note that a row event of a table is not staged.

        Raises:
            DataError: the reason, unless tables are isolated.
        """
        if not self._isolates:
            raise unread.error
        self._keep_unstaged(name, unread)

    def _keep_unstaged(self, name: TableName, unread: UnstagedRow) -> None:
        self.unstaged[name] = unread.with_other(self.unstaged.get(name, unread))

    def _versioned(self, found: _OpenMap, number: int) -> int:
        """Return the program of a version of a table map; UNSTAGED if `errors` says why it has none."""
        if number not in found.programs:
            try:
                found.programs[number] = self._program(found.table, self._schema_of(found, number))
            except BinlogFormatError:
                raise
            except DataError as error:
                found.programs[number], found.errors[number] = UNSTAGED, error
        return found.programs[number]

    def _known_program(self, table: TableMap) -> int:
        """Return the number of the program of a table map whose schema does not depend on the transaction."""
        try:
            return self._program(table, self._known(table.name) if table.named or self._nameless else None)
        except (BinlogFormatError, NamelessTable):
            raise
        except DataError as error:
            if not self._isolates:
                raise
            versions = (SchemaVersion(0, "", None),)
            self._open.append(_OpenMap(table, versions, {0: UNSTAGED}, {0: error}, follows=False))
            return _OPEN + len(self._open) - 1

    def _schema_of(self, found: _OpenMap, number: int) -> TableSchema | None:
        version = found.versions[max(number, 0)]
        if number >= 0 and version.schema is not None:
            return version.schema
        # `known` is of the end of the log. It tells what the log lacks, if no later statement changed the table.
        later = 0 <= number < len(found.versions) - 1
        if found.table.named and not (later and self._lacks_types(found.table)):
            return self._known(found.table.name)
        raise UnsupportedError(
            "the columns of a table are not known at a position of the log",
            why=version.why if number >= 0 else "no statement before this position created it",
            table=found.table.name,
        )

    def _lacks_types(self, table: TableMap) -> bool:
        """Return whether the log may have the values of a column in another type, such as UUID as BINARY."""
        return self.mariadb and any(map(logged_as, table.schema(mariadb=True, whole_times=True)[0].columns))

    def _program(self, table: TableMap, known: TableSchema | None) -> int:
        schema, prefixes = table.schema(
            mariadb=self.mariadb, known=known, nameless=self._nameless, whole_times=self._whole_times
        )
        if self._whole_times and self.mariadb and known is None and table.has_old_times:
            self.assumed.add(table.name)
        number = len(self.programs)
        self.programs.append(
            compile_program(schema, prefixes, hex_fallback=self._hex_fallback, same_keys=self._same_keys)
        )
        if number == len(self.schema_numbers):
            self.schema_numbers = _longer(self.schema_numbers, 0)
        self.schema_numbers[number] = self._schema_numbers.setdefault(schema, len(self._schema_numbers))
        return number

    def _note(self, body: bytes, number: int) -> None:
        """Put the bytes of a table map into the arrays."""
        index, start = self._count, int(self.spans[self._count])
        if start + len(body) > len(self.map_bytes):
            self.map_bytes = _longer(self.map_bytes, start + len(body))
        self.map_bytes[start : start + len(body)] = np.frombuffer(body, np.uint8)
        self.hashes[index] = zlib.crc32(body)
        self.spans[index + 1] = start + len(body)
        self.numbers[index] = number
        self._count += 1
        self._slot(index)
        if self._count == len(self.numbers):
            self._grow()

    def _slot(self, index: int) -> None:
        slot = int(self.hashes[index]) % len(self.slots)
        while self.slots[slot] >= 0:
            slot = (slot + 1) % len(self.slots)
        self.slots[slot] = index

    def _grow(self) -> None:
        self.numbers = _longer(self.numbers, 0)
        self.hashes = _longer(self.hashes, 0)
        self.spans = _longer(self.spans, 0)
        self.slots = np.full(2 * len(self.slots), -1, np.int64)
        for index in range(self._count):
            self._slot(index)


def _longer(array: NDArray[_Number], least: int) -> NDArray[_Number]:
    """Return the array with zeros appended: twice as long, and at least `least` long."""
    more = max(least - len(array), len(array))
    return np.concatenate([array, np.zeros(more, array.dtype)])
