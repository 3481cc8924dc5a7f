"""Each error that the doctor knows of a server, caused on a real one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from infra.servers import Kind, Options, Server, start_server
from loader.doctor.finding import Finding
from loader.doctor.server import server_findings
from loader.model.table import TableName
from loader.source.server_facts import query
from loader.staging.documents import TableFilter
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

pytestmark = pytest.mark.integration

OPTIONS: dict[Kind, Options] = {
    "mysql": {"log_replica_updates": "OFF"},
    "mariadb": {"log_slave_updates": "OFF"},
}
SHOP = ["CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)"]
ENOUGH = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {0}", "GRANT SELECT ON shop.* TO {0}"


@contextmanager
def running(kind: Kind, options: Options) -> Iterator[Server]:
    with TemporaryDirectory(prefix=f"loader-{kind}-") as folder, ExitStack() as cleanup:
        server = start_server(kind, Path(folder), options)
        cleanup.callback(server.kill)
        execute(server, *SHOP, "CREATE USER loader", *(grant.format("loader") for grant in ENOUGH))
        yield server


@pytest.fixture(scope="module")
def mysql() -> Iterator[Server]:
    with running("mysql", OPTIONS["mysql"]) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Server]:
    with running("mariadb", OPTIONS["mariadb"]) as server:
        yield server


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def filtering(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that leaves a schema out of its log."""
    with running(request.param, {"binlog_ignore_db": "unlogged"}) as server:
        yield server


FILTERED = "the server does not log statements such as TRUNCATE of sessions whose default schema is filtered"


def execute(server: Server, *statements: str) -> None:
    with connected(ServerAddress(host=server.host, port=server.port, user="root")) as connection:
        for statement in statements:
            query(connection, statement)


def findings(
    server: Server,
    *include: str,
    user: str = "loader",
    tls_ca: str = "",
    needed: str = "",
    min_hours: float = 0,
    marker: str = "",
    host: str = "",
    tls: str = "",
) -> list[Finding]:
    """What is not well."""
    address = ServerAddress.model_validate(
        {"host": host or server.host, "port": server.port, "user": user, "tls": tls, "tls_ca": tls_ca}
    )
    found = server_findings(
        address,
        TableFilter(include=include or ("shop.*",)),
        lambda: NetworkTransport(address),
        needed=lambda _: needed,
        min_hours=min_hours,
        markers=frozenset({TableName.parse(marker)} if marker else ()),
    )
    assert all(one.cure for one in found if one.severity != "ok"), "each has a cure"
    return [one for one in found if one.severity != "ok"]


def only(found: list[Finding], severity: str, name: str) -> str:
    """The text of the only finding."""
    assert [(one.severity, one.name) for one in found] == [(severity, name)], found
    return found[0].what


@contextmanager
def having(server: Server, *statements: str, after: tuple[str, ...] = ()) -> Iterator[None]:
    try:
        execute(server, *statements)
        yield
    finally:
        execute(server, *after)


def test_a_server_as_it_should_be(server: Server) -> None:
    assert findings(server) == []


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("binlog_format", "STATEMENT", "ROW"),
        ("binlog_format", "MIXED", "ROW"),
        ("binlog_row_image", "MINIMAL", "FULL"),
        ("binlog_row_image", "NOBLOB", "FULL"),
    ],
)
def test_rows_that_are_not_logged_whole(server: Server, name: str, value: str, good: str) -> None:
    with having(server, f"SET GLOBAL {name} = {value}", after=(f"SET GLOBAL {name} = {good}",)):
        assert only(findings(server), "error", name).startswith(f"{value}: ")


def test_a_log_without_names_of_columns(server: Server) -> None:
    with having(server, "SET GLOBAL binlog_row_metadata = MINIMAL", after=("SET GLOBAL binlog_row_metadata = FULL",)):
        assert only(findings(server), "warning", "binlog_row_metadata").startswith("MINIMAL: ")


def test_no_checksum(server: Server) -> None:
    with having(server, "SET GLOBAL binlog_checksum = NONE", after=("SET GLOBAL binlog_checksum = CRC32",)):
        assert only(findings(server), "warning", "binlog_checksum").startswith("NONE: ")


