"""MINIMAL and NOBLOB row images of real servers: the staged records, applied to a mirror, give the server's rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.binlog.source import Row, Source, table_rows

_WORK = (
    "INSERT INTO t VALUES (1, 'a', 1, 'text one', 'k'), (2, NULL, 2, NULL, ''), (3, '', 3, 'text three', NULL)",
    "UPDATE t SET n = n + 1", "UPDATE t SET a = NULL WHERE id = 1", "UPDATE t SET a = '' WHERE id = 2",
    "UPDATE t SET body = 'changed' WHERE id = 1", "UPDATE t SET body = NULL WHERE id = 3",
    "BEGIN", "UPDATE t SET id = id + 10 WHERE id = 3", "UPDATE t SET n = 99 WHERE id = 13", "COMMIT",
    "DELETE FROM t WHERE id = 2", "INSERT INTO t (id, a) VALUES (2, 'again')",
)  # fmt: skip


def applied(lines: list[list[str | None]], defaults: list[str | None]) -> list[Row]:
    """Records applied to an empty mirror.

    What an update leaves out is as the row was, under its old key if it moved; what an insert leaves out is the
    column's default.
    """
    mirror: dict[str, list[str | None]] = {}
    moved: tuple[str | None, list[str | None]] | None = None
    for line in lines:
        key, values = str(line[5]), list(line[5:])
        left_out = int.from_bytes(bytes.fromhex(line[4] or ""), "little")
        if line[0] == "D":
            moved = line[1], mirror.pop(key)
            continue
        before = mirror[key] if line[0] == "U" else moved[1] if moved and moved[0] == line[1] else defaults
        mirror[key] = [before[index] if left_out >> index & 1 else value for index, value in enumerate(values)]
        moved = None
    return sorted((tuple(row) for row in mirror.values()), key=lambda row: str(row[0]))


def test_a_row_of_defaults_only_is_refused_and_not_passed_over(source: Source, tmp_path: Path) -> None:
    source.run("CREATE TABLE defaults (id INT PRIMARY KEY DEFAULT 5, v INT DEFAULT 7)")
    source.run("SET SESSION binlog_row_image = MINIMAL")
    start = source.mark()
    source.run("INSERT INTO defaults () VALUES ()", "SET SESSION binlog_row_image = FULL")
    staged = source.staged(tmp_path, start)
    (found,) = staged.manifest.left_out
    assert (found.table, found.what, found.hint) == (
        f"{source.schema}.defaults",
        "a row image leaves out columns that identify its row",
        "SET GLOBAL binlog_row_image=FULL, and use no other value in any session",
    )
    assert staged.files == {}


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_images_carry_every_change(source: Source, image: str, tmp_path: Path) -> None:
    table = f"t_{image.lower()}"
    source.run(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(10), n INT, body TEXT, u VARCHAR(5) DEFAULT 'dflt')",
        f"SET SESSION binlog_row_image = {image}",
    )
    try:
        start = source.mark()
        source.run(*(statement.replace(" t ", f" {table} ") for statement in _WORK))
        staged = source.staged(tmp_path, start)
    finally:
        source.run("SET SESSION binlog_row_image = FULL")
    lines = staged.records(f"{source.schema}.{table}")
    assert any(line[4] for line in lines)
    schema = staged.schema(f"{source.schema}.{table}")
    expected = sorted(table_rows(source, schema), key=lambda row: str(row[0]))
    assert applied(lines, [None, None, None, None, "dflt"]) == expected
