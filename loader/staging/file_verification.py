"""Staged files are what their manifest says: there, and of its size and SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from loader.errors import StagedDataError
from loader.staging.documents import StagedFile
from loader.staging.layout import purged_key
from loader.store.base import BLOCK_BYTES, ObjectNotFound, Store

_AT_ONCE = 4  # hashing releases the interpreter's lock


def find_faults(store: Store, files: Sequence[StagedFile]) -> Iterator[StagedDataError]:
    """Read every file once and compare it with its entry; an error for each that is lost or changed, in their order."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from (found for found in pool.map(lambda file: find_fault(store, file), files) if found)


def find_fault(store: Store, file: StagedFile) -> StagedDataError | None:
    """What is wrong with a file; None when it is as its entry says."""
    try:
        size, sha256 = _digest(store, file.key)
    except ObjectNotFound:
        return _purged(store, file) or _wrong("a staged file is missing", file)
    if size != file.bytes:
        return _wrong("a staged file has changed", file, f"{file.bytes} bytes became {size}")
    if sha256 != file.sha256:
        return _wrong("a staged file has changed", file, f"SHA-256 {file.sha256} became {sha256}")
    return None


def _digest(store: Store, key: str) -> tuple[int, str]:
    """Size and SHA-256 of the stored bytes, in blocks: a part of a huge transaction need not fit into memory."""
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
        why="all tables had its interval, and it was older than the files are kept",
        hint=f"put it back from the archive if there is one, or {_restoring(file)}; else: {file.name.load_again}",
        table=file.name,
        file=file.key,
    )


def _restoring(file: StagedFile) -> str:
    """How the loader can put a file back: one of an interval, by its key, or of an initial load."""
    interval = file.key.split("/")[2]
    if interval.isdigit():
        return f"while the log is there: loader staged restore {int(interval)}"
    return f"read the table anew: {file.name.load_again}"


def _wrong(what: str, file: StagedFile, why: str = "") -> StagedDataError:
    return StagedDataError(
        what,
        why=why,
        hint=f"put back the file that was there, or {_restoring(file)}",
        table=file.name,
        file=file.key,
    )
