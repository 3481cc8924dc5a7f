"""Chunks of a large table with an integer key: their sizes are estimated, and each row is in exactly one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from loader.initial_load.chunks import suggest_rows
from loader.initial_load.estimated_chunks import estimate_bounds, has_estimates
from loader.initial_load.load_planner import plan_load
from loader.source.schemas import read_key
from loader.source.table_sizes import TableSize, read_size
from tests.integration.initial_load.loading import plan_of, spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

_LARGE = 1_000_000
_SOME = 60_000
_MANY = "WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {last})"


def fill(source: SourceServer, definition: str, key: str, rows: int) -> None:
    source.run(
        source.deep_recursion,
        f"CREATE TABLE t ({definition}, filler VARCHAR(100))",
        f"INSERT INTO t (k, filler) {_MANY.format(last=rows - 1)} SELECT {key}, REPEAT('x', 60) FROM n",
        "ANALYZE TABLE t",
    )


def sizes(source: SourceServer, bounds: list[int]) -> list[int]:
    """The rows between the bounds, as the server counts them."""
    counts = [int(source.run(f"SELECT COUNT(*) FROM t WHERE k <= {bound}")[0][0]) for bound in bounds]
    return [end - start for start, end in pairwise([0, *counts, int(source.run("SELECT COUNT(*) FROM t")[0][0])])]


def test_a_large_table_is_divided_without_reading_its_keys(source: SourceServer, tmp_path: Path) -> None:
    fill(source, "k BIGINT PRIMARY KEY", "i", _LARGE)
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        assert key
        size = read_size(connection, source.name("t"))
        plan = plan_load(connection, spec_of(source, tmp_path, chunk_rows=0), source.name("t"), key)
    assert has_estimates(plan, size)
    rows = suggest_rows(size)
    found = sizes(source, [int(bound) for (bound,) in plan.bounds])
    assert rows < _LARGE / 2
    assert sum(found) == _LARGE
    assert rows / 3 < min(found) <= max(found) < rows * 3


@pytest.mark.parametrize(
    ("definition", "key"),
    [
        ("k INT PRIMARY KEY", f"IF(i < {_SOME // 2}, i, 2000000000 + i)"),
        ("k BIGINT UNSIGNED PRIMARY KEY", "18446744073709551615 - i * i"),
        ("k BIGINT PRIMARY KEY", "-9223372036854775808 + i * 7"),
        ("k INT PRIMARY KEY", "CAST(i AS SIGNED) * 20 - 600000 + CAST(CRC32(i) % 20 AS SIGNED)"),
        ("k INT NOT NULL UNIQUE KEY", "i"),
    ],
    ids=["ends", "growing gaps", "lowest", "random gaps", "unique"],
)
def test_sparse_keys_make_chunks_of_about_the_same_size(
    source: SourceServer, tmp_path: Path, definition: str, key: str
) -> None:
    fill(source, definition, key, _SOME)
    plan, rows = plan_of(source, tmp_path, "t", 10 * _SOME), 5000
    with source.connected() as connection:
        size = read_size(connection, source.name("t"))
        bounds = [int(bound) for (bound,) in estimate_bounds(connection, plan, size, rows)]
    found = sizes(source, bounds)
    assert max(found) < 3 * rows
    assert len(found) <= 3 * _SOME // rows


def test_an_empty_table_is_one_chunk(source: SourceServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (k INT PRIMARY KEY)")
    plan = plan_of(source, tmp_path, "t", 5)
    with source.connected() as connection:
        assert list(estimate_bounds(connection, plan, TableSize(0, 0), 5)) == []


@pytest.mark.parametrize(
    ("definition", "estimated"),
    [
        ("k INT, PRIMARY KEY (k)", True),
        ("k INT, PRIMARY KEY (k DESC)", False),
        ("k INT, b INT, PRIMARY KEY (k, b)", False),
        ("k VARCHAR(9), PRIMARY KEY (k)", False),
        ("k DECIMAL(9,0), PRIMARY KEY (k)", False),
    ],
)
def test_other_keys_are_read(source: SourceServer, tmp_path: Path, definition: str, estimated: bool) -> None:
    source.run(f"CREATE TABLE t ({definition})")
    plan = plan_of(source, tmp_path, "t", 5)
    with source.connected() as connection:
        size = read_size(connection, source.name("t"))
    assert not has_estimates(plan, size)
    assert has_estimates(plan, size._replace(rows=_LARGE)) is estimated
