"""Runs Spark jobs with spark-submit and returns their result, or raises their error.

The Airflow operator uses `command` and `environment`; `run` submits a job from this process and waits for it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from loader.errors import UsageError
from loader.private_files import is_private, private_folder
from loader.resources import cache_folder
from loader.spark.executor_python import python_conf
from loader.spark.java_options import cluster_driver_options, executor_options, one_machine_options
from loader.spark.job import rebuild
from loader.spark.job_files import job_files, no_result
from loader.spark.settings import SparkSettings
from loader.spark.trust_store import FILES, trusting_conf
from loader.spark.yarn import YARN, application_in, kill_application, require_yarn_conf

_LOG = logging.getLogger(__name__)
_TAIL = 60  # lines of a job's output in an error
_WARM_JOB = Path(__file__).resolve().parents[1] / "materialise" / "jobs" / "warm_job.py"
_ICEBERG = re.compile(r"/iceberg-spark-runtime-(\d+\.\d+)_[^/]*\.jar$")
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class WarmSpec(BaseModel):
    """The spec of the job that `warm` runs: an empty folder to work in."""

    folder: str


def command(job: Path, arguments: list[str], settings: SparkSettings, *, short: bool = False) -> list[str]:
    """Return the argv of spark-submit for a job module; for `short` see `configuration`.

    Raises:
        UsageError: pyspark is not installed, there is no Java or no configuration of YARN, or the folder has no jars.
    """
    _require_java()
    if settings.master == YARN:
        require_yarn_conf(settings.conf, spark_home())
    argv = [str(spark_home() / "bin" / "spark-submit"), "--master", settings.master]
    argv += ["--name", f"loader-{job.parent.name if job.stem == 'job' else job.stem.removesuffix('_job')}"]
    if not settings.local:
        argv += ["--jars", ",".join(_jars(settings))]
    for name, value in configuration(settings, short=short).items():
        argv += ["--conf", f"{name}={value}"]
    return [*argv, str(job), *arguments]


def environment(settings: SparkSettings, *, short: bool = False) -> dict[str, str]:
    """Return the variables that spark-submit needs in addition to the environment of this process.

    `short` is for jobs of a few seconds.
    """
    variables = {"SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable}
    if settings.hadoop_user:
        variables["HADOOP_USER_NAME"] = settings.hadoop_user
    if settings.local:
        # Otherwise Spark listens on the first external address of the machine.
        variables |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    else:
        variables |= cluster_driver_options(short=short)
    return variables


def configuration(settings: SparkSettings, *, short: bool = False) -> dict[str, str]:
    """Return Spark's configuration. Entries of the settings override others. `short` is for jobs of a few seconds."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "false",
        # Properties that Spark hides in logs and pages: its default words, and those of catalog secrets.
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential|authorization|shared-key",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        # Cached data is read twice and then dropped, so compression costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }
    conf |= _local(settings, short=short) if settings.local else _on_cluster(settings)
    if settings.tls_ca:
        conf |= trusting_conf(
            settings.tls_ca,
            java_program(),
            settings.conf,
            local=settings.local,
            driver_elsewhere=settings.driver_elsewhere,
        )
    if not settings.local:
        conf |= executor_options(conf, _conf_folder() / "spark-defaults.conf")
    joined = {FILES, *(_JOINED if settings.local else ())} & conf.keys()
    return conf | {name: value for name, value in settings.conf.items() if name not in joined}


_JOINED = {"spark.driver.extraJavaOptions": " ", "spark.driver.extraClassPath": ":"}
# Hadoop's own class runs the program chmod for each file and folder that it creates. This one calls the system.
_LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
_LOCAL_FILES_JAR = "hadoop-bare-naked-local-fs-"


def _on_cluster(settings: SparkSettings) -> dict[str, str]:
    conf = python_conf(
        settings.package,
        settings.python,
        on_yarn=settings.master == YARN,
        driver_elsewhere=settings.driver_elsewhere,
    )
    # Otherwise the functions of data frames get Python processes of their own, which import all modules once more.
    return {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"} | conf


def _local(settings: SparkSettings, *, short: bool) -> dict[str, str]:
    scratch = cache_folder() / "spark"  # not in a folder that another user could have created
    options = [f"-Dlog4j2.configurationFile={log_settings().as_uri()}", f"-Dderby.system.home={scratch}"]
    chosen = settings.conf.get("spark.driver.extraJavaOptions", "")
    options += one_machine_options(settings.threads, chosen, short=short)
    archive = _archive(settings)
    if archive is not None and _usable(archive):
        # If the archive does not match or is damaged, the JVM prints a warning and reads the classes itself.
        options.append(f"-XX:SharedArchiveFile={archive}")
    ours = {
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.driver.extraClassPath": ":".join(_jars(settings)),
    }
    for name, separator in _JOINED.items():
        if name in settings.conf:
            ours[name] += separator + settings.conf[name]
    if any(Path(jar).name.startswith(_LOCAL_FILES_JAR) for jar in _jars(settings)):
        ours["spark.hadoop.fs.file.impl"] = _LOCAL_FILES
    return ours | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Otherwise any user of the machine can connect to the driver. A local master creates the secret itself.
        "spark.authenticate": "true",
        "spark.driver.memory": "2g",  # the driver is the executor too
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),  # not on the default file system of Hadoop
        # A delta is small: 200 empty partitions cost more than its work. AQE merges small partitions, but does not
        # split partitions that are too large to be sorted in memory.
        "spark.sql.shuffle.partitions": str(8 * settings.threads),
    }


def _conf_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")


