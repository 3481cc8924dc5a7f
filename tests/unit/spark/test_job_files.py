"""Where spec and result of a job lie, for a driver on this machine and on another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from loader.errors import UsageError
from loader.spark.job_files import RESULTS, job_files, no_result
from loader.spark.settings import DEPLOY_MODE, SparkSettings
from loader.store.registry import open_store


class Spec(BaseModel):
    """What a job is told."""

    password: str = ""
    catalog: dict[str, str] = {}


def elsewhere(folder: Path, **change: object) -> SparkSettings:
    conf = {DEPLOY_MODE: "cluster", "spark.yarn.dist.files": "/etc/mine"}
    settings = SparkSettings(jars="j", master="yarn", conf=conf, results=f"file://{folder}/staging")
    return settings.model_copy(update=change)


def test_files_of_a_driver_here_are_gone_afterwards() -> None:
    settings = SparkSettings(jars="j")
    with job_files(Spec(password="env:PW"), settings) as files:
        options = dict(zip(files.arguments[::2], files.arguments[1::2], strict=True))
        spec = Path(options["--spec"])
        assert json.loads(spec.read_text())["password"] == "env:PW"
        assert files.settings == settings
        assert files.result() is None
        Path(options["--result"]).write_text('{"done": 1}')
        assert files.result() == {"done": 1}
    assert not spec.parent.exists()


def test_a_driver_elsewhere_gets_the_spec_and_leaves_its_result_in_the_store(tmp_path: Path) -> None:
    settings = elsewhere(tmp_path)
    with job_files(Spec(), settings) as files:
        options = dict(zip(files.arguments[::2], files.arguments[1::2], strict=True))
        assert (options["--spec"], options["--store"]) == ("spec.json", settings.results)
        shipped = files.settings.conf["spark.yarn.dist.files"].split(",")
        assert shipped[1:] == ["/etc/mine"]
        assert json.loads(Path(shipped[0]).read_text()) == {"password": "", "catalog": {}}
        assert files.settings.conf["spark.yarn.maxAppAttempts"] == "1"
        assert files.result() is None
        store = open_store(options["--store"])
        assert options["--result"].startswith(RESULTS)
        store.create(options["--result"], b'{"done": 1}')
        assert files.result() == {"done": 1}
    assert list(store.list(RESULTS)) == []
    assert not Path(shipped[0]).exists()


@pytest.mark.parametrize("master", ["k8s://host:443", "spark://host:7077", "local[2]"])
def test_a_driver_elsewhere_needs_yarn(master: str, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="deploy mode cluster needs YARN") as refused,
        job_files(Spec(), elsewhere(tmp_path, master=master)),
    ):
        pass
    assert refused.value.why == f"the master is {master}"


@pytest.mark.parametrize(
    ("spec", "change", "named"),
    [
        (Spec(password="env:PW"), {}, "env:PW"),
        (Spec(password="airflow:shop"), {}, "airflow:shop"),
        (Spec(catalog={"jdbc.password": "env:CATALOG"}), {}, "env:CATALOG"),
        (Spec(), {"results": "s3://lake#signed=env:KEY"}, "env:KEY"),
    ],
)
def test_a_driver_elsewhere_has_no_environment_of_this_machine(
    spec: Spec, change: dict[str, str], named: str, tmp_path: Path
) -> None:
    with (
        pytest.raises(UsageError, match="secrets from the environment") as refused,
        job_files(spec, elsewhere(tmp_path, **change)),
    ):
        pass
    assert refused.value.why == f"deploy mode is cluster, and the configuration refers to {named}"


def test_a_job_without_a_result_names_where_its_log_is(tmp_path: Path) -> None:
    output = "Application report for application_17_0003 (state: FINISHED)"
    here = no_result("merge", "exit code 1", output, SparkSettings(jars="j", master="yarn"))
    assert here.hint.startswith("read the output; ")
    there = no_result("merge", "exit code 1", output, elsewhere(tmp_path))
    assert there.hint.startswith("read the log of the driver: yarn logs -applicationId application_17_0003; ")
    assert there.why == f"exit code 1; its last lines:\n{output}"
