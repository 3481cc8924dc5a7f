"""An HDFS with Kerberos, and the folder of a user on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.hadoop.site import configure
from infra.hdfs import HdfsNodes, run_hdfs
from infra.kerberos import Kerberos, run_kerberos
from loader.store.hdfs import HdfsRemote


@dataclass
class SecureHdfs:
    """A running file system, its realm, and the keys of the user `loader`.

    The user owns the folders `/lake` and `/user/loader` of mode 700.

    Attributes:
        hadoop_conf: a folder with the configuration of Hadoop's clients.
    """

    nodes: HdfsNodes
    realm: Kerberos
    keytab: Path
    hadoop_conf: Path

    @property
    def root(self) -> str:
        """Return the address of the folder, without options."""
        return f"{self.nodes.server.address}/lake"

    @property
    def webhdfs(self) -> str:
        """Return the option with the address of WebHDFS."""
        return f"webhdfs={self.nodes.server.web}"

    def ticket(self, lifetime: str = "1h") -> str:
        """Return the file of a new ticket."""
        return str(self.realm.ticket(self.keytab, "loader", lifetime))


@contextmanager
def secure_hdfs(folder: Path) -> Iterator[SecureHdfs]:
    """Start it in an empty folder. This process then uses its realm, and has no ticket, until the end of the block."""
    for name in ("kerberos", "hdfs"):
        (folder / name).mkdir()
    with (
        pytest.MonkeyPatch.context() as patch,
        run_kerberos(folder / "kerberos") as realm,
        run_hdfs(folder / "hdfs", realm) as nodes,
    ):
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        patch.delenv("KRB5_CLIENT_KTNAME", raising=False)
        server = nodes.server
        patch.setenv("KRB5CCNAME", str(realm.ticket(realm.keytab("hdfs"), "hdfs")))
        owner = HdfsRemote(f"{server.address}/lake?webhdfs={server.web}")._client
        owner.makedirs("/user", permission="755")
        for name in ("/lake", "/user/loader"):
            owner.makedirs(name, permission="700")
            owner.set_owner(name, owner="loader")
        patch.setenv("KRB5CCNAME", str(folder / "no-ticket"))
        core = {"fs.defaultFS": server.address, **server.settings}
        yield SecureHdfs(nodes, realm, realm.keytab("loader"), configure(folder / "hadoop", {"core": core}))
