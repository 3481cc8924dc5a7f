"""Repairs from Airflow on a real server: what a person does with the form, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loader.cli.demo.dags import Airflow
from loader.errors import LoaderError
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.airflow_version import AIRFLOW

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process"),
    pytest.mark.sweep,
]


@pytest.fixture
def airflow(empty: Loaded) -> Iterator[Airflow]:
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log") as found:
        yield found


def test_a_source_is_repaired_by_forms(airflow: Airflow, empty: Loaded) -> None:
    airflow.run("shop.initial_load")
    empty.execute(
        "CREATE TABLE shop.dates (id INT PRIMARY KEY, day DATE)",
        "INSERT INTO shop.dates VALUES (1, '2026-01-01')",
        "SET SESSION sql_mode = ''",
        "INSERT INTO shop.dates VALUES (2, '0000-00-00')",
        *changes(1),
    )
    with pytest.raises(LoaderError, match="tables failed"):
        airflow.run("shop.delta")
    empty.execute("UPDATE shop.dates SET day = NULL")

    with pytest.raises(LoaderError, match="the form of the action release is wrong"):
        airflow.run("shop.repair", action="release")
    assert airflow.run("shop.repair", action="release", tables=["shop.dates"])["release"] == ["shop.dates"]
    again = airflow.run("shop.repair", action="load_again", tables=["shop.dates"])
    assert [table["status"] for table in again["load_tables"]["tables"] if table["table"] == "shop.dates"] == [
        "applied"
    ]
    assert again["restore"] is None
    interval = airflow.run("shop.delta")["plan_interval"]

    staged = empty.staged()
    lost = next(name for name in staged if f"/{interval['start_seqno']:020d}/" in name and name.endswith(".csv"))
    (empty.home / "staging" / lost).unlink()
    restored = airflow.run("shop.repair", action="restore", position=interval["start"])
    assert restored["restore"]["files"] == 1
    assert empty.staged()[lost] == staged[lost]

    findings = airflow.run("shop.check")["check_source"]
    assert {one["severity"] for one in findings} <= {"ok", "warning"}
    assert {"chain", "server", "store"} <= {one["name"] for one in findings}
    empty.execute(*changes(2))
    verified = airflow.run("shop.check", verify=True)["verify"]
    assert {table["table"]: table["status"] for table in verified["tables"]} == dict.fromkeys(
        ("shop.dates", *NOTHING_DIFFERS), "equal"
    )
    assert empty.differences() == NOTHING_DIFFERS
    empty.execute("SET SESSION sql_log_bin = 0", "DELETE FROM shop.reviews LIMIT 3")
    with pytest.raises(LoaderError, match="rows of 1 of 1 tables differ from the server"):
        airflow.run("shop.check", verify=True, tables=["shop.reviews"])
