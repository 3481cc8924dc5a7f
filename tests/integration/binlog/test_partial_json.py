"""Updates that log JSON as diffs, on a real server: what is staged is the whole document that the server shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.binlog.source import Source

_CHANGES = [
    "JSON_SET(j, '$.a', 2)", "JSON_REPLACE(j, '$.long', 'short')", "JSON_SET(j, '$.list[0]', JSON_OBJECT('x', 1.25))",
    "JSON_SET(j, '$.list[9]', CAST('2024-02-03 04:05:06.789' AS DATETIME(6)))", "JSON_REMOVE(j, '$.a')",
    "JSON_SET(j, '$.\"a b\\\\\"c\"', JSON_ARRAY(1, NULL, TRUE))", "JSON_REMOVE(j, '$.list[0]')",
    "JSON_SET(j, '$.deep.er', JSON_OBJECT('est', -32769))", "JSON_REPLACE(j, '$.deep.er.est', 18446744073709551615)",
    "JSON_SET(j, '$.d', CAST(1.10 AS DECIMAL(10, 2)), '$.bits', b'101')", "JSON_SET(j, '$.é', '😀\\n')",
    "JSON_REMOVE(JSON_SET(j, '$.z', 1), '$.d')", "JSON_SET(j, '$.long', REPEAT('y', 70000))", "JSON_OBJECT('new', 1)",
    "NULL",
]  # fmt: skip


@pytest.mark.parametrize("image", ["FULL", "NOBLOB"])
def test_diffs_are_staged_as_whole_documents(source: Source, image: str, tmp_path: Path) -> None:
    if source.kind == "mariadb":
        pytest.skip("MariaDB has no partial JSON")
    source.run(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id INT PRIMARY KEY, k JSON, n INT, j JSON, b VARCHAR(9), l JSON)",
        "INSERT INTO p SELECT n, JSON_OBJECT('n', n), n, JSON_OBJECT('a', n, 'long', REPEAT('x', 300), 'list',"
        " JSON_ARRAY(n, 'two'), 'deep', JSON_OBJECT()), 'b', NULL"
        " FROM (WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r) r",
        f"SET SESSION binlog_row_value_options = PARTIAL_JSON, SESSION binlog_row_image = {image}",
    )  # fmt: skip
    start, expected = source.mark(), []
    for change in _CHANGES:
        source.run(f"UPDATE p SET j = {change}, n = n + 1")
        expected += source.rows("SELECT id, CAST(j AS CHAR), n FROM p ORDER BY id")
    source.run("UPDATE p SET id = id + 10, k = JSON_SET(k, '$.n', 'moved')")
    source.run("SET SESSION binlog_row_value_options = '', SESSION binlog_row_image = FULL")
    if image == "FULL":
        partial = source.staged(tmp_path, start).manifest.balance.event_types["PARTIAL_UPDATE_ROWS"]
        assert partial >= len(_CHANGES) - 2
    records = source.staged(tmp_path / "again", start).records(f"{source.schema}.p")
    updates = [(record[5], record[8], record[7]) for record in records if record[0] == "U"]
    assert updates == [(str(i), j, str(n)) for i, j, n in expected]
    moved = [(record[0], record[5], record[6]) for record in records if record[0] != "U"]
    assert moved == [
        pair for n in range(1, 6) for pair in (("D", str(n), f'{{"n": {n}}}'), ("I", str(n + 10), '{"n": "moved"}'))
    ]
    offsets = [(record[1], int(record[2] or 0)) for record in records]
    assert len(set(offsets)) == len(offsets)
