"""Chunks of tables with keys of every type: each row in exactly one, of exact sizes, found by the index."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from loader.errors import UnsupportedError
from loader.initial_load.chunks import chunk_conditions, chunk_query
from loader.initial_load.documents import LoadPlan
from loader.initial_load.keys import range_condition
from loader.initial_load.whole_table import load_whole_table
from tests.integration.initial_load.loading import plan_of, read_chunks, spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

WORDS = [
    "", "a", "A", "á", "ä", "ae", "b", "B ", "ch", "cz", "d", "ß", "ss", "z", "Z!", "ÿ", "o'neil", 'q"', "\\", "a\\'b",
    "tab\t", "nl\n", "%s {x}", "x'41'", "0x41", "_", "ñ", "n", "nz", "ll", "lz", "œ", "€",
]  # fmt: skip
WIDE = [*WORDS, "日本", "😀", "😀a", "\u0301", "a\u0301", "ǆ", "İ", "ı", "\ufeff", "\uffff", "Ω", "\x00", "a\x00b"]


def strings(words: list[str]) -> list[str]:
    return [f"CONCAT(_utf8mb4 X'{word.encode().hex()}', '{n:02}')" for word in words for n in range(3)]


def numbers(low: int, high: int) -> list[str]:
    dice = random.Random(7)
    return [str(n) for n in {low, high, 0, 1, low + 1, high - 1, *(dice.randint(low, high) for _ in range(60))}]


def floats(largest: float, smallest: float) -> list[str]:
    dice = random.Random(7)
    found = {0.1, 1 / 3, -2 / 3, 1e15, 123456789012345678.0, 0.5, largest, -largest, smallest, -smallest}
    found |= {dice.uniform(-1, 1) * 10.0 ** dice.randint(-30, 30) for _ in range(60)}
    return [*(f"{number!r}e0" if "e" not in repr(number) else repr(number) for number in found), "-0e0"]


TEXT = strings(WORDS)
KEYS: dict[str, tuple[str, list[str]]] = {
    "int": ("k INT", numbers(-(2**31), 2**31 - 1)),
    "tinyint": ("k TINYINT", numbers(-128, 127)),
    "unsigned bigint": ("k BIGINT UNSIGNED ZEROFILL", numbers(0, 2**64 - 1)),
    "decimal": ("k DECIMAL(30,10)", [f"{n}.{abs(n) % 10**10:010}" for n in range(-(10**17), 10**17, 7 * 10**15)]),
    "double": ("k DOUBLE", floats(1.7976931348623157e308, 2.2250738585072014e-308)),
    "float": ("k FLOAT", floats(3.4028234663852886e38, 1.1754943508222875e-38)),
    "float with a scale": ("k FLOAT(9,2), k2 INT", [f"{n / 7}, {n}" for n in range(-40, 40)]),
    "double with a scale": ("k DOUBLE(15,3) UNSIGNED", [f"{n / 7 * 1e9}" for n in range(90)]),
    "int and double": ("k INT, k2 DOUBLE", [f"{n % 4}, {n / 3}" for n in range(-60, 60)]),
    "varchar": ("k VARCHAR(40)", strings(WIDE)),
    "varchar bin": ("k VARCHAR(40) COLLATE utf8mb4_bin", strings(WIDE)),
    "varchar unicode": ("k VARCHAR(40) COLLATE utf8mb4_unicode_ci", strings(WIDE)),
    "varchar spanish": ("k VARCHAR(40) COLLATE utf8mb4_spanish2_ci", strings(WIDE)),
    "varchar utf8mb3": ("k VARCHAR(40) CHARACTER SET utf8mb3", TEXT),
    "latin1": ("k VARCHAR(40) CHARACTER SET latin1", TEXT),
    "latin1 german": ("k VARCHAR(40) COLLATE latin1_german2_ci", TEXT),
    "ascii": ("k VARCHAR(40) CHARACTER SET ascii", strings([word for word in WORDS if word.isascii()])),
    "char": ("k CHAR(40) CHARACTER SET latin1", TEXT),
    "binary": ("k BINARY(3)", [f"X'{n * 65793 % 2**24:06x}'" for n in range(80)] + ["''", "'a'", "X'00'", "X'61FF'"]),
    "varbinary": (
        "k VARBINARY(9)",
        [f"X'{n * 7919 % 256:02x}00{n:04x}'" for n in range(80)] + ["''", "X'00'", "X'0000'"],
    ),
    "gbk": ("k VARCHAR(40) CHARACTER SET gbk", strings(["", "a", "你", "好", "丂", "ab", "z你", "\\"])),
    "sjis": ("k CHAR(20) CHARACTER SET sjis", strings(["", "a", "ソ", "表", "ｱ", "十"])),
    "ucs2": ("k VARCHAR(40) CHARACTER SET ucs2", strings(["", "a", "あ", "\uffff", "é"])),
    "utf16": ("k VARCHAR(40) CHARACTER SET utf16", strings(WIDE)),
    "utf32": ("k CHAR(40) CHARACTER SET utf32 COLLATE utf32_bin", strings(WIDE)),
    "koi8r": ("k VARCHAR(40) CHARACTER SET koi8r", strings(["", "a", "привет", "я", "Ж"])),
    "labels in gbk": ("k ENUM('你', 'b', '丂') CHARACTER SET gbk, k2 INT", [f"{n % 4}, {n}" for n in range(90)]),
    "date": ("k DATE", [f"'{2000 + n}-0{n % 10}-{n % 29:02}'" for n in range(70)] + ["'0000-00-00'", "'9999-12-31'"]),
    "datetime": ("k DATETIME(6)", [f"'2024-01-01 00:00:00.{n * 12345:06}'" for n in range(70)] + ["'0000-00-00'"]),
    "timestamp": (
        "k TIMESTAMP(3)",
        [f"'2024-03-31 0{n % 5}:00:00.{n:03}'" for n in range(70)] + ["0", "'1970-01-01 00:00:01'"],
    ),
    "time": (
        "k TIME(2)",
        [f"'{n * 11 - 400}:10:0{n % 10}.{n % 100:02}'" for n in range(80)] + ["'-838:59:59'", "'838:59:59'"],
    ),
    "year": ("k YEAR", [*map(str, range(1901, 1999)), "'0000'", "2155"]),
    "bit": ("k BIT(10)", [str(n * 7 % 1024) for n in range(120)]),
    "bit 64": ("k BIT(64)", numbers(0, 2**64 - 1)),
    "composite": (
        "k VARCHAR(9), k2 INT",
        [f"{word}, {n}" for word in strings(["a", "A", "b", "Bß"]) for n in range(-20, 20)],
    ),
    "texts equal by collation": (
        "k VARCHAR(9), k2 VARCHAR(9), k3 INT",
        [f"'{'aAáÁbB'[n * 7 % 6]}', '{'cCçdD'[n * 3 % 5]}{' ' * (n % 2)}', {n}" for n in range(300)],
    ),
    "zeros": ("k DOUBLE, k2 INT", [f"{('-0e0', '0e0', '-1e0', '1e0')[n % 4]}, {n}" for n in range(100)]),
    "enum set": (
        "k ENUM('z', 'y', 'x,\\'') NOT NULL, k2 SET('q', 'p', 'o'), k3 BIT(4), k4 INT",
        [f"{n % 4}, {n % 8}, {n % 15}, {n}" for n in range(300)],
    ),
    "many labels": (
        "k ENUM(" + ", ".join(f"'l{n * 37 % 2000}'" for n in range(2000)) + "), k2 INT",
        [f"{n * 13 % 2000 + 1}, {n}" for n in range(200)],
    ),
    "large set": ("k SET(" + ", ".join(f"'s{n}'" for n in range(64)) + ")", numbers(0, 2**63 - 1)),
    "large set and int": (
        "k SET(" + ", ".join(f"'s{n}'" for n in range(64)) + "), k2 INT",
        [f"{2**63 - 1 - n % 5}, {n}" for n in range(100)],
    ),
    "dates and bytes": (
        "k DATE, k2 VARBINARY(4), k3 TINYINT UNSIGNED",
        [f"'2024-01-0{n % 3}', X'{n % 7:02x}00', {n}" for n in range(200)],
    ),
    "quoted": ('`k``{x}" %s` INT', numbers(0, 1000)),
    "one value": ("k INT", ["5"]),
    "none": ("k INT", []),
}
ORDERS = {
    "falling": ("k INT, k2 VARCHAR(9)", "k DESC, k2 DESC"),
    "mixed": ("k INT, k2 VARCHAR(9)", "k DESC, k2"),
    "mixed other": ("k INT, k2 VARCHAR(9)", "k, k2 DESC"),
}


def fill(source: SourceServer, definition: str, values: list[str], key: str = "") -> int:
    columns = [column.strip().split(" ")[0] if "`" not in column else column[: column.rindex("`") + 1]
               for column in definition.split(", ") if column.strip().startswith(("k", "`"))]  # fmt: skip
    source.run(f"CREATE TABLE t ({definition}, payload INT, PRIMARY KEY ({key or ', '.join(columns)}))")
    random.Random(3).shuffle(values)
    if values:
        rows = ", ".join(f"({value})" for value in values)
        source.run(f"INSERT IGNORE INTO t ({', '.join(columns)}) VALUES {rows}")
    return int(source.run("SELECT COUNT(*) FROM t")[0][0])


def check(source: SourceServer, root: Path, count: int, rows: int) -> None:
    plan = plan_of(source, root, "t", rows)
    chunks = read_chunks(source, plan)
    assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (count // rows)
    found = [line for chunk in chunks for line in chunk]
    assert len(found) == len(set(found)) == count
    assert {len(bound) for bound in plan.bounds} <= {len(plan.key)}
    assert LoadPlan.read(plan.canonical(), "plan.json").canonical() == plan.canonical()


@pytest.mark.parametrize("name", KEYS)
def test_every_row_is_in_one_chunk(source: SourceServer, tmp_path: Path, name: str) -> None:
    definition, values = KEYS[name]
    count = fill(source, definition, list(values))
    assert count >= len(set(values)) * 0.7
    for rows in (1, 7, count + 1):
        check(source, tmp_path, count, max(rows, 1))


@pytest.mark.parametrize(("definition", "value"), [
    ("k UUID", "CONCAT('{n:02x}345678-9abc-{v}def-8000-0000000000', '{n:02x}')"),
    ("k INET4", "'{n}.0.{n}.0'"), ("k INET6", "'2001:{n}::{n}'"),
])  # fmt: skip
def test_addresses_and_ids_of_mariadb(source: SourceServer, tmp_path: Path, definition: str, value: str) -> None:
    if source.kind == "mysql":
        pytest.skip("MariaDB only")
    count = fill(source, definition, [value.format(n=n, v=n % 8) for n in range(90)])
    assert count == 90
    for rows in (1, 7, 100):
        check(source, tmp_path, count, rows)


@pytest.mark.parametrize("name", ORDERS)
def test_descending_keys(source: SourceServer, tmp_path: Path, name: str) -> None:
    definition, key = ORDERS[name]
    values = [f"{n % 9}, '{n * 7 % 101}'" for n in range(200)]
    count = fill(source, definition, values, key)
    check(source, tmp_path, count, 11)


@pytest.mark.parametrize(
    "options",
    ["PARTITION BY HASH (k2) PARTITIONS 5", "ENGINE=MyISAM", "ENGINE=MEMORY", "PARTITION BY KEY (k) PARTITIONS 3"],
)
def test_other_ways_to_keep_a_table(source: SourceServer, tmp_path: Path, options: str) -> None:
    values = ", ".join(f"('{n % 7}', {n})" for n in range(100))
    source.run(
        f"CREATE TABLE t (k VARCHAR(9), k2 INT, PRIMARY KEY (k, k2)) {options}", f"INSERT INTO t VALUES {values}"
    )
    check(source, tmp_path, 100, 9)


def test_a_unique_key_in_place_of_a_primary_one(source: SourceServer, tmp_path: Path) -> None:
    source.run(
        "CREATE TABLE t (a INT, b INT NOT NULL, c VARCHAR(9) NOT NULL, KEY i (b), UNIQUE KEY `u``q` (c, b))",
        "INSERT INTO t VALUES " + ", ".join(f"({n}, {n}, '{n % 7}')" for n in range(100)),
    )
    check(source, tmp_path, 100, 9)
    assert plan_of(source, tmp_path, "t", 9).index == "u`q"


def test_a_key_of_beginnings_is_one_chunk(source: SourceServer, tmp_path: Path) -> None:
    source.run(
        "CREATE TABLE t (a TEXT, b INT, PRIMARY KEY (a(3), b))",
        "INSERT INTO t VALUES " + ", ".join(f"('word {n}', {n})" for n in range(30)),
    )
    plan = plan_of(source, tmp_path, "t", 5)
    assert plan.bounds == ()
    assert len(read_chunks(source, plan)[0]) == 30


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_tables_whose_cascades_are_not_logged_are_refused(source: SourceServer, tmp_path: Path, key: str) -> None:
    source.run("CREATE TABLE p (id INT PRIMARY KEY)")
    source.run(f"CREATE TABLE t (id INT {key}, p INT, FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE)")
    source.run(f"CREATE TABLE u (id INT {key}, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE RESTRICT)")

    def load(table: str) -> None:
        if key:
            plan_of(source, tmp_path, table, 5)
        else:
            load_whole_table(spec_of(source, tmp_path), source.name(table), "a")

    load("u")
    if source.kind == "mysql":  # from 9.6 on
        load("t")
        return
    with pytest.raises(UnsupportedError, match="the log does not have all changes of the table") as caught:
        load("t")
    assert caught.value.where["table"] == f"{source.schema}.t"
    assert "RESTRICT" in caught.value.hint


EXPLAINED = {
    "int": ("k INT", [str(n * 3) for n in range(3000)]),
    "varchar and int": ("k VARCHAR(9), k2 INT", [f"'{n % 60}', {n}" for n in range(3000)]),
    "latin1": ("k VARCHAR(9) CHARACTER SET latin1", [f"'{n}'" for n in range(3000)]),
    "varbinary": ("k VARBINARY(9)", [f"'{n}'" for n in range(3000)]),
    "datetime": ("k DATETIME(3), k2 INT", [f"'2024-01-{n % 28 + 1} 10:00', {n}" for n in range(3000)]),
    "timestamp": ("k TIMESTAMP, k2 INT", [f"'2024-01-{n % 28 + 1} 10:00', {n}" for n in range(3000)]),
    "decimal": ("k DECIMAL(12,3)", [f"{n}.{n % 1000:03}" for n in range(3000)]),
    "double": ("k DOUBLE", [f"{n / 7}" for n in range(3000)]),
    "float": ("k FLOAT", [f"{n / 7}" for n in range(3000)]),
    "bit": ("k BIT(20)", [str(n) for n in range(3000)]),
    "year": ("k YEAR, k2 INT", [f"{1950 + n % 100}, {n}" for n in range(3000)]),
    "enum": ("k ENUM('e', 'd', 'c', 'b', 'a'), k2 INT", [f"{n % 5 + 1}, {n}" for n in range(3000)]),
    "set": ("k SET('d', 'c', 'b', 'a'), k2 INT", [f"{n % 16}, {n}" for n in range(3000)]),
    "three": ("k INT, k2 VARCHAR(9), k3 INT", [f"{n % 3}, '{n % 50}', {n}" for n in range(3000)]),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_server_finds_chunks_by_the_key(source: SourceServer, tmp_path: Path, name: str) -> None:
    count = fill(source, *EXPLAINED[name])
    source.run("ALTER TABLE t ADD KEY tempting (payload)", "ANALYZE TABLE t")
    plan = plan_of(source, tmp_path, "t", 300)
    middle = plan.chunks // 2
    traditional = "FORMAT=TRADITIONAL" if source.kind == "mysql" else ""
    with source.connected() as connection:
        statements = [chunk_query(plan, part) for part in chunk_conditions(connection, plan, middle)]
    for statement in statements:
        kinds = [str(value) for value in source.run(f"EXPLAIN {traditional} {statement}")[0]]
        assert {"range", "ref"} & set(kinds)
        assert "PRIMARY" in kinds
        assert "filesort" not in kinds[-1]
    # What the server reads for a chunk is the chunk, and for its bound no more.
    count_rows = f"SELECT COUNT(*) FROM t FORCE INDEX (PRIMARY) WHERE {range_condition(plan, *plan.chunk(middle))}"
    for statements_read in (statements, [count_rows]):
        counted = source.run("FLUSH STATUS", *statements_read, "SHOW SESSION STATUS LIKE 'Handler_read%'")
        assert sum(int(value) for _, value in counted) <= 300 + 10
    assert count == 3000
