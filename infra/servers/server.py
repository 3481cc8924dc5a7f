"""A server with its own data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import state
from .errors import ServerError, tail_of
from .options import Options, arguments, defaults, merged
from .process import HOST, Process, greets, is_free, process, wait_until
from .programs import Kind, Programs

_LONGEST_SOCKET = 107  # bytes that the kernel allows for the path of a socket
_STOP_SECONDS = 120


@dataclass
class Server:
    """One server; it listens on loopback, where `root` has an empty password.

    `data_dir` holds everything it writes: its own files in `data`, `error.log`, socket, pid file, and `state.json`,
    by which `attach` finds it from another process. Used in a `with` block, it is stopped at the end.
    """

    programs: Programs
    data_dir: Path
    port: int  # stays the same over restarts
    options: dict[str, str | None]  # options of the caller, which override the defaults
    process: Process | None = None
    host: str = HOST
    user: str = "root"
    password: str = ""
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> Kind:
        return self.programs.kind

    @property
    def version(self) -> str:
        return self.programs.version

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def log_dir(self) -> Path:
        """The folder of the binary logs."""
        return self._log_bin().parent

    @property
    def log_basename(self) -> str:
        """The name of the binary logs without their number."""
        return self._log_bin().name

    @property
    def error_log(self) -> Path:
        return self.data_dir / "error.log"

    @property
    def socket(self) -> Path:
        inside = self.data_dir / "mysql.sock"
        too_long = len(os.fsencode(inside)) > _LONGEST_SOCKET
        return Path(tempfile.gettempdir()) / f"loader-{self.port}.sock" if too_long else inside

    def tool(self, name: str) -> list[str]:
        """The argv prefix that runs a client program of this server, such as `mysqlbinlog` or `mysql`."""
        return self.programs.tool(name)

    def start(self, options: Options | None = None, wait_seconds: float = 60) -> None:
        """Start the server with additional options, and wait until it accepts connections.

        Nothing happens when it runs. Options with which it does not come up are not kept.

        Raises:
            ServerError: it did not come up; the text ends with what it logged.
        """
        if self.running:
            return
        if not is_free(self.port):
            raise ServerError(f"port {self.port}, that of {self.data_dir}, is in use by another program; stop that one")
        asked = merged(self.options, options or {})
        logged = self.error_log.stat().st_size if self.error_log.exists() else 0
        self._launch(asked)
        if not wait_until(lambda: greets(self.port) or not self.running, wait_seconds):
            self._give_up(f"did not answer within {wait_seconds:g} s", logged)
        if not self.running:
            self._give_up("ended while it started", logged)
        self.options = asked
        self._save()

    def stop(self) -> None:
        """Shut the server down cleanly, if it runs, and wait until it has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server, as in a crash, so that it cannot write anything."""
        self._end(signal.SIGKILL)

    def restart(self, options: Options | None = None, wait_seconds: float = 60) -> None:
        """Stop the server if it runs, and start it on the same port and data with additional options."""
        self.stop()
        self.start(options, wait_seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return what a person or a script needs to use the server."""
        facts = (
            "kind",
            "version",
            "running",
            "host",
            "port",
            "user",
            "password",
            "pid",
            "log_basename",
        )
        places = ("data_dir", "log_dir", "error_log", "socket")
        return {name: getattr(self, name) for name in facts} | {name: str(getattr(self, name)) for name in places}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _log_bin(self) -> Path:
        name = merged(defaults(self.kind), self.options)["log_bin"]
        return self.data_dir / "data" / (name or "binlog")

    def _command(self, asked: Options) -> list[str]:
        own = {
            "datadir": str(self.data_dir / "data"),
            "tmpdir": str(self.data_dir / "tmp"),
            "pid_file": str(self.data_dir / "server.pid"),
            "port": str(self.port),
            "socket": str(self.socket),
        }
        return [*self.programs.server(), *arguments(merged(defaults(self.kind), asked, own))]

    def _launch(self, asked: Options) -> None:
        (self.data_dir / "tmp").mkdir(exist_ok=True)
        self._remove_socket()
        with self.error_log.open("ab") as log:
            # A new session: Ctrl-C in the terminal only reaches the owner, which then stops the server cleanly.
            self._child = subprocess.Popen(
                self._command(asked),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.process = process(self._child.pid)
        self._save()

    def _give_up(self, happened: str, logged: int) -> None:
        self.kill()
        raise ServerError(
            f"{self.kind} {self.version} {happened}; the end of {self.error_log}:\n{tail_of(self.error_log, logged)}"
        )

    def _end(self, how: signal.Signals) -> None:
        if self.running and self.pid is not None:
            os.kill(self.pid, how)
        if not wait_until(lambda: not self.running, _STOP_SECONDS):
            raise ServerError(
                f"{self.kind} with pid {self.pid} did not end within {_STOP_SECONDS} s of {how.name}; "
                f"the end of {self.error_log}:\n{tail_of(self.error_log)}"
            )
        if self._child:
            self._child.wait()
            self._child = None
        self._remove_socket()
        self.process = None
        self._save()

    def _remove_socket(self) -> None:
        # A killed server leaves these files, and its lock has a pid that another process may use now.
        for path in (self.socket, self.socket.with_name(self.socket.name + ".lock")):
            path.unlink(missing_ok=True)

    def _save(self) -> None:
        state.write(self.data_dir, state.State(self.programs, self.port, self.options, self.process))
