"""Servers that encrypt their logs, and the key files by which these are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from infra.servers import Programs, Server, start_server
from infra.servers.cache import build_once
from infra.servers.process import free_port
from infra.servers.template import copy_template
from infra.servers.ways import fetch
from loader.transport.keys import KeyFiles

_KEY = "770A8A65DA156D24EE2A093277530142"


def encrypting_mysql(folder: Path) -> tuple[Server, KeyFiles]:
    """A server with component_keyring_file and binlog_encryption=ON."""
    keyring = folder / "keyring"
    programs = _with_keyring(fetch("mysql"), folder / "usr", keyring)
    data = folder / "server"
    data.mkdir()
    build_once(data / "data", lambda made: copy_template(programs, made))
    server = Server(programs, data, free_port(), {})
    server.start({"binlog_encryption": "ON"})
    return server, KeyFiles(keyring=str(keyring))


def encrypting_mariadb(folder: Path, algorithm: str) -> tuple[Server, KeyFiles]:
    """A server with file_key_management and encrypt_binlog=ON."""
    keys = folder / "keys.txt"
    keys.write_text(f"1;{_KEY}\n")
    options = {
        "plugin_load_add": "file_key_management",
        "file_key_management_filename": str(keys),
        "file_key_management_encryption_algorithm": algorithm,
        "encrypt_binlog": "ON",
    }
    return start_server("mariadb", folder / "server", options), KeyFiles(keys=str(keys))


def _with_keyring(programs: Programs, usr: Path, keyring: Path) -> Programs:
    """The programs in a folder of links, where the server finds a manifest beside itself, and the component its file."""
    plugins = usr / "lib" / "mysql" / "plugin"
    plugins.mkdir(parents=True)
    (usr / "sbin").mkdir()
    (usr / "sbin" / "mysqld").symlink_to(programs.tool("mysqld")[-1])
    (usr / "sbin" / "mysqld.my").write_text('{"components": "file://component_keyring_file"}')
    for name in ("bin", "share"):
        (usr / name).symlink_to(programs.prefix / name)
    for plugin in (programs.prefix / "lib" / "mysql" / "plugin").iterdir():
        (plugins / plugin.name).symlink_to(plugin)
    (plugins / "component_keyring_file.cnf").write_text(json.dumps({"path": str(keyring), "read_only": False}))
    return replace(programs, prefix=usr)
