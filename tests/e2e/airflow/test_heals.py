"""A real Airflow on a real server: what on-call does after a failure, and what clearing a task changes (nothing)."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from loader.secret import secret_variable
from tests.docs.pages import blocks
from tests.e2e.airflow.running.processes import Arguments
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running, until
from tests.e2e.airflow.running.statsd_receiver import StatsdReceiver, receiving
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.unit.pipeline.test_gauges import samples

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

_CHECK = "shop.check"
_MART = "orders_mart"  # a DAG of docs/how-to/airflow.md, which is scheduled on the table shop.orders
_RUNBOOK = "  read on: docs/runbook.md, section"
_CANARY = "c4n4ry-of-the-shop"
_LINEAGE, _SENT = "lineage.jsonl", "notifications.txt"
_LIMIT = 0.001  # minutes of lag
_GAUGES = "airflow.binlog_loader.shop."
_BEHIND = f"source shop is more than {_LIMIT:g} minutes behind its server"
_NOTHING_IS_BEHIND = {
    "up": 1, "server_up": 1, "lag_seconds": 0, "lag_bytes": 0, "staged_intervals": 0, "quarantined_tables": 0,
    "tables_behind": 0, "paused_tables": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def arguments() -> Iterator[Arguments]:
    with Arguments() as found:
        yield found


@pytest.fixture(scope="module")
def metrics() -> Iterator[StatsdReceiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def airflow(empty: Loaded, arguments: Arguments, metrics: StatsdReceiver) -> Iterator[Airflow]:
    """Airflow alone has the password of the shop, sends lineage and notifications to files, and metrics to StatsD."""
    found = Airflow(empty.home / "airflow", empty.config)
    found.env |= metrics.settings
    transport = {"type": "file", "log_file_path": str(empty.home / _LINEAGE), "append": True}
    found.env["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(transport)
    empty.configure(password="airflow:shop_db")
    notifier = {"file": str(empty.home / _SENT), "text": "{{ exception }} {{ ti }} {{ dag_run.conf }} {{ params }}"}
    fields = ", ".join(f"{name} = {json.dumps(value)}" for name, value in notifier.items())
    with empty.config.open("a", encoding="utf-8") as config:
        config.write(f"airflow.max_lag_minutes = {_LIMIT}\n")
        config.write(
            f'[sources.shop.airflow.notifier]\ntype = "tests.dags.notifiers.FileNotifier"\narguments = {{ {fields} }}\n'
        )
    empty.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{_CANARY}'")
    empty.env[secret_variable("shop_db")] = _CANARY  # for a person at the command line
    found.add_dag_file(next(block.text for block in blocks("python") if f'"{_MART}"' in block.text))
    found.prepare()
    with running(found):
        found.add_connection("shop_db", conn_type="binlog_source", password=_CANARY)
        yield found


@pytest.fixture(scope="module")
def followed(airflow: Airflow, empty: Loaded) -> str:
    """The shop is loaded, and the first run that the schedule made has brought changes to it; that run."""
    airflow.unpause(LOAD)
    airflow.wait_for(LOAD, airflow.trigger(LOAD), "success")
    empty.execute(*changes(1))
    airflow.unpause(DELTA)
    run = str(until("a scheduled run", lambda: airflow.get(f"{DELTA}/dagRuns")["dag_runs"])[0]["dag_run_id"])
    airflow.wait_for(DELTA, run, "success")
    return run


def test_a_run_tells_what_it_did(airflow: Airflow, followed: str, empty: Loaded) -> None:
    planned, merged = airflow.result(followed, "plan_interval"), airflow.result(followed, "materialise")
    applied = {table["table"]: table for table in merged["tables"] if table["status"] == "applied"}
    assert "shop.orders" in applied
    sums = [sum(table[name] for table in applied.values()) for name in ("inserts", "updates", "deletes")]
    rows = "{:,} inserted, {:,} updated, {:,} deleted".format(*sums)
    note = airflow.xcom(followed, "check_tables", "note")
    assert note.startswith(f"{planned['start']} to {planned['stop']}; {rows} in {len(applied)} tables; ")
    assert note.endswith(" bytes behind the server")

    events = airflow.asset_events(DELTA, followed)
    assert {event["name"]: event["extra"] for event in events} == {
        f"lake.{name}": {
            "source": "shop",
            "start": planned["start"],
            "stop": planned["stop"],
            "position": table["position"],
            "snapshot": str(table["snapshot"]),
            "inserts": table["inserts"],
            "updates": table["updates"],
            "deletes": table["deletes"],
        }
        for name, table in applied.items()
    }
    loaded = airflow.get(f"{LOAD}/dagRuns")["dag_runs"][0]["dag_run_id"]
    assert {event["name"] for event in airflow.asset_events(LOAD, loaded)} == {
        f"lake.{name}" for name in NOTHING_DIFFERS
    }

    for task in ("plan_interval", "extract", "materialise", "check_tables"):
        links = airflow.links(followed, task)
        assert str(links["Status of the source"]).endswith("/binlog-loader/source?name=shop")
        assert links["Error page"] is None

    found = samples(empty.loader("status", "--format", "prometheus").stdout)
    assert (found['binlog_loader_up{source="shop"}'], found['binlog_loader_server_up{source="shop"}']) == ("1", "1")
    deleted = found['binlog_loader_rows_total{source="shop",table="shop.orders",operation="delete"}']
    assert deleted == str(applied["shop.orders"]["deletes"]) != "0"
    size = found['binlog_loader_staged_bytes_total{source="shop",table="shop.orders"}']
    assert size == str(applied["shop.orders"]["bytes"]) != "0"
    number, offset = planned["stop"].removeprefix("binlog.").split(":")
    assert found['binlog_loader_log_number{source="shop",stage="applied"}'] == str(int(number))
    assert int(found['binlog_loader_log_position{source="shop",stage="applied"}']) >= int(offset)


def test_gauges_of_a_run(airflow: Airflow, followed: str, metrics: StatsdReceiver) -> None:
    """They are all gauges that StatsD gets, and arrive before the run ends, because its last task sends them."""
    sent = metrics.gauges(_GAUGES)
    kept = 30 * 86400  # seconds, by default
    assert kept - 3600 < sent.pop("runway_seconds") <= kept
    assert sent == _NOTHING_IS_BEHIND


def test_counters_of_runs(airflow: Airflow, followed: str, metrics: StatsdReceiver) -> None:
    """StatsD gets the sums over all tables. Work is counted once, by the task that did it."""
    loaded = airflow.get(f"{LOAD}/dagRuns")["dag_runs"][0]["dag_run_id"]
    read = airflow.get(f"{LOAD}/dagRuns/{loaded}/taskInstances/read_tables/xcomEntries/return_value")["value"]["tables"]
    staged, merged = airflow.result(followed, "extract"), airflow.result(followed, "materialise")["tables"]
    applied = [table for table in merged if table["status"] == "applied"]
    sent = metrics.counters(_GAUGES)
    assert sent["read_tables.rows"] == sum(table["rows"] for table in read) > 0
    assert sent["extract.rows"] == _records(staged["tables"]) > 0
    assert sent["extract.bytes"] == staged["bytes"] > 0
    assert sent["extract.staged_bytes"] == sum(table["bytes"] for table in staged["tables"]) > 0
    assert sent["materialise.staged_bytes"] == sum(table["bytes"] for table in applied) > 0
    assert sent["materialise.rows"] == _records(applied) == sent["extract.rows"]


def test_lineage_leads_from_the_server_to_the_warehouse(airflow: Airflow, followed: str, empty: Loaded) -> None:
    planned, merged = airflow.result(followed, "plan_interval"), airflow.result(followed, "materialise")
    applied = {table["table"]: table for table in merged["tables"] if table["status"] == "applied"}
    event = _lineage(empty, DELTA, followed, "materialise")
    facet = event["run"]["facets"]["binlogLoader_interval"]
    assert (facet["source"], facet["start"], facet["stop"]) == ("shop", planned["start"], planned["stop"])
    server = f"mysql://{empty.server.host}:{empty.server.port}"
    assert {(one["namespace"], one["name"]) for one in event["inputs"]} == {(server, name) for name in applied}
    folder = f"{empty.home}/warehouse"
    tables = {one["name"].removeprefix(f"{folder}/").replace("/", "."): one for one in event["outputs"]}
    assert {one["namespace"] for one in tables.values()} == {"file"}
    assert tables.keys() == applied.keys()
    for name, table in applied.items():
        facets = tables[name]["facets"]
        assert facets["version"]["datasetVersion"] == str(table["snapshot"])
        assert facets["binlogLoader_position"]["position"] == table["position"]
        written = table["rows_inserted"] or table["inserts"] + table["updates"]
        assert tables[name]["outputFacets"]["outputStatistics"]["rowCount"] == written
        columns = empty.columns(name)
        assert [field["name"] for field in facets["schema"]["fields"]] == [*columns, "_seqno", "_committed_at"]
        lineage = facets["columnLineage"]["fields"]
        assert {to: [one["field"] for one in source["inputFields"]] for to, source in lineage.items()} == {
            column: [column] for column in columns
        }
    loaded = airflow.get(f"{LOAD}/dagRuns")["dag_runs"][0]["dag_run_id"]
    made = _lineage(empty, LOAD, loaded, "load_tables")["outputs"]
    assert {one["name"] for one in made} == {f"{folder}/{name.replace('.', '/')}" for name in NOTHING_DIFFERS}


@pytest.mark.sweep
def test_a_comparison_triggers_the_dags_of_a_table(airflow: Airflow, followed: str, empty: Loaded) -> None:
    """The delta before the comparison has the changes, and no run of the schedule: it is paused."""
    airflow.patch(DELTA, is_paused=True)
    for dag in (_MART, _CHECK):
        airflow.wait_until_known(dag)
        airflow.unpause(dag)
    empty.execute("UPDATE shop.orders SET status = 'seen' LIMIT 3")
    run = airflow.trigger(_CHECK, verify=True)
    airflow.wait_for(_CHECK, run, "success")
    began = airflow.get(f"{_CHECK}/dagRuns/{run}")["start_date"]

    def triggered() -> list[str]:  # a run that began before was triggered by an earlier delta
        runs = airflow.get(f"{_MART}/dagRuns")["dag_runs"]
        return [str(one["dag_run_id"]) for one in runs if (one["start_date"] or "") > began]

    (mart,) = until("a run of the mart", triggered)
    airflow.wait_for(_MART, mart, "success")
    # Airflow cannot list an event while a run that it triggered has not started.
    (event,) = airflow.asset_events(_CHECK, run)
    assert (event["name"], event["extra"]["updates"]) == ("lake.shop.orders", 3)
    told = "\n".join(airflow.log(_MART, mart, "build"))
    assert f"{event['extra']['snapshot']} {event['extra']['position']}" in told
    (made,) = _lineage(empty, _CHECK, run, "verify")["outputs"]
    assert made["facets"]["version"]["datasetVersion"] == event["extra"]["snapshot"]
    airflow.unpause(DELTA)


@pytest.mark.sweep
def test_a_stopped_server(airflow: Airflow, followed: str, empty: Loaded) -> None:
    empty.execute(*changes(2))
    planned = empty.json("plan")
    empty.server.stop()
    run = airflow.trigger(DELTA)
    try:
        airflow.wait_for(DELTA, run, "failed")
    finally:
        empty.server.start()
    states = {name: task["state"] for name, task in airflow.tasks(DELTA, run).items()}
    assert states == dict.fromkeys(states, "upstream_failed") | {"plan_interval": "failed"}
    assert airflow.result(run, "plan_interval", "error")["what"] == "the server does not answer"
    told = airflow.log(DELTA, run, "plan_interval")[-5:]
    assert told[0].startswith("the server does not answer (")
    assert [line.partition(":")[0] for line in told[1:3]] == ["  why", "  what to do"]
    assert told[3:] == [f"{_RUNBOOK} The server was down, the password changed, the disk was full", "Task exited"]

    empty.execute(*changes(3))
    after = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, after, "success")
    assert not airflow.get(DELTA)["is_paused"]
    chosen = airflow.result(after, "plan_interval")
    # A run of the schedule may have been there before.
    assert chosen["start_seqno"] == planned["start_seqno"] or _contiguous(airflow, planned["start_seqno"])

    airflow.clear(run, "plan_interval")
    airflow.wait_for(DELTA, run, "success", tries=airflow.tasks(DELTA, run)["plan_interval"]["try_number"] + 1)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        airflow.result(run, "plan_interval", "error")
    assert _contiguous(airflow, planned["start_seqno"])
    assert empty.differences() == NOTHING_DIFFERS


def test_a_changed_password_and_a_wrong_form(airflow: Airflow, followed: str, empty: Loaded) -> None:
    empty.execute("ALTER USER 'loader'@'%' IDENTIFIED BY 'another'")
    run = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, run, "failed")
    airflow.error(DELTA, run, "plan_interval", "the server refused the user")
    assert airflow.tasks(DELTA, run)["plan_interval"]["try_number"] == 1
    empty.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{_CANARY}'")
    airflow.clear(run, "plan_interval")
    airflow.wait_for(DELTA, run, "success", tries=2)
    wrong = airflow.trigger(DELTA, lognmu=5)
    airflow.wait_for(DELTA, wrong, "failed")
    airflow.error(DELTA, wrong, "plan_interval", "the run's conf has unknown keys: lognmu")


@pytest.mark.sweep
def test_a_table_that_cannot_go_on_stops_no_other_one(
    airflow: Airflow, followed: str, empty: Loaded, metrics: StatsdReceiver
) -> None:
    empty.execute(
        "CREATE TABLE shop.dates (id INT PRIMARY KEY, day DATE)",
        "INSERT INTO shop.dates VALUES (1, '2026-01-01')",
        "SET SESSION sql_mode = ''",
        "INSERT INTO shop.dates VALUES (2, '0000-00-00')",
        *changes(4),
    )
    for number in (5, 6):  # the second run goes on as the first one did
        run = airflow.trigger(DELTA)
        airflow.wait_for(DELTA, run, "failed")
        states = {name: task["state"] for name, task in airflow.tasks(DELTA, run).items()}
        assert states == dict.fromkeys(states, "success") | {"check_tables": "failed"}
        told = airflow.log(DELTA, run, "check_tables")
        assert "1 of " in told[-8]
        assert "tables failed (tables shop.dates)" in told[-8]
        assert any("loader release shop.dates" in line for line in told[-8:])
        forms = [f"shop.repair with action = {action}, tables = shop.dates" for action in ("load_again", "release")]
        assert told[-3] == f"  in Airflow, in place of each command: trigger {'; trigger '.join(forms)}"
        page = airflow.links(run, "check_tables")["Page of the table"]
        assert str(page).endswith("/binlog-loader/table?source=shop&name=shop.dates")
        assert told[-2:] == [f"{_RUNBOOK} A table is quarantined, and others go on", "Task exited"]
        assert not airflow.get(DELTA)["is_paused"]
        stopped = _NOTHING_IS_BEHIND | {"quarantined_tables": 1, "tables_behind": 1}
        assert metrics.gauges(_GAUGES).items() >= stopped.items()
        sent = (empty.home / _SENT).read_text().splitlines()
        assert [line for line in sent if "quarantined" in line or "check_tables" in line] == [
            "table shop.dates of source shop is quarantined"
        ]
        empty.execute(*changes(number))

    empty.execute("UPDATE shop.dates SET day = NULL", "DROP TABLE shop.dates")
    run = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, run, "success")
    assert metrics.gauges(_GAUGES).items() >= _NOTHING_IS_BEHIND.items()
    assert empty.differences() == NOTHING_DIFFERS


@pytest.mark.sweep
def test_a_lag_is_told_once_until_it_is_over(airflow: Airflow, followed: str, empty: Loaded) -> None:
    airflow.patch(DELTA, is_paused=True)
    for one in airflow.get(f"{DELTA}/dagRuns?state=queued")["dag_runs"]:  # it would wait until the DAG goes on
        airflow.request("PATCH", f"/api/v2/dags/{DELTA}/dagRuns/{one['dag_run_id']}", {"state": "failed"})
    until("the end of all runs", lambda: not airflow.get(f"{DELTA}/dagRuns?state=running&state=queued")["dag_runs"])
    airflow.patch(DELTA, is_paused=False)
    before = _told(empty)
    for number in (8, 9):
        place = empty.json("status")["log_end"]
        empty.execute(*changes(number))
        for _ in range(2):
            airflow.wait_for(DELTA, airflow.trigger(DELTA, until=place), "success")
            assert _told(empty) - before == number - 7
        airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    assert _told(empty) - before == 2
    assert empty.differences() == NOTHING_DIFFERS


def _told(loaded: Loaded) -> int:
    """Return how often the lag was told."""
    return (loaded.home / _SENT).read_text(encoding="utf-8").splitlines().count(_BEHIND)


def test_what_has_nothing_to_do_starts_no_spark(airflow: Airflow, followed: str, empty: Loaded) -> None:
    airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    empty.execute(
        "CREATE DATABASE IF NOT EXISTS elsewhere", "CREATE TABLE elsewhere.t (id INT)", "DROP TABLE elsewhere.t"
    )
    airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    quiet = _newest_interval(airflow)
    again = airflow.trigger(LOAD)
    airflow.wait_for(LOAD, again, "success")
    assert airflow.result(quiet, "materialise")["published"]
    for dag, run, tasks in (
        (DELTA, quiet, ("extract", "materialise")),
        (LOAD, again, ("read_tables", "load_tables")),
    ):
        for task in tasks:
            folder = airflow.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
            assert not list(folder.glob("*.details.log"))  # where Spark's output would be
            assert len(airflow.log(dag, run, task)) < 20
    assert empty.differences() == NOTHING_DIFFERS


def test_a_cleared_extract_changes_nothing(airflow: Airflow, followed: str, empty: Loaded) -> None:
    before = airflow.result(followed, "extract"), _published(empty), empty.snapshots()
    assert before[0]["status"] == "staged"
    tried = airflow.tasks(DELTA, followed)["extract"]["try_number"]
    airflow.clear(followed, "extract")
    airflow.wait_for(DELTA, followed, "success", tries=tried + 1)
    after = airflow.result(followed, "extract")
    assert after == before[0] | {"status": "already"}
    assert (_published(empty), empty.snapshots()) == before[1:]


def test_the_password_is_nowhere(
    airflow: Airflow, followed: str, empty: Loaded, arguments: Arguments, metrics: StatsdReceiver
) -> None:
    """It is in no log, XCom, rendered field, lineage event or notification: they are files below the shop's home."""
    assert not [line for line in metrics.lines if _CANARY in line]
    fields = airflow.get(f"{DELTA}/dagRuns/{followed}/taskInstances/extract")["rendered_fields"]
    assert fields["source"] == "shop"
    assert _CANARY not in json.dumps(fields)
    assert "the server refused the user" in (empty.home / _SENT).read_text(encoding="utf-8")
    assert '"FAIL"' in (empty.home / _LINEAGE).read_text(encoding="utf-8")
    assert any("materialise_job.py" in one for one in arguments.seen)
    assert not [one for one in arguments.seen if _CANARY in one]
    pages = [airflow.page(f"/binlog-loader/{place}") for place in ("", "source?name=shop")]
    assert "shop.orders" in pages[1]
    assert not [page for page in pages if _CANARY in page]
    assert _CANARY not in empty.loader("status", "--format", "prometheus").stdout
    found = [file for file in empty.home.rglob("*") if file.is_file() and _CANARY.encode() in file.read_bytes()]
    assert found == []


