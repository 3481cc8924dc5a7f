"""Tables whose shape the log describes in an unusual way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.binlog.source import Source, quoted, table_rows

pytestmark = pytest.mark.integration


def check(source: Source, table: str, folder: Path, create: str, *work: str) -> tuple[str, ...]:
    """Create, work, and compare the table with what its records add up to; the key that the log tells."""
    source.run(f"DROP TABLE IF EXISTS {quoted(table)}", create)
    start = source.mark()
    source.run(*work)
    staged = source.staged(folder, start)
    name = f"{source.schema}.{table}"
    schema = staged.schema(name)
    names = [column.name for column in schema.columns]
    rows = {}
    for line in staged.records(name):
        key = tuple(line[5 + names.index(column)] for column in schema.key)
        if line[0] == "D":
            del rows[key]
        else:
            rows[key] = tuple(line[5:])
    assert sorted(rows.values()) == sorted(table_rows(source, schema))
    assert rows
    return schema.key


def test_partitions(source: Source, tmp_path: Path) -> None:
    parts = "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)"
    check(
        source, "parted", tmp_path, f"CREATE TABLE parted (id INT PRIMARY KEY, v INT) {parts}",
        "INSERT INTO parted VALUES (1, 1), (20, 2), (30, 3)", "UPDATE parted SET id = 25 WHERE id = 1",
        "UPDATE parted SET v = 7", "DELETE FROM parted WHERE id = 20",
    )  # fmt: skip


def test_three_hundred_columns(source: Source, tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} {'INT' if n % 3 else 'VARCHAR(9)'}" for n in range(300))
    changes = ", ".join(f"c{n} = {n}" for n in range(0, 300, 7))
    check(
        source, "wide", tmp_path, f"CREATE TABLE wide (id INT PRIMARY KEY, {columns})",
        "INSERT INTO wide (id, c5, c299) VALUES (1, 5, 299), (2, NULL, 1)", f"UPDATE wide SET {changes}",
    )  # fmt: skip


def test_labels_of_two_bytes_and_of_eight(source: Source, tmp_path: Path) -> None:
    many = ", ".join(f"'label {n}'" for n in range(300))
    bits = ", ".join(f"'bit {n}'" for n in range(64))
    check(
        source, "labels", tmp_path, f"CREATE TABLE labels (id INT PRIMARY KEY, e ENUM({many}), s SET({bits}))",
        "INSERT INTO labels VALUES (1, 1, 1), (2, 300, 18446744073709551615), (3, 256, 9223372036854775808)",
        "UPDATE labels SET e = 'label 254' WHERE id = 1",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["select", "naïve 漢字", "with`tick", "per%cent", "a/b\\c", "x.y"])
def test_names_of_any_characters(source: Source, name: str, tmp_path: Path) -> None:
    table, column = quoted(name), quoted(f"{name} column")
    key = check(
        source, name, tmp_path, f"CREATE TABLE {table} ({column} INT PRIMARY KEY, v TEXT)",
        f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')", f"UPDATE {table} SET {column} = 3 WHERE v = 'two'",
    )  # fmt: skip
    assert key == (f"{name} column",)


def test_a_key_of_prefixes_and_of_several_columns(source: Source, tmp_path: Path) -> None:
    key = check(
        source, "composite", tmp_path,
        "CREATE TABLE composite (a INT, t TEXT, b VARCHAR(50), PRIMARY KEY (t(20), a))",
        "INSERT INTO composite VALUES (1, REPEAT('x', 19), 'one'), (1, REPEAT('y', 30), 'two')",
        "UPDATE composite SET b = 'three'", "UPDATE composite SET t = CONCAT('z', t) WHERE b = 'three'",
    )  # fmt: skip
    assert key == ("t", "a")


def test_a_table_that_changes_within_the_interval(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS changing", "CREATE TABLE changing (id INT PRIMARY KEY, v INT)")
    start = source.mark()
    source.run(
        "INSERT INTO changing VALUES (1, 10)", "ALTER TABLE changing ADD w VARCHAR(9) DEFAULT 'new' FIRST",
        "INSERT INTO changing (id, v) VALUES (2, 20)", "ALTER TABLE changing MODIFY v BIGINT UNSIGNED, DROP w",
        "INSERT INTO changing VALUES (3, 18446744073709551615)", "TRUNCATE TABLE changing",
    )  # fmt: skip
    staged = source.staged(tmp_path, start)
    lines = staged.records(f"{source.schema}.changing")
    assert [line[5:] for line in lines] == [["1", "10"], ["new", "2", "20"], ["3", "18446744073709551615"]]
    assert len({file.schema_id for file in staged.manifest.files}) == 3
    seqnos = [int(line[1] or 0) for line in lines]
    barriers = [barrier.seqno for barrier in staged.manifest.barriers]
    assert [barrier.tables for barrier in staged.manifest.barriers] == [(f"{source.schema}.changing",)] * 3
    assert seqnos[0] < barriers[0] < seqnos[1] < barriers[1] < seqnos[2] < barriers[2]


def test_hidden_columns_of_indexes_are_not_in_the_log(source: Source, tmp_path: Path) -> None:
    if source.kind == "mariadb":
        pytest.skip("MariaDB has no functional indexes")
    check(
        source, "hidden", tmp_path,
        "CREATE TABLE hidden (id INT PRIMARY KEY, v VARCHAR(20), j JSON, INDEX ((UPPER(v))),"
        " INDEX ((CAST(j->'$.a' AS UNSIGNED ARRAY))))",
        """INSERT INTO hidden VALUES (1, 'one', '{"a": [1, 2]}'), (2, NULL, NULL)""", "UPDATE hidden SET v = 'two'",
    )  # fmt: skip


def test_a_generated_invisible_primary_key_is_the_key(source: Source, tmp_path: Path) -> None:
    if source.kind == "mariadb":
        pytest.skip("MariaDB makes no such key")
    source.run("SET SESSION sql_generate_invisible_primary_key = ON")
    key = check(
        source, "keyless", tmp_path, "CREATE TABLE keyless (v INT)", "INSERT INTO keyless VALUES (5), (5), (6)",
        "DELETE FROM keyless WHERE v = 6",
    )  # fmt: skip
    source.run("SET SESSION sql_generate_invisible_primary_key = OFF")
    assert key == ("my_row_id",)


def test_rows_of_one_statement_on_several_tables(source: Source, tmp_path: Path) -> None:
    source.run(
        "DROP TABLE IF EXISTS first, second", "CREATE TABLE first (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE second (id INT PRIMARY KEY, v INT)",
    )  # fmt: skip
    start = source.mark()
    source.run(
        "INSERT INTO first VALUES (1, 1), (2, 2)", "INSERT INTO second VALUES (1, 1), (2, 2)",
        "UPDATE first f JOIN second s USING (id) SET f.v = f.v + 10, s.v = s.v + 20",
        "DELETE f, s FROM first f JOIN second s USING (id) WHERE f.id = 1",
    )  # fmt: skip
    staged = source.staged(tmp_path, start)
    for table, added in (("first", 10), ("second", 20)):
        lines = [[line[0], *line[5:]] for line in staged.records(f"{source.schema}.{table}")]
        updated = [["U", str(n), str(n + added)] for n in (1, 2)]
        assert lines == [["I", "1", "1"], ["I", "2", "2"], *updated, ["D", "1", str(1 + added)]]


def test_create_table_as_select_and_replace(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS made")
    start = source.mark()
    source.run("CREATE TABLE made (id INT PRIMARY KEY) SELECT 1 AS id, 'x' AS v", "REPLACE INTO made VALUES (1, 'y')")
    lines = source.staged(tmp_path, start).records(f"{source.schema}.made")
    assert lines[0][0] == "I"
    assert lines[-1][5:] == ["1", "y"]


def test_a_statement_under_locks_of_many_tables(source: Source, tmp_path: Path) -> None:
    """Both servers log the table maps of all tables that are locked for writing with each statement."""
    names = [f"many_{n}" for n in range(1200)]
    source.run(*(f"DROP TABLE IF EXISTS {name}" for name in names))
    source.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY) ENGINE=MEMORY" for name in names))
    start = source.mark()
    locks = ", ".join(f"{name} WRITE" for name in names)
    source.run(f"LOCK TABLES {locks}", "INSERT INTO many_7 VALUES (1), (2)", "INSERT INTO many_1100 VALUES (3)")
    source.run("UNLOCK TABLES")
    staged = source.staged(tmp_path, start)
    for name, ids in (("many_7", ["1", "2"]), ("many_1100", ["3"])):
        assert [line[5] for line in staged.records(f"{source.schema}.{name}")] == ids
    maps = staged.manifest.balance.event_types["TABLE_MAP"]
    assert maps == 2 * len(names)
    source.run(*(f"DROP TABLE {name}" for name in names))
