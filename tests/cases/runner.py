"""All cases at once on one server: one initial load, then an interval for the first, second, ... of every case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymysql
from pyspark.sql import SparkSession

from infra.servers import Server
from loader import pipeline
from loader.extract.extraction import extract, reextract
from loader.extract.spec import TransportSettings
from loader.initial_load.run import stage_tables
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.load_run import load
from loader.materialise.merge.source_run import materialise
from loader.materialise.rules import rule_of
from loader.materialise.spec import MaterialiseResult
from loader.model.table import TableName, TableSchema
from loader.settings import SourceSettings
from loader.spark.workers import workers_of
from loader.staging.documents import Manifest, StagedFile, TableFilter
from loader.store.registry import open_store
from tests.cases.case import Case
from tests.cases.showing import Numbers, place, refusal
from tests.cases.tables import Table
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of

_AT_ONCE = 4
_PART_BYTES = 512  # so that even a small table's records lie in several files

_HEAD = "op, transaction, row, committed at, absent"


class Outcome:
    """What a case came to, and where the warehouse is not as the source."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.differences: list[str] = []
        self.numbers = Numbers()

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class Runner:
    """Runs cases on a server, with staging and warehouse in a folder; each stage twice."""

    def __init__(self, spark: SparkSession, server: Server, folder: Path, cases: Sequence[Case]) -> None:
        self.spark, self.server = spark, server
        self.cases = {case.name: case for case in cases}
        self.outcomes = {case.name: Outcome() for case in cases}
        self.settings = _settings(server, folder, cases)
        self.warehouse = Warehouse(spark, self.settings.catalog)
        self.store = open_store(self.settings.staging_root)
        self.files: list[StagedFile] = []

    def run(self) -> None:
        for name in self.cases:
            self._execute("", f"DROP DATABASE IF EXISTS `{name}`", f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        self._part(0, self._load)
        for number in range(1, max(len(case.parts) for case in self.cases.values())):
            self._part(number, self._delta)
        self._execute("", *(f"DROP DATABASE `{name}`" for name in self.cases))

    def _part(self, number: int, stages: Callable[[], tuple[list[Manifest], MaterialiseResult]]) -> None:
        mine = [case for case in self.cases.values() if len(case.parts) > number]
        for case in mine:
            self._execute(case.name, *case.parts[number])
        staged, result = stages()
        self.files += [file for manifest in staged for file in manifest.files]
        self._show_staged(number, staged)
        if number:
            self._show_tables(number, [case.name for case in mine], result)

    def _execute(self, database: str, *statements: str) -> None:
        """As a client does it: in the server's own SQL mode."""
        address = address_of(self.server)
        arguments: dict[str, Any] = {"host": address.host, "port": address.port, "user": address.user}
        connection = pymysql.connect(**arguments, charset="utf8mb4", autocommit=True)
        with connection, connection.cursor() as cursor:
            for statement in (f"USE `{database}`", *statements) if database else statements:
                cursor.execute(statement)

    def _load(self) -> tuple[list[Manifest], MaterialiseResult]:
        job = pipeline.read_tables_job(self.settings)
        staged = stage_tables(workers_of(self.spark), job.spec)
        assert {table.status for table in staged.tables} <= {"staged"}, staged
        assert {table.status for table in stage_tables(workers_of(self.spark), job.spec).tables} <= {"already"}
        spec = pipeline.load_tables_job(self.settings, staged.manifests).spec
        result = load(self.spark, spec)
        assert "applied" not in {table.status for table in load(self.spark, spec).tables}
        return [Manifest.read(self.store.get(key), key) for key in staged.manifests], result

    def _delta(self) -> tuple[list[Manifest], MaterialiseResult]:
        chosen = pipeline.plan_interval(self.settings)
        assert chosen is not None
        assert chosen.new
        spec = pipeline.extract_job(self.settings, chosen.start_seqno).spec
        assert extract(workers_of(self.spark), spec).status == "staged"
        assert extract(workers_of(self.spark), spec).status == "already"
        assert reextract(workers_of(self.spark), spec).differences == ()
        merge = pipeline.materialise_job(self.settings).spec
        result = materialise(self.spark, merge)
        assert result.published, result
        second = materialise(self.spark, merge)
        assert {one.table: one.snapshot for one in second.tables if one.status == "applied"} == {}
        manifest = pipeline.chain_of(self.settings).manifest(chosen.generation, chosen.start_seqno)
        assert manifest is not None
        return [manifest], result

    def _show_staged(self, number: int, staged: Sequence[Manifest]) -> None:
        """Of each case, the records of each table in the order of the log, under the columns that they have."""
        found: dict[str, dict[TableSchema, list[bytes]]] = {name: {} for name in self.cases}
        for manifest in staged:
            for file in manifest.files:
                schema = TableSchema.from_dict(manifest.schemas[file.schema_id])
                lines = self.store.get(file.key).splitlines()
                found[file.schema_name].setdefault(schema, []).extend(lines)
        where = f"interval {number}" if number else "the initial load"
        for name, mine in found.items():
            outcome = self.outcomes[name]
            every = [line for lines in mine.values() for line in lines]
            (outcome.numbers.note if number else outcome.numbers.note_load)(every)
            for schema, lines in sorted(mine.items(), key=lambda one: (one[0].name.table, min(map(place, one[1])))):
                columns = (_HEAD, *(f"{column.name} {column}" for column in schema.columns))
                outcome.lines += [f"# staged by {where}: {schema.name.table}", ", ".join(columns)]
                outcome.lines += [*map(outcome.numbers.line, sorted(lines, key=place)), ""]

    def _show_tables(self, number: int, names: Sequence[str], result: MaterialiseResult) -> None:
        errors = {TableName.parse(one.table): one.error for one in result.tables}
        known = sorted((table for table in errors if table.schema in names), key=str)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shown = dict(zip(known, pool.map(self._read, known), strict=True))
        for table in known:
            outcome, found = self.outcomes[table.schema], shown[table]
            if not found and not errors[table]:
                continue  # a table that came and went: its result depends on which of the tables was merged first
            outcome.lines.append(f"# table after interval {number}: {table.table}")
            outcome.lines += found.lines(outcome.numbers) if found else ["there is none"]
            if error := errors[table]:
                outcome.lines += ["it stops:", refusal(error)]
            elif found:
                outcome.differences += found.differences()
            outcome.lines.append("")

    def _read(self, table: TableName) -> Table | None:
        if self.warehouse.metadata(table) is None:
            return None
        return Table.read(self.warehouse, self.settings.server, table, rule_of(self.settings.rules, table))

    def files_of(self, case: str) -> int:
        """In how many files the records of a case lie."""
        return sum(file.schema_name == case for file in self.files)


def _settings(server: Server, folder: Path, cases: Sequence[Case]) -> SourceSettings:
    address = address_of(server)
    return settings_of(address, "", folder).model_copy(
        update={
            "name": "cases",
            "transport": TransportSettings(kind="file", server=address, path=str(server.log_dir)),
            "tables": TableFilter(include=tuple(f"{case.name}.*" for case in cases)),
            "rules": tuple(rule for case in cases for rule in case.rules),
            "part_bytes": _PART_BYTES,
        }
    )
