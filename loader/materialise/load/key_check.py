"""The key of a table that another tool loaded: merges find a row by its key, so each key must be there once."""

from __future__ import annotations

from loader.errors import DataError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier
from loader.resources import sql


def check_keys(warehouse: Warehouse, layout: Layout) -> None:
    """Check that no part of a key is NULL, and that no two rows have the same key.

    A history has many rows of a key, so it is not checked.

    Raises:
        DataError: with an example.
    """
    if not layout.key or layout.rule.mode == "history":
        return
    name, key = warehouse.name(layout.schema.name), ", ".join(map(identifier, layout.key))
    nulls = " OR ".join(f"{identifier(column)} IS NULL" for column in layout.key)
    found = warehouse.session.sql(sql("materialise/bad_key").format(key=key, table=name, nulls=nulls)).first()
    if found is None:
        return
    *values, count = found
    rows = f"{count:,} row{'s' if count > 1 else ''}"
    why = f"{rows} with ({', '.join(layout.key)}) = ({', '.join(map(_text, values))}), for example"
    if None in values:
        raise DataError(
            "rows of the table have NULL in their key",
            why=why,
            hint=f"give them their keys; or, in Spark: DELETE FROM {name} WHERE {nulls}; then adopt the table again",
            table=layout.schema.name,
        )
    raise DataError(
        "rows of the table have the same key",
        why=why,
        hint="leave one row of each key, then adopt the table again. In Spark, all such keys:"
        f" SELECT {key}, count(*) FROM {name} GROUP BY {key} HAVING count(*) > 1",
        table=layout.schema.name,
    )


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return f"X'{value.hex()}'" if isinstance(value, bytes | bytearray) else str(value)
