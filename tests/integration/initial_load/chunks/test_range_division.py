"""Chunks of a large table: their sizes are estimated, and each row is in exactly one."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.bounds.key_index import KeyIndex
from loader.initial_load.bounds.range_division import estimate_bounds, has_estimates
from loader.initial_load.chunks import suggest_rows
from loader.initial_load.documents import LoadPlan
from loader.initial_load.keys import range_condition
from loader.initial_load.load_planner import plan_load
from loader.source.schemas import read_key
from loader.source.table_sizes import TableSize, read_size
from tests.integration.initial_load.loading import plan_of, spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

_LARGE = 1_000_000
_SOME = 60_000
_MANY = "WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {last})"


def fill(source: SourceServer, definition: str, columns: str, values: str, rows: int) -> None:
    source.run(
        source.deep_recursion,
        f"CREATE TABLE t ({definition}, filler VARCHAR(100))",
        f"INSERT INTO t ({columns}, filler) {_MANY.format(last=rows - 1)} SELECT {values}, REPEAT('x', 60) FROM n",
        "ANALYZE TABLE t",
    )


def sizes(source: SourceServer, plan: LoadPlan) -> list[int]:
    """The rows of each chunk, as the server counts them."""
    conditions = (range_condition(plan, *plan.chunk(number)) for number in range(plan.chunks))
    return [int(source.run(f"SELECT COUNT(*) FROM t WHERE {condition}")[0][0]) for condition in conditions]


def test_a_large_table_is_divided_without_reading_its_keys(source: SourceServer, tmp_path: Path) -> None:
    fill(source, "k BIGINT PRIMARY KEY", "k", "i", _LARGE)
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        assert key
        size = read_size(connection, source.name("t"))
        plan = plan_load(connection, spec_of(source, tmp_path, chunk_rows=0), source.name("t"), key)
    assert has_estimates(plan, size)
    rows = suggest_rows(size)
    found = sizes(source, plan)
    assert rows < _LARGE / 2
    assert sum(found) == _LARGE
    assert rows / 3 < min(found) <= max(found) < rows * 3


_TEXT = "k VARCHAR(60) CHARACTER SET {} PRIMARY KEY"
_TWO = "j {}, k INT, PRIMARY KEY (j, k)"
_AT_RANDOM = "CAST(CRC32(i) % 20 AS SIGNED)"


@pytest.mark.parametrize(
    ("definition", "columns", "values"),
    [
        ("k INT PRIMARY KEY", "k", f"IF(i < {_SOME // 2}, i, 2000000000 + i)"),
        ("k BIGINT UNSIGNED PRIMARY KEY", "k", "18446744073709551615 - i * i"),
        ("k BIGINT PRIMARY KEY", "k", "-9223372036854775808 + i * 7"),
        ("k INT PRIMARY KEY", "k", f"CAST(i AS SIGNED) * 20 - 600000 + {_AT_RANDOM}"),
        ("k INT NOT NULL UNIQUE KEY", "k", "i"),
        ("k BIGINT PRIMARY KEY", "k", f"IF(i = {_SOME - 1}, 9000000000000000000, i)"),
        ("k INT, PRIMARY KEY (k DESC)", "k", "i * 3"),
        (_TEXT.format("utf8mb4"), "k", "CONCAT('order number ', i)"),
        (_TEXT.format("latin1"), "k", "CONCAT(CHAR(IF(i % 2, 65, 97) + i % 26), LEFT(SHA2(i, 256), 40))"),
        (_TEXT.format("utf8mb4 COLLATE utf8mb4_bin"), "k", "CONCAT(CHAR(IF(i % 2, 65, 97) + i % 26), LEFT(SHA2(i, 256), 40))"),
        (_TEXT.format("ascii COLLATE ascii_bin"), "k", "CONCAT('01J', UPPER(LEFT(SHA2(i, 256), 40)))"),
        (_TEXT.format("utf8mb4"), "k", "CONCAT(_utf8mb4 X'D0B8D0BCD18F', i)"),
        (_TEXT.format("utf16"), "k", "CONCAT('k', i)"),
        ("k BINARY(16) PRIMARY KEY", "k", "LEFT(UNHEX(SHA2(i, 256)), 16)"),
        ("k VARBINARY(16) PRIMARY KEY", "k", "CAST(i AS CHAR)"),
        (_TWO.format("INT"), "j, k", "i % 7, i"),
        (_TWO.format("VARCHAR(20)"), "j, k", "IF(i % 100, 'the largest', CONCAT('one of ', i % 7)), i"),
        (_TWO.format("INT").replace("j, k)", "j DESC, k)"), "j, k", "i % 700, i"),
        ("j INT, k DATETIME, PRIMARY KEY (j, k)", "j, k", "i % 2, '2026-01-01' + INTERVAL i SECOND"),
    ],
    ids=[
        "ends", "growing gaps", "lowest", "random gaps", "unique", "outlier", "descending", "texts", "both cases",
        "both cases, binary order", "upper case, binary order", "letters of another script", "UTF-16", "binary UUIDs",
        "bytes", "tenants", "one large tenant", "descending tenants", "second column of time",
    ],
)  # fmt: skip
def test_chunks_are_of_about_the_same_size(
    source: SourceServer, tmp_path: Path, definition: str, columns: str, values: str
) -> None:
    fill(source, definition, columns, values, _SOME)
    plan, rows = plan_of(source, tmp_path, "t", 10 * _SOME), 5000
    with source.connected() as connection:
        bounds = tuple(estimate_bounds(KeyIndex(connection, plan), read_size(connection, source.name("t")), rows))
    found = sizes(source, plan.model_copy(update={"bounds": bounds}))
    assert sum(found) == _SOME
    assert max(found) < 4 * rows  # the server estimates large ranges twice as high as small ones
    assert len(found) <= 3 * _SOME // rows


def test_an_empty_table_is_one_chunk(source: SourceServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (k INT PRIMARY KEY)")
    plan = plan_of(source, tmp_path, "t", 5)
    with source.connected() as connection:
        assert list(estimate_bounds(KeyIndex(connection, plan), TableSize(0, 0), 5)) == []


@pytest.mark.parametrize(
    ("definition", "estimated"),
    [
        ("k INT, PRIMARY KEY (k)", True),
        ("k INT, PRIMARY KEY (k DESC)", True),
        ("k INT, b DATE, PRIMARY KEY (k, b)", True),
        ("k INT, b DATE, PRIMARY KEY (b, k)", False),
        ("k VARCHAR(9) CHARACTER SET utf8mb4, PRIMARY KEY (k)", True),
        ("k VARCHAR(9) CHARACTER SET utf16, PRIMARY KEY (k)", False),
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
