"""The spec and the result of the comparison job."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings
from loader.transport.server.address import ServerAddress


class CompareSpec(BaseModel):
    """Compare all rows and columns of these tables (`schema.table`). Nothing may write to them meanwhile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ServerAddress
    catalog: CatalogSettings
    tables: tuple[str, ...]


class TableComparison(BaseModel):
    """The comparison of one table: numbers of rows on both sides, the number of differing rows, and some of them.

    A row that exists on one side only counts once. A row with different values counts once per side.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    server_rows: int
    warehouse_rows: int
    differences: int
    samples: tuple[str, ...] = ()


class CompareResult(BaseModel):
    """The comparisons of all tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[TableComparison, ...]
