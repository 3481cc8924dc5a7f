"""The command: `python -m infra.servers fetch|start|stop|status|which`; in an installed wheel `loader._servers`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Any

from .errors import ServerError
from .programs import Programs
from .server import Server
from .start import default_data_dir, find, start_server
from .ways import fetch, fetched

_NOT_RUNNING = 3  # the exit code of `status`, as for services


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 done, 1 failed, 3 for a status of not running."""
    given = _parser().parse_args(arguments)
    try:
        code: int = given.run(given)
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infra.servers",
        description="Real MySQL and MariaDB servers without Docker or installation.",
    )
    commands = parser.add_subparsers(required=True, metavar="fetch|start|stop|status|which")
    for run, about in (
        (_fetch, "get the programs of a server into the cache, if they are not there"),
        (_start, "start a server on a data folder; it keeps running when this command ends"),
        (_stop, "shut the server of a data folder down"),
        (_status, "tell about the server of a data folder; exit code 3 when it does not run"),
        (_which, "tell which fetched server would be used"),
    ):
        command = commands.add_parser(run.__name__.strip("_"), help=about, description=about)
        command.set_defaults(run=run)
        command.add_argument("--kind", choices=("mysql", "mariadb"), help="default: MySQL, else MariaDB")
        command.add_argument("--data-dir", metavar="D", help=f"default: {default_data_dir()}")
        command.add_argument("--option", metavar="K=V", action="append", default=[], help="an option of the server")
        command.add_argument("--json", action="store_true", help="print a JSON document")
    return parser


def _fetch(given: argparse.Namespace) -> int:
    _show(given, _about(fetch(given.kind)))
    return 0


def _start(given: argparse.Namespace) -> int:
    server = find(given.data_dir)
    if server is None or not server.running:
        server = start_server(given.kind, given.data_dir, _options(given.option))
    _show(given, server.as_dict())
    return 0


def _stop(given: argparse.Namespace) -> int:
    server = _known(given)
    server.stop()
    _show(given, server.as_dict())
    return 0


def _status(given: argparse.Namespace) -> int:
    server = _known(given)
    _show(given, server.as_dict())
    return 0 if server.running else _NOT_RUNNING


def _which(given: argparse.Namespace) -> int:
    programs = fetched(given.kind)
    if programs is None:
        raise ServerError("no server is fetched yet; run the command `fetch`")
    _show(given, _about(programs))
    return 0


def _known(given: argparse.Namespace) -> Server:
    server = find(given.data_dir)
    if server is None:
        raise ServerError(f"no server was ever started on {given.data_dir or default_data_dir()}")
    return server


def _options(given: list[str]) -> dict[str, str | None]:
    pairs = (option.partition("=") for option in given)
    return {name: value if equals else None for name, equals, value in pairs}


def _about(programs: Programs) -> dict[str, Any]:
    tools = {name: programs.tool(name) for name in ("mysqld", "mysql", "mysqlbinlog")}
    return {"kind": programs.kind, "version": programs.version, "home": str(programs.home), **tools}


def _show(given: argparse.Namespace, facts: dict[str, Any]) -> None:
    if given.json:
        print(json.dumps(facts, indent=1))
        return
    for name, value in facts.items():
        print(f"{name:14}{shlex.join(value) if isinstance(value, list) else value}")


if __name__ == "__main__":
    sys.exit(main())
