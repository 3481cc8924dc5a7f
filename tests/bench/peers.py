"""The programs that the benchmark runs, each a whole process that reads a log file: how to start one, and its cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from infra.servers import Server, fetch
from loader.jars.resolve import jars_folder

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds by the clock, peak resident MB, and the row changes it saw (None where it does not say)."""

    seconds: float
    megabytes: float
    changes: int | None


@dataclass(frozen=True)
class Program:
    """A program that reads a log file: how to start it over one, and how to read the changes from what it prints."""

    name: str
    argv: Callable[[Path, str], Sequence[str]]
    changes: Callable[[str], int] | None = None

    def run(self, file: Path) -> Cost:
        """Run it over the file, with an empty folder for what it writes."""
        with TemporaryDirectory(prefix="loader-bench-") as folder:
            output = Path(folder, "output")
            begun = time.monotonic()
            with (output if self.changes else Path(os.devnull)).open("wb") as stream:
                argv = self.argv(file, f"{folder}/files")
                process = subprocess.Popen(argv, stdout=stream)
                _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - begun
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, argv)
            changes = self.changes(output.read_text()) if self.changes else None
        return Cost(seconds, usage.ru_maxrss / 1024, changes)


def loader(threads: int = 1) -> Program:
    """This loader, to staged CSV."""

    def argv(file: Path, folder: str) -> Sequence[str]:
        command = [sys.executable, "-m", "loader", "--json", "inspect", str(file), "--format", "csv"]
        return [*command, "--output", folder, "--threads", str(threads)]

    def changes(said: str) -> int:
        return sum(t["inserts"] + t["updates"] + t["deletes"] for t in json.loads(said)["tables"])

    return Program("loader" if threads == 1 else f"loader, {threads} threads", argv, changes)


def listing(form: Literal["text", "json"]) -> Program:
    """This loader, to a listing with all values."""
    command = [sys.executable, "-m", "loader", "inspect", "--format", form]
    return Program(f"loader inspect -f {form}", lambda file, _: [*command, str(file)])


def mysqlbinlog() -> Program:
    """`mysqlbinlog -v`, to text."""
    command = [*fetch("mysql").tool("mysqlbinlog"), "-v", "--base64-output=decode-rows"]
    return Program("mysqlbinlog -v", lambda file, _: [*command, str(file)])


def python_mysql_replication(server: Server) -> Program:
    """python-mysql-replication, which reads from a server only, to Python objects."""
    command = [sys.executable, str(_HERE / "replication.py"), str(server.port)]
    return Program("python-mysql-replication", lambda file, _: [*command, file.name], int)


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
    return Program("connector-java 0.41.0", lambda file, _: ["java", "-cp", path, "ConnectorJava", str(file)], int)
