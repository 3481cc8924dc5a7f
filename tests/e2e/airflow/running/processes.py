"""The processes of an Airflow's tasks, so that tests can kill them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from tests.e2e.airflow.running.server import Airflow

MERGE = "/jobs/materialise_job.py"


def merges(airflow: Airflow) -> list[int]:
    """Return the ids of the processes that have this Airflow's home and run a merge, which is a job of Spark."""
    return processes_of(airflow.home, MERGE)


def processes_of(home: Path, text: str = "") -> list[int]:
    """Return the ids of the processes with this home of Airflow and a command that contains the text."""
    return processes_with(f"AIRFLOW_HOME={home}", text)


def processes_with(variable: str, text: str = "") -> list[int]:
    """Return the ids of the processes with this variable and value, and a command that contains the text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0") and text in command(
                int(process.name)
            ):
                found.append(int(process.name))
        except OSError:  # it ended, or belongs to somebody else
            continue
    return found


def command(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


class Arguments:
    """The argument lists of all processes that run meanwhile, also of short ones if they live for a second."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ended = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Arguments:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(1):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    self.seen.add(command(int(process.name)))


def drivers(airflow: Airflow) -> list[int]:
    """Return the ids of the JVMs that have started the program of a merge."""
    programs = [process for process in merges(airflow) if not command(process).partition(" ")[0].endswith("java")]
    return [_parent(process) for process in programs if command(_parent(process)).partition(" ")[0].endswith("java")]


def kill_driver(airflow: Airflow) -> None:
    """Kill the JVM of the merge."""
    for process in drivers(airflow):
        os.kill(process, signal.SIGKILL)


def kill_worker(airflow: Airflow, scheduler: int) -> None:
    """Kill the merge, its task and the worker of its task at the same time, as if their machine had failed."""
    lost = set(merges(airflow))
    for process in tuple(lost):
        while (process := _parent(process)) not in {scheduler, 1, 0}:
            lost.add(process)
    for process in sorted(lost):  # the worker first, so that it cannot report anything
        os.kill(process, signal.SIGKILL)


def kill_with_children(process: int) -> None:
    """Kill a process and all that it started, as if their machine had failed. Their environment may be overwritten."""
    everybody = [int(one.name) for one in Path("/proc").glob("[0-9]*")]
    for lost in sorted(one for one in everybody if process in {one, *_ancestors(one)}):
        with suppress(ProcessLookupError):
            os.kill(lost, signal.SIGKILL)


def _ancestors(process: int) -> Iterator[int]:
    with suppress(OSError):  # it has ended
        while process := _parent(process):
            yield process


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
