"""A Redis on this machine, for the tests of Airflow's Celery executor: programs of a Debian package, nothing installed.

with start_redis() as address:  # redis://127.0.0.1:...
    ...
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.debian import program
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port, wait_until

_START_SECONDS = 30


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
        argv = [
            *program("redis-server", "redis-server"),
            *(part for name, value in options.items() for part in (f"--{name}", value)),
        ]
        with log.open("ab") as output:
            server = subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output)
        try:
            if not wait_until(lambda: _is_ready(server, port), _START_SECONDS) or server.poll() is not None:
                raise ServerError(f"Redis did not come up:\n{tail(log.read_text())}")
            yield f"redis://{HOST}:{port}/0"
        finally:
            server.terminate()
            server.wait()


def _is_ready(server: subprocess.Popen[bytes], port: int) -> bool:
    if server.poll() is not None:
        return True
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
