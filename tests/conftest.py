"""Real servers for the tests; a test that uses one carries the mark `integration`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from infra.hdfs import HdfsServer, start_hdfs
from infra.s3server import S3Server, start_s3
from infra.servers import NEW_MARIADB, Kind, Options, Server, start_server
from tests.support.memory_disk import use_memory_disk
from tests.support.sweep import IN_SWEEP

# How long an example takes says more about the machine than about the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

StartServer = Callable[..., Server]


_remove_files = use_memory_disk()  # here, because the conftest of a folder may make files when it is imported


def pytest_configure(config: pytest.Config) -> None:
    config.add_cleanup(_remove_files)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not IN_SWEEP and item.get_closest_marker("sweep"):
            item.add_marker(pytest.mark.skip(reason="a long test: make sweep"))


def pytest_unconfigure() -> None:
    logging.raiseExceptions = False  # py4j logs at the end of Python, when pytest has closed the streams of its tests


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    """One MySQL for the whole session: leave its global settings as they are, and use schemas of your own."""
    with ExitStack() as cleanup:
        yield _start(cleanup, "mysql", {})


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    """One MariaDB for the whole session: leave its global settings as they are, and use schemas of your own."""
    with ExitStack() as cleanup:
        yield _start(cleanup, "mariadb", {})


@pytest.fixture(scope="session")
def new_mariadb_server() -> Iterator[Server]:
    """The same of a MariaDB that is years newer."""
    with ExitStack() as cleanup:
        yield _start(cleanup, "mariadb", {}, NEW_MARIADB)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for the whole session: use buckets of your own."""
    folder: Path = tmp_path_factory.mktemp("s3") / "buckets"
    folder.mkdir()
    with start_s3(folder) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """One HDFS for the whole session: use folders of your own."""
    with start_hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def fresh_server() -> Iterator[StartServer]:
    """A function `(kind="mysql", options=None, way=None)` that starts a new server, stopped at the end of the test."""
    with ExitStack() as cleanup:

        def start(kind: Kind = "mysql", options: Options | None = None, way: str | None = None) -> Server:
            return _start(cleanup, kind, options or {}, way)

        yield start


def _start(cleanup: ExitStack, kind: Kind, options: Options, way: str | None = None) -> Server:
    # Not a tmp_path: pytest keeps those of three sessions, and a data folder has 200 MB.
    folder = Path(cleanup.enter_context(TemporaryDirectory(prefix=f"loader-{kind}-")))
    server = start_server(kind, folder, options, way=way)
    cleanup.callback(server.kill)  # its data is thrown away, so nothing is gained by an orderly end
    return server
