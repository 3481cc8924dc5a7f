"""SIGKILL at every point of an initial load: the next run reads only the chunks that are not staged.

The general log of the server counts the chunks that are read.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from loader.initial_load.run import stage_tables
from loader.initial_load.spec import InitialLoadSpec
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.initial_load.killable import stage_in_process
from tests.integration.initial_load.loading import spec_of, staged_keys
from tests.integration.initial_load.source_server import SourceServer
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

ROWS, CHUNKS = 60, 7  # the last chunk has no end and no rows
STAGED = {
    "plan.before": 0,
    "plan.after": 0,
    "part.before:3": 2,
    "part.after:3": 2,
    "chunk.before:3": 2,
    "chunk.after:3": 3,
    "manifest.before": CHUNKS,
    "manifest.after": CHUNKS,
}
"""By the point at which a load of one reader is killed, the chunks that are staged."""
_SHORT = {"mysql": ("chunk.after:3",), "mariadb": ("part.after:3", "manifest.before")}
_CASES = [(kind, point) for kind in ("mysql", "mariadb") for point in (STAGED if IN_SWEEP else _SHORT[kind])]
_CHUNK = re.compile(r"SELECT\s+`id`, `note`\s+FROM\s")


@pytest.mark.parametrize(("kind", "point"), _CASES)
def test_a_killed_load_reads_only_what_is_not_staged(
    kind: str, point: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    source = SourceServer(fresh_server(kind))
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(50))",
        source.deep_recursion,
        f"INSERT INTO t WITH RECURSIVE i AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})"
        " SELECT i, CONCAT('note ', i) FROM i",
        "SET GLOBAL log_output = 'TABLE'",
        "SET GLOBAL general_log = ON",
    )
    spec = spec_of(source, tmp_path, chunk_rows=10)
    assert stage_in_process(spec, tmp_path / "spec.json", point) == -signal.SIGKILL
    staged = sorted(path.stem for path in tmp_path.rglob("chunks/*.json"))
    assert len(staged) == STAGED[point]
    before = chunks_read(source)
    assert len(before) == min(CHUNKS, STAGED[point] + (point in {"part.after:3", "chunk.before:3"}))

    read = stage(source, spec)
    assert len(read) == len(set(read)) == CHUNKS - STAGED[point]
    assert set(read).isdisjoint(before[: STAGED[point]])
    assert staged_keys(tmp_path, "t") == list(range(1, ROWS + 1))
    assert stage(source, spec) == []


def stage(source: SourceServer, spec: InitialLoadSpec) -> list[str]:
    """Stage the load, and return the chunks that this read."""
    before = len(chunks_read(source))
    (table,) = stage_tables(Threads(2), spec).tables
    assert (table.error, table.rows, table.chunks) == (None, ROWS, CHUNKS)
    return chunks_read(source)[before:]


def chunks_read(source: SourceServer) -> list[str]:
    """The statements that read chunks, in order."""
    rows = source.run("SELECT argument FROM mysql.general_log WHERE command_type = 'Execute' ORDER BY event_time")
    texts = (found.decode() if isinstance(found, bytes) else str(found) for (found,) in rows)
    return [text for text in texts if _CHUNK.match(text)]
