"""Logs without names of columns give what logs with names give, whatever alters the tables meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import LoaderError, RetryableError
from loader.extract.spec import TransportSettings
from loader.materialise.plan.ddl_events import collect_events
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline import chain_of
from loader.pipeline.chain import table_registry
from loader.source.server_facts import log_end
from loader.staging.layout import published_key
from loader.staging.published import Published
from loader.staging.schemas import SchemaStore
from tests.conftest import StartServer
from tests.integration.pipeline.log.nameless import Shop, begun, begun_after, log_end_of
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run, stop_replica

pytestmark = pytest.mark.integration

SWAPPED = TableName("nameless", "swapped")
MANY = ",".join(f"({n},{-n},{n * n})" for n in range(100, 2100))
MORE = ",".join(f"({n},{-n},{n * n})" for n in range(3000, 5000))
ROUNDS = (
    f"""
INSERT INTO nameless.a VALUES (4294967295,'é','y','é',X'00ff'),(1,NULL,NULL,'',NULL)
INSERT INTO nameless.swapped VALUES (1,10,20),{MANY}
ALTER TABLE nameless.swapped RENAME COLUMN p TO q, RENAME COLUMN q TO p
INSERT INTO nameless.swapped VALUES (2,10,20),{MORE}
UPDATE nameless.swapped SET p = 7 WHERE id = 2
ALTER TABLE nameless.a ADD c VARCHAR(9) AFTER id, MODIFY e ENUM('y','zz','x'), ADD n SMALLINT UNSIGNED DEFAULT 65535
INSERT INTO nameless.a VALUES (2,'c','name','zz','ÿ','blob',65535)
ALTER TABLE nameless.a DROP n, MODIFY t TEXT CHARACTER SET latin1 FIRST, RENAME COLUMN name TO title
INSERT INTO nameless.a VALUES ('ß',3,'c','title','y','b')
CREATE TABLE nameless.liked LIKE nameless.b
INSERT INTO nameless.liked VALUES ('k',18446744073709551615)
CREATE TABLE nameless.made (id BIGINT UNSIGNED, s VARCHAR(9), e ENUM('é'), g INT GENERATED ALWAYS AS (id * 2) STORED, PRIMARY KEY (id)) DEFAULT CHARSET=latin1
INSERT INTO nameless.made (id, s, e) VALUES (9,'é','é')
""",
    """
INSERT INTO nameless.keyless VALUES (1,'p,q'),(NULL,NULL)
RENAME TABLE nameless.a TO nameless.tmp, nameless.b TO nameless.a, nameless.tmp TO nameless.b
INSERT INTO nameless.a VALUES ('abc',1)
INSERT INTO nameless.b VALUES ('ü',5,'c','title','x','b')
SET GLOBAL binlog_row_metadata = FULL
INSERT INTO nameless.swapped VALUES (5000,1,2)
ALTER TABLE nameless.swapped ADD r INT FIRST
INSERT INTO nameless.swapped VALUES (0,5001,1,2)
SET GLOBAL binlog_row_metadata = {metadata}
INSERT INTO nameless.swapped VALUES (0,5002,1,2)
ALTER TABLE nameless.swapped DROP PRIMARY KEY, ADD PRIMARY KEY (r, id)
UPDATE nameless.swapped SET q = 3 WHERE id = 5001
ALTER DATABASE nameless CHARACTER SET latin2
CREATE TABLE nameless.late (id INT PRIMARY KEY, s VARCHAR(5))
INSERT INTO nameless.late VALUES (1,'ő')
ALTER TABLE nameless.late CONVERT TO CHARACTER SET utf8mb4, ADD t TEXT
INSERT INTO nameless.late VALUES (2,'ő','😀')
DROP TABLE nameless.made
CREATE TABLE nameless.made (s CHAR(4) CHARACTER SET ascii PRIMARY KEY, id INT UNSIGNED)
INSERT INTO nameless.made VALUES ('a',4294967295)
""",
    """
