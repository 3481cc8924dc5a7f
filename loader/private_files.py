"""Files and folders that no other user of the machine may have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from loader.errors import UsageError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(folder: Path) -> Path:
    """Make a folder, and those above it that are missing, for this user alone; return it.

    A folder of this user that others may write to is closed to them.

    Raises:
        UsageError: it belongs to another user, other than root.
    """
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid not in {0, os.geteuid()}:
        raise UsageError(
            "a folder of compiled code belongs to another user",
            why=f"whoever owns it could have code run as user {os.geteuid()}; its owner is user {status.st_uid}",
            hint="name a folder of your own: export LOADER_CACHE=$HOME/.cache/binlog-loader",
            folder=folder,
        )
    if status.st_mode & _OTHERS_WRITE and status.st_uid == os.geteuid():
        folder.chmod(0o700)
    return folder


def is_private(status: os.stat_result) -> bool:
    """Return whether a file was written by this user or root, and can be by nobody else."""
    return status.st_uid in {0, os.geteuid()} and not status.st_mode & _OTHERS_WRITE


def read_private(file: Path) -> bytes | None:
    """Return the bytes of a file; None if there is none, or others may have written it."""
    try:
        with file.open("rb") as opened:
            return opened.read() if is_private(os.fstat(opened.fileno())) else None
    except FileNotFoundError:
        return None
