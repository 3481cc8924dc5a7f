"""Options of the JVMs of Spark jobs: when they compile, and how they collect garbage."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_FEW_CORES = 2
_NO_OPTIMISER = "-XX:TieredStopAtLevel=1"
_LATE_OPTIMISER = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000"
    " -XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=400000"
)
"""The optimising compiler works on code that runs 10 to 20 times as often as by default.

Otherwise it takes a third of the CPU of executors in a merge of a minute, for code that kernels soon replace. Rows that
Spark itself reads and writes take the same time.
"""
_EXECUTORS = "spark.executor.defaultJavaOptions"
_SUBMIT = "SPARK_SUBMIT_OPTS"  # options of the driver's JVM in deploy mode client


def one_machine_options(threads: int, chosen: str, *, short: bool) -> list[str]:
    """Return options for a machine without spare cores for the collector and the compilers of its JVM.

    Without the optimising compiler, a delta of 100 MB of log takes three quarters of the time, and a delta of 1 GB the
    same time. Long jobs of Spark SQL take twice the time.

    Args:
        threads: of the driver.
        chosen: options that the configuration has.
        short: for jobs of a few seconds.
    """
    if threads > _FEW_CORES:
        return []
    compiler = _NO_OPTIMISER if short else _LATE_OPTIMISER
    return [compiler, *([] if re.search(r"-XX:\+Use\w+GC", chosen) else ["-XX:+UseSerialGC"])]


def cluster_driver_options(*, short: bool) -> dict[str, str]:
    """Return the variables for the driver of a cluster, which only plans and commits.

    A property would replace the one of Spark's own files.

    Args:
        short: for jobs of a few seconds.
    """
    if not short or (os.cpu_count() or 1) > _FEW_CORES:
        return {}
    return {_SUBMIT: f"{_NO_OPTIMISER} {os.environ.get(_SUBMIT, '')}".rstrip()}


def executor_options(conf: Mapping[str, str], defaults: Path) -> dict[str, str]:
    """Return the properties for executors; none if Spark's own file has them.

    Args:
        conf: properties so far.
        defaults: `spark-defaults.conf`.
    """
    if defaults.is_file() and re.search(
        rf"^\s*{re.escape(_EXECUTORS)}\b", defaults.read_text("utf-8", "replace"), re.MULTILINE
    ):
        return {}
    return {_EXECUTORS: f"{_LATE_OPTIMISER} {conf.get(_EXECUTORS, '')}".rstrip()}
