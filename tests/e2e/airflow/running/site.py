"""An Airflow with two sources, each on a server of its own, and one catalog: what faults may happen to.

The metadata of Airflow and the catalog are in PostgreSQL, each on a server of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.postgres import PASSWORD, PostgresServer, run_postgres
from infra.servers import start_server
from loader.error_page import anchor_of
from loader.errors import LoaderError
from loader.jars.resolve import jars_folder
from loader.spark.submit import java_program
from tests.e2e.airflow.running.processes import kill_with_children
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, part_of, running
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

_TESTS = Path(__file__).resolve().parents[3]
CRM_LOAD, CRM_DELTA = "crm.initial_load", "crm.delta"
_DOCS = "https://docs.example.org/"
_CRM = "CREATE DATABASE crm; CREATE TABLE crm.people (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))"


@dataclass
class Site:
    """The sources `shop` and `crm`, both loaded, whose DAGs run only when they are triggered.

    Attributes:
        java: a link to Java, which tasks start.
        schedulers: of which the newest runs.
    """

    airflow: Airflow
    shop: Loaded
    crm: Loaded
    catalog: PostgresServer
    java: Path
    schedulers: ExitStack
    _scheduler: subprocess.Popen[bytes] | None = None

    @property
    def scheduler(self) -> int:
        """The process of the scheduler."""
        assert self._scheduler
        return self._scheduler.pid

    def start_scheduler(self) -> None:
        self._scheduler = self.schedulers.enter_context(part_of(self.airflow, "scheduler"))

    def kill_scheduler(self) -> None:
        kill_with_children(self.scheduler)
        assert self._scheduler
        self._scheduler.wait()

    def failed(self, task: str, what: str, *, at_once: bool, crm_changes: bool = True, **conf: object) -> str:
        """Trigger the delta of the shop and the other source's, and return the run of the shop, which must fail.

        The grid shows the failed task, and which tasks wait for it. The log of the task ends with the error and what to
        do, without a traceback. The task has links to the page of the error and to the page of the source. The other
        source's run succeeds.

        Args:
            task: that fails.
            what: went wrong.
            at_once: whether no retry can help.
            crm_changes: whether the other source has changes.
            conf: of the run.
        """
        run = self.airflow.trigger(DELTA, **conf)
        other = self.change_crm() if crm_changes else self.airflow.trigger(CRM_DELTA)
        self.airflow.wait_for(DELTA, run, "failed")
        tasks = self.airflow.tasks(DELTA, run)
        assert {name: one["state"] for name, one in tasks.items()} == states(task)
        assert tasks[task]["try_number"] == (1 if at_once else 2)
        self.airflow.error(DELTA, run, task, what)
        links = self.airflow.links(run, task)
        assert links["Error page"] == f"{_DOCS}reference/errors.html#{anchor_of(LoaderError(what))}"
        assert str(links["Status of the source"]).endswith("/binlog-loader/source?name=shop")
        self.airflow.wait_for(CRM_DELTA, other, "success")
        return run

    def change_crm(self) -> str:
        """Change the other source, trigger its delta, and return the run."""
        self.crm.execute("INSERT INTO crm.people (name) VALUES ('new')")
        return self.airflow.trigger(CRM_DELTA)

    def healed(self, run: str, task: str) -> None:
        """Clear the failed task of a run of the shop: it succeeds, and so does the next run, with more changes."""
        tries = self.airflow.tasks(DELTA, run)[task]["try_number"]
        self.airflow.clear(run, task)
        self.airflow.wait_for(DELTA, run, "success", tries=tries + 1)
        self.runs()

    def runs(self) -> str:
        """Run a delta of the shop, after which nothing differs, and return it."""
        run = self.airflow.trigger(DELTA)
        self.airflow.wait_for(DELTA, run, "success")
        assert self.shop.differences() == NOTHING_DIFFERS
        return run


def states(failed: str) -> dict[str, str]:
    """Return what the grid shows of a delta whose task failed."""
    order = ("plan_interval", "extract", "materialise", "check_tables")
    place = order.index(failed)
    found = dict.fromkeys(order[:place], "success") | dict.fromkeys(order[place + 1 :], "upstream_failed")
    return found | {failed: "failed", "check_runway": "upstream_failed" if place == 0 else "success"}


@contextmanager
def two_sources(shop: Loaded) -> Iterator[Site]:
    """Configure the source `crm` next to a shop, start Airflow, and load both."""
    with (
        run_postgres() as database,
        run_postgres() as catalog,
        start_server("mysql", shop.home.parent / "crm") as server,
    ):
        crm = Loaded(server, shop.home, shop.jars)
        crm.execute(*_CRM.split(";"), "CREATE USER 'loader'@'%'", "GRANT ALL ON *.* TO 'loader'@'%'")
        _configure(shop, crm, catalog)
        airflow = Airflow(shop.home / "airflow", shop.config)
        java = shop.home / "java"
        found = java_program()
        assert found
        java.symlink_to(found.resolve().parents[1])
        jars = f"{jars_folder(_TESTS / 'jars.lock')}/*"  # with the driver of PostgreSQL
        airflow.env |= {"JAVA_HOME": str(java), "SPARK_DIST_CLASSPATH": jars}
        shop.env |= {"SPARK_DIST_CLASSPATH": jars}
        airflow.keep_metadata_in(database.uri)
        airflow.lose_tasks_soon()
        airflow.prepare("shop", "crm")
        airflow.replace_scheduler_soon()
        with running(airflow, "api-server", "dag-processor"), ExitStack() as schedulers:
            site = Site(airflow, shop, crm, catalog, java, schedulers)
            site.start_scheduler()
            _load(site)
            yield site


def _configure(shop: Loaded, crm: Loaded, catalog: PostgresServer) -> None:
    password = shop.home / "password"
    password.parent.mkdir(parents=True, exist_ok=True)
    password.write_text(PASSWORD)
    lake = {"type": "jdbc", "uri": catalog.uri, "path": f"file://{shop.home}/warehouse"}
    tables = ['properties = { "jdbc.user" = "postgres", "jdbc.schema-version" = "V1" }']
    tables += [f'secrets = {{ "jdbc.password" = "file:{password}" }}']
    shop.configure(warehouse="\n".join([f"{name} = {json.dumps(value)}" for name, value in lake.items()] + tables))
    airflow = 'airflow.retries = 1\nairflow.schedule = { delta = "", maintain = "" }\n'
    other = f'host = "{crm.server.host}"\nport = {crm.server.port}\nuser = "loader"\ntables.include = ["crm.*"]\n'
    text = shop.config.read_text(encoding="utf-8")
    shop.config.write_text(f'docs_url = "{_DOCS}"\n{text}{airflow}[sources.crm]\n{other}{airflow}', encoding="utf-8")


def _load(site: Site) -> None:
    dags = {LOAD: DELTA, CRM_LOAD: CRM_DELTA}
    for load, delta in dags.items():
        site.airflow.wait_until_known(delta)
        site.airflow.unpause(load)
        site.airflow.unpause(delta)
    for load, run in {load: site.airflow.trigger(load) for load in dags}.items():
        site.airflow.wait_for(load, run, "success")


def remount(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
