"""Where a table stands in the warehouse, and what a merge of it has to do. No Spark job runs for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from loader.errors import DataError, GapError, LoaderError, RetryableError, UnsupportedError
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, check_owner, recorded_schema
from loader.materialise.merge.published_record import complete_seqno
from loader.materialise.plan.ddl_events import RenamedFrom, check_initial_load, collect_events
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.lifetimes import find_new_life
from loader.materialise.plan.merge_plan import Merge, plan_stages
from loader.materialise.plan.record_presence import has_records
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.materialise.plan.timeline import CopySource, FindCopySource, Lifecycle, TableState, Timeline, build_timeline
from loader.materialise.rules import TableRule, check_rule
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest, Published
from loader.staging.refusals import find_refusal

_LOG = logging.getLogger(__name__)


class WaitingForTable(RetryableError):
    """A table takes the rows of another table, named by `where["table"]`, that has not been brought far enough."""


def plan_merge(
    warehouse: Warehouse,
    metadata: TableMetadata | None,
    chain: Chain,
    table: TableName,
    target: int,
    record: Published | None,
    *,
    settle: bool = False,
    since: int = 0,
) -> Merge | TableResult:
    """What a table needs to get to `target`, or to a place before it, or how it stands when it needs nothing.

    With `settle`, a statement or record that changes nothing also is a reason to commit the position: another table
    takes the rows from the snapshot of that position. `since`: nothing before the statement with that seqno counts, as
    of `new_life`.

    Raises:
        DataError: the table was never loaded, is not ours, was made by another rule, or cannot be brought there.
    """
    applied = check_owner(metadata, table, chain.source, chain.generations) if metadata else None
    rule = warehouse.rule(table)
    standing = _table_state(metadata, applied, chain, table, target, record, rule)
    if standing is None:
        return idle_result(table, None, "unchanged", target)
    if metadata:
        check_rule(metadata.properties, rule, table)
    if (behind := chain.find_drop_in_gap(table, standing.applied)) is not None:
        standing = replace(standing, applied=behind, state="gone")
    if standing.applied >= target:
        return idle_result(table, applied, "already", standing.applied)
    if since:
        standing = replace(standing, applied=max(standing.applied, since - 1))
    chain.check_joined(table, standing.applied)
    manifests = chain.covering_intervals(standing.applied, target)
    copies = partial(find_copy_source, warehouse, chain, record, table)
    try:
        timeline = _timeline(chain, table, standing, target, manifests, copies, rule, metadata)
    except (UnsupportedError, GapError) as error:
        life = find_new_life(table, manifests, standing.applied, target)
        if life is not None and rule.mode != "mirror" and chain.find_origin(table, target).dropped:
            error.hint = _exclude_hint(table)  # it cannot be loaded any more, and its past is not to be left out
        if life is None or rule.mode != "mirror":
            raise
        _LOG.warning("%s: %s; the table was dropped, renamed or made again since, and goes on there", table, error.what)
        later = replace(standing, applied=life - 1)
        manifests = tuple(one for one in manifests if one.stop_seqno >= life)
        timeline = _timeline(chain, table, later, target, manifests, copies, rule, metadata)
    merge = plan_stages(table, timeline, manifests, rule, new=metadata is None)
    if metadata is None and merge.schema is None:  # without a row nothing tells its columns, and nothing is to be made
        if merge.target == target:
            return idle_result(table, None, "unchanged", target)
        return plan_merge(
            warehouse, metadata, chain, table, target, record, settle=settle, since=merge.target + 1
        )  # over the statement before which it would be settled: there is no row to take
    same = not merge.stages and merge.keeps_columns and (merge.schema, merge.state) == (standing.schema, standing.state)
    settled = not settle or not _is_mentioned(chain, table, standing.applied, target)
    return idle_result(table, applied, "unchanged", target) if same and settled and merge.target == target else merge


def _timeline(
    chain: Chain,
    table: TableName,
    standing: TableState,
    target: int,
    manifests: Sequence[Manifest],
    copies: FindCopySource,
    rule: TableRule,
    metadata: TableMetadata | None,
) -> Timeline:
    _check_captured(chain, manifests, table)
    events = collect_events(table, manifests, standing.applied, target, gone=standing.state == "gone")
    check_initial_load(table, events, lambda: metadata.exact_at if metadata else 0)
    check_rows_staged(table, manifests, standing.applied, target)
    holds = partial(has_records, chain.store)
    timeline = build_timeline(
        table, standing, target, manifests, events, copies, holds, stop_at_events=rule.on_drop == "keep"
    )
    if timeline.target <= standing.applied:
        raise no_progress_error(table, target, f"its next step ends at seqno {timeline.target}")
    return timeline


def find_copy_source(
    warehouse: Warehouse, chain: Chain, record: Published | None, taker: TableName, table: TableName, seqno: int
) -> CopySource | None:
    """Return a table, whose name `taker` had next, as it was right before a seqno; None if it had no row.

    Raises:
        UnsupportedError: it is not in the warehouse, no snapshot of it is of that place, or it cannot be brought there.
        WaitingForTable: it was not brought there yet.
    """
    metadata = warehouse.metadata(table)
    applied = metadata.applied_before(seqno) if metadata else None
    try:
        since = applied.seqno if applied else chain.find_origin(table, seqno - 1).seqno
    except UnsupportedError as error:
        raise rows_unavailable_error(table, taker, error) from error
    if since is None:
        raise _never_read_error(table, taker)
    newest = metadata.applied if metadata else None
    beyond = newest is not None and newest.seqno >= seqno
    low = complete_seqno(record, table, applied) if applied else since
    try:
        lacks = beyond and _has_changes(chain, table, low, seqno - 1, with_statements=applied is not None)
        if beyond and not lacks and applied is None:
            lacks = _took_rows(warehouse, chain, record, taker, table, low, seqno - 1)
        ready = beyond or not isinstance(plan_merge(warehouse, metadata, chain, table, seqno - 1, record), Merge)
    except (UnsupportedError, GapError) as error:
        raise rows_unavailable_error(table, taker, error) from error
    if lacks:
        raise UnsupportedError(
            f"table {table} has no snapshot of right before its rows were taken by the table that got its name",
            why="it was loaded anew or brought over that statement before its earlier changes were applied",
            hint=taker.load_again,
            table=table,
        )
    if not ready:
        raise WaitingForTable(
            f"table {table} is not yet applied up to the statement by which another table takes its rows",
            hint="loader run",
            table=table,
            seqno=seqno,
        )
    if applied and applied.state == "gone":
        raise _never_read_error(table, taker)
    if metadata is None or applied is None or applied.state == "fresh":
        return None
    return CopySource(table, recorded_schema(metadata, table, applied.schema_id), applied.snapshot)


def _took_rows(
    warehouse: Warehouse,
    chain: Chain,
    record: Published | None,
    taker: TableName,
    table: TableName,
    after: int,
    upto: int,
) -> bool:
    """Return whether a table took rows of another one by a statement with `after` < seqno <= `upto`."""
    events = collect_events(table, tuple(chain.intervals_between(after, upto)), after, upto) if after < upto else []
    came = (event for event in events if isinstance(event, RenamedFrom))
    return any(find_copy_source(warehouse, chain, record, taker, event.other, event.seqno) for event in came)


def _never_read_error(table: TableName, taker: TableName) -> UnsupportedError:
    return UnsupportedError(
        f"table {table} got the name of a captured table, and is not in the warehouse itself",
        why="its rows were never read, so nobody knows which ones it brought",
        hint=taker.load_again,
        table=table,
    )


def rows_unavailable_error(table: TableName, taker: TableName, error: LoaderError) -> UnsupportedError:
    """Return the error of a table that takes the rows of another one, which stops before that place."""
    return UnsupportedError(
        f"table {table} cannot be brought to where table {taker} takes its rows",
        why=f"{error.what}: {error.why}" if error.why else error.what,
        hint=taker.load_again,
        table=taker,
        position=error.where.get("position"),
    )


def _has_changes(chain: Chain, table: TableName, after: int, through: int, *, with_statements: bool) -> bool:
    """Return whether the table changed with `after` < seqno <= `through`, or may have.

    Of a table that was made in between the statements do not count: without records it had no rows.
    """
    manifests = tuple(chain.intervals_between(after, through)) if after < through else ()
    missing = any(not chain.captures(one.start_seqno, table) for one in manifests)
    left_out = any(one.name == table and after < one.seqno <= through for m in manifests for one in m.left_out)
    return missing or left_out or _is_mentioned(chain, table, after, through, with_statements=with_statements)


def _is_mentioned(chain: Chain, table: TableName, after: int, through: int, *, with_statements: bool = True) -> bool:
    """Return whether the log holds records of a table, or statements about it, with `after` < seqno <= `through`."""
    manifests = tuple(chain.intervals_between(after, through)) if after < through else ()
    files = (file for manifest in manifests for file in manifest.of_table(table))
    records = any(file.rows and file.min_seqno <= through and file.max_seqno > after for file in files)
    return records or (bool(collect_events(table, manifests, after, through)) and with_statements)


def idle_result(
    table: TableName, applied: Applied | None, status: Literal["already", "unchanged"], complete: int
) -> TableResult:
    """Return the result of a run that had nothing to do, for a table with every record up to the seqno `complete`."""
    if applied is None:
        return TableResult(table=str(table), status=status, complete_through=complete)
    return TableResult(
        table=str(table),
        status=status,
        applied_seqno=applied.seqno,
        position=applied.position,
        snapshot=applied.snapshot,
        complete_through=complete,
    )


def no_progress_error(table: TableName, target: int, why: str) -> LoaderError:
    """Return the error of a table that stays before the seqno `target` although nothing stops it; no retry can help."""
    return LoaderError(
        "the table does not advance to its target, and another run would not change that",
        why=why,
        hint=f"{table.load_again}; this is a fault of the loader, please report it",
        table=table,
        seqno=target,
    )


def _table_state(
    metadata: TableMetadata | None,
    applied: Applied | None,
    chain: Chain,
    table: TableName,
    target: int,
    record: Published | None,
    rule: TableRule,
) -> TableState | None:
    """Return where a table stands; None for one that was dropped before it was ever loaded, and needs nothing."""
    if metadata is not None and applied is not None:
        state: Lifecycle = "gone" if applied.state == "gone" else "fresh" if applied.state == "fresh" else ""
        return TableState(recorded_schema(metadata, table), complete_seqno(record, table, applied), state)
    if metadata is not None and metadata.head is not None:
        raise replaced_table_error(table)
    origin = chain.find_origin(table, target, every_life=rule.mode != "mirror")
    if origin.seqno is not None:
        return TableState(recorded_schema(metadata, table) if metadata else None, origin.seqno, "gone")
    if origin.dropped and rule.mode == "mirror":
        return None
    refused = None if origin.dropped else find_refusal(chain.store, chain.source, table)
    if refused:
        raise DataError(
            f"changes of table {table} are staged, and its initial load was refused",
            why=": ".join(filter(None, (refused.error["what"], refused.error["why"]))),
            hint=f"{refused.error['hint']}; then: loader initial-load --table {table.argument}",
            table=table,
        )
    raise DataError(
        f"changes of table {table} are staged, but it was never loaded",
        why="the table was dropped since, so it cannot be loaded any more" if origin.dropped else "",
        hint=_exclude_hint(table) if origin.dropped else f"loader initial-load --table {table.argument}",
        table=table,
    )


def _exclude_hint(table: TableName) -> str:
    return f"add {str(table)!r} to tables.exclude of the source, then: loader run"


def replaced_table_error(table: TableName) -> DataError:
    """The error of a table of ours with rows that nothing says of up to where they have the log."""
    return DataError(
        "the table was replaced in the warehouse",
        why="its rows are of a commit that does not go back to one of the loader",
        hint=table.load_again,
        table=table,
    )


def _check_captured(chain: Chain, manifests: Sequence[Manifest], table: TableName) -> None:
    for manifest in manifests:
        if not chain.captures(manifest.start_seqno, table):
            raise GapError(
                "the table was not captured all the time",
                why=f"the interval [{manifest.start}, {manifest.stop}) was extracted without it",
                hint=table.load_again,
                table=table,
            )
