"""A quarantined table is a warning with the way to release it."""

from __future__ import annotations

from pathlib import Path

from loader.doctor.page import quarantined
from loader.errors import StagedDataError
from loader.model.table import TableName
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from tests.unit.pipeline.site import settings_of


def test_each_quarantined_table_is_a_warning(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert quarantined(settings) == []
    error = StagedDataError("a staged file is missing", hint="restore it").as_dict()
    made = quarantines_of(settings).begin(TableName("shop", "orders"), error, None, ("binlog.000001:9", 9))
    (found,) = quarantined(settings)
    assert (found.name, found.severity) == ("quarantine", "warning")
    assert found.what == f"shop.orders is quarantined since {made.since:%F %T}: a staged file is missing"
    assert found.cure.startswith("restore it; then, unless the table was loaded again: loader release shop.orders")
