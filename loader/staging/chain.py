"""The chain of plans of a source: each starts where the one before stopped, because a plan's key is its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from loader.errors import DataError, LoaderError, StagedDataError, UsageError
from loader.failpoints import failpoint
from loader.model.position import Position
from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.documents import (
    Generation,
    HeldGroup,
    Manifest,
    Mark,
    Plan,
    Published,
    Purged,
    StagedFile,
)
from loader.staging.hints import Hints, Kind
from loader.staging.interval_starts import ENDLESS, IntervalStarts
from loader.staging.layout import (
    chain_folder,
    encode,
    filled_key,
    interval_folder,
    load_folder,
    published_key,
    purged_key,
)
from loader.store.base import Store

_Document = TypeVar("_Document", bound=Document)
_Chained = TypeVar("_Chained", Plan, Manifest)
_Read = Callable[[str, int], _Document | None]
"""Reads a document of the interval with that generation and start seqno."""


class RunRecord(Document):
    """Which intervals an orchestrator's run was given, so that a repeated run gets the same ones.

    Attributes:
        through_seqno: the stop of the last one; 0: the run was given only the interval that starts at `start_seqno`.
    """

    LATER: ClassVar[tuple[str, ...]] = ("through_seqno",)

    start_seqno: int
    through_seqno: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """How the log stood where an interval starts: see Manifest, whose stop it is, and Generation."""

    position: Position
    gtids: str
    mark: Mark | None
    held: tuple[HeldGroup, ...] = ()
    schemas: str = ""
    nameless: bool = False


class NotLoaded(LoaderError):
    """The source has no chain yet: nothing was loaded from it."""


class Superseded(DataError):
    """A newer generation of the log goes on before the interval."""


class PlanChain:
    """Reads and extends the chain of one source in a store. Everything written is create-if-absent, but for hints."""

    def __init__(self, store: Store, source: str) -> None:
        self.store = store
        self.source = source
        self._hints = Hints(store, source)

    def generation(self) -> Generation | None:
        """The newest generation, or None before the first load."""
        for name in reversed(self.store.folders(f"{encode(self.source)}/")):
            found = self._generation(name)
            if found:
                return found
        return None

    def valid_until(self, generation: Generation) -> int:
        """The seqno up to which a generation's log counts: from there a newer one goes on; else there is no end."""
        following = [one.follows for one in self.generations() if one.follows and one.follows.name == generation.name]
        return following[0].stop_seqno if following else ENDLESS

    def check_not_superseded(self, generation: str, seqno: int) -> None:
        """Raise Superseded when the log of a generation does not count any more at a seqno.

        Raises:
            Superseded: a newer generation goes on before it.
        """
        counts = self.valid_until(self.require_generation(generation))
        if seqno > counts:
            raise Superseded(
                "the log is followed on another server since, from before this interval on",
                why=f"generation {generation} of the log counts up to seqno {counts}",
                hint="loader run; in Airflow clear the whole run of the DAG, not one task",
                source=self.source,
                generation=generation,
                seqno=seqno,
            )

    def generation_of_interval(self, start_seqno: int) -> Generation:
        """The generation in which an interval starts there.

        Raises:
            DataError: none does.
        """
        for generation in reversed(self.generations()):
            if self.plan(generation.name, start_seqno):
                return generation
        raise no_interval_error(self.source, start_seqno)

    def generations(self) -> list[Generation]:
        """All generations, in order."""
        names = self.store.folders(f"{encode(self.source)}/")
        return [found for name in names if (found := self._generation(name))]

    def require_generation(self, name: str = "") -> Generation:
        """The generation of that name, or the newest one.

        Raises:
            NotLoaded: there is none.
        """
        found = self._generation(name) if name else self.generation()
        if not found:
            raise NotLoaded(
                "nothing was loaded from this source yet", hint="run: loader initial-load", source=self.source
            )
        return found

    def begin(self, generation: Generation) -> Generation:
        """Start the first generation, or take the one that another process started first."""
        failpoint("plan.before")
        key = f"{chain_folder(self.source, generation.name)}/generation.json"
        self.store.create(key, generation.canonical())
        failpoint("plan.after")
        return Generation.read(self.store.get(key), key)

    @staticmethod
    def name_after(generation: Generation | None) -> str:
        """Name of the generation that follows on this one, or of a source's first."""
        return f"{int(generation.name) + 1 if generation else 1:04d}"

    def lineage(self, name: str) -> tuple[Generation, ...]:
        """The generation of that name behind those that it follows on, oldest first.

        Raises:
            NotLoaded: one of them is not there.
        """
        found = self.require_generation(name)
        older = self.lineage(found.follows.name) if found.follows else ()
        return (*older, found)

    def plan(self, generation: str, start_seqno: int) -> Plan | None:
        """The plan of the interval that starts there."""
        return Plan.find(self.store, f"{self.folder(generation, start_seqno)}/plan.json")

    def require_plan(self, generation: str, start_seqno: int) -> Plan:
        """The plan of the interval that starts there.

        Raises:
            DataError: no interval starts there.
        """
        found = self.plan(generation, start_seqno)
        if not found:
            raise no_interval_error(self.source, start_seqno)
        return found

    def newest_plan(self, generation: str) -> Plan | None:
        """The newest plan; None when the generation has none yet."""
        return self._newest(generation, "planned", self.plan)

    def newest_manifest(self, generation: str) -> Manifest | None:
        """The newest manifest: intervals are staged in order, so all before it have one. None when there is none."""
        return self._newest(generation, "staged", self.manifest)

    def newest_published(self, generation: str) -> tuple[int, Published] | None:
        """The start of the latest interval that has a published record, and the record: not every interval gets one."""
        hinted = self._hints.get(generation, "recorded")
        record = self.published(generation, hinted) if hinted is not None else None
        found = (hinted, record) if hinted is not None and record else None
        if found is None:
            below = staged.stop_seqno if (staged := self.newest_manifest(generation)) else ENDLESS
            found = next(self._backward(self.published, generation, below), None)
            if found is None:
                return None
        for manifest in self.manifests_from(generation, found[1].stop_seqno):
            if record := self.published(generation, manifest.start_seqno):
                found = manifest.start_seqno, record
        return found

    def note_published(self, generation: str, start_seqno: int) -> None:
        """Note the interval of the newest published record: see `loader.staging.hints`."""
        self._hints.put(generation, "recorded", start_seqno)

    def manifests_from(self, generation: str, start_seqno: int) -> Iterator[Manifest]:
        """The manifests of the intervals from one on, as far as they are staged."""
        return self._forward(self.manifest, generation, start_seqno)

    def unfinished(self, generation: str) -> list[Plan]:
        """The plans that are not staged yet, in order: the last ones, since intervals are staged in order."""
        staged = self.newest_manifest(generation)
        start = staged.stop_seqno if staged else next(self.ascending_starts(generation), None)
        return [] if start is None else list(self._forward(self.plan, generation, start))

    def starts(self, generation: str) -> list[int]:
        """Start seqno of every interval, rising."""
        return list(self.ascending_starts(generation))

    def ascending_starts(self, generation: str, after: int = -1) -> Iterator[int]:
        """Start seqnos of intervals that are greater than one, rising; listed page by page."""
        return IntervalStarts(self.store, self.source, generation).ascending(after)

    def descending_starts(self, generation: str, below: int = ENDLESS) -> Iterator[int]:
        """Start seqnos of intervals that are less than one, falling; listed page by page."""
        return IntervalStarts(self.store, self.source, generation).descending(below)

    def _newest(self, generation: str, kind: Kind, read: _Read[_Chained]) -> _Chained | None:
        """The last document of its kind: from the one that the hint names on, or else from the last that is listed."""
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
        """A seqno at or behind the start of the newest interval that is planned."""
        head = self.newest_plan(generation)
        return head.stop_seqno if head else ENDLESS

    def start_at_or_before(self, generation: str, seqno: int) -> int | None:
        """The start of the last interval that begins at or before a seqno."""
        return seqno if self.plan(generation, seqno) else next(self.descending_starts(generation, seqno + 1), None)

    def plans(self, generation: Generation, starts: Sequence[int] | None = None) -> list[Plan]:
        """All plans in order, or those with these starts, proved to be one unbroken chain.

        All of them must begin at the generation's start.

        Raises:
            StagedDataError: a plan is missing or does not start where the one before stopped.
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
        """Add a plan, or take the one that another process put there first."""
        failpoint("plan.before")
        key = f"{self.folder(plan.generation, plan.start_seqno)}/plan.json"
        created = self.store.create(key, plan.canonical())
        failpoint("plan.after")
        if created:
            self._hints.put(plan.generation, "planned", plan.start_seqno)
        return Plan.read(self.store.get(key), key)

    def manifest(self, generation: str, start_seqno: int) -> Manifest | None:
        """The manifest of the interval that starts there, with what was filled since; None while it is not staged."""
        found = self.extracted_manifest(generation, start_seqno)
        return found.completed(self.backfilled_manifests(found)) if found and found.left_out else found

    def extracted_manifest(self, generation: str, start_seqno: int) -> Manifest | None:
        """The manifest of the interval that starts there, as it was published; None while it is not staged."""
        return Manifest.find(self.store, f"{self.folder(generation, start_seqno)}/manifest.json")

    def backfilled_manifests(self, extracted: Manifest) -> dict[TableName, Manifest]:
        """Of tables that an interval left out, and that were staged later, the manifests: each has all of its table."""
        names = (one.name for one in extracted.left_out)
        keys = {name: filled_key(self.source, extracted.generation, extracted.start_seqno, name) for name in names}
        return {name: found for name, key in keys.items() if (found := Manifest.find(self.store, key))}

    def files(self, generation: str, start_seqno: int) -> tuple[StagedFile, ...]:
        """Every file of the interval that any manifest names."""
        found = self.extracted_manifest(generation, start_seqno)
        manifests = (found, *self.backfilled_manifests(found).values()) if found else ()
        return tuple(file for manifest in manifests for file in manifest.files)

    def publish_backfill(self, table: TableName, manifest: Manifest) -> None:
        """Make the records of a table visible that its interval had left out; what was there first stands."""
        key = filled_key(self.source, manifest.generation, manifest.start_seqno, table)
        self.store.create(key, manifest.canonical())

    def checkpoint(self, generation: Generation, start: Position) -> Checkpoint:
        """How the log stood where an interval starts, whether or not it is planned yet.

        Raises:
            UsageError: the interval before is not staged yet.
            StagedDataError: it does not stop there.
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
            "the interval before is not staged yet",
            why="each interval goes on from the GTIDs and the open XA transactions of the one before",
            hint=f"first: loader extract --interval {previous.start_seqno}",
            source=self.source,
            interval=seqno,
        )

    def manifest_stopping_at(self, generation: str, seqno: int) -> Manifest | None:
        """The manifest of the interval that stops there; None where there is none."""
        hinted = self._hints.get(generation, "staged")
        if hinted is not None and hinted < seqno:
            for manifest in self.manifests_from(generation, hinted):
                if manifest.stop_seqno >= seqno:
                    return manifest if manifest.stop_seqno == seqno else None
        _, found = next(self._backward(self.manifest, generation, seqno), (0, None))
        return found if found and found.stop_seqno == seqno else None

    def newest_checkpoint(self, generation: Generation) -> Checkpoint:
        """How the log stood at the end of all that is staged."""
        newest = self.newest_manifest(generation.name)
        return _after(newest) if newest else self.checkpoint(generation, generation.start_position)

    def newest_seqno(self, generation: Generation) -> int:
        """The largest seqno that a plan or an initial load of the generation can have led to."""
        head = self.newest_plan(generation.name)
        found = [head.stop_seqno if head else generation.start_position.seqno(generation.shift)]
        root = f"{chain_folder(self.source, generation.name)}/load/"
        for schema in self.store.folders(root):
            for table in self.store.folders(f"{root}{schema}/"):
                for start in self.store.folders(f"{root}{schema}/{table}/"):
                    manifest = Manifest.find(self.store, f"{root}{schema}/{table}/{start}/manifest.json")
                    found += [int(start), manifest.exact_at_seqno if manifest else 0]
        return max(found)

    def published(self, generation: str, start_seqno: int) -> Published | None:
        """The record that every table has the interval that starts there; None while one is behind."""
        return Published.find(self.store, published_key(self.source, generation, start_seqno))

    def purged(self, generation: str, start_seqno: int) -> Purged | None:
        """The note that the interval's files were purged; None while they are there."""
        return Purged.find(self.store, purged_key(self.folder(generation, start_seqno)))

    def note_purged(self, note: Purged) -> None:
        """Say so before the first file is removed; the first note stands."""
        self.store.create(purged_key(self.folder(note.generation, note.start_seqno)), note.canonical())

    def publish(self, manifest: Manifest) -> Manifest:
        """Make an extraction visible, or adopt the one that was published first."""
        failpoint("manifest.before")
        key = f"{self.folder(manifest.generation, manifest.start_seqno)}/manifest.json"
        created = self.store.create(key, manifest.canonical())
        failpoint("manifest.after")
        if created:
            self._hints.put(manifest.generation, "staged", manifest.start_seqno)
        return Manifest.read(self.store.get(key), key)

    def exact_seqno(self, generation: str, table: TableName) -> int:
        """The seqno from which on the newest initial load of a table is exact; 0 when it has none."""
        folder = load_folder(self.source, generation, table)
        for name in reversed(self.store.folders(folder + "/")):
            found = Manifest.find(self.store, f"{folder}/{name}/manifest.json")
            if found:
                return found.exact_at_seqno
        return 0

    def find_run(self, generation: str, run: str) -> tuple[Plan, int] | None:
        """The first plan that a run was given before, and the stop of its last one."""
        record = RunRecord.find(self.store, self._run_key(generation, run))
        if record is None:
            return None
        first = self.require_plan(generation, record.start_seqno)
        return first, record.through_seqno or first.stop_seqno

    def note_run(self, first: Plan, through_seqno: int, run: str) -> None:
        """Remember the first interval that a run was given, and the stop of its last one; the first note stands."""
        record = RunRecord(start_seqno=first.start_seqno, through_seqno=through_seqno)
        self.store.create(self._run_key(first.generation, run), record.canonical())

    def folder(self, generation: str, start_seqno: int) -> str:
        """Folder of the interval."""
        return interval_folder(self.source, generation, start_seqno)

    def _generation(self, name: str) -> Generation | None:
        return Generation.find(self.store, f"{chain_folder(self.source, name)}/generation.json")

    def _run_key(self, generation: str, run: str) -> str:
        return f"{chain_folder(self.source, generation)}/runs/{encode(run)}.json"


def _after(manifest: Manifest) -> Checkpoint:
    """How the log stood at the stop of an interval."""
    return Checkpoint(
        Position.parse(manifest.stop),
        manifest.gtids,
        manifest.mark,
        manifest.held,
        manifest.schemas_after,
        manifest.nameless,
    )


def no_interval_error(source: str, start_seqno: int) -> DataError:
    """The error of a start seqno that no interval has."""
    return DataError(
        "no interval starts there", hint="list them with: loader intervals", source=source, interval=start_seqno
    )


def _broken(source: str, start: str, expected: str) -> StagedDataError:
    return StagedDataError(
        "the chain of intervals is broken",
        why=f"an interval starts at {start}, the one before stopped at {expected}",
        hint="restore the missing plan.json; nothing can be applied over a gap",
        source=source,
    )
