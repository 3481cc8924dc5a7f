"""A cache folder outside the checkout. Its entries are built once, and appear complete."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return `$LOADER_CACHE`, else `~/.cache/binlog-loader`."""
    named = os.environ.get("LOADER_CACHE")
    return Path(named).expanduser().absolute() if named else Path.home() / ".cache" / "binlog-loader"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait for the exclusive lock of a folder, which may not exist yet, and hold it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return the folder. Fill it with `build` if it does not exist.

    The folder appears by a rename, so it is either whole or absent, also when a process dies while it builds. Of
    several processes one builds and the others wait for it.
    """
    if folder.is_dir():
        return folder
    with locked(folder):
        if not folder.is_dir():
            _build(folder, build)
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    # Left by a killed process. No other process can work on it, because this process holds the lock.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        build(partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
