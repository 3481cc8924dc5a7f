"""A transaction that an operator skips: by the printed commands, up to the warehouse, the status and a comparison."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.e2e.loaded import Loaded, loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET hebrew, n INT)
CREATE TABLE shop.keyless (a INT)
INSERT INTO shop.orders VALUES (1,'one',1),(2,'two',2)
INSERT INTO shop.keyless VALUES (1),(2)
"""
TABLES = ("shop.keyless", "shop.orders")


def follow(shop: Loaded, hint: str) -> None:
    """Run the commands that a hint names, as it prints them."""
    for command in re.findall(r"loader ((?:initial-load|run)[^;]*)", hint):
        shop.json(*shlex.split(command))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_printed_commands_get_past_a_row_and_the_table_is_marked_until_it_is_loaded_again(
    kind: str, tmp_path: Path, jars: str, spark: SparkSession
) -> None:
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.spark = lambda: spark
        shop.execute(
            "BEGIN", "INSERT INTO shop.orders VALUES (3, _hebrew X'61A1', 3)", "INSERT INTO shop.keyless VALUES (3)", "COMMIT",
            "UPDATE shop.orders SET name = 'zwei' WHERE id = 2",
        )  # fmt: skip
        shop.json("run", code=4)
        (stopped,) = shop.json("status")["quarantined"]
        skip, extract = re.findall(r"loader ((?:skip|extract) [^;(]+)", stopped["error"]["hint"])
        (release,) = re.findall(r"loader (release [^;(]+)", stopped["error"]["hint"] + "; loader release shop.orders")
        shown = shop.loader(*shlex.split(skip.partition(" --reason")[0]))
        assert shown.returncode == 0, shown.stderr
        assert "nothing is skipped; to skip these rows, give a reason: --reason TEXT" in shown.stdout
        assert shop.json("status")["skips"] == []
        done = shop.loader(*shlex.split(skip))
        assert done.returncode == 0, done.stderr
        assert f"next, stage the other rows: loader {extract.split()[0]} --interval " in done.stdout
        shop.json(*shlex.split(extract))
        shop.json(*shlex.split(release))
        shop.json("run")
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 1}

        state = shop.json("status")
        (one,) = state["skips"]
        assert (one["state"], one["tables"], one["reason"], one["rows"]) == ("used", ["shop.orders"], "TEXT", 1)
        assert {table["table"]: (table["exact"], table["skipped_at"]) for table in state["tables"]} == {
            "shop.keyless": (True, ""), "shop.orders": (False, one["start"]),
        }  # fmt: skip
        text = shop.loader("status").stdout
        assert f"lacks rows that were skipped at {one['start']}" in text
        assert re.search(rf"^{re.escape(one['start'])} .*shop\.orders +1 +used +\S+ .* TEXT *$", text, re.MULTILINE)
        verified = {table["table"]: table for table in shop.json("verify", code=4)["tables"]}
        assert verified["shop.keyless"]["status"] == "equal"
        found = {name: verified["shop.orders"][name] for name in ("status", "differences", "skipped_at")}
        assert found == {"status": "different", "differences": 1, "skipped_at": one["start"]}

        # A later change of the row brings all of it; a replay does not bring back what was skipped.
        replayed = shop.json("replay", "--from", one["start"])
        assert {table["status"] for table in replayed["tables"]} == {"same"}
        shop.execute("UPDATE shop.orders SET name = 'three' WHERE id = 3")
        shop.json("run")
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}
        assert not shop.json("status")["tables"][1]["exact"]
        shop.json("initial-load", "--table", "shop.orders", "--again")
        shop.execute("INSERT INTO shop.orders VALUES (4, 'four', 4)")
        shop.json("run")
        state = shop.json("status")
        assert [(table["exact"], table["skipped_at"]) for table in state["tables"]] == [(True, "")] * 2
        assert [one["state"] for one in state["skips"]] == ["used"]
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("planned", ["planned", "applied"])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_skip_that_came_into_a_plan_is_undone_by_the_printed_command(
    kind: str, planned: str, tmp_path: Path, jars: str, spark: SparkSession
) -> None:
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.spark = lambda: spark
        places = []
        for number in (3, 4):
            places.append(shop.json("status")["log_end"])
            shop.execute(
                "BEGIN", f"INSERT INTO shop.orders VALUES ({number},'x',{number})",
                f"INSERT INTO shop.keyless VALUES ({number})", "COMMIT",
            )  # fmt: skip
        for place in places:
            shop.json("skip", place, "--reason", "a test")
        (withdrawn,) = shop.json("skip", places[0], "--withdraw", "--reason", "not this one")
        assert withdrawn["state"] == "withdrawn"
        if planned == "planned":
            shop.json("plan")
        else:
            shop.json("run")
            assert shop.differences(TABLES) == {"shop.keyless": 1, "shop.orders": 1}
        error = shop.json("skip", places[1], "--withdraw", "--reason", "nor this one", code=2)
        assert error["what"] == "the skip cannot be withdrawn any more"
        follow(shop, error["hint"])
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}
        state = shop.json("status")
        assert [one["state"] for one in state["skips"]] == ["withdrawn", "used"]
        shop.execute("INSERT INTO shop.orders VALUES (5,'x',5)", "INSERT INTO shop.keyless VALUES (5)")
        shop.json("run")
        assert [(table["exact"], table["skipped_at"]) for table in shop.json("status")["tables"]] == [(True, "")] * 2
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_tables_of_an_xa_transaction_are_loaded_again_by_the_printed_command(
    kind: str, tmp_path: Path, jars: str, spark: SparkSession
) -> None:
    """A row of it cannot be staged. The error does not name a skip, and a skip is refused."""
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.spark = lambda: spark
        prepared = shop.json("status")["log_end"]
        shop.execute(
            "XA START 'x'", "INSERT INTO shop.orders VALUES (3, _hebrew X'61A1', 3)",
            "INSERT INTO shop.keyless VALUES (3)", "XA END 'x'", "XA PREPARE 'x'",
        )  # fmt: skip
        decided = shop.json("status")["log_end"]
        shop.execute("XA COMMIT 'x'")
        shop.json("run", code=4)
        (stopped,) = shop.json("status")["quarantined"]
        assert stopped["table"] == "shop.orders" and "loader skip" not in stopped["error"]["hint"]
        for place in (prepared, decided):
            error = shop.json("skip", place, "--reason", "bad row", code=4)
            assert error["what"] == "a part of an XA transaction cannot be skipped"
        shop.execute("UPDATE shop.orders SET name = 'three' WHERE id = 3")
        follow(shop, error["hint"])
        shop.execute("INSERT INTO shop.orders VALUES (4,'x',4)")
        shop.json("run")
        state = shop.json("status")
        assert (state["quarantined"], state["skips"]) == ([], [])
        assert [table["exact"] for table in state["tables"]] == [True, True]
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_renamed_table_is_marked_under_its_new_name(
    kind: str, tmp_path: Path, jars: str, spark: SparkSession
) -> None:
    """One of two tables is renamed in the interval of the skip, and both in later ones."""
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.spark = lambda: spark
        place = shop.json("status")["log_end"]
        shop.execute(
            "BEGIN", "INSERT INTO shop.orders VALUES (3,'c',3)", "INSERT INTO shop.keyless VALUES (3)", "COMMIT",
            "RENAME TABLE shop.orders TO shop.sales",
        )  # fmt: skip
        shop.json("skip", place, "--reason", "a test")
        shop.json("run")
        state = shop.json("status")
        assert [one["names"] for one in state["skips"]] == [["shop.keyless", "shop.sales"]]
        assert {table["table"]: (table["exact"], table["skipped_at"]) for table in state["tables"]} == {
            "shop.keyless": (False, place), "shop.orders": (True, ""), "shop.sales": (False, place),
        }  # fmt: skip
        assert "shop.keyless, shop.orders (now shop.sales)" in shop.loader("status").stdout
        verified = {table["table"]: table["skipped_at"] for table in shop.json("verify", code=4)["tables"]}
        assert verified == {"shop.keyless": place, "shop.sales": place}
        shop.execute("RENAME TABLE shop.sales TO shop.sold, shop.keyless TO shop.sales")
        shop.json("run")
        assert "shop.keyless, shop.orders (now shop.sales, shop.sold)" in shop.loader("status").stdout
        verified = {table["table"]: table["skipped_at"] for table in shop.json("verify", code=4)["tables"]}
        assert verified == {"shop.sales": place, "shop.sold": place}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_later_changes_that_need_the_skipped_rows_stop_their_table(
    kind: str, tmp_path: Path, jars: str, spark: SparkSession
) -> None:
    """A table without a key, and images without all columns: no row is guessed."""
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.spark = lambda: spark
        shop.execute(
            "BEGIN", "INSERT INTO shop.orders VALUES (3,'c',3)", "INSERT INTO shop.keyless VALUES (3)", "COMMIT"
        )
        place = shop.json("status")["staged"]
        shop.json("skip", place, "--reason", "a test")
        shop.json("run")
        assert shop.differences(TABLES) == {"shop.keyless": 1, "shop.orders": 1}
        shop.execute(
            "SET SESSION binlog_row_image = MINIMAL", "UPDATE shop.orders SET name = 'd' WHERE id = 3",
            "SET SESSION binlog_row_image = FULL", "DELETE FROM shop.keyless WHERE a = 3",
        )  # fmt: skip
        failed = shop.json("run", code=4)["materialise"]["tables"]
        assert {table["table"]: table["status"] for table in failed} == dict.fromkeys(TABLES, "quarantined")
        errors = {table["table"]: table["error"]["what"] for table in failed}
        assert errors["shop.keyless"] == "a row that was deleted on the server is not in the warehouse"
        assert errors["shop.orders"] in {
            "a change leaves columns out, and its row does not exist",
            "row images leave columns out, and MariaDB also leaves out columns that changed",
        }
        shop.json("initial-load", *(word for table in TABLES for word in ("--table", table)), "--again")
        shop.json("run")
        assert shop.differences(TABLES) == {"shop.keyless": 0, "shop.orders": 0}