INSERT INTO nameless.late VALUES (3,'x','y')
ALTER TABLE nameless.keyless MODIFY x BIGINT NOT NULL DEFAULT 3, ADD z TINYINT
INSERT INTO nameless.keyless VALUES (2,'q',-1)
SET SESSION sql_mode = @@sql_mode /*!80030 , SESSION sql_generate_invisible_primary_key = ON */
CREATE TABLE nameless.unkeyed (a INT)
INSERT INTO nameless.unkeyed (a) VALUES (1)
SET SESSION sql_mode = @@sql_mode /*!80030 , SESSION sql_generate_invisible_primary_key = OFF */
CREATE TABLE nameless.selected (PRIMARY KEY (id)) SELECT id, u, 'é' AS text FROM nameless.quiet UNION SELECT 7, 8, 'x'
INSERT INTO nameless.quiet VALUES (1,4294967295)
DELETE FROM nameless.b WHERE id = 5
XA START 'one'
INSERT INTO nameless.late VALUES (4,'held','é')
XA END 'one'
XA PREPARE 'one'
""",
    "INSERT INTO nameless.quiet VALUES (2,2)\nXA COMMIT 'one'",
    "INSERT INTO nameless.quiet VALUES (3,3)",
)


def test_a_log_without_names_is_staged_like_one_with_names(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    named = begun(server, "FULL", tmp_path / "named")
    expected = []
    for statements in ROUNDS:
        named.run(statements)
        manifest = named.delta()
        assert not manifest.nameless
        expected.append((manifest.schemas, named.staged(manifest)))
    shop = begun(server, metadata, tmp_path / "nameless")
    digests = []
    for statements, (schemas, staged) in zip(ROUNDS, expected, strict=True):
        shop.run(statements)
        manifest = shop.delta()
        assert manifest.nameless
        assert list(manifest.schemas.values()) == list(schemas.values())
        assert shop.staged(manifest) == staged
        assert shop.again(manifest) == ()
        digests.append(manifest.schemas_after)
    assert len(set(digests)) == len(ROUNDS) - 2
    assert len(set(digests[2:])) == 1
    after = SchemaStore(chain_of(shop.settings).store, "shop").get(manifest.schemas_after)
    assert [table.table for table in after.tables] == [
        f"nameless.{name}"
        for name in ("a", "b", "keyless", "late", "liked", "made", "quiet", "selected", "swapped", "unkeyed")
    ]


def test_a_table_that_is_captured_later_is_read_for_the_plan(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    few = shop.settings.model_copy(
        update={"tables": shop.settings.tables.model_copy(update={"include": ("nameless.b",)})}
    )
    begun_with = Shop(server, few.model_copy(update={"staging_root": f"file://{tmp_path}/few"}), metadata)
    pipeline.begin(begun_with.settings)
    shop.run("INSERT INTO nameless.b VALUES ('x',1)\nINSERT INTO nameless.swapped VALUES (1,2,3)")
    every = Shop(server, begun_with.settings.model_copy(update={"tables": shop.settings.tables}), metadata)
    manifest = every.delta()
    assert {table for table, _ in every.staged(manifest)} == {"nameless.b", "nameless.swapped"}
    assert every.again(manifest) == ()
    shop.run("ALTER TABLE nameless.swapped DROP p\nINSERT INTO nameless.swapped VALUES (2,3)")
    (schema,) = every.delta().schemas.values()
    assert [column["name"] for column in schema["columns"]] == ["id", "q"]


def test_columns_are_those_where_the_log_begins(
    logged: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements that come while they are read are not mistaken for such that came before."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path / "before")
    alters = iter(["ADD x INT", "DROP x", "RENAME COLUMN p TO x"])

    def altered(connection: Any) -> Position:
        end = log_end(connection)
        for alter in alters:
            shop.run(f"ALTER TABLE nameless.swapped {alter}")
            break
        return end

    monkeypatch.setattr(table_registry, "log_end", altered)
    late = shop.settings.model_copy(update={"staging_root": f"file://{tmp_path}/late"})
    generation = pipeline.begin(late)
    assert generation.start == str(log_end_of(server))
    shown = pipeline.table_schema(late, TableName("nameless", "swapped"))
    assert shown.at == generation.start
    assert [column["name"] for column in (shown.definition or {})["columns"]] == ["id", "x", "q"]
    numbers = count()

    def altering(connection: Any) -> Position:
        shop.run(f"ALTER TABLE nameless.swapped ADD z{next(numbers)} INT")
        return log_end(connection)

    monkeypatch.setattr(table_registry, "log_end", altering)
    with pytest.raises(RetryableError, match="altered continually"):
        pipeline.begin(shop.settings.model_copy(update={"staging_root": f"file://{tmp_path}/never"}))


def test_a_generation_without_a_document_goes_by_what_is_read_for_the_plan(
    logged: tuple[Server, str], tmp_path: Path
) -> None:
    """As older versions of the loader began them: what a statement of the first interval alters is not known in it."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path / "new")
    generation = chain_of(shop.settings).require_generation()
    old = Shop(server, shop.settings.model_copy(update={"staging_root": f"file://{tmp_path}/old"}), metadata)
    chain_of(old.settings).begin(generation.model_copy(update={"schemas": ""}))
    shop.run("INSERT INTO nameless.a VALUES (1,'é','y','é',X'00ff')\nINSERT INTO nameless.b VALUES ('x',1)")
    shop.run("INSERT INTO nameless.swapped VALUES (1,2,3)\nALTER TABLE nameless.swapped RENAME COLUMN p TO r")
    shop.run("CREATE TABLE nameless.made (id INT PRIMARY KEY, s VARCHAR(5))\nINSERT INTO nameless.made VALUES (1,'é')")
    known_, manifest = shop.delta(), old.delta()
    assert known_.left_out == ()
    ((table, at, why),) = [(one.table, one.at, one.why) for one in manifest.left_out]
    assert (table, at) == ("nameless.swapped", generation.start)
    assert why == "no statement in the log creates the table, and it was absent when the definitions were read"
    expected = shop.staged(known_)
    assert old.staged(manifest) == {key: expected[key] for key in expected if key[0] != "nameless.swapped"}
    assert old.again(manifest) == ()
    shop.run("INSERT INTO nameless.swapped VALUES (2,3,4)\nINSERT INTO nameless.made VALUES (2,'ü')")
    shop.run("ALTER TABLE nameless.b ADD w INT\nINSERT INTO nameless.b VALUES ('y',2,3)")
    known_, manifest = shop.delta(), old.delta()
    assert (manifest.left_out, old.staged(manifest)) == ((), shop.staged(known_))
    store = SchemaStore(chain_of(shop.settings).store, "shop"), SchemaStore(chain_of(old.settings).store, "shop")
    assert store[0].get(known_.schemas_after) == store[1].get(manifest.schemas_after)


