"""Merges all pending changes of one table, mostly: delete the changed keys, insert each key's last version; publish.

All steps happen on a private branch; main takes them, and the new applied position, by one fast-forward.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from functools import partial

from loader.errors import LoaderError, RetryableError
from loader.failpoints import failpoint
from loader.materialise.collapse.file_checks import verify_files
from loader.materialise.collapse.last_versions import collapse, complete_changes
from loader.materialise.collapse.partial_images import MergeBase
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.iceberg.branch import Branch, drop_superseded, is_conflict
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.table_metadata import APPLIED, Applied, TableMetadata, signature
from loader.materialise.iceberg.warehouse import Warehouse, recorded_schema, recorded_unlogged
from loader.materialise.merge.merge_planner import idle_result, no_progress_error, plan_merge
from loader.materialise.merge.merge_stages import run_stages
from loader.materialise.merge.schema_change import prepare_columns
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, Work
from loader.materialise.plan.table_layout import Layout
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Published

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5


def merge_table(
    warehouse: Warehouse,
    chain: Chain,
    table: TableName,
    target: int,
    record: Published | None = None,
    *,
    settle: bool = False,
    since: int = 0,
) -> TableResult:
    """Bring a table to `target`: the stop of an extracted interval or, with `settle`, a position before it.

    The newest published record may spare reading intervals in which the table was quiet. For `settle` and `since` see
    plan_merge.

    Raises:
        LoaderError: the table cannot be brought there; it is as it was.
    """
    began = time.monotonic()
    failpoint("table.before")
    with table_lock(warehouse.catalog, table):
        total: TableResult | None = None
        lost = 0
        while lost < _ATTEMPTS:
            try:
                result = _attempt(warehouse, chain, table, target, record, settle=settle, since=since)
            except Exception as error:
                if not is_conflict(error):
                    raise
                _LOG.info("%s: starting over: %s", table, error)
                lost += 1
                continue
            _check_progress(table, total, result, target)
            total = total.followed_by(result) if total else result
            # A table may have to be brought to right before a statement first: see `unfold`.
            if result.complete_through is not None and result.complete_through >= target:
                return total.model_copy(update={"seconds": round(time.monotonic() - began, 3)})
    raise RetryableError(
        f"others committed to the table during each of {_ATTEMPTS} merges",
        hint="run again when the maintenance of the table is done",
        table=table,
    )


def _check_progress(table: TableName, before: TableResult | None, after: TableResult, target: int) -> None:
    """Raise an error unless an attempt either brought the table further or found it complete."""
    complete = after.complete_through or 0
    further = after.status == "applied" and complete > (before.complete_through or 0 if before else 0)
    if complete < target and not further:
        raise no_progress_error(table, target, f"an attempt left it complete up to seqno {complete}")


def _attempt(
    warehouse: Warehouse,
    chain: Chain,
    table: TableName,
    target: int,
    record: Published | None,
    *,
    settle: bool = False,
    since: int = 0,
) -> TableResult:
    metadata = warehouse.metadata(table)
    merge = plan_merge(warehouse, metadata, chain, table, target, record, settle=settle, since=since)
    if isinstance(merge, TableResult):
        return merge
    verify_files(warehouse.session, chain.store, merge.files)
    changes: dict[int, Changes] = {}
    try:
        for place, stage in enumerate(merge.stages):
            if isinstance(stage, Work):
                changes[place] = collapse(warehouse.session, chain.store, stage)
        applied = metadata.applied if metadata else None
        if (
            metadata
            and applied
            and not settle
            and merge.target == target
            and _is_noop(merge, changes, metadata, applied)
        ):
            return idle_result(table, applied, "unchanged", target)
        return _merge(warehouse, chain, merge, changes, metadata)
    finally:
        for found in changes.values():
            found.release()


def _is_noop(merge: Merge, changes: Mapping[int, Changes], metadata: TableMetadata, applied: Applied) -> bool:
    """Whether the records come to no change, and nothing else is to be done."""
    schema = recorded_schema(metadata, merge.name)
    same = merge.keeps_columns and (merge.schema, merge.state) == (schema, applied.state)
    return same and len(changes) == len(merge.stages) and not any(found.keys for found in changes.values())


def _merge(
    warehouse: Warehouse, chain: Chain, merge: Merge, changes: MutableMapping[int, Changes], known: TableMetadata | None
) -> TableResult:
    metadata = known or _create_table(warehouse, chain, merge)
    before = Layout(recorded_schema(metadata, merge.name), merge.rule)
    layouts = [*(work.layout for work in merge.works), *((merge.layout,) if merge.layout else ())]
    finish = prepare_columns(warehouse, merge.name, before, layouts)
    completing = partial(_complete, warehouse, chain, metadata)
    with Branch(warehouse, merge.name, metadata.head) as branch:
        signed = signature(
            seqno=merge.target,
            position=merge.position,
            source=chain.source,
            generation=chain.generation,
            schema_id=(merge.schema or before.schema).schema_id,
            state=merge.state,
        )
        steps = run_stages(warehouse, branch, merge, changes, completing, None if finish else signed)
        commits = branch.publish(steps, finish, signed if finish else None)
    drop_superseded(warehouse, merge.name)
    collapsed = changes.values()
    committed = int(commits[0].summary[APPLIED])
    return TableResult(
        table=str(merge.name),
        status="applied",
        inserts=sum(found.inserts for found in collapsed),
        updates=sum(found.updates for found in collapsed),
        deletes=sum(found.deletes for found in collapsed),
        # Iceberg writes the deletions that a file has had already again, beside the new ones.
        rows_deleted=sum(c.count("added-position-deletes") - c.count("removed-position-deletes") for c in commits)
        + sum(commit.count("deleted-records") for commit in commits),
        rows_inserted=sum(commit.count("added-records") for commit in commits),
        applied_seqno=committed,
        position=merge.position,
        snapshot=commits[0].id,
        complete_through=committed,
        misfits=sum((Counter(found.misfits) for found in collapsed), Counter()),
    )


def _complete(
    warehouse: Warehouse, chain: Chain, metadata: TableMetadata, work: Work, changes: Changes, relation: str
) -> Changes:
    unlogged = () if chain.identity.kind == "mysql" else recorded_unlogged(metadata, work.schema)
    base = MergeBase(relation, metadata.exact_at, unlogged)
    return complete_changes(warehouse.session, chain.store, work, changes, base)


def _create_table(warehouse: Warehouse, chain: Chain, merge: Merge) -> TableMetadata:
    """The table, which was made on the server by a statement of the log, and is made here now."""
    if merge.schema is None:
        raise AssertionError(f"nothing is known of table {merge.name}, and it is to be merged")
    warehouse.create(merge.schema, chain.source, chain.generation)
    metadata = warehouse.metadata(merge.name)
    if metadata is None:
        raise LoaderError("the table was dropped while it was merged", table=merge.name)
    return metadata
