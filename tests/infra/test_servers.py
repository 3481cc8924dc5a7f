"""The servers that the integration tests stand on."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from infra.servers import Kind, Server, ServerError, attach, fetch, start_server
from infra.servers.process import wait_until

pytestmark = pytest.mark.integration

StartServer = Callable[..., Server]
both_kinds = pytest.mark.parametrize("kind", ["mysql", "mariadb"])


def query(server: Server, *statements: str) -> Any:
    """Run statements as root over TCP; returns the first value of the last one."""
    connection = pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        row = cursor.fetchone()
        return row[0] if row else None


@pytest.fixture
def server(request: pytest.FixtureRequest, kind: Kind) -> Server:
    found: Server = request.getfixturevalue(f"{kind}_server")
    return found


@both_kinds
def test_root_logs_in_over_tcp(server: Server) -> None:
    assert query(server, "SELECT @@version").startswith(server.version)
    assert query(server, "SELECT CURRENT_USER()") == "root@127.0.0.1"


@both_kinds
def test_root_may_create_accounts_and_grant(server: Server) -> None:
    query(server, "CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON *.* TO reader@'127.0.0.1'")
    query(server, "DROP USER reader@'127.0.0.1'")


@both_kinds
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("log_bin", 1),
        ("binlog_format", "ROW"),
        ("binlog_row_image", "FULL"),
        ("binlog_row_metadata", "FULL"),
        ("binlog_checksum", "CRC32"),
        ("server_id", 1),
        ("bind_address", "127.0.0.1"),
        ("secure_file_priv", ""),
        ("character_set_server", "utf8mb4"),
    ],
)
def test_default_options(server: Server, variable: str, value: object) -> None:
    assert (query(server, f"SELECT @@{variable}") or "") == (value or "")


@both_kinds
def test_binlogs_are_where_it_says_and_its_own_tool_reads_them(server: Server, tmp_path: Path) -> None:
    query(server, "CREATE DATABASE IF NOT EXISTS tool_reads_it", "FLUSH BINARY LOGS")
    logs = sorted(server.log_dir.glob(f"{server.log_basename}.0*"))
    assert len(logs) >= 2
    done = subprocess.run([*server.tool("mysqlbinlog"), str(logs[0])], capture_output=True, text=True, check=True)
    assert "end_log_pos" in done.stdout


@both_kinds
def test_client_program_connects(server: Server) -> None:
    command = [
        *server.tool("mysql"),
        "--no-defaults",
        "-N",
        "-h",
        server.host,
        "-P",
        str(server.port),
    ]
    done = subprocess.run(
        [*command, "-u", server.user, "-e", "SELECT 6*7"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "42"


@both_kinds
def test_restart_keeps_port_and_data_and_takes_options(fresh_server: StartServer, kind: Kind) -> None:
    server = fresh_server(kind, {"max-connections": "77"})
    port = server.port
    query(server, "CREATE DATABASE kept")
    server.restart({"binlog_row_image": "MINIMAL"})
    assert server.port == port
    assert query(server, "SHOW DATABASES LIKE 'kept'") == "kept"
    assert query(server, "SELECT @@binlog_row_image") == "MINIMAL"
    assert query(server, "SELECT @@max_connections") == 77


@both_kinds
def test_commits_survive_a_kill(fresh_server: StartServer, kind: Kind) -> None:
    server = fresh_server(kind)
    query(
        server,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (7)",
    )
    server.kill()
    assert not server.running
    server.start()
    assert query(server, "SELECT a FROM d.t") == 7


@both_kinds
def test_attach_finds_it_from_its_folder(fresh_server: StartServer, kind: Kind) -> None:
    server = fresh_server(kind)
    found = attach(server.data_dir)
    assert (found.pid, found.port, found.kind) == (server.pid, server.port, kind)
    found.stop()
    assert wait_until(lambda: not server.running, 5)
    with pytest.raises(ServerError, match="no server runs on"):
        attach(server.data_dir)


def test_attach_to_nothing(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="no server was ever started"):
        attach(tmp_path)


def test_two_servers_at_once(fresh_server: StartServer) -> None:
    first, second = fresh_server("mysql"), fresh_server("mysql")
    assert first.port != second.port
    assert query(first, "SELECT @@server_uuid") != query(second, "SELECT @@server_uuid")


def test_a_second_start_on_the_same_folder_is_refused(fresh_server: StartServer) -> None:
    server = fresh_server("mysql")
    with pytest.raises(ServerError, match="a server runs on"):
        start_server(data_dir=server.data_dir)
    server.stop()
    with pytest.raises(ServerError, match="holds data of mysql, not of mariadb"):
        start_server("mariadb", server.data_dir)


@both_kinds
def test_failed_start_shows_the_error_log_and_leaves_no_trace(fresh_server: StartServer, kind: Kind) -> None:
    server = fresh_server(kind)
    with pytest.raises(ServerError, match=r"ended while it started; the end of(.|\n)*no.such.option"):
        server.restart({"no_such_option": "1"})
    assert not server.running
    server.start()
    assert server.running


def test_port_taken_by_another_program(fresh_server: StartServer) -> None:
    server = fresh_server("mysql")
    server.stop()
    with socket.socket() as other:
        other.bind((server.host, server.port))
        other.listen()
        with pytest.raises(ServerError, match=f"port {server.port}.* in use by another program"):
            server.start()


def test_long_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 60) / ("y" * 60)
    with start_server("mysql", folder) as server:
        assert query(server, "SELECT 1") == 1


@both_kinds
def test_fetching_again_does_nothing(server: Server, kind: Kind) -> None:
    before = server.programs.home.stat().st_mtime_ns
    assert fetch(kind) == server.programs
    assert server.programs.home.stat().st_mtime_ns == before


def test_command_line(tmp_path: Path) -> None:
    def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [
            sys.executable,
            "-m",
            "infra.servers",
            command,
            "--data-dir",
            str(tmp_path),
            *arguments,
        ]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert run("status").returncode == 1
    started = json.loads(run("start", "--option", "max-connections=55", "--json").stdout)
    try:
        assert run("start").returncode == 0, "starting again is no error"
        assert run("status").returncode == 0
        assert query(attach(tmp_path), "SELECT @@max_connections") == 55
        assert started["running"] and started["port"] == attach(tmp_path).port
    finally:
        stopped = run("stop", "--json")
    assert not json.loads(stopped.stdout)["running"]
    assert run("status").returncode == 3
