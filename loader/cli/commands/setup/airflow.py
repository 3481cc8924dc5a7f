"""The command that installs the DAG file, pools and the Spark connection into Airflow."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.command_group import CommandGroup
from loader.cli.session import Session
from loader.errors import LoaderError, UsageError
from loader.resources import config_file, folder

if TYPE_CHECKING:
    from loader.config.source import Source

airflow = CommandGroup(help="Install the DAGs into Airflow.")

_FOLDER = "binlog_loader"
"""Folder of the loader in the DAG folder of Airflow."""


@airflow.command()
def install(
    context: typer.Context,
    home: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="Airflow's home; $AIRFLOW_HOME or ~/airflow by default.", show_default=False
        ),
    ] = "",
) -> None:
    """Install the DAG file, the pools of the sources and the connection spark_default into Airflow.

    Run it again after an upgrade, and after you added a source. Older DAG files are replaced or removed; existing pools
    and connections are kept. Airflow's database must exist: airflow db migrate.
    """
    from loader.config.file import configured

    session: Session = context.obj
    cli = _Cli(home)
    sources = session.load().sources if configured(session.file) else {}
    dags = Path(cli.run("config", "get-value", "core", "dags_folder").split("\n")[-1]) / _FOLDER
    removed, changed = _remove_superseded(dags)
    done = _copy(dags)
    done += [f"pool {name}" for name in _pools(cli, sources)]
    done += [f"connection {name}" for name in _connections(cli)]
    if session.output.as_json:
        session.output.document({"dags": str(dags), "done": done, "removed": removed, "superseded": changed})
        return
    for name in removed:
        session.output.line(f"removed DAG file {name}, which has no use any more")
    for name in done:
        session.output.line(f"added {name}")
    for name in changed:
        session.output.line(f"{name} was changed by hand and is superseded: delete it")
    if not sources:
        session.output.line("there is no configuration yet: write one with loader init, then run this again")
    session.output.line(f"the DAG file is in {dags}")
    session.output.line(f"Airflow's environment needs LOADER_CONFIG={config_file(session.file).absolute()}")


class _Cli:
    """Airflow's own command, run in another process."""

    def __init__(self, home: str) -> None:
        if find_spec("airflow") is None:
            raise UsageError("Airflow is not installed here", hint="pip install 'binlog-loader[airflow]'")
        self._environment = os.environ | ({"AIRFLOW_HOME": str(Path(home).absolute())} if home else {})

    def run(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        """Run a command of Airflow.

        Args:
            arguments: of the command.
            ok: exit codes that are no failure.

        Returns:
            The output; empty if the exit code is not 0.

        Raises:
            LoaderError: the command failed.
        """
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in ok:
            raise LoaderError(
                f"airflow {' '.join(arguments[:2])} failed",
                why="\n".join((done.stderr or done.stdout).strip().splitlines()[-5:]),
                hint="create Airflow's database with: airflow db migrate; then run this again",
                home=self._environment.get("AIRFLOW_HOME", "~/airflow"),
            )
        return done.stdout.strip() if done.returncode == 0 else ""


def _copy(target: Path) -> list[str]:
    """Copy the DAG files that are missing or differ, and return what was added."""
    target.mkdir(parents=True, exist_ok=True)
    done = []
    for file in sorted(folder("dags").glob("*.py")):
        copy, text = target / file.name, file.read_bytes()
        if not copy.exists() or copy.read_bytes() != text:
            copy.write_bytes(text)
            done.append(f"DAG file {copy}")
    return done


def _remove_superseded(target: Path) -> tuple[list[str], list[str]]:
    """Remove the DAG files of older versions. Return them, and those that were changed by hand, which stay."""
    removed, changed = [], []
    for name, digests in _shipped("superseded_dags.json").items():
        file = target / name
        if not file.exists():
            continue
        if hashlib.sha256(file.read_bytes()).hexdigest() in digests:
            file.unlink()
            removed.append(str(file))
        else:
            changed.append(str(file))
    return removed, changed


def _pools(cli: _Cli, sources: Mapping[str, Source]) -> list[str]:
    from loader.dag_settings import load_pool_of, pool_of

    wanted = {find(name, source.airflow) for name, source in sources.items() for find in (pool_of, load_pool_of)}
    if not wanted:
        return []
    known = {pool["pool"] for pool in _listed(cli.run("pools", "list", "--output", "json"))}
    added = sorted(wanted - known)
    for name in added:  # slots of an existing pool may have been changed by an administrator
        cli.run("pools", "set", name, "1", "Tasks of binlog-loader that read a source or start Spark")
    return added


def _connections(cli: _Cli) -> list[str]:
    added = []
    for name, connection in _shipped("connections.json").items():
        if not cli.run("connections", "get", name, "--output", "json", ok=(0, 1)):
            cli.run("connections", "add", name, "--conn-json", json.dumps(connection))
            added.append(name)
    return added


def _shipped(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder("airflow") / name).read_text(encoding="utf-8"))
    return content


def _listed(text: str) -> list[dict[str, Any]]:
    """Return the JSON list in the output of a command, which may start with warnings."""
    items: list[dict[str, Any]] = json.loads(text[text.index("[") :])
    return items
