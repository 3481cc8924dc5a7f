"""Where in its log the server emptied the table with a history or changed its key, as SHOW BINLOG EVENTS has it.

A history has no row of a TRUNCATE, a DROP or a CREATE. So which of its changes come after one is known from the log.
A table that is renamed to its name counts as well: only one without rows can be, without another load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tests.chaos.access.modes import HISTORY
from tests.chaos.access.source import Session

_STATEMENT = re.compile(
    rf"(TRUNCATE\s+(TABLE\s+)?|DROP\s+TABLE\s+(IF\s+EXISTS\s+)?|CREATE\s+(OR\s+REPLACE\s+)?TABLE\s+|\bTO\s+)`?{HISTORY}\b",
    re.IGNORECASE,
)
_KEY = re.compile(rf"ALTER TABLE `{HISTORY}` .*ADD PRIMARY KEY .*/\* was (.*?) \*/")
"""What `alters.change_key` sends, with the key before it in a comment."""
_FILE = 10**12
"""What a file of the log adds to a seqno: see docs/glossary.md."""


class Place(NamedTuple):
    """The end of an event in the log."""

    file: str
    end: int


def empties(sql: str) -> bool:
    """Whether a statement leaves the table with a history without rows."""
    return bool(_STATEMENT.search(sql))


def is_noted(sql: str) -> bool:
    """Whether a statement empties the table with a history or changes its key."""
    return empties(sql) or bool(_KEY.search(sql))


class Begun(NamedTuple):
    """What the log says about the table with a history.

    Attributes:
        emptied: the seqno of the newest statement that left it without rows, 0 if there is none.
        keys: the columns of its keys before the one that it has now, each with the seqno of the statement that changed it.
    """

    emptied: int = 0
    keys: tuple[tuple[int, list[str]], ...] = ()


class Emptied:
    """Reads the log of the server that the reader is connected to."""

    def __init__(self, reader: Session) -> None:
        self._reader = reader
        self._begin = self._read = Place("", 0)
        self._found = dict[Place, list[str]]()
        self._known = dict[int, list[str]]()

    def restart(self) -> None:
        """Begin with the end of the log: another server has taken over."""
        files = self._reader.rows("SHOW BINARY LOGS")
        self._begin = self._read = Place(*files[-1][:2]) if files else Place("", 0)
        self._found.clear()

    def read(self) -> None:
        """Note what the log has by now. Its files may be purged then."""
        for file in (str(one[0]) for one in self._reader.rows("SHOW BINARY LOGS")):
            if file < self._read.file:
                continue
            for _, _, _, _, end, shown in self._reader.rows(f"SHOW BINLOG EVENTS IN '{file}'", raw=True):
                self._read, info = Place(file, int(end)), shown.decode(errors="replace")
                is_own = self._read > self._begin and info.startswith(f"use `{self._reader.database}`")
                if is_own and is_noted(info):
                    changed = _KEY.search(info)
                    self._found[self._read] = re.findall(r"`([^`]+)`", changed[1]) if changed else []

    def newest(self, stops: Sequence[tuple[str, int]]) -> Begun:
        """Return what the log has by now. `stops`: positions in the log of this server, with their seqnos."""
        self.read()
        if stops:
            position, seqno = stops[-1]
            shift = seqno // _FILE - _number(position.partition(":")[0])
            self._known |= {(_number(one.file) + shift) * _FILE + one.end: key for one, key in self._found.items()}
        emptied = max((seqno for seqno, key in self._known.items() if not key), default=0)
        return Begun(
            emptied, tuple((seqno, key) for seqno, key in sorted(self._known.items()) if seqno > emptied and key)
        )


def _number(file: str) -> int:
    return int(file.rpartition(".")[2])
