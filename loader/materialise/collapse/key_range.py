"""The range of a merge's keys as SQL: what is outside of it is not read."""

from __future__ import annotations

from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifier, literal
from loader.model.table import TableSchema
from loader.types.warehouse import spark_type


def key_between(low: str | None, high: str | None, work: Work) -> str:
    """That the first column of the key is from `low` to `high`: its values as Spark writes them, binary as hex."""
    return f"{identifier(work.layout.key[0])} BETWEEN {_bound(low, work.schema)} AND {_bound(high, work.schema)}"


def key_type(schema: TableSchema) -> str:
    """The Spark type of the key's first column."""
    return spark_type(schema.column(schema.key[0]))


def _bound(text: str | None, schema: TableSchema) -> str:
    """A value of the first key column as SQL; constant folding makes a literal of it before files are pruned."""
    if text is None:
        return "NULL"
    kind = key_type(schema)
    if kind == "binary":
        return f"X'{text}'"
    return literal(text) if kind == "string" else f"CAST({literal(text)} AS {kind})"
