r"""Keys with texts such as \x61a1, which is also how invalid bytes are staged as hex: two rows never get one key."""

from __future__ import annotations

from collections import Counter

import pytest

from loader.materialise.spec import TableResult
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

TABLE = "CREATE TABLE {} (k VARCHAR(9) CHARACTER SET hebrew PRIMARY KEY, n INT)"
TEXT, BYTES = "'\\\\x61a1'", "X'61A1'"
"""As SQL: an ordinary text, and bytes that hebrew does not have. With `hex` both are the same text."""
SETTINGS = [("error", TEXT, "hex", BYTES), ("hex", BYTES, "error", TEXT)]
SAME = "two keys of the table can have the same text"


def use(live: LiveSource, undecodable: str) -> None:
    live.settings = live.settings.model_copy(update={"undecodable": undecodable})
    live.run("FLUSH BINARY LOGS")  # a load at the same position has the settings of its plan


def results(live: LiveSource) -> dict[str, TableResult]:
    return {one.table.partition(".")[2]: one for one in live.delta().tables}


def stopped(result: TableResult) -> bool:
    return result.status == "quarantined" and bool(result.error) and result.error["what"] == SAME


def rows(live: LiveSource, table: str = "t") -> list[tuple[object, ...]]:
    return sorted((live.warehouse_rows(table) or Counter()).elements())


@pytest.mark.parametrize(("first", "old", "then", "new"), SETTINGS)
def test_the_setting_changes(live: LiveSource, first: str, old: str, then: str, new: str) -> None:
    use(live, first)
    latin = TEXT if first == "error" else "'c'"
    live.run(
        *(TABLE.format(name) for name in ("t", "u")),
        "CREATE TABLE w (k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES ({old}, 1), ('b', 2)",
        "INSERT INTO u VALUES ('b', 2)",
        f"INSERT INTO w VALUES ({latin}, 1)",
    )
    live.load()
    live.run("UPDATE t SET n = 3 WHERE k = 'b'")
    assert {one.status for one in results(live).values()} == {"applied", "unchanged"}
    use(live, then)
    live.run(f"INSERT INTO t VALUES ({new}, 4)", f"INSERT INTO u VALUES ({new}, 4)", "INSERT INTO w VALUES ('d', 4)")
    found = results(live)
    assert stopped(found.pop("t"))
    assert {one.status for one in found.values()} == {"applied"}
    assert rows(live) == [("\\x61a1", 1), ("b", 3)]
    assert rows(live, "u") == [("\\x61a1", 4), ("b", 2)]
    live.run("DELETE FROM t WHERE n = 1")
    live.load_again("t")
    live.run("UPDATE t SET n = n + 1", "UPDATE u SET n = n + 1")
    assert {one.status for one in results(live).values()} == {"applied", "unchanged"}
    assert rows(live) == [("\\x61a1", 5), ("b", 4)]
    assert rows(live, "u") == [("\\x61a1", 5), ("b", 3)]


def test_the_setting_changes_between_two_staged_intervals(live: LiveSource) -> None:
    live.run(TABLE.format("t"), TABLE.format("u"))
    live.load()
    live.run(f"INSERT INTO t VALUES ({TEXT}, 1)", "INSERT INTO u VALUES ('b', 1)")
    live.stage()
    use(live, "hex")
    live.run(f"INSERT INTO t VALUES ({BYTES}, 2)", f"INSERT INTO u VALUES ({BYTES}, 2)")
    found = results(live)
    assert found["t"].status == "quarantined"  # after the first of its two merges
    assert (found["u"].status, found["u"].inserts) == ("applied", 2)
    assert stopped(next(one for one in live.merge().tables if one.table.endswith(".t")))
    assert rows(live) == [("\\x61a1", 1)]
    assert rows(live, "u") == [("\\x61a1", 2), ("b", 1)]


def test_a_table_takes_the_name_of_another(live: LiveSource) -> None:
    """Its rows were staged with the earlier setting."""
    live.run(TABLE.format("t"), f"INSERT INTO t VALUES ({TEXT}, 1)")
    live.load()
    live.run("INSERT INTO t VALUES ('b', 1)")
    live.delta()
    use(live, "hex")
    live.run("RENAME TABLE t TO u", f"INSERT INTO u VALUES ({BYTES}, 2)")
    assert stopped(results(live)["u"])
    assert rows(live, "u") == []


def test_a_table_is_emptied_after_the_change(live: LiveSource) -> None:
    live.run(TABLE.format("t"), f"INSERT INTO t VALUES ({TEXT}, 1)")
    live.load()
    use(live, "hex")
    live.run("TRUNCATE t", f"INSERT INTO t VALUES ({BYTES}, 2)")
    assert results(live)["t"].status == "applied"
    assert rows(live) == [("\\x61a1", 2)]


@pytest.mark.parametrize("action", ["DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "DROP PRIMARY KEY, ADD UNIQUE KEY (v)"])
def test_a_column_joins_the_key(live: LiveSource, action: str) -> None:
    """Outside the key, both rows have one text."""
    use(live, "hex")
    made = "(id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew NOT NULL, n INT)"
    live.run(
        f"CREATE TABLE t {made}",
        f"CREATE TABLE u {made}",
        f"INSERT INTO t VALUES (1, {TEXT}, 1), (2, {BYTES}, 2)",
        "INSERT INTO u VALUES (1, 'a', 1), (2, 'b', 2)",
    )
    live.load()
    assert rows(live) == [(1, 1, "\\x61a1"), (2, 2, "\\x61a1")]
    live.run(*(f"ALTER TABLE {name} {action}" for name in "tu"))
    live.run("UPDATE t SET n = 10 WHERE id = 2", "UPDATE u SET n = 10 WHERE id = 1")
    found = results(live)
    assert stopped(found["t"])
    assert found["u"].status == "applied"
    assert rows(live) == [(1, 1, "\\x61a1"), (2, 2, "\\x61a1")]
    assert rows(live, "u") == [(1, 10, "a"), (2, 2, "b")]
    live.run("UPDATE t SET v = 'c' WHERE id = 1")
    live.load_again("t")
    live.run("UPDATE t SET n = 11 WHERE id = 2")
    assert results(live)["t"].status == "applied"
    assert rows(live) == [(1, 1, "c"), (2, 11, "\\x61a1")]
