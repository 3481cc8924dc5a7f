"""What the job of a whole delta is told and what it reports."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, computed_field

from loader.extract.spec import ExtractResult, ExtractSpec
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec


class DeltaSpec(BaseModel):
    """Extract planned intervals in their order, then materialise up to the last one that is staged.

    Attributes:
        threads: of the driver that extract, where it is the executor too; 0 on a cluster, whose tasks do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    extract: ExtractSpec
    materialise: MaterialiseSpec
    threads: int


class DeltaResult(BaseModel):
    """The intervals that are staged now, and their materialisation.

    Attributes:
        failed: why the interval after them is not staged, in the form of `LoaderError.as_dict()`; None: it was not
            begun.
    """

    model_config = ConfigDict(frozen=True)

    extracts: tuple[ExtractResult, ...]
    materialise: MaterialiseResult
    failed: dict[str, Any] | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0, or the code of what failed."""
        return int(self.failed["exit_code"]) if self.failed else self.materialise.exit_code
