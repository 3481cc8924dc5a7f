"""Status of a source and its tables, for people."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from loader.initial_load.load_states import LoadState, unfinished_loads
from loader.model.table import TableName
from loader.pipeline.chain.chain_begin import chain_of
from loader.pipeline.reports.lag import SourceLag, newest_record, source_lag
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Published


class TableState(BaseModel):
    """A table in the newest published record; `exact`: its applied position is past the end of its initial load."""

    model_config = ConfigDict(frozen=True)

    table: str
    applied_seqno: int
    snapshot: int
    exact: bool


class SourceStatus(SourceLag):
    """The status of a source.

    Attributes:
        tables: those of the newest published record.
        loads: initial loads that are not in the warehouse yet.
    """

    tables: tuple[TableState, ...]
    loads: tuple[LoadState, ...] = ()


def status(settings: SourceSettings) -> SourceStatus:
    """Return the status of the source.

    Raises:
        LoaderError: the source was never loaded, or the store does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    newest = newest_record(chain)
    return SourceStatus(
        **dict(source_lag(settings)),
        tables=tuple(
            TableState(
                table=name,
                applied_seqno=table.applied,
                snapshot=table.snapshot,
                exact=newest.stop_seqno >= _exact_at(chain, TableName.parse(name)),
            )
            for name, table in sorted(newest.tables.items())
        )
        if newest
        else (),
        loads=tuple(_loads(chain, generation, newest)),
    )


def _loads(chain: PlanChain, generation: Generation, newest: Published | None) -> Iterator[LoadState]:
    """Yield the loads that are not in the warehouse.

    A table in the newest published record counts as loaded: older versions of the loader did not note finished loads.
    """
    published = newest.tables if newest else {}
    for load in unfinished_loads(chain.store, chain.source, generation.name):
        if not load.finished or load.table not in published:
            yield load


def _exact_at(chain: PlanChain, table: TableName) -> int:
    """Return the seqno from which the newest initial load of a table is exact; 0 without a load."""
    return max(chain.exact_seqno(generation.name, table) for generation in chain.generations())
