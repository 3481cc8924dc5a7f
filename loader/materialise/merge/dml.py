"""The SQL statements that apply the changes of a table to its branch, by the table's mode."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.multiset import find_deleted_rows
from loader.materialise.collapse.table_changes import MANY_ROWS, Changes
from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.insert_columns import insert_lists
from loader.materialise.merge.row_files import RowFiles
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifiers
from loader.resources import sql

_BROADCAST_KEYS = 1_000_000
"""Up to this many changed keys are broadcast to every executor. A key takes some 100 bytes of memory."""


class Statement(NamedTuple):
    """A SQL statement that makes one commit, and the failpoint after it.

    Attributes:
        rows: writes the data files that the statement would write; None if only Spark can.
    """

    sql: str
    point: str
    rows: RowFiles | None = None


def build_statements(session: SparkSession, changes: Changes, work: Work, branch: Branch) -> tuple[Statement, ...]:
    """Return the statements that apply `changes`, in order.

    Raises:
        DataError: a row to delete is not in the warehouse, in a table without a key.
    """
    mode, key = work.rule.mode, work.schema.key
    if not key and mode == "mirror":
        return _multiset_statements(session, changes, work, branch.target)
    changes.frame.createOrReplaceTempView("loader_changes")
    if mode == "history":
        return (_insert(session, changes, work, branch.target, "true"),)
    changes.changed_keys.createOrReplaceTempView("loader_changed_keys")
    delete = Statement(_delete_keys(changes, work, branch.target), "delete.after")
    insert = _insert(session, changes, work, branch.target, "_op <> 'D'" if mode == "mirror" else "true")
    return (*((delete,) if branch.has_rows() else ()), *((insert,) if changes.rows_to_insert else ()))


def _multiset_statements(session: SparkSession, changes: Changes, work: Work, branch: str) -> tuple[Statement, ...]:
    found = []
    if changes.rows_to_delete:
        find_deleted_rows(session, changes, work, branch).createOrReplaceTempView("loader_places")
        delete = sql("materialise/delete_places").format(branch=branch, within=changes.within)
        found.append(Statement(delete, "delete.after"))
    if changes.rows_to_insert:
        copies = changes.frame.where("net > 0").withColumn("nth", sf.explode(sf.sequence(sf.lit(1), "net")))
        copies.createOrReplaceTempView("loader_changes")
        found.append(_insert(session, changes, work, branch, "true"))
    return tuple(found)


def _delete_keys(changes: Changes, work: Work, branch: str) -> str:
    return sql("materialise/delete_changed").format(
        branch=branch,
        within=changes.within,
        key=identifiers(work.layout.key),
        key_columns=", ".join(key_places(work.schema)),
        hint="/*+ BROADCAST(loader_changed_keys) */" if changes.keys <= _BROADCAST_KEYS else "",
    )


def _insert(session: SparkSession, changes: Changes, work: Work, branch: str, kept: str) -> Statement:
    lists = insert_lists(session, branch, work.layout.values)
    text = sql("materialise/insert_rows").format(branch=branch, options=_options(changes), kept=kept, **lists)
    rows = RowFiles(changes.record_files, work, changes.rows_to_insert) if changes.record_files else None
    return Statement(text, "insert.after", rows)


def _options(changes: Changes) -> str:
    """Return the write options: how rows are distributed over tasks, which write a file each, and whether to sort them.

    By default, Iceberg distributes and sorts rows by the table's order. Sorted rows need neither. Of many rows, each
    task sorts only its own.
    """
    if changes.sorted:
        return "WITH ('use-table-distribution-and-ordering' = 'false')"
    return "WITH ('distribution-mode' = 'none')" if changes.rows_to_insert >= MANY_ROWS else ""
