"""Tables of real servers that change names while one of them is loaded: chunks are read on both sides of the rename."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from loader.initial_load import chunk_task, whole_table
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

_SECONDS = 120


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.settings = live.settings.model_copy(update={"chunk_rows": 2})
    live.run(
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE b LIKE a",
        "INSERT INTO a VALUES (1,'one'),(2,'two'),(3,'three'),(4,'four')",
        "INSERT INTO b VALUES (1,'eins'),(2,'zwei'),(3,'drei'),(4,'vier')",
    )
    return live


def between_chunks(source: LiveSource, monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """Run statements after the first chunk of the next load was read, and before the others are."""
    read, ran = chunk_task.load_chunk, Event()

    def load_chunk(server: Any, root: str, key: str, attempt: str, number: int, *others: Any) -> Any:
        if number == 0:
            found = read(server, root, key, attempt, number, *others)
            if not ran.is_set():
                source.run(*statements)
                ran.set()
            return found
        assert ran.wait(_SECONDS)
        return read(server, root, key, attempt, number, *others)

    monkeypatch.setattr(chunk_task, "load_chunk", load_chunk)


def test_tables_swap_names_while_one_of_them_is_loaded(source: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    source.load("b")
    between_chunks(source, monkeypatch, "RENAME TABLE a TO tmp_swap, b TO a, tmp_swap TO b")
    source.load("a")
    first = source.delta()
    source.run("INSERT INTO a VALUES (9,'nine')", "INSERT INTO b VALUES (9,'neun')")
    second = source.delta()
    errors = [one.error for one in (*first.tables, *second.tables) if one.error]
    assert source.differences() == [] or errors


def test_a_table_is_put_aside_while_it_is_loaded(source: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    source.load("b")
    between_chunks(source, monkeypatch, "CREATE TABLE fresh LIKE a", "RENAME TABLE a TO old_a, fresh TO a")
    source.load("a")
    first = source.delta()
    source.run("INSERT INTO a VALUES (9,'nine')", "INSERT INTO old_a VALUES (9,'neun')")
    second = source.delta()
    errors = [one.error for one in (*first.tables, *second.tables) if one.error]
    assert source.differences() == [] or errors


def test_tables_without_a_key_swap_names_after_the_snapshot_and_before_the_lock(
    live: LiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.run(
        "CREATE TABLE a (name VARCHAR(20))",
        "CREATE TABLE b LIKE a",
        "INSERT INTO a VALUES ('one'),('two')",
        "INSERT INTO b VALUES ('eins'),('zwei'),('drei')",
    )
    live.load("b")
    lock, ran = whole_table.lock_definition, Event()

    def lock_definition(*arguments: Any) -> None:
        if not ran.is_set():
            ran.set()
            live.run("RENAME TABLE a TO tmp_swap, b TO a, tmp_swap TO b")
        lock(*arguments)

    monkeypatch.setattr(whole_table, "lock_definition", lock_definition)
    live.load("a")
    first = live.delta()
    live.run("INSERT INTO a VALUES ('nine')", "INSERT INTO b VALUES ('neun')")
    second = live.delta()
    errors = [one.error for one in (*first.tables, *second.tables) if one.error]
    assert live.differences() == [] or errors
