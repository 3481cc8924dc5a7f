"""Replays a table without a key, or a history: rolled back to a snapshot that it has, and forward from there.

No row of it tells which other one it was before. So the replay begins with all rows of a snapshot of that very place,
and takes the staged records since then as any merge does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile

from loader.errors import UnsupportedError
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, recorded_schema
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.plan.ddl_events import TableAltered, TableCreated, TableEmptied, TableEvent, collect_events
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import Merge, plan_stages
from loader.materialise.plan.record_presence import has_records
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.materialise.plan.timeline import TableState, Timeline, build_timeline
from loader.materialise.rules import TableRule
from loader.model.table import TableName, TableSchema
from loader.schema.evolution import ColumnOrigin
from loader.staging.documents import Manifest


def plan_forward(
    warehouse: Warehouse, chain: Chain, table: TableName, metadata: TableMetadata, applied: Applied, since: int
) -> tuple[Applied, Merge]:
    """The snapshot of a table that stands at `since`, and what brings it from there to where the table stands.

    Raises:
        UnsupportedError: there is no such snapshot, or the log alone does not lead from there to the table.
    """
    stood = list(metadata.applied_positions())
    root = next((one for one in stood if one.seqno <= since), None)
    if root is None:
        raise _no_snapshot_error(table, since, _replay_hint(chain, table, stood[-1]))
    rule, schema = warehouse.rule(table), recorded_schema(metadata, table)
    if root.seqno == applied.seqno:
        return root, Merge(table, schema, {}, (), "", applied.seqno, applied.position, rule)
    later = list(takewhile(lambda one: one is not root, stood))
    if load := next((one for one in later if one.loaded), None):
        raise _inexact_error(table, "the table was loaded anew since", _replay_hint(chain, table, load))
    manifests = chain.covering_intervals(root.seqno, applied.seqno)
    events = [
        one
        for one in collect_events(table, manifests, root.seqno, applied.seqno, gone=root.state == "gone")
        if not _is_noop(one)
    ]
    check_rows_staged(table, manifests, root.seqno, applied.seqno)
    if any(seqno <= since for seqno in _earliest_seqnos(manifests, events, table, root.seqno)):
        raise _no_snapshot_error(table, since, _replay_hint(chain, table, root))
    last = max((event.seqno for event in events), default=applied.seqno)
    after = _replay_hint(chain, table, next(one for one in reversed(later) if one.seqno >= last))
    if not _keeps_table(events, rule):
        raise _inexact_error(table, "the table was made, dropped, renamed or emptied since", after)
    then = TableState(recorded_schema(metadata, table, root.schema_id), root.seqno)
    planner = MergePlanner(warehouse, chain, chain.newest_published())
    copies = partial(planner.find_copy_source, table)
    timeline = build_timeline(table, then, applied.seqno, manifests, events, copies, partial(has_records, chain.store))
    passed = rule.on_drop == "keep" and events  # columns that came and went are kept, and would not be again
    if root.state or passed or not _keeps_schema(timeline, schema):
        raise _inexact_error(table, "the table was altered since", after)
    return root, plan_stages(table, timeline, manifests, rule, new=False)


def _is_noop(event: TableEvent) -> bool:
    """Whether a statement does nothing to a table that is there."""
    return isinstance(event, TableCreated) and not event.certain


def _earliest_seqnos(
    manifests: Sequence[Manifest], events: Sequence[TableEvent], table: TableName, after: int
) -> Iterator[int]:
    """The seqno of each event, and the least that a record of each file may have, of those after a seqno."""
    yield from (event.seqno for event in events)
    for manifest in manifests:
        found = (file for file in manifest.of_table(table) if file.rows and file.max_seqno > after)
        yield from (max(file.min_seqno, after + 1) for file in found)


def _keeps_table(events: Sequence[TableEvent], rule: TableRule) -> bool:
    """Whether the table stayed the same one; a history keeps what it had before it was emptied."""
    may = (TableAltered, TableEmptied) if rule.mode == "mirror" else (TableAltered,)
    return all(isinstance(event, may) for event in events)


def _keeps_schema(timeline: Timeline, schema: TableSchema) -> bool:
    """Whether no statement changed what rows consist of, not even for a while."""
    same = {column.name: ColumnOrigin(column.name) for column in schema.columns}
    shapes = ((epoch.schema.columns, epoch.schema.key, dict(epoch.origins)) for epoch in timeline.epochs)
    return all(shape == (schema.columns, schema.key, same) for shape in shapes)


def _replay_hint(chain: Chain, table: TableName, stood: Applied) -> str:
    """The command that replays from there; positions of an older generation of the log cannot be given."""
    if stood.generation == chain.generation:
        return f"loader replay --from {stood.position} --table {table.argument}"
    return table.load_again


def _no_snapshot_error(table: TableName, since: int, hint: str) -> UnsupportedError:
    return UnsupportedError(
        "a table without a key, or a history, is replayed from a snapshot of the very position, and it has none there",
        why="an old row and a new one cannot be told apart; snapshots are made by merges, and expire",
        hint=hint,
        table=table,
        seqno=since,
    )


def _inexact_error(table: TableName, why: str, hint: str) -> UnsupportedError:
    return UnsupportedError(
        "a table without a key, or a history, cannot be rolled forward exactly from there",
        why=why,
        hint=hint,
        table=table,
    )
