"""The columns of an INSERT."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark
from pyspark.sql import SparkSession

from loader.materialise.quoting import identifier

_NAMES_ALL = pyspark.__version__.startswith("4.0.")


def insert_lists(session: SparkSession, target: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the lists `columns` and `values` of an INSERT into a table or branch.

    Columns of the table that have no value become NULL. Spark does that itself since 4.1. Spark 4.0 refuses an INSERT
    that leaves a column out (INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA).

    Args:
        session: of the catalog.
        target: the table or branch in SQL.
        values: SQL expressions by column.
    """
    found = dict(values)
    if _NAMES_ALL:
        known = {name.lower() for name in found}
        found |= {name: "NULL" for name in session.table(target).columns if name.lower() not in known}
    return {"columns": ", ".join(map(identifier, found)), "values": ", ".join(found.values())}
