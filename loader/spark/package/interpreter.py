"""The Python of this process, as files that run in any folder.

Python finds its standard library below `PYTHONHOME`: https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHOME.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from loader.spark.package.entries import Entry, entries_of

HOME = "python"
"""Folder of the interpreter in the archive."""
PROGRAM = "bin/python"
"""Path in the archive of the program that starts the interpreter."""
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
LIBRARIES = f"{HOME}/lib/{VERSION}/site-packages"
"""Folder of the libraries in the archive."""

START = f"""#!/bin/sh
# Runs the Python of this archive, from the folder where Spark unpacks it.
here=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONHOME="$here/{HOME}" PYTHONNOUSERSITE=1
export LD_LIBRARY_PATH="$here/{HOME}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
if [ ! -w "${{HOME:-/nonexistent}}" ]; then
    export LOADER_CACHE="${{LOADER_CACHE:-$here/cache}}"
fi
exec "$here/{HOME}/bin/{VERSION}" "$@"
"""
"""Text of `PROGRAM`."""


def interpreter_entries() -> Iterator[Entry]:
    """Return the files of the interpreter and of its standard library, without libraries."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    yield Entry(program, f"{HOME}/bin/{VERSION}")
    yield from entries_of(_standard_library(), f"{HOME}/lib/{VERSION}")
    shared = sysconfig.get_config_var("INSTSONAME")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared:
        yield Entry(Path(str(sysconfig.get_config_var("LIBDIR")), shared), f"{HOME}/lib/{shared}")


def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
