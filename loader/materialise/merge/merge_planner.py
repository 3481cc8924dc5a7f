"""Plans the merge of one table, from its metadata in the warehouse and the staged documents. Runs no Spark job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from loader.errors import DataError, GapError, LoaderError, RetryableError, UnsupportedError
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, check_owner, recorded_schema
from loader.materialise.merge.published_record import complete_seqno, has_newest_commit
from loader.materialise.merge.table_results import (
    WaitingForTable,
    idle_result,
    lost_table_error,
    never_loaded_error,
    no_progress_error,
    no_snapshot_error,
    replaced_table_error,
    rows_unavailable_error,
    unknown_position_error,
)
from loader.materialise.plan.ddl_events import (
    RenamedFrom,
    TableAltered,
    TableEmptied,
    TableRemoved,
    check_initial_load,
    collect_events,
    iter_events,
    may_do_nothing,
)
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.key_texts import last_staged_alike, read_key_texts
from loader.materialise.plan.lifetimes import find_new_life
from loader.materialise.plan.merge_plan import Merge, plan_stages
from loader.materialise.plan.record_presence import has_records
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.materialise.plan.timeline import CopySource, Lifecycle, TableState, Timeline, build_timeline
from loader.materialise.rules import check_rule
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.notes.refusals import find_refusal
from loader.staging.published import Published

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class MergePlanner:
    """Plans the merges of a source's tables.

    Attributes:
        warehouse: the catalog with the tables.
        chain: the intervals of the source.
        record: the newest published record, if there is one. It spares reading intervals without records of a table.
    """

    warehouse: Warehouse
    chain: Chain
    record: Published | None = None

    def plan(
        self,
        table: TableName,
        metadata: TableMetadata | None,
        target: int,
        *,
        commit_position: bool = False,
        life_start: int = 0,
    ) -> Merge | TableResult:
        """Return the merge that brings a table to `target`, or the result of a table that needs no merge.

        The merge can end before `target`: see `build_timeline`.

        Args:
            table: the table.
            metadata: the table's metadata, on which the merge will be committed; None if the table does not exist.
            target: a seqno.
            commit_position: also plan a merge for statements and records that change nothing. Another table takes the
                rows from the snapshot of that position.
            life_start: a seqno. Statements and records before it do not count, see `find_new_life`.

        Raises:
            DataError: the table was never loaded, belongs to another source, has another rule, or cannot be merged.
        """
        chain, rule = self.chain, self.warehouse.rule(table)
        applied = check_owner(metadata, table, chain.source, chain.logs) if metadata else None
        state = self._read_state(table, metadata, applied, target)
        if state is None:
            return idle_result(table, None, "unchanged", target)
        if metadata:
            self._check_rule(metadata, table)
        if (after_gap := chain.find_drop_in_gap(table, state.applied)) is not None:
            state = replace(state, applied=after_gap, state="gone")
        if metadata and applied and applied.seqno > target:
            self._check_reached(table, metadata, applied)
        if state.applied >= target:
            return idle_result(table, applied, "already", state.applied)
        if life_start:
            state = replace(state, applied=max(state.applied, life_start - 1))
        timeline, manifests = self._build_timeline(table, state, target, metadata)
        copied = timeline.copy_source
        before = copied.hexed if copied else applied.hexed if applied else None
        texts = read_key_texts(table, manifests, state.applied, chain.stages_hex, before)
        merge = plan_stages(table, timeline, manifests, rule, new=metadata is None, texts=texts)
        if metadata is None and merge.schema is None:  # no row shows its columns, so there is no table to create
            if merge.target == target:
                return idle_result(table, None, "unchanged", target)
            # There is no row to take by the statement before which the merge ends: continue after it.
            after = merge.target + 1
            return self.plan(table, metadata, target, commit_position=commit_position, life_start=after)
        same = not merge.stages and merge.keeps_columns and (merge.schema, merge.state) == (state.schema, state.state)
        needs_commit = commit_position and self._is_mentioned(table, state.applied, target)
        done = same and not needs_commit and merge.target == target
        return idle_result(table, applied, "unchanged", target) if done else merge

    def _check_rule(self, metadata: TableMetadata, table: TableName) -> None:
        check_rule(metadata.properties, self.warehouse.rule(table), table, is_empty=metadata.head is None)

    def _check_reached(self, table: TableName, metadata: TableMetadata, applied: Applied) -> None:
        """Check that this chain has brought a table to its applied position.

        Raises:
            DataError: nothing is planned or loaded up to there.
        """
        if self.record and applied.seqno <= self.record.stop_seqno:
            return
        if self.chain.may_have_reached(table, applied.seqno):
            return
        # The load of a table that is being adopted is stored after the commit.
        adopted = applied.loaded and not next(metadata.ancestry(applied.snapshot)).count("added-records")
        if not adopted:
            raise unknown_position_error(table, applied.position)

    def _build_timeline(
        self, table: TableName, state: TableState, target: int, metadata: TableMetadata | None
    ) -> tuple[Timeline, Sequence[Manifest]]:
        """Return the timeline of a table and its intervals.

        If it cannot be built, a mirror continues with the table's last life: the rows of earlier lives are gone.
        """
        chain, rule = self.chain, self.warehouse.rule(table)
        begin, broken = state.applied, None
        try:
            chain.check_joined(table, begin)
            if metadata and metadata.applied:
                _check_in_generation(chain, table, metadata.applied)
        except GapError as error:  # nothing is known of the log before the newest generation
            begin, broken = chain.newest_join(target), error
        manifests = chain.covering_intervals(begin, target)
        try:
            if broken:
                raise broken
            end = last_staged_alike(table, manifests, begin, target, chain.stages_hex)
            return self._build_one_timeline(table, state, end, manifests, metadata), manifests
        except (UnsupportedError, GapError) as error:
            life = find_new_life(table, manifests, begin, target)
            if life is None or rule.mode != "mirror":
                self.explain_drop(error, table, target)
                raise
            _LOG.warning(
                "%s: %s; the table was dropped, renamed or created again since then, so the merge continues there",
                table,
                error.what,
            )
        manifests = tuple(manifest for manifest in manifests if manifest.stop_seqno >= life)
        state = replace(state, applied=life - 1)
        end = last_staged_alike(table, manifests, state.applied, target, chain.stages_hex)
        return self._build_one_timeline(table, state, end, manifests, metadata), manifests

    def explain_drop(self, error: LoaderError, table: TableName, target: int) -> None:
        """Correct the hint of an error if the table must keep its past, but can no longer be loaded.

        Args:
            error: why the table cannot be merged.
            table: the table.
            target: a seqno. The table counts as dropped if it was dropped or renamed up to there.
        """
        with suppress(UnsupportedError):  # it is unknown whether the table was dropped
            if self.warehouse.rule(table).mode != "mirror" and self.chain.find_origin(table, target).dropped:
                error.hint = _exclude_hint(table)

    def _build_one_timeline(
        self,
        table: TableName,
        state: TableState,
        target: int,
        manifests: Sequence[Manifest],
        metadata: TableMetadata | None,
    ) -> Timeline:
        check_captured(self.chain, manifests, table)
        self._check_keeps_loads(table, state.applied, target, metadata)
        events = collect_events(table, manifests, state.applied, target, gone=state.state == "gone")
        check_initial_load(table, events, lambda: metadata.exact_at if metadata else 0)
        check_rows_staged(table, manifests, state.applied, target)
        timeline = build_timeline(
            table,
            state,
            target,
            manifests,
            events,
            self.find_copy_source,
            partial(has_records, self.chain.store),
            stop_at_events=self.warehouse.rule(table).on_drop == "keep",
        )
        if timeline.target <= state.applied:
            raise no_progress_error(table, target, f"its next step ends at seqno {timeline.target}")
        return timeline

    def _check_keeps_loads(self, table: TableName, applied: int, target: int, metadata: TableMetadata | None) -> None:
        """Check that no initial load of a table after `applied`, up to the target, is in the warehouse.

        The rows of the load are gone if the table was rolled back, or dropped in the warehouse. The log before the load
        may lack changes of the table, for example skipped transactions. So it does not lead to these rows.
        """
        newest = metadata.applied if metadata else None
        if newest is not None and has_newest_commit(self.record, table, newest):
            return
        if not self.chain.has_load(self.warehouse.catalog.place, table, applied + 1, target + 1):
            return
        now = self.warehouse.metadata(table)
        if (now.applied if now else None) != newest:
            raise RetryableError("the table was loaded while its merge was planned", hint="run again", table=table)
        raise GapError(
            "the table is at a position before its newest initial load",
            why="it was rolled back or dropped in the warehouse, and the log before the load may lack changes that the"
            " load had",
            hint=table.load_again,
            table=table,
        )

    def find_copy_source(self, event: RenamedFrom) -> CopySource | Literal["fresh", "gone"]:
        """Return the rows of the renamed table right before the statement.

        Return `fresh` if it had no rows, and `gone` if the statement renamed nothing, which IF EXISTS allows.

        Raises:
            UnsupportedError: the table is not in the warehouse, has no such snapshot, or cannot be merged up to there.
            WaitingForTable: the table is not merged up to there yet.
        """
        found = (self._find_rows(event.name, other, event.seqno, event.if_exists) for other in event.others)
        return next((one for one in found if one != "gone"), "gone")

    def _find_rows(
        self, taker: TableName, table: TableName, seqno: int, if_exists: bool
    ) -> CopySource | Literal["fresh", "gone"]:
        """Return the rows of a table right before the statement that renames it to `taker`.

        Raises:
            DataError: the table belongs to another source.
            UsageError: its rule was changed after the table was created.
        """
        metadata = self.warehouse.metadata(table)
        try:
            applied = metadata.applied_before(seqno) if metadata else None
        except DataError as error:
            raise no_snapshot_error(table, taker, expired=True) from error
        if metadata:
            check_owner(metadata, table, self.chain.source, self.chain.logs)
            self._check_rule(metadata, table)
        try:
            origin = None if applied else self.chain.find_origin(table, seqno - 1)
        except UnsupportedError as error:
            raise rows_unavailable_error(table, taker, error) from error
        if if_exists and origin and origin.dropped:
            return "gone"
        start = applied.seqno if applied else origin.seqno if origin else None
        if start is None:
            raise never_loaded_error(table, taker)
        newest = metadata.applied if metadata else None
        is_beyond = newest is not None and newest.seqno >= seqno
        low = complete_seqno(self.record, table, applied) if applied else start
        try:
            if is_beyond:
                self.chain.check_joined(table, low, seqno)
            lacks = is_beyond and self._may_have_changed(table, low, seqno - 1, with_statements=applied is not None)
            if is_beyond and not lacks and applied is None:
                lacks = self._took_rows(taker, table, low, seqno - 1)
            # The target is the statement, not the target of `taker`: this plan is made for no other purpose.
            ready = is_beyond or not isinstance(self.plan(table, metadata, seqno - 1), Merge)
        except (UnsupportedError, GapError) as error:
            raise rows_unavailable_error(table, taker, error) from error
        if lacks or (metadata and applied and metadata.loaded_until(applied.snapshot) >= seqno):
            raise no_snapshot_error(table, taker)
        if not ready:
            raise WaitingForTable(
                f"table {table} must be merged up to the RENAME TABLE after which table {taker} has its rows",
                hint="loader run",
                table=table,
                seqno=seqno,
            )
        if applied and applied.state == "gone":
            if if_exists:
                return "gone"
            raise never_loaded_error(table, taker)
        if metadata is None or applied is None or applied.state == "fresh":
            return "fresh"
        schema = recorded_schema(metadata, table, applied.schema_id)
        return CopySource(table, schema, applied.snapshot, applied.hexed)

    def _took_rows(self, taker: TableName, table: TableName, after_seqno: int, last_seqno: int) -> bool:
        """Return whether a rename with `after_seqno` < seqno <= `last_seqno` gave rows to a table."""
        if after_seqno >= last_seqno:
            return False
        manifests = tuple(self.chain.intervals_between(after_seqno, last_seqno))
        events = collect_events(table, manifests, after_seqno, last_seqno)
        renames = (replace(event, name=taker) for event in events if isinstance(event, RenamedFrom))
        return any(isinstance(self.find_copy_source(event), CopySource) for event in renames)

    def _may_have_changed(self, table: TableName, after_seqno: int, last_seqno: int, *, with_statements: bool) -> bool:
        """Return whether a table may have changed with `after_seqno` < seqno <= `last_seqno`.

        Statements do not count for a table that was created in that range: without records it had no rows.
        """
        chain = self.chain
        manifests = tuple(chain.intervals_between(after_seqno, last_seqno)) if after_seqno < last_seqno else ()
        uncaptured = any(not chain.captures(manifest.start_seqno, table) for manifest in manifests)
        incomplete = any(manifest.find_incomplete(table, after_seqno, last_seqno) for manifest in manifests)
        if uncaptured or incomplete:
            return True
        return self._is_mentioned(table, after_seqno, last_seqno, with_statements=with_statements)

    def _is_mentioned(
        self, table: TableName, after_seqno: int, last_seqno: int, *, with_statements: bool = True
    ) -> bool:
        """Return whether there are records or statements of a table with `after_seqno` < seqno <= `last_seqno`."""
        chain = self.chain
        manifests = tuple(chain.intervals_between(after_seqno, last_seqno)) if after_seqno < last_seqno else ()
        files = (file for manifest in manifests for file in manifest.files_of(table))
        if any(file.rows and file.min_seqno <= last_seqno and file.max_seqno > after_seqno for file in files):
            return True
        return bool(collect_events(table, manifests, after_seqno, last_seqno)) and with_statements

    def check_not_lost(self, table: TableName, metadata: TableMetadata | None, target: int) -> None:
        """Check a table without an applied position: nobody dropped or replaced it after it was loaded.

        A table that the log dropped may be removed from the warehouse. It comes back if the log creates it again.

        Raises:
            DataError: the newest published record has the table, and the log did not drop it.
        """
        noted = self.record.tables.get(str(table)) if self.record and self.record.stop_seqno <= target else None
        if noted is None:
            return
        if metadata is not None and metadata.head is not None:
            raise replaced_table_error(table)
        chain, origin = self.chain, self.chain.find_origin(table, target)
        if origin.seqno is not None or origin.dropped or chain.find_drop_in_gap(table, noted.applied) is not None:
            return
        if not chain.was_dropped(table, noted.applied):
            raise lost_table_error(table)

    def check_never_filled(self, table: TableName, after_seqno: int, last_seqno: int) -> None:
        """Check that no statement in (`after_seqno`, `last_seqno`] gave rows to a table that was never loaded.

        A table can be exchanged with a partition. In MariaDB, a partition can become a table (CONVERT PARTITION ... TO
        TABLE). The log has none of these rows.

        Raises:
            DataError: a statement did.
        """
        given: TableAltered | None = None
        for event in iter_events(table, self.chain.intervals_between(after_seqno, last_seqno), after_seqno, last_seqno):
            if isinstance(event, TableAltered):
                given = event if event.unlogged_rows else given
            elif isinstance(event, TableEmptied | TableRemoved | RenamedFrom) and not may_do_nothing(event):
                given = None
        if given:
            raise DataError(
                f"a statement gave rows to table {table}, which was never loaded",
                why=given.unlogged_rows,
                hint=f"loader initial-load --table {table.argument}",
                table=table,
            )

    def _read_state(
        self, table: TableName, metadata: TableMetadata | None, applied: Applied | None, target: int
    ) -> TableState | None:
        """Return the state of a table; None if it was dropped before it was ever loaded, and needs nothing."""
        if metadata is not None and applied is not None:
            schema = recorded_schema(metadata, table)
            lifecycle: Lifecycle = "gone" if applied.state == "gone" else "fresh" if applied.state == "fresh" else ""
            return TableState(schema, complete_seqno(self.record, table, applied), lifecycle)
        if metadata is not None and metadata.head is not None:
            raise replaced_table_error(table)
        is_mirror = self.warehouse.rule(table).mode == "mirror"
        origin = self.chain.find_origin(table, target, every_life=not is_mirror)
        if origin.seqno is not None:
            return TableState(recorded_schema(metadata, table) if metadata else None, origin.seqno, "gone")
        if origin.dropped and is_mirror:
            return None
        raise self._never_loaded_error(table, dropped=origin.dropped)

    def _never_loaded_error(self, table: TableName, *, dropped: bool) -> DataError:
        refused = None if dropped else find_refusal(self.chain.store, self.chain.source, table)
        load = f"loader initial-load --table {table.argument}"
        if refused:
            return DataError(
                f"changes of table {table} are staged, but its initial load was refused",
                why=": ".join(filter(None, (refused.error["what"], refused.error["why"]))),
                hint=f"{refused.error['hint']}; then, unless the table is excluded: {load}",
                table=table,
            )
        return DataError(
            f"changes of table {table} are staged, but it was never loaded",
            why="the table was dropped since then, so it can no longer be loaded" if dropped else "",
            hint=_exclude_hint(table) if dropped else load,
            table=table,
        )


def _check_in_generation(chain: Chain, table: TableName, applied: Applied) -> None:
    """Verify that an applied position is not after the end of its generation.

    Raises:
        GapError: it is. Its seqno may be that of another position in the next generation.
    """
    stop = next((join.stop for join in chain.joins if join.older == applied.generation), applied.seqno)
    if applied.seqno > stop:
        raise GapError(
            "the table has more of the log of the previous server than was staged when the current one was followed",
            why=f"generation {applied.generation} ends at seqno {stop}, and the table has it up to {applied.position}:"
            " an older backup of the staging root was restored",
            hint=table.load_again,
            table=table,
        )


def _exclude_hint(table: TableName) -> str:
    return f"{table.exclusion}, then: loader run"


def check_captured(chain: Chain, manifests: Sequence[Manifest], table: TableName) -> None:
    """Verify that each interval captured a table.

    Raises:
        GapError: an interval was extracted without it.
    """
    for manifest in manifests:
        if not chain.captures(manifest.start_seqno, table):
            raise GapError(
                "the table was not captured all the time",
                why=f"the interval [{manifest.start}, {manifest.stop}) was extracted without it",
                hint=table.load_again,
                table=table,
            )
