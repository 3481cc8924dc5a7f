"""A whole process that stages a log file without Spark: `python stage.py FILE FOLDER THREADS`; prints the changes.

It does what a task of the extraction does, file to durable CSV with its hashes, in as many ranges as threads.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loader.binlog.registry import TableRegistry
from loader.extract.blocks import format_of, index_range
from loader.extract.ranges import split
from loader.extract.span import LogRange, whole_segment
from loader.extract.task import RangeExtractor
from loader.model.identity import Identity
from loader.staging.documents import Plan, TableFilter
from loader.store.local import LocalStore
from loader.transport.file import FileTransport


def stage(file: Path, folder: Path, threads: int) -> int:
    """Records staged."""
    size = file.stat().st_size
    plan = Plan(
        source="bench", generation="0001", identity=Identity(kind="mysql", version="9", server_id=1),
        start=f"{file.name}:4", stop=f"{file.name}:{size}", shift=0, tables=TableFilter(include=("*.*",)),
    )  # fmt: skip
    transport = FileTransport(str(file.parent))
    extractor = RangeExtractor(plan, "attempt", transport, LocalStore(f"file://{folder}"))
    ranges = _ranges(whole_segment(file.name, 1, 4, size, plan.part_bytes), plan, transport, threads)
    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(extractor.extract, ranges))
    return sum(f.inserts + f.updates + f.deletes for result in results for f in result.files)


def _ranges(segment: LogRange, plan: Plan, transport: FileTransport, threads: int) -> list[LogRange]:
    if threads == 1:
        return [segment]
    with transport.open(segment.file, segment.read_from, segment.read_to) as log:
        form = format_of(log, segment.file)
        index = index_range(log, segment, form, TableRegistry(lambda _: False), plan.part_bytes)
    return split(segment, index, plan.part_bytes, threads)


if __name__ == "__main__":
    print(stage(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
