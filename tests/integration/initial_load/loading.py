"""Plans of loads, and their chunks read without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loader.initial_load.chunks import chunk_conditions, chunk_query
from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import plan_load
from loader.initial_load.result_set.reader import ResultReader, prepare_session
from loader.initial_load.spec import InitialLoadSpec
from loader.source.schemas import read_key
from loader.source.server_facts import read_identity
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Mark, TableFilter
from loader.store.local import LocalStore
from tests.integration.initial_load.source_server import SourceServer


def spec_of(source: SourceServer, root: Path, **changes: Any) -> InitialLoadSpec:
    """The spec of a load of all tables of the test's schema into a staging root."""
    with source.connected() as connection:
        identity = read_identity(connection)
    mark = Mark(log="", last=0, event="")
    begun = Generation(source="shop", name="0001", identity=identity, start="binlog.000001:4", mark=mark)
    PlanChain(LocalStore(f"file://{root}"), "shop").begin(begun)
    given = {"tables": TableFilter(include=(f"{source.schema}.*",)), "chunk_rows": 10} | changes
    return InitialLoadSpec(
        source="shop",
        generation="0001",
        identity=identity,
        shift=0,
        server=source.address,
        staging_root=f"file://{root}",
        **given,
    )


def plan_of(source: SourceServer, root: Path, table: str, rows: int) -> LoadPlan:
    with source.connected() as connection:
        key = read_key(connection, source.name(table))
        assert key is not None
        return plan_load(connection, spec_of(source, root, chunk_rows=rows), source.name(table), key)


def read_chunks(source: SourceServer, plan: LoadPlan) -> list[list[bytes]]:
    """The lines of each chunk, from their first column on."""
    with source.connected() as connection:
        prepare_session(connection)
        reader = ResultReader(connection, plan.definition, b"")
        return [
            [
                line
                for condition in chunk_conditions(connection, plan, number)
                for line in _read(reader, chunk_query(plan, condition))
            ]
            for number in range(plan.chunks)
        ]


def staged_keys(root: Path, table: str) -> list[int]:
    """The first column of all rows that the manifest of the table's only load names, sorted."""
    (file,) = root.rglob(f"load/*/{table}/*/manifest.json")
    manifest = Manifest.read(file.read_bytes(), str(file.relative_to(root)))
    lines = [line for part in manifest.files for line in (root / part.key).read_bytes().splitlines()]
    return sorted(int(line.split(b",")[5]) for line in lines)


def _read(reader: ResultReader, statement: str) -> list[bytes]:
    lines: list[bytes] = []
    reader.read(statement, lambda block: lines.extend(bytes(block).splitlines()))
    return lines
