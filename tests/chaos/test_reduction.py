"""Which statements a reduced script begins with, and what is left out of it."""

from __future__ import annotations

from tests.chaos.access.source import Statement
from tests.chaos.reduction import Script, candidates, cut_at, related_names

STATEMENTS = [
    Statement(0, "setup", "CREATE DATABASE c0", 0),
    Statement(0, "setup", "CREATE TABLE `a` (id INT)", 0),
    Statement(0, "setup", "CREATE TABLE `b` (id INT)", 0),
    Statement(1, "w0", "INSERT INTO `a` VALUES (1)", 0),
    Statement(2, "w0", "RENAME TABLE `a` TO `a``x`", 0),
    Statement(2, "w0", "CREATE TABLE `c` LIKE `a``x`", 0),
    Statement(2, "w0", "UPDATE `b` SET id = 2", 0),
]


def test_tables_that_gave_their_rows_or_columns_are_related() -> None:
    assert related_names(STATEMENTS, ["c"]) == {"a", "a`x", "c"}
    assert related_names(STATEMENTS, ["b"]) == {"b"}
    assert related_names(STATEMENTS, []) is None


def test_earlier_rounds_come_before_the_load() -> None:
    script = cut_at(STATEMENTS, 2)
    assert script.before == ("CREATE TABLE `a` (id INT)", "CREATE TABLE `b` (id INT)", "INSERT INTO `a` VALUES (1)")
    assert script.after == ("RENAME TABLE `a` TO `a``x`", "CREATE TABLE `c` LIKE `a``x`", "UPDATE `b` SET id = 2")
    assert str(Script(("x",), ("y", "z"))) == "-- load\nx;\n-- interval\ny;\nz;"


def test_candidates_lack_each_run_of_statements_once() -> None:
    found = candidates(Script(("x",), ("1", "2", "3")), 2)
    assert [(one.before, one.after) for one in found] == [(("x",), ("3",)), (("x",), ("1", "2")), ((), ("1", "2", "3"))]