def _lineage(loaded: Loaded, dag: str, run: str, task: str) -> dict[str, Any]:
    """The event of the success of a task."""
    lines = (loaded.home / _LINEAGE).read_text(encoding="utf-8").splitlines()
    for event in map(json.loads, lines):
        started = event["run"]["facets"].get("airflow", {}).get("dagRun", {}).get("run_id")
        if (event["job"]["name"], event["eventType"], started) == (f"{dag}.{task}", "COMPLETE", run):
            return dict(event)
    raise AssertionError(f"no event of {dag}.{task}")


def _records(tables: list[dict[str, Any]]) -> int:
    return sum(table[name] for table in tables for name in ("inserts", "updates", "deletes"))


def _published(loaded: Loaded) -> dict[str, bytes]:
    return {name: data for name, data in loaded.staged().items() if name.endswith("published.json")}


def _newest_interval(airflow: Airflow) -> str:
    """Return the run that planned the newest interval; the schedule may have started it before a trigger did."""

    def ended() -> list[str]:
        runs = airflow.get(f"{DELTA}/dagRuns?order_by=-run_after&limit=5")["dag_runs"]
        done = {run["state"] for run in runs} <= {"success", "failed"}
        return [str(run["dag_run_id"]) for run in runs if done and run["state"] == "success"]

    planned = {run: airflow.result(run, "plan_interval") for run in until("the end of all runs", ended)}
    newest = max(interval["stop_seqno"] for interval in planned.values())
    run = next(name for name, interval in planned.items() if interval["new"] and interval["stop_seqno"] == newest)
    airflow.wait_for(DELTA, run, "success")
    return run


def _contiguous(airflow: Airflow, start: int) -> bool:
    """Whether the intervals from `start` on follow each other. Those of scheduled runs count as well."""
    runs = [run["dag_run_id"] for run in airflow.get(f"{DELTA}/dagRuns")["dag_runs"] if run["state"] == "success"]
    intervals = [airflow.result(run, "plan_interval") for run in runs]
    found = {(one["start_seqno"], one["stop_seqno"]) for one in intervals if one["start_seqno"] >= start}
    chain = sorted(found)
    return all(first[1] == second[0] for first, second in pairwise(chain))
