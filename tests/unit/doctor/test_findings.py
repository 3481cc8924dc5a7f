"""Checks that fail themselves, versions of Java and packages, grants: what needs no server."""

from __future__ import annotations

import pytest

from loader.doctor import lake
from loader.doctor.finding import Finding, error, examine, exit_code, ok, warning
from loader.doctor.grants import Grant, missing, parse
from loader.doctor.lake import access_of_tasks, between_executors, untested
from loader.doctor.server import clock, tls
from loader.doctor.this_machine import java, packages
from loader.doctor.variables import checks_of, log_bin
from loader.errors import RetryableError
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableName
from loader.spark.settings import SparkSettings
from loader.staging.documents import Identity
from loader.transport.server.address import ServerAddress


def test_a_check_that_fails_is_a_finding_and_stops_no_other() -> None:
    def broken() -> Finding:
        raise ZeroDivisionError("by nothing\n  at java.lang.Stack")

    def refused() -> Finding:
        raise RetryableError("it failed", why="of this", hint="do that", table="shop.a")

    found = examine([("one", broken), ("two", refused), ("three", lambda: [ok("three", "fine")]), ("four", list)])
    assert found == [
        error("one", "the check itself failed: ZeroDivisionError: by nothing", "--verbose shows the traceback"),
        error("two", "it failed (table shop.a): of this", "do that"),
        ok("three", "fine"),
    ]


def test_exit_codes() -> None:
    good, doubtful, bad = ok("a", "x"), warning("b", "x", "y"), error("c", "x", "y")
    assert [exit_code(f) for f in ([], [good], [good, doubtful], [doubtful, bad, good])] == [0, 0, 4, 1]


def test_the_checks_of_variables_in_their_order() -> None:
    """Name a new check here and in tests/e2e/test_doctor.py: a person reads them in this order."""
    names = [name for name, _ in checks_of({}, Identity(kind="mysql", version="9.7.0", server_id=1, uuid="a"))]
    assert names == [
        "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata", "binlog_checksum", "expiry", "gtid", "identity"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("says", "severity", "what"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK', "ok", "17.0.15"),
        ('java version "21" 2023-09-19', "ok", "21"),
        ('openjdk version "24.0.1" 2025', "warning", "24.0.1: Spark is not tested with it"),
        ('java version "1.8.0_402"', "error", "1.8.0_402 is too old for Spark"),
        ('openjdk version "11.0.2"', "error", "11.0.2 is too old for Spark"),
        ("", "error", "no Java was found"),
        ("sh: no java", "error", "the version of Java is unknown: sh: no java"),
    ],
)
def test_java(says: str, severity: str, what: str) -> None:
    assert (java(says).severity, java(says).what) == (severity, what)


def test_packages() -> None:
    asked = ["numba==0.68.1", "boto3>=1.40; extra == 's3'", "pyspark==4.1.3; extra == 'spark'"]
    good = {"binlog-loader": "0.1.0", "numba": "0.68.1", "pyspark": "4.1.3", "pyspark-client": "4.1.3"}
    assert packages(good, asked) == ok("packages", "binlog-loader 0.1.0, numba 0.68.1, pyspark 4.1.3")
    assert packages({"numba": "0.68.1"}, asked) == ok("packages", "numba 0.68.1")
    found = packages(good | {"numba": "0.70.0", "pyspark-client": "4.1.4"}, asked)
    assert isinstance(found, list)
    assert [(one.severity, one.what) for one in found] == [
        ("error", "numba 0.70.0 is installed, but the loader needs 0.68.1"),
        ("error", "pyspark 4.1.3 and pyspark-client 4.1.4 differ"),
    ]


@pytest.mark.parametrize(
    ("version", "fits"),
    [("4.0.0", True), ("4.1.3", True), ("4.2", False), ("4.2.0", False), ("3.5.9", False), ("4.0.5", False)],
)
def test_a_range_of_versions(version: str, fits: bool) -> None:
    asked = ["pyspark!=4.0.5,<4.2,>=4.0; extra == 'spark'", "boto3>=1.40; extra == 's3'"]
    found = packages({"pyspark": version, "boto3": "1.0"}, asked)
    wrong = f"pyspark {version} is installed, but the loader needs >=4.0,<4.2,!=4.0.5"
    assert [one.what for one in (found if isinstance(found, list) else [found])] == [
        f"pyspark {version}" if fits else wrong
    ]


LINES = [
    "GRANT SELECT, INSERT (`a`, `b`), UPDATE ON `sh\\_op`.* TO `u`@`%` WITH GRANT OPTION",
    "GRANT SELECT ON `a``b`.`t.1` TO `u`@`%`",
    "GRANT SELECT (`id`) ON `c`.`t` TO `u`@`%`",
    "GRANT SELECT ON `pre%`.* TO `u`@`%`",
    "GRANT `role`@`%` TO `u`@`%`",
    "GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION",
    "GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*0123'",
]


