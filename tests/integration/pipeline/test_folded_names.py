"""A server that stores names in lower case (lower_case_table_names=1) logs statements as they were typed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from infra.servers import Server, fetch, start_server
from loader.materialise.plan.ddl_events import (
    RenamedFrom,
    TableAltered,
    TableCreated,
    TableEmptied,
    TableRemoved,
    collect_events,
)
from loader.model.table import TableName
from tests.integration.pipeline.log.nameless import begun

pytestmark = pytest.mark.integration

STATEMENTS = """
USE nameless
CREATE TABLE Fresh (id INT PRIMARY KEY)
INSERT INTO FRESH VALUES (1)
TRUNCATE TABLE A
ALTER TABLE NAMELESS.Swapped ADD z INT
RENAME TABLE B TO Moved
DROP TABLE Quiet
ALTER TABLE Keyless RENAME TO Other
DROP DATABASE Gone
"""


@pytest.fixture(params=["mysql", "mariadb"])
def folding(request: pytest.FixtureRequest) -> Iterator[Server]:
    # MySQL takes the setting only when it makes its data.
    with TemporaryDirectory(prefix="loader-folding-") as folder:
        data = Path(folder) / "data"
        if request.param == "mysql":
            programs, accounts = fetch("mysql"), Path(folder) / "accounts.sql"
            accounts.write_text(
                "CREATE USER 'root'@'127.0.0.1';\nGRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
            )
            made = ["--initialize-insecure", f"--init-file={accounts}", "--lower-case-table-names=1"]
            subprocess.run([*programs.server(), f"--datadir={data}", *made], check=True, capture_output=True)
        with start_server(request.param, Path(folder), {"lower_case_table_names": "1"}) as server:
            yield server


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_statements_are_about_the_tables_that_the_rows_name(folding: Server, metadata: str, tmp_path: Path) -> None:
    shop = begun(folding, metadata, tmp_path)
    shop.run("CREATE DATABASE Gone\n" + STATEMENTS.strip())
    manifest = shop.delta()
    events = {
        table: [
            type(one)
            for one in collect_events(
                TableName("nameless", table), [manifest], manifest.start_seqno, manifest.stop_seqno
            )
        ]
        for table in ("a", "b", "moved", "fresh", "swapped", "quiet", "keyless", "other")
    }
    assert events == {
        "a": [TableEmptied], "b": [TableRemoved], "moved": [RenamedFrom], "fresh": [TableCreated], "swapped": [TableAltered], "quiet": [TableRemoved],
        "keyless": [TableRemoved], "other": [RenamedFrom],
    }  # fmt: skip
    assert {name for name, _ in shop.staged(manifest)} == {"nameless.fresh"}
    named = {name for barrier in manifest.barriers for name in barrier.tables}
    assert named == {f"nameless.{table}" for table in events}


def test_names_are_folded_as_the_server_folds_them(folding: Server, tmp_path: Path) -> None:
    """Greek has two small letters for one capital, and Turkish has a dotted one."""
    shop = begun(folding, "FULL", tmp_path)
    shop.run(
        "USE nameless\nCREATE TABLE ΠΕΛΑΤΗΣ (id INT PRIMARY KEY)\nCREATE TABLE `İL` (id INT PRIMARY KEY)\n"
        "CREATE TABLE `ẞÄΩ` (id INT PRIMARY KEY)\nINSERT INTO ΠΕΛΑΤΗΣ VALUES (1)\nINSERT INTO `İL` VALUES (1)\n"
        "INSERT INTO `ẞÄΩ` VALUES (1)\nTRUNCATE TABLE ΠΕΛΑΤΗΣ\nTRUNCATE TABLE `İL`\nTRUNCATE TABLE `ẞÄΩ`"
    )
    manifest = shop.delta()
    staged = {name for name, _ in shop.staged(manifest)}
    assert staged == {"nameless.πελατησ", "nameless.il", "nameless.ẞäω"}
    assert {name for barrier in manifest.barriers for name in barrier.tables} == staged
