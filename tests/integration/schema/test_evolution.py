"""Tables that are altered at random on real servers: what evolve makes of the log is what the server has.

LOADER_FUZZ_SEED is the seed, and LOADER_FUZZ_SECONDS how long it goes on for each server.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pymysql
import pytest

from loader.errors import UnsupportedError
from loader.model.position import Position
from loader.model.table import TableSchema
from loader.schema.changes import Altered
from loader.schema.evolution import STRICT, ColumnOrigin, ConstantOrigin, Evolution, Step, evolve
from loader.schema.history import SchemaHistory
from loader.schema.statement_reader import table_changes
from loader.source.schemas import read_schemas
from loader.staging.documents import Barrier
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Row, Source, Staged, name_of, table_rows
from tests.integration.schema.alters import MODES, Alters
from tests.integration.schema.test_type_changes import in_spark
from tests.integration.schema.types import all_types

pytestmark = [pytest.mark.integration, pytest.mark.timeout(0)]
SEED = os.environ.get("LOADER_FUZZ_SEED", "1")
SECONDS = float(os.environ.get("LOADER_FUZZ_SECONDS", "0"))
LEAST = 30
"""Times that evolve has to tell what became of a table."""

STATEMENTS_A_TABLE = 12


@dataclass
class Altering:
    """Rows of a table before and after statements that are followed by an insert; where all that stands in the log."""

    start: Position
    stop: Position
    old: TableSchema
    before: dict[str | None, Row]
    new: TableSchema
    after: dict[str | None, Row]


def schema_of(source: Source) -> TableSchema:
    with connected(source.address) as connection:
        return read_schemas(connection, [name_of(source, "t")])[0]


def rows_of(source: Source, schema: TableSchema) -> dict[str | None, Row]:
    at = [column.name for column in schema.columns].index("id")
    return {row[at]: row for row in table_rows(source, schema, ["id"])}


def made(source: Source, random: Random) -> Position:
    """A table with some columns and their values, and where the log begins to tell of it."""
    start = source.mark()
    types = random.sample(sorted(all_types(source.kind).items()), 5)
    key = random.choice(("PRIMARY KEY", "PRIMARY KEY", "UNIQUE", ""))
    columns = ", ".join(f"c{number} {declared}" for number, (declared, _) in enumerate(types))
    rows = ", ".join(
        f"({row}, {', '.join(random.choice((*values, 'NULL')) for _, values in types)})"
        for row in range(random.choice((1, 3, 6)))
    )
    source.run(
        "SET SESSION sql_mode = ''",
        "DROP TABLE IF EXISTS t",
        f"CREATE TABLE t (id INT NOT NULL {key}, {columns}) CHARACTER SET utf8mb4",
    )
    source.run(f"INSERT INTO t VALUES {rows}")
    return start


def altered(source: Source, alters: Alters, random: Random, count: Counter[str]) -> Altering | None:
    """One or more statements and a row after them; None when the server refuses what was made up."""
    old = schema_of(source)
    start, before, done = source.mark(), rows_of(source, old), 0
    schema = old
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        mode = random.choice(MODES)
        names = ["id", *(column.name for column in schema.columns if column.name != "id")]
        statement = alters.statement(mode, {name: str(schema.column(name)) for name in names})
        source.run(f"SET SESSION sql_mode = '{mode.name}'")
        try:
            source.run(statement)
            print(mode.name, statement)
        except pymysql.MySQLError:
            count["refused by the server"] += 1
            continue
        done += 1
        schema = schema_of(source)
    source.run("SET SESSION sql_mode = ''")
    try:
        after = rows_of(source, schema)
        source.run("INSERT INTO t (id) VALUES (1000 + (SELECT COUNT(*) FROM t x))")
    except pymysql.MySQLError:
        count["no row"] += 1
        return None
    count["statements"] += done
    return Altering(start, source.mark(), old, before, schema, after) if done else None


def steps_of(barriers: list[Barrier]) -> list[Step]:
    found = []
    for barrier in barriers:
        for change in table_changes(barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb):
            assert isinstance(change, Altered), f"{change}: {barrier.statement}"
            found.append(Step(change, bool(barrier.sql_mode & STRICT), barrier.position, barrier.mariadb))
    return found


def differences(one: Altering, told: Evolution) -> list[str]:
    """Values that are not what evolve says of them, but where it says that they may not be."""
    wrong = []
    olds, news = ([column.name for column in schema.columns] for schema in (one.old, one.new))
    if set(one.before) != set(one.after):
        origin = told.origins["id"]
        return [] if isinstance(origin, ColumnOrigin) and origin.numbered and "0" in one.before else ["other rows"]
    for key, row in one.after.items():
        for column, text in zip(one.new.columns, row, strict=True):
            origin = told.origins[column.name]
            if isinstance(origin, ConstantOrigin):
                same, was = origin.text == text, origin.text
            else:
                was = one.before[key][olds.index(origin.old)]
                same = in_spark(one.old.column(origin.old), was) == in_spark(column, text) or spared(origin, was)
            if not same:
                wrong.append(f"row {key}, column {column}: {text!r}, not {was!r} by {origin}")
    assert news == list(told.origins)
    return wrong


def spared(origin: ColumnOrigin, was: str | None) -> bool:
    if was is None:
        return origin.numbered or origin.dated
    spaces = origin.longest is not None and len(was) > origin.longest and was[-1].isspace()
    return spaces or (origin.numbered and was == "0")


def check(staged: Staged, one: Altering, count: Counter[str]) -> None:
    low, high = one.start.seqno(0), one.stop.seqno(0)
    barriers = [barrier for barrier in staged.manifest.barriers if low < barrier.seqno <= high]
    (file,) = (f for f in staged.manifest.files if low < f.max_seqno <= high)
    shown = "\n".join(f"{barrier.sql_mode:x} {barrier.statement}" for barrier in barriers)
    new = staged.manifest.schema_of(file.schema_id)
    assert new == one.new, shown
    try:
        told = evolve(one.old, steps_of(barriers), new)
    except UnsupportedError as error:
        count[f"refused: {error.what[:30]}"] += 1
        assert "does not agree" not in error.what, f"{shown}\n{error}"
        return
    count["told"] += 1
    assert told.schema == new
    assert not (wrong := differences(one, told)), "\n".join([shown, *wrong])
    assert evolve(one.old, steps_of(barriers), None).origins == told.origins


def check_history(history: SchemaHistory, staged: Staged, one: Altering, count: Counter[str]) -> None:
    """The history knows the schema of the last row, but for a longer text that CONVERT TO CHARACTER SET may have made."""
    for barrier in staged.manifest.barriers:
        changes = table_changes(barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb)
        history.apply(barrier.seqno, barrier.position, changes, barrier.statement)
    known = history.versions(one.new.name)[-1].schema
    if known is None:
        count[f"history: {history.latest(one.new.name).unreadable_why[:20]}"] += 1
        return
    count["history"] += 1
    assert known.key == one.new.key
    for found, column in zip(known.columns, one.new.columns, strict=True):
        kind = column.type if found.type.endswith("text") and column.type.endswith("text") else found.type
        count["open character sets"] += bool(column.charset and not found.charset)
        assert replace(found, charset=found.charset or column.charset, type=kind) == column


def altered_table(source: Source, folder: Path, random: Random, count: Counter[str]) -> None:
    """Make a table, and alter it a number of times."""
    since = made(source, random)
    alters = Alters(random, source.kind)
    history = SchemaHistory({source.schema: "utf8mb4"})
    for number in range(STATEMENTS_A_TABLE):
        if one := altered(source, alters, random, count):
            # What the log of MariaDB does not tell of columns is told by the server.
            ambiguous = [replace(one.new, key=()).as_dict()] if source.kind == "mariadb" else ()
            staged = source.staged(folder / str(number), since, one.stop, ambiguous=ambiguous)
            check(staged, one, count)
            check_history(history, staged, one, count)
            since = one.stop


def test_what_evolve_tells_is_what_the_server_has(source: Source, tmp_path: Path) -> None:
    count: Counter[str] = Counter()
    began, table = time.monotonic(), 0
    while time.monotonic() - began < SECONDS or count["told"] < LEAST:
        random = Random(f"{SEED}/{table}")
        print(f"seed {SEED}, table {table}")
        try:
            altered_table(source, tmp_path / str(table), random, count)
        except UnsupportedError as error:
            # Such tables are refused before anything is made of their changes.
            assert re.match("unique keys of unlimited length|labels in .* are not supported", error.what), error
        table += 1
    print(count)
    assert table < 20 or count["told"] > 3 * table, count
