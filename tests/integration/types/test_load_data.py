"""Staged lines are what the server itself reads back with LOAD DATA: into a copy of the table, without a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.model.table import TableSchema
from tests.integration.binlog.source import Source, quoted, table_rows
from tests.integration.snapshot import more_values
from tests.integration.snapshot.every_value import TABLE, statements

pytestmark = pytest.mark.integration
DIALECT = r"""FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '\\' LINES TERMINATED BY '\n'"""
GENERATED = {"gv", "gs"}


def load(source: Source, schema: TableSchema, file: Path, table: str) -> None:
    """LOAD DATA of staged lines: hex columns by UNHEX, bits by CAST, generated columns left out."""
    fields, settings = ["@op", "@seqno", "@row_offset", "@committed_at", "@absent"], []
    for number, column in enumerate(schema.columns):
        variable, name = f"@c{number}", quoted(column.name)
        if column.name in GENERATED:
            fields.append(variable)
        elif column.type == "vector":
            fields.append(variable)
            settings.append(f"{name} = STRING_TO_VECTOR({variable})")
        elif column.type.endswith(("blob", "binary")) or column.type == "geometry":
            fields.append(variable)
            settings.append(f"{name} = UNHEX({variable})")
        elif column.type == "bit":
            fields.append(variable)
            settings.append(f"{name} = CAST({variable} AS UNSIGNED)")
        else:
            fields.append(name)
    source.run(
        f"LOAD DATA INFILE '{file}' INTO TABLE {table} CHARACTER SET utf8mb4 {DIALECT} ({', '.join(fields)})"
        f" SET {', '.join(settings)}"
    )


def test_a_table_of_every_type_loaded_from_its_staged_lines_is_the_same_table(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS every_type, copy", TABLE)
    start = source.mark()
    source.run(*(one for one in statements(source.kind) if "'opaque'" not in one))  # its types are not in its text
    staged = source.staged(tmp_path / "staging", start)
    schema = staged.schema(f"{source.schema}.every_type")
    file = tmp_path / "lines.csv"
    file.write_bytes(b"".join(staged.files[key] for key in sorted(staged.files)))
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    source.run("CREATE TABLE copy LIKE every_type")
    load(source, schema, file, "copy")
    copied = table_rows(source, TableSchema(type(schema.name)(source.schema, "copy"), schema.columns, schema.key))
    original = table_rows(source, schema)
    assert len(original) > 8
    assert [row for row, other in zip(copied, original, strict=True) if row != other] == []
    # An invalid ENUM value reads as '', which is a label of this column too.
    source.run("DELETE FROM every_type WHERE e + 0 = 0", "DELETE FROM copy WHERE k1 NOT IN (SELECT k1 FROM every_type)")
    sums = source.rows("CHECKSUM TABLE every_type, copy")
    assert sums[0][1] == sums[1][1]
    assert sums[0][1] is not None


def test_the_types_that_few_tables_have(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS more_types, copy", more_values.table(source.kind))
    start = source.mark()
    source.run(*(one for one in more_values.statements(source.kind) if "vec = X" not in one))  # no text for denormals
    staged = source.staged(tmp_path / "staging", start)
    schema = staged.schema(f"{source.schema}.more_types")
    file = tmp_path / "lines.csv"
    file.write_bytes(b"".join(staged.files[key] for key in sorted(staged.files)))
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    source.run("CREATE TABLE copy LIKE more_types")
    load(source, schema, file, "copy")
    copied = table_rows(source, TableSchema(type(schema.name)(source.schema, "copy"), schema.columns, schema.key))
    original = table_rows(source, schema)
    assert len(original) >= 3
    assert [row for row, other in zip(copied, original, strict=True) if row != other] == []


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
