"""The command line of spark-submit, and what comes back from a job."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from loader.errors import DataError, LoaderError, RetryableError, StagedDataError, UsageError
from loader.spark.job import failure, rebuild
from loader.spark.settings import SparkSettings
from loader.spark.submit import command, configuration, environment

JOB = Path("/srv/loader/materialise/jobs/materialise_job.py")


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("b.jar", "a.jar", "readme.txt"):
        (tmp_path / name).touch()
    return tmp_path


def confs(argv: list[str]) -> dict[str, str]:
    pairs = [argv[place + 1] for place, word in enumerate(argv) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_a_local_master_gets_the_jars_on_its_class_path_and_listens_on_loopback(jars: Path) -> None:
    settings = SparkSettings(jars=str(jars), master="local[3]")
    argv = command(JOB, ["--spec", "x"], settings)
    assert argv[0].endswith("pyspark/bin/spark-submit")
    assert argv[1:3] == ["--master", "local[3]"]
    assert argv[-3:] == [str(JOB), "--spec", "x"]
    assert "--jars" not in argv
    conf = confs(argv)
    assert conf["spark.driver.extraClassPath"] == f"{jars}/a.jar:{jars}/b.jar"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.sql.shuffle.partitions"] == "24"
    assert "log4j2.properties" in conf["spark.driver.extraJavaOptions"]
    variables = environment(settings)
    assert variables["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert variables["PYSPARK_PYTHON"] == sys.executable


def test_a_cluster_gets_the_jars_sent(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (jars / "yarn-site.xml").touch()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(jars))
    settings = SparkSettings(jars=str(jars), master="yarn", conf={"spark.submit.deployMode": "client"})
    argv = command(JOB, [], settings)
    assert argv[argv.index("--jars") + 1] == f"{jars}/a.jar,{jars}/b.jar"
    conf = confs(argv)
    assert conf["spark.submit.deployMode"] == "client"
    assert not {"spark.driver.host", "spark.driver.extraClassPath", "spark.sql.shuffle.partitions"} & set(conf)
    assert "SPARK_LOCAL_IP" not in environment(settings)


@pytest.mark.parametrize(("cores", "short", "found"), [(2, True, "-XX:TieredStopAtLevel=1 -Da=b"), (2, False, None),
                                                       (4, True, None)])  # fmt: skip
def test_a_short_job_on_a_cluster_spares_the_cores_of_its_driver(
    jars: Path, monkeypatch: pytest.MonkeyPatch, cores: int, short: bool, found: str | None
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    settings = SparkSettings(jars=str(jars), master="spark://host:7077")
    assert environment(settings, short=short).get("SPARK_SUBMIT_OPTS") == found
    assert "SPARK_SUBMIT_OPTS" not in environment(SparkSettings(jars=str(jars)), short=short)


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_the_jar_of_iceberg_is_for_the_installed_spark(
    jars: Path, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    (jars / "iceberg-spark-runtime-4.1_2.13-1.12.0.jar").touch()
    settings = SparkSettings(jars=str(jars), master=master)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "4.1.9")
    command(JOB, [], settings)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "4.0.4")
    with pytest.raises(UsageError, match="do not fit each other") as caught:
        command(JOB, [], settings)
    assert caught.value.why == "the folder has Iceberg for Spark 4.1, and pyspark 4.0.4 is installed"


@pytest.mark.parametrize(
    ("home", "why"),
    [
        ("/nowhere", "JAVA_HOME is /nowhere, which has no bin/java"),
        ("", "JAVA_HOME is not set, and PATH has no java"),
    ],
)
def test_without_java_nothing_is_started(home: str, why: str, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", str(jars))
    with pytest.raises(UsageError, match="no Java was found") as refused:
        command(JOB, [], SparkSettings(jars=str(jars)))
    assert refused.value.why == why


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"),
        ({"HADOOP_CONF_DIR": "/nowhere"}, "HADOOP_CONF_DIR is /nowhere, which has no yarn-site.xml"),
        (
            {"HADOOP_CONF_DIR": "/nowhere", "YARN_CONF_DIR": "/"},
            "HADOOP_CONF_DIR is /nowhere, which has no yarn-site.xml and YARN_CONF_DIR is /, which has no yarn-site.xml",
        ),
    ],
)
def test_without_the_configuration_of_yarn_nothing_is_started(
    variables: dict[str, str], why: str, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="no configuration of YARN was found") as refused:
        command(JOB, [], SparkSettings(jars=str(jars), master="yarn"))
    assert refused.value.why == why


def test_yarn_is_found_by_a_file_a_property_or_the_script_of_spark(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SparkSettings(jars=str(jars), master="yarn")
    named = settings.model_copy(update={"conf": {"spark.hadoop.yarn.resourcemanager.address": "master:8032"}})
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(jars))
    with pytest.raises(UsageError, match="no configuration of YARN"):
        command(JOB, [], named)  # spark-submit asks for a variable nevertheless
    monkeypatch.setenv("YARN_CONF_DIR", str(jars))
    assert command(JOB, [], named)
    (jars / "yarn-site.xml").touch()
    assert command(JOB, [], settings)
    monkeypatch.delenv("YARN_CONF_DIR")
    (jars / "spark-env.sh").touch()  # which may set the variable
    assert command(JOB, [], settings)


def test_hdfs_is_told_the_user(jars: Path) -> None:
    assert "HADOOP_USER_NAME" not in environment(SparkSettings(jars=str(jars)))
    assert environment(SparkSettings(jars=str(jars), hadoop_user="etl"))["HADOOP_USER_NAME"] == "etl"


def test_settings_win_and_options_of_the_jvm_are_joined(jars: Path) -> None:
    conf = configuration(
        SparkSettings(
            jars=str(jars),
            conf={"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Da=b", "spark.driver.memory": "9g"},
        )
    )
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.driver.memory"] == "9g"
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Da=b")
    assert "log4j2" in conf["spark.driver.extraJavaOptions"]


def test_local_files_are_those_of_the_jar_if_it_is_there(jars: Path) -> None:
    settings = SparkSettings(jars=str(jars))
    assert "spark.hadoop.fs.file.impl" not in configuration(settings)  # a folder of an older version
    (jars / "hadoop-bare-naked-local-fs-0.1.0.jar").touch()
    assert configuration(settings)["spark.hadoop.fs.file.impl"].endswith(".BareLocalFileSystem")
    assert "spark.hadoop.fs.file.impl" not in configuration(settings.model_copy(update={"master": "spark://h:7077"}))


def test_two_cores_have_none_to_spare_for_collector_and_compiler(jars: Path) -> None:
    def options(master: str, chosen: str = "", *, short: bool = False) -> str:
        conf = {"spark.driver.extraJavaOptions": chosen} if chosen else {}
        settings = SparkSettings(jars=str(jars), master=master, conf=conf)
        return configuration(settings, short=short)["spark.driver.extraJavaOptions"]

    assert options("local[2]").endswith(" -XX:Tier4BackEdgeThreshold=400000 -XX:+UseSerialGC")
    assert options("local[2]", short=True).endswith(" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    assert "-XX" not in options("local[3]")
    assert "-XX" not in options("local[3]", short=True)
    assert options("local[2]", "-XX:+UseParallelGC").endswith(" -XX:Tier4BackEdgeThreshold=400000 -XX:+UseParallelGC")


def test_executors_optimise_late_unless_the_files_of_spark_have_options(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def options(conf: dict[str, str] | None = None) -> str | None:
        settings = SparkSettings(jars=str(jars), master="spark://host:7077", conf=conf or {})
        return configuration(settings).get("spark.executor.defaultJavaOptions")

    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert (options() or "").endswith(" -XX:Tier4BackEdgeThreshold=400000")
    assert options({"spark.executor.defaultJavaOptions": "-Xint"}) == "-Xint"
    lines = b"# f\xfcr Spark\nspark.executor.memory 1g\nspark.executor.defaultJavaOptions -Xint\n"
    (tmp_path / "spark-defaults.conf").write_bytes(lines)
    assert options() is None


def test_a_folder_without_jars_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no jar"):
        command(JOB, [], SparkSettings(jars=str(tmp_path)))


@pytest.mark.parametrize(
    "error",
    [
        StagedDataError("what", why="why", hint="hint", file="f", what_else="x"),
        RetryableError("what"),
        UsageError("what", table="a"),
    ],
)
def test_an_error_survives_json(error: LoaderError) -> None:
    again = rebuild(error.as_dict())
    assert type(again) is type(error)
    assert again.as_dict() == error.as_dict()


def test_an_error_of_a_type_unknown_here_keeps_its_exit_code() -> None:
    data = DataError("what", table="a").as_dict() | {"error": "FromTheFuture"}
    assert type(rebuild(data)) is DataError
    assert failure(KeyError("x"))["exit_code"] == 1
    assert "KeyError" in str(failure(KeyError("x"))["why"])
    assert failure(ConnectionResetError("x"))["exit_code"] == 3
