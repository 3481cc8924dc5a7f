"""Compare tables of the server, read by PyMySQL, with tables of the warehouse, read by PyIceberg."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from infra.servers import Server
from tests.chaos.access.command import Command
from tests.chaos.access.modes import live_rows, mode_of, own_columns, wrongly_deleted
from tests.chaos.access.source import Session
from tests.chaos.comparison.history_replay import Beginning, Change, replayed
from tests.chaos.comparison.history_starts import Begun
from tests.chaos.comparison.rows import server_rows, warehouse_rows

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Difference:
    """What differs in one table: rows of one side only, with samples, or its columns."""

    table: str
    what: str
    missing: int = 0
    extra: int = 0

    def __str__(self) -> str:
        return f"{self.table}: {self.missing} rows only on the server, {self.extra} only in the warehouse: {self.what}"


def differences(server: Server, session: Session, command: Command, begun: Begun) -> list[Difference]:
    """Compare every captured table that the server has, whole. The server must be quiet.

    `begun`: what the log says about the table with a history.
    """
    captured = (one for one in session.tables() if one not in command.excluded)
    found = (_compare(server, session, command, one, begun) for one in captured)
    return [one for one in found if one]


def _compare(server: Server, session: Session, command: Command, table: str, begun: Begun) -> Difference | None:
    columns = session.columns(table) or session.columns(table)  # nothing if the connection was lost in between
    theirs = Counter(server_rows(server, session.database, table, columns))
    metadata = location(command, session.database, table)
    if metadata is None:
        return Difference(table, "not in the warehouse", theirs.total()) if theirs else None
    static = StaticTable.from_metadata(str(metadata))
    arrow = static.scan().to_arrow()
    mode, beginning = mode_of(table), _beginning(static, begun.emptied)
    names = [one for one in arrow.column_names if one not in own_columns(mode)]
    # The load of a history keeps the columns of its earlier rows.
    if mode == "history" or (command.keeps_columns and mode != "mirror"):
        names = [one for one in names if one in {column.name for column in columns}]
    # A table without a row since it was made or altered has its new columns, and their types, with its next row.
    if not theirs and not _has_rows(arrow, mode, beginning):
        return None
    if sorted(names) != sorted(one.name for one in columns):
        return Difference(table, f"columns {names} instead of {[one.name for one in columns]}", theirs.total())
    rows = list(warehouse_rows(arrow, columns))
    key = [place for place, one in enumerate(columns) if one.name in session.key(table)]
    if mode == "soft_delete":
        deleted = arrow.column("_is_deleted").to_pylist()
        if found := wrongly_deleted(rows, deleted, key, theirs):
            return Difference(table, f"marked as deleted: {sorted(map(repr, found))[:3]}", len(found))
        rows = live_rows(rows, deleted)
    elif mode == "history":
        earlier = [
            (seqno, [place for place, one in enumerate(columns) if one.name in old]) for seqno, old in begun.keys
        ]
        rows, wrong = replayed(_changes(arrow, rows), key, beginning, earlier)
        if wrong:
            return Difference(table, "\n    ".join(["", *wrong[:5]]), len(wrong))
    ours = Counter(rows)
    missing, extra = theirs - ours, ours - theirs
    if not missing and not extra:
        return None
    samples = [f"only on the server: {one}" for one in sorted(map(repr, missing))[:3]]
    samples += [f"only in the warehouse: {one}" for one in sorted(map(repr, extra))[:3]]
    return Difference(table, "\n    ".join(["", *samples]), missing.total(), extra.total())


def _has_rows(arrow: Any, mode: str, beginning: Beginning) -> bool:
    """Return whether a warehouse's table has changes or rows since it was made on the server."""
    if mode == "history":
        return any(map(beginning.counts, _changes(arrow)))
    if mode == "soft_delete":
        return not all(arrow.column("_is_deleted").to_pylist())
    return bool(arrow.num_rows)


def _changes(arrow: Any, rows: Sequence[Row] = ()) -> Iterator[Change]:
    """Return the rows of a history, with those values in the columns of the source."""
    own = (arrow.column(name).to_pylist() for name in ("_seqno", "_row_offset", "_op"))
    return map(Change, *own, rows or repeat(()))


def _beginning(table: StaticTable, emptied: int) -> Beginning:
    """Return where a history begins, from its newest initial load."""
    summaries = [one.summary.additional_properties for one in table.metadata.snapshots if one.summary]
    loads = [
        (int(one["loader.applied"]), int(one["loader.exact_at_seqno"]))
        for one in summaries
        if "loader.exact_at_seqno" in one
    ]
    return Beginning(*max(loads, default=(0, 0)), emptied)


def location(command: Command, database: str, table: str) -> Path | None:
    """Return the file of the newest metadata of a table, as its catalog names it."""
    return _metadata(command, catalog_name(database), catalog_name(table))


def catalog_name(name: str) -> str:
    """Return the name that a table of this name has in the catalog: see docs/explanation/iceberg-branches.md, "Names"."""
    text = ""
    for place, letter in enumerate(name):
        at_end = letter.isspace() and place in {0, len(name) - 1}
        taken = letter == "!" and re.match(r"[0-9a-f]{2}", name[place + 1 :])
        unsafe = letter in '/\\.:%#?*"<>|[]{}' or ord(letter) < 32 or ord(letter) == 127
        text += "".join(f"!{byte:02x}" for byte in letter.encode()) if unsafe or at_end or taken else letter
    return text


def _metadata(command: Command, namespace: str, table: str) -> Path | None:
    if command.catalog == "hadoop":
        folder = command.home / "warehouse" / namespace / table / "metadata"
        files = folder.glob("v*.metadata.json")
        return max(files, key=lambda path: int(path.name[1:].partition(".")[0]), default=None)
    with sqlite3.connect(command.home / "catalog.db") as catalog:
        query = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?"
        row = catalog.execute(query, (namespace, table)).fetchone()
    return Path(row[0].removeprefix("file:")) if row else None
