"""The stages that run on Spark, each described by a Job; whoever calls submits it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from loader.delta.spec import DeltaSpec
from loader.extract.spec import ExtractSpec
from loader.initial_load.spec import InitialLoadSpec
from loader.materialise.maintain.spec import MaintainSpec
from loader.materialise.spec import LoadSpec, MaterialiseSpec, ReplaySpec, SnapshotsSpec
from loader.model.position import Position
from loader.pipeline import table_registry
from loader.pipeline.failover import generation_transport
from loader.pipeline.planning import begin, begin_again, chain_of, check_server
from loader.pipeline.views import View
from loader.settings import SourceSettings
from loader.staging.documents import Generation

_PACKAGE = Path(__file__).resolve().parent.parent
_EXTRACT = _PACKAGE / "extract" / "jobs"
_MATERIALISE = _PACKAGE / "materialise" / "jobs"


@dataclass(frozen=True)
class Job:
    """A Spark application of the loader: its file and what it is told."""

    name: Literal[
        "read_tables",
        "load_tables",
        "extract",
        "again",
        "restore",
        "materialise",
        "delta",
        "maintain",
        "replay",
        "snapshots",
    ]
    file: Path
    spec: BaseModel

    @property
    def short(self) -> bool:
        """Whether it mostly ends within seconds: it reads what came since the last time, and not whole tables."""
        return self.name not in {"read_tables", "load_tables", "maintain", "replay"}


def extract_job(settings: SourceSettings, start_seqno: int, through_seqno: int = 0) -> Job:
    """The extraction of the interval that starts there, and of those after it up to a stop, within a run's time."""
    return Job("extract", _EXTRACT / "extract_job.py", _extract_spec(settings, start_seqno, through_seqno))


def reextract_job(settings: SourceSettings, start_seqno: int) -> Job:
    """The comparison of that interval, which is staged, with another extraction of it."""
    return Job("again", _EXTRACT / "reextract_job.py", _extract_spec(settings, start_seqno))


def restore_job(settings: SourceSettings, start_seqno: int) -> Job:
    """The putting back of files of that interval that are lost or changed."""
    return Job("restore", _EXTRACT / "restore_job.py", _extract_spec(settings, start_seqno))


def replay_job(settings: SourceSettings, since: str, tables: tuple[str, ...] = (), *, publish: bool = False) -> Job:
    """The comparison of tables with their changes after a position, or since the generation began; or their mending."""
    generation = chain_of(settings).require_generation()
    spec = ReplaySpec(
        **_tables(settings, generation),
        since_seqno=_seqno_of(generation, since),
        tables=tables,
        publish=publish,
    )
    return Job("replay", _MATERIALISE / "replay_job.py", spec)


def log_position(settings: SourceSettings, lognum: int, logpos: int) -> str:
    """The position in the source's log of that number and offset."""
    start = chain_of(settings).require_generation().start_position
    return str(Position(start.basename, lognum, logpos))


def intervals_since(settings: SourceSettings, since: str) -> list[int]:
    """Start seqnos of the staged intervals of the current generation with a part after that position."""
    chain = chain_of(settings)
    generation = chain.require_generation()
    seqno = _seqno_of(generation, since)
    begun = chain.start_at_or_before(generation.name, seqno)
    start = generation.start_position.seqno(generation.shift) if begun is None else begun
    return [found.start_seqno for found in chain.manifests_from(generation.name, start) if found.stop_seqno > seqno]


def _seqno_of(generation: Generation, since: str) -> int:
    """The seqno of a position of the current generation; what is before it was never read under these positions."""
    return max(Position.parse(since), generation.start_position).seqno(generation.shift)


def materialise_job(settings: SourceSettings, through_seqno: int | None = None) -> Job:
    """The materialisation of everything staged up to that stop (None: all that is staged)."""
    spec = _materialise_spec(settings, through_seqno)
    return Job("materialise", _MATERIALISE / "materialise_job.py", spec)


def delta_job(settings: SourceSettings, start_seqno: int, through_seqno: int) -> Job:
    """The extraction of the intervals from that start up to that stop, within a run's time; the materialisation."""
    spec = DeltaSpec(
        extract=_extract_spec(settings, start_seqno, through_seqno),
        materialise=_materialise_spec(settings, None),
        threads=settings.spark.threads,
    )
    return Job("delta", _PACKAGE / "delta" / "job.py", spec)


def maintain_job(settings: SourceSettings, tables: tuple[str, ...] = (), *, dry_run: bool = False) -> Job:
    """The maintenance of the source's tables, or of these only; `dry_run`: it only says what there is to do."""
    spec = MaintainSpec(
        source=settings.name,
        generation=chain_of(settings).require_generation().name,
        staging_root=settings.staging_root,
        catalog=settings.catalog,
        tables=tables,
        keep_days=settings.maintain.keep_days,
        dry_run=dry_run,
    )
    return Job("maintain", _MATERIALISE / "maintain_job.py", spec)


def snapshots_job(settings: SourceSettings, found: View) -> Job:
    """The look into the catalog whether the snapshots of a view are still there."""
    snapshots = {table.table: table.snapshot for table in found.tables}
    spec = SnapshotsSpec(catalog=settings.catalog, snapshots=snapshots)
    return Job("snapshots", _MATERIALISE / "snapshots_job.py", spec)


def read_tables_job(settings: SourceSettings, tables: tuple[str, ...] = (), *, again: bool = False) -> Job:
    """The reading of the initial load: of the captured tables, or of these only; `again`: also of those it has read."""
    generation = begin_again(settings) if again and not tables else begin(settings)
    table_registry.describe_tables(settings, chain_of(settings), generation, tables)
    spec = InitialLoadSpec(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        shift=generation.shift,
        server=settings.server,
        staging_root=settings.staging_root,
        only=tables,
        not_before=str(check_server(settings)[1]) if again else "",
        **settings.shaping(),
        chunk_rows=settings.chunk_rows,
    )
    return Job("read_tables", _PACKAGE / "initial_load" / "job.py", spec)


def load_tables_job(settings: SourceSettings, manifests: tuple[str, ...]) -> Job:
    """The materialisation of initial loads, by the keys of their manifests."""
    generation = chain_of(settings).require_generation()
    spec = LoadSpec(
        **_tables(settings, generation),
        manifests=manifests,
    )
    return Job("load_tables", _MATERIALISE / "load_job.py", spec)


def _tables(settings: SourceSettings, generation: Generation) -> dict[str, Any]:
    """See TablesSpec."""
    return {
        "source": settings.name,
        "generation": generation.name,
        "staging_root": settings.staging_root,
        "catalog": settings.catalog,
        "rules": settings.rules,
    }


def _materialise_spec(settings: SourceSettings, through_seqno: int | None) -> MaterialiseSpec:
    generation = chain_of(settings).require_generation()
    return MaterialiseSpec(**_tables(settings, generation), through_seqno=through_seqno)


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
