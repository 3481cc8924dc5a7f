"""A real HDFS on this machine, for the tests: a name node and a data node, from jars that are fetched into the cache.

with start_hdfs(folder) as server:
    open_store(f"{server.address}/staging?webhdfs={server.web}")
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from infra.hadoop.site import JVM, configure
from infra.kerberos import REALM, Kerberos
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until
from loader.jars.resolve import jars_folder, java

_LOCK = Path(__file__).parent / "hadoop" / "jars.lock"
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_START_SECONDS = 60
_NODE, _WEB = f"hdfs/{HOST}@{REALM}", f"HTTP/{HOST}@{REALM}"
_SECURE = {
    "hadoop.security.authentication": "kerberos",
    "dfs.namenode.kerberos.principal": _NODE,
    "dfs.data.transfer.protection": "authentication",
}
_OPEN = "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
_LIVE = (b'"NumLiveDataNodes" : 1', b'"FSState" : "Operational"')


@dataclass(frozen=True)
class HdfsServer:
    """A running file system. Without Kerberos it trusts the user name of every client.

    Attributes:
        settings: what clients need in their configuration of Hadoop.
    """

    port: int
    web_port: int
    data_web_port: int
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Return the address for Spark and Hadoop."""
        return f"hdfs://{HOST}:{self.port}"

    @property
    def web(self) -> str:
        """Return the address of WebHDFS."""
        return f"http://{HOST}:{self.web_port}"


class HdfsNodes:
    """The processes of a file system; its name node can be stopped and started again on its port.

    Args:
        folder: an empty folder.
        realm: which users and nodes authenticate in; None without Kerberos. User `hdfs` of the realm may do everything.
    """

    def __init__(self, folder: Path, realm: Kerberos | None = None) -> None:
        self.server = HdfsServer(free_port(), free_port(), free_port(), _SECURE if realm else {})
        self._folder = folder
        self._environment = dict(os.environ)
        options = [*JVM]
        settings = _settings(folder, self.server)
        if realm:
            keys = realm.keytab(_NODE, _WEB)
            settings |= _secure(str(keys))
            options += [realm.java_option, _OPEN]
            self._environment["KRB5CCNAME"] = str(realm.ticket(keys, _NODE))
        conf = _configured(folder, self.server, settings)
        self._command = [java(), *options, "-cp", f"{conf}:{jars_folder(_LOCK)}/*"]
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def format(self) -> None:
        """Create an empty file system.

        Raises:
            ServerError: it could not be made.
        """
        argv = [*self._command, _NAME_NODE, "-format", "-nonInteractive", "-force"]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ServerError(f"the name node could not be formatted:\n{tail(done.stdout + done.stderr)}")

    def start(self) -> None:
        """Start the nodes that do not run, and wait until the file system can be written.

        Raises:
            ServerError: it did not come up.
        """
        for name in (_NAME_NODE, DATA_NODE):
            if name not in self._nodes:
                self._nodes[name] = self._started(name)
        if not wait_until(lambda: self._ended() or self._ready(), _START_SECONDS) or self._ended():
            logs = "\n".join(tail(log.read_text()) for log in self._folder.glob("*.log"))
            raise ServerError(f"HDFS did not come up:\n{logs}")

    def stop(self, *names: str) -> None:
        """Kill the nodes of these classes: the name node by default."""
        for name in names or (_NAME_NODE,):
            if node := self._nodes.pop(name, None):
                node.kill()
                node.wait()

    def safe_mode(self, action: str) -> None:
        """`enter` safe mode, in which nothing can be written, or `leave` it.

        Raises:
            ServerError: the name node refused.
        """
        done = self._admin("-safemode", action)
        if done.returncode:
            raise ServerError(f"safe mode could not be changed:\n{tail(done.stdout + done.stderr)}")

    def _admin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [*self._command, _ADMIN, *arguments]
        return subprocess.run(argv, check=False, capture_output=True, text=True, env=self._environment)

    def _ready(self) -> bool:
        """Return whether files can be written. With Kerberos the name node shows its state to nobody else."""
        if self.server.settings:
            return self._admin("-safemode", "wait").returncode == 0
        return _ready(self.server)

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        log = self._folder / f"{name.rpartition('.')[2]}.log"
        with log.open("ab") as output:
            return subprocess.Popen([*self._command, name], stdout=output, stderr=output, start_new_session=True)

    def _ended(self) -> bool:
        return any(node.poll() is not None for node in self._nodes.values())


@contextmanager
def run_hdfs(folder: Path, realm: Kerberos | None = None) -> Iterator[HdfsNodes]:
    """A file system whose data is in an empty folder, until the end of the block; see `HdfsNodes`.

    Raises:
        ServerError: it did not come up.
        JarsError: its jars could not be had.
    """
    nodes = HdfsNodes(folder, realm)
    nodes.format()
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop(_NAME_NODE, DATA_NODE)


@contextmanager
def start_hdfs(folder: Path) -> Iterator[HdfsServer]:
    """Start a file system that stays running; see `run_hdfs`."""
    with run_hdfs(folder) as nodes:
        yield nodes.server


def _ready(server: HdfsServer) -> bool:
    query = f"{server.web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    with suppress(OSError), urlopen(query, timeout=2) as answer:  # noqa: S310 - on loopback
        text = answer.read()
        return all(sign in text for sign in _LIVE)
    return False


def _configured(folder: Path, server: HdfsServer, settings: Mapping[str, str]) -> Path:
    """Write the files that both nodes read from the class path. They need folders for their web pages to start."""
    conf = folder / "conf"
    for name in ("hdfs", "datanode", "static"):
        (conf / "webapps" / name).mkdir(parents=True)
    return configure(conf, {"core": {"fs.defaultFS": server.address, **server.settings}, "hdfs": settings})


def _secure(keys: str) -> dict[str, str]:
    return {
        "dfs.block.access.token.enable": "true",
        "dfs.namenode.keytab.file": keys,
        "dfs.datanode.kerberos.principal": _NODE,
        "dfs.datanode.keytab.file": keys,
        "dfs.web.authentication.kerberos.principal": _WEB,
        "dfs.web.authentication.kerberos.keytab": keys,
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": _WEB,
        "hadoop.http.authentication.kerberos.keytab": keys,
        # Otherwise a data node needs ports below 1024, or HTTPS.
        "ignore.secure.ports.for.testing": "true",
        # A Hive Metastore makes folders as its users.
        "hadoop.proxyuser.hive.hosts": "*",
        "hadoop.proxyuser.hive.users": "*",
        # Until the data node is there, the name node is in safe mode.
        "dfs.namenode.safemode.min.datanodes": "1",
        "dfs.namenode.safemode.extension": "0",
    }


def _settings(folder: Path, server: HdfsServer) -> dict[str, str]:
    return {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": f"file://{folder}/name",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.namenode.rpc-address": f"{HOST}:{server.port}",
        "dfs.namenode.http-address": f"{HOST}:{server.web_port}",
        "dfs.datanode.hostname": HOST,
        "dfs.datanode.address": f"{HOST}:0",
        "dfs.datanode.ipc.address": f"{HOST}:0",
        "dfs.datanode.http.address": f"{HOST}:{server.data_web_port}",
        "dfs.permissions.superusergroup": "nobody",
        # Small writes take a tenth of the time: a block is asked for again after 10 ms instead of 400.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    }
