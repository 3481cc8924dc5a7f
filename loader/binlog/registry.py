"""The table maps met so far, as the arrays that the walk looks them up in, and the program of each."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from loader.binlog.program import Program, compile_program
from loader.binlog.tablemap import read_table_map
from loader.binlog.walk import UNCAPTURED
from loader.model.table import TableName, TableSchema

_SLOTS = 1024


class TableRegistry:
    """Knows each distinct table map by its bytes, so that it is read once, however often the log repeats it.

    `programs` holds one program per captured table map, in order of arrival. `mariadb`: the log is of MariaDB. `known`
    and `nameless`: see TableMap.schema. `hexed`: see compile_program.
    """

    def __init__(
        self,
        captured: Callable[[TableName], bool],
        *,
        mariadb: bool = False,
        known: Callable[[TableName], TableSchema | None] = lambda _: None,
        nameless: bool = False,
        hexed: bool = False,
    ) -> None:
        self._captured = captured
        self._known = known
        self._nameless = nameless
        self._hexed = hexed
        self.mariadb = mariadb
        self._bodies: list[bytes] = []
        self._programs: list[int] = []
        self.programs: list[Program] = []
        self._build()

    def add(self, body: bytes) -> None:
        """Register the body of a TABLE_MAP event, from its table id on.

        Raises:
            BinlogFormatError, DataError, UnsupportedError: see read_table_map and TableMap.schema; only for captured
            tables where the schema is concerned.
        """
        table = read_table_map(body)
        number = UNCAPTURED
        if self._captured(table.name):
            known = self._known(table.name)
            schema, prefixes = table.schema(mariadb=self.mariadb, known=known, nameless=self._nameless)
            number = len(self.programs)
            self.programs.append(compile_program(schema, prefixes, hexed=self._hexed))
        self._bodies.append(body[6:])
        self._programs.append(number)
        self._build()

    def _build(self) -> None:
        size = max(_SLOTS, 1 << (4 * len(self._bodies)).bit_length())
        self.slots = np.full(size, -1, np.int64)
        self.hashes = np.array([zlib.crc32(body) for body in self._bodies] or [0], np.uint32)
        self.spans = np.cumsum([0, *(len(body) for body in self._bodies)], dtype=np.int64)
        self.known = np.frombuffer(b"".join(self._bodies) or b"\0", np.uint8).copy()
        self.numbers = np.array(self._programs or [0], np.int64)
        for index in range(len(self._bodies)):
            slot = int(self.hashes[index]) % size
            while self.slots[slot] >= 0:
                slot = (slot + 1) % size
            self.slots[slot] = index
