"""Runs the stages of a merge on its branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

from pyspark.sql import functions as sf

from loader.errors import UnsupportedError
from loader.failpoints import failpoint
from loader.materialise.applying import Statement, statements
from loader.materialise.branch import Branch
from loader.materialise.changes import Changes
from loader.materialise.plan import Check, Copy, Empty, Fill, Merge, Work
from loader.materialise.quoting import identifier, literal
from loader.materialise.warehouse import Warehouse
from loader.model.table import Column
from loader.resources import sql
from loader.typemap import Form, form, spark_type

Complete = Callable[[Work, Changes, str], Changes]
"""Gives changes the columns that their row images leave out, from the table of that name in SQL."""


def build(
    warehouse: Warehouse,
    branch: Branch,
    merge: Merge,
    changes: MutableMapping[int, Changes],
    complete: Complete,
    signature: Mapping[str, str] | None,
) -> int:
    """Run all stages; the number of commits made, of which the last one carries the signature, if there is one.

    Args:
        warehouse: the branch's.
        branch: to write to.
        merge: what is to be done.
        changes: the collapsed records by the place of their work among the stages, there are none of others; partial
            ones are completed.
        complete: does so.
        signature: of the merge.

    Raises:
        LoaderError: the rows are not such that they can be brought there.
    """
    steps, alone = 0, len(merge.stages) == 1
    for place, stage in enumerate(merge.stages):
        if isinstance(stage, Work):
            found = changes.get(place)
            if found and found.partial:
                found = changes[place] = complete(stage, found, branch.target)
            todo = list(statements(warehouse.session, found, stage, branch)) if found and found.keys else []
        else:
            todo = list(_others(warehouse, branch, merge, stage))
        steps += run(warehouse, branch, todo, signature if alone else None)
    if signature and not (alone and steps):
        branch.mark(signature)
        steps += 1
    return steps


def run(warehouse: Warehouse, branch: Branch, todo: Sequence[Statement], signature: Mapping[str, str] | None) -> int:
    """Run statements on the branch, the last one signed; how many these were."""
    for statement in todo:
        with branch.signed(signature if statement is todo[-1] else None):
            warehouse.session.sql(statement.sql)
        failpoint(statement.point)
    return len(todo)


def _others(
    warehouse: Warehouse, branch: Branch, merge: Merge, stage: Empty | Copy | Fill | Check
) -> Iterator[Statement]:
    if isinstance(stage, Empty):
        yield from _emptied(branch, merge)
    elif isinstance(stage, Copy):
        yield _copied(warehouse, branch, merge, stage)
    elif isinstance(stage, Fill):
        values = {name: _constant(warehouse, merge, column, text) for name, (column, text) in stage.columns.items()}
        settings = ", ".join(f"{identifier(name)} = {value}" for name, value in values.items())
        yield Statement(f"UPDATE {branch.target} SET {settings}", "stage.after")
    else:
        _checked(warehouse, branch, merge, stage)


def _emptied(branch: Branch, merge: Merge) -> Iterator[Statement]:
    """A history keeps what it has, and a table that keeps deleted rows marks them."""
    if merge.rule.mode == "mirror":
        # A DELETE of all rows would be done without the session, and so without its signature.
        yield Statement(f"INSERT OVERWRITE {branch.target} SELECT * FROM {branch.target} WHERE false", "stage.after")
    elif merge.rule.mode == "soft_delete":
        flag = identifier(merge.rule.deleted_column)
        yield Statement(f"UPDATE {branch.target} SET {flag} = true WHERE NOT {flag}", "stage.after")


def _copied(warehouse: Warehouse, branch: Branch, merge: Merge, stage: Copy) -> Statement:
    theirs = warehouse.rule(stage.table)
    if (merge.rule.mode, theirs.mode) != ("mirror", "mirror"):
        raise UnsupportedError(
            f"the table got its name from {stage.table}, which only a mirror of a mirror can follow",
            hint=f"loader initial-load --table {merge.name} --again",
            table=merge.name,
        )
    meta = {name: theirs.meta.get(field) for field, name in merge.rule.meta.items() if name}
    columns = {name: identifier(other) for name, other in stage.columns.items()}
    columns |= {name: identifier(other) if other else "NULL" for name, other in meta.items()}
    text = sql("materialise/copy_rows").format(
        branch=branch.target,
        columns=", ".join(map(identifier, columns)),
        values=", ".join(columns.values()),
        table=warehouse.name(stage.table),
        snapshot=stage.snapshot,
    )
    return Statement(text, "stage.after")


def _constant(warehouse: Warehouse, merge: Merge, column: Column, text: str) -> str:
    """A constant as SQL.

    Raises:
        UnsupportedError: its type cannot hold it, and the table's rule does not let it go.
    """
    kind = spark_type(column, merge.name)
    if form(column) is Form.HEX:
        return f"X'{text}'"
    value = literal(text) if kind == "string" else f"TRY_CAST({literal(text)} AS {kind})"
    fits = warehouse.session.range(1).select(sf.expr(value).isNotNull()).first()
    if merge.rule.on_misfit == "error" and not (fits and fits[0]):
        raise UnsupportedError(
            f"the value that a new column has in all rows does not fit its type {kind}",
            why=text,
            hint="give the table a rule with another on_misfit",
            table=merge.name,
            column=column.name,
        )
    return value


def _checked(warehouse: Warehouse, branch: Branch, merge: Merge, stage: Check) -> None:
    rows = warehouse.session.table(branch.target)
    column = {name: sf.col(identifier(name)) for name in (*stage.longest, *stage.numbered, *stage.dated)}
    found = {
        name: (sf.length(column[name]) > most) & sf.endswith(column[name], sf.lit(" "))
        for name, most in stage.longest.items()
    }
    found |= {name: sf.coalesce(column[name], sf.lit(0)) == 0 for name in stage.numbered}
    found |= {name: column[name].isNull() for name in stage.dated}
    for name, changed in found.items():
        if rows.where(changed).first():
            what = "cut spaces off its texts" if name in stage.longest else "filled rows that had 0 or NULL"
            raise UnsupportedError(
                f"a column was altered so that the server {what}, and the log does not have these rows",
                hint=f"loader initial-load --table {merge.name} --again",
                table=merge.name,
                column=name,
            )
