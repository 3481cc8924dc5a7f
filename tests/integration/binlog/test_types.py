"""Every supported type at its limits: the staged text equals the text that the server shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.binlog.values.charsets import charset_of
from loader.binlog.values.codepages import is_supported
from tests.integration.binlog.source import Row, Source, quoted, table_rows
from tests.integration.initial_load.values import every_value, more_values

pytestmark = pytest.mark.integration
KEY = 2  # the first columns of the table are its key
_LEFT_OUT = "left out"
_GENERATED = ("gv", "gs")


def differences(found: list[Row], wanted: list[Row], columns: list[str]) -> list[str]:
    """Each value that differs, in short."""
    assert len(found) == len(wanted)
    return [
        f"row {row[:KEY]}, {column}: {a!r:.120} is not {b!r:.120}"
        for row, other in zip(found, wanted, strict=True)
        for column, a, b in zip(columns, row, other, strict=True)
        if a != b and not (a == _LEFT_OUT and column in _GENERATED)
    ]


def images(lines: list[list[str | None]]) -> list[Row]:
    """Rows of records, by their keys. MariaDB leaves generated columns out of updates since 11."""
    return sorted((_shown(line[4], line[5:]) for line in lines), key=lambda row: row[:KEY])


def _shown(absent: str | None, values: list[str | None]) -> Row:
    bits = int.from_bytes(bytes.fromhex(absent or ""), "little")
    return tuple(_LEFT_OUT if bits >> n & 1 else value for n, value in enumerate(values))


@pytest.mark.parametrize("name", ["every_type", "more_types"])
def test_inserts_updates_key_changes_and_deletes_of_every_type(source: Source, name: str, tmp_path: Path) -> None:
    table = f"{source.schema}.{name}"
    more = name == "more_types"
    inserts = (more_values if more else every_value).statements(source.kind)
    source.run(f"DROP TABLE IF EXISTS {name}", more_values.table(source.kind) if more else every_value.TABLE)
    marks = [source.mark()]
    source.run(*inserts)
    marks.append(source.mark())
    staged = source.staged(tmp_path / "0", marks[0], marks[1])
    schema = staged.schema(table)
    columns = [column.name for column in schema.columns]
    assert schema.key == ("k2", "k1")

    def shown() -> list[Row]:
        return sorted(table_rows(source, schema), key=lambda row: row[:KEY])

    def logged() -> list[list[str | None]]:
        marks.append(source.mark())
        return source.staged(tmp_path / str(len(marks)), marks[-2], marks[-1]).records(table)

    lines = staged.records(table)
    inserted = shown()
    assert [line[0] for line in lines] == ["I"] * len(inserts)
    assert differences(images(lines), inserted, columns) == []

    # All columns of a row change to another row's.
    others = [column for column in columns if column not in {"k1", "k2", "gv", "gs"}]
    moved = ", ".join(f"a.{quoted(column)} = b.{quoted(column)}" for column in others)
    source.run(
        f"CREATE TEMPORARY TABLE other AS SELECT k1, {', '.join(map(quoted, others))} FROM {name}",
        f"UPDATE {name} a JOIN other b ON b.k1 = IF(a.k1 = 'lowest', 'highest', 'lowest') SET {moved}",
        "DROP TEMPORARY TABLE other",
    )
    lines = logged()
    assert {line[0] for line in lines} == {"U"}
    changed = {line[5:][1] for line in lines}
    assert differences(images(lines), [row for row in shown() if row[1] in changed], columns) == []
    assert len(changed) >= len(inserts) - 1

    before = shown()
    source.run(f"UPDATE {name} SET k1 = CONCAT('~', k1)")
    lines = logged()
    assert [line[0] for line in lines] == ["D", "I"] * len(inserts)
    assert differences(images(lines[::2]), before, columns) == []
    assert differences(images(lines[1::2]), shown(), columns) == []

    before = shown()
    source.run(f"DELETE FROM {name}")
    lines = logged()
    assert [line[0] for line in lines] == ["D"] * len(inserts)
    assert differences(images(lines), before, columns) == []


def test_nested_json_and_opaque_values_are_the_server_s_own_text(source: Source, tmp_path: Path) -> None:
    depth = 90 if source.kind == "mysql" else 30  # MariaDB takes 32
    deep = "[" * depth + "]" * depth
    keys = ", ".join(f'"{"k" * n}": {n}' for n in range(1, 200))
    values = [
        f"'{deep}'",
        f"'{{{keys}}}'",
        "CONCAT('[', REPEAT('12345, ', 20000), '1.5e-300]')",
        "'\"\\\\u0000\\\\u001f\\\\u20ac\"'",
    ]
    if source.kind == "mysql":
        values += [
            "JSON_OBJECT('b', CAST(REPEAT('x', 40) AS BINARY), 'd', CAST(1.50 AS DECIMAL(60, 30)))",
            "JSON_ARRAY(CAST('-838:59:59' AS TIME), CAST('0000-00-00' AS DATE), TIMESTAMP'2024-01-02 03:04:05.678')",
            "JSON_ARRAY(1e0, -0e0, 1e15, 1e16, 1e-7, 0.1e0, TRUE, NULL)",
            "JSON_SET('{\"a\": \"long enough\", \"b\": 1}', '$.a', 'x')",
        ]
    source.run("DROP TABLE IF EXISTS documents", "CREATE TABLE documents (id INT PRIMARY KEY, j JSON)")
    start = source.mark()
    source.run(*(f"INSERT INTO documents VALUES ({number}, {value})" for number, value in enumerate(values)))
    source.run("UPDATE documents SET j = JSON_REPLACE(j, '$.k', 7, '$.kkk', 'text') WHERE id = 1")
    lines = source.staged(tmp_path, start).records(f"{source.schema}.documents")
    last = {line[5]: line[6] for line in lines}
    assert last == dict(source.rows("SELECT CAST(id AS CHAR), CAST(j AS CHAR) FROM documents"))


def test_every_collation_and_character_set_of_the_server_is_known(source: Source) -> None:
    table = "information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    query = f"SELECT ID, CHARACTER_SET_NAME FROM {table} WHERE ID IS NOT NULL"
    if source.kind == "mysql":
        names = f"information_schema.COLLATIONS c JOIN {table} s USING (COLLATION_NAME)"
        query = f"SELECT c.ID, s.CHARACTER_SET_NAME FROM {names}"
    found = source.rows(query)
    assert len(found) > 200
    assert [one for one in found if charset_of(one[0]) != one[1]] == []
    assert {charset for _, charset in found if not is_supported(charset)} == {"binary"}
