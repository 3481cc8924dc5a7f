"""Staged files that purges keep because a table that is left behind on purpose needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from loader.pipeline.chain.plan_chain import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.hints import Hints
from loader.staging.published import Published


class KeptFiles(BaseModel):
    """The files of a postponed table in intervals up to the newest published record. No purge removes them.

    Attributes:
        intervals: the number of intervals with such files.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    intervals: int
    files: int
    bytes: int


def kept_files(settings: SourceSettings) -> list[KeptFiles]:
    """Return what purges keep for each postponed table, sorted by table. Tables that need no files are left out."""
    chain = chain_of(settings)
    lineage = chain.lineage(chain.require_generation().name)
    record = newest_of(chain, lineage)
    if record is None or not record.postponed:
        return []
    found: dict[str, KeptFiles] = {}
    for manifest in _manifests(chain, lineage, min(record.behind[name] for name in record.postponed)):
        for name, one in _needed_of(manifest, record).items():
            known = found.get(name, KeptFiles(table=name, intervals=0, files=0, bytes=0))
            found[name] = KeptFiles(
                table=name,
                intervals=known.intervals + 1,
                files=known.files + one.files,
                bytes=known.bytes + one.bytes,
            )
    return [found[name] for name in sorted(found)]


def newest_of(chain: PlanChain, lineage: Sequence[Generation]) -> Published | None:
    """Return the newest published record of these generations."""
    records = (chain.newest_published(one.name) for one in reversed(lineage))
    return next((found[1] for found in records if found), None)


def _manifests(chain: PlanChain, lineage: Sequence[Generation], seqno: int) -> Iterator[Manifest]:
    """Yield the staged intervals that end after a seqno and that purges have not passed yet."""
    hints = Hints(chain.store, chain.source)
    for one in lineage:
        low = max(seqno, hints.get(one.name, "purged") or 0)
        first = chain.start_at_or_before(one.name, low)
        first = next(chain.ascending_starts(one.name), None) if first is None else first
        if first is not None:
            yield from chain.manifests_from(one.name, first)


def _needed_of(manifest: Manifest, record: Published) -> dict[str, KeptFiles]:
    found: dict[str, KeptFiles] = {}
    if manifest.stop_seqno > record.stop_seqno:
        return found
    for file in manifest.files:
        name = str(file.name)
        if file.rows and name in record.postponed and file.max_seqno > record.behind[name]:
            known = found.get(name, KeptFiles(table=name, intervals=1, files=0, bytes=0))
            found[name] = known.model_copy(update={"files": known.files + 1, "bytes": known.bytes + file.bytes})
    return found
