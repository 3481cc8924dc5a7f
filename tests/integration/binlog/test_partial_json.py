"""Updates that log JSON as diffs, on a real server: the staged document is the whole one that the server shows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from loader.transport.server.connection import connected
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


NAMES = [
    "a$b", "$", "$$", "_", "a_$9", "é", "e\u0301", "\u0301e", "कि", "ไทย", "日本", "Ωmega", "١٢", "a١", "a\u200db", "a\u200c",
    "a\u203fb", "\u203f", "ǆ", "ª", "Ⅷ", "9a", "", " ", "a b", "a.b", "a[0]", "[", ".", "*", "**", "a-b", 'q"', "\\", "\\u0041",
    "\n", "\x01", "\x00", "\x7f", "\u0085", "\u2028", "😀", "a😀", "𝒳", "last", "to", "\ufeff", "\uffff", "İ", "ß",
]  # fmt: skip


def test_members_of_any_name(source: Source, tmp_path: Path) -> None:
    """A path has a name without quotes if it is an identifier of ECMAScript, which may hold more than `\\w` takes."""
    if source.kind == "mariadb":
        pytest.skip("MariaDB has no partial JSON")
    dice = random.Random(11)
    known = [chr(n) for n in range(0x10000) if chr(n).isidentifier() or ("a" + chr(n)).isidentifier()]
    names = [*NAMES, *{"".join(dice.choices(known, k=dice.randint(1, 4))) for _ in range(200)}]
    document = json.dumps({"pad": "x" * 9000} | dict.fromkeys(names, 1) | {"in": [dict.fromkeys(names, 2)]})
    source.run("DROP TABLE IF EXISTS p", "CREATE TABLE p (id INT PRIMARY KEY, j JSON)")
    with connected(source.address) as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {source.schema}")
        cursor.execute("INSERT INTO p VALUES (1, %s)", (document,))
        cursor.execute("SET SESSION binlog_row_value_options = PARTIAL_JSON")
        start, expected = source.mark(), []
        for n, name in enumerate(names):
            quoted = f"$.{json.dumps(name)}"
            inside = f"$.in[last].{json.dumps(name)}"
            cursor.execute("UPDATE p SET j = JSON_SET(JSON_REPLACE(j, %s, %s), %s, 9)", (quoted, n + 10, inside))
            expected += source.rows("SELECT CAST(j AS CHAR) FROM p")
            cursor.execute("UPDATE p SET j = JSON_REMOVE(j, %s)", (inside,))
            expected += source.rows("SELECT CAST(j AS CHAR) FROM p")
    staged = source.staged(tmp_path, start)
    assert staged.manifest.balance.event_types["PARTIAL_UPDATE_ROWS"] == 2 * len(names)
    updates = [(record[6],) for record in staged.records(f"{source.schema}.p")]
    assert updates == expected


def test_cells_that_are_counted_from_the_end_and_scalars_that_are_taken_for_arrays(
    source: Source, tmp_path: Path
) -> None:
    """The server logs the paths of the statement: `$.list[last-1]`."""
    if source.kind == "mariadb":
        pytest.skip("MariaDB has no partial JSON")
    source.run(
        "DROP TABLE IF EXISTS p",
        "CREATE TABLE p (id INT PRIMARY KEY, j JSON)",
        "INSERT INTO p VALUES (1, JSON_OBJECT('pad', REPEAT('x', 9000), 'list', JSON_ARRAY(1, 2, 3, JSON_ARRAY(4, 5)),"
        " 'none', JSON_ARRAY(), 'one', 1, 'map', JSON_OBJECT('a', 1)))",
        "SET SESSION binlog_row_value_options = PARTIAL_JSON",
    )
    paths = [f"$.{name}[{cell}]" for name in ("list", "none", "one", "map", "list[last]", "one[0]", "map[last]")
             for cell in ("0", "1", "7", "last", "last-1", "last-9")]  # fmt: skip
    paths += ["$.map[0].a", "$.map[last].b", "$.list[last][last].x", "$[0].one", "$[last].new", "$[last].list[last-1]"]
    start, expected = source.mark(), []
    for change in (
        "JSON_REPLACE(j, '{}', {})",
        "JSON_SET(j, '{}', {})",
        "JSON_INSERT(j, '{}', {})",
        "JSON_REMOVE(j, '{}')",
    ):
        for n, path in enumerate(paths):
            changed = source.rows(f"SELECT CAST({change.format(path, n)} AS CHAR), CAST(j AS CHAR) FROM p")[0]
            source.run(f"UPDATE p SET j = {change.format(path, n)}")
            after = source.rows("SELECT CAST(j AS CHAR) FROM p")
            expected += after if changed[0] != changed[1] else []
    source.run("SET SESSION binlog_row_value_options = ''")
    staged = source.staged(tmp_path, start)
    assert staged.manifest.balance.event_types["PARTIAL_UPDATE_ROWS"] > 50
    assert [(record[6],) for record in staged.records(f"{source.schema}.p")] == expected
