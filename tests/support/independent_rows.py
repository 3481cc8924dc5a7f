"""Rows of a server and of a warehouse, compared without any code of the loader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pyiceberg.table import Table

from infra.servers import Server
from tests.chaos.access.source import History, Session
from tests.chaos.comparison.rows import server_rows, warehouse_rows

_OWN_COLUMNS = ["_seqno", "_committed_at"]


def differing_rows(server: Server, schema: str, load_table: Callable[[str], Table]) -> dict[str, int]:
    """Count the rows that only the server or only the warehouse has, for each table of a schema of the server."""
    session = Session(server, History(), "outside", database=schema)
    found = {}
    for table in session.tables():
        columns, name = session.columns(table), f"{schema}.{table}"
        arrow = load_table(name).scan().to_arrow()
        assert arrow.column_names == [*(column.name for column in columns), *_OWN_COLUMNS], name
        theirs = Counter(server_rows(server, schema, table, columns))
        ours = Counter(warehouse_rows(arrow, columns))
        found[name] = (theirs - ours).total() + (ours - theirs).total()
    session.close()
    return found
