"""Virtual columns whose values depend on settings of the session that computes them: a load reads what the log has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from infra.servers import Kind
from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.initial_load.loading import plan_of, read_chunks, spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

DEFAULTS = "SET SESSION sql_mode = @@global.sql_mode, time_zone = @@global.time_zone"


class Case(NamedTuple):
    """A table `t` with a column `a` and virtual columns, and why its load is refused; empty if it is not."""

    columns: str
    value: str
    refused: str


MODES = "virtual columns depend on SQL modes of the session: "
OFFSET = "virtual columns may convert texts with a time zone offset"
TEXT, FRACTION = "a VARCHAR(40)", "a DATETIME(6)"
PADDED = [
    Case("a CHAR(9), v INT AS (CHAR_LENGTH(a)) VIRTUAL, w INT AS (v + 1) VIRTUAL", "'ab'", f"{MODES}v, w"),
    Case(f"{TEXT}, c CHAR(9), v INT AS (CHAR_LENGTH(a)) VIRTUAL", "'ab'", ""),
    Case(f"{FRACTION}, v DATETIME AS (a) VIRTUAL", "'2024-01-01 00:00:00.7'", ""),
]
ROUNDED = [
    Case(f"{FRACTION}, v DATETIME AS (a) VIRTUAL", "'2024-01-01 00:00:00.7'", f"{MODES}v"),
    Case(f"{FRACTION}, v VARCHAR(30) AS (CAST(a AS DATETIME)) VIRTUAL", "'2024-01-01 00:00:00.7'", f"{MODES}v"),
    Case("a CHAR(9), v INT AS (CHAR_LENGTH(a)) VIRTUAL", "'ab'", ""),
]
ZONED = [
    Case(f"{TEXT}, v DATETIME AS (a) VIRTUAL", "'2024-05-01 10:00:00+05:00'", OFFSET),
    Case(f"{TEXT}, v INT AS (HOUR(TIMESTAMP(a))) VIRTUAL", "'2024-05-01 10:00:00-05:00'", OFFSET),
    Case(
        "a JSON, w TEXT AS (a->>'$.at') VIRTUAL, v DATETIME AS (w) VIRTUAL", "'{\"at\": \"2024-05-01T10:00:00+05:00\"}'",
        OFFSET,
    ),
    Case(f"{TEXT}, v DATETIME AS (a) VIRTUAL", "'2024-05-01 10:00:00'", ""),
    Case(f"{TEXT}, v TEXT AS (CONCAT(a, 'x')) VIRTUAL", "'2024-05-01 10:00:00+05:00'", ""),
    Case(f"{TEXT}, v DATETIME AS (a) STORED", "'2024-05-01 10:00:00+05:00'", ""),
]  # fmt: skip
SERVERS: list[tuple[Kind, dict[str, str], list[Case]]] = [
    ("mysql", {"sql_mode": "PAD_CHAR_TO_FULL_LENGTH"}, PADDED),
    ("mariadb", {"sql_mode": "PAD_CHAR_TO_FULL_LENGTH"}, PADDED),
    ("mysql", {"sql_mode": "TIME_TRUNCATE_FRACTIONAL"}, ROUNDED),
    ("mariadb", {"sql_mode": "TIME_ROUND_FRACTIONAL"}, ROUNDED),
    ("mysql", {"default_time_zone": "+02:00"}, ZONED),
]


@pytest.mark.parametrize(("kind", "options", "cases"), SERVERS, ids=[f"{one[0]} {one[1]}" for one in SERVERS])
def test_a_load_has_the_values_of_the_log_or_is_refused(
    fresh_server: StartServer, tmp_path: Path, kind: Kind, options: dict[str, str], cases: list[Case]
) -> None:
    source = SourceServer(fresh_server(kind, options))
    for number, case in enumerate(cases):
        root = tmp_path / str(number)
        source.run(DEFAULTS, f"CREATE TABLE t (id INT PRIMARY KEY, {case.columns})")
        start = source.log_end()
        source.run(DEFAULTS, f"INSERT INTO t (id, a) VALUES (1, {case.value})")
        logged = [line.split(b",", 5)[5] for line in lines_of(source, start)]
        (table,) = stage_tables(Threads(1), spec_of(source, root)).tables
        assert (table.error or {"what": ""})["what"].startswith(case.refused), case
        assert bool(table.error) == bool(case.refused), case
        if not case.refused:
            assert read_chunks(source, plan_of(source, root, "t", 9)) == [logged]
        source.run("DROP TABLE t")


def lines_of(source: SourceServer, start: Any) -> list[bytes]:
    return source.logged_lines(start, source.log_end())[source.name("t")].splitlines()
