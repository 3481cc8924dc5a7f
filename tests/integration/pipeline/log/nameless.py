"""A source on a server that logs no names of columns, staged without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from typer.testing import CliRunner

from infra.servers import Server
from loader import pipeline
from loader.cli.app import app
from loader.extract.extraction import extract, reextract, restore
from loader.extract.spec import TransportSettings
from loader.model.position import Position
from loader.pipeline import chain_of, extract_job, plan_interval
from loader.settings import SourceSettings
from loader.source.server_facts import log_end
from loader.spark.workers import Threads
from loader.staging.documents import Manifest
from loader.store.registry import open_store
from loader.transport.server.connection import connected
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of, run
from tests.unit.binlog.reading import fields, records

Staged = dict[tuple[str, str], list[list[str | None]]]

BEFORE = """
CREATE DATABASE nameless CHARACTER SET utf8mb4
CREATE TABLE nameless.a (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), e ENUM('x','y'), t TEXT CHARACTER SET latin1, b TINYBLOB)
CREATE TABLE nameless.b (k CHAR(3) PRIMARY KEY, v BIGINT UNSIGNED)
CREATE TABLE nameless.swapped (id INT PRIMARY KEY, p INT, q INT)
CREATE TABLE nameless.keyless (x INT, y SET('p','q') CHARACTER SET latin1)
CREATE TABLE nameless.quiet (id INT PRIMARY KEY, u INT UNSIGNED NOT NULL, UNIQUE (u))
"""


@dataclass
class Shop:
    """A server that logs with some metadata, and a source on it."""

    server: Server
    settings: SourceSettings
    metadata: str

    def run(self, statements: str) -> None:
        run(self.server, "SET NAMES utf8mb4", *statements.replace("{metadata}", self.metadata).strip().splitlines())

    def delta(self, until: Position | None = None) -> Manifest:
        """Plan the next interval, up to a position at most, and extract it, in many ranges."""
        chosen = plan_interval(self.settings, until=until)
        assert chosen is not None
        return self.extract(chosen.start_seqno)

    def extract(self, start: int) -> Manifest:
        """Extract an interval, or what was left out of it."""
        extract(Threads(2), cast("Any", extract_job(self.settings, start).spec))
        return self.manifest(start)

    def manifest(self, start: int) -> Manifest:
        """The manifest of an interval with what was filled."""
        chain = chain_of(self.settings)
        found = chain.manifest(chain.generation_of_interval(start).name, start)
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
        return reextract(Threads(2), spec).differences

    def restore(self, manifest: Manifest) -> int:
        """How many files were put back."""
        spec = cast("Any", extract_job(self.settings, manifest.start_seqno).spec)
        return restore(Threads(2), spec).files

    def staged(self, manifest: Manifest) -> Staged:
        """Operations and values by table and schema, without what tells the place in the log."""
        store, found = open_store(self.settings.staging_root), Staged()
        for file in manifest.files:
            lines = found.setdefault((str(file.name), file.schema_id), [])
            lines += [[line[0], *line[5:]] for line in map(fields, records(store.get(file.key)))]
        return found


def begun(server: Server, metadata: str, folder: Path) -> Shop:
    settings = settings_of(address_of(server), "nameless.*", folder)
    files = TransportSettings(kind="file", path=str(server.log_dir), server=address_of(server))
    settings = settings.model_copy(update={"transport": files, "part_bytes": 4096})
    shop = Shop(server, settings, metadata)
    run(server, f"SET GLOBAL binlog_row_metadata = {metadata}", "DROP DATABASE IF EXISTS nameless")
    shop.run(BEFORE)
    pipeline.begin(settings)
    return shop


def begun_after(server: Server, metadata: str, folder: Path, *statements: str) -> Shop:
    """Return a source on a fresh server, which begins after the statements that make its tables."""
    run(server, "CREATE DATABASE nameless", *statements)
    shop = Shop(server, settings_of(address_of(server), "nameless.*", folder), metadata)
    pipeline.begin(shop.settings)
    return shop


def log_end_of(server: Server) -> Position:
    with connected(address_of(server)) as connection:
        return log_end(connection)
