"""Airflow in a home of its own, set up before anything imports it; a source with staged documents; no Spark."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from jinja2 import Environment, StrictUndefined

from loader.errors import DataError
from loader.model.table import Column, TableName, TableSchema
from loader.staging.chain import PlanChain
from loader.staging.documents import (
    Barrier,
    Generation,
    Identity,
    IncompleteTable,
    Manifest,
    Mark,
    Plan,
    StagedFile,
    TableFilter,
)
from loader.staging.layout import load_folder, part_key
from loader.staging.notes.quarantine import Quarantines
from loader.store.registry import open_store

IDENTITY = Identity(kind="mysql", version="9.7.0", server_id=1, uuid="e3f05a61")

_HOME = Path(tempfile.mkdtemp(prefix="loader-airflow-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)  # it may be in a folder that is removed before


@contextmanager
def _airflow_home() -> Iterator[None]:
    """Not for longer than needed: other tests start an Airflow of their own, which would inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AIRFLOW_HOME": str(_HOME),
            "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).resolve().parents[2] / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME}/airflow.db",
        }.items():
            patch.setenv(name, value)
        yield


with _airflow_home():
    from airflow.providers.apache.spark.hooks import spark_submit
    from airflow.utils.db import initdb

    from loader.airflow.versions import open_dag_bag


@pytest.fixture(scope="module")
def airflow_db() -> Iterator[None]:
    with _airflow_home():
        initdb()
        yield


class Configure(Protocol):
    """Writes the configuration, and parses the DAG file with it."""

    def __call__(self, sources: str | None, *, parse: bool = True) -> Any: ...


def source_table(name: str) -> str:
    """A source of a configuration; keys of it may follow."""
    return f'[sources.{name}]\nhost = "127.0.0.1"\nuser = "loader"\ntables.include = ["shop.*"]\n'


_PLACES = '[staging]\nroot = "file:///staging"\n[warehouse]\npath = "/warehouse"\n[spark]\njars = "/jars"\n'


