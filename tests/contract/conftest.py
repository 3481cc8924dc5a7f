"""Empty roots on every kind of store."""

from __future__ import annotations

import os
import pwd
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.hdfs import HdfsServer
from infra.s3server import S3Server
from loader.s3 import open_client
from tests.support.catalogs import (
    hive_catalog,
    loose_mysql_catalog,
    mysql_catalog,
    postgres,
    postgres_server,
    postgresql_catalog,
    rest_catalog,
    strict_hive_catalog,
)
from tests.support.secure_hdfs import SecureHdfs, secure_hdfs
from tests.support.spark import jars, new_lake, settings, spark
from tests.support.sweep import IN_SWEEP

__all__ = [
    "hive_catalog",
    "jars",
    "loose_mysql_catalog",
    "mysql_catalog",
    "new_lake",
    "postgres",
    "postgres_server",
    "postgresql_catalog",
    "rest_catalog",
    "settings",
    "spark",
    "strict_hive_catalog",
]

REAL = ["local", pytest.param("s3", marks=pytest.mark.integration), pytest.param("hdfs", marks=pytest.mark.integration)]
if IN_SWEEP:
    REAL.append(pytest.param("kerberos", marks=pytest.mark.integration))
NewRoot = Callable[[str], str]


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server, with its credentials where the loader looks for them; its address is given to each store."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    return s3_server


@pytest.fixture(scope="session")
def secure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureHdfs]:
    with secure_hdfs(tmp_path_factory.mktemp("secure")) as found:
        yield found


@pytest.fixture
def secure(secure_server: SecureHdfs, monkeypatch: pytest.MonkeyPatch) -> SecureHdfs:
    """HDFS with Kerberos, and a ticket of the user who owns its folder."""
    monkeypatch.setenv("KRB5CCNAME", secure_server.ticket())
    return secure_server


@pytest.fixture
def new_root(request: pytest.FixtureRequest, tmp_path: Path) -> NewRoot:
    """A function from a kind of store to an empty root of it; a server is started by who first asks for it."""

    def root(kind: str) -> str:
        name = f"{random.SystemRandom().randrange(10**12)}"
        if kind == "local":
            return f"file://{tmp_path}/{name}"
        if kind == "s3":
            server: S3Server = request.getfixturevalue("s3")
            return f"{new_bucket(server)}/a/staging?endpoint={server.endpoint}&path_style=true"
        if kind == "kerberos":
            secure: SecureHdfs = request.getfixturevalue("secure")
            return f"{secure.root}/{name}/staging?{secure.webhdfs}"
        assert kind == "hdfs", kind
        hdfs: HdfsServer = request.getfixturevalue("hdfs_server")
        return f"{hdfs.address}/{name}/staging?webhdfs={hdfs.web}&user={hdfs_user()}"

    return root


def new_bucket(server: S3Server) -> str:
    """An empty bucket, by its address."""
    name = f"staging-{random.SystemRandom().randrange(10**12)}"
    open_client(endpoint=server.endpoint).create_bucket(Bucket=name)
    return f"s3://{name}"


def hdfs_user() -> str:
    """The user that the name node runs as, who may do everything there."""
    return pwd.getpwuid(os.geteuid()).pw_name
