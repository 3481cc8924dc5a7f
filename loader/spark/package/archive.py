"""Writes the archive for executors: Python, the loader with its libraries, and the compiled kernels."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from loader.binlog.native.compiler import kernel_files
from loader.resources import PACKED_KERNELS
from loader.spark.package.entries import Entry
from loader.spark.package.interpreter import LIBRARIES, PROGRAM, START, interpreter_entries
from loader.spark.package.libraries import library_entries

_LEVEL = 3  # of gzip: 6 takes twice as long and saves 4 percent
_PROGRAM_MODE = 0o755
_FILE_MODE = 0o644


def write_package(target: Path) -> int:
    """Write the archive; return its bytes. An existing file is replaced when the new one is complete.

    It holds the compiled kernels of the modules that this process has imported.
    """
    kernels = [Entry(file, f"{LIBRARIES}/loader/{PACKED_KERNELS}/{name}") for name, file in kernel_files().items()]
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with tarfile.open(unfinished, "w:gz", compresslevel=_LEVEL) as archive:
            _add_program(archive)
            _add(archive, chain(interpreter_entries(), library_entries(LIBRARIES), kernels))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target.stat().st_size


def _add_program(archive: tarfile.TarFile) -> None:
    text = START.encode()
    member = tarfile.TarInfo(PROGRAM)
    member.mode, member.size = _PROGRAM_MODE, len(text)
    archive.addfile(member, io.BytesIO(text))


def _add(archive: tarfile.TarFile, entries: Iterable[Entry]) -> None:
    added: set[str] = set()
    for source, path in entries:
        if path in added:
            continue
        added.add(path)
        member = tarfile.TarInfo(path)
        status = source.stat()
        member.size, member.mtime = status.st_size, int(status.st_mtime)
        member.mode = _PROGRAM_MODE if status.st_mode & 0o100 else _FILE_MODE
        with source.open("rb") as opened:
            archive.addfile(member, opened)
