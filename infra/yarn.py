"""A real YARN on this machine, for the tests: a resource manager and a node manager, next to an HDFS of `infra.hdfs`.

with yarn_cluster(folder, hdfs) as cluster:
    subprocess.run(["spark-submit", "--master", "yarn", ...], env=os.environ | cluster.environment)
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from infra.hadoop.site import JVM, configure
from infra.hdfs import HdfsServer
from infra.kerberos import REALM, Kerberos
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until
from loader.jars.resolve import jars_folder, java

_JARS = Path(__file__).parent / "hadoop"
_RESOURCES = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_PRINCIPAL = f"yarn/{HOST}@{REALM}"
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
"""Variables that the daemons, and so the containers, get from this process."""
_EXECUTOR = b"org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"
_DRIVER = b"job.py"
"""The file that the Python program of a driver runs."""
_START_SECONDS = 90
_MEMORY_MB = "8192"
"""What the node offers to containers. Nothing checks that the machine has it."""


class YarnCluster:
    """A running cluster with one node. Without Kerberos it trusts the user name of every client.

    The processes of all containers belong to the user of this process.

    Args:
        folder: an empty folder.
        hdfs: the default file system.
        realm: the realm of users, daemons and the file system; None without Kerberos.

    Attributes:
        folder: of its configuration, logs and containers.
        environment: variables of applications that connect to it.
    """

    def __init__(self, folder: Path, hdfs: HdfsServer, realm: Kerberos | None = None) -> None:
        self.folder = folder
        self._page = free_port()
        settings = self._settings() | (_secure(str(realm.keytab(_PRINCIPAL))) if realm else {})
        core = {"fs.defaultFS": hdfs.address, **hdfs.settings}
        conf = configure(folder / "conf", {"core": core, "yarn": settings})
        self.environment = {"HADOOP_CONF_DIR": str(conf)}
        (folder / "home").mkdir()
        jars = (jars_folder(_JARS / "jars.lock"), jars_folder(_JARS / "yarn.lock"))
        options = [*JVM, *([realm.java_option] if realm else [])]
        self._command = [java(), *options, "-cp", ":".join([str(conf), *(f"{jar}/*" for jar in jars)])]
        self._daemons = [self._start(name) for name in (_RESOURCES, _NODE)]

    def wait(self) -> None:
        """Wait until containers can be started.

        Raises:
            ServerError: it did not come up.
        """
        if not wait_until(lambda: self._ended() or self._ready(), _START_SECONDS) or self._ended():
            logs = "\n".join(tail(log.read_text()) for log in self.folder.glob("*.log"))
            raise ServerError(f"YARN did not come up:\n{logs}")

    def executors(self) -> list[int]:
        """Return the process ids of the executors of Spark that have begun a task."""
        return [pid for pid in self.containers() if _runs(pid, _EXECUTOR) and self._has_begun(pid)]

    def drivers(self) -> list[int]:
        """Return the process ids of the Python programs of drivers that run on the cluster."""
        return [pid for pid in self.containers() if _command(pid)[1:2] == [_DRIVER]]

    def stop(self) -> None:
        """Kill the daemons and everything in their containers."""
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()
        for pid in self.containers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def containers(self) -> list[int]:
        """Return the process ids of everything in containers: they work in the folder.

        Each container has a session of its own, and the node manager may be dead.
        """
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._works_here(entry)]

    def _works_here(self, entry: Path) -> bool:
        with suppress(OSError):  # it has ended
            return (entry / "cwd").readlink().is_relative_to(self.folder)
        return False

    def _has_begun(self, executor: int) -> bool:
        with suppress(OSError):  # it has ended
            container = Path(f"/proc/{executor}/cwd").readlink()
            log = self.folder / "logs" / container.parent.name / container.name / "stderr"
            return b"Executor: Running task " in log.read_bytes()
        return False

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        environ = {variable: os.environ[variable] for variable in _KEPT if variable in os.environ}
        environ["JAVA_HOME"] = str(Path(shutil.which(java()) or java()).resolve().parents[1])
        with (self.folder / f"{name.rpartition('.')[2]}.log").open("ab") as log:
            return subprocess.Popen(
                [*self._command, name], env=environ, cwd="/", stdout=log, stderr=log, start_new_session=True
            )

    def _ended(self) -> bool:
        return any(daemon.poll() is not None for daemon in self._daemons)

    def _ready(self) -> bool:
        query = f"http://{HOST}:{self._page}/jmx?qry=Hadoop:service=ResourceManager,name=ClusterMetrics"
        with suppress(OSError), urlopen(query, timeout=2) as answer:
            return b'"NumActiveNMs" : 1' in answer.read()
        return False

    def _settings(self) -> dict[str, str]:
        manager = "yarn.resourcemanager"
        node = "yarn.nodemanager"
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        return {
            **{f"{manager}.{name}": f"{HOST}:{free_port()}" for name in names},
            f"{manager}.webapp.address": f"{HOST}:{self._page}",
            # The default scheduler needs queues.
            f"{manager}.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
            "yarn.scheduler.minimum-allocation-mb": "256",
            f"{node}.address": f"{HOST}:0",
            f"{node}.localizer.address": f"{HOST}:{free_port()}",
            f"{node}.webapp.address": f"{HOST}:0",
            f"{node}.local-dirs": f"{self.folder}/local",
            f"{node}.log-dirs": f"{self.folder}/logs",
            f"{node}.user-home-dir": f"{self.folder}/home",
            f"{node}.resource.memory-mb": _MEMORY_MB,
            # Python and Java reserve much more address space than they use.
            f"{node}.vmem-check-enabled": "false",
            f"{node}.pmem-check-enabled": "false",
            # A disk of this machine may be nearly full.
            f"{node}.disk-health-checker.enable": "false",
        }


def _secure(keys: str) -> dict[str, str]:
    return {
        "yarn.resourcemanager.principal": _PRINCIPAL,
        "yarn.resourcemanager.keytab": keys,
        "yarn.nodemanager.principal": _PRINCIPAL,
        "yarn.nodemanager.keytab": keys,
    }


@contextmanager
def yarn_cluster(folder: Path, hdfs: HdfsServer, realm: Kerberos | None = None) -> Iterator[YarnCluster]:
    """Start a cluster whose files are in an empty folder, and stop it at the end; see `YarnCluster`.

    Raises:
        ServerError: it did not come up.
        JarsError: its jars could not be had.
    """
    cluster = YarnCluster(folder, hdfs, realm)
    try:
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()


def _runs(pid: int, name: bytes) -> bool:
    """Return whether a process is a Java with that class, and not the shell that started it."""
    program, *arguments = _command(pid) or [b""]
    return program.endswith(b"/java") and name in arguments


def _command(pid: int) -> list[bytes]:
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []
