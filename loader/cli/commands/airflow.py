"""The commands about Airflow: putting the DAGs, pools and the Spark connection into it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from loader.cli.session import Session
from loader.errors import LoaderError, UsageError
from loader.resources import config_file, folder

airflow = typer.Typer(help="Airflow: install the DAGs.", no_args_is_help=True, rich_markup_mode=None)

_PLACE = "binlog_loader"
"""Folder of ours in the folder of DAGs."""


@airflow.command()
def install(
    context: typer.Context,
    home: Annotated[
        str, typer.Option(help="Airflow's home; $AIRFLOW_HOME or ~/airflow by default.", show_default=False)
    ] = "",
) -> None:
    """Put the DAGs, their pools and the connection spark_default into Airflow; what is there already stays.

    DAG files of an older version are replaced. Airflow's database must be there: airflow db migrate.
    """
    session: Session = context.obj
    cli = _Cli(home)
    dags = Path(cli.run("config", "get-value", "core", "dags_folder").split("\n")[-1]) / _PLACE
    done = _copy(dags)
    done += [f"pool {name}" for name in _pools(cli)]
    done += [f"connection {name}" for name in _connections(cli)]
    if session.output.as_json:
        session.output.document({"dags": str(dags), "done": done})
        return
    for one in done:
        session.output.line(f"added {one}")
    session.output.line(f"the DAGs are in {dags}")
    session.output.line(f"Airflow's environment needs LOADER_CONFIG={config_file(session.file).absolute()}")


class _Cli:
    """Airflow's own command, in a process of its own."""

    def __init__(self, home: str) -> None:
        if find_spec("airflow") is None:
            raise UsageError("Airflow is not installed here", hint="pip install 'binlog-loader[airflow]'")
        self._environment = os.environ | ({"AIRFLOW_HOME": str(Path(home).absolute())} if home else {})

    def run(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        """Its output; empty where it ended with another code that is ok.

        Raises:
            LoaderError: it failed.
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
                hint="airflow db migrate, if its database is not there yet; then run this again",
                home=self._environment.get("AIRFLOW_HOME", "~/airflow"),
            )
        return done.stdout.strip() if done.returncode == 0 else ""


def _copy(target: Path) -> list[str]:
    """Copy the DAG files that are not there as they are; their names."""
    target.mkdir(parents=True, exist_ok=True)
    done = []
    for file in sorted(folder("dags").glob("*.py")):
        there, text = target / file.name, file.read_bytes()
        if not there.exists() or there.read_bytes() != text:
            there.write_bytes(text)
            done.append(f"DAG file {there}")
    return done


def _pools(cli: _Cli) -> list[str]:
    wanted = _shipped("pools.json")
    known = {pool["pool"] for pool in _listed(cli.run("pools", "list", "--output", "json"))}
    added = sorted(wanted.keys() - known)
    for name in added:  # one that is there may have been given other slots
        cli.run("pools", "set", name, str(wanted[name]["slots"]), wanted[name]["description"])
    return added


def _connections(cli: _Cli) -> list[str]:
    added = []
    for name, connection in _shipped("connections.json").items():
        if not cli.run("connections", "get", name, "--output", "json", ok=(0, 1)):
            cli.run("connections", "add", name, "--conn-json", json.dumps(connection))
            added.append(name)
    return added


def _shipped(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder("airflow") / name).read_text(encoding="utf-8"))
    return found


def _listed(text: str) -> list[dict[str, Any]]:
    """The JSON list in the output of a command, which may have warnings before it."""
    found: list[dict[str, Any]] = json.loads(text[text.index("[") :])
    return found
