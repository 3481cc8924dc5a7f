"""Columns that pass through another character set, with no row in between that shows it."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_a_default_that_the_next_character_set_lacks(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.load()
    live.run(
        "SET NAMES utf8mb4",
        "ALTER TABLE t ADD c VARCHAR(10) DEFAULT '漢'",
        "SET sql_mode = ''",
        "ALTER TABLE t MODIFY c VARCHAR(10) CHARACTER SET latin1 DEFAULT 'x'",
        "INSERT INTO t VALUES (2, 'y')",
    )
    (result,) = live.delta().tables
    assert result.error and result.error["what"] == "the log does not show how ALTER TABLE changed the rows"


@pytest.mark.parametrize("charset", ["cp932", "tis620"])
def test_characters_that_come_back_as_others(live: LiveSource, charset: str) -> None:
    live.run(
        "CREATE TABLE every_character (c VARCHAR(4)) CHARACTER SET utf8mb4",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, c VARCHAR(10)) CHARACTER SET utf8mb4",
    )
    every = (chr(number).encode().hex() for number in (*range(0x80, 0xD800), *range(0xE000, 0xFFFE)))
    characters = ", ".join(f"(CONVERT(X'{one}' USING utf8mb4))" for one in every)
    back = f"CONVERT(CONVERT(c USING {charset}) USING utf8mb4)"
    live.run(
        "SET sql_mode = ''",
        f"INSERT INTO every_character VALUES {characters}",
        f"INSERT INTO t (c) SELECT c FROM every_character WHERE BINARY {back} <> BINARY c AND {back} NOT LIKE '%?%'",
        "DROP TABLE every_character",
    )
    if not live.server_rows("t"):
        pytest.skip("this server changes no character")
    live.load("t")
    live.run(
        "SET sql_mode = 'STRICT_TRANS_TABLES'",
        f"ALTER TABLE t MODIFY c VARCHAR(10) CHARACTER SET {charset}",
        "ALTER TABLE t MODIFY c VARCHAR(10) CHARACTER SET utf8mb4",
        "INSERT INTO t (c) VALUES ('z')",
    )
    (result,) = (one for one in live.delta().tables if one.table.endswith(".t"))
    assert result.error and result.error["what"] == "the log does not show how ALTER TABLE changed the rows"
