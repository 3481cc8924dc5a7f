"""What is printed of the tables that a job brought on."""

from __future__ import annotations

import pytest

from loader.cli.output import Output
from loader.cli.reports import report_tables
from loader.materialise.spec import MaterialiseResult, TableResult


def test_values_that_do_not_fit_are_never_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    tables = (
        TableResult(table="shop.orders", status="applied", misfits={"paid on": 1234, "at": 1}),
        TableResult(table="shop.items", status="unchanged"),
    )
    report_tables(Output(False), MaterialiseResult(tables=tables).model_dump(mode="json"))
    shown = capsys.readouterr().out
    assert "shop.orders.paid on: 1,234 invalid dates or times were replaced by NULL" in shown
    assert "shop.orders.at: 1 invalid dates or times were replaced by NULL\n" in shown
    assert "shop.items." not in shown