def test_a_log_that_is_not_kept_for_long(server: Server) -> None:
    reset = f"SET GLOBAL binlog_expire_logs_seconds = {2592000 if server.kind == 'mysql' else 0}"
    with having(server, "SET GLOBAL binlog_expire_logs_seconds = 3600", after=(reset,)):
        found = findings(server)
        assert [(one.severity, one.name) for one in found] == [("warning", "expiry"), ("warning", "runway")]
        assert "is kept for another 1.0 hours, limited by its age" in found[1].what
        found = findings(server, min_hours=2)
        assert [(one.severity, one.name) for one in found] == [("warning", "expiry"), ("error", "runway")]


def test_a_file_that_is_purged_already(server: Server) -> None:
    assert only(findings(server, needed="binlog.000000"), "error", "runway") == "binlog.000000 is already purged"


def test_no_gtids(mysql: Server) -> None:
    steps = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
    off = [f"SET GLOBAL gtid_mode = {step}" for step in steps]
    on = (*(f"SET GLOBAL gtid_mode = {step}" for step in reversed(steps[:2])), "SET GLOBAL gtid_mode = ON")
    with having(mysql, *off, after=on):
        assert only(findings(mysql), "warning", "gtid").startswith("gtid_mode OFF: ")


def test_a_server_that_sends_its_log_to_nobody(mysql: Server) -> None:
    with having(mysql, "SET GLOBAL server_id = 0", after=("SET GLOBAL server_id = 1",)):
        assert only(findings(mysql), "error", "identity").startswith("server_id 0: ")


def test_a_clock_that_goes_wrong(server: Server) -> None:
    late = "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() - 7200'"  # not for root
    with having(server, late, after=("SET GLOBAL init_connect = ''",)):
        assert re.search(r"7,20\d seconds behind this machine", only(findings(server), "warning", "clock"))


def test_grants_that_are_missing(server: Server) -> None:
    with having(server, "CREATE USER bare", after=("DROP USER bare",)):
        found = [one for one in findings(server, user="bare") if one.name in {"grants", "tables"}]
        assert [(one.severity, one.name, one.what) for one in found] == [
            ("error", "grants", "bare@% lacks REPLICATION SLAVE"),
            ("error", "grants", "bare@% lacks REPLICATION CLIENT"),
            ("error", "tables", "the user sees no table of shop.*"),
        ]
        assert found[0].cure.startswith("GRANT REPLICATION SLAVE ON *.* TO 'bare'@'%'")
        execute(server, ENOUGH[0].format("bare"), "GRANT INSERT ON shop.orders TO bare")
        found = findings(server, user="bare")
        assert [(one.severity, one.name) for one in found[:2]] == [("error", "grants"), ("warning", "grants")]
        assert found[0].what == "bare@% cannot read shop.orders"
        assert "GRANT SELECT ON `shop`.* TO 'bare'@'%'" in found[0].cure


def test_grants_that_are_more_than_needed(server: Server) -> None:
    grants = [grant.format("rich") for grant in ENOUGH]
    more = ("GRANT DELETE ON shop.* TO rich WITH GRANT OPTION", "GRANT SELECT ON *.* TO rich")
    with having(server, "CREATE USER rich", *grants, *more, after=("DROP USER rich",)):
        text = only(findings(server, user="rich"), "warning", "grants")
        assert text == "rich@% has privileges that it does not need: DELETE, GRANT OPTION, SELECT ON *.*"


def test_grants_that_show_side_effects_are_needed_together(server: Server) -> None:
    grants = [grant.format("judge") for grant in ENOUGH]
    with having(server, "CREATE USER judge", *grants, "GRANT TRIGGER ON *.* TO judge", after=("DROP USER judge",)):
        text = only(findings(server, user="judge"), "warning", "grants")
        assert text == "judge@% has privileges that it does not need: TRIGGER"
        execute(server, "GRANT SELECT ON *.* TO judge")
        assert [one for one in findings(server, user="judge") if one.name == "grants"] == []


