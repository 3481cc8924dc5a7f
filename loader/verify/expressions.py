"""Each column as the same text on both sides, made by the server's SQL there and by Spark's here.

Nothing of the codec takes part, so that a fault in it cannot hide itself.
"""

from __future__ import annotations

from loader.model.table import Column


def on_server(column: Column) -> str:
    """MySQL expression for the column's canonical text."""
    name = "`" + column.name.replace("`", "``") + "`"
    if column.type.endswith(("blob", "binary")) or column.type in {"geometry", "vector"}:
        return f"HEX({name})"
    if column.type == "bit":
        return f"CAST({name} + 0 AS CHAR)"
    if column.type == "float":
        return f"CAST(CAST({name} AS DOUBLE) AS CHAR)"
    return f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"


def in_warehouse(column: Column) -> str:
    """Spark expression for the column's canonical text."""
    name = "`" + column.name.replace("`", "``") + "`"
    if column.type.endswith(("blob", "binary")) or column.type == "geometry":
        return f"hex({name})"
    if column.type in {"datetime", "timestamp"}:
        fraction = "." + "S" * column.size if column.size else ""
        return f"date_format({name}, 'yyyy-MM-dd HH:mm:ss{fraction}')"
    if column.type == "year":
        return f"lpad(cast({name} as string), 4, '0')"
    return f"cast({name} as string)"


def number_like(column: Column) -> bool:
    """Whether texts of the column are compared as floating-point numbers."""
    return column.type in {"float", "double"}
