"""What YARN needs on the machine that submits a job, and applications whose driver runs on YARN."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from loader.errors import UsageError
from loader.outages import causes

YARN = "yarn"
"""The master of Spark."""
_LOG = logging.getLogger(__name__)
_APPLICATION = re.compile(r"\bapplication_\d+_\d+\b")
_CLIENT = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
"""What the program `yarn application` runs. It is in the jars of Spark."""
_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DENIED = "org.apache.hadoop.security.AccessControlException"
_KILL_SECONDS = 30
_SITE = "yarn-site.xml"
_BY_SPARK = "spark.hadoop.yarn.resourcemanager."
"""Prefix of properties of Spark that name the resource manager without a file."""


def require_yarn_conf(conf: Mapping[str, str], spark_home: Path) -> None:
    """Check that Spark finds the resource manager. Without its address Spark tries port 8032 of this machine.

    Args:
        conf: the settings of Spark.
        spark_home: the folder of Spark.

    Raises:
        UsageError: no configuration of YARN was found.
    """
    if _has_own_environment(spark_home):
        return
    named = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    if named and any(name.startswith(_BY_SPARK) for name in conf):
        return
    if not any(Path(folder, _SITE).is_file() for folder in named.values()):
        found = " and ".join(f"{name} is {folder}, which has no {_SITE}" for name, folder in named.items())
        raise UsageError(
            "no configuration of YARN was found",
            why=found or f"neither {' nor '.join(_VARIABLES)} is set",
            hint=f"name the folder with core-site.xml and {_SITE} of the cluster where this runs, for Airflow in the"
            " environment of its workers: export HADOOP_CONF_DIR=/etc/hadoop/conf",
        )


def application_in(text: str) -> str:
    """Return the id of the first application of YARN that a text names; empty without one."""
    found = _APPLICATION.search(text)
    return found[0] if found else ""


def kill_application(application: str, spark_home: Path, variables: Mapping[str, str]) -> None:
    """Kill an application with its driver. If YARN does not answer, the log says how to kill it by hand.

    Args:
        application: its id.
        spark_home: the folder of Spark.
        variables: environment with the folder of YARN's configuration.
    """
    argv = [str(spark_home / "bin" / "spark-class"), _CLIENT, "application", "-kill", application]
    try:
        done = subprocess.run(
            argv, env=dict(variables), capture_output=True, text=True, check=False, timeout=_KILL_SECONDS
        )
        said = "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said:
        _LOG.warning("%s may still run; kill it with: yarn application -kill %s: %s", application, application, said)


def hdfs_refusal(error: BaseException) -> UsageError | None:
    """Return the error to report if HDFS refused the user when Spark started; None for any other failure."""
    for cause in causes(error):
        if _DENIED in cause.kinds:
            return UsageError(
                "HDFS refused the user of the job when Spark started",
                why=cause.text.partition("\n")[0],
                hint="on YARN the user needs a folder for the files of applications:"
                " hdfs dfs -mkdir -p /user/NAME && hdfs dfs -chown NAME /user/NAME; or set spark.yarn.stagingDir in"
                " [spark.conf]",
            )
    return None


def _has_own_environment(spark_home: Path) -> bool:
    """Return whether spark-submit reads variables from a script: see bin/load-spark-env.sh of Spark."""
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf", "spark-env.sh").exists()
