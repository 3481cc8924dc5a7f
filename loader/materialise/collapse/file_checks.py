"""Verifies staged files before Spark SQL reads them. Kernels verify files while they read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from loader.spark.job import on_one_machine
from loader.spark.workers import Tasks
from loader.staging.documents import StagedFile
from loader.staging.file_verification import find_fault, find_faults
from loader.store.base import Store
from loader.store.registry import open_store

_SPREAD_BYTES = 64 * 1024 * 1024  # the driver hashes this much in the 0.3 s that it takes to start tasks


def verify_files(session: SparkSession, store: Store, files: Sequence[StagedFile]) -> None:
    """Read every file once and compare it with its entry.

    The driver reads the files, or the tasks of a cluster if there is much data.

    Raises:
        StagedDataError: a file is missing or changed.
        UsageError: an executor has another Python or loader than the driver.
    """
    if not _should_distribute(session, files):
        for found in find_faults(store, files):
            raise found
        return
    Tasks(session, {"root": store.root}).each(partial(_verify, store.root), files)


def _should_distribute(session: SparkSession, files: Sequence[StagedFile]) -> bool:
    """Return whether other machines should read the files. On one machine, the driver's threads are faster."""
    return not on_one_machine(session) and sum(file.bytes for file in files) > _SPREAD_BYTES


def _verify(root: str, file: StagedFile) -> None:
    if found := find_fault(open_store(root), file):
        raise found
