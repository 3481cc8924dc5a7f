"""Tables whose keys have characters that their character set has several times: different keys, but the same text."""

from __future__ import annotations

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

TWICE = [("cp932", "81BE", "879C"), ("cp932", "FBFC", "EEE0"), ("eucjpms", "A2C0", "ADFC"), ("sjis", "5C", "815F")]
"""Character sets, with two sequences for one character. The second one is not read in a key."""


@pytest.mark.parametrize(("charset", "one", "other"), TWICE)
def test_two_keys_with_one_text(live: LiveSource, charset: str, one: str, other: str) -> None:
    live.run(
        f"CREATE TABLE t (k VARCHAR(5) CHARACTER SET {charset} PRIMARY KEY, n INT, v VARCHAR(5) CHARACTER SET {charset})",
        f"INSERT INTO t VALUES (X'{one}', 1, X'{other}'), ('b', 2, X'{one}')",
    )
    live.load()
    live.run("UPDATE t SET n = n + 10")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.differences() == []
    live.run(f"INSERT INTO t VALUES (X'{other}', 3, 'c')")
    (found,) = live.delta().tables
    assert found.error
    assert f"a value is not a varchar in {charset}" in str(found.error["what"])
    assert sum((live.warehouse_rows("t") or {}).values()) == 2


def test_a_load_is_refused_and_hex_tells_them_apart(live: LiveSource) -> None:
    live.run(
        "CREATE TABLE t (k VARCHAR(5) CHARACTER SET cp932 PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (X'81BE', 1), (X'879C', 2)",
    )
    job = pipeline.read_tables_job(live.settings, (f"{live.database}.t",))
    (refused,) = stage_tables(Threads(2), job.spec).tables
    assert refused.error
    assert "only one of them is read in a key" in str(refused.error["why"])
    live.settings = live.settings.model_copy(update={"undecodable": "hex"})
    live.run("FLUSH BINARY LOGS")  # a load at the same position has the settings of its plan
    live.load("t")
    live.run("UPDATE t SET n = n + 10", "DELETE FROM t WHERE n = 11")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert list(live.warehouse_rows("t") or {}) == [("\\x879c", 12)]


def test_a_key_that_is_written_like_the_hex_of_another_key(live: LiveSource) -> None:
    live.settings = live.settings.model_copy(update={"undecodable": "hex"})
    live.run("CREATE TABLE t (k VARCHAR(9) CHARACTER SET cp932 PRIMARY KEY, n INT)")
    live.run("INSERT INTO t VALUES (X'879C', 1), ('b', 2), ('\\\\x8', 3), ('\\\\x87g', 4)")
    live.load()
    live.run("INSERT INTO t VALUES ('\\\\x879c', 5)", "DELETE FROM t WHERE n = 1")
    (found,) = (one for one in live.delta().tables if one.table.endswith(".t"))
    assert found.status == "quarantined"
    assert found.error
    assert "a value is not a varchar in cp932" in str(found.error["what"])
    assert sum((live.warehouse_rows("t") or {}).values()) == 4
    live.run("FLUSH BINARY LOGS")
    job = pipeline.read_tables_job(live.settings, (f"{live.database}.t",), again=True)
    (refused,) = stage_tables(Threads(2), job.spec).tables
    assert refused.error
    assert "must not have a text such as" in str(refused.error["why"])
    assert "undecodable" not in str(refused.error["hint"])


LABELS = [
    "ENUM('','a')",
    "SET('a','')",
    "ENUM('a','b','a')",
    "SET('a','b','a')",
    "ENUM('да','не') CHARACTER SET latin1",
]
"""Types with an empty label, with a label twice, and with two labels that the server stores as question marks."""


@pytest.mark.parametrize("kind", LABELS)
def test_keys_with_labels_of_one_text(live: LiveSource, kind: str) -> None:
    live.run(
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE t (k {kind} PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
    )
    job = pipeline.read_tables_job(live.settings, (f"{live.database}.t",))
    (refused,) = stage_tables(Threads(2), job.spec).tables
    assert refused.error
    assert refused.error["what"] == "two keys of the table can have the same text"
    live.run(
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE made (k {kind} PRIMARY KEY, n INT)",
        "INSERT INTO made VALUES (1, 1)",
        "CREATE TABLE altered (k INT PRIMARY KEY, n INT)",
        "INSERT INTO altered VALUES (1, 1)",
        f"CREATE TABLE keyless (k {kind}, n INT)",
        "INSERT INTO keyless VALUES (1, 1), (2, 1)",
    )
    live.delta()
    live.run(
        "SET SESSION sql_mode = ''",
        "DELETE FROM altered",
        f"ALTER TABLE altered MODIFY k {kind}",
        "INSERT INTO altered VALUES (1, 1)",
    )
    found = live.statuses(live.delta())
    assert (found["made"], found["altered"]) == ("quarantined", "quarantined")
    assert set(live.differences()) == {"t", "made", "altered"}


JOINS = ["DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "DROP PRIMARY KEY, ADD UNIQUE KEY (v)"]


@pytest.mark.parametrize("action", JOINS)
def test_a_column_joins_the_key(live: LiveSource, action: str) -> None:
    """Outside the key, both rows have one text."""
    live.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(5) CHARACTER SET cp932 COLLATE cp932_bin NOT NULL, n INT)",
        "INSERT INTO t VALUES (1, X'81BE', 1), (2, X'879C', 2)",
    )
    live.load()
    assert live.differences() == []
    live.run(f"ALTER TABLE t {action}", "UPDATE t SET n = 10 WHERE id = 1")
    (found,) = live.delta().tables
    assert found.status == "quarantined"
    assert found.error
    assert found.error["what"] == "two keys of the table can have the same text"
    assert sum((live.warehouse_rows("t") or {}).values()) == 2
