"""The spec and the result of the job of a whole delta."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, computed_field

from loader.extract.spec import ExtractResult, ExtractSpec
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec


class DeltaSpec(BaseModel):
    """Extract planned intervals in order, then materialise up to the last staged interval.

    Attributes:
        threads: the number of driver threads that extract, if the driver is also the executor. It is 0 on a cluster,
            where Spark tasks extract.
        report_unmerged: report an error of the merge in the result instead of raising it, because a later task merges
            again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    extract: ExtractSpec
    materialise: MaterialiseSpec
    threads: int
    report_unmerged: bool = False


class DeltaResult(BaseModel):
    """The staged intervals and their materialisation.

    Attributes:
        failed: the error of the interval after them, in the form of `LoaderError.as_dict()`; None if it was not begun.
        unmerged: why the merge failed as a whole, in the same form, if the spec has `report_unmerged`; None if it did
            not.
    """

    model_config = ConfigDict(frozen=True)

    extracts: tuple[ExtractResult, ...]
    materialise: MaterialiseResult
    failed: dict[str, Any] | None = None
    unmerged: dict[str, Any] | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """The exit code of the failed extraction or of the materialisation; 0 if nothing failed."""
        failed = self.failed or self.unmerged
        return int(failed["exit_code"]) if failed else self.materialise.exit_code
