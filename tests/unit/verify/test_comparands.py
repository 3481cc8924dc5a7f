"""Which values of a row are compared, by the rule for invalid dates."""

from __future__ import annotations

import pytest

from loader.model.table import Column, TableName, TableSchema
from loader.verify.comparands import OnMisfit, comparands_of, key_comparands

COLUMNS = (
    Column("day", "date"),
    Column("at", "datetime", size=3),
    Column("ts", "timestamp"),
    Column("year", "year"),
    Column("time", "time"),
    Column("in_key", "date"),
)
SCHEMA = TableSchema(TableName("shop", "t"), COLUMNS, ("in_key",))
NAMES = ["day", "at", "ts", "year", "time", "in_key"]


@pytest.mark.parametrize(
    ("on_misfit", "texts", "checked"),
    [("error", [], []), ("null", [], NAMES[:3]), ("text", ["day__text", "at__text", "ts__text"], NAMES[:3])],
)
def test_dates_outside_of_the_key_may_be_invalid(on_misfit: OnMisfit, texts: list[str], checked: list[str]) -> None:
    compared = comparands_of(SCHEMA, on_misfit)
    assert [one.name for one in compared] == [*NAMES, *texts]
    assert [one.name for one in compared if "DAYOFMONTH" in one.server] == [*checked, *texts]
    assert [one.server for one in key_comparands(SCHEMA)] == ["CAST(`in_key` AS CHAR CHARACTER SET utf8mb4)"]


def test_a_text_gets_the_digits_of_its_column() -> None:
    texts = {one.name: one.warehouse for one in comparands_of(SCHEMA, "text") if one.is_misfit_text}
    assert texts == {
        "day__text": "`day__text`",
        "at__text": "if(length(`at__text`) >= 19,"
        " concat(`at__text`, substr('0000-00-00 00:00:00.000', length(`at__text`) + 1)), `at__text`)",
        "ts__text": "`ts__text`",
    }
