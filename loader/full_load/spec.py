"""The spec and the result of the job of a whole initial load."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, computed_field

from loader.initial_load.spec import InitialLoadResult, InitialLoadSpec
from loader.materialise.spec import LoadSpec, MaterialiseResult


class FullLoadSpec(BaseModel):
    """Stage the initial load of tables, and load each table into the warehouse as soon as it is staged.

    Attributes:
        load: without manifests; they are those of the staged tables.
        threads: the number of driver threads that read, if the driver is also the executor. It is 0 on a cluster, where
            Spark tasks read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: InitialLoadSpec
    load: LoadSpec
    threads: int


class FullLoadResult(BaseModel):
    """The staged tables, and the tables that were loaded."""

    model_config = ConfigDict(frozen=True)

    read: InitialLoadResult
    load: MaterialiseResult

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0, or the highest exit code of a failed table."""
        return max(self.read.exit_code, self.load.exit_code)
