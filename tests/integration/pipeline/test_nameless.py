"""Logs without names of columns give what logs with names give, whatever alters the tables meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from infra.servers import Server
from loader import pipeline
from loader.cli.app import app
from loader.errors import DataError, RetryableError, UsageError
from loader.extract.run import again, extract
from loader.extract.spec import TransportSettings
from loader.extract.workers import Threads
from loader.job import carried_error
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.pipeline import chain_of, extract_job, known, snapshot_position
from loader.settings import SourceSettings
from loader.source.inspect import log_end
from loader.staging.documents import Manifest
from loader.staging.schemas import SchemaStore
from loader.store.opening import open_store
from loader.transport.connection import connected
from tests.integration.pipeline.conftest import settings_of
from tests.replicas import address_of, run
from tests.unit.binlog.reading import fields, records

pytestmark = pytest.mark.integration

Staged = dict[tuple[str, str], list[list[str | None]]]

BEFORE = """
CREATE DATABASE nameless CHARACTER SET utf8mb4
CREATE TABLE nameless.a (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), e ENUM('x','y'), t TEXT CHARACTER SET latin1, b TINYBLOB)
CREATE TABLE nameless.b (k CHAR(3) PRIMARY KEY, v BIGINT UNSIGNED)
CREATE TABLE nameless.swapped (id INT PRIMARY KEY, p INT, q INT)
CREATE TABLE nameless.keyless (x INT, y SET('p','q') CHARACTER SET latin1)
CREATE TABLE nameless.quiet (id INT PRIMARY KEY, u INT UNSIGNED NOT NULL, UNIQUE (u))
"""
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


@dataclass
class Shop:
    """A server that logs with some metadata, and a source on it."""

    server: Server
    settings: SourceSettings
    metadata: str

    def run(self, statements: str) -> None:
        run(self.server, "SET NAMES utf8mb4", *statements.replace("{metadata}", self.metadata).strip().splitlines())

    def delta(self) -> Manifest:
        """Plan the next interval and extract it, in many ranges."""
        chosen = snapshot_position(self.settings)
        assert chosen is not None
        try:
            extract(Threads(2), cast("Any", extract_job(self.settings, chosen.start_seqno).spec))
        except RuntimeError as error:
            raise (carried_error(error) or error) from error
        found = chain_of(self.settings).manifest(chosen.generation, chosen.start_seqno)
        assert found is not None
        return found

    def command(self, folder: Path, *arguments: str) -> str:
        """What the command prints."""
        config = folder / "loader.toml"
        config.write_text(
            f'[staging]\nroot = "{self.settings.staging_root}"\n[warehouse]\npath = "{folder}/warehouse"\n'
            f'[spark]\njars = "{folder}"\n[sources.shop]\nhost = "127.0.0.1"\nport = {self.server.port}\nuser = "root"\n'
            'password = ""\ntables.include = ["nameless.*"]\n'
        )
        done = CliRunner().invoke(app, ["--config", str(config), *(word.removesuffix(",") for word in arguments)])
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    def again(self, manifest: Manifest) -> tuple[object, ...]:
        spec = cast("Any", extract_job(self.settings, manifest.start_seqno).spec)
        return again(Threads(2), spec).differences

    def staged(self, manifest: Manifest) -> Staged:
        """Operations and values by table and schema, without what tells the place in the log."""
        store, found = open_store(self.settings.staging_root), Staged()
        for file in manifest.files:
            lines = found.setdefault((str(file.name), file.schema_id), [])
            lines += [[line[0], *line[5:]] for line in map(fields, records(store.get(file.key)))]
        return found


@pytest.fixture(params=[("mysql", "MINIMAL"), ("mariadb", "NO_LOG")], ids="-".join)
def logged(request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    kind, metadata = request.param
    server = request.getfixturevalue(f"{kind}_server")
    try:
        yield server, metadata
    finally:
        run(server, "SET GLOBAL binlog_row_metadata = FULL", "DROP DATABASE IF EXISTS nameless")


def begun(server: Server, metadata: str, folder: Path) -> Shop:
    settings = settings_of(address_of(server), "nameless.*", folder)
    files = TransportSettings(kind="file", path=str(server.log_dir), server=address_of(server))
    settings = settings.model_copy(update={"transport": files, "part_bytes": 4096})
    shop = Shop(server, settings, metadata)
    run(server, f"SET GLOBAL binlog_row_metadata = {metadata}", "DROP DATABASE IF EXISTS nameless")
    shop.run(BEFORE)
    pipeline.begin(settings)
    return shop


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


def test_a_table_that_no_statement_tells_is_said_by_hand(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    table = TableName("nameless", "quiet")
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY\nINSERT INTO nameless.quiet VALUES (1,2)")
    for _ in range(2):
        with pytest.raises(DataError, match="columns of a table are not known") as caught:
            shop.delta()
        assert caught.value.why == "a unique key may be its key now: ALTER TABLE nameless.quiet DROP PRIMARY KEY"
    command = caught.value.hint.split()
    assert command[:4] == ["loader", "schema", "set", "nameless.quiet"]
    at = command[command.index("--at") + 1]
    with pytest.raises(UsageError, match="does not tell the schema"):
        pipeline.set_table_schema(shop.settings, table, at, run(server, "SHOW CREATE TABLE nameless.quiet")[0][1])
    assert "unsigned" in shop.command(tmp_path, "schema", "show", str(table))
    shown = pipeline.table_schema(shop.settings, table)
    assert json.loads(shop.command(tmp_path, "--json", "schema", "show", str(table))) == shown.model_dump()
    assert shown.definition is not None
    told = json.dumps({**shown.model_dump(), "definition": {**shown.definition, "key": ["u"]}, "primary": False})
    (tmp_path / "FILE").write_text(told)
    done = shop.command(tmp_path, *(str(tmp_path / word) if word == "FILE," else word for word in command[1:8]))
    given = pipeline.set_table_schema(shop.settings, table, at, told)
    assert done == f"{table} is so from {at} on\n"
    assert given.seqno == int(at.rpartition(":")[2]) + int(at.rpartition(":")[0].rpartition(".")[2]) * 10**12
    with pytest.raises(UsageError, match="another schema was given"):
        pipeline.set_table_schema(shop.settings, table, at, told.replace('"u"', '"v"'))
    manifest = shop.delta()
    assert shop.staged(manifest) == {("nameless.quiet", next(iter(manifest.schemas))): [["I", "1", "2"]]}
    assert TableSchema.from_dict(next(iter(manifest.schemas.values()))).key == ("u",)
    assert (len(manifest.given), shop.again(manifest)) == (1, ())
    assert pipeline.table_schema(shop.settings, table, at).definition == given.table.definition
    with pytest.raises(UsageError, match="staged already"):
        pipeline.set_table_schema(shop.settings, table, at, told)


def test_a_schema_that_is_not_that_of_the_log_is_refused(logged: tuple[Server, str], tmp_path: Path) -> None:
    """Altered by a session that does not log it."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    run(server, "SET SESSION sql_log_bin = 0", "ALTER TABLE nameless.b MODIFY v DECIMAL(20,1)")
    shop.run("INSERT INTO nameless.b VALUES ('x',1)")
    with pytest.raises(DataError, match="not that of the log") as caught:
        shop.delta()
    assert caught.value.where["table"] == "nameless.b"
    assert caught.value.where["column"] == "v"
    assert caught.value.why == "the log has decimal(20,1), the schema bigint unsigned"
    assert "loader schema set nameless.b --at " in caught.value.hint


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

    monkeypatch.setattr(known, "log_end", altered)
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

    monkeypatch.setattr(known, "log_end", altering)
    with pytest.raises(RetryableError, match="altered again and again"):
        pipeline.begin(shop.settings.model_copy(update={"staging_root": f"file://{tmp_path}/never"}))


def log_end_of(server: Server) -> Position:
    with connected(address_of(server)) as connection:
        return log_end(connection)