def log_settings() -> Path:
    """Return the log4j2 configuration of the driver on this machine."""
    return Path(__file__).resolve().parent / "log4j2.properties"


def spark_home() -> Path:
    """Return the folder of the installed pyspark.

    Raises:
        UsageError: it is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise UsageError("pyspark is not installed", hint="pip install 'binlog-loader[spark]'")
    return Path(found.submodule_search_locations[0])


def _jars(settings: SparkSettings) -> list[str]:
    jars = sorted(str(path) for path in Path(settings.jars).resolve().glob("*.jar"))
    if not jars:
        raise UsageError(
            "the jars folder has no jars",
            hint="download them with: loader jars; then set spark.jars to the folder that it prints",
            folder=settings.jars,
        )
    _require_iceberg_for(importlib.metadata.version("pyspark"), jars, settings.jars)
    return jars


def _require_iceberg_for(spark: str, jars: Sequence[str], folder: str) -> None:
    """Verify that Iceberg's jar is made for this Spark. With another one, jobs fail late, with errors of the JVM.

    Raises:
        UsageError: it is made for another version.
    """
    line = ".".join(spark.split(".")[:2])
    made_for = [found[1] for jar in jars if (found := _ICEBERG.search(jar))]
    if made_for and line not in made_for:
        raise UsageError(
            "Iceberg's jar and Spark do not fit each other",
            why=f"the folder has Iceberg for Spark {made_for[0]}, and pyspark {spark} is installed",
            hint="download jars for this pyspark with: loader jars; then set spark.jars to the folder that it prints",
            folder=folder,
        )


def java_program() -> Path | None:
    """Return the Java that Spark starts: of $JAVA_HOME, else of the PATH; None without Java."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    return Path(found) if found and Path(found).exists() else None


def _require_java() -> None:
    if java_program() is None:
        home = os.environ.get("JAVA_HOME")
        raise UsageError(
            "no Java was found",
            why=f"JAVA_HOME is {home}, which has no bin/java" if home else "JAVA_HOME is not set, and PATH has no java",
            hint="install Java 17 or 21 where this runs, and name it in JAVA_HOME; then check with: loader doctor",
        )


def _archive(settings: SparkSettings) -> Path | None:
    """Return the path of the class archive for this Java, Spark and these jars; None without Java."""
    java = java_program()
    if java is None:
        return None
    home = java.resolve().parents[1]
    release = home / "release"
    parts = [str(home), release.read_text() if release.exists() else "", importlib.metadata.version("pyspark")]
    parts += [str(spark_home()), settings.conf.get("spark.driver.extraClassPath", "")]
    parts += [f"{jar} {Path(jar).stat().st_size}" for jar in _jars(settings)]
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"


def _usable(archive: Path) -> bool:
    """Return whether the archive exists, and only this user or root can have written it."""
    return archive.exists() and is_private(archive.stat())


def warm(settings: SparkSettings) -> Path | None:
    """Create the class archive (AppCDS), which saves a third of the start of every later local job, unless it exists.

    Both materialisation jobs run on a few rows in a temporary folder. That takes as long as several jobs, so only
    `loader warm` does it. If two processes do it at once, the last archive stays. It has about 200 MB.

    Returns:
        The archive; None if it is of no use (no local master, or no Java).

    Raises:
        LoaderError: the run failed.
    """
    archive = _archive(settings) if settings.local else None
    if archive is None or _usable(archive):
        return archive
    private_folder(archive.parent)
    unfinished = archive.with_suffix(f".{uuid.uuid4().hex}")
    ours = settings.conf.get("spark.driver.extraJavaOptions", "")
    options = {"spark.driver.extraJavaOptions": f"{ours} -XX:ArchiveClassesAtExit={unfinished}".strip()}
    try:
        with tempfile.TemporaryDirectory(prefix="loader-warm-") as folder:
            run(_WARM_JOB, WarmSpec(folder=folder), settings.model_copy(update={"conf": settings.conf | options}))
        unfinished.chmod(0o600)
        unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)
    return archive


def run(
    job: Path,
    spec: BaseModel,
    settings: SparkSettings,
    extra_env: Mapping[str, str] | None = None,
    *,
    short: bool = False,
) -> dict[str, Any]:
    """Run a job and return its result. Its output goes to the log at level debug, line by line.

    For `short` see `configuration`.

    Raises:
        LoaderError: the error of the job, of the same type.
        RetryableError: the job ended without a result (killed, out of memory).
        UsageError: see `job_files`.
    """
    with job_files(spec, settings) as files:
        argv = command(job, files.arguments, files.settings, short=short)
        variables = {**os.environ, **environment(settings, short=short), **(extra_env or {})}
        code, tail = _execute(argv, variables, driver_elsewhere=settings.driver_elsewhere)
        result = files.result()
    if result is None:
        raise no_result(job.stem, f"exit code {code}", "\n".join(tail), settings)
    if result.get("error"):
        raise rebuild(result["error"])
    return result


def _execute(argv: list[str], variables: dict[str, str], *, driver_elsewhere: bool) -> tuple[int, deque[str]]:
    """Return exit code and last lines of spark-submit.

    If this process is interrupted, kill it with its children, and a driver on another machine.
    """
    tail: deque[str] = deque(maxlen=_TAIL)
    application = ""
    with subprocess.Popen(
        argv,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                tail.append(line.rstrip())
                application = application or application_in(line)
                _LOG.debug("%s", tail[-1])
            return process.wait(), tail
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            if driver_elsewhere and application:
                kill_application(application, spark_home(), variables)
            raise
