"""Walks a log file, checksums and all, and prints megabytes per second, best of 3: `python walk.py FILE`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from loader.binlog.table_registry import TableRegistry
from loader.extract.log_ranges import whole_segment
from loader.extract.windows import read_windows
from loader.reader.files.log_walk import log_bytes


def seconds(file: Path) -> float:
    """Of one walk."""
    span = whole_segment(file.name, 1, 4, file.stat().st_size, 1 << 62)
    with file.open("rb", buffering=0) as log:
        begun = time.monotonic()
        for _ in read_windows(log_bytes(log, file.name), span, TableRegistry(lambda _: True), 1 << 62):
            pass
        return time.monotonic() - begun


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print(round(path.stat().st_size / min(seconds(path) for _ in range(3)) / 1e6))
