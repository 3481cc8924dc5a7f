"""What MariaDB's log does not tell of columns: the plan has it from the server, and else it is bytes or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from loader.config.file import Config
from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import collect_events
from loader.materialise.plan.timeline import TableState, Timeline, build_timeline
from loader.model.position import Position
from loader.model.table import TableSchema
from loader.pipeline import begin, chain_of, plan_interval
from loader.settings import IntervalLimits
from loader.source import schemas
from loader.source.schemas import read_ambiguous_tables, read_schemas
from loader.staging.documents import Manifest, Plan
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Source, name_of
from tests.integration.types.kinds import Kind, times
from tests.integration.types.tables import TypedTable, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("source", ["mariadb", "new_mariadb"], indirect=True),  # only the newer one has VECTOR
]


def ambiguous(source: Source) -> list[TableSchema]:
    with connected(source.address) as connection:
        return read_ambiguous_tables(connection, lambda name: name.schema == source.schema)


def planned(source: Source, folder: Path) -> Plan:
    """The plan of the interval from the last call of `begin` on."""
    chosen = plan_interval(settings(source, folder))
    assert chosen
    chain = chain_of(settings(source, folder))
    return chain.require_plan(chosen.generation, chosen.start_seqno)


def settings(source: Source, folder: Path):  # type: ignore[no-untyped-def]
    server = {"host": source.address.host, "port": source.address.port, "user": source.address.user}
    return Config.model_validate(
        {
            "staging": {"root": f"file://{folder}"},
            "warehouse": {"path": "file:///nowhere"},
            "spark": {"jars": "none"},
            "sources": {"s": {**server, "tables": {"include": [f"{source.schema}.*"]}}},
        }
    ).source()


def staged_row(
    source: Source, folder: Path, start: Position, table: str, definitions: tuple[dict[str, Any], ...] = ()
) -> list[str | None]:
    """Return the columns of the table's only staged row. With definitions of the plan, its schema is the server's."""
    staged = source.staged(folder, start, ambiguous=definitions)
    if definitions:
        with connected(source.address) as connection:
            expected = read_schemas(connection, [name_of(source, table)])
        assert [staged.schema(f"{source.schema}.{table}")] == expected
    (line,) = staged.records(f"{source.schema}.{table}")
    return line[5:]


def test_ids_and_addresses_are_text_by_the_plan_and_else_their_bytes(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS ids, other", "CREATE TABLE ids (u UUID PRIMARY KEY, i4 INET4, i6 INET6)")
    source.run("CREATE TABLE other (id INT PRIMARY KEY, b BINARY(16))")
    begin(settings(source, tmp_path / "plans"))
    start = source.mark()
    source.run("INSERT INTO ids VALUES ('123e4567-e89b-12d3-a456-426614174000', '1.2.3.0', '2001:db8::')")
    plan = planned(source, tmp_path / "plans")
    assert [str(name) for name in plan.known()] == [f"{source.schema}.ids"]
    known = staged_row(source, tmp_path / "known", start, "ids", plan.ambiguous)
    assert known == ["123e4567-e89b-12d3-a456-426614174000", "1.2.3.0", "2001:db8::"]
    unknown = staged_row(source, tmp_path / "unknown", start, "ids")
    assert unknown == ["123e4567e89b12d3a456426614174000", "01020300", "20010db8000000000000000000000000"]


def test_a_column_that_is_added_later_changes_nothing_of_the_others(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS ids", "CREATE TABLE ids (id INT PRIMARY KEY, u UUID, b BINARY(16))")
    start = source.mark()
    source.run("INSERT INTO ids VALUES (1, '123e4567-e89b-12d3-a456-426614174000', 'b')")
    source.run("ALTER TABLE ids ADD n INT FIRST, MODIFY b UUID, DROP u", "ALTER TABLE ids ADD u UUID")
    source.run("INSERT INTO ids VALUES (7, 2, NULL, '00000000-0000-0000-0000-000000000001')")
    known = tuple(schema.as_dict() for schema in ambiguous(source))
    lines = source.staged(tmp_path, start, ambiguous=known).records(f"{source.schema}.ids")
    assert lines[0][5:7] == ["1", "123e4567-e89b-12d3-a456-426614174000"]
    assert lines[1][5:] == ["7", "2", None, "00000000-0000-0000-0000-000000000001"]


def test_a_table_that_is_altered_in_a_later_of_several_planned_intervals_is_never_misread(
    source: Source, tmp_path: Path
) -> None:
    source.run("DROP TABLE IF EXISTS ids", "CREATE TABLE ids (id INT PRIMARY KEY, b BINARY(16))")
    name = name_of(source, "ids")
    with connected(source.address) as connection:
        (recorded,) = read_schemas(connection, [name])
    begin(settings(source, tmp_path / "plans"))
    source.run("INSERT INTO ids VALUES (1, 'sixteen bytes...')", "ALTER TABLE ids MODIFY b UUID")
    source.run("INSERT INTO ids VALUES (2, '123e4567-e89b-12d3-a456-426614174000')")
    several = settings(source, tmp_path / "plans").model_copy(update={"interval": IntervalLimits(transactions=1)})
    plan_interval(several)
    chain = chain_of(several)
    plans = chain.plans(chain.require_generation())
    assert [len(plan.known()) for plan in plans] == [1, 1, 1]
    manifests = [
        source.staged(tmp_path / str(plan.start_seqno), *_ends(plan), ambiguous=plan.ambiguous).manifest
        for plan in plans
    ]
    before = plans[0].start_seqno
    # What was BINARY in the first interval is staged as the UUID that it became later; and the merge takes neither.
    for some in (manifests[:1], manifests):
        with pytest.raises(UnsupportedError):
            _timeline(TableState(recorded, before), some)
    # Loaded again behind the alteration it goes on.
    with connected(source.address) as connection:
        (altered,) = read_schemas(connection, [name])
    timeline = _timeline(TableState(altered, manifests[1].stop_seqno), manifests[2:])
    assert [sum(file.rows for file in epoch.files) for epoch in timeline.epochs] == [0, 1]


def _timeline(standing: TableState, manifests: Sequence[Manifest]) -> Timeline:
    if standing.schema is None:
        raise ValueError("the table is known")
    name, target = standing.schema.name, manifests[-1].stop_seqno
    events = collect_events(name, manifests, standing.applied, target)
    return build_timeline(name, standing, target, manifests, events, lambda *_: None, lambda *_: False)


def _ends(plan: Plan) -> tuple[Position, Position]:
    return plan.interval.start, plan.interval.stop


def test_vectors(source: Source, tmp_path: Path) -> None:
    if source.rows("SELECT VERSION() + 0 < 11.7") == [(1,)]:
        pytest.skip("has no VECTOR")
    source.run("DROP TABLE IF EXISTS vectors", "CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3), w VARCHAR(9))")
    start = source.mark()
    source.run("INSERT INTO vectors VALUES (1, VEC_FromText('[1,2.5,-3]'), 'x')")
    known = tuple(schema.as_dict() for schema in ambiguous(source))
    assert staged_row(source, tmp_path / "known", start, "vectors", known) == ["1", "[1,2.5,-3]", "x"]
    assert staged_row(source, tmp_path / "unknown", start, "vectors") == ["1", "0000803f00002040000040c0", "x"]


class OldTable(TypedTable):
    """A table whose times are in the format of MariaDB 5.3."""

    def __init__(self, source: Source, name: str, kinds: list[Kind]) -> None:
        source.run("SET GLOBAL mysql56_temporal_format = OFF")
        try:
            super().__init__(source, name, kinds)
        finally:
            source.run("SET GLOBAL mysql56_temporal_format = ON")


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_times_of_mariadb_5_3_are_what_the_server_shows(source: Source, image: str, metadata: str) -> None:
    source.run(f"SET SESSION binlog_row_image = {image}", f"SET GLOBAL binlog_row_metadata = {metadata}")
    table = OldTable(source, "old", times())
    assert run(table) > 300
    (declared,) = source.rows(
        "SELECT SUM(COLUMN_TYPE LIKE '%mariadb-5.3%') FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{source.schema}' AND TABLE_NAME = 'old'"
    )
    assert declared[0] == 21
    source.run("SET SESSION binlog_row_image = FULL", "SET GLOBAL binlog_row_metadata = FULL")


def test_times_of_mariadb_5_3_go_by_the_plan(source: Source, tmp_path: Path) -> None:
    source.run("DROP TABLE IF EXISTS old")
    OldTable(source, "old", [Kind("TIMESTAMP(3) NULL", ("'2024-02-29 12:34:56.789'",)), Kind("TIME", ("'-01:02:03'",))])
    begin(settings(source, tmp_path / "plans"))
    start = source.mark()
    source.run("INSERT INTO old VALUES (1, '2024-02-29 12:34:56.789', '-01:02:03')")
    (found,) = source.staged(tmp_path / "unknown", start).manifest.left_out
    assert "TIMESTAMP column in the old format cannot be read" in found.what
    assert found.why.startswith("column n0")
    assert "ALTER TABLE ... FORCE" in found.hint
    plan = planned(source, tmp_path / "plans")
    (line,) = source.staged(tmp_path / "known", start, ambiguous=plan.ambiguous).records(f"{source.schema}.old")
    assert line[5:] == ["1", "2024-02-29 12:34:56.789", "-01:02:03"]
    source.run("ALTER TABLE old FORCE")  # as the hint says
    start = source.mark()
    source.run("INSERT INTO old (id) VALUES (2)")
    assert len(source.staged(tmp_path / "forced", start).records(f"{source.schema}.old")) == 1


def test_a_table_that_is_dropped_between_two_questions_is_left_out(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Online schema changes drop their copies at any time."""
    source.run("DROP TABLE IF EXISTS copy, kept", "CREATE TABLE copy (u UUID)", "CREATE TABLE kept (u UUID)")
    ask = schemas.read_columns

    def dropped_before(*arguments: Any) -> Any:
        source.run("DROP TABLE IF EXISTS copy")
        return ask(*arguments)

    monkeypatch.setattr(schemas, "read_columns", dropped_before)
    assert {"copy", "kept"} & {schema.name.table for schema in ambiguous(source)} == {"kept"}


def test_tables_whose_names_differ_only_in_case_are_both_told(source: Source) -> None:
    """Without the plan's definition, a table that the log creates has the bytes of its UUID and no error."""
    source.run("CREATE TABLE Session (u UUID)", "CREATE TABLE session (u INET6)")
    found = {schema.name.table: schema.columns[0].type for schema in ambiguous(source)}
    source.run("DROP TABLE Session, session")
    assert {name: found.get(name) for name in ("Session", "session")} == {"Session": "uuid", "session": "inet6"}
