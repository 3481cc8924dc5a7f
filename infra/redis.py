"""A Redis on this machine, for the tests of Airflow's Celery executor: programs of a Debian package, nothing installed.

with start_redis() as address:  # redis://127.0.0.1:...
    ...
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.servers.apt import PrivateApt, unpack
from infra.servers.cache import build_once, cache_folder
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until
from infra.servers.programs import private_loader
from infra.servers.sources import distribution, distribution_sources, machine_sources

_START_SECONDS = 30
_PROGRAM = "redis-server"


@contextmanager
def start_redis() -> Iterator[str]:
    """Start a server that keeps nothing on disk, and return its address; it ends with the block.

    Raises:
        ServerError: it cannot be fetched, or did not come up.
    """
    port = free_port()
    options = {"bind": HOST, "port": str(port), "save": "", "appendonly": "no"}
    with TemporaryDirectory(prefix="loader-redis-") as folder:
        log = Path(folder, "log")
        argv = [*_command(), *(part for name, value in options.items() for part in (f"--{name}", value))]
        with log.open("ab") as output:
            server = subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output)
        try:
            if not wait_until(lambda: _is_ready(server, port), _START_SECONDS) or server.poll() is not None:
                raise ServerError(f"Redis did not come up:\n{tail(log.read_text())}")
            yield f"redis://{HOST}:{port}/0"
        finally:
            server.terminate()
            server.wait()


def _command() -> list[str]:
    """Return the argv prefix of the server: of the PATH, else of the distribution's package in the cache folder."""
    if installed := shutil.which(_PROGRAM):
        return [installed]
    root = build_once(cache_folder() / "redis", _fetch) / "root"
    return [*private_loader(root), str(root / "usr" / "bin" / _PROGRAM)]


def _fetch(folder: Path) -> None:
    sources = distribution_sources(machine_sources(), distribution()[1])
    apt = PrivateApt(folder / "apt", [source.stanza() for source in sources])
    unpack(apt.download([_PROGRAM]), folder / "root")
    apt.remove()


def _is_ready(server: subprocess.Popen[bytes], port: int) -> bool:
    if server.poll() is not None:
        return True
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
