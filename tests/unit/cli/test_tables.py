"""What is printed of the tables that a job brought on."""

from __future__ import annotations

import pytest

from loader.cli.app import _report_tables
from loader.cli.output import Output
from loader.materialise.spec import MaterialiseResult, TableResult


def test_values_that_do_not_fit_are_never_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    tables = (
        TableResult(table="shop.orders", status="applied", misfits={"paid on": 1234, "at": 1}),
        TableResult(table="shop.items", status="unchanged"),
    )
    _report_tables(Output(False), MaterialiseResult(tables=tables).model_dump(mode="json"))
    shown = capsys.readouterr().out
    assert "shop.orders.paid on: values that are no date or time, and NULL now: 1,234" in shown
    assert "shop.orders.at: values that are no date or time, and NULL now: 1\n" in shown
    assert "shop.items." not in shown
