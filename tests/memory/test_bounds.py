"""Peak memory of a process that stages a log, whatever the log holds. LOADER_SWEEP=1 takes the full sizes.

The figures are those that docs/explanation/reading-the-log.md states.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.support.sweep import IN_SWEEP
from tests.unit.binlog.builder import LogBuilder, packed
from tests.unit.binlog.fields import Table, blob, integer, varchar

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
ITEMS = Table("shop", "items", (integer("id"), varchar("text")))
FILES = Table("shop", "files", (integer("id"), blob("content", 4)))

_STAGED = """
import re, sys
from pathlib import Path
from loader.extract.local_extraction import StagingOptions, count
from loader.reader.files.log_files import OneFile
files = OneFile(Path(sys.argv[1]))
(file,) = files.listed()
results = count(files, [(file, 4, file.size)], StagingOptions(), lambda _: None)
rows = sum(f.rows for r in results.ranges for f in r.files)
# Not getrusage: its peak begins with the size of the process that started this one.
print(rows, int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def staged(log: Path) -> tuple[int, int]:
    """Records staged of a log, and the peak memory of the process in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", _STAGED, str(log)], capture_output=True, text=True, check=True, timeout=1200
    )
    rows, peak = done.stdout.split()
    return int(rows), int(peak)


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels that are not compiled yet are compiled here, which takes memory of its own."""
    log = tmp_path_factory.mktemp("warm") / "binlog.000001"
    log.write_bytes(bytes(LogBuilder().insert(ITEMS, (1, "x")).data))
    staged(log)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    log = tmp_path / "binlog.000001"
    yield log
    log.unlink(missing_ok=True)


def write(path: Path, head: bytes, unit: bytes, times: int, tail: bytes) -> None:
    """A file with a unit repeated, in a few writes."""
    many = max(1, 8 * MIB // len(unit))
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times // many):
            file.write(unit * many)
        file.write(unit * (times % many) + tail)


def parts(log: LogBuilder, *marks: int) -> list[bytes]:
    """A log cut at offsets."""
    raw = bytes(log.data)
    return [raw[a:b] for a, b in zip((0, *marks), (*marks, len(raw)), strict=True)]


def statements(kept: LogBuilder) -> LogBuilder:
    """A transaction of single-row statements."""
    kept.table_map(ITEMS)
    kept.write(ITEMS, (1, "x" * 40))
    return kept


def test_a_long_log_takes_no_more_than_a_short_one(path: Path) -> None:
    log = LogBuilder()
    first = log.end
    log.insert(ITEMS, *((n, "some text of a row") for n in range(20)))
    head, unit, _ = parts(log, first, log.end)
    size = 2048 if IN_SWEEP else 200
    times = size * MIB // len(unit)
    write(path, head, unit, times, b"")
    rows, peak = staged(path)
    assert rows == 20 * times
    assert peak <= 300


@pytest.mark.parametrize("per_event", [1, 100])
def test_a_transaction_of_gigabytes(per_event: int, path: Path) -> None:
    log = LogBuilder().begin()
    first = log.end
    log.table_map(ITEMS)
    log.write(ITEMS, *((n, "x" * 40) for n in range(per_event)))
    last = log.end
    log.xid()
    head, unit, tail = parts(log, first, last)
    times = (5120 if IN_SWEEP else 400) * MIB // len(unit)
    write(path, head, unit, times, tail)
    rows, peak = staged(path)
    assert rows == per_event * times
    assert peak <= 500


def test_a_compressed_transaction_of_gigabytes(path: Path) -> None:
    log = LogBuilder(checksum=False)
    log.data.clear()
    log.query("BEGIN")
    first = log.end
    statements(log)
    last = log.end
    log.xid()
    begin, unit, end = parts(log, first, last)
    times = (5120 if IN_SWEEP else 400) * MIB // len(unit)
    size = len(begin) + len(unit) * times + len(end)
    machine = zstandard.ZstdCompressor().compressobj()
    many = max(1, MIB // len(unit))
    stored = machine.compress(begin)
    for _ in range(times // many):
        stored += machine.compress(unit * many)
    stored += machine.compress(unit * (times % many) + end) + machine.flush()
    fields = ((2, 0), (3, size), (1, len(stored)))
    payload = b"".join(packed(k) + packed(len(packed(v))) + packed(v) for k, v in fields) + packed(0) + stored
    outer = LogBuilder()
    outer.gtid()
    outer.event(40, payload)
    path.write_bytes(bytes(outer.data))
    rows, peak = staged(path)
    assert rows == times
    assert peak <= 500


def test_an_event_of_many_mebibytes_takes_a_few_times_its_size(path: Path) -> None:
    size = (256 if IN_SWEEP else 64) * MIB
    log = LogBuilder().insert(FILES, (1, b"\xab" * size)).insert(FILES, (2, b"small"))
    path.write_bytes(bytes(log.data))
    rows, peak = staged(path)
    assert rows == 2
    assert peak <= 220 + 5 * size // MIB
