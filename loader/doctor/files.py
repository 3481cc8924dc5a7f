"""Checks of log files that are read in place."""

from __future__ import annotations

from collections.abc import Callable

from loader.doctor.finding import Check, Finding, ok
from loader.reader.files.log_files import LogFiles
from loader.reader.files.window import opened


def checks(find: Callable[[], LogFiles], place: str) -> list[Check]:
    """Return the checks of the log files that `find` opens; `place` names them in findings."""
    return [("log files", lambda: readable(find(), place))]


def readable(files: LogFiles, place: str) -> Finding:
    """Check that no log file is missing, and that the newest can be read, also if it is encrypted."""
    listed = files.listed()
    newest = listed[-1]
    with opened(files, newest) as log:
        version = log.form.server_version
    size = sum(file.size for file in listed)
    return ok("log files", f"{listed[0].name} to {newest.name}, {size:,} bytes, of {version}, in {place}")
