"""Start a server, or find one that runs."""

from __future__ import annotations

import os
from pathlib import Path

from . import state
from .cache import build_once, cache_folder
from .errors import ServerError
from .options import Options
from .process import free_port
from .programs import Kind
from .server import Server
from .template import copy_template
from .ways import fetch, fetched

Folder = str | os.PathLike[str]


def default_data_dir() -> Path:
    """Return the default data folder."""
    return cache_folder() / "server"


def start_server(
    kind: Kind | None = None,
    data_dir: Folder | None = None,
    options: Options | None = None,
    wait_seconds: float = 60,
    way: str | None = None,
) -> Server:
    """Start a server on a data folder, which is created if needed, and wait until it accepts connections.

    A folder that was used before keeps its data, port and options; the options given here are put on top. `way`: see
    fetch.

    Raises:
        ServerError: no server could be fetched, one runs there already, or it did not come up.
    """
    folder = _absolute(data_dir)
    server = find(folder) or _new(kind, folder, way)
    if kind not in (None, server.kind):
        raise ServerError(f"{folder} holds data of {server.kind}, not of {kind}; use another folder")
    if server.running:
        raise ServerError(f"a server runs on {folder} already, with pid {server.pid}; attach to it or stop it")
    server.start(options, wait_seconds)
    return server


def attach(data_dir: Folder | None = None) -> Server:
    """Return the server that runs on a data folder, independent of who started it.

    Raises:
        ServerError: none runs there.
    """
    folder = _absolute(data_dir)
    server = find(folder)
    if server is None:
        raise ServerError(f"no server was ever started on {folder}; start one there first")
    if not server.running:
        raise ServerError(f"no server runs on {folder}; start it, its data is kept")
    return server


def find(data_dir: Folder | None = None) -> Server | None:
    """Return the server of a data folder, running or not; None if there never was one."""
    folder = _absolute(data_dir)
    known = state.read(folder)
    return Server(known.programs, folder, known.port, known.options, known.process) if known else None


def _new(kind: Kind | None, folder: Path, way: str | None) -> Server:
    programs = fetched(kind, way) or fetch(kind, way)
    folder.mkdir(parents=True, exist_ok=True)
    build_once(folder / "data", lambda data: copy_template(programs, data))
    return Server(programs, folder, free_port(), {})


def _absolute(data_dir: Folder | None) -> Path:
    return Path(data_dir).absolute() if data_dir else default_data_dir()
