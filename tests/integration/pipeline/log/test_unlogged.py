"""Rows that the log does not have, or has and takes back: which tables stop there, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import Kind, Server
from loader import pipeline
from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import TableAltered, collect_events
from loader.model.table import TableName, TableSchema
from loader.schema.evolution import evolve
from loader.staging.documents import Manifest
from tests.conftest import StartServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.nameless import Shop
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration

BEFORE = """
CREATE DATABASE nameless
CREATE DATABASE aside
CREATE TABLE nameless.a (id INT PRIMARY KEY)
CREATE TABLE nameless.b (id INT PRIMARY KEY)
CREATE TABLE nameless.audit (id INT PRIMARY KEY)
CREATE TABLE nameless.child (id INT PRIMARY KEY, p INT)
CREATE TABLE nameless.m (id INT PRIMARY KEY) ENGINE=MyISAM
CREATE TABLE aside.plain (id INT PRIMARY KEY)
CREATE TABLE aside.audited (id INT PRIMARY KEY)
CREATE TABLE aside.parent (id INT PRIMARY KEY)
CREATE VIEW aside.v AS SELECT id FROM nameless.a
CREATE TRIGGER aside.t AFTER INSERT ON aside.audited FOR EACH ROW INSERT INTO nameless.audit VALUES (NEW.id)
CREATE FUNCTION aside.f(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO nameless.audit VALUES (x); RETURN x; END
ALTER TABLE nameless.child ADD FOREIGN KEY (p) REFERENCES aside.parent (id) ON DELETE CASCADE
INSERT INTO aside.parent VALUES (1)
INSERT INTO nameless.child VALUES (1,1)
"""
_WITHOUT_GTIDS: dict[str, dict[str, str | None]] = {
    "mysql": {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}, "mariadb": {},
}  # fmt: skip
BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> Iterator[Shop]:
    options = {"log_bin_trust_function_creators": "ON", **_WITHOUT_GTIDS[request.param]}
    yield _begun(fresh_server(request.param, options), tmp_path)


def _begun(server: Server, folder: Path, user: str = "root") -> Shop:
    made = Shop(server, settings_of(address_of(server), "nameless.*", folder), "FULL")
    made.run(BEFORE)
    if user != "root":
        made.run(f"CREATE USER {user}\nGRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}")
        made.run(f"GRANT SELECT ON nameless.* TO {user}")
        address = address_of(server).model_copy(update={"user": user})
        made.settings = made.settings.model_copy(update={"server": address})
    pipeline.begin(made.settings)
    return made


def stopped(manifest: Manifest) -> list[tuple[str, ...]]:
    """The tables of each barrier."""
    return [one.tables for one in manifest.barriers]


def staged(shop: Shop, manifest: Manifest) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for (name, _), lines in shop.staged(manifest).items():
        found.setdefault(name.removeprefix("nameless."), []).extend(line[1] for line in lines)
    return {name: sorted(ids, key=str) for name, ids in found.items()}


STATEMENTS: dict[str, list[tuple[str, ...]]] = {
    "INSERT INTO nameless.a VALUES (2)": [("nameless.a",)],
    "REPLACE INTO aside.plain SELECT id FROM nameless.a": [],
    "INSERT INTO aside.plain VALUES (20)": [],
    "INSERT INTO aside.audited VALUES (2)": [()],
    "INSERT INTO aside.v VALUES (20)": [()],
    "DELETE FROM aside.parent": [()],
    "INSERT INTO aside.plain VALUES (aside.f(21))": [()],
    "SELECT aside.f(22)": [()],
}


def test_a_statement_stops_the_tables_that_it_may_have_changed(shop: Shop) -> None:
    a, b = TableName("nameless", "a"), TableName("nameless", "b")
    for number, (statement, expected) in enumerate(STATEMENTS.items(), 100):
        shop.run(f"INSERT INTO nameless.a VALUES ({number})")
        shop.run(f"{BY_STATEMENT}\n{statement}")
        shop.run(f"INSERT INTO nameless.b VALUES ({number})")
        manifest = shop.delta()
        assert stopped(manifest) == expected, statement
        assert staged(shop, manifest) == {"a": [str(number)], "b": [str(number)]}
        assert shop.again(manifest) == ()
        for table in (a, b):
            if expected == [()] or (expected and table == a):
                with pytest.raises(UnsupportedError, match="the log holds a statement that changed rows") as caught:
                    collect_events(table, [manifest], 0, manifest.stop_seqno)
                assert f"loader initial-load --table {table} --again" in caught.value.hint
            else:
                assert collect_events(table, [manifest], 0, manifest.stop_seqno) == []


def test_a_trigger_that_is_dropped_before_the_plan_is_made_counts(shop: Shop) -> None:
    shop.run(f"{BY_STATEMENT}\nINSERT INTO aside.audited VALUES (2)\nDROP TRIGGER aside.t")
    assert stopped(shop.delta()) == [()]
    shop.run(f"{BY_STATEMENT}\nINSERT INTO aside.audited VALUES (3)")
    assert stopped(shop.delta()) == []


def test_without_the_privileges_nothing_is_known(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = _begun(fresh_server("mysql", {"log_bin_trust_function_creators": "ON"}), tmp_path, "loader")
    shop.run(f"{BY_STATEMENT}\nINSERT INTO aside.plain VALUES (2)")
    assert stopped(shop.delta()) == [()]
    shop.run("GRANT SELECT, TRIGGER ON *.* TO loader")
    shop.run(f"{BY_STATEMENT}\nINSERT INTO aside.plain VALUES (3)")
    assert stopped(shop.delta()) == []


def test_prepared_statements_count_from_their_commit(shop: Shop) -> None:
    shop.run(f"{BY_STATEMENT}\nXA START 'x'\nINSERT INTO nameless.a VALUES (2)\nXA END 'x'\nXA PREPARE 'x'")
    shop.run("INSERT INTO nameless.a VALUES (3)")
    first = shop.delta()
    assert (stopped(first), len(first.held), staged(shop, first)) == ([], 1, {"a": ["3"]})
    shop.run("XA COMMIT 'x'\nINSERT INTO nameless.a VALUES (4)")
    second = shop.delta()
    (barrier,) = second.barriers
    assert second.start_seqno < barrier.seqno < second.stop_seqno
    assert barrier.statement == "INSERT INTO nameless.a VALUES (2)"
    assert staged(shop, second) == {"a": ["4"]}
    assert (shop.again(first), shop.again(second)) == ((), ())


def test_rows_that_mariadb_logs_and_takes_back(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = _begun(fresh_server("mariadb", {}), tmp_path)
    shop.run("INSERT INTO nameless.b VALUES (1)")
    shop.run(
        "BEGIN\nINSERT INTO nameless.a VALUES (1)\nSAVEPOINT s\nINSERT INTO nameless.audit VALUES (1)\n"
        "INSERT INTO nameless.m VALUES (1)\nROLLBACK TO s\nCOMMIT"
    )
    shop.run(
        "BEGIN\nINSERT INTO nameless.child VALUES (2,1)\nCREATE TEMPORARY TABLE aside.x (id INT)\n"
        "INSERT INTO nameless.child VALUES (3,1)\nROLLBACK"
    )
    shop.run(
        "XA START 'x'\nINSERT INTO nameless.b VALUES (2)\nSAVEPOINT s\nINSERT INTO nameless.b VALUES (3)\n"
        "INSERT INTO nameless.m VALUES (2)\nROLLBACK TO s\nXA END 'x'\nXA PREPARE 'x'"
    )
    first = shop.delta()
    assert [(one.statement, one.tables) for one in first.barriers] == [
        ("ROLLBACK TO `s`", ("nameless.a", "nameless.audit")),
        ("ROLLBACK", ("nameless.child",)),
    ]
    assert staged(shop, first) == {"a": ["1"], "audit": ["1"], "b": ["1"], "m": ["1", "2"]}
    with pytest.raises(UnsupportedError, match="logged and then rolled back"):
        collect_events(TableName("nameless", "audit"), [first], 0, first.stop_seqno)
    assert collect_events(TableName("nameless", "m"), [first], 0, first.stop_seqno) == []
    run(shop.server, "XA COMMIT 'x'")
    second = shop.delta()
    assert [(one.statement, one.tables) for one in second.barriers] == [("ROLLBACK TO `s`", ("nameless.b",))]
    assert (shop.again(first), shop.again(second)) == ((), ())


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_rows_of_engines_without_transactions_stay_and_only_the_others_stop(
    kind: Kind, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = _begun(fresh_server(kind, _WITHOUT_GTIDS[kind]), tmp_path)
    engines = ["MyISAM", "MEMORY", *["Aria TRANSACTIONAL=0", "Aria TRANSACTIONAL=1"] * (kind == "mariadb")]
    for engine in engines:
        shop.run(f"DROP TABLE nameless.m\nCREATE TABLE nameless.m (id INT PRIMARY KEY) ENGINE={engine}")
        shop.run("DELETE FROM nameless.a\nDELETE FROM nameless.b\nDELETE FROM nameless.audit")
        shop.delta()
        shop.run(
            "BEGIN\nINSERT INTO nameless.b VALUES (1)\nSAVEPOINT s\nINSERT INTO nameless.a VALUES (2)\n"
            "INSERT INTO nameless.m VALUES (3)\nROLLBACK TO s\nINSERT INTO nameless.audit VALUES (4)\nCOMMIT"
        )
        manifest = shop.delta()
        kept = {"audit": ["4"], "b": ["1"], "m": ["3"]}
        if kind == "mysql":  # its log has only what was committed
            assert (stopped(manifest), staged(shop, manifest)) == ([], kept)
        else:
            assert stopped(manifest) == [("nameless.a", "nameless.audit", "nameless.b")]
            assert staged(shop, manifest) == kept | {"a": ["2"]}


CHILD = "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES aside.parent (id) ON DELETE SET NULL)"


@pytest.mark.parametrize(
    ("kind", "options", "logged"),
    [("mariadb", {}, False), ("mysql", {"innodb_native_foreign_keys": "ON"}, False), ("mysql", {}, True)],
)
def test_tables_whose_cascades_are_not_logged_stop(
    kind: str, options: dict[str, str], logged: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = _begun(fresh_server(kind, options), tmp_path)
    shop.run(f"CREATE TABLE nameless.born {CHILD}\nINSERT INTO nameless.born VALUES (1,1)")
    shop.run(
        "ALTER TABLE nameless.a ADD p INT, ADD FOREIGN KEY (p) REFERENCES aside.parent (id) ON UPDATE CASCADE\n"
        "INSERT INTO nameless.a VALUES (1,1)\nDELETE FROM nameless.a\nDELETE FROM aside.parent"
    )
    manifest = shop.delta()
    updated = {file.name.table: file.updates + file.deletes for file in manifest.files}
    assert updated == ({"a": 1, "born": 1, "child": 1} if logged else {"a": 1, "born": 0})
    for table in ("born", "a"):
        name = TableName("nameless", table)
        if logged:
            collect_events(name, [manifest], 0, manifest.stop_seqno)
            continue
        with pytest.raises(UnsupportedError) as caught:
            events = collect_events(name, [manifest], 0, manifest.stop_seqno)
            evolve(TableSchema(name, (), ()), [one.step for one in events if isinstance(one, TableAltered)], None)
        assert "its foreign keys CASCADE or SET NULL" in caught.value.why
        assert f"RESTRICT on the server and then loader initial-load --table {name} --again" in caught.value.hint
