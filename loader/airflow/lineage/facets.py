"""Facets of OpenLineage that only this loader has. Imported only if OpenLineage is installed."""

from __future__ import annotations

from typing import ClassVar

import attr
from openlineage.client.facet_v2 import DatasetFacet, RunFacet


@attr.define
class IntervalRunFacet(RunFacet):
    """The interval of the log that a task applied, and its source. An initial load has no interval."""

    source: str
    start: str
    stop: str
    _additional_skip_redact: ClassVar[list[str]] = ["source", "start", "stop"]


@attr.define
class PositionDatasetFacet(DatasetFacet):
    """A warehouse table after a task: its position in the log, its snapshot, and the staged rows of the interval.

    The snapshot id is a text, because JSON readers round large numbers.
    """

    position: str
    snapshot: str
    inserts: int
    updates: int
    deletes: int
    _additional_skip_redact: ClassVar[list[str]] = ["position", "snapshot"]
