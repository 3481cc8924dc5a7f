"""Check staging and warehouse: the store with the loader's client, then store and catalog with Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from loader.doctor.finding import Finding, error, findings_of, ok, warning
from loader.doctor.spec import DoctorSpec
from loader.materialise.spec import CatalogSettings
from loader.spark.hdfs_tokens import hdfs_tokens
from loader.spark.settings import SparkSettings
from loader.spark.workers import missing_privacy
from loader.store.address import SIGNED
from loader.store.base import Store

_JOB = Path(__file__).resolve().parent / "job.py"
_FOLDER = ".doctor"
_TEXT = "the doctor was here"

RunJob = Callable[[Path, BaseModel, SparkSettings], dict[str, Any]]


def store_works(store: Store) -> Finding:
    """Check that objects can be created exactly once, read, listed and deleted."""
    key = _new_key()
    cure = "use a store with conditional creates: without them two runs can overwrite each other's plans"
    try:
        if not store.create(key, _TEXT.encode()):
            return error("store", "the store reports that an object exists that was never created", cure)
        if store.create(key, b"another"):
            return error("store", "an object was created twice", cure)
        if store.get(key) != _TEXT.encode() or key not in {info.key for info in store.list(f"{_FOLDER}/")}:
            return error("store", "an object cannot be read back as it was written", cure)
    finally:
        store.delete(key)
    return ok("store", f"{store.root.partition(SIGNED)[0].partition('?')[0]}: creates once, reads, lists, deletes")


def between_executors(spark: SparkSettings, *, secrets: bool) -> Finding:
    """Check that other machines cannot read or join the traffic between driver and executors of a cluster.

    Args:
        spark: settings of the jobs.
        secrets: whether driver or executors resolve references to secrets.
    """
    if spark.local:
        return ok(
            "spark_network", "driver and executors are one process, which other users of the machine cannot connect to"
        )
    missing = missing_privacy(spark.conf)
    if not missing or not secrets:
        return ok("spark_network", "authenticated and encrypted" if not missing else "no secret is sent over it")
    return warning(
        "spark_network",
        f"secrets and rows are sent between driver and executors, and the configuration lacks {' and '.join(missing)}",
        f"set {' and '.join(missing)} to true in [spark.conf], and the secret that the cluster manager uses;"
        " where spark-defaults.conf sets them, repeat them here",
    )


def access_of_tasks(root: str, spark: SparkSettings) -> list[Finding]:
    """Return how tasks on a cluster authenticate to a staging root on an HDFS with Kerberos; nothing for other roots.

    Raises:
        LoaderError: HDFS gives the user no token.
    """
    if spark.local or not hdfs_tokens({"root": root}):
        return []
    missing = " and ".join(missing_privacy(spark.conf))
    if not missing:
        return [ok("hdfs_token", "the driver gets a token of HDFS, and hands it to the tasks")]
    return [
        warning(
            "hdfs_token",
            "each executor needs its own Kerberos ticket or keytab for HDFS, because the configuration"
            f" lacks {missing}",
            f"set {missing} to true in [spark.conf], and the driver hands the tasks a token; where spark-defaults.conf"
            " sets them, repeat them here",
        )
    ]


def untested(catalog: CatalogSettings) -> list[Finding]:
    """Return a warning if the project has no tests of this type of catalog."""
    if catalog.type != "glue":
        return []
    return [
        warning(
            "catalog_type",
            "catalogs of type glue are accepted, but no test of the loader has run with AWS Glue",
            "test merges, replays and maintenance with your own tables first, and compare them with: loader verify",
        )
    ]


def by_spark(store: Store, catalog: CatalogSettings, spark: SparkSettings, run: RunJob) -> list[Finding]:
    """Return the findings of Spark: its version, the staging root, the catalog."""
    key = _new_key()
    try:
        store.create(key, _TEXT.encode())
        return findings_of(run(_JOB, DoctorSpec(catalog=catalog, uri=store.uri(key), text=_TEXT), spark))
    finally:
        store.delete(key)


def _new_key() -> str:
    return f"{_FOLDER}/{uuid.uuid4().hex}"
