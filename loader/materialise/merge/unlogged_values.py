"""Rows and values that are not in records: rows of renamed tables, and constants of added columns."""

from __future__ import annotations

from pyspark.sql import functions as sf

from loader.errors import UnsupportedError
from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.insert_columns import insert_lists
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.dml import Statement
from loader.materialise.plan.frame_columns import places
from loader.materialise.plan.merge_plan import CopyRows, FillColumns, Merge
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier, literal
from loader.model.table import Column, TableName
from loader.resources import sql
from loader.types.column_type import Form
from loader.types.warehouse import form, spark_type

_LOST = {("error", "null"), ("error", "text"), ("text", "null")}
"""Pairs of on_misfit, of this table and of the other one, in which a NULL of the other may hide an invalid date."""


def copy_statement(warehouse: Warehouse, branch: Branch, merge: Merge, stage: CopyRows) -> Statement:
    """Return the statement that copies the rows of another table, including its text columns for misfits.

    Raises:
        UnsupportedError: the other table's rule does not keep what this table's rule needs.
    """
    other = stage.schema.name
    theirs = warehouse.rule(other)
    if (merge.rule.mode, theirs.mode) != ("mirror", "mirror"):
        raise _rename_rule_error(merge, other, "which only a mirror of a mirror can follow")
    here, there = Layout(stage.schema, merge.rule, stage.aliases), Layout(stage.schema, theirs)
    if there.lenient_columns and (merge.rule.on_misfit, theirs.on_misfit) in _LOST:
        why = f"whose rule has on_misfit = {theirs.on_misfit!r}, not {merge.rule.on_misfit!r}"
        raise _rename_rule_error(merge, other, why)
    meta = {name: theirs.meta.get(field) for field, name in merge.rule.meta.items() if name}
    columns = {here.name(column.name): identifier(there.name(column.name)) for column in stage.schema.columns}
    columns |= {
        name: identifier(there.text_columns[c]) if c in there.text_columns else "NULL"
        for c, name in here.text_columns.items()
    }
    columns |= {name: identifier(their) if their else "NULL" for name, their in meta.items()}
    text = sql("materialise/copy_rows").format(
        branch=branch.target,
        **insert_lists(warehouse.session, branch.target, columns),
        table=warehouse.name(other),
        snapshot=stage.snapshot,
    )
    return Statement(text, "stage.after")


def _rename_rule_error(merge: Merge, other: TableName, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the table got its name from {other}, {why}",
        hint=merge.name.load_again,
        table=merge.name,
    )


def fill_statement(warehouse: Warehouse, branch: Branch, merge: Merge, stage: FillColumns) -> Statement:
    """Return the statement that sets new columns to their constants in all rows. Misfits follow the rule.

    Raises:
        UnsupportedError: a constant does not fit its column, and the rule refuses misfits.
    """
    layout = Layout(stage.schema, merge.rule, stage.aliases)
    values: dict[str, str] = {}
    for place, column in zip(places(stage.schema), stage.schema.columns, strict=True):
        text = stage.constants.get(column.name)
        if text is None:
            continue
        value, fits = _constant(warehouse, merge, column, text)
        if not fits and place not in layout.lenient_columns:
            raise UnsupportedError(
                f"the value that a new column has in all rows does not fit its type {spark_type(column)}",
                why=text,
                hint=f'give the table a rule with on_misfit = "null"; or {merge.name.exclusion}',
                table=merge.name,
                column=column.name,
            )
        values[layout.name(column.name)] = value
        if place in layout.text_columns:
            values[layout.text_columns[place]] = "NULL" if fits else literal(text)
    settings = ", ".join(f"{identifier(name)} = {value}" for name, value in values.items())
    return Statement(f"UPDATE {branch.target} SET {settings}", "stage.after")


def _constant(warehouse: Warehouse, merge: Merge, column: Column, text: str) -> tuple[str, bool]:
    """Return a constant as SQL, and whether its type can hold it. A misfit evaluates to NULL."""
    kind = spark_type(column, merge.name)
    if form(column) is Form.HEX:
        return f"X'{text}'", True
    value = literal(text) if kind == "string" else f"TRY_CAST({literal(text)} AS {kind})"
    fits = warehouse.session.range(1).select(sf.expr(value).isNotNull()).first()
    return value, bool(fits and fits[0])
