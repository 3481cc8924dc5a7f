"""Faults that a real Airflow meets, by its REST API: what the grid and the log show, and that clearing heals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.error
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.airflow.running.processes import drivers, kill_driver, kill_worker
from tests.e2e.airflow.running.server import DELTA, Airflow, until
from tests.e2e.airflow.running.site import CRM_DELTA, Site, remount, states, two_sources
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]


@pytest.fixture(scope="module")
def site(empty: Loaded) -> Iterator[Site]:
    with two_sources(empty) as found:
        yield found


def test_a_changed_password(site: Site) -> None:
    site.shop.execute(*changes(1), "ALTER USER 'loader'@'%' IDENTIFIED BY 'changed'")
    run = site.failed("plan_interval", "the server refused the user", at_once=True)
    site.shop.execute("ALTER USER 'loader'@'%' IDENTIFIED BY ''")
    site.healed(run, "plan_interval")


def test_a_stopped_server(site: Site) -> None:
    site.shop.execute(*changes(2))
    site.shop.server.stop()
    try:
        run = site.failed("plan_interval", "the server does not answer", at_once=False)
    finally:
        site.shop.server.start()
    site.healed(run, "plan_interval")


def test_a_server_that_hangs(site: Site) -> None:
    """It takes the connection, and never answers. The time limit of the task is shorter than that of the connection."""
    site.shop.execute(*changes(11))
    text = site.shop.config.read_text(encoding="utf-8")
    limited = "airflow.retries = 1\nairflow.timeout_hours = { delta = 0.008 }\n"
    site.shop.config.write_text(text.replace("airflow.retries = 1\n", limited, 1), encoding="utf-8")
    server = site.shop.server.pid
    assert server
    os.kill(server, signal.SIGSTOP)
    try:
        run = site.failed("plan_interval", "the task took longer than its time limit", at_once=False)
    finally:
        os.kill(server, signal.SIGCONT)
        site.shop.config.write_text(text, encoding="utf-8")
    other = site.airflow.get(f"{CRM_DELTA}/dagRuns?order_by=-run_after&limit=1")["dag_runs"][0]
    assert other["end_date"] < site.airflow.get(f"{DELTA}/dagRuns/{run}")["end_date"]  # it did not wait
    told = site.airflow.log(DELTA, run, "plan_interval")
    assert "  why: it was stopped after 0:00:28.800000 " in "\n".join(told)
    (details,) = (line.removeprefix("  details: ") for line in told if line.startswith("  details: "))
    assert "pymysql" in Path(details).read_text(encoding="utf-8")
    site.healed(run, "plan_interval")


def test_a_wrong_form(site: Site) -> None:
    site.shop.execute(*changes(3))
    site.failed("plan_interval", "the run's conf has unknown keys: lognmu", at_once=True, lognmu=5)
    site.failed("plan_interval", "'yesterday?' is not a place in a log", at_once=True, until="yesterday?")
    site.runs()


def test_a_wrong_configuration(site: Site) -> None:
    """Airflow lists one import error, which names the wrong key, and starts no run. The right key heals."""
    site.shop.execute(*changes(15))
    text, file = site.shop.config.read_text(encoding="utf-8"), site.airflow.get(DELTA)["file_token"]
    site.shop.config.write_text(text.replace("[sources.crm]", "[sources.crm]\npassword_of_user = 1"), encoding="utf-8")
    try:
        (error,) = _import_errors(site.airflow, file, 1)
        assert "sources.crm.password_of_user" in error["stack_trace"]
        with pytest.raises(urllib.error.HTTPError, match=r"40[04]"):
            site.airflow.trigger(DELTA)
    finally:
        site.shop.config.write_text(text, encoding="utf-8")
        assert _import_errors(site.airflow, file, 0) == []
        for dag in (DELTA, CRM_DELTA):
            until(f"{dag} to be usable", lambda dag=dag: not site.airflow.get(dag)["is_stale"])
    site.runs()


def _import_errors(airflow: Airflow, file: str, count: int) -> list[dict[str, Any]]:
    """Let Airflow parse the DAG file again, and return its import errors once there are so many."""
    airflow.request("PUT", f"/api/v2/parseDagFile/{file}")

    def found() -> list[list[dict[str, Any]]]:
        errors = airflow.request("GET", "/api/v2/importErrors")["import_errors"]
        return [errors] if len(errors) == count else []

    return until("the import errors", found)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_store(site: Site, tmp_path: Path) -> None:
    site.shop.execute(*changes(5))
    start = site.shop.json("plan", "--source", "shop")["start_seqno"]
    folder = next((site.shop.home / "staging").glob(f"shop/*/{start:020d}"))
    # The plan is there; the rest of the interval's folder gets a disk of its own.
    plan = (folder / "plan.json").read_bytes()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (folder / "plan.json").write_bytes(plan)
        run = site.failed("extract", "the staging store failed", at_once=False)
        remount(folder, "64m")
        site.healed(run, "extract")
        shutil.copytree(folder, tmp_path / "kept")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    shutil.copytree(tmp_path / "kept", folder, dirs_exist_ok=True)


def test_no_java(site: Site) -> None:
    site.shop.execute(*changes(6))
    java = site.java.readlink()
    site.java.unlink()
    try:
        # A source without changes needs no Spark.
        run = site.failed("materialise", "no Java was found", at_once=True, crm_changes=False)
    finally:
        site.java.symlink_to(java)
    site.healed(run, "materialise")


def test_a_catalog_that_is_down(site: Site) -> None:
    site.shop.execute(*changes(7))
    site.catalog.stop()
    try:
        run = site.failed(
            "materialise", "the database of the catalog does not answer", at_once=False, crm_changes=False
        )
    finally:
        site.catalog.start()
    site.healed(run, "materialise")


def test_a_killed_driver(site: Site) -> None:
    site.shop.execute(*changes(8))
    run = site.airflow.trigger(DELTA)
    until("Spark to run", lambda: drivers(site.airflow))
    other = site.change_crm()
    kill_driver(site.airflow)
    site.airflow.wait_for(CRM_DELTA, other, "success")
    site.airflow.wait_for(DELTA, run, "success")
    assert site.airflow.tasks(DELTA, run)["materialise"]["try_number"] == 2
    told = site.airflow.log(DELTA, run, "materialise", attempt=1)
    assert "the Spark job ended without a result (job materialise)" in told
    assert told[-1] == "Task exited"
    site.runs()


def test_a_poisoned_table(site: Site) -> None:
    """A release by the form of the repair, then a cleared task, as the runbook says."""
    site.shop.execute(
        "CREATE TABLE shop.dates (id INT PRIMARY KEY, day DATE)",
        "SET SESSION sql_mode = ''",
        "INSERT INTO shop.dates VALUES (1, '2026-01-01'), (2, '0000-00-00')",
        *changes(12),
    )
    other, run = site.change_crm(), site.airflow.trigger(DELTA)
    site.airflow.wait_for(DELTA, run, "failed")
    site.airflow.wait_for(CRM_DELTA, other, "success")
    assert {name: one["state"] for name, one in site.airflow.tasks(DELTA, run).items()} == states("check_tables")
    assert any("loader release shop.dates" in line for line in site.airflow.log(DELTA, run, "check_tables"))
    site.shop.execute("UPDATE shop.dates SET day = NULL WHERE id = 2", *changes(13))
    site.airflow.unpause("shop.repair")
    released = site.airflow.trigger("shop.repair", action="release", tables=["shop.dates"])
    site.airflow.wait_for("shop.repair", released, "success")
    following = site.airflow.trigger(DELTA)
    site.airflow.wait_for(DELTA, following, "success")
    site.airflow.clear(run, "check_tables")
    site.airflow.wait_for(DELTA, run, "success", tries=site.airflow.tasks(DELTA, run)["check_tables"]["try_number"] + 1)
    assert site.shop.differences(("shop.dates",)) == {"shop.dates": 0}
    site.shop.execute("DROP TABLE shop.dates")
    site.runs()


def test_a_lost_worker(site: Site) -> None:
    site.shop.execute(*changes(9))
    run = site.airflow.trigger(DELTA)
    until("Spark to run", lambda: drivers(site.airflow))
    other = site.change_crm()
    kill_worker(site.airflow, site.scheduler)
    site.airflow.wait_for(CRM_DELTA, other, "success")
    site.airflow.wait_for(DELTA, run, "success")
    assert site.airflow.tasks(DELTA, run)["materialise"]["try_number"] == 2
    assert site.shop.differences() == NOTHING_DIFFERS
    site.runs()


def test_a_killed_scheduler(site: Site) -> None:
    """Its tasks end with it. Until another one starts, the grid shows them as running. Then the runs of both sources end."""
    site.shop.execute(*changes(14))
    run, other = site.airflow.trigger(DELTA), site.change_crm()
    until("Spark to run", lambda: drivers(site.airflow))
    site.kill_scheduler()
    found = {name: one["state"] for name, one in site.airflow.tasks(DELTA, run).items()}
    assert (found["plan_interval"], found["extract"], found["materialise"]) == ("success", "success", "running")
    site.start_scheduler()
    site.airflow.wait_for(DELTA, run, "success")
    site.airflow.wait_for(CRM_DELTA, other, "success")
    assert site.airflow.tasks(DELTA, run)["materialise"]["try_number"] == 2
    assert site.shop.differences() == NOTHING_DIFFERS
    site.runs()


def test_runs_at_once(site: Site) -> None:
    site.shop.execute(*changes(10))
    runs = [site.airflow.trigger(DELTA) for _ in range(2)]
    until("the first run", lambda: site.airflow.get(f"{DELTA}/dagRuns/{runs[0]}")["state"] == "running")
    assert site.airflow.get(f"{DELTA}/dagRuns/{runs[1]}")["state"] == "queued"
    done = site.shop.json("run", "--source", "shop")  # and a person at the command line
    for run in runs:
        site.airflow.wait_for(DELTA, run, "success")
    assert all(table["status"] != "failed" for table in done["materialise"]["tables"])
    assert site.shop.differences() == NOTHING_DIFFERS
    listed = site.shop.json("intervals", "--source", "shop")
    assert {one["state"] for one in listed} == {"applied"}
    assert all(first["stop"] == second["start"] for first, second in pairwise(listed))


def test_an_old_run_that_is_cleared_changes_nothing(site: Site) -> None:
    query = f"{DELTA}/dagRuns?order_by=run_after&state=success&limit=1"
    (old,) = site.airflow.get(query)["dag_runs"]
    run = old["dag_run_id"]
    site.runs()
    before = site.airflow.result(run, "plan_interval"), site.shop.staged(), site.shop.snapshots()
    tries = site.airflow.tasks(DELTA, run)["plan_interval"]["try_number"]
    site.airflow.clear(run, "plan_interval")
    site.airflow.wait_for(DELTA, run, "success", tries=tries + 1)
    again = site.airflow.result(run, "plan_interval")
    assert again["listed"]["tables"] == []
    of_the_moment = {"new": None, "runway": None, "listed": None}
    assert {**again, **of_the_moment} == {**before[0], **of_the_moment}
    assert (site.shop.staged(), site.shop.snapshots()) == before[1:]
    site.runs()


def test_a_purged_log(site: Site, tmp_path: Path) -> None:
    shop = site.shop
    shop.execute(*changes(4), "FLUSH BINARY LOGS")
    planned = shop.json("plan", "--source", "shop")
    archive = tmp_path / "archive"
    archive.mkdir()
    for file in shop.server.log_dir.glob("binlog.[0-9]*"):
        shutil.copy(file, archive)
    shop.execute(f"PURGE BINARY LOGS TO '{planned['stop'].partition(':')[0]}'")
    run = site.failed("plan_interval", "the server purged a log file that is still needed", at_once=True)
    text = shop.config.read_text(encoding="utf-8")
    assert text.count("part_bytes") == 1
    archived = f'log_archive = "{archive}"\npart_bytes'
    shop.config.write_text(text.replace("part_bytes", archived), encoding="utf-8")
    site.healed(run, "plan_interval")
    shop.config.write_text(text, encoding="utf-8")
