"""Merges all pending changes of one table, mostly: delete the changed keys, insert each key's last version; publish.

All steps happen on a private branch; main takes them, and the new applied position, by one fast-forward.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

from loader.errors import DataError, GapError, RetryableError
from loader.failpoints import failpoint
from loader.materialise.applying import statements
from loader.materialise.branch import Branch, LostError, drop_superseded
from loader.materialise.chain import Chain
from loader.materialise.changes import Changes
from loader.materialise.collapse import collapse
from loader.materialise.history import APPLIED, GENERATION, POSITION, SOURCE, Applied, TableHistory
from loader.materialise.lock import table_lock
from loader.materialise.plan import Work, plan_table
from loader.materialise.published import known_through
from loader.materialise.rules import DEFAULT, TableRule, check_rule
from loader.materialise.spec import TableResult
from loader.materialise.verifying import verify_files
from loader.materialise.warehouse import Warehouse, check_ours, recorded_schema
from loader.model.table import TableName
from loader.staging.documents import Manifest, Published

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5


def merge_table(
    warehouse: Warehouse, chain: Chain, table: TableName, target: int, record: Published | None = None
) -> TableResult:
    """Bring a table to `target`, the stop of an extracted interval.

    The newest published record may spare reading intervals in which the table was quiet.

    Raises:
        LoaderError: the table cannot be brought there; it is as it was.
    """
    began = time.monotonic()
    failpoint("table.before")
    with table_lock(warehouse.catalog, table):
        for _ in range(_ATTEMPTS):
            try:
                result = _attempt(warehouse, chain, table, target, record)
            except LostError as lost:
                _LOG.info("%s: starting over: %s", table, lost)
                continue
            return result.model_copy(update={"seconds": round(time.monotonic() - began, 3)})
    raise RetryableError(
        f"others committed to the table during each of {_ATTEMPTS} merges",
        hint="run again when the maintenance of the table is done",
        table=table,
    )


def plan_merge(
    history: TableHistory | None,
    chain: Chain,
    table: TableName,
    target: int,
    record: Published | None,
    rule: TableRule = DEFAULT,
) -> Work | TableResult:
    """What a table needs to get to `target`, or how it stands when it needs nothing. No Spark job runs for it.

    Raises:
        DataError: the table was never loaded, is not ours, was made by another rule, or cannot be brought there.
    """
    applied = check_ours(history, table, chain.source, chain.generations) if history else None
    if history is None or applied is None:
        raise DataError(
            f"changes of table {table} are staged, but it was never loaded",
            hint=f"loader initial-load --table {table}",
            table=table,
        )
    check_rule(history.properties, rule, table)
    since = known_through(record, table, applied)
    if since >= target:
        return _standing(table, applied, "already")
    recorded = recorded_schema(history, table)
    chain.check_joined(table, since)
    manifests = chain.covering(since, target)
    _check_captured(chain, manifests, table)
    work = plan_table(table, recorded, since, target, manifests)
    return replace(work, rule=rule) if work else _standing(table, applied, "unchanged")


def _check_captured(chain: Chain, manifests: Sequence[Manifest], table: TableName) -> None:
    for manifest in manifests:
        if not chain.captures(manifest.start_seqno, table):
            raise GapError(
                "the table was not captured all the time",
                why=f"the interval [{manifest.start}, {manifest.stop}) was extracted without it",
                hint=f"loader initial-load --table {table} --again",
                table=table,
            )


def _attempt(
    warehouse: Warehouse, chain: Chain, table: TableName, target: int, record: Published | None
) -> TableResult:
    history = warehouse.history(table)
    work = plan_merge(history, chain, table, target, record, warehouse.rule(table))
    if isinstance(work, TableResult) or history is None:
        return cast("TableResult", work)
    verify_files(warehouse.session, chain.store, work.files)
    changes = collapse(warehouse.session, [chain.store.uri(file.key) for file in work.files], work)
    try:
        if changes.keys:
            return _merge(warehouse, chain, work, changes, history.head)
        return _standing(table, cast("Applied", history.applied), "unchanged")
    finally:
        changes.release()


def _merge(warehouse: Warehouse, chain: Chain, work: Work, changes: Changes, base: int | None) -> TableResult:
    with Branch(warehouse, work.name, base) as branch:
        steps = _build(warehouse, branch, work, changes, chain)
        commits = branch.publish(steps)
    drop_superseded(warehouse, work.name)
    return TableResult(
        table=str(work.name),
        status="applied",
        inserts=changes.inserts,
        updates=changes.updates,
        deletes=changes.deletes,
        # Iceberg writes the deletions that a file has had already again, beside the new ones.
        rows_deleted=sum(c.count("added-position-deletes") - c.count("removed-position-deletes") for c in commits),
        rows_inserted=sum(commit.count("added-records") for commit in commits),
        applied_seqno=work.target,
        position=work.position,
        snapshot=commits[0].id,
        misfits=changes.misfits,
    )


def _build(warehouse: Warehouse, branch: Branch, work: Work, changes: Changes, chain: Chain) -> int:
    """Run the statements on the branch; the number of commits made."""
    todo = statements(warehouse.session, changes, work, branch.target)
    for statement in todo:
        with branch.signed(_signature(work, chain) if statement is todo[-1] else {}):
            warehouse.session.sql(statement.sql)
        failpoint(statement.point)
    return len(todo)


def _signature(work: Work, chain: Chain) -> dict[str, str]:
    return {
        APPLIED: str(work.target),
        POSITION: work.position,
        SOURCE: chain.source,
        GENERATION: chain.generation,
    }


def _standing(table: TableName, applied: Applied, status: Literal["already", "unchanged"]) -> TableResult:
    return TableResult(
        table=str(table),
        status=status,
        applied_seqno=applied.seqno,
        position=applied.position,
        snapshot=applied.snapshot,
    )
