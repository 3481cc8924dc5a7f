"""Staged files are what their manifest says: size and SHA-256, before anything reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loader.errors import StagedDataError
from loader.staging.documents import StagedFile
from loader.store.base import ObjectNotFound, Store

_AT_ONCE = 4  # hashing releases the interpreter's lock


def verify_files(store: Store, files: Sequence[StagedFile]) -> None:
    """Read every file once and compare it with its entry.

    Raises:
        StagedDataError: naming the first file that is missing or changed.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for file, found in zip(files, pool.map(lambda file: _digest(store, file), files), strict=True):
            if found is None:
                raise _wrong("a staged file is missing", file)
            size, sha256 = found
            if size != file.bytes:
                raise _wrong("a staged file has changed", file, f"{file.bytes} bytes became {size}")
            if sha256 != file.sha256:
                raise _wrong("a staged file has changed", file, f"SHA-256 {file.sha256} became {sha256}")


def _digest(store: Store, file: StagedFile) -> tuple[int, str] | None:
    """Size and SHA-256 of the stored bytes; None when there is no such object."""
    uri = store.uri(file.key)
    try:
        if uri.startswith("file://"):
            return _digest_path(Path(uri.removeprefix("file://")))
        data = store.get(file.key)
    except (FileNotFoundError, ObjectNotFound):
        return None
    return len(data), hashlib.sha256(data).hexdigest()


def _digest_path(path: Path) -> tuple[int, str]:
    """In blocks: a part of a huge transaction need not fit into memory."""
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return stream.tell(), sha256


def _wrong(what: str, file: StagedFile, why: str = "") -> StagedDataError:
    return StagedDataError(
        what,
        why=why,
        hint="restore the file that was there, then run again",
        table=file.name,
        file=file.key,
    )
