"""The specs and the results of the comparison jobs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings
from loader.model.table import TableSchema
from loader.transport.server.address import ServerAddress
from loader.verify.comparands import Comparand, OnMisfit, comparands_of


class CompareSpec(BaseModel):
    """Compare all rows and columns of these tables (`schema.table`). Nothing may write to them meanwhile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ServerAddress
    catalog: CatalogSettings
    rules: tuple[TableRule, ...] = ()
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


Sums = dict[int, tuple[int, int]]
"""By bucket, the number of rows and the sum of their hashes."""


class KeySample(BaseModel):
    """A sample of a table's keys: the part with number `part`, from 0, of `parts` parts of equal size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parts: int
    part: int


class TableSums(BaseModel):
    """A table on the server.

    Attributes:
        definition: as `TableSchema.as_dict()`.
        on_misfit: what the table's rule does with invalid dates.
        rows: the number of its rows.
        sample: the rows that are summed; None for all.
        buckets: the number of buckets.
        sums: of these rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    definition: dict[str, Any]
    on_misfit: OnMisfit = "error"
    rows: int
    sample: KeySample | None = None
    buckets: int
    sums: Sums

    @property
    def table_schema(self) -> TableSchema:
        """The definition."""
        return TableSchema.from_dict(self.definition)

    @property
    def compared_values(self) -> tuple[Comparand, ...]:
        """The values that are compared of each row."""
        return comparands_of(self.table_schema, self.on_misfit)

    @property
    def compared(self) -> int:
        """The number of rows that are summed."""
        return sum(count for count, _ in self.sums.values())


class VerifySpec(BaseModel):
    """Compare tables with the server's rows at a position.

    Attributes:
        seqno: of the position.
        tables: the tables with the sums of their rows on the server.
        gone: tables that the server does not have (`schema.table`).
        applied: by table, a seqno that it has reached. Between it and the position, the log does not change the table.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalog: CatalogSettings
    rules: tuple[TableRule, ...]
    seqno: int
    tables: tuple[TableSums, ...]
    gone: tuple[str, ...] = ()
    applied: dict[str, int]


class TableDifference(BaseModel):
    """A table in the warehouse beside the sums of the server.

    Attributes:
        rows: the number of rows in the warehouse.
        compared: those of the sample, or all.
        buckets: those that differ; empty if the table is equal.
        shown: the first of these buckets, whose rows are compared one by one.
        samples: the canonical rows of the warehouse in the shown buckets.
        error: why the table was not compared, in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    rows: int = 0
    compared: int = 0
    buckets: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    samples: tuple[tuple[str | None, ...], ...] = ()
    error: dict[str, Any] | None = None


class VerifyResult(BaseModel):
    """The differences of all tables, and the rows of the tables that the server does not have."""

    model_config = ConfigDict(frozen=True)

    tables: tuple[TableDifference, ...]
    gone: tuple[TableDifference, ...] = ()
