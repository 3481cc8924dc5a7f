"""A standalone Spark cluster on this machine: the daemons of the installed pyspark, one master and some workers."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from infra.servers.process import wait_until

_DAEMON = "org.apache.spark.deploy"
_KEPT = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR")
"""Variables that the daemons, and so the executors, get from this process."""


class SparkCluster:
    """A running cluster whose traffic is authenticated and encrypted.

    Attributes:
        folder: of its configuration, logs and work.
        master: its URL.
        environment: variables of applications that connect to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._home = Path(next(iter(importlib.util.find_spec("pyspark").submodule_search_locations or ())))  # type: ignore[union-attr]
        port, self._page = _free_port(), _free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self.environment = {"SPARK_CONF_DIR": str(self._configure())}
        self._master = self._start("master.Master", "--port", str(port), "--webui-port", str(self._page))
        self.workers: list[subprocess.Popen[bytes]] = []
        self._started = 0

    def add_worker(self) -> None:
        """Start a worker with one core, and wait until the master knows it."""
        number = len(self.workers)
        self._started += 1
        work = self.folder / f"worker{self._started}"
        arguments = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work), self.master)
        self.workers.append(self._start("worker.Worker", *arguments))
        if not wait_until(lambda: self._alive() > number, 60):
            raise TimeoutError(f"the workers of Spark did not come up: see {self.folder}")

    def executors(self) -> list[int]:
        """Return the process ids of the executors. They are in the process groups of their workers."""
        groups = ",".join(str(worker.pid) for worker in self.workers)
        argv = ["pgrep", "-g", groups, "-f", "CoarseGrainedExecutorBackend"]
        return [int(line) for line in subprocess.run(argv, check=False, capture_output=True).stdout.split()]

    def kill_worker(self) -> None:
        """Kill a worker and its executors."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """Stop all daemons and their executors."""
        for process in (*self.workers, self._master):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _configure(self) -> Path:
        folder = self.folder / "conf"
        folder.mkdir(parents=True)
        lines = ("spark.authenticate true", f"spark.authenticate.secret {secrets.token_hex(32)}")
        file = folder / "spark-defaults.conf"
        file.touch(0o600)
        file.write_text("\n".join((*lines, "spark.network.crypto.enabled true", "")), encoding="utf-8")
        return folder

    def _start(self, daemon: str, *arguments: str) -> subprocess.Popen[bytes]:
        environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environ |= self.environment | {"SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": "127.0.0.1"}
        argv = [str(self._home / "bin" / "spark-class"), f"{_DAEMON}.{daemon}", "--host", "127.0.0.1", *arguments]
        with (self.folder / f"{daemon}.log").open("ab") as log:
            return subprocess.Popen(argv, env=environ, stdout=log, stderr=log, start_new_session=True)

    def _alive(self) -> int:
        try:
            with urlopen(f"http://127.0.0.1:{self._page}/json", timeout=5) as page:
                return int(json.load(page)["aliveworkers"])
        except (OSError, ValueError):  # it is starting
            return 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """Start a cluster, and stop it at the end."""
    cluster = SparkCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()
