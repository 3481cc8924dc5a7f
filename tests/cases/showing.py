"""Staged records and rows of tables as text that is the same wherever and whenever the case runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loader.materialise.rules import TableRule

_PASSING = {
    re.compile(r"\b\w+\.\d{6}:\d+"): "<position>",
    re.compile(r" \(quarantined since [^)]*\)"): "",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?")
_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0", '"': '""'})


@dataclass
class Numbers:
    """Numbers in the place of seqnos and row offsets, which depend on the server: those of transactions, and of rows in one.

    The initial load is transaction 0, and its rows are all row 0.
    """

    transactions: dict[int, int] = field(default_factory=dict)
    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    times: dict[int, set[str]] = field(default_factory=dict)

    def note_load(self, lines: Iterable[bytes]) -> None:
        for seqno, offset, time in map(place, lines):
            assert offset == 0
            self.transactions[seqno] = 0
            self.rows[seqno, offset] = 0
            self._note_time(seqno, time)

    def note(self, lines: Iterable[bytes]) -> None:
        """The records of an interval, of all tables of a case: each transaction was committed once."""
        first = max(self.transactions.values(), default=0)
        for seqno, offset, time in sorted(map(place, lines)):
            if seqno not in self.transactions:
                first += 1
                self.transactions[seqno] = first
            before = sum(1 for known in self.rows if known[0] == seqno)
            assert (seqno, offset) not in self.rows, "two records have one place"
            self.rows[seqno, offset] = before + 1
            self._note_time(seqno, time)
            assert len(self.times[seqno]) == 1

    def _note_time(self, seqno: int, time: str) -> None:
        assert _TIME.fullmatch(time), time
        self.times.setdefault(seqno, set()).add(time)

    def line(self, staged: bytes) -> str:
        """A staged line; its commit time is `@` and the number of its transaction."""
        op, seqno, offset, _, rest = staged.decode().split(",", 4)
        number = self.transactions[int(seqno)]
        return f"{op},{number},{self.rows[int(seqno), int(offset)]},@{number},{rest}"

    def row(self, row: Mapping[str, Any], types: Mapping[str, str], rule: TableRule) -> str:
        """A row of a table in the dialect of staged lines."""
        meta = {name: field for field, name in rule.meta.items() if name}
        seqno = int(row[rule.seqno_column]) if rule.seqno_column else None
        fields = []
        for name, value in row.items():
            match meta.get(name):
                case "seqno_column":
                    fields.append(str(self.transactions[int(value)]))
                case "committed_at_column" if seqno is not None:
                    assert value in set(map(_shortest, self.times[seqno]))
                    fields.append(f"@{self.transactions[seqno]}")
                case "row_offset_column":
                    fields.append(str(self.rows[seqno or 0, int(value)]))
                case _:
                    fields.append(_field(value, types[name] in {"string", "binary"}))
        return ",".join(fields)


def order(row: Sequence[str | None]) -> list[tuple[bool, int, str]]:
    """A key that sorts rows of one table: numbers by their digits first, then text, NULL last."""
    return [(value is None, len(value or "") if (value or "").isdigit() else 99, value or "") for value in row]


def refusal(error: Mapping[str, Any]) -> str:
    """An error in the words of the loader, without what depends on the log or the time."""
    told = [error["what"], error["why"], f"what to do: {error['hint']}"]
    text = "\n".join(line for line in told if line)
    for pattern, instead in _PASSING.items():
        text = pattern.sub(instead, text)
    return text


def place(line: bytes) -> tuple[int, int, str]:
    """Seqno, row offset and commit time of a staged line."""
    _, seqno, offset, time, _ = line.decode().split(",", 4)
    return int(seqno), int(offset), time


def _shortest(time: str) -> str:
    """As Spark writes it."""
    return time.rstrip("0").rstrip(".") if "." in time else time


def _field(value: str | None, quoted: bool) -> str:
    if value is None:
        return "\\N"
    return f'"{value.translate(_ESCAPED)}"' if quoted else value
