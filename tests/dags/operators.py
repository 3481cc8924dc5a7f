"""Operators on a site, and what became of their tasks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import loader
from loader.airflow.operators import LoaderSparkOperator, UseCase
from loader.airflow.reports.errors import TaskFailed
from loader.staging.layout import published_key
from loader.staging.published import Published, PublishedTable
from tests.dags.conftest import Site, Task

GOLDEN = Path(__file__).with_name("golden")


SPARK = "AIRFLOW_CONN_SPARK_DEFAULT"


USE_CASES: tuple[UseCase, ...] = ("load_tables", "materialise", "replay", "maintain")


def operator_of(use_case: UseCase, site: Site, **arguments: object) -> LoaderSparkOperator:
    place = {"start": "1:4", "dry_run": True}
    given = {"tables": [], "manifests": ["shop/0001/load/m.json"], **place, **site.interval, **arguments}
    return LoaderSparkOperator(task_id=use_case, use_case=use_case, source="", arguments=given)


def failed_task(use_case: UseCase, site: Site, running: Task) -> TaskFailed:
    with pytest.raises(TaskFailed) as caught:
        operator_of(use_case, site).execute(running.context)
    return caught.value


def connect(monkeypatch: pytest.MonkeyPatch, **connection: object) -> None:
    monkeypatch.setenv(SPARK, json.dumps(connection))


def rendered(argv: list[str], site: Site) -> str:
    """The command, a part per line, with the names of this machine's folders replaced."""
    task = Path(argv[argv.index("--spec") + 1]).parent
    text = "\n".join(argv) + "\n"
    places = {
        task: "$TASK",
        site.jars: "$JARS",
        Path(argv[0]).parents[1]: "$SPARK_HOME",
        Path(loader.__file__).parent: "$LOADER",
        sys.executable: "$PYTHON",
        os.environ.get("LOADER_CACHE", Path.home() / ".cache" / "binlog-loader"): "$CACHE",
    }
    for place, name in places.items():
        text = text.replace(str(place), name)
    return text


def log_folder(running: Task) -> Path:
    folder = Path(os.environ["AIRFLOW__LOGGING__BASE_LOG_FOLDER"])
    return folder / f"dag_id={running.dag_id}" / f"run_id={running.run_id}" / f"task_id={running.task_id}"


def publish(site: Site, stop: str, **more: Any) -> None:
    record = Published(
        source="shop",
        generation="0001",
        stop=stop,
        stop_seqno=site.plan.start_seqno - 4 + int(stop.rpartition(":")[2]),
        tables={"shop.orders": PublishedTable(snapshot=7, applied=5)},
        **more,
    )
    with site.chain.store.writing(published_key("shop", "0001", site.plan.start_seqno)) as file:
        file.write(record.canonical())
