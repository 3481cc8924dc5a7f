"""The extracted intervals, initial loads and published records of a source's log, as one run sees them.

The log consists of the newest generation and of the older generations, each up to the seqno where the next one follows.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from threading import Lock
from typing import NamedTuple

from loader.errors import GapError, StagedDataError, UnsupportedError
from loader.failpoints import failpoint
from loader.materialise.plan.ddl_events import (
    RenamedFrom,
    TableCreated,
    TableRemoved,
    iter_events,
    read_barrier,
    writes_rows,
)
from loader.materialise.plan.lifetimes import TableOrigin, find_origin
from loader.materialise.plan.merge_plan import find_covering_intervals
from loader.materialise.plan.record_presence import any_has_records
from loader.materialise.plan.skipped_names import Names, follow_names
from loader.model.table import TableName
from loader.schema.changes import Renamed
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Plan, TableFilter
from loader.staging.filters import CapturedTables
from loader.staging.interval_starts import ENDLESS
from loader.staging.layout import interval_folder, published_key
from loader.staging.notes.skips import Skips
from loader.staging.published import Published
from loader.staging.schemas import SchemaStore
from loader.store.base import ObjectNotFound, Store


class GenerationJoin(NamedTuple):
    """The place where a generation continues an older one.

    Attributes:
        older: the name of the older generation.
        stop: the seqno up to which the older generation counts.
        start: the seqno where the newer generation begins.
        gap: why the log between them was not read; empty if no log lies between them.
        schemas, tables: see Generation.
    """

    older: str
    stop: int
    start: int
    gap: str = ""
    schemas: str = ""
    tables: TableFilter | None = None


class Chain:
    """The intervals of a log, read on demand and cached. Safe for threads.

    The stop of an interval is the start of the next one. So the number of store requests depends on how far tables have
    to go, and not on the number of intervals.
    """

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self.store = store
        self.source = source
        self.generation = generation
        self._plans = PlanChain(store, source)
        lineage = self._plans.lineage(generation)
        self.identity = lineage[-1].identity
        self.logs = {one.name: one.log for one in lineage}
        self.generations = tuple(self.logs)
        self.joins = tuple(
            GenerationJoin(
                older=new.follows.name,
                stop=new.follows.stop_seqno,
                start=new.start_position.seqno(new.shift),
                gap=new.gap,
                schemas=new.schemas,
                tables=new.tables,
            )
            for new in lineage
            if new.follows
        )
        begins = (0, *(join.start for join in self.joins))
        # By generation, the range of seqnos for which it counts.
        self._valid_ranges = tuple(zip(begins, (*(join.stop for join in self.joins), ENDLESS), strict=True))
        self._manifests: dict[int, Manifest | None] = {}
        self._captured: dict[int, CapturedTables] = {}
        self._interval_plans: dict[int, Plan] = {}
        self._newest = lineage[-1]
        self._record: Published | None = None
        self._has_record = False
        self._lock = Lock()

    def manifest(self, start: int) -> Manifest | None:
        """Return the manifest of the interval with this start seqno; None while it is not extracted.

        Raises:
            StagedDataError: the manifest belongs to another interval or source than its folder.
        """
        with self._lock:
            if start not in self._manifests:
                generation = self._generation_at(start)
                manifest = self._plans.manifest(generation, start) if generation else None
                if manifest is not None:
                    key = f"{interval_folder(self.source, generation, start)}/manifest.json"
                    _check_place(manifest, key, self.source, generation, start)
                self._manifests[start] = manifest
            return self._manifests[start]

    def _generation_at(self, start: int) -> str:
        """Return the generation that counts at a seqno; empty if none does."""
        for name, (begin, stop) in zip(reversed(self.generations), reversed(self._valid_ranges), strict=True):
            if start >= begin:
                return name if start < stop else ""
        return ""

    def _next_start(self, seqno: int) -> int:
        """Return the start of the interval after a stop: another seqno if a newer generation follows there."""
        starts = {join.stop: join.start for join in self.joins}
        while seqno in starts:
            seqno = starts[seqno]
        return seqno

    def _start_holding(self, seqno: int) -> int | None:
        """Return the start of the last interval that begins at or before a seqno."""
        if self.manifest(seqno):
            return seqno
        for name, (begin, stop) in zip(reversed(self.generations), reversed(self._valid_ranges), strict=True):
            starts = self._plans.descending_starts(name, min(seqno + 1, stop))
            if begin <= seqno and (found := next(starts, None)) is not None:
                return found
        return None

    def _iter_starts(self, first: int, target: int) -> Iterator[int]:
        """Yield the starts of intervals, from the interval that holds `first` up to `target`.

        An interval without manifest and plan is followed by the next interval in the store's list. The caller reports
        the missing interval.
        """
        at = self._start_holding(self._next_start(first))
        at = self._next_listed_start(-1) if at is None else at
        while at is not None and at < target:
            yield at
            known = self.manifest(at) or self._plans.plan(self._generation_at(at), at)
            following = self._next_start(known.stop_seqno) if known else None
            exists = following is not None and (following >= target or self.manifest(following))
            at = following if exists else self._next_listed_start(at)

    def _next_listed_start(self, seqno: int) -> int | None:
        for name, (_, stop) in zip(self.generations, self._valid_ranges, strict=True):
            found = next(self._plans.ascending_starts(name, seqno), None)
            if found is not None and found < stop:
                return found
        return None

    def interval_ending_at(self, through: int | None) -> Manifest | None:
        """Return the interval that stops at a seqno, or the last one; None if nothing is extracted yet.

        Raises:
            GapError: no extracted interval stops there.
        """
        if through is None:
            return self._newest_interval()
        newest = self._newest_interval()
        if newest is not None and newest.stop_seqno == through:
            return newest
        start = self._start_holding(through - 1)
        found = self.manifest(start) if start is not None else None
        if found is not None and found.stop_seqno == through:
            return found
        raise GapError(
            "no extracted interval stops at the target of the merge",
            hint="loader extract",
            source=self.source,
            seqno=through,
        )

    def _newest_interval(self) -> Manifest | None:
        """Return the last manifest that counts."""
        if found := self._plans.newest_manifest(self.generation):
            return self.manifest(found.start_seqno)
        for join in reversed(self.joins):  # a generation without manifests continues the older one
            if found := self._plans.manifest_stopping_at(join.older, join.stop):
                return self.manifest(found.start_seqno)
        return None

    def covering_intervals(self, applied: int, target: int) -> tuple[Manifest, ...]:
        """Return the contiguous intervals from `applied` to `target`: see `merge_plan.find_covering_intervals`.

        Raises:
            GapError: an interval is missing.
        """
        starts = list(self._iter_starts(applied, target)) if applied < target else []
        return find_covering_intervals(
            self.manifest, starts, applied, target, {join.start: join.stop for join in self.joins}
        )

    def newest_join(self, target: int) -> int:
        """Return the seqno where the newest generation that begins before `target` begins; 0 for the first one."""
        return max((join.start for join in self.joins if join.start < target), default=0)

    def check_joined(self, table: TableName, applied: int, target: int = ENDLESS) -> None:
        """Verify that the log is contiguous for a table, up to `target`, where one generation continues another.

        Raises:
            GapError: the log between two generations was not read. Or the table's initial load read more of the older
                generation than the newer one continues from: the server that is followed now may lack these changes.
        """
        for join in (join for join in self.joins if join.start <= target):
            if join.gap and applied < join.start:
                raise GapError(
                    "a part of the log was not read, and the table was not loaded again since",
                    why=join.gap,
                    hint=table.load_again,
                    table=table,
                )
            if applied < join.start and max(applied, self._plans.loads.exact_seqno(join.older, table)) > join.stop:
                raise GapError(
                    "the table was loaded from the previous server, later than where the current server continues",
                    why="the current server may lack transactions that the load included",
                    hint=table.load_again,
                    table=table,
                )

    def find_drop_in_gap(self, table: TableName, applied: int) -> int | None:
        """Return where the log continues for a table that was dropped during a gap in the log.

        Return None if the table's applied position is after the last gap, or if the table existed after the gap, or if
        it was not captured then, so that nothing is known of it.
        """
        gaps = [join for join in self.joins if join.gap and applied < join.start]
        if not gaps or (gaps[-1].tables and not CapturedTables(gaps[-1].tables)(table)):
            return None
        existing = SchemaStore(self.store, self.source).get(gaps[-1].schemas).tables
        return None if str(table) in {known.table for known in existing} else gaps[-1].start

    def may_have_reached(self, table: TableName, seqno: int) -> bool:
        """Return whether a merge or an initial load of this chain can have brought a table to a seqno."""
        return self._plans.may_have_reached(self._newest, table, seqno)

    def intervals_between(self, low: int, target: int) -> Iterator[Manifest]:
        """Yield the manifests of all extracted intervals with a part in (low, target], contiguous or not."""
        for start in self._iter_starts(low, target):
            manifest = self.manifest(start)
            if manifest is not None and manifest.stop_seqno > low:
                yield manifest

    def captures(self, start: int, table: TableName) -> bool:
        """Return whether the interval with this start seqno captured the table.

        Raises:
            DataError: the interval has no plan.
        """
        with self._lock:
            if start not in self._captured:
                self._captured[start] = CapturedTables(self._plan(start).tables)
            return self._captured[start](table)

    def stages_hex(self, start: int) -> bool:
        """Return whether invalid bytes were staged as hex in the interval with this start seqno.

        Raises:
            DataError: the interval has no plan.
        """
        with self._lock:
            return self._plan(start).hex_fallback

    def _plan(self, start: int) -> Plan:
        if start not in self._interval_plans:
            self._interval_plans[start] = self._plans.require_plan(self._generation_at(start), start)
        return self._interval_plans[start]

    def find_origin(self, table: TableName, target: int, *, every_life: bool = False) -> TableOrigin:
        """Return where the records of a table that was never loaded begin: see `loader.materialise.plan.lifetimes`.

        The newest published record holds this for tables that were created before it, except tables behind the record.
        A table that was dropped and has later records was created again by a statement that was not read. It does not
        count as dropped.

        Raises:
            UnsupportedError: the effect of a later statement on the table is unknown.
        """
        record = self.newest_published()
        noted = record.made if record and record.stop_seqno <= target and str(table) not in record.behind else None
        low = record.stop_seqno if record and noted is not None else 0
        manifests = tuple(self.intervals_between(low, target))
        made, unread_until = (noted or {}).get(str(table)), self._unread_until(table, manifests, low, target)
        if unread_until:
            made = 0 if self.find_drop_in_gap(table, low) == unread_until else None
        origin = find_origin(
            table, reversed(manifests), low, target, made=made, unread_until=unread_until, every_life=every_life
        )
        files = (file for manifest in manifests for file in manifest.files_of(table)) if origin.dropped else ()
        if any_has_records(self.store, files, origin.dropped_at, target):
            return replace(origin, dropped=False, dropped_at=0)
        return origin

    def was_dropped(self, table: TableName, applied: int) -> bool:
        """Return whether the run that merged a table up to the seqno `applied` dropped it, or renamed it away.

        Without a later merge, the table does not exist since then. A run begins at the newest record that has the
        table. So the number of requests does not depend on the history.

        Raises:
            DataError: a document is damaged.
        """
        start = self._start_holding(applied - 1)
        while start is not None:
            manifest = self.manifest(start)
            for event in reversed(list(iter_events(table, [manifest], 0, applied)) if manifest else []):
                if isinstance(event, TableRemoved | RenamedFrom | TableCreated):
                    return isinstance(event, TableRemoved)
            start = self._start_holding(start - 1)
            record = self._plans.published(self._generation_at(start), start) if start is not None else None
            if record and str(table) not in record.behind:
                break
        return False

    def _unread_until(self, table: TableName, manifests: Sequence[Manifest], low: int, target: int) -> int:
        """Return where the last part of the log in (low, target] ends that was not read, or read without a table.

        Return 0 if there is no such part. `manifests` are all intervals in (low, target].
        """
        gap = max((join.start for join in self.joins if join.gap and low < join.start <= target), default=0)
        newest_first = (manifest for manifest in reversed(manifests) if manifest.stop_seqno > gap)
        without = (one.stop_seqno for one in newest_first if not self.captures(one.start_seqno, table))
        return next(without, gap)

    def creation_seqnos(self, target: int, others: Container[str]) -> dict[str, int] | None:
        """Return the value of `Published.made` for a record at `target`, without the tables `others`.

        Return None if the newest record is beyond the target: the origins before the target are then unknown.
        """
        record = self.newest_published()
        if record is not None and record.stop_seqno > target:
            return None
        low = record.stop_seqno if record and record.made is not None else 0
        intervals = self.intervals_between(low, target)
        named = {name for manifest in intervals for barrier in manifest.barriers for name in barrier.tables}
        named |= set(record.made or ()) if record else set()
        found: dict[str, int] = {}
        for name in sorted(name for name in named if name not in others):
            with suppress(UnsupportedError):  # an unreadable statement: the merge of the table stops there
                origin = self.find_origin(TableName.parse(name), target)
                if origin.dropped or origin.last is not None:
                    found[name] = 0 if origin.dropped else origin.last or 0
        return found

    def skipped_names(self, target: int, tables: Container[str], warehouse: str) -> dict[str, Names]:
        """Return the names for `Published.skipped` and `named_at` of a record at `target` with these tables.

        `warehouse`: of the record. Return nothing if the newest record is beyond the target.
        """
        record = self.newest_published()
        if record is not None and record.stop_seqno > target:
            return {}
        reached = record.stop_seqno if record else 0
        caught_up = [seqno for name, seqno in record.behind.items() if name in tables] if record else []
        # The skips of a table that was behind may have been used since, in intervals before the record.
        since = self.intervals_between(min([reached, *caught_up]), target)
        skips = Skips(self.store, self.source)
        is_loaded = partial(self.has_load, warehouse)
        return follow_names(record.skipped_names if record else {}, reached, since, cache(skips.get), is_loaded)

    def has_load(self, warehouse: str, table: TableName, low: int, below: int) -> bool:
        """Return whether an initial load of a table, with `low` <= seqno < `below`, is in a warehouse."""
        return self._plans.loads.has_applied(self.generations, table, low, below, warehouse)

    def newest_applied_load(self, table: TableName, target: int) -> Manifest | None:
        """Return the manifest of a table's newest initial load up to `target` that is in the warehouse, or None."""
        found = (self._plans.loads.newest_applied(name, table, target + 1) for name in reversed(self.generations))
        return next(filter(None, found), None)

    def newest_commit_time(self, target: int) -> str:
        """Return the newest commit time up to `target`; empty if the newest record does not hold the times before it.

        A server's clock can go back, so this is the maximum and not the last time.
        """
        record = self.newest_published()
        if record is not None and (record.made is None or record.stop_seqno > target):
            return ""
        since = self.intervals_between(record.stop_seqno if record else 0, target)
        return max((record.committed_at if record else "", *(one.committed_at for one in since)))

    def rename_statements(self, low: int, target: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
        """Yield the seqno and the captured tables of each rename in (low, target], in log order."""
        for manifest in self.intervals_between(low, target):
            for barrier in manifest.barriers:
                changes = read_barrier(barrier) if low < barrier.seqno <= target else ()
                if any(isinstance(change, Renamed) for change in changes):
                    yield barrier.seqno, tuple(map(TableName.parse, barrier.tables))

    def unlogged_statements(self, low: int, target: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
        """Yield the seqno and the tables of each statement in (low, target] that changed rows without row events.

        The order is that of the log. There are no tables if the statement may have changed any table.
        """
        for manifest in self.intervals_between(low, target):
            for barrier in manifest.barriers:
                if low < barrier.seqno <= target and writes_rows(barrier):
                    yield barrier.seqno, tuple(map(TableName.parse, barrier.tables))

    def incomplete_tables(self, low: int, target: int) -> Iterator[tuple[int, TableName]]:
        """Yield the seqno of the first missing row and the table, for incomplete tables with it in (low, target]."""
        intervals = self.intervals_between(low, target)
        found = {(entry.seqno, entry.name) for manifest in intervals for entry in manifest.left_out}
        yield from sorted((seqno, table) for seqno, table in found if low < seqno <= target)

    def newest_published(self) -> Published | None:
        """Return the published record of the latest interval that has one."""
        with self._lock:
            if not self._has_record:
                self._record, self._has_record = self._read_published(), True
            return self._record

    def _read_published(self) -> Published | None:
        if newest := self._plans.newest_published(self.generation):
            return newest[1]
        for join in reversed(self.joins):
            newest = self._plans.newest_published(join.older)
            if newest and newest[1].stop_seqno <= join.stop:
                return newest[1]
            # A record of an interval that no longer counts is skipped.
            below = self._plans.descending_starts(join.older, join.stop) if newest else ()
            records = (self._plans.published(join.older, start) for start in below)
            if found := next(filter(None, records), None):
                return found
        return None

    def tables_with_load(self, known: set[TableName]) -> Iterator[TableName]:
        """Yield the tables with a staged initial load, without the known tables."""
        for generation in reversed(self.generations):
            yield from self._plans.loads.tables_with_load(generation, known)

    def publish(self, last: Manifest, record: Published) -> str:
        """Write the published record of an interval, or complete the existing record. Return its key.

        A record that lacks a quarantined table gets the table once the table has the interval. Nothing else in a record
        changes. If two runs complete a record at the same time, one of them wins, and a later run adds what is missing.
        """
        key = published_key(self.source, last.generation, last.start_seqno)
        failpoint("published.before")
        created = self.store.create(key, record.canonical())
        if not created:
            known = Published.read(self.store.get(key), key)
            completed = known.with_caught_up(record)
            if completed != known:
                with self.store.writing(key) as sink:
                    sink.write(completed.canonical())
        failpoint("published.after")
        if created:
            self._plans.note_published(last.generation, last.start_seqno)
        return key


def read_load_manifest(store: Store, key: str, source: str, generations: Sequence[str]) -> Manifest:
    """Return the manifest of an initial load of this source and one of these generations.

    Raises:
        StagedDataError: the manifest is missing, unreadable, or of another source or generation.
    """
    try:
        manifest = Manifest.read(store.get(key), key)
    except ObjectNotFound as error:
        raise StagedDataError(
            "the manifest of an initial load is missing", hint="load the table again", key=key
        ) from error
    generation = manifest.generation if manifest.generation in generations else generations[-1]
    _check_place(manifest, key, source, generation, manifest.start_seqno)
    return manifest


def _check_place(manifest: Manifest, key: str, source: str, generation: str, start: int) -> None:
    found = (manifest.source, manifest.generation, manifest.start_seqno)
    if found != (source, generation, start):
        raise StagedDataError(
            "a manifest does not belong to its folder",
            why=f"it is of source {found[0]}, generation {found[1]}, starting at {found[2]}",
            hint="restore the original object",
            key=key,
        )
