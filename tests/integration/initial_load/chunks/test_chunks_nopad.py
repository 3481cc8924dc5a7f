"""Chunks of MariaDB tables whose key is a CHAR with a NO PAD collation: each row is in one chunk.

The index orders such values with the spaces that pad them, conditions compare them without. So a value and the same
value with a character behind it that sorts before a space are in another order in the index than in a condition.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.initial_load.loading import plan_of, read_chunks
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

ENDS = ["", "\t", "\n", "\x01", "a", "z", "-", "\u00ad", "\u200d", "e\u0301"]
COLLATIONS = {
    "utf8mb4_nopad_bin": ENDS,
    "utf8mb4_general_nopad_ci": ENDS,
    "utf8mb4_uca1400_nopad_ai_ci": ["", "a", "z", "\u00ad", "\u200d", "e\u0301", "e\u0301a", "\u0301", "x\u0301"],
    "latin1_nopad_bin": ["", "\t", "a", "z", "\n"],
}


@pytest.mark.parametrize("kind", ["CHAR(20)", "VARCHAR(20)"])
@pytest.mark.parametrize("collation", COLLATIONS)
def test_every_row_is_in_one_chunk(mariadb: SourceServer, tmp_path: Path, collation: str, kind: str) -> None:
    charset = collation.partition("_")[0]
    words = [word + end for word in ("", "a", "cafe", "z") for end in COLLATIONS[collation]]
    values = ", ".join(f"(CONVERT(_utf8mb4 X'{word.encode().hex()}' USING {charset}))" for word in words)
    mariadb.run(
        f"CREATE TABLE t (k {kind} CHARACTER SET {charset} COLLATE {collation} PRIMARY KEY)",
        f"INSERT IGNORE INTO t VALUES {values}",
    )
    rows_of_server = mariadb.run("SELECT HEX(CONVERT(k USING utf8mb4)) FROM t")
    expected = {repr(bytes.fromhex(str(text)).decode()) for (text,) in rows_of_server}
    for size in (1, 2, 3):
        chunks = read_chunks(mariadb, plan_of(mariadb, tmp_path / str(size), "t", size))
        found = [repr(line.decode().strip('"').replace("\\n", "\n")) for chunk in chunks for line in chunk]
        assert len(found) == len(set(found))
        assert sorted(expected - set(found)) == []


def test_every_row_of_a_memory_table_is_in_one_chunk(mysql: SourceServer, tmp_path: Path) -> None:
    """MySQL's default collation is NO PAD. Its InnoDB orders these values as conditions do, and MEMORY does not."""
    mysql.run("CREATE TABLE t (k CHAR(20) NOT NULL, PRIMARY KEY (k) USING BTREE) ENGINE = MEMORY")
    mysql.run("INSERT INTO t VALUES ('a'), ('a\\t'), ('a\\n'), ('b'), ('b\\t'), ('c')")
    chunks = read_chunks(mysql, plan_of(mysql, tmp_path, "t", 2))
    assert sorted(line for chunk in chunks for line in chunk) == sorted(
        [b'"a"', b'"a\t"', b'"a\\n"', b'"b"', b'"b\t"', b'"c"']
    )
