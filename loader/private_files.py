"""Files and folders that no other user of the machine can have written."""

from __future__ import annotations

import os
import platform
import stat
from pathlib import Path

from loader.errors import UsageError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(folder: Path) -> Path:
    """Create a folder and its missing parents for this user only, and return it.

    An existing folder of this user that others can write to is closed to them.

    Raises:
        UsageError: the folder cannot be created, or belongs to another user, other than root.
    """
    try:
        for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(
            "a folder for compiled code cannot be created",
            why=f"{error}, on {platform.node()}",
            hint="name a folder that this user can write to: export LOADER_CACHE=/var/cache/loader; for executors of"
            " Spark with spark.executorEnv.LOADER_CACHE in [spark.conf]",
            folder=folder,
        ) from error
    status = folder.stat()
    if status.st_uid not in {0, os.geteuid()}:
        raise UsageError(
            "a folder of compiled code belongs to another user",
            why=f"its owner could run code as user {os.geteuid()}; its owner is user {status.st_uid}",
            hint="use your own folder: export LOADER_CACHE=$HOME/.cache/binlog-loader",
            folder=folder,
        )
    if status.st_mode & _OTHERS_WRITE and status.st_uid == os.geteuid():
        folder.chmod(0o700)
    return folder


def is_private(status: os.stat_result) -> bool:
    """Return whether only this user or root can have written a file."""
    return status.st_uid in {0, os.geteuid()} and not status.st_mode & _OTHERS_WRITE


def read_private(file: Path) -> bytes | None:
    """Return the bytes of a file; None if it does not exist, or others can have written it."""
    try:
        with file.open("rb") as opened:
            return opened.read() if is_private(os.fstat(opened.fileno())) else None
    except FileNotFoundError:
        return None
