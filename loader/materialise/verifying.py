"""Staged files are verified before anything reads them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from loader.job import carried
from loader.staging.documents import StagedFile
from loader.staging.verifying import fault, faults
from loader.store.base import Store
from loader.store.opening import open_store

_HERE = 64 * 1024 * 1024  # bytes up to which the start of Spark tasks costs more than the driver's own hashing


def verify_files(session: SparkSession, store: Store, files: Sequence[StagedFile]) -> None:
    """Read every file once and compare it with its entry, in Spark tasks when there is much to read.

    Raises:
        StagedDataError: naming a file that is missing or changed.
    """
    if sum(file.bytes for file in files) <= _HERE:
        for found in faults(store, files):
            raise found
        return
    root = store.root
    session.sparkContext.parallelize(files, len(files)).foreach(lambda file: _verify(root, file))


def _verify(root: str, file: StagedFile) -> None:
    with carried():
        if found := fault(open_store(root), file):
            raise found
