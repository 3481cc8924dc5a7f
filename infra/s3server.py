"""A real S3 server on this machine, for the tests: versitygw over a folder, built from its Go module into the cache.

with start_s3(folder) as server:
    os.environ.update(server.environment)
"""

from __future__ import annotations

import os
import secrets
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from infra.servers.apt import PrivateApt, unpack
from infra.servers.cache import build_once, cache_folder
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until
from infra.servers.sources import distribution_sources, machine_sources

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
_START_SECONDS = 30
_UNVERIFIED = ssl._create_unverified_context()  # noqa: S323 - asks only whether something answers


@dataclass(frozen=True)
class S3Server:
    """A running server and its first user, who has all permissions."""

    port: int
    access_key: str
    secret_key: str
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://{HOST}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that make every S3 client on this machine use this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def add_user(server: S3Server, name: str) -> dict[str, str]:
    """Add a user without permissions, and return the environment of a client with that user.

    Raises:
        ServerError: there is one of that name.
    """
    secret = secrets.token_hex(16)
    command = [str(fetch_s3()), "admin", "--endpoint-url", server.endpoint]
    command += ["--access", server.access_key, "--secret", server.secret_key]
    command += ["create-user", "--access", name, "--secret", secret, "--role", "user"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ServerError(f"the user could not be added:\n{tail(done.stdout + done.stderr)}")
    return {**server.environment, "AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret}


class S3Process:
    """The process of a server, which can be stopped and started again on its port with its buckets.

    Args:
        folder: an empty folder, for the buckets.
        certificate: a PEM file with the key and the certificate of the server; None for HTTP.
    """

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        scheme = "https" if certificate else "http"
        self.server = S3Server(free_port(), "loader", secrets.token_hex(16), scheme)
        self.certificate = certificate
        self._folder, self._users = folder, folder.with_name(f"{folder.name}.users")
        self._users.mkdir()
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers.

        Raises:
            ServerError: it could not be built, or did not come up.
        """
        self.stop()
        server = self.server
        environment = {**os.environ, "ROOT_ACCESS_KEY": server.access_key, "ROOT_SECRET_KEY": server.secret_key}
        options = ["--port", f"{HOST}:{server.port}", "--iam-dir", str(self._users), "--quiet"]
        options += ["--cert", str(self.certificate), "--key", str(self.certificate)] if self.certificate else []
        command = [str(fetch_s3()), *options, "posix", str(self._folder)]
        log = self._folder.with_name(f"{self._folder.name}.log")
        with log.open("ab") as output:
            child = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        self._child = child
        if not wait_until(lambda: child.poll() is not None or _answers(server), _START_SECONDS) or child.poll():
            raise ServerError(f"the S3 server did not come up:\n{tail(log.read_text())}")

    def stop(self) -> None:
        """End it."""
        if self._child:
            self._child.terminate()
            self._child.wait()


@contextmanager
def run_s3(folder: Path, certificate: Path | None = None) -> Iterator[S3Process]:
    """A server whose buckets are folders in an empty folder, until the end of the block; see `S3Process`.

    Raises:
        ServerError: it could not be built, or did not come up.
    """
    process = S3Process(folder, certificate)
    try:
        process.start()
        yield process
    finally:
        process.stop()


@contextmanager
def start_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server that stays running; see `run_s3`."""
    with run_s3(folder) as process:
        yield process.server


def fetch_s3() -> Path:
    """The program, built if it is not in the cache.

    Raises:
        ServerError: neither a Go compiler nor the module can be had.
    """
    return build_once(cache_folder() / f"versitygw-{_VERSION}", _build) / "versitygw"


def _build(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    places = {"GOPATH": work / "path", "GOCACHE": work / "cache", "GOBIN": folder}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}, "GOFLAGS": "-modcacherw"}
    done = subprocess.run(
        [_go(work), "install", f"{_MODULE}@{_VERSION}"], check=False, capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise ServerError(f"the S3 server could not be built:\n{tail(done.stdout + done.stderr)}")
    shutil.rmtree(work)


def _go(work: Path) -> str:
    """Return the Go compiler of the machine, or one that is unpacked only for this build."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/go/bin"])
    if found := shutil.which("go", path=path):
        return found
    official = distribution_sources(machine_sources(), "unstable") or machine_sources()
    apt = PrivateApt(work / "apt", [source.stanza(("unstable",), ("main",)) for source in official[:1]])
    unpack(apt.download(["golang-go"]), work / "root")
    compilers = sorted((work / "root" / "usr" / "lib").glob("go-*/bin/go"))
    if not compilers:
        raise ServerError("no Go compiler on this machine, and none in its package mirror; install one")
    return str(compilers[-1])


def _answers(server: S3Server) -> bool:
    with suppress(OSError):
        try:
            urlopen(server.endpoint, timeout=1, context=_UNVERIFIED).close()  # noqa: S310 - on loopback
        except HTTPError:
            return True  # it requires a signature, so it is running
    return False
