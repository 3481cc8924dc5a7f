"""Runs the stages of a merge on its branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

from pyspark.sql import functions as sf

from loader.errors import UnsupportedError
from loader.failpoints import failpoint
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.dml import Statement, build_statements
from loader.materialise.merge.row_files import write_row_files
from loader.materialise.merge.unlogged_values import copy_statement, fill_statement
from loader.materialise.plan.merge_plan import CheckRows, CopyRows, EmptyTable, FillColumns, Merge, Work
from loader.materialise.quoting import identifier

_ENDS_WITH_WHITESPACE = r"[\t-\r \u00a0]\z"
"""The characters that a server counts as whitespace where it cuts a text; 0xA0 in character sets of one byte."""
_HEXED = r"\A\\x([0-9a-f]{2})+\z"
"""A text as which invalid bytes may be staged."""

CompleteChanges = Callable[[Work, Changes, str], Changes]
"""Returns changes with the columns that their row images leave out, from the table with this name in SQL."""


def run_stages(
    warehouse: Warehouse,
    branch: Branch,
    merge: Merge,
    changes: MutableMapping[int, Changes],
    complete: CompleteChanges,
    signature: Mapping[str, str] | None,
) -> int:
    """Run all stages on the branch. Return the number of commits.

    Args:
        warehouse: the catalog of the branch.
        branch: the branch to write to.
        merge: the stages.
        changes: the collapsed records, by index of their Work in the stages. Partial changes are replaced by complete
            ones.
        complete: completes partial changes.
        signature: the summary properties of the last commit; None if the branch must not be signed here.

    Raises:
        LoaderError: a stage cannot be applied to the rows of the table.
    """
    steps, alone = 0, len(merge.stages) == 1
    for place, stage in enumerate(merge.stages):
        if isinstance(stage, Work):
            found = changes.get(place)
            if found and found.partial:
                found = changes[place] = complete(stage, found, branch.target)
            todo = list(build_statements(warehouse.session, found, stage, branch)) if found and found.keys else []
        else:
            todo = list(_stage_statements(warehouse, branch, merge, stage))
        steps += run_statements(warehouse, branch, todo, signature if alone else None)
    if signature and not (alone and steps):
        branch.mark(signature)
        steps += 1
    return steps


def run_statements(
    warehouse: Warehouse, branch: Branch, todo: Sequence[Statement], signature: Mapping[str, str] | None
) -> int:
    """Run statements on the branch and sign the last commit. Return the number of statements."""
    for statement in todo:
        properties = signature if statement is todo[-1] else None
        if files := write_row_files(warehouse, statement.rows) if statement.rows else None:
            branch.append(files, properties)
        else:
            with branch.signed(properties):
                warehouse.session.sql(statement.sql)
        failpoint(statement.point)
    return len(todo)


def _stage_statements(
    warehouse: Warehouse, branch: Branch, merge: Merge, stage: EmptyTable | CopyRows | FillColumns | CheckRows
) -> Iterator[Statement]:
    if isinstance(stage, EmptyTable):
        yield from _empty_statements(branch, merge)
    elif isinstance(stage, CopyRows):
        yield copy_statement(warehouse, branch, merge, stage)
    elif isinstance(stage, FillColumns):
        yield fill_statement(warehouse, branch, merge, stage)
    else:
        _check_rows(warehouse, branch, merge, stage)
        _check_key_texts(warehouse, branch, merge, stage)


def _empty_statements(branch: Branch, merge: Merge) -> Iterator[Statement]:
    """Yield the statement that empties a table. A history keeps its rows, and soft_delete marks them."""
    if merge.rule.mode == "mirror":
        # Iceberg does a DELETE of all rows outside the session, so its commit would have no signature.
        yield Statement(f"INSERT OVERWRITE {branch.target} SELECT * FROM {branch.target} WHERE false", "stage.after")
    elif merge.rule.mode == "soft_delete":
        flag = identifier(merge.rule.deleted_column)
        yield Statement(f"UPDATE {branch.target} SET {flag} = true WHERE NOT {flag}", "stage.after")


def _check_rows(warehouse: Warehouse, branch: Branch, merge: Merge, stage: CheckRows) -> None:
    rows = warehouse.session.table(branch.target)
    column = {name: sf.col(identifier(name)) for name in (*stage.longest, *stage.numbered, *stage.dated)}
    found = {
        name: (sf.length(column[name]) > most) & sf.rlike(column[name], sf.lit(_ENDS_WITH_WHITESPACE))
        for name, most in stage.longest.items()
    }
    found |= {name: sf.coalesce(column[name], sf.lit(0)) == 0 for name in stage.numbered}
    found |= {name: column[name].isNull() for name in stage.dated}
    for name, changed in found.items():
        if rows.where(changed).first():
            what = "removed trailing whitespace" if name in stage.longest else "replaced 0 or NULL in rows"
            raise UnsupportedError(
                f"a column was altered so that the server {what}, and the log does not have these rows",
                hint=merge.name.load_again,
                table=merge.name,
                column=name,
            )


def _check_key_texts(warehouse: Warehouse, branch: Branch, merge: Merge, stage: CheckRows) -> None:
    rows = warehouse.session.table(branch.target)
    for name in stage.undecodable:
        column = sf.col(identifier(name))
        if rows.where(sf.startswith(column, sf.lit("\\x")) & sf.rlike(column, sf.lit(_HEXED))).first():
            raise UnsupportedError(
                "two keys of the table can have the same text",
                why=r"a text such as \x61a1 can be an ordinary text, or the hex of invalid bytes: undecodable was"
                " changed, or the column was not in the key when the rows were staged",
                hint=f"{merge.name.load_again}; if the load refuses a key, undo the change of undecodable first",
                table=merge.name,
                column=name,
            )
