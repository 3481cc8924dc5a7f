"""Every type at its edges, inserted, updated and deleted, by every row image, with and without metadata in the log."""

from __future__ import annotations

import pytest

from tests.integration.binlog.source import Source
from tests.integration.types.kinds import all_tables
from tests.integration.types.tables import TypedTable, run

pytestmark = pytest.mark.integration
LEAST = 10_000
"""Values that are compared at least in one case, of which there are twelve."""


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_what_is_staged_is_what_the_server_shows(source: Source, image: str, metadata: str) -> None:
    source.run(f"SET SESSION binlog_row_image = {image}", f"SET GLOBAL binlog_row_metadata = {metadata}")
    compared = {name: run(TypedTable(source, name, kinds)) for name, kinds in all_tables(source).items()}
    assert sum(compared.values()) >= LEAST, compared
