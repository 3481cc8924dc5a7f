"""Removing staged files that nothing needs any more.

Only the files of an interval are removed. Its plan and manifest remain: a key of the chain is never reused, so a
process that resumes late finds the decision that was made there. The note `purged.json` is written next to them before
the first file is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import StagedDataError
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.upkeep.kept_files import newest_of
from loader.pipeline.upkeep.pending_loads import pending_loads
from loader.settings import SourceSettings
from loader.spark.job_files import RESULTS
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.file_verification import find_faults
from loader.staging.hints import Hints, Kind
from loader.staging.inventory import StoredInterval, attempt_name, list_interval
from loader.staging.notes.finished_work import Purged
from loader.staging.published import Published
from loader.store.base import ObjectInfo, Store
from loader.store.registry import open_store

_STILL = timedelta(hours=1)
"""Time without writes after which an unpublished attempt counts as ended."""


_SETTLED = timedelta(days=1)
"""Time after the manifest when no further attempt is expected; files of later attempts are not removed."""


class Removal(BaseModel):
    """Staged files that a purge removed or would remove.

    Attributes:
        what: `interval`: files of an applied interval; `attempt`: files of an attempt that was not published.
        archived: the files were copied to the archive prefix.
    """

    model_config = ConfigDict(frozen=True)

    what: Literal["interval", "attempt"]
    generation: str
    start: str
    start_seqno: int
    attempt: str
    files: int
    bytes: int
    archived: bool = False


def purge(settings: SourceSettings, keep: timedelta | None, *, dry_run: bool = False) -> list[Removal]:
    """Remove unpublished attempts, and files of intervals that every table has had for longer than `keep`.

    Args:
        settings: of the source. With an archive prefix, files are copied there first.
        keep: None keeps the files of intervals forever.
        dry_run: only report.

    Returns:
        What was removed; with `dry_run` what would be removed.

    Raises:
        StagedDataError: a file to be archived does not match its manifest; it is not removed.
    """
    chain = chain_of(settings)
    purging = _Purging(settings, chain, keep)
    done = []
    for manifest, removal in purging.removals(chain.lineage(chain.require_generation().name)):
        if not dry_run:
            purging.carry_out(manifest, removal)
        done.append(removal)
    if not dry_run:
        purging.note()
        purging.remove_results()
    return done


@dataclass
class _Purging:
    """One purge.

    It starts where the last purge found something to keep, using hints that name these intervals: see `Hints`. A hint
    that is too far ahead leaves files unpurged.

    Attributes:
        _kept: for each generation and hint, the first interval that a later purge must look at.
    """

    settings: SourceSettings
    chain: PlanChain
    keep: timedelta | None
    _kept: dict[tuple[str, Kind], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._store: Store = open_store(self.settings.staging_root)
        self._now = datetime.now(UTC)
        self._hints = Hints(self._store, self.settings.name)

    def removals(self, lineage: Sequence[Generation]) -> list[tuple[Manifest, Removal]]:
        """Return what to remove, oldest first, with the manifest of each interval."""
        # Every table has an interval if it or a later interval has a published record. Exceptions are the tables
        # behind in the newest record: a released or resumed table catches up from where it was stopped.
        record = newest_of(self.chain, lineage)
        found = list(self._of_attempts(lineage, record))
        if self.keep is not None and record is not None:
            found += self._of_intervals(lineage, record, self.keep)
        places = {one.name: place for place, one in enumerate(lineage)}
        return sorted(found, key=lambda one: (places[one[1].generation], one[1].start_seqno, one[1].attempt))

    def note(self) -> None:
        """Store hints, so that the next purge starts where this one found something to keep."""
        for (generation, kind), start in self._kept.items():
            if start and self._hints.get(generation, kind) != start:
                self._hints.put(generation, kind, start)

    def remove_results(self) -> None:
        """Remove results of jobs that nobody has read, because the command that waited for them was killed."""
        for info in list(self._store.list(RESULTS)):
            if self._now - info.modified >= _SETTLED:
                self._store.delete(info.key)

    def _places(self, lineage: Sequence[Generation], kind: Kind) -> Iterator[tuple[str, int, StoredInterval]]:
        """Yield the valid intervals from the hint on and their stored objects, in order."""
        for older, newer in zip_longest(lineage, lineage[1:]):
            first = self._hints.get(older.name, kind) or 0
            self._kept[older.name, kind] = first
            for start in self.chain.ascending_starts(older.name, first - 1):
                if newer and newer.follows and start >= newer.follows.stop_seqno:
                    break  # superseded intervals have no published record
                yield older.name, start, list_interval(self._store, self.settings.name, older.name, start)

    def _of_attempts(
        self, lineage: Sequence[Generation], record: Published | None
    ) -> Iterator[tuple[Manifest, Removal]]:
        """Yield unpublished attempts of all staged intervals."""
        done: set[str] = set()  # generations for which the hint must not advance any more
        for generation, start, stored in self._places(lineage, "swept"):
            # An attempt may still win while there is no manifest.
            manifest = self.chain.manifest(generation, start) if "manifest.json" in stored.documents else None
            lost = self._lost(manifest, stored) if manifest else {}
            for attempt, objects in sorted(lost.items()):
                if manifest and self._still(objects):
                    yield manifest, self._removal("attempt", manifest, attempt, objects)
            if manifest and self._settled(manifest, stored, record) and all(map(self._still, lost.values())):
                if generation not in done:
                    self._kept[generation, "swept"] = manifest.stop_seqno
            else:
                done.add(generation)

    def _settled(self, manifest: Manifest, stored: StoredInterval, record: Published | None) -> bool:
        """Return whether an interval is applied, and so old that nobody is working on it."""
        applied = record is not None and manifest.stop_seqno <= record.stop_seqno
        return applied and self._now - stored.documents["manifest.json"].modified >= _SETTLED

    def _of_intervals(
        self, lineage: Sequence[Generation], record: Published, keep: timedelta
    ) -> Iterator[tuple[Manifest, Removal]]:
        """Yield the files of intervals that every table has had for longer than `keep`, and no pending load needs."""
        loads = pending_loads(self.chain, lineage, record)
        waiting: list[tuple[str, int, StoredInterval]] = []  # until a published record includes them
        done: set[str] = set()
        for place in self._places(lineage, "purged"):
            waiting.append(place)
            if (published := place[2].documents.get("published.json")) is None:
                continue
            if self._now - published.modified < keep:
                return  # later records are even younger
            for generation, start, stored in waiting:
                manifest = self.chain.manifest(generation, start) if "manifest.json" in stored.documents else None
                needless = manifest is not None and not (record.tables_lacking(manifest) or loads.need(manifest))
                if manifest and needless and generation not in done:
                    self._kept[generation, "purged"] = manifest.stop_seqno
                if manifest is None or not needless:
                    done.add(generation)
                    continue
                named = {file.key for file in self.chain.files(generation, start)}
                for attempt, objects in sorted(stored.attempts.items()):
                    if staged := [info for info in objects if info.key in named]:
                        yield manifest, self._removal("interval", manifest, attempt, staged)
            waiting = []

    def _lost(self, manifest: Manifest, stored: StoredInterval) -> dict[str, list[ObjectInfo]]:
        """Return the objects of attempts without any file in a manifest of the interval, by attempt."""
        if not stored.attempts:
            return {}
        winners = {attempt_name(file.key) for file in self.chain.files(manifest.generation, manifest.start_seqno)}
        return {attempt: objects for attempt, objects in stored.attempts.items() if attempt not in winners}

    def _still(self, objects: Sequence[ObjectInfo]) -> bool:
        """Return whether an attempt has written nothing for so long that it counts as ended."""
        return self._now - max(info.modified for info in objects) >= _STILL

    def _removal(
        self, what: Literal["interval", "attempt"], of: Manifest, attempt: str, objects: Sequence[ObjectInfo]
    ) -> Removal:
        return Removal(
            what=what,
            generation=of.generation,
            start=of.start,
            start_seqno=of.start_seqno,
            attempt=attempt,
            files=len(objects),
            bytes=sum(info.size for info in objects),
            archived=what == "interval" and bool(self.settings.retention.archive),
        )

    def carry_out(self, manifest: Manifest, removal: Removal) -> None:
        """Remove the files. The next purge completes an interrupted one."""
        folder = self.chain.folder(removal.generation, removal.start_seqno)
        attempt = f"{folder}/{removal.attempt}/"
        if removal.what == "attempt":
            self._store.remove(attempt)
            return
        if not self.chain.purged(removal.generation, removal.start_seqno):
            if removal.archived:
                self._archive(manifest, folder)
            self.chain.note_purged(
                Purged(
                    source=manifest.source,
                    generation=manifest.generation,
                    start_seqno=manifest.start_seqno,
                    archive=self.settings.retention.archive,
                )
            )
        for file in self.chain.files(removal.generation, removal.start_seqno):
            self._store.delete(file.key)
        if not any(self._store.list(attempt)):  # files that no manifest names are not removed
            self._store.remove(attempt)

    def _archive(self, manifest: Manifest, folder: str) -> None:
        """Copy the interval's files, plan and manifest to the same keys below the archive prefix."""
        files = self.chain.files(manifest.generation, manifest.start_seqno)
        for found in find_faults(self._store, files):
            raise StagedDataError(
                f"an interval cannot be archived: {found.what}",
                why=found.why,
                hint=f"loader intervals {manifest.start_seqno} --verify",
                **found.where,
            )
        documents = (f"{folder}/plan.json", f"{folder}/manifest.json")
        for key in (*(file.key for file in files), *documents):
            copy = f"{self.settings.retention.archive}/{key}"
            with self._store.reading(key) as source, self._store.writing(copy) as sink:
                shutil.copyfileobj(source, sink)
