"""The chain of plans of a source.

The key of a plan is the start of its interval, and each interval starts where the previous one stops. So gaps, overlaps
and forks cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from loader.errors import DataError, LoaderError, StagedDataError, UsageError
from loader.failpoints import failpoint
from loader.model.position import Position
from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.documents import Generation, HeldGroup, Manifest, Mark, Plan, StagedFile
from loader.staging.hints import Hints, Kind
from loader.staging.interval_starts import ENDLESS, IntervalStarts
from loader.staging.layout import (
    chain_folder,
    encode,
    filled_key,
    interval_folder,
    published_key,
    purged_key,
)
from loader.staging.load_manifests import LoadManifests
from loader.staging.notes.finished_work import Purged
from loader.staging.published import Published
from loader.store.base import Store

_Document = TypeVar("_Document", bound=Document)
_Chained = TypeVar("_Chained", Plan, Manifest)
_Read = Callable[[str, int], _Document | None]
"""Reads a document of the interval with that generation and start seqno."""


class RunRecord(Document):
    """The intervals that a run of an orchestrator was given, so that a repeated run gets the same ones.

    Attributes:
        start_seqno: start of the first interval.
        through_seqno: stop of the last interval; 0: the run was given only the interval that starts at `start_seqno`.
    """

    LATER: ClassVar[tuple[str, ...]] = ("through_seqno",)

    start_seqno: int
    through_seqno: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """The state of the log at the start of an interval: see Manifest, whose stop it is, and Generation."""

    position: Position
    gtids: str
    mark: Mark | None
    held: tuple[HeldGroup, ...] = ()
    schemas: str = ""
    nameless: bool = False


class NotLoaded(LoaderError):
    """The source has no chain yet, because no initial load was started."""


class Superseded(DataError):
    """The interval lies after the position from which a newer generation continues."""


class PlanChain:
    """Reads and extends the plan chain of one source. Every object is created only if absent, except hints."""

    def __init__(self, store: Store, source: str) -> None:
        self.store = store
        self.source = source
        self.loads = LoadManifests(store, source)
        self._hints = Hints(store, source)

    def generation(self) -> Generation | None:
        """Return the newest generation, or None before the first load."""
        for name in reversed(self.store.folders(f"{encode(self.source)}/")):
            found = self._generation(name)
            if found:
                return found
        return None

    def valid_until(self, generation: Generation) -> int:
        """Return the seqno from which a newer generation continues instead of this one; ENDLESS for the newest."""
        following = [one.follows for one in self.generations() if one.follows and one.follows.name == generation.name]
        return following[0].stop_seqno if following else ENDLESS

    def check_not_superseded(self, generation: str, seqno: int) -> None:
        """Check that a generation is still valid at a seqno.

        Raises:
            Superseded: a newer generation continues from an earlier seqno.
        """
        counts = self.valid_until(self.require_generation(generation))
        if seqno > counts:
            raise Superseded(
                "the interval is superseded: the log now continues on another server from an earlier position",
                why=f"generation {generation} of the log is valid up to seqno {counts}",
                hint="loader run; in Airflow, clear the whole DAG run instead of one task",
                source=self.source,
                generation=generation,
                seqno=seqno,
            )

    def generation_of_interval(self, start_seqno: int) -> Generation:
        """Return the newest generation in which an interval starts at that seqno.

        Raises:
            DataError: no generation has such an interval.
        """
        for generation in reversed(self.generations()):
            if self.plan(generation.name, start_seqno):
                return generation
        raise no_interval_error(self.source, start_seqno)

    def generations(self) -> list[Generation]:
        """Return all generations, oldest first."""
        names = self.store.folders(f"{encode(self.source)}/")
        return [found for name in names if (found := self._generation(name))]

    def require_generation(self, name: str = "") -> Generation:
        """Return the generation with that name, or the newest one if the name is empty.

        Raises:
            NotLoaded: there is no such generation.
        """
        found = self._generation(name) if name else self.generation()
        if not found:
            raise NotLoaded(
                "nothing was loaded from this source yet",
                hint="loader initial-load; if it was loaded before, first check staging.root: its folder may not be"
                " mounted",
                source=self.source,
            )
        return found

    def begin(self, generation: Generation) -> Generation:
        """Create a generation if it is absent, and return the stored one: another process may have created it first."""
        failpoint("plan.before")
        key = f"{chain_folder(self.source, generation.name)}/generation.json"
        self.store.create(key, generation.canonical())
        failpoint("plan.after")
        return Generation.read(self.store.get(key), key)

    @staticmethod
    def name_after(generation: Generation | None) -> str:
        """Return the name of the next generation, or of the first one for None."""
        return f"{int(generation.name) + 1 if generation else 1:04d}"

    def lineage(self, name: str) -> tuple[Generation, ...]:
        """Return the named generation after all generations that it continues, oldest first.

        Raises:
            NotLoaded: one of them is missing.
        """
        found = self.require_generation(name)
        older = self.lineage(found.follows.name) if found.follows else ()
        return (*older, found)

    def plan(self, generation: str, start_seqno: int) -> Plan | None:
        """Return the plan of the interval that starts at that seqno, or None."""
        return Plan.find(self.store, f"{self.folder(generation, start_seqno)}/plan.json")

    def require_plan(self, generation: str, start_seqno: int) -> Plan:
        """Return the plan of the interval that starts at that seqno.

        Raises:
            DataError: there is no such interval.
        """
        found = self.plan(generation, start_seqno)
        if not found:
            raise no_interval_error(self.source, start_seqno)
        return found

    def newest_plan(self, generation: str) -> Plan | None:
        """Return the newest plan, or None if the generation has none."""
        return self._newest(generation, "planned", self.plan)

    def newest_manifest(self, generation: str) -> Manifest | None:
        """Return the newest manifest, or None.

        Intervals are staged in order, so all intervals before it have a manifest.
        """
        return self._newest(generation, "staged", self.manifest)

    def newest_published(
        self, generation: str, known: tuple[int, Published] | None = None
    ) -> tuple[int, Published] | None:
        """Return the start of the latest interval that has a published record, and the record.

        Not every interval gets a published record. `known`: an earlier answer; only later intervals are read then.
        """
        found = known or self._hinted_record(generation)
        if found is None:
            below = staged.stop_seqno if (staged := self.newest_manifest(generation)) else ENDLESS
            found = next(self._backward(self.published, generation, below), None)
            if found is None:
                return None
        for manifest in self.manifests_from(generation, found[1].stop_seqno):
            if record := self.published(generation, manifest.start_seqno):
                found = manifest.start_seqno, record
        return found

    def _hinted_record(self, generation: str) -> tuple[int, Published] | None:
        hinted = self._hints.get(generation, "recorded")
        record = self.published(generation, hinted) if hinted is not None else None
        return (hinted, record) if hinted is not None and record else None

    def note_published(self, generation: str, start_seqno: int) -> None:
        """Store the hint that this interval has the newest published record: see `loader.staging.hints`."""
        self._hints.put(generation, "recorded", start_seqno)

    def stage_seconds(self, generation: str) -> dict[str, float]:
        """Return by stage how long the newest interval took; without stages that it has not passed."""
        stages: dict[str, tuple[Kind, Kind]] = {"extract": ("planned", "staged"), "materialise": ("staged", "recorded")}
        took = {stage: self._hints.seconds_between(generation, *ends) for stage, ends in stages.items()}
        return {stage: seconds for stage, seconds in took.items() if seconds is not None}

    def manifests_from(self, generation: str, start_seqno: int) -> Iterator[Manifest]:
        """Yield the manifests of consecutive intervals from a start seqno on, until one is not staged."""
        return self._forward(self.manifest, generation, start_seqno)

    def unfinished(self, generation: str) -> list[Plan]:
        """Return the plans that are not staged, in order.

        They are the last plans of the chain, because intervals are staged in order.
        """
        staged = self.newest_manifest(generation)
        start = staged.stop_seqno if staged else next(self.ascending_starts(generation), None)
        return [] if start is None else list(self._forward(self.plan, generation, start))

    def starts(self, generation: str) -> list[int]:
        """Return the start seqno of every interval, ascending."""
        return list(self.ascending_starts(generation))

    def ascending_starts(self, generation: str, after: int = -1) -> Iterator[int]:
        """Yield start seqnos greater than `after`, listed page by page."""
        return IntervalStarts(self.store, self.source, generation).ascending(after)

    def descending_starts(self, generation: str, below: int = ENDLESS) -> Iterator[int]:
        """Yield start seqnos less than `below`, the largest first, listed page by page."""
        return IntervalStarts(self.store, self.source, generation).descending(below)

    def starts_below(self, generation: str, below: int) -> tuple[int, ...]:
        """Return the last start seqnos below a seqno, ascending and without gaps: one page of the store."""
        return IntervalStarts(self.store, self.source, generation).page_below(below)

    def _newest(self, generation: str, kind: Kind, read: _Read[_Chained]) -> _Chained | None:
        """Return the newest document of a kind.

        The search starts at the interval of the hint. Without a usable hint it starts at the newest listed document.
        """
        hinted = self._hints.get(generation, kind)
        found = read(generation, hinted) if hinted is not None else None
        if found is None:
            below = self._end(generation) if kind == "staged" else ENDLESS
            _, found = next(self._backward(read, generation, below), (0, None))
            if found is None:
                return None
        for later in self._forward(read, generation, found.stop_seqno):
            found = later
        return found

    def _forward(self, read: _Read[_Chained], generation: str, start_seqno: int) -> Iterator[_Chained]:
        """Yield the documents of consecutive intervals from a start seqno on, until one is absent."""
        while found := read(generation, start_seqno):
            yield found
            start_seqno = found.stop_seqno

    def _backward(self, read: _Read[_Document], generation: str, below: int) -> Iterator[tuple[int, _Document]]:
        """Yield the documents of intervals that start below a seqno, newest first, each with its start seqno."""
        for start_seqno in self.descending_starts(generation, below):
            if found := read(generation, start_seqno):
                yield start_seqno, found

    def _end(self, generation: str) -> int:
        """Return a seqno that is not less than the start of the newest planned interval."""
        head = self.newest_plan(generation)
        return head.stop_seqno if head else ENDLESS

    def start_at_or_before(self, generation: str, seqno: int) -> int | None:
        """Return the start of the last interval that starts at or before a seqno, or None."""
        return seqno if self.plan(generation, seqno) else next(self.descending_starts(generation, seqno + 1), None)

    def plans(self, generation: Generation, starts: Sequence[int] | None = None) -> list[Plan]:
        """Return plans in order, checked to be one unbroken chain.

        Args:
            generation: of the plans. Without `starts`, the first plan must start where the generation starts.
            starts: start seqnos of the plans; None for all plans.

        Raises:
            StagedDataError: a plan is missing, or does not start where the previous one stops.
        """
        wanted = self.starts(generation.name) if starts is None else starts
        found = [plan for seqno in wanted if (plan := self.plan(generation.name, seqno))]
        expected = generation.start if starts is None or not found else found[0].start
        for plan in found:
            if plan.start != expected:
                raise _broken(self.source, plan.start, expected)
            expected = plan.stop
        return found

    def extend(self, plan: Plan) -> Plan:
        """Create a plan if it is absent, and return the stored one: another process may have created it first."""
        failpoint("plan.before")
        key = f"{self.folder(plan.generation, plan.start_seqno)}/plan.json"
        created = self.store.create(key, plan.canonical())
        failpoint("plan.after")
        if created:
            self._hints.put(plan.generation, "planned", plan.start_seqno)
        return Plan.read(self.store.get(key), key)

    def manifest(self, generation: str, start_seqno: int) -> Manifest | None:
        """Return the manifest of the interval, including its backfills; None while the interval is not staged."""
        found = self.extracted_manifest(generation, start_seqno)
        return found.with_backfills(self.backfilled_manifests(found)) if found and found.left_out else found

    def extracted_manifest(self, generation: str, start_seqno: int) -> Manifest | None:
        """Return the manifest as it was published first, without backfills; None while not staged."""
        return Manifest.find(self.store, f"{self.folder(generation, start_seqno)}/manifest.json")

    def backfilled_manifests(self, extracted: Manifest) -> dict[TableName, Manifest]:
        """Return the backfill manifests of an interval by table.

        Each holds all staged records of its table in the interval.
        """
        names = (one.name for one in extracted.left_out)
        keys = {name: filled_key(self.source, extracted.generation, extracted.start_seqno, name) for name in names}
        return {name: found for name, key in keys.items() if (found := Manifest.find(self.store, key))}

    def files(self, generation: str, start_seqno: int) -> tuple[StagedFile, ...]:
        """Return every file that one of the interval's manifests names."""
        found = self.extracted_manifest(generation, start_seqno)
        manifests = (found, *self.backfilled_manifests(found).values()) if found else ()
        return tuple(file for manifest in manifests for file in manifest.files)

    def publish_backfill(self, table: TableName, manifest: Manifest) -> None:
        """Publish the manifest of a table that the interval had left out. An existing backfill is kept."""
        key = filled_key(self.source, manifest.generation, manifest.start_seqno, table)
        self.store.create(key, manifest.canonical())

    def checkpoint(self, generation: Generation, start: Position) -> Checkpoint:
        """Return the state of the log at the start of an interval, which need not be planned yet.

        Raises:
            UsageError: the previous interval is not staged yet.
            StagedDataError: the previous interval does not stop at `start`.
        """
        if generation.start == str(start):
            return Checkpoint(generation.start_position, generation.gtids, generation.mark, schemas=generation.schemas)
        seqno = start.seqno(generation.shift)
        manifest = self.manifest_stopping_at(generation.name, seqno)
        if manifest is not None:
            return _after(manifest)
        _, previous = next(self._backward(self.plan, generation.name, seqno), (0, None))
        if previous is None or previous.stop != str(start):
            raise _broken(self.source, str(start), previous.stop if previous else generation.start)
        raise UsageError(
            "the previous interval is not staged yet",
            why="an extraction needs the GTIDs and the open XA transactions of the previous interval",
            hint=f"loader extract --interval {previous.start_seqno}",
            source=self.source,
            interval=seqno,
        )

    def manifest_stopping_at(self, generation: str, seqno: int) -> Manifest | None:
        """Return the manifest of the interval that stops at a seqno, or None."""
        hinted = self._hints.get(generation, "staged")
        if hinted is not None and hinted < seqno:
            for manifest in self.manifests_from(generation, hinted):
                if manifest.stop_seqno >= seqno:
                    return manifest if manifest.stop_seqno == seqno else None
        _, found = next(self._backward(self.manifest, generation, seqno), (0, None))
        return found if found and found.stop_seqno == seqno else None

    def newest_checkpoint(self, generation: Generation) -> Checkpoint:
        """Return the state of the log at the end of everything that is staged."""
        newest = self.newest_manifest(generation.name)
        return _after(newest) if newest else self.checkpoint(generation, generation.start_position)

    def newest_seqno(self, generation: Generation) -> int:
        """Return the largest seqno that a plan or an initial load of the generation can have produced."""
        return max(self._planned_seqno(generation), self.loads.largest_seqno(generation.name))

    def may_have_reached(self, generation: Generation, table: TableName, seqno: int) -> bool:
        """Return whether a merge or an initial load of this chain can have brought a table to a seqno.

        Args:
            generation: the newest one.
            table: the table.
            seqno: of an applied position that was read before.
        """
        return seqno <= self._planned_seqno(generation) or self.loads.has_begun(generation.name, table, seqno)

    def _planned_seqno(self, generation: Generation) -> int:
        """Return the seqno up to which the log of a generation is planned."""
        head = self.newest_plan(generation.name)
        return head.stop_seqno if head else generation.start_position.seqno(generation.shift)

    def published(self, generation: str, start_seqno: int) -> Published | None:
        """Return the published record of the interval that starts at that seqno, or None."""
        return Published.find(self.store, published_key(self.source, generation, start_seqno))

    def purged(self, generation: str, start_seqno: int) -> Purged | None:
        """Return the note that the files of the interval were purged, or None."""
        return Purged.find(self.store, purged_key(self.folder(generation, start_seqno)))

    def note_purged(self, note: Purged) -> None:
        """Store a purge note before the first file is removed. An existing note is kept."""
        self.store.create(purged_key(self.folder(note.generation, note.start_seqno)), note.canonical())

    def publish(self, manifest: Manifest) -> Manifest:
        """Publish the manifest of an extraction, or return the manifest that another attempt published first."""
        failpoint("manifest.before")
        key = f"{self.folder(manifest.generation, manifest.start_seqno)}/manifest.json"
        created = self.store.create(key, manifest.canonical())
        failpoint("manifest.after")
        if created:
            self._hints.put(manifest.generation, "staged", manifest.start_seqno)
        return Manifest.read(self.store.get(key), key)

    def find_run(self, generation: str, run: str) -> tuple[Plan, int] | None:
        """Return the first plan that a run was given and the stop seqno of its last one; None for an unknown run."""
        record = RunRecord.find(self.store, self._run_key(generation, run))
        if record is None:
            return None
        first = self.require_plan(generation, record.start_seqno)
        return first, record.through_seqno or first.stop_seqno

    def note_run(self, first: Plan, through_seqno: int, run: str) -> None:
        """Store which intervals a run was given. An existing note is kept."""
        record = RunRecord(start_seqno=first.start_seqno, through_seqno=through_seqno)
        self.store.create(self._run_key(first.generation, run), record.canonical())

    def folder(self, generation: str, start_seqno: int) -> str:
        """Return the folder of the interval."""
        return interval_folder(self.source, generation, start_seqno)

    def _generation(self, name: str) -> Generation | None:
        return Generation.find(self.store, f"{chain_folder(self.source, name)}/generation.json")

    def _run_key(self, generation: str, run: str) -> str:
        return f"{chain_folder(self.source, generation)}/runs/{encode(run)}.json"


def _after(manifest: Manifest) -> Checkpoint:
    """Return the state of the log at the stop of an interval."""
    return Checkpoint(
        Position.parse(manifest.stop),
        manifest.gtids,
        manifest.mark,
        manifest.held,
        manifest.schemas_after,
        manifest.nameless,
    )


def no_interval_error(source: str, start_seqno: int) -> DataError:
    """Return the error for a start seqno that no interval has."""
    return DataError(
        "no interval starts there", hint="list the intervals: loader intervals", source=source, interval=start_seqno
    )


def _broken(source: str, start: str, expected: str) -> StagedDataError:
    return StagedDataError(
        "the chain of intervals is broken",
        why=f"an interval starts at {start}, but the previous one stops at {expected}",
        hint="restore the missing plan.json; intervals after a gap cannot be applied",
        source=source,
    )
