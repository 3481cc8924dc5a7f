"""Log files that are read in place."""

from __future__ import annotations

from collections.abc import Callable

from loader.doctor.finding import Check, Finding, ok
from loader.reader.files.log_files import LogFiles
from loader.reader.files.window import opened


def checks(find: Callable[[], LogFiles], place: str) -> list[Check]:
    """All checks of log files at a place; `find` finds them there."""
    return [("log files", lambda: readable(find(), place))]


def readable(files: LogFiles, place: str) -> Finding:
    """Whether the files are there without a gap, and the newest can be read, with its key where it is encrypted."""
    found = files.listed()
    newest = found[-1]
    with opened(files, newest) as log:
        version = log.form.server_version
    size = sum(one.size for one in found)
    return ok("log files", f"{found[0].name} to {newest.name}, {size:,} bytes, of {version}, in {place}")
