"""The stages that run on Spark, each described by a Job. The caller submits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from loader.delta.spec import DeltaSpec
from loader.extract.spec import ExtractSpec
from loader.full_load.spec import FullLoadSpec
from loader.initial_load.documents import LoadPlan
from loader.initial_load.spec import InitialLoadSpec
from loader.materialise.maintain.spec import MaintainSpec
from loader.materialise.spec import AdoptSpec, LoadSpec, MaterialiseSpec, ReplaySpec, SnapshotsSpec
from loader.model.position import Position
from loader.pipeline.chain import table_registry
from loader.pipeline.chain.chain_begin import begin, begin_again, check_server
from loader.pipeline.chain.failover import generation_transport
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.job_kinds import Job
from loader.pipeline.reports.views import View
from loader.pipeline.upkeep.table_pauses import refuse_paused
from loader.settings import SourceSettings
from loader.staging.documents import Generation
from loader.verify.spec import TableSums, VerifySpec


def extract_job(settings: SourceSettings, start_seqno: int, through_seqno: int = 0) -> Job:
    """Return the job that extracts the interval at that start, and those after it up to a stop, within a run's time."""
    return Job("extract", _extract_spec(settings, start_seqno, through_seqno))


def reextract_job(settings: SourceSettings, start_seqno: int) -> Job:
    """Return the job that compares a staged interval with a second extraction."""
    return Job("reextract", _extract_spec(settings, start_seqno))


def restore_job(settings: SourceSettings, start_seqno: int) -> Job:
    """Return the job that restores lost or changed files of an interval."""
    return Job("restore", _extract_spec(settings, start_seqno))


def replay_job(
    settings: SourceSettings,
    since_seqno: int,
    tables: tuple[str, ...] = (),
    *,
    until_seqno: int = 0,
    publish: bool = False,
    approved_by: str = "",
) -> Job:
    """Return the job that compares tables with their changes after a seqno, and with `publish` corrects them.

    With `until_seqno`, only rows that changed up to it are compared, with their newest changes.
    """
    spec = ReplaySpec(
        **_tables(settings, chain_of(settings).require_generation()),
        since_seqno=since_seqno,
        until_seqno=until_seqno,
        tables=tables,
        publish=publish,
        approved_by=approved_by,
    )
    return Job("replay", spec)


def intervals_since(settings: SourceSettings, seqno: int) -> list[int]:
    """Return start seqnos of the staged intervals of the current generation that end after a seqno."""
    chain = chain_of(settings)
    generation = chain.require_generation()
    begun = chain.start_at_or_before(generation.name, seqno)
    start = generation.start_position.seqno(generation.shift) if begun is None else begun
    return [found.start_seqno for found in chain.manifests_from(generation.name, start) if found.stop_seqno > seqno]


def materialise_job(settings: SourceSettings, through_seqno: int | None = None, *, now: bool = False) -> Job:
    """Return the job that merges everything staged up to a stop (None: everything that is staged).

    `now`: also merge tables that are not due by their rules.
    """
    spec = _materialise_spec(settings, through_seqno, now=now)
    return Job("materialise", spec)


def delta_job(
    settings: SourceSettings, start_seqno: int, through_seqno: int, *, now: bool = False, report_unmerged: bool = False
) -> Job:
    """Return the job that extracts intervals from a start up to a stop, within a run's time, and merges them.

    `now`: see `materialise_job`. `report_unmerged`: see DeltaSpec.
    """
    spec = DeltaSpec(
        extract=_extract_spec(settings, start_seqno, through_seqno),
        materialise=_materialise_spec(settings, None, now=now),
        threads=settings.spark.threads,
        report_unmerged=report_unmerged,
    )
    return Job("delta", spec)


def verify_job(
    settings: SourceSettings,
    seqno: int,
    tables: tuple[TableSums, ...],
    applied: Mapping[str, int],
    gone: tuple[str, ...] = (),
) -> Job:
    """Return the job that compares tables with sums of the server's rows at a position; see VerifySpec."""
    spec = VerifySpec(
        catalog=settings.catalog, rules=settings.rules, seqno=seqno, tables=tables, gone=gone, applied=dict(applied)
    )
    return Job("verify", spec)


