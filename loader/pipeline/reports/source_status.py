"""Status of a source and its tables, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from pydantic import BaseModel, ConfigDict

from loader.initial_load.load_states import LoadState, unfinished_loads
from loader.model.table import TableName
from loader.pipeline.chain.interval_lookup import newest_record
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.lag import SourceLag, source_lag
from loader.pipeline.skips.states import SkipState, SkipStates, first_skip
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.published import Published

_AT_ONCE = 8
"""Requests to the store. Its client keeps ten connections, and each table needs some requests."""


class TableState(BaseModel):
    """A table in the newest published record.

    Attributes:
        exact: its applied position is past the end of its initial load, none of its rows was skipped since, and no
            load has set its position back since the record.
        skipped_at: the first transaction since its initial load in which an operator skipped its rows; empty if none.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    applied_seqno: int
    snapshot: int
    exact: bool
    skipped_at: str = ""

    @property
    def words(self) -> str:
        """The state in a few words."""
        if self.skipped_at:
            return f"lacks rows that were skipped at {self.skipped_at}"
        return "exact" if self.exact else "catching up"


class SourceStatus(SourceLag):
    """The status of a source.

    Attributes:
        tables: those of the newest published record.
        loads: initial loads that are not in the warehouse yet.
        skips: what operators skipped, ever.
    """

    tables: tuple[TableState, ...]
    loads: tuple[LoadState, ...] = ()
    skips: tuple[SkipState, ...] = ()


def status(settings: SourceSettings) -> SourceStatus:
    """Return the status of the source.

    Raises:
        LoaderError: the source was never loaded, or the store does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    newest = newest_record(chain, settings.catalog.place)
    skips = SkipStates(chain).all()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return SourceStatus(
            **dict(source_lag(settings)),
            tables=_table_states(chain, settings.catalog.place, newest, skips, pool) if newest else (),
            loads=tuple(_loads(chain, generation, newest, pool)),
            skips=skips,
        )


def _table_states(
    chain: PlanChain, warehouse: str, newest: Published, skips: Sequence[SkipState], pool: Executor
) -> tuple[TableState, ...]:
    """Return the states of the tables of a record, sorted. `pool`: for the requests to the store."""
    generations = [generation.name for generation in chain.generations()]
    overtaken = {load.table for load in OvertakenLoads(chain.store, chain.source).all()}

    def state(name: str) -> TableState:
        table, skipped_at = newest.tables[name], first_skip(chain, name, skips, warehouse)
        parsed = TableName.parse(name)
        exact_at = max(chain.loads.exact_seqno(generation, parsed) for generation in generations)
        return TableState(
            table=name,
            applied_seqno=table.applied,
            snapshot=table.snapshot,
            exact=not skipped_at and name not in overtaken and newest.stop_seqno >= exact_at,
            skipped_at=skipped_at,
        )

    return tuple(pool.map(state, sorted(newest.tables)))


def _loads(chain: PlanChain, generation: Generation, newest: Published | None, pool: Executor) -> Iterator[LoadState]:
    """Yield the loads that are not in the warehouse.

    A table in the newest published record counts as loaded: older versions of the loader did not note finished loads.
    """
    published = newest.tables if newest else {}
    for load in unfinished_loads(chain.store, chain.source, generation.name, pool):
        if not load.finished or load.table not in published:
            yield load
