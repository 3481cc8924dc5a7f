"""The programs that the benchmark runs, each a whole process that reads a log file: how to start one, and its cost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.jars import jars_folder
from infra.servers import Server, fetch

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds by the clock and on the processors, peak resident MB, and the last word it printed."""

    seconds: float
    cpu: float
    megabytes: float
    said: str


@dataclass(frozen=True)
class Program:
    """`argv` without the file, behind which come an empty folder and `threads` for one that writes files.

    What a `quiet` one prints is thrown away.
    """

    name: str
    argv: tuple[str, ...]
    threads: int = 0
    quiet: bool = False

    def run(self, file: Path) -> Cost:
        """Run it over the file."""
        with TemporaryDirectory(prefix="loader-bench-") as folder:
            more = [folder, str(self.threads)] if self.threads else []
            return _cost([*self.argv, str(file), *more], self.quiet)


def _cost(argv: list[str], quiet: bool) -> Cost:
    with TemporaryDirectory() as folder:
        output = Path(folder, "output")
        begun = time.monotonic()
        with output.open("wb") as stream:
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL if quiet else stream)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, argv)
        said = output.read_text().split()
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said[-1] if said else "")


def loader(threads: int = 1) -> Program:
    """This loader, to staged CSV."""
    name = "loader" if threads == 1 else f"loader, {threads} threads"
    return Program(name, (sys.executable, str(_HERE / "stage.py")), threads)


def mysqlbinlog() -> Program:
    """`mysqlbinlog -v`, to text."""
    argv = (*fetch("mysql").tool("mysqlbinlog"), "-v", "--base64-output=decode-rows")
    return Program("mysqlbinlog -v", argv, quiet=True)


def python_mysql_replication(server: Server) -> Program:
    """python-mysql-replication, which reads from a server only, to Python objects."""
    return Program("python-mysql-replication", (sys.executable, str(_HERE / "replication.py"), str(server.port)))


def connector_java() -> Program | None:
    """mysql-binlog-connector-java, to Java objects; None where there is no Java compiler."""
    javac = shutil.which("javac")
    if javac is None:
        return None
    jars = jars_folder(_HERE / "jars.lock")
    classes = jars / "classes"
    path = os.pathsep.join([*(str(jar) for jar in sorted(jars.glob("*.jar"))), str(classes)])
    if not classes.exists():
        subprocess.run([javac, "-cp", path, "-d", str(classes), str(_HERE / "ConnectorJava.java")], check=True)
    return Program("connector-java 0.41.0", ("java", "-cp", path, "ConnectorJava"))
