"""The comparison of all rows and columns while nothing writes: with invalid dates, as the table's rule stores them."""

from __future__ import annotations

import pytest

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.rules import TableRule
from loader.verify.compare import compare
from loader.verify.spec import CompareSpec
from tests.integration.materialise.live_source import LiveSource
from tests.integration.verify.verified import verified

pytestmark = pytest.mark.integration


def test_invalid_dates_are_equal_and_wrong_texts_are_found(live: LiveSource) -> None:
    rules = (TableRule(tables=("*",), on_misfit="text"),)
    live.settings = live.settings.model_copy(update={"rules": rules})
    live.run(
        "SET SESSION sql_mode = ''",
        "CREATE TABLE t (id INT PRIMARY KEY, d DATE)",
        "INSERT INTO t VALUES (1, '0000-00-00'), (2, '2024-01-02'), (3, NULL)",
    )
    live.load()
    table = f"{live.database}.t"
    spec = CompareSpec(server=live.settings.server, catalog=live.settings.catalog, rules=rules, tables=(table,))
    (one,) = compare(live.spark, spec).tables
    assert (one.server_rows, one.warehouse_rows, one.samples) == (3, 3, ())
    (found,) = verified(live.spark, live.settings).tables
    assert (found.error, found.status) == (None, "equal")
    session = Warehouse(live.spark, live.settings.catalog).session
    session.sql(f"UPDATE lake.{table} SET d__text = '2024-00-00' WHERE id = 1")
    (found,) = verified(live.spark, live.settings).tables
    assert (found.error, found.differences) == (None, 2)
    (one,) = compare(live.spark, spec).tables
    assert one.samples == (
        "only on the server: ('1', None, '0000-00-00')",
        "only in the warehouse: ('1', None, '2024-00-00')",
    )
