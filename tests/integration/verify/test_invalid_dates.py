"""Invalid dates on real servers, which the warehouse has as NULL by the rules of their tables.

They are equal on both sides. A wrong value in such a column is still found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.rules import TableRule
from loader.pipeline.verification import TableVerification
from loader.source.schemas import read_schemas
from loader.verify.comparands import comparands_of
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.materialise.live_source import LiveSource, live_source
from tests.integration.verify.verified import by_table, verified

pytestmark = pytest.mark.integration

INVALID = (
    "0000-00-00", "0000-00-05", "0000-05-00", "2024-00-15", "2024-02-00", "2024-02-30", "2023-02-29", "1900-02-29",
    "2024-04-31", "9999-11-31",
)  # fmt: skip
VALID = ("0000-01-01", "0000-02-29", "0001-01-01", "1582-10-10", "2000-02-29", "2024-02-29", "2024-12-31", "9999-12-31")
STRICT = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,STRICT_ALL_TABLES'"  # ALTER TABLE is not followed otherwise
LENIENT = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"
ZERO = "0000-00-00 00:00:00"
COLUMNS = "d DATE, at DATETIME, fine DATETIME(3), ts TIMESTAMP NULL, tf TIMESTAMP(6) NULL"
TABLES = {
    "nulled": f"id INT PRIMARY KEY, {COLUMNS}",
    "texted": f"id INT PRIMARY KEY, {COLUMNS}",
    "bag": f"id DOUBLE, {COLUMNS}",  # Python completes the hashes of its rows
}
RULES = (
    TableRule(tables=("*.nulled",), on_misfit="null"),
    TableRule(tables=("*.texted",), on_misfit="text", mode="soft_delete"),
    TableRule(tables=("*.bag",), on_misfit="text"),
)


def rows(first: int) -> str:
    """The VALUES of a row for each date, with invalid times stamps and NULLs among them; numbered from `first` on."""
    stamps = [(f"'{ZERO}'", f"'{ZERO}.000000'"), ("'2024-02-29 01:02:03'", "'2038-01-19 03:14:07.999999'")]
    found = [
        f"({first + n}, '{day}', '{day} 23:59:59', '{day} 00:00:00.120', {', '.join(stamps[n % 2])})"
        for n, day in enumerate((*INVALID, *VALID))
    ]
    return ", ".join([*found, f"({first + len(found)}, NULL, NULL, NULL, NULL, NULL)"])


@pytest.fixture(params=["mysql", "mariadb"])
def dated(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[LiveSource]:
    """Tables with invalid dates that were loaded, and others that were merged."""
    with live_source(spark, request.getfixturevalue(f"{request.param}_server"), tmp_path) as live:
        live.settings = live.settings.model_copy(update={"rules": RULES})
        live.run(LENIENT, *(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()))
        live.run(LENIENT, *(f"INSERT INTO {name} VALUES {rows(100)}" for name in TABLES))
        live.load()
        live.run(LENIENT, *(f"INSERT INTO {name} VALUES {rows(200)}" for name in TABLES))
        live.run(
            LENIENT,
            *(f"UPDATE {name} SET d = '2024-01-31', tf = '{ZERO}' WHERE id = 100" for name in TABLES),
            *(f"UPDATE {name} SET d = '2024-06-31' WHERE id = 117" for name in TABLES),
            *(f"DELETE FROM {name} WHERE id = 101" for name in TABLES),
        )
        yield live


def damage(live: LiveSource, *statements: str) -> None:
    session = Warehouse(live.spark, live.settings.catalog).session
    for statement in statements:
        session.sql(statement.format(f"lake.{live.database}"))


def compared(live: LiveSource, *tables: str) -> dict[str, TableVerification]:
    return by_table(verified(live.spark, live.settings, tuple(f"{live.database}.{table}" for table in tables)))


@pytest.mark.sweep
def test_invalid_dates_are_equal_and_wrong_values_are_found(dated: LiveSource) -> None:
    amount = 2 * len((*INVALID, *VALID, None)) - 1
    found = compared(dated)
    assert {name: (one.error or one.samples or one.status, one.compared_rows) for name, one in found.items()} == dict.fromkeys(
        TABLES, ("equal", amount)
    )  # fmt: skip

    # ALTER TABLE rewrites no text in the warehouse. The server shows all dates with the new digits.
    wider = "MODIFY at DATETIME(3), MODIFY fine DATETIME(6), MODIFY ts TIMESTAMP(2) NULL"
    dated.run(STRICT, *(f"ALTER TABLE {name} {wider}" for name in ("texted", "bag")))
    dated.run(LENIENT, "INSERT INTO texted VALUES (300, NULL, '2024-02-30 00:00:00.5', NULL, NULL, NULL)")
    found = compared(dated, "texted", "bag")
    assert {name: one.error or one.samples or one.status for name, one in found.items()} == {
        "texted": "equal", "bag": "equal"
    }  # fmt: skip

    damage(
        dated,
        "UPDATE {}.nulled SET d = NULL WHERE id = 217",  # the server has 9999-12-31
        "UPDATE {}.nulled SET at = timestamp_ntz'2024-02-28 23:59:59' WHERE id = 205",  # the server has 30 February
        "UPDATE {}.nulled SET ts = timestamp'1970-01-01 00:00:00' WHERE id = 200",
        "UPDATE {}.texted SET d__text = '2024-02-31' WHERE id = 205",
        "UPDATE {}.texted SET at__text = NULL WHERE id = 204",
        "UPDATE {}.texted SET at__text = '2024-02-30 00:00:00.6' WHERE id = 300",
        "UPDATE {}.texted SET d = NULL, d__text = '2024-02-29' WHERE id = 215",  # a valid date as text
        "UPDATE {}.bag SET tf__text = '0000-00-00' WHERE id = 200",
        "UPDATE {}.bag SET fine = NULL WHERE id = 215",
    )
    found = compared(dated)
    assert {name: (one.error, one.differences) for name, one in found.items()} == {
        "nulled": (None, 6), "texted": (None, 8), "bag": (None, 4)
    }  # fmt: skip
    assert differing(found["nulled"], "205") == [{"at": (None, "2024-02-28 23:59:59")}]
    assert differing(found["texted"], "205") == [{"d__text": ("2024-02-30", "2024-02-31")}]
    assert differing(found["bag"], "215.0") == [{"fine": ("2024-02-29 00:00:00.120000", None)}]

    # A table that was loaded with `null` has NULL, which the rule `error` does not allow.
    dated.settings = dated.settings.model_copy(update={"rules": (TableRule(tables=("*.nulled",)), *RULES)})
    assert compared(dated, "nulled")["nulled"].differences == 2 * 29  # rows


def differing(found: TableVerification, key: str) -> list[dict[str, tuple[str | None, str | None]]]:
    """The values of both sides that differ in the samples of a row."""
    rows = [ast.literal_eval(sample.partition(": ")[2]) for sample in found.samples]
    theirs, ours = (row for row in rows if row["id"] == key)
    return [{name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]}]


def test_the_server_knows_invalid_dates_by_the_calendar(source: SourceServer) -> None:
    days = (*INVALID, *VALID)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, d DATE, at DATETIME(3), ts TIMESTAMP NULL)")
    for mode in ("ALLOW_INVALID_DATES", "ALLOW_INVALID_DATES,STRICT_ALL_TABLES"):
        values = ", ".join(f"({n}, '{day}', '{day} 01:02:03.004', NULL)" for n, day in enumerate(days))
        source.run(f"SET SESSION sql_mode = '{mode}'", "DELETE FROM t", f"INSERT INTO t VALUES {values}")
        source.run(LENIENT, f"UPDATE t SET ts = '{ZERO}' WHERE id = 0", "UPDATE t SET ts = '2001-01-01' WHERE id = 1")
        with source.connected() as connection:
            (schema,) = read_schemas(connection, [source.name("t")])
        expressions = ", ".join(one.server for one in comparands_of(schema, "text"))
        for session in ("", "TRADITIONAL", "ALLOW_INVALID_DATES", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES"):
            found = source.run(f"SET SESSION sql_mode = '{session}'", f"SELECT {expressions} FROM t ORDER BY id")
            assert [row[1:3] + row[4:6] for row in found] == [
                (None, None, day, f"{day} 01:02:03.004") if day in INVALID else (day, f"{day} 01:02:03.004", None, None)
                for day in days
            ]
            assert [(row[3], row[6]) for row in found[:3]] == [
                (None, ZERO),
                ("2001-01-01 00:00:00", None),
                (None, None),
            ]
