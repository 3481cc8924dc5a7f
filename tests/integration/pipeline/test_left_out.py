"""A table whose columns nothing tells is left out alone, until somebody says them, and then filled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import DataError, UnsupportedError, UsageError
from loader.extract import extraction
from loader.extract.accounting.accounts import LEFT_OUT
from loader.model.table import TableName, TableSchema
from loader.pipeline import chain_of
from loader.staging.documents import Manifest
from loader.staging.schemas import GivenSchema, SchemaStore
from loader.store.registry import open_store
from tests.integration.pipeline.log.nameless import Shop, begun, log_end_of
from tests.support.replicas import run

pytestmark = pytest.mark.integration

QUIET = TableName("nameless", "quiet")
DOUBTFUL = "a unique key may be its key now: ALTER TABLE nameless.quiet DROP PRIMARY KEY"
UNKNOWN = "the columns of a table are not known at a position of the log"


def told(shop: Shop, at: str = "") -> str:
    """The table `quiet` as it is known, with its unique key as the key, as JSON."""
    shown = pipeline.table_schema(shop.settings, QUIET, at)
    assert shown.definition is not None
    definition = {**shown.definition, "key": ["u"]}
    return json.dumps({**shown.model_dump(), "definition": definition, "primary": False, "sure": True, "why": ""})


def records(shop: Shop, manifest: Manifest, table: str) -> list[list[str | None]]:
    return [line for (name, _), lines in shop.staged(manifest).items() if name == table for line in lines]


def left_out(manifest: Manifest) -> list[tuple[str, str, str]]:
    return [(one.table, one.at, one.why) for one in manifest.left_out]


def test_a_table_that_no_statement_tells_is_left_out_alone(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("INSERT INTO nameless.quiet VALUES (1,1)\nALTER TABLE nameless.quiet DROP PRIMARY KEY")
    altered = log_end_of(server)
    shop.run("INSERT INTO nameless.b VALUES ('x',1)")
    before = log_end_of(server)
    shop.run("INSERT INTO nameless.quiet VALUES (2,2),(3,3)\nUPDATE nameless.quiet SET id = 4 WHERE u = 2")
    manifest = shop.delta()
    (one,) = manifest.left_out
    assert (one.table, one.at, one.what, one.why) == ("nameless.quiet", str(altered), UNKNOWN, DOUBTFUL)
    assert before.seqno() < int(one.position.rpartition(":")[2]) + before.lognum * 10**12 < one.seqno
    assert records(shop, manifest, "nameless.quiet") == [["I", "1", "1"]]
    assert records(shop, manifest, "nameless.b") == [["I", "x", "1"]]
    assert manifest.balance is not None
    assert (manifest.balance.skipped[LEFT_OUT], manifest.balance.row_events_staged) == (2, 2)
    assert shop.again(manifest) == ()
    assert shop.extract(manifest.start_seqno) == manifest
    shop.run("INSERT INTO nameless.quiet VALUES (5,5)\nINSERT INTO nameless.b VALUES ('y',1)")
    later = shop.delta()
    assert left_out(later) == [("nameless.quiet", manifest.stop, DOUBTFUL)]
    assert set(shop.staged(later)) == {("nameless.b", schema) for schema in later.schemas}
    assert [one.left_out for one in pipeline.intervals(shop.settings)] == [("nameless.quiet",)] * 2
    assert [one.behind for one in pipeline.intervals(shop.settings)] == [("nameless.b", "nameless.quiet")] * 2
    shown = shop.command(tmp_path, "intervals", str(later.start_seqno))
    assert f"nameless.quiet is incomplete from {later.left_out[0].position} on: {UNKNOWN}: {DOUBTFUL}" in shown
    listed = json.loads(shop.command(tmp_path, "--json", "intervals"))
    assert [one["left_out"] for one in listed] == [["nameless.quiet"]] * 2


def test_what_was_left_out_is_filled_once_it_is_said(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("INSERT INTO nameless.quiet VALUES (1,1)\nALTER TABLE nameless.quiet DROP PRIMARY KEY")
    shop.run("INSERT INTO nameless.quiet VALUES (2,2)\nINSERT INTO nameless.b VALUES ('x',1)")
    first = shop.delta()
    shop.run(
        "ALTER TABLE nameless.quiet ADD v VARCHAR(9) CHARACTER SET utf8mb4\nINSERT INTO nameless.quiet VALUES (3,3,'ü')"
    )
    second = shop.delta()
    shop.run("INSERT INTO nameless.quiet VALUES (4,4,'z')")
    third = shop.delta()
    assert all(one.left_out for one in (first, second, third))
    at = first.left_out[0].at
    with pytest.raises(UsageError, match="already staged"):
        pipeline.set_table_schema(shop.settings, TableName("nameless", "b"), at, told(shop))
    text = run(server, "SHOW CREATE TABLE nameless.quiet")[0][1]
    with pytest.raises(UsageError, match="does not define the table"):
        pipeline.set_table_schema(shop.settings, QUIET, at, text)
    shown = json.loads(shop.command(tmp_path, "--json", "schema", "show", str(QUIET), "--at", at))
    assert (shown["sure"], shown["why"]) == (False, DOUBTFUL)
    (tmp_path / "said").write_text(told(shop, at))
    said = shop.command(tmp_path, "schema", "set", str(QUIET), "--at", at, "--file", str(tmp_path / "said"))
    assert said == f"the columns of {QUIET} are set from {at} on\n"
    for _ in range(2):
        filled = shop.extract(first.start_seqno)
        assert records(shop, filled, "nameless.quiet") == [["I", "1", "1"], ["I", "2", "2"]]
        assert (filled.left_out, records(shop, filled, "nameless.b")) == ((), [["I", "x", "1"]])
        assert chain_of(shop.settings).extracted_manifest(first.generation, first.start_seqno) == first
        assert shop.manifest(second.start_seqno).left_out == shop.manifest(third.start_seqno).left_out == ()
        assert records(shop, shop.manifest(second.start_seqno), "nameless.quiet") == [["I", "3", "3", "ü"]]
        assert records(shop, shop.manifest(third.start_seqno), "nameless.quiet") == [["I", "4", "4", "z"]]
    assert [shop.again(one) for one in (first, second, third)] == [(), (), ()]
    shop.run("INSERT INTO nameless.quiet VALUES (5,5,'next')")
    fourth = shop.delta()
    assert (fourth.left_out, records(shop, fourth, "nameless.quiet")) == ((), [["I", "5", "5", "next"]])
    assert shop.again(fourth) == ()
    with pytest.raises(UsageError, match="already staged"):
        pipeline.set_table_schema(shop.settings, QUIET, at, told(shop))
    files = [file for file in filled.files if file.name == QUIET]
    store = open_store(shop.settings.staging_root)
    assert pipeline.verify_interval(shop.settings, first.start_seqno) == []
    kept = {file.key: store.get(file.key) for file in files}
    for key in kept:
        store.delete(key)
    assert [one.file for one in pipeline.verify_interval(shop.settings, first.start_seqno)] == list(kept)
    assert shop.restore(first) == len(kept)
    assert {key: store.get(key) for key in kept} == kept
    assert pipeline.verify_interval(shop.settings, first.start_seqno) == []


def test_what_is_said_and_does_not_tell_all_fills_nothing(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY\nINSERT INTO nameless.quiet VALUES (2,2)")
    shop.run("ALTER TABLE nameless.quiet DROP INDEX u, ADD UNIQUE (u), ADD UNIQUE (id)")
    altered = log_end_of(server)
    shop.run("INSERT INTO nameless.quiet VALUES (3,3)")
    manifest = shop.delta()
    pipeline.set_table_schema(shop.settings, QUIET, manifest.left_out[0].at, told(shop))
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="do not cover all rows of the table") as caught:
            shop.extract(manifest.start_seqno)
        assert caught.value.where["table"] == "nameless.quiet"
        assert f"loader schema set nameless.quiet --at {altered} --file FILE" in caught.value.hint
        assert shop.manifest(manifest.start_seqno) == manifest
    pipeline.set_table_schema(shop.settings, QUIET, str(altered), told(shop))
    filled = shop.extract(manifest.start_seqno)
    assert records(shop, filled, "nameless.quiet") == [["I", "2", "2"], ["I", "3", "3"]]


def test_what_is_said_before_it_is_read_leaves_nothing_out(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY")
    at = str(log_end_of(server))
    shop.run("INSERT INTO nameless.quiet VALUES (1,2)")
    text = told(shop)
    given = pipeline.set_table_schema(shop.settings, QUIET, at, text)
    assert given.seqno == int(at.rpartition(":")[2]) + int(at.rpartition(":")[0].rpartition(".")[2]) * 10**12
    with pytest.raises(UsageError, match="another definition was given"):
        pipeline.set_table_schema(shop.settings, QUIET, at, text.replace('"u"', '"v"'))
    manifest = shop.delta()
    assert manifest.left_out == ()
    assert shop.staged(manifest) == {("nameless.quiet", next(iter(manifest.schemas))): [["I", "1", "2"]]}
    assert TableSchema.from_dict(next(iter(manifest.schemas.values()))).key == ("u",)
    assert (len(manifest.given), shop.again(manifest)) == (1, ())
    assert pipeline.table_schema(shop.settings, QUIET, at).definition == given.table.definition
    with pytest.raises(UsageError, match="already staged"):
        pipeline.set_table_schema(shop.settings, QUIET, at, text)


def test_a_schema_that_is_not_that_of_the_log_leaves_its_table_out(logged: tuple[Server, str], tmp_path: Path) -> None:
    """Altered by a session that does not log it."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("INSERT INTO nameless.b VALUES ('w',0)")
    run(server, "SET SESSION sql_log_bin = 0", "ALTER TABLE nameless.b MODIFY v DECIMAL(20,1)")
    shop.run("INSERT INTO nameless.b VALUES ('x',1)\nINSERT INTO nameless.quiet VALUES (1,1)")
    manifest = shop.delta()
    ((table, at, why),) = left_out(manifest)
    assert (table, why) == ("nameless.b", "column v: the log has decimal(20,1), the schema bigint unsigned")
    assert manifest.left_out[0].what == "the schema given for a table does not match the log"
    assert records(shop, manifest, "nameless.b") == [["I", "w", "0"]]
    assert records(shop, manifest, "nameless.quiet") == [["I", "1", "1"]]
    text = run(server, "SHOW CREATE TABLE nameless.b")[0][1]
    pipeline.set_table_schema(shop.settings, TableName("nameless", "b"), at, text)
    filled = shop.extract(manifest.start_seqno)
    assert records(shop, filled, "nameless.b") == [["I", "w", "0"], ["I", "x", "1.0"]]
    assert shop.again(manifest) == ()


