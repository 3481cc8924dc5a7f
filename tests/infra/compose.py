"""The services of the example of Compose as processes on this machine, in the image of `tests.infra.image`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infra.postgres import PASSWORD, run_postgres
from infra.servers.server import Server
from tests.e2e.airflow.running.server import until
from tests.infra.image import Image

PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")
_DATABASE = """
import psycopg2
connection = psycopg2.connect(host="127.0.0.1", port={port}, user="postgres", password={secret!r})
connection.autocommit = True
cursor = connection.cursor()
cursor.execute("CREATE ROLE {user} LOGIN PASSWORD '{password}'")
cursor.execute("CREATE DATABASE {user} OWNER {user}")
"""


def read_services(text: str, variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the services of a file of Compose.

    Raises:
        KeyError: the file uses another variable.
    """
    filled = re.sub(r"\$\{(\w+):\?\}", lambda found: variables[found[1]], text).replace("$$", "$")
    found: dict[str, dict[str, Any]] = yaml.safe_load(filled)["services"]
    return found


def server_options(service: Mapping[str, Any], image: Image) -> dict[str, str | None]:
    """Return the options that the service of MySQL gives its server."""
    pairs = (option.removeprefix("--").partition("=") for option in service["command"])
    return {name: image.placed(value) for name, _, value in pairs}


def client(folder: Path, server: Server, name: str) -> None:
    """Write a program to the folder that is the client `name` of a server on this machine without a password."""
    options = ["--no-defaults", f"--host={server.host}", f"--port={server.port}", "--user=root", "--protocol=tcp"]
    program = folder / name
    program.write_text(f"#!/bin/sh\nexec {shlex.join([*server.programs.tool(name), *options])}\n")
    program.chmod(0o755)


def mount(image: Image, services: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Copy the files and folders next to the file of Compose to where the services mount them."""
    for mounted in (mounted for service in services.values() for mounted in service.get("volumes", [])):
        source, target, *_ = mounted.split(":")
        if source.startswith("./"):
            place = Path(image.placed(target))
            place.parent.mkdir(parents=True, exist_ok=True)
            if (folder / source).is_dir():
                shutil.copytree(folder / source, place, dirs_exist_ok=True)
            elif str(place).startswith(str(image.root)):
                shutil.copy(folder / source, place)


@dataclass
class Services:
    """The services of Airflow with their database.

    Attributes:
        image: of the services.
        services: as the file has them.
        port: of the API server on this machine.
        postgres: port of the database on this machine.
    """

    image: Image
    services: dict[str, dict[str, Any]]
    port: int
    postgres: int

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the services, with addresses and paths of this machine."""
        given = {name: self._here(value) for name, value in self.services["scheduler"]["environment"].items()}
        return given | {"AIRFLOW__API__PORT": str(self.port), "AIRFLOW__API__HOST": "127.0.0.1"}

    def _here(self, text: str) -> str:
        placed = self.image.placed(text)
        for name in ("api-server", "localhost"):
            placed = placed.replace(f"//{name}:8080", f"//127.0.0.1:{self.port}")
        return placed.replace("@postgres/", f"@127.0.0.1:{self.postgres}/")

    def run(self, *argv: str) -> str:
        """Run a program of the image with the variables of the services."""
        return self.image.run(list(argv), **self.environment)

    def initialise(self) -> None:
        """Run the service that prepares Airflow."""
        *shell, script = self.services["airflow-init"]["command"]
        self.run(*shell, script)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Start the parts of Airflow until the end of the block. The health check of the API server must succeed."""
        with ExitStack() as kept:
            for part in PARTS:
                log = kept.enter_context((self.image.root / f"{part}.log").open("wb"))
                argv = shlex.split(self.services[part]["command"])
                process = subprocess.Popen(
                    argv, env=self.image.environment | self.environment, cwd=self.image.folder, stdout=log, stderr=log
                )
                kept.callback(process.wait)
                kept.callback(process.terminate)
            check = self._here(self.services["api-server"]["healthcheck"]["test"])
            until("the health check of the API server", lambda: self._holds(check))
            yield

    def _holds(self, check: str) -> bool:
        return subprocess.run(["sh", "-c", check], env=self.image.environment, check=False).returncode == 0


@contextmanager
def database(image: Image, services: Mapping[str, Mapping[str, Any]]) -> Iterator[int]:
    """Start the service of PostgreSQL, with the user of its variables, and yield its port."""
    given = services["postgres"]["environment"]
    with run_postgres() as server:
        port = int(server.uri.rpartition(":")[2].partition("/")[0])
        user, password = given["POSTGRES_USER"], given["POSTGRES_PASSWORD"]
        script = _DATABASE.format(port=port, secret=PASSWORD, user=user, password=password)
        image.run(["python", "-c", script])
        programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))
        where = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PATH": f"{programs}:{os.environ['PATH']}"}
        image.run(["sh", "-c", services["postgres"]["healthcheck"]["test"]], **where)
        yield port
