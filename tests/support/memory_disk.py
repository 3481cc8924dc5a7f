"""A folder in memory for the temporary files of the tests, where the machine has room for one.

Servers, stores and catalogs sync their files, and on a disk the tests wait for that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - the memory file system of Linux
_ROOM = 8 << 30  # bytes; a run of all tests takes up to 4 GB, with its servers


def use_memory_disk() -> Callable[[], None]:
    """Put new temporary files in memory, also those of processes started from here, unless TMPDIR is set.

    Returns:
        A function that removes them.
    """
    if "TMPDIR" in os.environ or not _has_room():
        return lambda: None
    _remove_leftovers()
    folder = tempfile.mkdtemp(prefix=f"tests-{os.getpid()}-", dir=_MEMORY_DISK)
    Path(folder).chmod(0o711)  # servers may run as another user
    os.environ["TMPDIR"] = tempfile.tempdir = folder

    def remove() -> None:
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)

    return remove


def _remove_leftovers() -> None:
    """Remove the folders of killed runs."""
    for folder in _MEMORY_DISK.glob("tests-*-*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _has_room() -> bool:
    try:
        programs_run = not os.statvfs(_MEMORY_DISK).f_flag & os.ST_NOEXEC
        return programs_run and min(shutil.disk_usage(_MEMORY_DISK).free, _available_memory()) >= _ROOM
    except OSError:
        return False


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
