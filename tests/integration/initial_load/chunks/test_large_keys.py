"""Tables of two million rows are cut into equal chunks, whatever the type and the distribution of their keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.documents import LoadPlan
from loader.initial_load.keys import range_condition
from loader.resources import sql
from tests.integration.initial_load.loading import plan_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
    pytest.mark.timeout(1800),
]

ROWS, CHUNK_ROWS = 2_000_000, 30_000
FULL, REST = divmod(ROWS, CHUNK_ROWS)
KEYS = {
    "double": ("k DOUBLE", "k", "POW(n, 3) / 7 * IF(n % 3, 1, -1)"),
    "decimal": ("k DECIMAL(30,4)", "k", "n * n / 16 - 1000000"),
    "enum": ("k ENUM('z', 'a', 'm')", "k, n", "ELT(1 + (n % 100 > 0) + (n % 100 > 1), 'a', 'z', 'm')"),
    "datetime": ("k DATETIME(6)", "k", "'2026-01-01' + INTERVAL n * (n % 2) MINUTE + INTERVAL n MICROSECOND"),
    "binary": ("k BINARY(8)", "k", "UNHEX(LPAD(HEX(n * 2654435761 % 4294967296), 16, '0'))"),
    "varchar": (
        "k VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "k",
        "CONCAT(ELT(1 + n % 7, 'ä', 'A', 'ß', 'ss ', 'z', 'É', 'e'), REPEAT('x', n % 5), ' ', n)",
    ),
    "composite": (
        "k VARCHAR(9) CHARACTER SET latin1, d DATE",
        "k, d, n",
        "IF(n % 1000, 'one', CONCAT('n', n % 50)), '2026-01-01' + INTERVAL n % 9 DAY",
    ),
}
"""By name, the columns of a table, its key, and the values of these columns for each number from 1 on."""


def counted(source: SourceServer, plan: LoadPlan, number: int | None) -> tuple[int, int, int]:
    """Count the rows of a chunk, or of the table, and sum their numbers and the squares of these."""
    statement = sql("initial_load/chunk").format(
        columns="COUNT(*), COALESCE(SUM(n), 0), COALESCE(SUM(n * n), 0)",
        table=f"`{plan.name.schema}`.`{plan.name.table}`",
        index=f" FORCE INDEX (`{plan.index}`)",
        range="TRUE" if number is None else range_condition(plan, *plan.chunk(number)),
    )
    ((count, total, squares),) = source.run(statement)
    return int(count), int(total), int(squares)


@pytest.fixture
def numbers(source: SourceServer) -> SourceServer:
    """A server with a table of the numbers from 1 on."""
    half = ROWS // 2
    source.run(
        source.deep_recursion,
        "CREATE TABLE numbers (n BIGINT PRIMARY KEY)",
        f"INSERT INTO numbers WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {half}) SELECT n FROM s",
        f"INSERT INTO numbers SELECT n + {half} FROM numbers",
    )
    return source


def test_chunks_of_large_tables_are_equal(numbers: SourceServer, tmp_path: Path) -> None:
    whole = (ROWS, ROWS * (ROWS + 1) // 2, ROWS * (ROWS + 1) * (2 * ROWS + 1) // 6)
    for name, (columns, key, value) in KEYS.items():
        numbers.run(
            f"CREATE TABLE t_{name} ({columns}, n BIGINT NOT NULL, PRIMARY KEY ({key}))",
            f"INSERT INTO t_{name} SELECT {value}, n FROM numbers",
        )
        plan = plan_of(numbers, tmp_path, f"t_{name}", CHUNK_ROWS)
        chunks = [counted(numbers, plan, number) for number in range(plan.chunks)]
        assert [count for count, _, _ in chunks] == [CHUNK_ROWS] * FULL + [REST], name
        assert tuple(map(sum, zip(*chunks, strict=True))) == counted(numbers, plan, None) == whole, name
        numbers.run(f"DROP TABLE t_{name}")