def test_grants_by_a_role_count(mysql: Server) -> None:
    by_role = ("CREATE ROLE reader", *(grant.format("reader") for grant in ENOUGH))
    give = ("CREATE USER member", "GRANT reader TO member", "SET DEFAULT ROLE ALL TO member")
    with having(mysql, *by_role, *give, after=("DROP USER member", "DROP ROLE reader")):
        assert findings(mysql, user="member") == []


def test_tables_without_a_key(server: Server) -> None:
    make = ("CREATE TABLE shop.keyless (a INT)", "CREATE TABLE shop.nullable (a INT UNIQUE)")
    with having(server, *make, after=("DROP TABLE shop.keyless", "DROP TABLE shop.nullable")):
        assert only(findings(server), "warning", "keys") == "no primary key: shop.keyless, shop.nullable"
        assert findings(server, "shop.orders") == []


def test_tables_that_are_not_covered(mariadb: Server) -> None:
    make = "CREATE TABLE shop.versions (id INT PRIMARY KEY) WITH SYSTEM VERSIONING"
    with having(mariadb, make, after=("DROP TABLE shop.versions",)):
        text = only(findings(mariadb), "error", "tables")
        assert "system-versioned tables are not supported (table shop.versions)" in text


def test_foreign_keys_that_change_rows_unlogged(server: Server) -> None:
    make = (
        "CREATE TABLE shop.lines (id INT PRIMARY KEY, o INT,"
        " FOREIGN KEY (o) REFERENCES shop.orders (id) ON DELETE CASCADE)"
    )
    with having(server, make, after=("DROP TABLE shop.lines",)):
        if server.kind == "mysql":  # from 9.6 on the server itself changes the rows, and logs it
            assert findings(server) == []
        else:
            text = only(findings(server), "error", "tables")
            assert text == "foreign keys change rows of shop.lines without logging it"
            assert findings(server, "shop.orders") == []


def test_virtual_columns_with_a_trigger(server: Server) -> None:
    make = (
        "CREATE TABLE shop.totals (id INT PRIMARY KEY, n INT, v INT AS (n + 1) VIRTUAL)",
        "CREATE TRIGGER shop.t BEFORE UPDATE ON shop.totals FOR EACH ROW SET NEW.n = 1",
    )
    with having(server, *make, after=("DROP TABLE shop.totals",)):
        if server.kind == "mysql":
            assert findings(server) == []
            return
        text = only(findings(server), "error", "tables")
        assert text.startswith(
            "the user may not see whether a table with virtual columns has a BEFORE UPDATE trigger: v"
        )
        execute(server, "GRANT TRIGGER ON shop.totals TO loader")
        text = only(findings(server), "error", "tables")
        assert text.startswith("the table has virtual columns and a BEFORE UPDATE trigger: v (table shop.totals)")
        execute(server, "DROP TRIGGER shop.t")
        assert findings(server) == []
        execute(server, "REVOKE TRIGGER ON shop.totals FROM loader")


def test_a_default_that_is_not_text(server: Server) -> None:
    """MariaDB shows it in SHOW CREATE TABLE as raw bytes."""
    make = "CREATE TABLE shop.flags (id INT PRIMARY KEY, bits VARBINARY(2) NOT NULL DEFAULT x'00ff')"
    with having(server, make, after=("DROP TABLE shop.flags",)):
        assert findings(server) == []


def test_a_schema_that_is_not_logged(filtering: Server) -> None:
    make = ("CREATE DATABASE unlogged", "CREATE TABLE unlogged.t (id INT PRIMARY KEY)")
    grant = "GRANT SELECT ON unlogged.* TO loader"
    take = "REVOKE SELECT ON unlogged.* FROM loader"
    assert only(findings(filtering), "warning", "tables") == FILTERED
    with having(filtering, *make, grant, after=(take, "DROP DATABASE unlogged")):
        text = only(findings(filtering, "*.*"), "error", "tables")
        assert text == "the server does not log changes of unlogged"