def test_grants_are_read_as_the_servers_print_them() -> None:
    found = parse(LINES)
    assert found[0] == Grant(frozenset({"SELECT", "INSERT (`a`, `b`)", "UPDATE"}), "sh\\_op", "*", with_grant=True)
    assert found[1] == Grant(frozenset({"SELECT"}), "a`b", "t.1", with_grant=False)
    assert [(one.schema, one.table) for one in found] == [
        ("sh\\_op", "*"), ("a`b", "t.1"), ("c", "t"), ("pre%", "*"), ("*", "*")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "table", "readable"),
    [
        ("sh_op", "t", True),
        ("shXop", "t", False),
        ("a`b", "t.1", True),
        ("a`b", "t", False),
        ("c", "t", False),
        ("prefix", "t", True),
        ("pr", "t", False),
    ],
)
def test_which_tables_a_grant_lets_read(schema: str, table: str, readable: bool) -> None:
    assert any(grant.selects(TableName(schema, table)) for grant in parse(LINES)) is readable


def test_tls_and_clock() -> None:
    far, near = (ServerAddress(host=host, user="u", tls="off") for host in ("db.example.org", "127.0.0.9"))
    assert [tls(far, "").severity, tls(far, "TLS_AES").severity, tls(near, "").severity] == ["warning", "ok", "ok"]
    assert [clock(100.0, here).severity for here in (96, 104, 94, 106)] == ["ok", "ok", "warning", "warning"]
    assert clock(100, 200).what.startswith("the server is 100 seconds behind this machine")
    assert clock(200, 100).what.startswith("the server is 100 seconds ahead of this machine")


def test_a_log_inside_innodb() -> None:
    assert log_bin({"log_bin": "ON", "binlog_storage_engine": ""}).severity == "ok"
    found = log_bin({"log_bin": "ON", "binlog_storage_engine": "innodb"})
    assert (found.severity, found.what) == ("error", "the server keeps its log inside innodb, not in files of events")


def test_secrets_between_driver_and_executors() -> None:
    both = {"spark.authenticate": "true", "spark.network.crypto.enabled": "TRUE"}
    cases = {
        ("local[*]", (), True): "ok",
        ("yarn", (), False): "ok",
        ("yarn", (), True): "warning",
        ("spark://host:7077", ("spark.authenticate",), True): "warning",
        ("yarn", tuple(both), True): "ok",
    }
    for (master, names, secrets), severity in cases.items():
        settings = SparkSettings(master=master, jars="/j", conf={name: both[name] for name in names})
        found = between_executors(settings, secrets=secrets)
        assert found.severity == severity, (master, names)
        assert (severity == "ok") or all((name in found.what) != (name in names) for name in both)


@pytest.mark.parametrize(
    ("master", "kerberos", "private", "severity"),
    [
        ("local[2]", True, False, None),
        ("yarn", False, False, None),
        ("yarn", True, True, "ok"),
        ("yarn", True, False, "warning"),
    ],
)
def test_how_tasks_access_hdfs(
    master: str, kerberos: bool, private: bool, severity: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "hdfs_tokens", lambda _: {"delegation:http://names:9870": "TOKEN"} if kerberos else {})
    conf = dict.fromkeys(("spark.authenticate", "spark.network.crypto.enabled"), "true") if private else {}
    found = access_of_tasks("hdfs://names:8020/staging", SparkSettings(master=master, jars="/j", conf=conf))
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all("TOKEN" not in one.what for one in found)
    assert all("spark.network.crypto.enabled" in one.cure for one in found if severity == "warning")


@pytest.mark.parametrize("kind", ["hadoop", "jdbc", "rest", "hive", "glue"])
def test_a_catalog_without_tests_is_named(kind: str) -> None:
    found = untested(CatalogSettings(type=kind, warehouse="s3a://lake/warehouse"))
    assert [(one.severity, one.name) for one in found] == ([("warning", "catalog_type")] if kind == "glue" else [])
    assert all("no test of the loader has run with AWS Glue" in one.what for one in found)


def test_the_fix_of_a_missing_privilege_is_a_statement_that_the_server_takes() -> None:
    found = missing("o'neil@%", [], [TableName("sh`op", "t")])
    assert isinstance(found, list)
    cures = [one.cure.partition("; see")[0] for one in found]
    assert cures[0] == "GRANT REPLICATION SLAVE ON *.* TO 'o''neil'@'%'"
    assert cures[-1] == "GRANT SELECT ON `sh``op`.* TO 'o''neil'@'%'"
