"""Verification of staged files: each must exist with the size and the SHA-256 of its manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from loader.errors import StagedDataError
from loader.staging.documents import StagedFile
from loader.staging.layout import purged_key
from loader.store.base import BLOCK_BYTES, ObjectNotFound, Store

_AT_ONCE = 4  # hashing releases the GIL


def find_faults(store: Store, files: Sequence[StagedFile]) -> Iterator[StagedDataError]:
    """Read every file once, and yield an error for each lost or changed file, in the order of `files`."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from (found for found in pool.map(lambda file: find_fault(store, file), files) if found)


def find_fault(store: Store, file: StagedFile) -> StagedDataError | None:
    """Return the error of a lost or changed file, or None if the file matches its manifest."""
    try:
        size, sha256 = _digest(store, file.key)
    except ObjectNotFound:
        return missing_error(store, file)
    return compare_digest(file, size, sha256)


def compare_digest(file: StagedFile, size: int, sha256: str) -> StagedDataError | None:
    """Return the error of a file with this size and SHA-256, or None if the file matches its manifest."""
    if size != file.bytes:
        return _wrong("a staged file has changed", file, f"{file.bytes} bytes became {size}")
    if sha256 != file.sha256:
        return _wrong("a staged file has changed", file, f"SHA-256 {file.sha256} became {sha256}")
    return None


def missing_error(store: Store, file: StagedFile) -> StagedDataError:
    """Return the error of a file that does not exist."""
    return _purged(store, file) or _wrong("a staged file is missing", file)


def _digest(store: Store, key: str) -> tuple[int, str]:
    """Return size and SHA-256 of an object, read in blocks: a part with a huge transaction may exceed memory."""
    sha256, size = hashlib.sha256(), 0
    with store.reading(key) as stream:
        while block := stream.read(BLOCK_BYTES):
            sha256.update(block)
            size += len(block)
    return size, sha256.hexdigest()


def _purged(store: Store, file: StagedFile) -> StagedDataError | None:
    try:
        store.get(purged_key(file.key.rsplit("/", 5)[0]))
    except ObjectNotFound:
        return None
    return StagedDataError(
        "a staged file was purged",
        why="every table has its interval, and the file was older than the retention period",
        hint=f"restore it from the archive, or {_restoring(file)}; otherwise: {file.name.load_again}",
        table=file.name,
        file=file.key,
    )


def _restoring(file: StagedFile) -> str:
    """Return how to restore a file. Its key tells whether it belongs to an interval or to an initial load."""
    interval = file.key.split("/")[2]
    if interval.isdigit():
        return f"while the server keeps the log: loader staged restore {int(interval)}"
    return f"load the table again: {file.name.load_again}"


def _wrong(what: str, file: StagedFile, why: str = "") -> StagedDataError:
    return StagedDataError(
        what,
        why=why,
        hint=f"restore the original file, or {_restoring(file)}",
        table=file.name,
        file=file.key,
    )
