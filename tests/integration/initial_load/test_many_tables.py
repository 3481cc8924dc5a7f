"""Many small tables. Some are refused for different reasons and are named; all others are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.run import stage_tables
from loader.spark.job import rebuild
from loader.spark.workers import Threads
from loader.staging.notes.refusals import find_refusal
from loader.store.registry import open_store
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

TABLES = 300 if IN_SWEEP else 24
REFUSED = {
    "old_engine": (
        "CREATE TABLE old_engine (id INT) ENGINE=MyISAM",
        "a table of engine MyISAM without a primary key is not supported",
    ),
    "no_text": (
        "CREATE TABLE no_text (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew) AS SELECT 1 AS id, _hebrew X'61A1' AS v",
        "a value is not a varchar in hebrew",
    ),
}
ONLY_MARIADB = {
    "short_year": (
        "CREATE TABLE short_year (id INT PRIMARY KEY, y YEAR(2))",
        "column type year(2) is not supported by this version",
    ),
    "child": (
        "CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t000 (id) ON DELETE CASCADE)",
        "the log does not have all changes of the table",
    ),
}


def test_tables_that_are_refused_stop_no_other(source: SourceServer, tmp_path: Path) -> None:
    refused = REFUSED | (ONLY_MARIADB if source.kind == "mariadb" else {})
    names = [f"t{number:03}" for number in range(TABLES)]
    for name in names:
        source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1), (2)")
    source.run(*(statement for statement, _ in refused.values()))
    spec = spec_of(source, tmp_path)
    result = stage_tables(Threads(2), spec)
    found = {table.table.partition(".")[2]: table for table in result.tables}
    assert {name: table.rows for name, table in found.items() if table.status == "staged"} == dict.fromkeys(names, 2)
    errors = {name: rebuild(table.error) for name, table in found.items() if table.error}
    assert {name: error.what for name, error in errors.items()} == {name: what for name, (_, what) in refused.items()}
    for name, error in errors.items():
        assert error.where["table"] == f"{source.schema}.{name}"
        assert error.hint
    assert result.exit_code == 4
    store = open_store(spec.staging_root)
    for name, error in errors.items():
        refusal = find_refusal(store, spec.source, source.name(name))
        assert refusal is not None
        assert refusal.error == error.as_dict()