def test_rows_of_types_that_the_log_does_not_tell_go_by_the_statements_too(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """The plan has the types of UUID columns from the server, as they are at the end of the log."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "MINIMAL"})
    made = "CREATE TABLE nameless.u (id INT PRIMARY KEY, v UUID, a INT, b INT)"
    shop = begun_after(server, "MINIMAL", tmp_path, made)
    for _ in range(2):
        shop.run("FLUSH BINARY LOGS")
        assert not shop.delta().nameless
        shop.run("INSERT INTO nameless.u VALUES (1, UUID(), 10, 20)\nALTER TABLE nameless.u MODIFY b INT AFTER v")
        shop.run("INSERT INTO nameless.u VALUES (2, UUID(), 20, 10)\nALTER TABLE nameless.u MODIFY a INT AFTER v")
        shop.run("INSERT INTO nameless.u VALUES (3, UUID(), 10, 20)\nDELETE FROM nameless.u")
        manifest = shop.delta()
        schemas = {tuple(column["name"] for column in one["columns"]): one for one in manifest.schemas.values()}
        assert sorted(schemas) == [("id", "v", "a", "b"), ("id", "v", "b", "a")]
        assert [one["key"] for one in schemas.values()] == [["id"], ["id"]]
        assert manifest.left_out == ()


def taken_over(shop: Shop, replica: Server) -> Shop:
    """Kill the server, and return the shop on its replica, which has all transactions."""
    caught_up(shop.server, replica)
    stop_replica(replica)
    shop.server.kill()
    files = TransportSettings(kind="file", path=str(replica.log_dir), server=address_of(replica))
    settings = shop.settings.model_copy(update={"server": address_of(replica), "transport": files})
    return Shop(replica, settings, shop.metadata)


def test_a_followed_server_goes_on_from_the_document(pair: tuple[Server, Server], tmp_path: Path) -> None:
    first, second = pair
    metadata = "MINIMAL" if first.kind == "mysql" else "NO_LOG"
    run(second, f"SET GLOBAL binlog_row_metadata = {metadata}")
    replicating(first, second)
    shop = begun(first, metadata, tmp_path)
    shop.run("ALTER TABLE nameless.swapped RENAME COLUMN p TO r\nINSERT INTO nameless.swapped VALUES (1,2,3)")
    old = shop.delta()
    shop.run("ALTER TABLE nameless.b ADD w INT UNSIGNED\nINSERT INTO nameless.b VALUES ('x',1,4294967295)")
    there = taken_over(shop, second)
    there.run("ALTER TABLE nameless.swapped RENAME COLUMN q TO p\nINSERT INTO nameless.swapped VALUES (2,3,4)")
    manifest = there.delta()
    assert (manifest.generation, manifest.nameless, manifest.left_out) == ("0002", True, ())
    assert chain_of(there.settings).require_generation().schemas == old.schemas_after
    schemas = {one["table"]: [column["name"] for column in one["columns"]] for one in manifest.schemas.values()}
    assert schemas == {"b": ["k", "v", "w"], "swapped": ["id", "r", "p"]}
    assert sorted(line for lines in there.staged(manifest).values() for line in lines) == [
        ["I", "2", "3", "4"], ["I", "x", "1", "4294967295"],
    ]  # fmt: skip
    assert there.again(manifest) == ()
    there.run("INSERT INTO nameless.quiet VALUES (7,7)")
    assert there.delta().left_out == ()


@pytest.mark.parametrize("staged", [True, False])
def test_a_followed_server_does_not_forget_what_was_said(
    pair: tuple[Server, Server], tmp_path: Path, staged: bool
) -> None:
    """Two columns were swapped on both servers without a log entry."""
    first, second = pair
    metadata = "MINIMAL" if first.kind == "mysql" else "NO_LOG"
    run(second, f"SET GLOBAL binlog_row_metadata = {metadata}")
    replicating(first, second)
    shop = begun(first, metadata, tmp_path)
    shop.run("INSERT INTO nameless.swapped VALUES (1,10,20)")
    shop.delta()
    if not staged:
        shop.run("INSERT INTO nameless.quiet VALUES (7,7)")
    caught_up(first, second)
    for server in pair:
        swap = "ALTER TABLE nameless.swapped RENAME COLUMN p TO q, RENAME COLUMN q TO p"
        run(server, "SET SESSION sql_log_bin = 0", swap)
    text = run(first, "SHOW CREATE TABLE nameless.swapped")[0][1]
    pipeline.set_table_schema(shop.settings, SWAPPED, str(log_end_of(first)), text)
    shop.run("INSERT INTO nameless.swapped (id, p, q) VALUES (2,10,20)")
    there = taken_over(shop, second)
    manifest = there.delta()
    rows = [
        dict(zip([column["name"] for column in manifest.schemas[schema]["columns"]], line[1:], strict=True))
        for (name, schema), lines in there.staged(manifest).items()
        for line in lines
        if name == str(SWAPPED)
    ]
    left_out = [one.table for one in manifest.left_out]
    assert (rows, left_out) == (([{"id": "2", "p": "10", "q": "20"}], []) if staged else ([], [str(SWAPPED)]))
    if not staged:
        pipeline.set_table_schema(there.settings, SWAPPED, manifest.left_out[0].at, text)
        assert there.extract(manifest.start_seqno).left_out == ()


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> tuple[Server, Server]:
    """Two servers, of which the second can be the first one's replica."""
    return fresh_server(request.param), fresh_server(request.param, options_of_replica(request.param))


def test_a_purge_leaves_the_documents_that_manifests_and_plans_need(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    few = shop.settings.tables.model_copy(update={"include": ("nameless.a", "nameless.b")})
    every, shop.settings = shop.settings, shop.settings.model_copy(update={"tables": few})
    chain = chain_of(shop.settings)
    shop.run("ALTER TABLE nameless.b ADD w INT\nINSERT INTO nameless.b VALUES ('x',1,2)")
    first = shop.delta()
    shop.settings = every
    shop.run("INSERT INTO nameless.swapped VALUES (1,2,3)\nALTER TABLE nameless.b DROP w")
    second = shop.delta()
    shop.run("INSERT INTO nameless.b VALUES ('y',1)")
    documents = {info.key: chain.store.get(info.key) for info in chain.store.list("shop/schemas/")}
    for manifest in (first, second):
        record = Published(
            source="shop", generation="0001", stop=manifest.stop, stop_seqno=manifest.stop_seqno, tables={}
        )
        chain.store.create(published_key("shop", "0001", manifest.start_seqno), record.canonical())
    for removed in (2, 0):
        assert len(pipeline.purge(shop.settings, timedelta(0))) == removed
        assert {info.key: chain.store.get(info.key) for info in chain.store.list("shop/schemas/")} == documents
    assert [shop.again(one) for one in (first, second)] == [(), ()]
    assert shop.restore(first) == shop.restore(second) == 1
    third = shop.delta()
    assert (third.left_out, list(shop.staged(third).values())) == ((), [[["I", "y", "1"]]])


def test_a_table_without_a_document_is_not_read_by_what_later_statements_make_of_it(
    logged: tuple[Server, str], tmp_path: Path
) -> None:
    """It was added to the configuration while the log had names. A backlog is planned after a statement that follows."""
    server, metadata = logged
    every = begun(server, "FULL", tmp_path / "every")
    shop = Shop(server, every.settings.model_copy(update={"staging_root": f"file://{tmp_path}/few"}), metadata)
    tables = shop.settings.tables.model_copy(update={"include": ("nameless.b",)})
    pipeline.begin(shop.settings.model_copy(update={"tables": tables}))
    shop.run("INSERT INTO nameless.swapped VALUES (1,2,3)")
    assert not shop.delta().nameless
    run(server, f"SET GLOBAL binlog_row_metadata = {metadata}")
    shop.run("INSERT INTO nameless.swapped VALUES (2,2,3)")
    until = log_end_of(server)
    shop.run("ALTER TABLE nameless.swapped RENAME COLUMN p TO q, RENAME COLUMN q TO p")
    shop.run("INSERT INTO nameless.swapped VALUES (3,3,2)")
    first, second = shop.delta(until), shop.delta()
    why = {"no statement in the log creates the table, and it was absent when the definitions were read"}
    assert ([one.table for one in first.left_out], {one.why for one in first.left_out}) == (["nameless.swapped"], why)
    assert [one.table for one in second.left_out] == ["nameless.swapped"]
    assert (first.files, second.files) == ((), ())


def test_a_type_that_the_log_does_not_tell_is_the_one_before_a_later_statement(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    server = fresh_server("mariadb", {"binlog_row_metadata": "FULL"})
    shop = begun_after(server, "FULL", tmp_path, "CREATE TABLE nameless.u (id INT PRIMARY KEY, v BINARY(16))")
    shop.run("INSERT INTO nameless.u VALUES (1, REPEAT('a', 16))")
    until = log_end_of(server)
    shop.run("ALTER TABLE nameless.u MODIFY v UUID\nINSERT INTO nameless.u VALUES (2, UUID())")
    first, second = shop.delta(until), shop.delta()
    types = [[column["type"] for column in one["columns"]] for m in (first, second) for one in m.schemas.values()]
    assert types == [["int", "binary"], ["int", "uuid"]]


def test_types_go_by_the_statements_too_where_only_some_rows_have_names(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """A table that gets another name has names in the log. Rows of other tables have none."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "FULL"})
    tables = [f"CREATE TABLE nameless.{name} (id INT PRIMARY KEY, v INET6)" for name in "ub"]
    shop = begun_after(server, "FULL", tmp_path, *tables)
    shop.run("CREATE TABLE nameless.n LIKE nameless.u\nINSERT INTO nameless.n VALUES (1, '::1')")
    shop.run("RENAME TABLE nameless.u TO nameless.o, nameless.n TO nameless.u\nDROP TABLE nameless.o")
    shop.run("SET GLOBAL binlog_row_metadata = NO_LOG")
    shop.run("INSERT INTO nameless.b VALUES (1, '::2')")
    manifest = shop.delta()
    assert (manifest.nameless, manifest.left_out) == (True, ())
    staged = {table: lines[0][1:] for (table, _), lines in shop.staged(manifest).items()}
    assert staged == {"nameless.n": ["1", "::1"], "nameless.b": ["1", "::2"]}
    assert shop.again(manifest) == ()


def test_rows_stop_whose_types_neither_the_log_nor_the_server_tell(fresh_server: StartServer, tmp_path: Path) -> None:
    """A table is LIKE one that is not captured. MariaDB logs only that, and UUID as bytes."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "FULL"})
    run(server, "CREATE DATABASE other", "CREATE TABLE other.model (id INT PRIMARY KEY, v UUID)")
    shop = begun_after(server, "FULL", tmp_path, "CREATE TABLE nameless.known (id INT PRIMARY KEY)")
    told = "11111111-2222-3333-4444-555555555555"
    for name in ("kept", "altered", "renamed", "gone"):
        shop.run(f"CREATE TABLE nameless.{name} LIKE other.model\nINSERT INTO nameless.{name} VALUES (1, '{told}')")
    shop.run("ALTER TABLE nameless.altered RENAME COLUMN v TO w\nRENAME TABLE nameless.renamed TO nameless.other")
    shop.run("DROP TABLE nameless.gone")
    manifest = shop.delta()
    assert shop.staged(manifest) == {("nameless.kept", manifest.files[0].schema_id): [["I", "1", told]]}
    assert {str(one.table): one.why for one in manifest.left_out} == {
        f"nameless.{name}": f"nothing is known of other.model: CREATE TABLE nameless.{name} LIKE other.model"
        for name in ("altered", "gone", "renamed")
    }
    (tmp_path / "said").write_text("CREATE TABLE altered (id INT PRIMARY KEY, v UUID)")
    at = next(one.at for one in manifest.left_out if one.table == "nameless.altered")
    shop.command(tmp_path, "schema", "set", "nameless.altered", "--at", at, "--file", str(tmp_path / "said"))
    manifest = shop.extract(manifest.start_seqno)
    assert [rows for (name, _), rows in shop.staged(manifest).items() if name == "nameless.altered"] == [
        [["I", "1", told]]
    ]
    assert shop.again(manifest) == ()


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
def test_a_database_that_is_replaced_has_no_tables(metadata: str, fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mariadb", {"binlog_row_metadata": metadata})
    shop = begun_after(server, metadata, tmp_path, "CREATE TABLE nameless.t (id INT PRIMARY KEY, v INT)")
    shop.run("INSERT INTO nameless.t VALUES (1, 2)\nCREATE OR REPLACE DATABASE nameless")
    shop.run("CREATE TABLE IF NOT EXISTS nameless.t (v INT, id INT PRIMARY KEY)\nINSERT INTO nameless.t VALUES (3, 4)")
    manifest = shop.delta()
    events = collect_events(TableName("nameless", "t"), [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert [type(event).__name__ for event in events] == ["TableRemoved", "TableCreated"]
    staged = {
        one["columns"][0]["name"]: shop.staged(manifest)["nameless.t", key] for key, one in manifest.schemas.items()
    }
    assert {first: [line[1:] for line in lines] for first, lines in staged.items()} == {
        "id": [["1", "2"]], "v": [["3", "4"]],
    }  # fmt: skip


def test_a_column_that_exists_does_not_become_the_key(fresh_server: StartServer, tmp_path: Path) -> None:
    """MariaDB gives the key of ADD COLUMN IF NOT EXISTS to a column that exists only if the table has none."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "NO_LOG"})
    tables = ("CREATE TABLE nameless.t (id INT PRIMARY KEY, v INT)", "CREATE TABLE nameless.u (id INT, v INT NOT NULL)")
    shop = begun_after(server, "NO_LOG", tmp_path, *tables)
    for table in "tu":
        shop.run(f"ALTER TABLE nameless.{table} ADD COLUMN IF NOT EXISTS v INT PRIMARY KEY")
        shop.run(f"INSERT INTO nameless.{table} VALUES (1, 2)")
    manifest = shop.delta()
    assert {one["table"]: one["key"] for one in manifest.schemas.values()} == {"t": ["id"], "u": ["v"]}


@pytest.mark.parametrize(("kind", "metadata"), [("mysql", "MINIMAL"), ("mariadb", "NO_LOG")])
def test_a_key_follows_the_names_of_its_columns_as_on_the_server(
    kind: str, metadata: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    server = fresh_server(kind, {"binlog_row_metadata": metadata})
    statements = {
        "dropped": "DROP COLUMN a, ADD COLUMN a INT NOT NULL DEFAULT 5",
        "before": "ADD COLUMN a INT NOT NULL DEFAULT 5 FIRST, CHANGE a x INT NOT NULL",
        "behind": "CHANGE a x INT NOT NULL, ADD COLUMN a INT NOT NULL DEFAULT 5",
    }
    tables = [f"CREATE TABLE nameless.{name} (a INT, b INT, v INT, PRIMARY KEY (a, b))" for name in statements]
    shop = begun_after(server, metadata, tmp_path, *tables)
    keys = {}
    for name, statement in statements.items():
        shop.run(f"ALTER TABLE nameless.{name} {statement}")
        index = f"SHOW INDEX FROM nameless.{name} WHERE Key_name = 'PRIMARY'"
        keys[name] = [str(row[4]) for row in run(server, index)]
        shop.run(
            f"INSERT INTO nameless.{name} (a, b) VALUES (1, 2)"
            if name == "dropped"
            else f"INSERT INTO nameless.{name} (a, x, b) VALUES (1, 2, 3)"
        )
    manifest = shop.delta()
    assert {one["table"]: one["key"] for one in manifest.schemas.values()} == keys


def test_an_index_that_replaces_the_key(fresh_server: StartServer, tmp_path: Path) -> None:
    """MariaDB replaces a unique index by one that is not unique. Then rows can have the same values in its columns."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "NO_LOG"})
    table = "CREATE TABLE nameless.t (a INT NOT NULL, v INT, UNIQUE k (a))"
    shop = begun_after(server, "NO_LOG", tmp_path, table)
    shop.run("INSERT INTO nameless.t VALUES (1, 1)\nCREATE OR REPLACE INDEX k ON nameless.t (a)")
    shop.run("INSERT INTO nameless.t VALUES (1, 2)")
    manifest = shop.delta()
    assert [line[1:] for lines in shop.staged(manifest).values() for line in lines] == [["1", "1"]]
    assert [(one.table, one.why.partition(":")[0]) for one in manifest.left_out] == [
        ("nameless.t", "a unique key may be its key now")
    ]


def test_the_columns_after_a_create_or_replace_that_failed(fresh_server: StartServer, tmp_path: Path) -> None:
    """MariaDB has dropped the old table, so CREATE TABLE IF NOT EXISTS makes one."""
    server = fresh_server("mariadb", {"binlog_row_metadata": "NO_LOG"})
    shop = begun_after(server, "NO_LOG", tmp_path, "CREATE TABLE nameless.t (id INT PRIMARY KEY)")
    failing = (
        "CREATE OR REPLACE TABLE nameless.t (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) REFERENCES nowhere (x))"
    )
    with pytest.raises(LoaderError, match="incorrectly formed"):
        shop.run(failing)
    shop.run("CREATE TABLE IF NOT EXISTS nameless.t (id INT PRIMARY KEY, b INT, a INT)")
    shop.run("INSERT INTO nameless.t (id, a, b) VALUES (1, 2, 3)")
    manifest = shop.delta()
    assert [[column["name"] for column in one["columns"]] for one in manifest.schemas.values()] == [["id", "b", "a"]]
