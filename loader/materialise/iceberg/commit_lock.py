"""A lock per table for the hadoop catalog on a local disk, which is not safe for two writers.

It commits by a rename, and on a local file system a rename overwrites the other commit. All other catalogs commit by a
compare-and-swap.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loader.errors import RetryableError
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName
from loader.staging.layout import encode

_PATIENCE = 1800.0  # seconds that another merge of the same table may take
_STEP = 0.1


@contextmanager
def table_lock(catalog: CatalogSettings, table: TableName, patience: float = _PATIENCE) -> Iterator[None]:
    """Hold the table's lock file. The lock ends with the process that holds it.

    Args:
        catalog: the catalog. Without need for a lock, nothing is done.
        table: the table.
        patience: how long to wait for the lock, in seconds.

    Raises:
        RetryableError: another process held the lock all the time.
    """
    folder = _local_folder(catalog)
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    # The lock is a file in the warehouse's root: a folder there would be listed as a namespace.
    path = folder / f".loader-lock-{encode(table.schema)}-{encode(table.table)}"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(handle, table, path, patience)
        yield
    finally:
        os.close(handle)  # which releases it


def _acquire(handle: int, table: TableName, path: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise RetryableError(
                    "another process is merging the table",
                    why=f"it has held the lock for {patience:.0f} s",
                    hint="wait for the other process, or end it; the lock ends with it",
                    table=table,
                    file=path,
                ) from error
            time.sleep(_STEP)


def _local_folder(catalog: CatalogSettings) -> Path | None:
    if catalog.type != "hadoop":
        return None
    scheme, found, rest = catalog.warehouse.partition("://")
    if not found:
        return Path(catalog.warehouse.removeprefix("file:"))
    return Path(rest) if scheme == "file" else None
