"""A log of mixed work decodes, row by row, to what the server's own mysqlbinlog shows."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from loader.cli.demo.shop import TABLES, Writer, create_shop
from loader.staging.documents import TableFilter
from tests.integration.binlog import pseudo_sql
from tests.integration.binlog.source import Source
from tests.integration.initial_load.values.every_value import TABLE, statements

pytestmark = pytest.mark.integration
WORK_TRANSACTIONS = 150


def rounded(kinds: list[str], record: list[str | None]) -> list[object]:
    """mysqlbinlog shows six digits of floats: both sides are compared so."""
    letter, *values = record
    return [letter, *(digits(kind, value) for kind, value in zip(kinds, values, strict=True))]


def digits(kind: str, value: str | None) -> str | None:
    """A number, or a JSON string, as both sides can show it; anything else as it is."""
    if kind == "json" and value is not None and value.startswith('"'):
        return str(json.loads(value))  # mysqlbinlog takes the quotes off
    if value is None or kind not in {"float", "double"}:
        return value
    return f"{float(np.float32(value)) if kind == 'float' else float(value):.5g}"


def compare(source: Source, start: object, stop: object, folder: Path, include: tuple[str, ...]) -> dict[str, int]:
    """Records by table, after each was found to be the same as mysqlbinlog's."""
    staged = source.staged(folder, start, stop, tables=TableFilter(include=include))  # type: ignore[arg-type]
    tables = sorted({str(file.name) for file in staged.manifest.files})
    schemas = {table: staged.schema(table) for table in tables}
    shown: dict[str, list[list[str | None]]] = defaultdict(list)
    for change in pseudo_sql.changes(source, start, stop):  # type: ignore[arg-type]
        if change.table in schemas:
            shown[change.table] += pseudo_sql.records(change, schemas[change.table], source.kind)
    for table in tables:
        kinds = [column.type for column in schemas[table].columns]
        mine = [rounded(kinds, [line[0], *line[5:]]) for line in staged.records(table)]
        theirs = [rounded(kinds, record) for record in shown[table]]
        assert len(mine) == len(theirs)
        names = ["letter", *(column.name for column in schemas[table].columns)]
        wrong = [
            f"{table}, record {number}, {name}: {a!r:.150} is not {b!r:.150}"
            for number, (one, other) in enumerate(zip(mine, theirs, strict=True))
            for name, a, b in zip(names, one, other, strict=True)
            if a != b
        ]
        assert wrong == []
    return {table: len(shown[table]) for table in tables}


def test_the_shop_and_its_writer(source: Source, tmp_path: Path) -> None:
    source.run("DROP DATABASE IF EXISTS shop", "DROP DATABASE IF EXISTS shop_fill", "FLUSH BINARY LOGS")
    start = source.mark()
    try:
        create_shop(source.address, 400)
        writer = Writer(source.address, seed=7).start()
        while writer.transactions < WORK_TRANSACTIONS and writer._thread.is_alive():
            writer._thread.join(0.02)
        writer.stop()
        counts = compare(source, start, source.mark(), tmp_path, ("shop.*",))
    finally:
        source.run("DROP DATABASE IF EXISTS shop", "DROP DATABASE IF EXISTS shop_fill")
    assert set(counts) == set(TABLES)
    assert sum(counts.values()) > 600


def test_every_type(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS every_type", TABLE, "FLUSH BINARY LOGS")
    start = source.mark()
    small = [statement for statement in statements(source.kind) if "'long'" not in statement]
    source.run(*small, "UPDATE every_type SET ti = 5, tx = 'new' WHERE k2 > 0", "DELETE FROM every_type")
    counts = compare(source, start, source.mark(), tmp_path, (f"{source.schema}.*",))
    assert counts[f"{source.schema}.every_type"] > 20
