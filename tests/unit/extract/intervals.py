"""Plans over built logs, and the extraction of their ranges into a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loader.extract.log_ranges import LogRange, whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.extract.range_cutting import cut_segment
from loader.extract.range_result import RangeResult
from loader.extract.range_task import RangeExtractor
from loader.extract.xa.outcomes import plan_releases, settle_groups
from loader.model.identity import Identity
from loader.reader.files.log_walk import log_bytes
from loader.staging.chain import Checkpoint
from loader.staging.documents import Manifest, Plan, TableFilter
from loader.store.base import Store
from loader.store.local import LocalStore
from loader.transport.file import FileTransport

FILE = "binlog.000001"
IDENTITY = Identity(kind="mysql", version="8.4.0", server_id=1, uuid="0e1f2a3b-0000-0000-0000-000000000001")
MARIADB = Identity(kind="mariadb", version="11.8.8-MariaDB", server_id=1)


def plan_of(
    log: bytes,
    start: int = 4,
    stop: int | None = None,
    *,
    include: Sequence[str] = ("*.*",),
    part_bytes: int = 4096,
    **more: object,
) -> Plan:
    """A plan over bytes of one log file."""
    return Plan.model_validate(
        {
            "source": "shop", "generation": "0001", "identity": MARIADB if b"MariaDB" in log[:200] else IDENTITY, "start": f"{FILE}:{start}",
            "stop": f"{FILE}:{len(log) if stop is None else stop}", "shift": 0, "part_bytes": part_bytes,
            "tables": TableFilter(include=tuple(include)), **more,
        }
    )  # fmt: skip


@dataclass
class Extracted:
    """A manifest and the bytes of its files, by key without the attempt."""

    manifest: Manifest
    files: dict[str, bytes]
    results: list[RangeResult]


def extracted(
    log: bytes,
    plan: Plan,
    folder: Path,
    ranges: Sequence[LogRange],
    attempt: str = "a",
    before: Checkpoint | None = None,
    store: Store | None = None,
) -> Extracted:
    """Extract the ranges, last one first, since nothing may depend on their order."""
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(log)
    store = store or LocalStore(f"file://{folder}/staging")
    transport = FileTransport(str(folder))
    extractor = RangeExtractor(plan, attempt, transport, store)
    results = [extractor.extract(span) for span in reversed(ranges)][::-1]
    before = before or Checkpoint(plan.interval.start, "", None)
    settled = settle_groups(plan, before.held, transport, results)
    released = [extractor.release(run) for run in plan_releases(plan, settled)]
    manifest = build_manifest(plan, before, transport.segments(plan.interval), results, settled, released)
    files = {file.key.replace(f"/{attempt}/", "/"): store.get(file.key) for file in manifest.files}
    return Extracted(manifest, files, results)


def pieces_of(log: bytes, plan: Plan, folder: Path, pieces: int) -> list[LogRange]:
    """The plan's segment, split as the driver does."""
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(log)
    start, stop = plan.interval.start.logpos, plan.interval.stop.logpos
    segment = whole_segment(FILE, 1, start, stop, plan.part_bytes)
    with FileTransport(str(folder)).open(FILE, start, stop) as file:
        return list(cut_segment(log_bytes(file, FILE), segment, plan.part_bytes, pieces))


def event_counts(
    events: Sequence[tuple[int, int, int]], start: int, stop: int, names: dict[int, str]
) -> dict[str, int]:
    """Events by name between two offsets of a built log."""
    return dict(Counter(names[kind] for at, _, kind in events if start <= at < stop))
