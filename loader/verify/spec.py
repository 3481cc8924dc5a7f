"""What the comparison job is told and what it reports."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings
from loader.transport.server.address import ServerAddress


class CompareSpec(BaseModel):
    """Compare these tables (`schema.table`), all rows and columns, while nothing writes to them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ServerAddress
    catalog: CatalogSettings
    tables: tuple[str, ...]


class TableComparison(BaseModel):
    """One table: rows on the server and in the warehouse, how many differ, and a few of those.

    A row that exists on one side only, or with other values, counts once per side that has it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    server_rows: int
    warehouse_rows: int
    differences: int
    samples: tuple[str, ...] = ()


class CompareResult(BaseModel):
    """All tables compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[TableComparison, ...]
