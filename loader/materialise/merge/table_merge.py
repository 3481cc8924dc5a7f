"""Merges all pending changes of one table: deletes the changed keys, inserts the last version of each key, publishes.

All commits happen on a private branch. One fast-forward of main publishes them together with the new applied position.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from functools import cache, partial

from loader.errors import LoaderError, RetryableError
from loader.failpoints import failpoint
from loader.materialise.collapse.last_versions import collapse, complete_changes
from loader.materialise.collapse.partial_images import MergeBase
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.iceberg.branch import Branch, drop_superseded
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.publication import BranchLostError, is_conflict
from loader.materialise.iceberg.table_metadata import APPLIED, Applied, Snapshot, TableMetadata, signature
from loader.materialise.iceberg.warehouse import Warehouse, recorded_schema, recorded_unlogged
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.merge.merge_stages import run_stages
from loader.materialise.merge.schema_change import check_kept_columns, prepare_columns
from loader.materialise.merge.table_results import idle_result, no_progress_error, unfinished_merge_error
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, Work
from loader.materialise.spec import TableResult
from loader.model.table import TableName

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5
NoteAdvanced = Callable[[TableName, int], None]
"""Called with a table and the seqno of its new commit."""


def merge_table(
    planner: MergePlanner,
    table: TableName,
    target: int,
    *,
    commit_position: bool = False,
    life_start: int = 0,
    note_advanced: NoteAdvanced = lambda *_: None,
) -> TableResult:
    """Bring a table to `target`: the stop of an interval or, with `commit_position`, a position before it.

    Each attempt plans from the metadata that it commits on, since a conflict means that the table has moved. For
    `commit_position` and `life_start` see `MergePlanner.plan`. `note_advanced` is called after each commit.

    Raises:
        LoaderError: the table cannot be merged; it is unchanged, or advanced to a place before `target`.
    """
    began = time.monotonic()
    failpoint("table.before")
    with table_lock(planner.warehouse.catalog, table):
        total: TableResult | None = None
        conflicts = 0
        while conflicts < _ATTEMPTS:
            try:
                result = _attempt(planner, table, target, commit_position=commit_position, life_start=life_start)
            except Exception as error:
                if not is_conflict(error):
                    raise
                _LOG.info("%s: starting over: %s", table, error)
                conflicts += 1
                continue
            _check_progress(table, total, result, target)
            if result.status == "applied" and result.applied_seqno is not None:
                note_advanced(table, result.applied_seqno)
            total = total.followed_by(result) if total else result
            # A merge can end right before a statement, see `build_timeline`. The next attempt continues there.
            if result.complete_through is not None and result.complete_through >= target:
                return total.model_copy(update={"seconds": round(time.monotonic() - began, 3)})
    raise RetryableError(
        f"others committed to the table during each of {_ATTEMPTS} merges",
        hint="when the maintenance of the table is done: loader run",
        table=table,
    )


def _check_progress(table: TableName, before: TableResult | None, after: TableResult, target: int) -> None:
    """Raise an error unless an attempt advanced the table or found it complete."""
    complete = after.complete_through or 0
    has_advanced = after.status == "applied" and complete > (before.complete_through or 0 if before else 0)
    if complete < target and not has_advanced:
        raise no_progress_error(table, target, f"an attempt left it complete up to seqno {complete}")


def _attempt(
    planner: MergePlanner, table: TableName, target: int, *, commit_position: bool = False, life_start: int = 0
) -> TableResult:
    warehouse, chain = planner.warehouse, planner.chain
    metadata = warehouse.metadata(table)
    merge = planner.plan(table, metadata, target, commit_position=commit_position, life_start=life_start)
    if isinstance(merge, TableResult):
        return merge
    # A merge of rows without a key adds to the rows that are there.
    if merge.rule.mode == "history" or not all(work.schema.key for work in merge.works):
        _check_ends_with_merge(warehouse, table, metadata)
    open_table = cache(lambda: metadata or _create_table(warehouse, chain, merge))
    changes: dict[int, Changes] = {}
    try:
        for place, stage in enumerate(merge.stages):
            if isinstance(stage, Work):
                ready = partial(_ready_table, warehouse, merge, stage, open_table)
                changes[place] = collapse(warehouse.session, chain.store, stage, ready)
        applied = metadata.applied if metadata else None
        may_skip = not commit_position and merge.target == target
        if metadata and applied and may_skip and _is_noop(merge, changes, metadata, applied):
            return idle_result(table, applied, "unchanged", target)
        return _merge(warehouse, chain, merge, changes, open_table())
    finally:
        for collapsed in changes.values():
            collapsed.release()


def _ready_table(
    warehouse: Warehouse, merge: Merge, work: Work, open_table: Callable[[], TableMetadata]
) -> TableMetadata | None:
    """Return the table for whose columns data files can be written now; None if the merge changes its columns."""
    if not merge.keeps_columns:
        return None
    metadata = open_table()
    return metadata if work.layout.has_columns_of(warehouse.layout(metadata, merge.name)) else None


def _check_ends_with_merge(warehouse: Warehouse, table: TableName, metadata: TableMetadata | None) -> None:
    """Check that nobody rolled a table back to a commit inside a merge. The merge would be repeated on top of it.

    Raises:
        DataError: somebody did.
    """
    if metadata and metadata.applied and metadata.ends_inside_merge:
        raise unfinished_merge_error(table, warehouse.rollback_statement(table, metadata.applied.snapshot))


def _is_noop(merge: Merge, changes: Mapping[int, Changes], metadata: TableMetadata, applied: Applied) -> bool:
    """Return whether the records give no change, and the merge has no other stage."""
    schema = recorded_schema(metadata, merge.name)
    same = merge.keeps_columns and (merge.schema, merge.state) == (schema, applied.state)
    return same and len(changes) == len(merge.stages) and not any(collapsed.keys for collapsed in changes.values())


def _merge(
    warehouse: Warehouse,
    chain: Chain,
    merge: Merge,
    changes: MutableMapping[int, Changes],
    metadata: TableMetadata,
) -> TableResult:
    before = warehouse.layout(metadata, merge.name)
    warehouse.check_column_names(metadata, before)
    layouts = [*(work.layout for work in merge.works), *((merge.layout,) if merge.layout else ())]
    if not merge.replaces_rows:
        check_kept_columns(metadata, before, layouts)
    finish = prepare_columns(warehouse, merge.name, metadata, before, layouts)
    complete = partial(_complete, warehouse, chain, metadata)
    with Branch(warehouse, merge.name, metadata.head) as branch:
        signed = signature(
            seqno=merge.target,
            position=merge.position,
            source=chain.source,
            generation=chain.generation,
            log=chain.logs[chain.generation],
            schema_id=(merge.schema or before.schema).schema_id,
            state=merge.state,
            hexed=merge.hexed,
        )
        steps = run_stages(warehouse, branch, merge, changes, complete, None if finish else signed)
        commits = branch.publish(steps, finish, signed if finish else None)
    drop_superseded(warehouse, merge.name)
    return _applied_result(merge, list(changes.values()), commits)


def _applied_result(merge: Merge, changes: list[Changes], commits: list[Snapshot]) -> TableResult:
    """Return the result of a published merge, whose commits are given newest first."""
    committed = int(commits[0].summary[APPLIED])
    return TableResult(
        table=str(merge.name),
        status="applied",
        inserts=sum(collapsed.inserts for collapsed in changes),
        updates=sum(collapsed.updates for collapsed in changes),
        deletes=sum(collapsed.deletes for collapsed in changes),
        bytes=sum(file.bytes for file in merge.files),
        # Iceberg rewrites the deletions that a data file already had together with the new ones.
        rows_deleted=sum(c.count("added-position-deletes") - c.count("removed-position-deletes") for c in commits)
        + sum(commit.count("deleted-records") for commit in commits),
        rows_inserted=sum(commit.count("added-records") for commit in commits),
        applied_seqno=committed,
        position=merge.position,
        snapshot=commits[0].id,
        complete_through=committed,
        misfits=sum((Counter(collapsed.misfits) for collapsed in changes), Counter()),
    )


def _complete(
    warehouse: Warehouse, chain: Chain, metadata: TableMetadata, work: Work, changes: Changes, relation: str
) -> Changes:
    """Return the changes with the columns that their row images leave out."""
    _check_ends_with_merge(warehouse, work.name, metadata)  # rows that an image needs may be deleted
    base = MergeBase(
        relation,
        metadata.exact_at,
        logs_all_changes=chain.identity.kind == "mysql",
        unlogged=recorded_unlogged(metadata, work.schema),
    )
    return complete_changes(warehouse.session, chain.store, work, changes, base)


def _create_table(warehouse: Warehouse, chain: Chain, merge: Merge) -> TableMetadata:
    """Create the table that a statement in the log created on the server.

    Raises:
        BranchLostError: another run has created the table and applied records to it. So the plan, which begins without
            a table, is outdated.
    """
    if merge.schema is None:
        raise AssertionError(f"table {merge.name} is to be merged without a schema")
    warehouse.create(merge.schema, chain.source, chain.generation)
    metadata = warehouse.metadata(merge.name)
    if metadata is None:
        raise LoaderError("the table was dropped while it was merged", hint=merge.name.load_again, table=merge.name)
    if metadata.head is not None:
        raise BranchLostError("another run created the table")
    return metadata
