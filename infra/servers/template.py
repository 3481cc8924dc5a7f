"""The data folder that new servers start from: initialised once per version, copied for each server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .errors import ServerError, tail
from .programs import Programs

# Without name resolution a connection from loopback is 127.0.0.1, which the account of localhost does not cover.
_MYSQL_ROOT = """CREATE USER 'root'@'127.0.0.1';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
GRANT PROXY ON ''@'' TO 'root'@'127.0.0.1' WITH GRANT OPTION;
"""

# In the order of mariadb-install-db; without @auth_root_socket root gets an empty password, on 127.0.0.1 too.
_MARIADB_START = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
_MARIADB_TABLES = (
    "mysql_system_tables.sql",  # or, from 11.5 on, the same with mariadb_
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
)


def create_template(programs: Programs) -> None:
    """Initialise the template of these programs, with root usable over TCP and without a password.

    Raises:
        ServerError: the server could not initialise it; so its programs do not work here.
    """
    programs.template.mkdir()
    if programs.kind == "mysql":
        _initialise_mysql(programs)
    else:
        _initialise_mariadb(programs)
    # The identity of one server: each copy makes its own at its first start.
    (programs.template / "auto.cnf").unlink(missing_ok=True)


def copy_template(programs: Programs, folder: Path) -> None:
    """Fill an empty folder with what a new server starts from."""
    shutil.copytree(programs.template, folder, dirs_exist_ok=True)


def _initialise_mysql(programs: Programs) -> None:
    accounts = programs.home / "accounts.sql"
    accounts.write_text(_MYSQL_ROOT)
    options = [
        "--initialize-insecure",
        f"--init-file={accounts}",
        "--performance-schema=OFF",
        "--mysqlx=OFF",
    ]
    _run([*programs.server(), f"--datadir={programs.template}", *options])


def _initialise_mariadb(programs: Programs) -> None:
    scripts = [_script(programs.share, name) for name in _MARIADB_TABLES]
    statements = _MARIADB_START + "\n".join(script.read_text(encoding="utf-8") for script in scripts)
    options = [
        "--bootstrap",
        "--enforce-storage-engine=",
        "--max-allowed-packet=8M",
        "--skip-log-bin",
    ]
    _run([*programs.server(), f"--datadir={programs.template}", *options], statements)


def _script(share: Path, name: str) -> Path:
    for candidate in (share / name, share / name.replace("mysql_", "mariadb_", 1)):
        if candidate.is_file():
            return candidate
    raise ServerError(f"{share} has no {name}; the package of the server is not complete")


def _run(command: list[str], statements: str = "") -> None:
    done = subprocess.run(command, check=False, input=statements, capture_output=True, text=True)
    if done.returncode:
        raise ServerError(f"the server could not initialise a data folder:\n{tail(done.stdout + done.stderr)}")