def maintain_job(settings: SourceSettings, tables: tuple[str, ...] = (), *, dry_run: bool = False) -> Job:
    """Return the job that maintains the source's tables, or only these. `dry_run`: it only reports what it would do."""
    spec = MaintainSpec(
        source=settings.name,
        generation=chain_of(settings).require_generation().name,
        staging_root=settings.staging_root,
        catalog=settings.catalog,
        tables=tables,
        keep_days=settings.maintain.keep_days,
        dry_run=dry_run,
    )
    return Job("maintain", spec)


def snapshots_job(settings: SourceSettings, found: View) -> Job:
    """Return the job that checks in the catalog whether the snapshots of a view still exist."""
    snapshots = {table.table: table.snapshot for table in found.tables}
    spec = SnapshotsSpec(catalog=settings.catalog, snapshots=snapshots)
    return Job("snapshots", spec)


def read_tables_job(settings: SourceSettings, tables: tuple[str, ...] = (), *, again: bool = False) -> Job:
    """Return the job that reads the captured tables, or only these; with `again` also tables that are already read.

    Raises:
        UsageError: a table that would be read again is paused.
    """
    if again:
        refuse_paused(settings, tables)
    generation = begin_again(settings) if again and not tables else begin(settings)
    table_registry.describe_tables(settings, chain_of(settings), generation, tables)
    spec = initial_load_spec(settings, generation, tables, str(check_server(settings)[1]) if again else "")
    return Job("read_tables", spec)


def initial_load_spec(
    settings: SourceSettings, generation: Generation, tables: tuple[str, ...], not_before: str = ""
) -> InitialLoadSpec:
    """Return the spec of an initial load of these tables, or of all captured tables if empty."""
    return InitialLoadSpec(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        shift=generation.shift,
        server=settings.server,
        read_from=settings.read_from,
        staging_root=settings.staging_root,
        only=tables,
        not_before=not_before,
        **settings.shaping(),
        chunk_rows=settings.chunk_rows,
        limits=settings.initial_load,
        modes=tuple((rule.tables, rule.mode) for rule in settings.rules),
    )


def adopt_job(settings: SourceSettings, plans: Sequence[LoadPlan], exact_at: Position) -> Job:
    """Return the job that takes over warehouse tables at the position of these loads."""
    first, generation = plans[0], chain_of(settings).require_generation()
    spec = AdoptSpec(
        **_tables(settings, generation),
        definitions=tuple(plan.table_schema for plan in plans),
        position=first.position,
        seqno=first.seqno,
        exact_at=str(exact_at),
        exact_at_seqno=exact_at.seqno(first.shift),
        unlogged={str(plan.name): plan.unlogged for plan in plans if plan.unlogged is not None},
        log=generation.log,
    )
    return Job("adopt", spec)


def full_load_job(settings: SourceSettings, tables: tuple[str, ...] = (), *, again: bool = False) -> Job:
    """Return the job that reads tables and loads them, both in one Spark application; see `read_tables_job`."""
    read, load = read_tables_job(settings, tables, again=again), load_tables_job(settings, ())
    spec = FullLoadSpec(
        read=cast("InitialLoadSpec", read.spec), load=cast("LoadSpec", load.spec), threads=settings.spark.threads
    )
    return Job("initial_load", spec)


def load_tables_job(settings: SourceSettings, manifests: tuple[str, ...]) -> Job:
    """Return the job that loads initial loads into the warehouse, by the keys of their manifests."""
    generation = chain_of(settings).require_generation()
    spec = LoadSpec(
        **_tables(settings, generation),
        manifests=manifests,
    )
    return Job("load_tables", spec)


def _tables(settings: SourceSettings, generation: Generation) -> dict[str, Any]:
    """Return the fields of TablesSpec."""
    return {
        "source": settings.name,
        "generation": generation.name,
        "staging_root": settings.staging_root,
        "catalog": settings.catalog,
        "rules": settings.rules,
    }


def _materialise_spec(settings: SourceSettings, through_seqno: int | None, *, now: bool) -> MaterialiseSpec:
    generation = chain_of(settings).require_generation()
    tables = _tables(settings, generation)
    return MaterialiseSpec(**tables, tables=settings.tables, through_seqno=through_seqno, now=now)


def _extract_spec(settings: SourceSettings, start_seqno: int, through_seqno: int = 0) -> ExtractSpec:
    generation = chain_of(settings).generation_of_interval(start_seqno)
    return ExtractSpec(
        source=settings.name,
        generation=generation.name,
        staging_root=settings.staging_root,
        start_seqno=start_seqno,
        transport=generation_transport(settings, generation),
        through_seqno=through_seqno,
        seconds=settings.run_minutes * 60,
    )
