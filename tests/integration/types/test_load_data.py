"""Staged lines are what the server itself reads back with LOAD DATA: into a copy of the table, without a difference."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from loader.model.table import Column, TableSchema
from loader.types.column_type import Form
from loader.types.warehouse import form
from tests.integration.binlog.source import Source, quoted
from tests.integration.types.kinds import all_tables
from tests.integration.types.tables import TypedTable

pytestmark = pytest.mark.integration
DIALECT = r"""FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '\\' LINES TERMINATED BY '\n'"""


def load(source: Source, schema: TableSchema, file: Path, table: str, generated: Collection[str] = ()) -> None:
    """LOAD DATA of staged lines: hex columns by UNHEX, bits by CAST, generated columns left out."""
    fields, settings = ["@op", "@seqno", "@row_offset", "@committed_at", "@absent"], []
    for number, column in enumerate(schema.columns):
        variable, name = f"@c{number}", quoted(column.name)
        if column.name in generated:
            fields.append(variable)
        elif column.type == "vector":
            fields.append(variable)
            settings.append(f"{name} = STRING_TO_VECTOR({variable})")
        elif form(column) is Form.HEX:
            fields.append(variable)
            settings.append(f"{name} = UNHEX({variable})")
        elif column.type == "bit":
            fields.append(variable)
            settings.append(f"{name} = CAST({variable} AS UNSIGNED)")
        else:
            fields.append(name)
    source.run(
        f"LOAD DATA INFILE '{file}' INTO TABLE {table} CHARACTER SET utf8mb4 {DIALECT} ({', '.join(fields)})"
        + (f" SET {', '.join(settings)}" if settings else "")
    )


def compared(column: Column) -> str:
    """Whether a column of tables a and b is the same, in SQL: by its bits, or else by its whole text."""
    name = quoted(column.name)
    if column.type in {"float", "double"}:
        return f"a.{name} <=> b.{name}"
    if form(column) is Form.HEX or column.type == "vector":
        return f"HEX(a.{name}) <=> HEX(b.{name})"
    return " <=> ".join(f"CAST(CAST({table}.{name} AS CHAR CHARACTER SET utf8mb4) AS BINARY)" for table in "ab")


def test_tables_loaded_from_their_staged_lines_are_the_same(source: Source, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name, kinds in all_tables(source, opaque=False).items():
        table = TypedTable(source, name, kinds)
        lines = table.logged(table.insert)
        file = tmp_path / f"{name}.csv"
        file.write_bytes(lines.text)
        generated = {f"n{n}" for n, kind in enumerate(kinds) if not kind.edges}
        source.run("DROP TABLE IF EXISTS copy", f"CREATE TABLE copy LIKE {name}")
        load(source, lines.schema, file, "copy", generated)
        sums = [f"SUM(NOT ({compared(column)}))" for column in lines.schema.columns]
        (found,) = source.rows(f"SELECT COUNT(*), {', '.join(sums)} FROM {name} a JOIN copy b USING (id)")
        assert found[0] == table.rows
        wrong = [str(column) for column, count in zip(lines.schema.columns, found[1:], strict=True) if count]
        assert not wrong, f"{name}: {wrong}"


def test_texts_of_every_byte_are_read_back(source: Source, tmp_path: Path) -> None:
    source.run(
        "DROP TABLE IF EXISTS texts, copy",
        "CREATE TABLE texts (id INT PRIMARY KEY, u TEXT, l TEXT CHARACTER SET latin1, b BLOB)",
        "CREATE TABLE copy LIKE texts",
    )
    start = source.mark()
    for byte in range(256):
        hexed = f"{byte:02x}"
        text = f"X'{hexed}'" if byte < 128 else f"_utf8mb4 X'{chr(byte).encode().hex()}'"
        around = f"CONCAT('a', {text}, '\\\\', {text}, '\"')"
        source.run(
            f"INSERT INTO texts VALUES ({byte}, {around}, CONVERT(_latin1 X'22{hexed}5c' USING latin1), X'{hexed}00')"
        )
    staged = source.staged(tmp_path / "staging", start)
    file = tmp_path / "lines.csv"
    file.write_bytes(b"".join(staged.files[key] for key in sorted(staged.files)))
    load(source, staged.schema(f"{source.schema}.texts"), file, "copy")
    same = "a.id = b.id AND BINARY a.u = BINARY b.u AND BINARY a.l = BINARY b.l AND a.b = b.b"
    assert source.rows(f"SELECT COUNT(*) FROM texts a JOIN copy b ON {same}") == [(256,)]
