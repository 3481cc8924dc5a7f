"""Statements of real logs that cannot change captured rows, and unknown statements."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.model.table import TableName
from loader.schema.statements import Effect, Kind, effect


def judged(text: str) -> Effect:
    return effect(text, "db", 0, True)


NOTHING = [
    "DROP TEMPORARY TABLE IF EXISTS `shop`.`orders`",
    "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `orders`",
    "CREATE VIEW v AS SELECT 1",
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select 1",
    "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`root`@`127.0.0.1` SQL SECURITY DEFINER VIEW `v` AS select 1 x",
    "ALTER ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select 1",
    "DROP VIEW v",
    "CREATE DEFINER=`root`@`localhost` TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @a=1",
    "/*!50003 CREATE*/ /*!50020 DEFINER=`root`@`%`*/ /*!50003 TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @a=1 */",
    "CREATE DEFINER=`table`@`localhost` PROCEDURE p() DROP TABLE a",
    "CREATE OR REPLACE DEFINER=`root`@`127.0.0.1` FUNCTION `f`() RETURNS int(11)\n    DETERMINISTIC\nreturn 1",
    "CREATE DEFINER=`root`@`localhost` EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a",
    "ALTER EVENT e RENAME TO f",
    "CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x.so'",
    "CREATE INDEX i ON a (x)",
    "CREATE FULLTEXT INDEX i ON a (x)",
    "DROP TRIGGER t",
    "CREATE DATABASE shop",
    "ALTER DATABASE shop CHARACTER SET utf8mb4",
    "CREATE USER 'a'@'b' IDENTIFIED WITH 'x' AS 'y'",
    "ALTER USER 'a'@'b' ACCOUNT LOCK",
    "RENAME USER a TO b",
    "DROP ROLE r",
    "GRANT ALL ON *.* TO 'a'@'b'",
    "REVOKE ALL ON *.* FROM 'a'@'b'",
    "SET PASSWORD FOR 'a'@'b'='*X'",
    "SET DEFAULT ROLE r FOR u",
    "analyze table a",
    "OPTIMIZE TABLE a",
    "REPAIR VIEW v",
    "FLUSH TABLES",
    "SAVEPOINT `a`",
    "RELEASE SAVEPOINT a",
    "create sequence s",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
    "CREATE TABLESPACE t ADD DATAFILE 'x'",
    "CREATE UNDO TABLESPACE t ADD DATAFILE 'x'",
    "CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
    "CREATE RESOURCE GROUP g TYPE=USER",
    "ALTER INSTANCE ROTATE INNODB MASTER KEY",
    "INSTALL PLUGIN x SONAME 'y'",
]


@pytest.mark.parametrize("text", NOTHING)
def test_statements_by_which_no_captured_row_changes(text: str) -> None:
    assert judged(text) == Effect(Kind.NONE)


BARRIERS = {
    "CREATE TABLE a (id INT)": ("rows of another definition follow", {"a"}),
    "CREATE TABLE IF NOT EXISTS a (id INT)": ("the same", {"a"}),
    "CREATE TABLE a LIKE b": ("the other one stays as it is", {"a"}),
    "CREATE TABLE `a` (\n  `x` int NOT NULL DEFAULT '0'\n) START TRANSACTION": ("CREATE ... SELECT of MySQL 8", {"a"}),
    "CREATE TABLE a (id INT COMMENT 'select')": ("no SELECT", {"a"}),
    "CREATE TABLE a (`select` INT)": ("no SELECT", {"a"}),
    "CREATE TABLE a (x INT) PARTITION BY RANGE (x) (PARTITION p VALUES LESS THAN (9), PARTITION q VALUES IN (1))": (
        "values of partitions",
        {"a"},
    ),
    "CREATE TABLE a (`table` INT, `values` INT) TABLESPACE x": ("names of columns", {"a"}),
    "CREATE TABLE a (x INT COMMENT '/*!50000 DROP TABLE b */')": ("no comment but a string", {"a"}),
    "CREATE OR REPLACE SEQUENCE a START WITH 5": ("MariaDB also replaces a table", {"a"}),
    "CREATE UNIQUE INDEX i ON a (x)": ("it can be the key of a table without primary key", {"a"}),
    "DROP INDEX i ON a": ("the same", {"a"}),
    "set statement max_statement_time=5 for truncate table a": (
        "MariaDB logs SET STATEMENT with what follows it",
        {"a"},
    ),
    "SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE a ADD x INT": ("the same", {"a"}),
    "REPAIR TABLE a": ("damaged rows of MyISAM and Aria are deleted", {"a"}),
    "repair tables a, shop.b quick extended": ("the same", {"a", "b"}),
    "ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b": ("both tables trade rows", {"a", "b"}),
    "ALTER TABLE a CONVERT PARTITION p TO TABLE b": ("MariaDB makes a table of a partition", {"a", "b"}),
    "ALTER TABLE a CONVERT TABLE b TO PARTITION p VALUES LESS THAN (1)": ("MariaDB takes a table in", {"a", "b"}),
    "rename table b wait 5 to a": ("MariaDB's wait ends the list of names", {"a", "b"}),
    "alter table a rename = b": ("an old form of RENAME TO that servers still take", {"a", "b"}),
    "alter table .a add q int": ("an old form of a name that MariaDB still takes", {"a"}),
}


@pytest.mark.parametrize("text", list(BARRIERS))
def test_a_barrier_names_every_table_that_it_changes(text: str) -> None:
    found = judged(text)
    assert (found.kind, {name.table for name in found.tables}) == (Kind.BARRIER, BARRIERS[text][1])


VERBS = """
    CREATE ALTER DROP TABLE TABLES RENAME TRUNCATE TO IF EXISTS NOT OR REPLACE INSERT INTO VALUES SELECT FROM DELETE
    UPDATE SET WITH AS DATABASE TEMPORARY DEFINER VIEW a b.c 2024_a 0x 1e X' 1 é 😀 @@x := ( ) { } ?
"""
WORDS = [
    *VERBS.split(),
    *("`a`", "`a.b`.`c``d`", '"x"', "'x'", "''", ".", ",", ";", "=", "@", "*", "`", "'", '"', "\\", "\0", "\n"),
    *("/*", "*/", "/*!", "/*M!1", "--", "-- \n", "#"),
]


@settings(deadline=None, max_examples=1500)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_words_in_any_order_are_judged_without_an_exception(text: str) -> None:
    assert isinstance(judged(text), Effect)


@settings(deadline=None, max_examples=500)
@given(
    st.text(max_size=80), st.sampled_from(["", "DROP TABLE ", "INSERT INTO ", "ALTER TABLE ", "RENAME TABLE ", "WITH "])
)
def test_any_text_is_judged_without_an_exception(text: str, start: str) -> None:
    assert isinstance(judged(start + text), Effect)


# U+FFFD stands for bytes that are no text.
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufffd"), min_size=1, max_size=20)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@settings(deadline=None, max_examples=500)
@given(
    NAME, NAME, st.sampled_from(["DROP TABLE {}", "TRUNCATE {}", "ALTER TABLE {} ADD x INT", "RENAME TABLE {} TO y.z"])
)
def test_any_quoted_name_is_found(schema: str, table: str, form: str) -> None:
    found = judged(form.format(f"{quoted(schema)}.{quoted(table)}"))
    assert (found.kind, found.tables[:1]) == (Kind.BARRIER, (TableName(schema, table),))
