"""A PostgreSQL on this machine, for the tests of JDBC catalogs: programs of a Debian package, data that is thrown away.

with start_postgres() as uri:
    spark.read.format("jdbc").options(url=uri, user="postgres", password=PASSWORD, query="SELECT 1")
"""

from __future__ import annotations

import csv
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until

PASSWORD = "of-the-tests"  # noqa: S105
"""Of the user `postgres`."""

_START_SECONDS = 60
_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "unix_socket_directories=")


class PostgresServer:
    """A server that can be stopped, as by a crash, and started again on its port with its data.

    Attributes:
        uri: its JDBC address.
    """

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder, self._user, self._port = folder, user, free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self.uri = f"jdbc:postgresql://{HOST}:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it takes connections.

        Raises:
            ServerError: it did not come up.
        """
        programs, log = _programs(), self._folder / "log"
        argv = [str(programs / "postgres"), "-D", str(self._folder / "data"), "-h", HOST, "-p", str(self._port)]
        argv += [part for option in _OPTIONS for part in ("-c", option)]
        with log.open("ab") as output:
            server = subprocess.Popen(argv, user=self._user, cwd=self._folder, stdout=output, stderr=output)
        self._server = server
        ready = [str(programs / "pg_isready"), "-h", HOST, "-p", str(self._port), "-q"]
        if not wait_until(lambda: _is_ready(server, ready), _START_SECONDS) or server.poll() is not None:
            raise ServerError(f"PostgreSQL did not come up:\n{tail(log.read_text())}")

    def stop(self) -> None:
        """Stop the server immediately: connections break, and nothing listens on its port."""
        if self._server:
            self._server.send_signal(signal.SIGQUIT)  # SIGKILL would leave its children running
            self._server.wait()


@contextmanager
def run_postgres() -> Iterator[PostgresServer]:
    """A server, whose user `postgres` needs the password, until the end of the block.

    Raises:
        ServerError: it is not installed, or did not come up.
    """
    with TemporaryDirectory(prefix="loader-postgres-") as folder:
        user = _hand_over(Path(folder))
        secret = Path(folder, "password")
        secret.write_text(PASSWORD)
        argv = [str(_programs() / "initdb"), "--pgdata", str(Path(folder, "data")), "--username=postgres", "--no-sync"]
        argv += ["--auth=scram-sha-256", f"--pwfile={secret}"]
        made = subprocess.run(argv, user=user, cwd=folder, check=False, capture_output=True, text=True)
        if made.returncode:
            raise ServerError(f"initdb failed:\n{tail(made.stdout + made.stderr)}")
        server = PostgresServer(Path(folder), user)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def start_postgres() -> Iterator[str]:
    """Start a server that stays running, and return its JDBC address; see `run_postgres`."""
    with run_postgres() as server:
        yield server.uri


def execute(uri: str, statement: str) -> list[list[str]]:
    """Execute a statement as the user `postgres`, and return the rows as texts.

    Args:
        uri: the JDBC address of a database.
        statement: the statement.

    Raises:
        ServerError: it failed.
    """
    argv = [str(_programs() / "psql"), "--no-psqlrc", "--csv", "--tuples-only", "--set", "ON_ERROR_STOP=1"]
    address = uri.removeprefix("jdbc:").replace("://", "://postgres@")
    done = subprocess.run(
        [*argv, "--command", statement, address],
        env={**os.environ, "PGPASSWORD": PASSWORD},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ServerError(f"PostgreSQL refused a statement:\n{tail(done.stderr)}")
    return list(csv.reader(done.stdout.splitlines()))


def create_database(uri: str, name: str) -> str:
    """Create a database on the server of a JDBC address, and return its JDBC address.

    Raises:
        ServerError: there is one of that name.
    """
    execute(uri, f"CREATE DATABASE {name}")
    return f"{uri.rpartition('/')[0]}/{name}"


def sqlalchemy_uri(uri: str) -> str:
    """Return the address of SQLAlchemy for a JDBC address."""
    return uri.replace("jdbc:postgresql://", f"postgresql+psycopg2://postgres:{PASSWORD}@")


def _is_ready(server: subprocess.Popen[bytes], ready: list[str]) -> bool:
    return server.poll() is not None or subprocess.run(ready, check=False).returncode == 0


def _programs() -> Path:
    """Return the folder of the newest installed version, which Debian does not put on the PATH."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found = max(versions, key=lambda path: int(path.parents[1].name), default=None)
    on_path = shutil.which("initdb")
    if found is None and on_path is None:
        raise ServerError("PostgreSQL is not installed; apt-get install postgresql, or infra/apt.sh does")
    return (found or Path(str(on_path)).resolve()).parent


def _hand_over(folder: Path) -> str | None:
    """Return the user of the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    owner = next(one for one in ("postgres", "nobody") if any(one == user.pw_name for user in pwd.getpwall()))
    shutil.chown(folder, owner)
    return owner
