"""Staged files are verified before anything reads them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from loader.spark.job import carried, on_one_machine
from loader.staging.documents import StagedFile
from loader.staging.file_verification import find_fault, find_faults
from loader.store.base import Store
from loader.store.registry import open_store

_SPREAD_BYTES = 64 * 1024 * 1024  # starting tasks takes some 0.3 s, in which the driver hashes as much


def verify_files(session: SparkSession, store: Store, files: Sequence[StagedFile]) -> None:
    """Read every file once and compare it with its entry: the driver does, or the tasks of a cluster if it is much.

    Raises:
        StagedDataError: naming a file that is missing or changed.
    """
    if not _should_distribute(session, files):
        for found in find_faults(store, files):
            raise found
        return
    root = store.root
    session.sparkContext.parallelize(files, len(files)).foreach(lambda file: _verify(root, file))


def _should_distribute(session: SparkSession, files: Sequence[StagedFile]) -> bool:
    """Whether there are other machines to read on, and enough to read. On one alone the driver's threads are faster."""
    return not on_one_machine(session) and sum(file.bytes for file in files) > _SPREAD_BYTES


def _verify(root: str, file: StagedFile) -> None:
    with carried():
        if found := find_fault(open_store(root), file):
            raise found
