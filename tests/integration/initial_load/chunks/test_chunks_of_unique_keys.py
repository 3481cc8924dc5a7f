"""Tables without a primary key: the key of the catalog is that of the log, and its chunks can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.source.schemas import read_schemas
from tests.integration.initial_load.loading import plan_of, read_chunks
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration


def test_a_key_whose_index_is_invisible(mysql: SourceServer, tmp_path: Path) -> None:
    """MySQL uses and logs it as the key, and refuses FORCE INDEX (1176) without use_invisible_indexes."""
    mysql.run(
        "CREATE TABLE t (a INT NOT NULL, h BINARY(4) NOT NULL, UNIQUE KEY p (h(2)), UNIQUE KEY u (a) INVISIBLE)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )
    chunks = read_chunks(mysql, plan_of(mysql, tmp_path, "t", 2))
    assert [len(chunk) for chunk in chunks] == [2, 1]


@pytest.mark.parametrize("keys", ["UNIQUE KEY (v)", "UNIQUE KEY (a, v)", "UNIQUE KEY x (v), UNIQUE KEY y (a)"])
def test_a_key_with_a_virtual_column(mysql: SourceServer, keys: str) -> None:
    mysql.run(f"CREATE TABLE t (a INT NOT NULL, v INT AS (a + 1) VIRTUAL NOT NULL, {keys})")
    start = mysql.log_end()
    mysql.run("INSERT INTO t (a) VALUES (1)")
    logged = mysql.logged_schemas(start, mysql.log_end())[mysql.name("t")]
    with mysql.connected() as connection:
        assert read_schemas(connection, [mysql.name("t")])[0].key == logged.key
