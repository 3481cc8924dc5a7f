"""The range of a merge's keys as SQL. Spark does not read files outside of the range."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as sf

from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifier, literal
from loader.model.table import TableSchema
from loader.types.warehouse import spark_type


def key_between(low: str | None, high: str | None, work: Work) -> str:
    """Return the condition that the first key column is from `low` to `high`.

    Args:
        low: the smallest value as Spark writes it, a binary value as hex; None for NULL.
        high: the largest value, in the same form.
        work: the records of the merge.
    """
    kind = key_type(work.schema)
    if kind in {"float", "double"}:
        low, high = _with_both_zeros(low, "-0.0"), _with_both_zeros(high, "0.0")
    return f"{identifier(work.layout.key[0])} BETWEEN {_bound(low, kind)} AND {_bound(high, kind)}"


def key_type(schema: TableSchema) -> str:
    """Return the Spark type of the first key column."""
    return spark_type(schema.column(schema.key[0]))


def key_texts(schema: TableSchema, low: Expression, high: Expression) -> list[Expression]:
    """Return two values of the first key column as `key_between` takes them, with the names `low` and `high`."""
    as_text = sf.hex if key_type(schema) == "binary" else lambda value: value.cast("string")
    return [as_text(low).alias("low"), as_text(high).alias("high")]


def _with_both_zeros(text: str | None, zero: str) -> str | None:
    """Return a bound that does not part -0.0 from 0.0. They are equal for Spark, but not where Iceberg skips files."""
    return zero if text is not None and float(text) == 0 else text


def _bound(text: str | None, kind: str) -> str:
    """Return a value of the first key column as SQL. Spark folds it to a literal before it prunes files."""
    if text is None:
        return "NULL"
    if kind == "binary":
        return f"X'{text}'"
    return literal(text) if kind == "string" else f"CAST({literal(text)} AS {kind})"
