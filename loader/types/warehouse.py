"""The types of columns in staged files, in Spark SQL and in Iceberg.

Sources: the servers' manuals, "Data Types" and "LOAD DATA"; Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re

from loader.model.table import Column, TableName
from loader.types.catalogue import type_of
from loader.types.column_type import Form

_DECIMAL = re.compile(r"decimal\((?P<size>\d+),\s*(?P<scale>\d+)\)")


def form(column: Column) -> Form:
    """Return the form in which values of the column are staged.

    Raises:
        UnsupportedError: the loader does not support the type.
    """
    return type_of(column).form


def spark_type(column: Column, table: TableName | None = None) -> str:
    """Return the column's type in Spark SQL and so in Iceberg: the narrowest that holds every value.

    Raises:
        UnsupportedError: the loader does not support the type; with the table in its place if it is given.
    """
    return type_of(column, table).spark(column)


def widened_type(one: str, other: str) -> str | None:
    """Return the Spark type to which Iceberg can widen columns of both types; None if values would change.

    Iceberg specification, "Schema Evolution", format version 2.
    """
    if one == other:
        return one
    for narrow, wide in (("int", "bigint"), ("float", "double")):
        if {one, other} == {narrow, wide}:
            return wide
    sizes = [_DECIMAL.fullmatch(kind) for kind in (one, other)]
    if sizes[0] and sizes[1] and sizes[0]["scale"] == sizes[1]["scale"]:
        return max(one, other, key=lambda kind: int(kind[len("decimal(") :].partition(",")[0]))
    return None
