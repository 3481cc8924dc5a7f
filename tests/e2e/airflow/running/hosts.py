"""Hosts of Airflow's Celery workers: each has a name, processes and files of its own, on this machine.

A host is a set of Linux namespaces. On it, the folder for temporary files is its own: of everything that the tests keep
there, it has only the configuration. So a task that reads what another host wrote to a disk finds nothing.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loader.resources import cache_folder
from tests.e2e.airflow.running.processes import processes_with
from tests.e2e.airflow.running.server import Airflow, until

_NAMESPACES = ["unshare", "--uts", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"]
_START = """
set -eu
hostname "$HOST_NAME"
mount --bind "$DISK/hosts" /etc/hosts
mount -t overlay overlay -o "lowerdir=$CACHE,upperdir=$DISK/cache,workdir=$DISK/work" "$CACHE"
mount --bind "$DISK/tmp" "$TEMPORARY"
cd "$AIRFLOW_HOME"
exec "$@"
"""


class Host:
    """A host with one worker.

    Attributes:
        name: of the host, which Airflow shows for each task.
        disk: the folder of its files.
    """

    def __init__(self, airflow: Airflow, name: str, queue: str) -> None:
        self.name, self.disk = name, airflow.home.parent / name
        temporary = Path(tempfile.gettempdir())
        for folder in (self._inside(airflow.home), self.disk / "cache", self.disk / "work"):
            folder.mkdir(parents=True)
        config = Path(airflow.env["LOADER_CONFIG"])
        self._inside(config).write_bytes(config.read_bytes())
        (self.disk / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n", encoding="utf-8")
        places = {"HOST_NAME": name, "DISK": str(self.disk), "CACHE": str(cache_folder()), "TEMPORARY": str(temporary)}
        options = ["--queues", queue, "--celery-hostname", f"{name}@%h", "--concurrency", "1", "--skip-serve-logs"]
        argv = [*_NAMESPACES, "sh", "-c", _START, "sh", *airflow.command("celery", "worker", *options)]
        with (airflow.home / f"{name}.log").open("ab") as log:
            self._process = subprocess.Popen(argv, env=airflow.env | places, stdout=log, stderr=log)

    def processes(self, text: str = "") -> list[int]:
        """Return the ids of its processes whose command contains the text."""
        return processes_with(f"DISK={self.disk}", text)

    def fail(self) -> None:
        """Kill all its processes at the same time, as if its power had failed."""
        self._process.kill()
        self._process.wait()
        until(f"the processes of {self.name} to end", lambda: not self.processes(), 60)

    def _inside(self, path: Path) -> Path:
        """Return where a file of the host is, from outside."""
        return self.disk / "tmp" / path.relative_to(tempfile.gettempdir())


def can_run_hosts() -> bool:
    """Whether this user may give processes a host of their own."""
    return subprocess.run([*_NAMESPACES, "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def running_host(airflow: Airflow, name: str, queue: str) -> Iterator[Host]:
    """Start a host whose worker reads a queue; it ends with the block."""
    host = Host(airflow, name, queue)
    try:
        yield host
    finally:
        host.fail()