def test_marker_tables_that_cannot_be_seen(server: Server) -> None:
    with having(server, "CREATE TABLE shop.marker (id INT PRIMARY KEY)", after=("DROP TABLE shop.marker",)):
        assert findings(server, marker="shop.marker") == []
        text = only(findings(server, marker="shop.makrer"), "warning", "markers")
        assert text == "the user sees no table shop.makrer: check the name"


def test_a_marker_table_that_is_not_logged(filtering: Server) -> None:
    make = ("CREATE DATABASE unlogged", "CREATE TABLE unlogged.m (id INT)")
    grant = "GRANT SELECT ON unlogged.* TO loader"
    take = "REVOKE SELECT ON unlogged.* FROM loader"
    with having(filtering, *make, grant, after=(take, "DROP DATABASE unlogged")):
        text = only(findings(filtering, marker="unlogged.m"), "error", "tables")
        assert text == "the server does not log changes of unlogged"


def test_a_replica_that_does_not_log_what_it_replicates(server: Server) -> None:
    change, reset = "SET GLOBAL gtid_slave_pos = '0-2-5'", "SET GLOBAL gtid_slave_pos = ''"
    if server.kind == "mysql":
        change, reset = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1", "RESET REPLICA ALL"
    with having(server, change, after=(reset,)):
        assert "the server does not log the changes that it replicates" in only(findings(server), "error", "replica")


def test_a_server_that_is_too_old() -> None:
    # MariaDB says the version that it is told: no server that old is to be had.
    with running("mariadb", {"version": "10.4.34-MariaDB-log"}) as server:
        text = only([one for one in findings(server) if one.severity == "error"], "error", "server")
        assert text == "mariadb 10.4.34-MariaDB-log is too old: it cannot log column names"


def test_rows_that_go_over_the_network_in_clear(mysql: Server) -> None:
    # Another name of this machine, which nothing but its resolver knows to be one.
    text = only(findings(mysql, host="127.1", tls="off"), "warning", "tls")
    assert text == "none: rows are sent over the network in clear text"
    refused = only(findings(mysql, host="127.1"), "error", "server")
    assert "the certificate of the server is not trusted" in refused


def test_no_log_at_all() -> None:
    with running("mysql", {"skip_log_bin": None}) as server:
        found = [one for one in findings(server) if one.severity == "error"]
        assert only(found, "error", "log_bin") == "the server writes no binary log"


def test_a_server_that_lets_nobody_in_or_is_not_there(mysql: Server, tmp_path: Path) -> None:
    assert "the server refused the user" in only(findings(mysql, user="stranger"), "error", "server")
    missing = only(findings(mysql, tls_ca=str(tmp_path / "none.pem")), "error", "server")
    assert "the TLS authority cannot be read" in missing
    other = mysql.log_dir / "ca.pem"  # made at its first start, for another name than an address
    if other.exists():
        assert "certificate" in only(findings(mysql, tls_ca=str(other)), "error", "server").lower()
    away = Server(mysql.programs, mysql.data_dir, 1, {})
    assert "the server does not answer" in only(findings(away), "error", "server")


def test_sessions_that_log_statements_and_the_triggers_that_matter_then() -> None:
    with running("mysql", {"performance_schema": "ON"}) as server:
        execute(
            server,
            "CREATE DATABASE aside",
            "CREATE TABLE aside.t (id INT PRIMARY KEY)",
            "CREATE TRIGGER aside.tr AFTER INSERT ON aside.t FOR EACH ROW INSERT INTO shop.orders VALUES (NEW.id)",
        )
        address = ServerAddress(host=server.host, port=server.port, user="root")
        with connected(address) as other:
            query(other, "SET SESSION binlog_format = STATEMENT")
            assert findings(server) == []  # the user may not see it
            execute(server, "GRANT SELECT ON performance_schema.* TO loader", "GRANT TRIGGER ON *.* TO loader")
            found = {one.name: one.what for one in findings(server) if one.name != "grants"}
            assert found == {
                "binlog_format": f"sessions that do not log rows: {other.thread_id()} of root (STATEMENT)",
                "triggers": "triggers of tables that are not captured write to captured tables: aside.t (shop.orders)",
            }
            query(other, "SET SESSION binlog_format = ROW")
            assert {one.name for one in findings(server)} == {"grants"}
