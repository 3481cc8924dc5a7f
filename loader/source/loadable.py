"""What a table needs so that a load of it and the log after it agree."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.model.key_labels import check_key_labels
from loader.model.table import TableSchema
from loader.source.foreign_keys import check_cascades
from loader.source.virtual_columns import check_virtual_columns


def check_loadable(connection: Connection[Any], schema: TableSchema) -> None:
    """Check that the log has every change of a table, and the values that a load of it reads, and tells its rows apart.

    Raises:
        UnsupportedError: it does not, and why.
    """
    check_key_labels(schema)
    check_cascades(connection, schema.name)
    check_virtual_columns(connection, schema)
