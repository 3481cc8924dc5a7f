"""The files between a command and its Spark job: the spec that the job reads, and the result that it writes.

They are files of this machine, if the driver runs on it. A driver elsewhere gets the spec from spark-submit, and leaves
its result in the staging store.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from loader.errors import RetryableError, UsageError
from loader.secret import references_to_environment
from loader.spark.settings import DEPLOY_MODE, SparkSettings
from loader.spark.yarn import YARN, application_in
from loader.store.base import ObjectNotFound, Store
from loader.store.registry import open_store

RESULTS = ".results/"
"""Folder of the staging store. A result lies there until the command that waits for it has read it.

It is not the folder of a source, because folders of sources have no dots.
"""
_SHIPPED = "spark.yarn.dist.files"


class JobFiles(Protocol):
    """The spec and the result of one job.

    Attributes:
        arguments: of the job module.
        settings: of spark-submit for this job.
    """

    arguments: list[str]
    settings: SparkSettings

    def result(self) -> dict[str, Any] | None:
        """Return the result, or None if the job has ended without one."""


class FilesHere:
    """Files of this machine, for a driver that runs on it.

    Args:
        folder: empty.
        spec: of the job.
        settings: of Spark.
    """

    def __init__(self, folder: Path, spec: BaseModel, settings: SparkSettings) -> None:
        self.settings = settings
        self._result = folder / "result.json"
        self.arguments = ["--spec", str(_written(spec, folder)), "--result", str(self._result)]

    def result(self) -> dict[str, Any] | None:
        """See JobFiles."""
        return dict(json.loads(self._result.read_bytes())) if self._result.exists() else None


class FilesElsewhere:
    """A spec that YARN copies into the working folder of the driver, and a result in the staging store.

    Args:
        folder: empty.
        spec: of the job.
        settings: of Spark.
        store: of the results.
    """

    def __init__(self, folder: Path, spec: BaseModel, settings: SparkSettings, store: Store) -> None:
        file = _written(spec, folder)
        shipped = ",".join(filter(None, (str(file), settings.conf.get(_SHIPPED))))
        # A second driver would begin the whole job again. The caller decides about that.
        conf = {"spark.yarn.maxAppAttempts": "1"} | settings.conf | {_SHIPPED: shipped}
        self.settings = settings.model_copy(update={"conf": conf})
        self._store, self._key = store, f"{RESULTS}{uuid.uuid4().hex}.json"
        self.arguments = ["--spec", file.name, "--result", self._key, "--store", store.root]

    def result(self) -> dict[str, Any] | None:
        """See JobFiles."""
        try:
            return dict(json.loads(self._store.get(self._key)))
        except ObjectNotFound:
            return None

    def remove(self) -> None:
        """Remove the result."""
        self._store.delete(self._key)


@contextmanager
def job_files(spec: BaseModel, settings: SparkSettings) -> Iterator[JobFiles]:
    """Write the spec of a job, and remove all files of the job at the end of the block.

    Raises:
        UsageError: the driver would run elsewhere, and the cluster or a secret does not allow that.
    """
    with tempfile.TemporaryDirectory(prefix="loader-job-") as folder:
        if not settings.driver_elsewhere:
            yield FilesHere(Path(folder), spec, settings)
            return
        _require_yarn(settings)
        _refuse_environment(spec, settings)
        files = FilesElsewhere(Path(folder), spec, settings, open_store(settings.results))
        try:
            yield files
        finally:
            files.remove()


def no_result(job: str, ending: str, output: str, settings: SparkSettings) -> RetryableError:
    """Return the error about a job that ended without a result.

    Args:
        job: its name.
        ending: how spark-submit ended.
        output: last lines of spark-submit.
        settings: of the job.
    """
    application = application_in(output) if settings.driver_elsewhere else ""
    read = f"read the log of the driver: yarn logs -applicationId {application}" if application else "read the output"
    return RetryableError(
        "the Spark job ended without a result",
        why=f"{ending}; its last lines:\n{output}",
        hint=f"{read}; if memory was short, raise spark.driver.memory in [spark.conf]",
        job=job,
    )


def _written(spec: BaseModel, folder: Path) -> Path:
    file = folder / "spec.json"
    file.write_text(spec.model_dump_json(), encoding="utf-8")
    return file


def _require_yarn(settings: SparkSettings) -> None:
    if settings.master != YARN:
        raise UsageError(
            "deploy mode cluster needs YARN",
            why=f"the master is {settings.master}",
            hint=f"remove {DEPLOY_MODE} from [spark.conf], or deploy-mode from the Airflow connection: the driver then"
            " runs where the command or the task runs",
        )


def _refuse_environment(spec: BaseModel, settings: SparkSettings) -> None:
    """Refuse secrets of this machine's environment. Spark could only pass them on where everybody can read them."""
    if found := references_to_environment(spec.model_dump() | {"results": settings.results}):
        raise UsageError(
            "secrets from the environment are not available to a driver on another machine",
            why=f"deploy mode is cluster, and the configuration refers to {', '.join(sorted(found))}",
            hint="write these secrets as file:/path, with that file on every node of the cluster; or set"
            f" {DEPLOY_MODE} to client",
        )