@pytest.fixture
def configured(airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    def configure(sources: str | None, *, parse: bool = True) -> Any:
        file = tmp_path / "loader.toml"
        if sources is not None:
            file.write_text(_PLACES + sources, encoding="utf-8")
        monkeypatch.setenv("LOADER_CONFIG", str(file))
        return open_dag_bag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"] if parse else tmp_path / "none")

    return configure


@pytest.fixture(scope="module")
def dags(airflow_db: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The DAGs of one source with the default settings."""
    file = tmp_path_factory.mktemp("configuration") / "loader.toml"
    file.write_text(_PLACES + source_table("shop"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADER_CONFIG", str(file))
        return open_dag_bag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])


@dataclass
class Site:
    """A configured source `shop` whose log was planned from :4 to :100, with nothing staged."""

    folder: Path
    generation: Generation
    plan: Plan
    chain: PlanChain

    @property
    def jars(self) -> Path:
        return self.folder / "jars"

    @property
    def interval(self) -> dict[str, Any]:
        return {
            "start_seqno": self.plan.start_seqno,
            "stop_seqno": self.plan.stop_seqno,
            "through_seqno": self.plan.stop_seqno,
        }

    def configure(self, password: str = "", secrets: str = "", warehouse: str = "warehouse", conf: str = "") -> None:
        (self.folder / "loader.toml").write_text(f"""
            [staging]
            root = "file://{self.folder}/staging"
            [warehouse]
            path = "file://{self.folder}/{warehouse}"
            secrets = {{ {secrets} }}
            [spark]
            jars = "{self.jars}"
            conf = {{ {conf} }}
            [sources.shop]
            host = "127.0.0.1"
            port = 1
            user = "loader"
            password = "{password}"
            tables = {{ include = ["shop.*"] }}
        """)

    def stage(self, left_out: tuple[IncompleteTable, ...] = (), committed_at: str = "") -> None:
        self.chain.publish(_manifest(self.plan, left_out=left_out, committed_at=committed_at))

    def follow_up(self, stop: str, change: str = "") -> Plan:
        """Plan and stage another interval, with something that a merge has to look at."""
        plan = self.chain.extend(self.plan.model_copy(update={"start": self.plan.stop, "stop": stop}))
        seqno, place = plan.stop_seqno, plan.stop
        changes: dict[str, dict[str, Any]] = {
            "barrier": {"barriers": (_barrier(seqno, place),)},
            "left out": {"left_out": (_left_out(seqno, place),)},
            "rows": _rows(self.chain.folder(plan.generation, plan.start_seqno), seqno),
        }
        self.chain.publish(_manifest(plan, **changes.get(change, {})))
        if change == "loaded since":
            schema = TableSchema(TableName("shop", "new"), (), ())
            load = _manifest(plan, schemas={schema.schema_id: schema.as_dict()})
            key = f"{load_folder('shop', '0001', schema.name)}/{plan.start_seqno:020d}/manifest.json"
            self.chain.store.create(key, load.canonical())
        return plan

    def quarantine(self, table: str) -> None:
        error = DataError("a value does not fit", hint="look at it", table=table).as_dict()
        quarantines = Quarantines(self.chain.store, "shop")
        quarantines.begin(TableName.parse(table), error, None, (self.plan.stop, self.plan.stop_seqno))

    def release(self, table: str) -> None:
        quarantines = Quarantines(self.chain.store, "shop")
        quarantines.end(quarantines.require(TableName.parse(table)))


def _barrier(seqno: int, place: str) -> Barrier:
    statement = "CREATE TABLE shop.new (a INT)"
    return Barrier(
        seqno=seqno,
        position=place,
        statement=statement,
        database="shop",
        sql_mode=0,
        mariadb=False,
        tables=("shop.new",),
    )


def _left_out(seqno: int, place: str) -> IncompleteTable:
    return IncompleteTable(table="shop.orders", seqno=seqno, position=place, at=place, what="not known", why="lost")


def _rows(folder: str, seqno: int) -> dict[str, Any]:
    """A staged file with one record of that seqno, and its schema."""
    schema = TableSchema(TableName("shop", "orders"), (Column("id", "int"),), ("id",))
    file = StagedFile(
        key=part_key(folder, "a", schema.name, schema.schema_id, "000001-0000"),
        schema_name="shop",
        table="orders",
        schema_id=schema.schema_id,
        inserts=1,
        updates=0,
        deletes=0,
        bytes=3,
        sha256=hashlib.sha256(b"abc").hexdigest(),
        min_seqno=seqno,
        max_seqno=seqno,
    )
    return {"files": (file,), "schemas": {schema.schema_id: schema.as_dict()}}


def _manifest(plan: Plan, **more: Any) -> Manifest:
    return Manifest(
        source="shop",
        generation="0001",
        identity=IDENTITY,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        loader_version="0",
        **{"files": (), "schemas": {}, **more},
    )


@pytest.fixture
def site(tmp_path: Path, airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> Site:
    chain = PlanChain(open_store(f"file://{tmp_path}/staging"), "shop")
    mark = Mark(log="first event", last=0, event="")
    generation = chain.begin(
        Generation(source="shop", name="0001", identity=IDENTITY, start="binlog.000001:4", mark=mark)
    )
    plan = chain.extend(
        Plan(
            source="shop",
            generation="0001",
            identity=IDENTITY,
            start="binlog.000001:4",
            stop="binlog.000001:100",
            shift=0,
            tables=TableFilter(include=("shop.*",)),
        )
    )
    found = Site(tmp_path, generation, plan, chain)
    found.jars.mkdir()
    (found.jars / "iceberg.jar").touch()
    found.configure()
    monkeypatch.setenv("LOADER_CONFIG", str(tmp_path / "loader.toml"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setattr("loader.pipeline.jobs.begin", lambda _: generation)  # asks the server otherwise
    monkeypatch.setattr("loader.pipeline.chain.table_registry.describe_tables", lambda *_: None)  # as it does
    monkeypatch.setattr("loader.airflow.finished_work.find_staged_loads", lambda _: None)  # as it does
    return found


@dataclass
class SparkSubmit:
    """Stands for the program: notes what it was started with, and ends as it is told."""

    result: dict[str, Any] | None = field(default_factory=lambda: {"tables": []})
    exit_code: int = 0
    output: list[str] = field(default_factory=list)
    argv: list[str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    def __call__(self, argv: list[str], env: dict[str, str] | None = None, **_: object) -> SparkSubmit:
        self.argv, self.env = argv, dict(env if env is not None else os.environ)
        shipped = [option.partition("=")[2] for option in argv if option.startswith("spark.yarn.dist.files=")]
        self.spec = json.loads(Path((*shipped, argv[argv.index("--spec") + 1])[0]).read_text())
        if self.result is not None:
            self._leave(argv[argv.index("--result") + 1], json.dumps(self.result).encode())
        return self

    def _leave(self, result: str, data: bytes) -> None:
        argv = self.argv or []
        if "--store" in argv:
            assert open_store(argv[argv.index("--store") + 1]).create(result, data)
        else:
            Path(result).write_bytes(data)

    @property
    def stdout(self) -> list[str]:
        return self.output

    def wait(self) -> int:
        return self.exit_code

    def poll(self) -> int:
        return self.exit_code


@pytest.fixture
def spark_submit_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkSubmit:
    """No Spark, on a worker with the configuration of a YARN."""
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "yarn-site.xml").touch()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    program = SparkSubmit()
    monkeypatch.setattr(spark_submit.subprocess, "Popen", program)
    return program


@dataclass
class Task:
    """Enough of a running task's context, and the XComs it pushed."""

    conf: dict[str, Any] = field(default_factory=dict)
    params: tuple[str, ...] = ("source",)
    xcoms: dict[str, Any] = field(default_factory=dict)
    dag_id: str = "shop.delta"
    run_id: str = "manual__1"
    task_id: str = "task"
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 5
    max_consecutive_failed_dag_runs: int = 0
    outlets: list[Any] = field(default_factory=list)
    form: dict[str, Any] = field(default_factory=dict)
    triggering_user_name: str | None = None
    run_type: str = "manual"
    logical_date: datetime | None = None
    execution_timeout: timedelta = timedelta(hours=2)
    killed: int = 0
    render_template_as_native_obj: bool = False

    def xcom_push(self, key: str, value: object) -> None:
        self.xcoms[key] = value

    def on_kill(self) -> None:
        self.killed += 1

    def xcom_pull(self, *, task_ids: str, key: str) -> object:
        """Return what any task of the run pushed."""
        return self.xcoms.get(key)

    def get_template_env(self, **_: object) -> Environment:
        """Of its DAG, for templates of notifiers."""
        return Environment(undefined=StrictUndefined)  # noqa: S701 - texts

    @property
    def context(self) -> Any:
        return {"ti": self, "dag": self, "dag_run": self, "task": self}


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("AIRFLOW__LOGGING__BASE_LOG_FOLDER", str(tmp_path / "logs"))
    return Task()
