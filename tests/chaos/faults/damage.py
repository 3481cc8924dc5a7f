"""Damage to rows of the warehouse by another writer, and what `loader replay` must make of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from tests.chaos.access.source import DATABASE
from tests.chaos.comparison.tables import catalog_name


def open_tables(home: Path) -> SqlCatalog:
    """Open the JDBC catalog that the loader's Spark writes, by PyIceberg."""
    return SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")


def damage(rng: Random, home: Path, name: str, since: int, key: Sequence[str]) -> str:
    """Delete, duplicate or change rows that changed after a seqno; say what was done, nothing if there are none.

    A replay compares no rows that have not changed since the newest load of their table.
    """
    table = open_tables(home).load_table((DATABASE, catalog_name(name)))
    since = max(since, *_loads(table))
    seqnos = sorted({one for one in table.scan().to_arrow()["_seqno"].to_pylist() if one > since})
    if not seqnos:
        return ""
    chosen = rng.choice(seqnos)
    how = rng.choice([_delete, _duplicate, partial(_change, key=key)])
    return f"{name}: {how(table, chosen)} of transaction {chosen}"


def _loads(table: Table) -> list[int]:
    """Return the positions of the loads of a table as seqnos; 0 among them."""
    summaries = [one.summary.additional_properties for one in table.snapshots() if one.summary]
    return [0, *(int(one["loader.applied"]) for one in summaries if "loader.exact_at" in one)]


def _delete(table: Table, seqno: int) -> str:
    table.delete(EqualTo("_seqno", seqno))
    return "deleted the rows"


def _duplicate(table: Table, seqno: int) -> str:
    rows: pyarrow.Table = table.scan(row_filter=EqualTo("_seqno", seqno)).to_arrow()
    table.append(rows)
    return "duplicated the rows"


def _change(table: Table, seqno: int, key: Sequence[str]) -> str:
    rows: pyarrow.Table = table.scan(row_filter=EqualTo("_seqno", seqno)).to_arrow()
    others = [one for one in rows.schema if not one.name.startswith("_") and one.name not in key and one.nullable]
    field = next((one for one in others if rows[one.name].null_count < rows.num_rows), None)
    if field is None:
        return _delete(table, seqno)
    table.delete(EqualTo("_seqno", seqno))
    table.append(rows.set_column(rows.column_names.index(field.name), field, pyarrow.nulls(rows.num_rows, field.type)))
    return f"emptied {field.name} in the rows"