def test_held_groups_are_left_out_and_filled_where_they_commit(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY")
    shop.run(
        "XA START 'one'\nINSERT INTO nameless.quiet VALUES (1,1)\nINSERT INTO nameless.b VALUES ('x',1)\nXA END 'one'\nXA PREPARE 'one'"
    )
    first = shop.delta()
    assert (first.left_out, len(first.held), first.files) == ((), 1, ())
    shop.run("XA COMMIT 'one'\nINSERT INTO nameless.swapped VALUES (1,2,3)")
    second = shop.delta()
    assert left_out(second) == [("nameless.quiet", second.start, DOUBTFUL)]
    assert second.start_seqno < second.left_out[0].seqno <= second.stop_seqno
    assert records(shop, second, "nameless.b") == [["I", "x", "1"]]
    assert second.balance is not None and second.balance.skipped[LEFT_OUT] == 1
    assert shop.again(second) == ()
    pipeline.set_table_schema(shop.settings, QUIET, second.left_out[0].at, told(shop))
    filled = shop.extract(second.start_seqno)
    assert records(shop, filled, "nameless.quiet") == [["I", "1", "1"]]
    assert records(shop, filled, "nameless.swapped") == [["I", "1", "2", "3"]]
    assert shop.again(second) == ()


def test_tables_that_are_not_captured_are_never_left_out(logged: tuple[Server, str], tmp_path: Path) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    excluded = shop.settings.tables.model_copy(update={"exclude": ("nameless.quiet",)})
    shop.settings = shop.settings.model_copy(update={"tables": excluded})
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY\nINSERT INTO nameless.quiet VALUES (1,2)")
    shop.run("INSERT INTO nameless.b VALUES ('x',1)")
    manifest = shop.delta()
    assert (manifest.left_out, {name for name, _ in shop.staged(manifest)}) == ((), {"nameless.b"})
    assert manifest.balance is not None and LEFT_OUT not in manifest.balance.skipped


def test_a_table_that_is_loaded_anew_is_known_from_there_on(logged: tuple[Server, str], tmp_path: Path) -> None:
    """Whatever happened to it before."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    shop.run("ALTER TABLE nameless.quiet DROP PRIMARY KEY\nINSERT INTO nameless.quiet VALUES (1,1)")
    assert shop.delta().left_out
    shop.run("ALTER TABLE nameless.quiet ADD w INT\nINSERT INTO nameless.quiet VALUES (2,2,2)")
    shop.run("INSERT INTO nameless.keyless VALUES (1,NULL)")
    pipeline.read_tables_job(shop.settings, ("nameless.quiet",), again=True)
    shop.run(
        "INSERT INTO nameless.quiet VALUES (3,3,3)\nALTER TABLE nameless.quiet ADD x INT\nINSERT INTO nameless.quiet VALUES (4,4,4,4)"
    )
    manifest = shop.delta()
    assert [one.table for one in manifest.left_out] == ["nameless.quiet"]
    assert sorted(records(shop, manifest, "nameless.quiet")) == [["I", "3", "3", "3"], ["I", "4", "4", "4", "4"]]
    keys = {schema.name: schema.key for schema in map(TableSchema.from_dict, manifest.schemas.values())}
    assert keys == {QUIET: ("u",), TableName("nameless", "keyless"): ()}
    assert shop.again(manifest) == ()
    shop.run("INSERT INTO nameless.quiet VALUES (5,5,5,5)")
    assert shop.delta().left_out == ()


HIDDEN = ("SET SESSION sql_log_bin = 0", "ALTER TABLE nameless.swapped RENAME COLUMN p TO q, RENAME COLUMN q TO p")
"""A change that neither a statement nor the types in the log show."""


def swapped_columns(shop: Shop, manifest: Manifest) -> list[dict[str, str | None]]:
    """The staged rows of the table `swapped`, by column name."""
    rows = [
        dict(zip([column["name"] for column in manifest.schemas[schema]["columns"]], line[1:], strict=True))
        for (name, schema), lines in shop.staged(manifest).items()
        for line in lines
        if name == "nameless.swapped"
    ]
    return sorted(rows, key=lambda row: str(row["id"]))


def changed_unseen(shop: Shop) -> tuple[str, str]:
    """Swap two columns without a log entry, and insert a row. Return the position and the statement to give."""
    shop.run("INSERT INTO nameless.swapped VALUES (1,10,20)")
    run(shop.server, *HIDDEN)
    at = str(log_end_of(shop.server))
    shop.run("INSERT INTO nameless.swapped (id, p, q) VALUES (2,10,20)")
    return at, run(shop.server, "SHOW CREATE TABLE nameless.swapped")[0][1]


def test_what_is_said_while_the_interval_is_read_counts(
    logged: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    at, text = changed_unseen(shop)
    attempt = extraction._run_attempt

    def given_meanwhile(*arguments: Any) -> Manifest:
        found = attempt(*arguments)
        pipeline.set_table_schema(shop.settings, TableName("nameless", "swapped"), at, text)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(extraction, "_run_attempt", given_meanwhile)
        manifest = shop.delta()
    assert swapped_columns(shop, manifest) == [{"id": "1", "p": "10", "q": "20"}, {"id": "2", "p": "10", "q": "20"}]
    assert (len(manifest.given), shop.again(manifest)) == (1, ())
    shop.run("INSERT INTO nameless.swapped (id, p, q) VALUES (3,10,20)")
    assert swapped_columns(shop, shop.delta()) == [{"id": "3", "p": "10", "q": "20"}]


def test_what_is_said_while_a_table_is_filled_counts(
    logged: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, metadata = logged
    shop, name = begun(server, metadata, tmp_path), TableName("nameless", "swapped")
    run(server, "SET SESSION sql_log_bin = 0", "ALTER TABLE nameless.swapped MODIFY p BIGINT, MODIFY q BIGINT")
    first, first_text = str(log_end_of(server)), run(server, "SHOW CREATE TABLE nameless.swapped")[0][1]
    at, text = changed_unseen(shop)
    manifest = shop.delta()
    assert [one.name for one in manifest.left_out] == [name]
    pipeline.set_table_schema(shop.settings, name, first, first_text)
    attempt = extraction._run_attempt

    def given_meanwhile(*arguments: Any) -> Manifest:
        found = attempt(*arguments)
        pipeline.set_table_schema(shop.settings, name, at, text)
        return found

    monkeypatch.setattr(extraction, "_run_attempt", given_meanwhile)
    filled = shop.extract(manifest.start_seqno)
    assert swapped_columns(shop, filled) == [{"id": "1", "p": "10", "q": "20"}, {"id": "2", "p": "10", "q": "20"}]


def test_what_is_said_too_late_is_an_error(
    logged: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    at, text = changed_unseen(shop)
    give = SchemaStore.give

    def staged_meanwhile(store: SchemaStore, given: GivenSchema) -> str:
        shop.delta()
        return give(store, given)

    monkeypatch.setattr(SchemaStore, "give", staged_meanwhile)
    with pytest.raises(DataError, match="staged without the definition, while it was given"):
        pipeline.set_table_schema(shop.settings, TableName("nameless", "swapped"), at, text)


def test_what_is_said_counts_only_for_rows_after_its_position(logged: tuple[Server, str], tmp_path: Path) -> None:
    """Also if the transaction that ends at the position changed rows of the table."""
    server, metadata = logged
    shop = begun(server, metadata, tmp_path)
    at, text = changed_unseen(shop)
    pipeline.set_table_schema(shop.settings, TableName("nameless", "swapped"), at, text)
    manifest = shop.delta()
    assert swapped_columns(shop, manifest) == [{"id": "1", "p": "10", "q": "20"}, {"id": "2", "p": "10", "q": "20"}]
    assert shop.again(manifest) == ()
