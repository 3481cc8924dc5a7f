"""Removing staged files that nothing needs any more.

Only the files of an interval go. Its plan and manifest stay: a key of the chain that was written once is never free
again, so that whoever wakes up late finds the decision that was made there. A note beside them, `purged.json`, is
written before the first file goes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import StagedDataError
from loader.pipeline.planning import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Published, Purged
from loader.staging.inventory import Stored, attempt_of, inventory, newest_published
from loader.staging.verifying import faults
from loader.store.base import ObjectInfo, Store
from loader.store.opening import open_store

_STILL = timedelta(hours=1)
"""For how long nothing was written to the folder of an attempt that lost, before it is taken for ended."""


class Removal(BaseModel):
    """Staged files that a purge removes, or has removed: of an interval, or of an attempt at it that lost."""

    model_config = ConfigDict(frozen=True)

    what: Literal["interval", "attempt"]
    generation: str
    start_seqno: int
    attempt: str
    files: int
    bytes: int
    archived: bool = False


def purge(settings: SourceSettings, keep: timedelta | None, *, dry_run: bool = False) -> list[Removal]:
    """Remove the files of intervals that every table has had for longer than `keep`, and attempts that lost.

    Without `keep` the former stay for good. With an archive prefix in the settings, files are copied to it before.
    What was removed; with `dry_run` what would be.

    Raises:
        StagedDataError: a file that was to be archived is not what its manifest says; it is left where it is.
    """
    chain = chain_of(settings)
    purging = _Purging(settings, chain, keep)
    done = []
    for manifest, removal in purging.removals(chain.lineage(chain.require_generation().name)):
        if not dry_run:
            purging.carry_out(manifest, removal)
        done.append(removal)
    return done


@dataclass
class _Purging:
    """One purge."""

    settings: SourceSettings
    chain: PlanChain
    keep: timedelta | None

    def __post_init__(self) -> None:
        self._store: Store = open_store(self.settings.staging_root)
        self._now = datetime.now(UTC)

    def removals(self, lineage: Sequence[Generation]) -> list[tuple[Manifest, Removal]]:
        """What is to go, oldest first, and the manifests of the intervals that it is of."""
        found: list[tuple[Manifest, Removal]] = []
        # Every table has an interval once there is a published record of it or of a later one; but for those that the
        # newest record tells to be behind, since a table that is released catches up from where it was stopped.
        applied_at: datetime | None = None
        stored = {one.name: inventory(self._store, self.settings.name, one.name) for one in lineage}
        record = newest_published(self.chain, stored)
        for older, newer in reversed(list(zip_longest(lineage, lineage[1:]))):
            for start, objects in reversed(stored[older.name].items()):
                if newer and newer.follows and start >= newer.follows.stop_seqno:
                    continue  # superseded: no record is of it
                if "published.json" in objects.documents:
                    applied_at = objects.documents["published.json"].modified
                old = self.keep is not None and applied_at is not None and self._now - applied_at >= self.keep
                # An attempt may still win while there is no manifest.
                if "manifest.json" in objects.documents and objects.attempts:
                    found += reversed(list(self._of_interval(older.name, start, objects, record if old else None)))
        return found[::-1]

    def _of_interval(
        self, generation: str, start: int, found: Stored, record: Published | None
    ) -> Iterator[tuple[Manifest, Removal]]:
        """What is to go of one interval; `record`: the newest one, if the interval is old enough by it."""
        manifest = self.chain.manifest(generation, start)
        if manifest is None:
            return
        named = {file.key for file in self.chain.files(generation, start)}
        winners = {attempt_of(key) for key in named}
        needless = record is not None and not record.lacking(manifest)
        for attempt, objects in sorted(found.attempts.items()):
            if attempt not in winners:
                if self._now - max(info.modified for info in objects) >= _STILL:
                    yield manifest, self._removal("attempt", manifest, attempt, objects)
            elif needless and (staged := [info for info in objects if info.key in named]):
                yield manifest, self._removal("interval", manifest, attempt, staged)

    def _removal(
        self, what: Literal["interval", "attempt"], of: Manifest, attempt: str, objects: Sequence[ObjectInfo]
    ) -> Removal:
        return Removal(
            what=what,
            generation=of.generation,
            start_seqno=of.start_seqno,
            attempt=attempt,
            files=len(objects),
            bytes=sum(info.size for info in objects),
            archived=what == "interval" and bool(self.settings.retention.archive),
        )

    def carry_out(self, manifest: Manifest, removal: Removal) -> None:
        """Remove the files. Whatever is interrupted is finished by the next purge."""
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
        if not any(self._store.list(attempt)):  # what no manifest names was not ours to remove
            self._store.remove(attempt)

    def _archive(self, manifest: Manifest, folder: str) -> None:
        """Copy the interval's files, its plan and its manifest to the same keys below the prefix."""
        files = self.chain.files(manifest.generation, manifest.start_seqno)
        for found in faults(self._store, files):
            raise StagedDataError(
                f"an interval is not archived, since {found.what}",
                why=found.why,
                hint=f"see: loader intervals {manifest.start_seqno} --verify",
                **found.where,
            )
        documents = (f"{folder}/plan.json", f"{folder}/manifest.json")
        for key in (*(file.key for file in files), *documents):
            copy = f"{self.settings.retention.archive}/{key}"
            with self._store.reading(key) as source, self._store.writing(copy) as sink:
                shutil.copyfileobj(source, sink)
