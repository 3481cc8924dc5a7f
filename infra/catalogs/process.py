"""A process of a server on a port: started, killed, and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, wait_until

_START_SECONDS = 90


class PortProcess:
    """A process that listens on a port as soon as it can work.

    Args:
        what: the name of the server, for errors.
        command: the command line.
        port: the port.
        log: the file for its output.
        variables: environment variables besides those of this process.
    """

    def __init__(
        self, what: str, command: Sequence[str], port: int, log: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        self._what, self._command, self._port, self._log = what, command, port, log
        self._variables = {**os.environ, **(variables or {})}
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens.

        Raises:
            ServerError: it did not come up.
        """
        with self._log.open("ab") as output:
            child = subprocess.Popen(
                self._command, env=self._variables, stdout=output, stderr=output, start_new_session=True
            )
        self._child = child
        wait_until(lambda: child.poll() is not None or self._listens(), _START_SECONDS)
        if child.poll() is not None or not self._listens():
            self.kill()
            raise ServerError(f"{self._what} did not come up:\n{tail(self._log.read_text())}")

    def kill(self) -> None:
        """Kill it with its children, as by a power cut."""
        if self._child:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None

    def _listens(self) -> bool:
        with suppress(OSError):
            socket.create_connection((HOST, self._port), timeout=1).close()
            return True
        return False
