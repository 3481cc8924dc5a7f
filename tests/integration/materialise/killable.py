"""A run in a process of its own that can be killed, on the JVM of the process that started it.

    python -m tests.integration.materialise.killable merge|load|adopt|maintain SPEC

It saves a start of Spark per kill. What dies is the driver, at a moment when it waits for nothing; that the JVM dies
with it is tried once, with spark-submit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.load.adoption import adopt
from loader.materialise.load.load_run import load
from loader.materialise.maintain.spec import MaintainSpec
from loader.materialise.merge.source_run import materialise
from loader.materialise.spec import AdoptSpec, LoadSpec, MaterialiseSpec

_KINDS = {
    "adopt": (adopt, AdoptSpec),
    "load": (load, LoadSpec),
    "merge": (materialise, MaterialiseSpec),
    "maintain": (maintain, MaintainSpec),
}


def run_until(
    spark: SparkSession, point: str, spec: MaterialiseSpec | LoadSpec | AdoptSpec | MaintainSpec, folder: Path
) -> int:
    """Run the spec with the failpoint armed; the exit code of its process, negative for a signal."""
    file = folder / f"{point}.json"
    file.write_text(spec.model_dump_json())
    kind = next(kind for kind, (_, of) in _KINDS.items() if isinstance(spec, of))
    argv = [sys.executable, "-m", "tests.integration.materialise.killable", kind, str(file)]
    checkout = Path(__file__).resolve().parents[3]
    return subprocess.run(
        argv, cwd=checkout, env={**on_the_jvm(spark), "LOADER_FAILPOINT": point}, check=False, timeout=120
    ).returncode


def on_the_jvm(spark: SparkSession) -> dict[str, str]:
    """The environment of a process that uses the JVM of this one."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    gateway = {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}
    return {**os.environ, **gateway}


def _main() -> None:
    kind, file = sys.argv[1:]
    gateway = launch_gateway()
    existing = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    context = gateway.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(existing)
    spark = SparkSession(SparkContext(gateway=gateway, jsc=context))
    text = Path(file).read_text()
    work, of = _KINDS[kind]
    work(spark, of.model_validate_json(text))


if __name__ == "__main__":
    _main()
