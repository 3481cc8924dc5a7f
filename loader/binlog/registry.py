"""The table maps met so far, as the arrays that the walk looks them up in, and the program of each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from loader.binlog.program import Program, compile_program
from loader.binlog.tablemap import read_table_map
from loader.binlog.walk import MARKER, UNCAPTURED
from loader.model.table import TableName, TableSchema

_ROOM = 256  # table maps, at first
_Number = TypeVar("_Number", bound=np.generic)


class TableRegistry:
    """Knows each distinct table map by its bytes, so that it is read once, however often the log repeats it.

    `programs` holds one program per captured table map, in order of arrival; those of one schema have one number in
    `alike`. The other arrays are what the walk looks table maps up in. `mariadb`: the log is of MariaDB. `known` and
    `nameless`: see TableMap.schema. `hexed`: see compile_program. `markers`: tables by which transactions are skipped;
    they are not captured.
    """

    def __init__(
        self,
        captured: Callable[[TableName], bool],
        *,
        mariadb: bool = False,
        known: Callable[[TableName], TableSchema | None] = lambda _: None,
        nameless: bool = False,
        hexed: bool = False,
        markers: Container[TableName] = (),
    ) -> None:
        self._captured = captured
        self._known = known
        self._nameless = nameless
        self._hexed = hexed
        self._markers = markers
        self.mariadb = mariadb
        self._count = 0
        self._kinds: dict[TableSchema, int] = {}
        self.programs: list[Program] = []
        self.alike = np.zeros(_ROOM, np.int64)
        self.slots = np.full(4 * _ROOM, -1, np.int64)
        self.hashes = np.zeros(_ROOM, np.uint32)
        self.spans = np.zeros(_ROOM + 1, np.int64)
        self.numbers = np.zeros(_ROOM, np.int64)
        self.known = np.zeros(64 * _ROOM, np.uint8)

    def add(self, body: bytes) -> None:
        """Register the body of a TABLE_MAP event, from its table id on.

        Raises:
            BinlogFormatError, DataError, UnsupportedError: see read_table_map and TableMap.schema; only for captured
            tables where the schema is concerned.
        """
        table = read_table_map(body)
        number = MARKER if table.name in self._markers else UNCAPTURED
        if number != MARKER and self._captured(table.name):
            known = self._known(table.name)
            schema, prefixes = table.schema(mariadb=self.mariadb, known=known, nameless=self._nameless)
            number = len(self.programs)
            self.programs.append(compile_program(schema, prefixes, hexed=self._hexed))
            self.alike[number] = self._kinds.setdefault(schema, len(self._kinds))
        self._note(body[6:], number)

    def _note(self, body: bytes, number: int) -> None:
        """Put the bytes of a table map into the arrays, which have room for it."""
        index, start = self._count, int(self.spans[self._count])
        if start + len(body) > len(self.known):
            self.known = _longer(self.known, start + len(body))
        self.known[start : start + len(body)] = np.frombuffer(body, np.uint8)
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
        self.alike, self.numbers = _longer(self.alike, 0), _longer(self.numbers, 0)
        self.hashes = _longer(self.hashes, 0)
        self.spans = _longer(self.spans, 0)
        self.slots = np.full(2 * len(self.slots), -1, np.int64)
        for index in range(self._count):
            self._slot(index)


def _longer(array: NDArray[_Number], least: int) -> NDArray[_Number]:
    """The array with at least twice its length, zeros at its end."""
    more = max(least - len(array), len(array))
    return np.concatenate([array, np.zeros(more, array.dtype)])
