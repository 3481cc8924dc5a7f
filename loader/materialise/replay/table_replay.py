"""Replays a table's changes from a position up to its applied position, and finds the rows that differ from them.

In a correct table, each key that changed has the row of its last change. Then nothing is written. Otherwise a branch
corrects the rows that differ. It is published, or kept for inspection. A table that was loaded after the position is
compared from its load on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from loader.errors import DataError, RetryableError, UnsupportedError
from loader.materialise.collapse.last_versions import collapse
from loader.materialise.collapse.partial_images import partial_replay_error
from loader.materialise.collapse.table_changes import no_changes
from loader.materialise.iceberg.branch import Branch, drop_superseded, find_finished_branch, replay_branch_name
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.publication import is_conflict
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, check_owner, recorded_schema
from loader.materialise.merge.dml import build_statements
from loader.materialise.merge.merge_planner import MergePlanner, check_captured
from loader.materialise.merge.merge_stages import run_statements
from loader.materialise.plan.ddl_events import TableCreated, TableEmptied, TableEvent, collect_events
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, Work, log_origin, plan_stages
from loader.materialise.plan.record_presence import has_records
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.materialise.plan.timeline import TableState, build_timeline
from loader.materialise.replay.newest_load import find_newest_load
from loader.materialise.replay.rollback import roll_table
from loader.materialise.replay.row_diff import RowDiff, diff_rows
from loader.materialise.rules import check_rule
from loader.materialise.spec import TableReplay
from loader.model.table import TableName, TableSchema

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5


@dataclass(frozen=True)
class ReplayedPart:
    """The part of the log whose rows a replay compares.

    Attributes:
        since: rows count that changed after this seqno.
        until: rows count that changed up to this seqno; 0: up to the applied position. The newest change of each such
            row may be later. It is what the row must be.
    """

    since: int
    until: int = 0

    def ends_before(self, seqno: int) -> bool:
        """Return whether later changes up to a seqno do not count."""
        return 0 < self.until < seqno


def replay_table(
    warehouse: Warehouse, chain: Chain, table: TableName, part: ReplayedPart, *, publish: bool, approved_by: str = ""
) -> TableReplay:
    """Compare a table with its changes in a part of the log, and correct rows that differ.

    Args:
        warehouse: the catalog.
        chain: the intervals of the source.
        table: the table.
        part: the part of the log.
        publish: publish the correction. Otherwise a branch keeps it.
        approved_by: who approved it; empty if nobody was asked.

    Raises:
        UnsupportedError: the table's key changed since then. Or the table has no key, and no snapshot at the start. Or
            the part ends before the applied position, and all rows of the table are compared. Or the table was loaded
            at the end of the part or later.
        GapError: intervals of the part were extracted without the table.
        RetryableError: others committed to the table during each attempt.
        LoaderError: the table cannot be replayed from there.
    """
    with table_lock(warehouse.catalog, table):
        for _ in range(_ATTEMPTS):
            try:
                return _attempt(warehouse, chain, table, part, publish=publish, approved_by=approved_by)
            except Exception as error:
                if not is_conflict(error):
                    raise
                _LOG.info("%s: starting over: %s", table, error)
    raise RetryableError(
        f"others committed to the table during each of {_ATTEMPTS} replays", hint="run the replay again", table=table
    )


def _attempt(
    warehouse: Warehouse, chain: Chain, table: TableName, part: ReplayedPart, *, publish: bool, approved_by: str
) -> TableReplay:
    metadata = warehouse.metadata(table)
    applied = check_owner(metadata, table, chain.source, chain.logs) if metadata else None
    if metadata is None or applied is None:
        raise DataError("the table was never loaded", hint=f"loader initial-load --table {table.argument}", table=table)
    rule = warehouse.rule(table)
    check_rule(metadata.properties, rule, table)
    layout = warehouse.layout(metadata, table)
    warehouse.check_column_names(metadata, layout)
    ends = part.ends_before(applied.seqno)
    if rule.mode == "history" or not layout.key:
        if ends:
            raise _end_error(table, part, "the table has no key, or keeps a history, so all of its rows are compared")
        return roll_table(
            warehouse, chain, table, metadata, applied, part.since, publish=publish, approved_by=approved_by
        )
    load = find_newest_load(chain, table, metadata, applied)
    note = ""
    if load and part.since < load.seqno:
        part = replace(part, since=load.seqno)
        if ends and part.until <= load.seqno:
            raise _end_error(table, part, f"the table was loaded at {load.position}, which is not before that position")
        note = f"compared from {load.position} on, where it was loaded"
        _LOG.info("%s: %s", table, note)
    found = _compare(warehouse, chain, table, metadata, applied, part, publish=publish, approved_by=approved_by)
    return found.model_copy(update={"note": note})


def _compare(
    warehouse: Warehouse,
    chain: Chain,
    table: TableName,
    metadata: TableMetadata,
    applied: Applied,
    part: ReplayedPart,
    *,
    publish: bool,
    approved_by: str,
) -> TableReplay:
    """Compare a table with a key with its changes, and correct it. It was not loaded after the start of the part."""
    ends = part.ends_before(applied.seqno)
    work, whole = _plan_work(warehouse, chain, table, part.since, metadata, applied)
    if ends and whole:
        raise _end_error(table, part, "the table was emptied since the start, so all of its rows are compared")
    counted = _records_until(work, part.until) if work and ends else work
    if work is None or counted is None:
        return _same_result(table, applied)
    with ExitStack() as kept:
        read = work.file_groups
        changes = collapse(warehouse.session, chain.store, work) if read else no_changes(warehouse.session, work)
        kept.callback(changes.release)
        if changes.partial:
            raise partial_replay_error(table)
        if ends:
            rows = collapse(warehouse.session, chain.store, counted)
            kept.callback(rows.release)
            keys = list(key_places(work.schema))
            changes = changes.with_rows(changes.frame.join(rows.frame.select(*keys), keys, "left_semi"))
        found = diff_rows(warehouse, changes, work, whole=whole)
        kept.callback(found.release)
        return _correct(warehouse, work, found, metadata, applied, part, publish=publish, approved_by=approved_by)


def _records_until(work: Work, seqno: int) -> Work | None:
    """Return the records of a work up to a seqno, or None if there are none."""
    groups = []
    for group in work.file_groups:
        files = tuple(file for file in group.files if file.min_seqno <= seqno)
        begun = [counted for counted in group.ranges if counted.after_seqno < seqno]
        ranges = tuple(replace(counted, last_seqno=min(counted.last_seqno, seqno)) for counted in begun)
        if files and ranges:
            groups.append(replace(group, files=files, ranges=ranges))
    return replace(work, target=seqno, file_groups=tuple(groups)) if groups else None


def _end_error(table: TableName, part: ReplayedPart, why: str) -> UnsupportedError:
    return UnsupportedError(
        "the table cannot be replayed up to an earlier position",
        why=why,
        hint=f"replay it without an end: loader replay --from {part.since} --table {table.argument}",
        table=table,
    )


def _plan_work(
    warehouse: Warehouse, chain: Chain, table: TableName, from_seqno: int, metadata: TableMetadata, applied: Applied
) -> tuple[Work | None, bool]:
    """Return the records after a seqno as one work in the table's columns, and whether they include all rows.

    The work is None if there are no records. It has no files if the table must be empty.
    """
    rule, schema = warehouse.rule(table), recorded_schema(metadata, table)
    if from_seqno >= applied.seqno:
        return None, False
    manifests = chain.covering_intervals(from_seqno, applied.seqno)
    events = collect_events(table, manifests, from_seqno, applied.seqno)
    check_rows_staged(table, manifests, from_seqno, applied.seqno)
    emptied = _last_emptied(events, from_seqno)
    check_captured(chain, [one for one in manifests if one.stop_seqno >= emptied], table)
    # The first records show the columns at the start. The timeline must lead to the table's current columns.
    then = TableState(schema, from_seqno, "fresh")
    copies = MergePlanner(warehouse, chain, chain.newest_published()).find_copy_source
    holds = partial(has_records, chain.store)
    timeline = build_timeline(table, then, applied.seqno, manifests, events, copies, holds, pass_renames=True)
    if timeline.first_epoch and rule.mode == "soft_delete":
        raise UnsupportedError(
            "the table was emptied since then, and keeps its deleted rows",
            hint=f"loader replay --table {table.argument} --from FILE:POS, with a position after that statement",
            table=table,
        )
    merge = plan_stages(table, timeline, manifests, rule, new=True)
    if len(merge.works) > 1 or timeline.copy_source or timeline.target != applied.seqno:
        raise UnsupportedError(
            "the table's key changed since then, or another table was renamed to its name",
            hint=f"loader replay --table {table.argument} --from FILE:POS, with a position after that statement",
            table=table,
        )
    whole = timeline.first_epoch > 0
    if merge.works:
        return replace(_in_table_columns(merge, schema), target=applied.seqno, position=applied.position), whole
    logs = tuple(map(log_origin, manifests))
    work = Work(table, schema, from_seqno, applied.seqno, applied.position, (), {}, logs, rule)
    return (work, True) if whole else (None, False)


def _last_emptied(events: Sequence[TableEvent], default: int) -> int:
    """Return the seqno of the last statement after which a table had no rows."""
    found = (one for one in reversed(events) if isinstance(one, TableEmptied) or _is_created(one))
    return next((one.seqno for one in found), default)


def _is_created(event: TableEvent) -> bool:
    return isinstance(event, TableCreated) and event.certain


def _in_table_columns(merge: Merge, schema: TableSchema) -> Work:
    """Return the only work of a merge, with the table's own column names.

    Raises:
        UnsupportedError: the records do not lead to the table's columns.
    """
    (work,) = merge.works
    if merge.schema is None or (merge.schema.columns, merge.schema.key) != (schema.columns, schema.key):
        raise UnsupportedError(
            "the records since then do not lead to the columns of the table",
            hint=f"loader replay --table {merge.name.argument} --from FILE:POS, with a position after it was altered",
            table=merge.name,
        )
    if work.schema != merge.schema:
        raise UnsupportedError(
            "the table was altered after its last record",
            hint=f"replay it when it has a newer record, or load it again: {merge.name.load_again}",
            table=merge.name,
        )
    return replace(work, aliases={})


def _correct(
    warehouse: Warehouse,
    work: Work,
    found: RowDiff,
    metadata: TableMetadata,
    applied: Applied,
    part: ReplayedPart,
    *,
    publish: bool,
    approved_by: str,
) -> TableReplay:
    if not found.rows:
        return _same_result(work.name, applied)
    name = replay_branch_name(part.since, part.until if part.ends_before(applied.seqno) else 0)
    # An earlier replay may have built the branch for the same applied position.
    shown = find_finished_branch(warehouse, work.name, metadata.head, name, applied)
    with shown or Branch(warehouse, work.name, metadata.head, name) as branch:
        if shown:
            steps = len(shown.commits())
        else:
            todo = build_statements(warehouse.session, found.changes, work, branch)
            steps = run_statements(warehouse, branch, todo, applied.signature)
        if publish:
            branch.publish(steps, signature=applied.approved(approved_by))
    if publish:
        drop_superseded(warehouse, work.name)
    return TableReplay(
        table=str(work.name),
        status="published" if publish else "differs",
        position=applied.position,
        inserts=found.inserts,
        updates=found.updates,
        deletes=found.deletes,
        files=found.files,
        samples=found.samples,
        branch="" if publish else branch.name,
    )


def _same_result(table: TableName, applied: Applied) -> TableReplay:
    return TableReplay(table=str(table), status="same", position=applied.position)
