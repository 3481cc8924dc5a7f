"""Plans the replay of a table without a key, or of a history, from one of its snapshots.

Their rows cannot be matched with older rows. So the replay begins with all rows of a snapshot at exactly the start
position, and merges the staged records after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile

from loader.errors import UnsupportedError
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, recorded_schema
from loader.materialise.merge.merge_planner import MergePlanner, check_captured
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
    warehouse: Warehouse, chain: Chain, table: TableName, metadata: TableMetadata, applied: Applied, from_seqno: int
) -> tuple[Applied, Merge]:
    """Return the snapshot of a table at a seqno, and the merge from there to the table's applied position.

    Args:
        warehouse: the catalog.
        chain: the intervals of the source.
        table: the table.
        metadata: of the table.
        applied: its applied position.
        from_seqno: the start of the replay.

    Raises:
        UnsupportedError: there is no such snapshot, or the log does not hold all that changed the table since then.
    """
    positions = list(metadata.applied_positions())
    root = next((one for one in positions if one.seqno <= from_seqno), None)
    if root is None:
        raise _no_snapshot_error(table, from_seqno, _replay_hint(chain, table, positions[-1]))
    rule, schema = warehouse.rule(table), recorded_schema(metadata, table)
    if root.seqno == applied.seqno:
        return root, Merge(table, schema, {}, (), "", applied.seqno, applied.position, rule)
    later = list(takewhile(lambda one: one is not root, positions))
    if load := next((one for one in later if one.loaded), None):
        raise _inexact_error(table, "the table was loaded again since then", _replay_hint(chain, table, load))
    manifests = chain.covering_intervals(root.seqno, applied.seqno)
    events = [
        one
        for one in collect_events(table, manifests, root.seqno, applied.seqno, gone=root.state == "gone")
        if not _is_noop(one)
    ]
    check_rows_staged(table, manifests, root.seqno, applied.seqno)
    if any(seqno <= from_seqno for seqno in _earliest_seqnos(manifests, events, table, root.seqno)):
        raise _no_snapshot_error(table, from_seqno, _replay_hint(chain, table, root))
    last = max((event.seqno for event in events), default=applied.seqno)
    after = _replay_hint(chain, table, next(one for one in reversed(later) if one.seqno >= last))
    if not _keeps_table(events, rule):
        raise _inexact_error(table, "the table was created, dropped, renamed or emptied since then", after)
    check_captured(chain, manifests, table)
    then = TableState(recorded_schema(metadata, table, root.schema_id), root.seqno)
    copies = MergePlanner(warehouse, chain, chain.newest_published()).find_copy_source
    timeline = build_timeline(table, then, applied.seqno, manifests, events, copies, partial(has_records, chain.store))
    # A table with on_drop = "keep" still has columns that were added and dropped. A replay would lose them.
    dropped = rule.on_drop == "keep" and events
    if root.state or dropped or not _keeps_schema(timeline, schema):
        raise _inexact_error(table, "the table was altered since then", after)
    return root, plan_stages(table, timeline, manifests, rule, new=False)


def _is_noop(event: TableEvent) -> bool:
    """Return whether a statement does nothing to a table that exists."""
    return isinstance(event, TableCreated) and not event.certain


def _earliest_seqnos(
    manifests: Sequence[Manifest], events: Sequence[TableEvent], table: TableName, after: int
) -> Iterator[int]:
    """Yield the seqno of each event, and the smallest possible seqno of a record in each file, after a seqno."""
    yield from (event.seqno for event in events)
    for manifest in manifests:
        found = (file for file in manifest.files_of(table) if file.rows and file.max_seqno > after)
        yield from (max(file.min_seqno, after + 1) for file in found)


def _keeps_table(events: Sequence[TableEvent], rule: TableRule) -> bool:
    """Return whether the table was never replaced. A history keeps its rows when the table is emptied."""
    may = (TableAltered, TableEmptied) if rule.mode == "mirror" else (TableAltered,)
    return all(isinstance(event, may) for event in events)


def _keeps_schema(timeline: Timeline, schema: TableSchema) -> bool:
    """Return whether no statement changed the columns, not even temporarily."""
    same = {column.name: ColumnOrigin(column.name) for column in schema.columns}
    shapes = ((epoch.schema.columns, epoch.schema.key, dict(epoch.origins)) for epoch in timeline.epochs)
    return all(shape == (schema.columns, schema.key, same) for shape in shapes)


def _replay_hint(chain: Chain, table: TableName, snapshot: Applied) -> str:
    """Return the command that replays from a snapshot. It takes only positions of the current generation."""
    if snapshot.generation == chain.generation:
        return f"loader replay --from {snapshot.position} --table {table.argument}"
    return table.load_again


def _no_snapshot_error(table: TableName, from_seqno: int, hint: str) -> UnsupportedError:
    return UnsupportedError(
        "tables without a key and history tables can only be replayed from the position of one of their snapshots",
        why="an old row cannot be matched with a new one; merges make snapshots, and snapshots expire",
        hint=hint,
        table=table,
        seqno=from_seqno,
    )


def _inexact_error(table: TableName, why: str, hint: str) -> UnsupportedError:
    return UnsupportedError(
        "a table without a key, or a history, cannot be rolled forward exactly from this position",
        why=why,
        hint=hint,
        table=table,
    )
