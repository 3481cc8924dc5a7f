"""Whether a staged file has records of a stretch of the log, where its least and greatest seqno do not tell."""

from __future__ import annotations

from loader.staging.documents import StagedFile
from loader.staging.file_verification import fault
from loader.store.base import Store


def has_records(store: Store, file: StagedFile, after: int, through: int) -> bool:
    """Return whether a file has a record with `after` < seqno <= `through`.

    Each record is one line, and its seqno the second field.

    Raises:
        StagedDataError: the file is lost or changed.
    """
    if found := fault(store, file):
        raise found
    with store.reading(file.key) as lines:
        return any(after < int(line.split(b",", 2)[1]) <= through for line in lines)
