"""Built logs as files in folders, and the reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from loader.reader.events import Event, RowsEvent
from loader.reader.files import log_walk, raw_events
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar

ORDERS = Table("shop", "orders", (integer("id"), varchar("name")))
LINES = Table("shop", "lines", (integer("id"), integer("line")), key=(0, 1))
UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
"""The source of the GTIDs that LogBuilder writes."""


def busy(count: int, *, first: int = 1, **how: bool) -> LogBuilder:
    """A log of so many transactions: inserts, then updates, one that changes its key, and deletes, of two tables."""
    log = LogBuilder(**how)
    for number in range(first, first + count):
        log.begin(number)
        log.table_map(ORDERS)
        log.write(ORDERS, *((number * 10 + n, f'item "{n}"\n\\') for n in range(number % 3 + 1)), last=False)
        log.update(ORDERS, ((number, "a"), (number, "b")), ((number, "b"), (-number, None)))
        log.table_map(LINES, 101)
        log.delete(LINES, (number, 1), (number, 2), table_id=101)
        log.xid()
        if number % 3 == 0:
            log.gtid(1000 + number)
            log.query(f"ALTER TABLE t ADD c{number} INT", "shop")
    return log


def written(folder: Path, logs: Sequence[bytes], *, index: bool = False, first: int = 1) -> list[Path]:
    """The logs as binlog.000001 and so on, with an index file if asked for."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"binlog.{number:06d}" for number, _ in enumerate(logs, first)]
    for path, log in zip(paths, logs, strict=True):
        path.write_bytes(log)
    if index:
        (folder / "binlog.index").write_text("".join(f"./{path.name}\n" for path in paths))
    return paths


def read(path: Path, **how: object) -> list[Event]:
    """All events behind a path."""
    with open_log(f"file://{path}", **how) as log:  # type: ignore[arg-type]
        return list(log)


def names(events: Sequence[Event]) -> list[str]:
    """Their classes, without Event."""
    return [type(event).__name__.removesuffix("Event") for event in events]


def staged_by_table(events: Sequence[Event]) -> dict[str, bytes]:
    """The staged text of row events, table by table."""
    found: dict[str, bytes] = {}
    for event in events:
        if isinstance(event, RowsEvent) and event.schema:
            name = str(event.table)
            found[name] = found.get(name, b"") + event.staged
    return found


def blocks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs be read in blocks of so many bytes."""
    monkeypatch.setattr(log_walk, "BLOCK", size)
    monkeypatch.setattr(raw_events, "BLOCK", size)
