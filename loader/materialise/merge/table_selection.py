"""The tables that a run looks at, and the positions where tables must stop on the way. From documents alone."""

from __future__ import annotations

from collections.abc import Iterator

from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.staging.published import Published


def known_tables(chain: Chain, record: Published | None) -> set[TableName]:
    """Return the tables that the warehouse has, or will have once their initial load is applied.

    A quarantined table that was never loaded and has no position is left out.
    """
    names = (*record.tables, *record.ahead, *_behind_with_rows(record)) if record else ()
    known = set(map(TableName.parse, names))
    return known | set(chain.tables_with_load(known))


def _behind_with_rows(record: Published) -> Iterator[str]:
    """Yield the tables that the record lists as behind and that exist in the warehouse: postponed or quarantined."""
    for name, seqno in record.behind.items():
        postponed = record.postponed.get(name)
        if postponed.snapshot is not None if postponed else seqno > 0:
            yield name


def changed_tables(chain: Chain, record: Published | None, stop: int) -> set[TableName]:
    """Return the tables with changes after the newest published record: staged records, or rows that are missing.

    Tables behind the record are included. The warehouse may lack some of these tables.
    """
    low = record.stop_seqno if record else 0
    behind = map(TableName.parse, record.behind) if record else ()
    staged = {file.name for manifest in chain.intervals_between(low, stop) for file in manifest.files if file.rows}
    return staged | {table for _, table in chain.incomplete_tables(low, stop)} | set(behind)


def mentioned_tables(chain: Chain, record: Published | None, stop: int) -> set[TableName]:
    """Return the tables of statements after the newest published record. Some of them have no records."""
    low = record.stop_seqno if record else 0
    intervals = chain.intervals_between(low, stop)
    named = {name for manifest in intervals for barrier in manifest.barriers for name in barrier.tables}
    return set(map(TableName.parse, named))


def merge_steps(chain: Chain, low: int, stop: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
    """Yield positions in (low, stop] where tables must stop before the merge to `stop`, as seqnos, and these tables.

    All tables of a RENAME are merged up to right before it, and then over it. So each table finds the rows of the other
    one as they were. An incomplete table is merged up to right before its first missing row, where it then stops. So is
    a table whose rows a statement changed without row events.
    """
    for seqno, tables in chain.rename_statements(low, stop):
        yield seqno - 1, tables
        yield seqno, tables
    for seqno, tables in chain.unlogged_statements(low, stop):
        yield seqno - 1, tables
    for seqno, table in chain.incomplete_tables(low, stop):
        yield seqno - 1, (table,)
