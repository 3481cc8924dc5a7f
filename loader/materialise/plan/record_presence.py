"""Looks for records of a seqno range in a staged file, if the file's smallest and largest seqno do not decide it."""

from __future__ import annotations

from collections.abc import Iterable

from loader.staging.documents import StagedFile
from loader.staging.file_verification import find_fault
from loader.store.base import Store


def has_records(store: Store, file: StagedFile, after_seqno: int, last_seqno: int) -> bool:
    """Return whether a file has a record with `after_seqno` < seqno <= `last_seqno`.

    Each record is one line. The seqno is its second field.

    Raises:
        StagedDataError: the file is missing or changed.
    """
    if found := find_fault(store, file):
        raise found
    with store.reading(file.key) as lines:
        return any(after_seqno < int(line.split(b",", 2)[1]) <= last_seqno for line in lines)


def any_has_records(store: Store, files: Iterable[StagedFile], after_seqno: int, last_seqno: int) -> bool:
    """Return whether one of the files has a record with `after_seqno` < seqno <= `last_seqno`.

    Only files that begin before the range and end after it are read.

    Raises:
        StagedDataError: a file that must be read is missing or changed.
    """
    found = [file for file in files if file.rows and file.min_seqno <= last_seqno and file.max_seqno > after_seqno]
    if any(file.min_seqno > after_seqno or file.max_seqno <= last_seqno for file in found):
        return True
    return any(has_records(store, file, after_seqno, last_seqno) for file in found)
