"""The jobs as spark-submit runs them: results, errors of their own type, exit codes, and what they import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pydantic import BaseModel
from pyspark.sql import SparkSession

from loader.errors import DataError, GapError, LoaderError, RetryableError, UsageError
from loader.materialise.jobs import materialise_job
from loader.materialise.jobs.warm_job import warm
from loader.materialise.spec import CatalogSettings
from loader.model.table import Column
from loader.spark import submit
from loader.spark.job import carried, carried_error
from loader.spark.settings import SparkSettings
from loader.spark.submit import WarmSpec, configuration, run
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration


def test_an_error_of_the_job_arrives_as_what_it_was(lake: Lake, settings: SparkSettings) -> None:
    with pytest.raises(GapError) as caught:
        run(Path(materialise_job.__file__), lake.merge_spec(number(1, 5)), settings)
    assert caught.value.where == {"source": "shop", "seqno": str(number(1, 5))}
    assert caught.value.hint == "loader extract"


@pytest.mark.sweep
def test_a_spec_of_another_job_is_refused(settings: SparkSettings) -> None:
    with pytest.raises(UsageError, match="not a valid MaterialiseSpec"):
        run(Path(materialise_job.__file__), Spec(), settings)


class Spec(BaseModel):
    x: int = 1


def scripted(folder: Path, settings: SparkSettings, body: str) -> dict[str, Any]:
    """What `run` makes of a job that is this script."""
    script = folder / "script.py"
    script.write_text(f"import sys, os, json\nspec, result = sys.argv[2], sys.argv[4]\n{body}")
    return run(script, Spec(), settings)


def test_a_result_comes_back_whatever_the_exit_code(tmp_path: Path, settings: SparkSettings) -> None:
    body = "x = json.load(open(spec))['x']\njson.dump({'x': x + 1}, open(result, 'w'))\nsys.exit(4)"
    assert scripted(tmp_path, settings, body) == {"x": 2}


def test_a_job_without_a_result_is_worth_a_retry_and_shows_its_last_lines(
    tmp_path: Path, settings: SparkSettings
) -> None:
    body = "for i in range(100): print('line', i, flush=True)\nos.kill(os.getpid(), 9)"
    with pytest.raises(RetryableError) as caught:
        scripted(tmp_path, settings, body)
    assert "exit code 137" in caught.value.why
    assert "line 99" in caught.value.why
    assert "line 9\n" not in caught.value.why


@pytest.mark.sweep
def test_a_job_imports_pyspark_from_where_it_is_installed_and_knows_its_history(
    tmp_path: Path, settings: SparkSettings
) -> None:
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path)}
    logged["spark.yarn.historyServer.address"] = "history.example.org:18080"
    body = """
from pydantic import BaseModel
from loader.spark.job import _history_page, job_main
class Spec(BaseModel):
    x: int
def work(spark, spec):
    import pyspark
    application = spark.sparkContext.applicationId
    page = _history_page(spark).replace(application, "APPLICATION")
    return {"file": pyspark.__file__, "rows": spark.range(spec.x).count(), "page": page}
job_main(work, Spec)
"""
    found = scripted(tmp_path, settings.model_copy(update={"conf": settings.conf | logged}), body)
    page = "http://history.example.org:18080/history/APPLICATION/jobs/"
    assert found == {"file": pyspark.__file__, "rows": 1, "page": page}


def test_secrets_of_the_catalog_are_not_in_the_log_of_events(
    spark: SparkSession, tmp_path: Path, settings: SparkSettings
) -> None:
    secret, events = tmp_path / "secret", tmp_path / "events"
    secret.write_text("hunter2")
    events.mkdir()
    secrets = dict.fromkeys(("jdbc.password", "token", "credential", "header.Authorization"), f"file:{secret}")
    catalog = CatalogSettings(type="hadoop", warehouse=f"file://{tmp_path}/warehouse", secrets=secrets)
    lake = Lake(spark, tmp_path, catalog)
    start, stop = position(1, 1000), position(1, 2000)
    people = table("people", [Column("id", "int")], ["id"])
    lake.loaded(lake.staging.load(people, [(1,)], start))
    lake.staging.interval(start, stop, [(people, [Change("I", number(1, 2000), 0, (2,))])])
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events), "spark.eventLog.compress": "false"}
    told = settings.model_copy(update={"conf": settings.conf | logged})
    result = run(Path(materialise_job.__file__), lake.merge_spec(), told)
    assert (result["tables"][0]["status"], sorted(lake.rows(people))) == ("applied", [(1,), (2,)])
    text = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert "SparkListenerJobStart" in text
    assert "lake.header.Authorization" in text
    assert "hunter2" not in text


def test_a_damaged_class_archive_does_no_harm(
    tmp_path: Path, settings: SparkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADER_CACHE", str(tmp_path))
    archive = submit._archive(settings)
    assert archive is not None
    archive.parent.mkdir()
    archive.write_bytes(b"no archive" * 1000)
    assert f"-XX:SharedArchiveFile={archive}" in configuration(settings)["spark.driver.extraJavaOptions"]
    assert scripted(tmp_path, settings, "json.dump({'x': 2}, open(result, 'w'))") == {"x": 2}


def test_the_job_that_warms_does_what_merges_do(lake: Lake) -> None:
    result = lake.one(warm(lake.spark, WarmSpec(folder=str(lake.folder))))
    assert (result.status, result.inserts, result.updates, result.deletes) == ("applied", 2, 2, 1)
    assert (result.rows_deleted, result.rows_inserted) == (4, 4)


def test_an_error_of_a_spark_task_arrives_as_what_it_was(lake: Lake) -> None:
    def work(_: int) -> int:
        with carried():
            raise DataError("bad bytes", why='a "quoted"\nreason ä', hint="look", position="binlog.000001:4")

    with pytest.raises(Exception, match="loader-error") as caught:
        lake.spark.sparkContext.parallelize([1], 1).map(work).collect()
    error = carried_error(caught.value)
    assert isinstance(error, DataError)
    assert (
        error.as_dict()
        == DataError("bad bytes", why='a "quoted"\nreason ä', hint="look", position="binlog.000001:4").as_dict()
    )
    assert carried_error(LoaderError("x")) is None


@pytest.mark.parametrize("module", ["loader.materialise.jobs.materialise_job", "loader.materialise.jobs.load_job"])
def test_the_job_needs_neither_airflow_nor_a_driver_of_mysql(module: str) -> None:
    code = (
        f"import sys, {module};"
        " print(sorted({'airflow', 'pymysql', 'boto3', 'numba'} & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
