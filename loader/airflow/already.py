"""Work that an earlier run has done, found without starting Spark: the result it had, with the status `already`."""

from __future__ import annotations

from typing import Any

from loader.extract.spec import BacklogResult, ExtractSpec, backlog_result, result_of
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec, TableResult
from loader.pipeline import Job
from loader.staging.chain import PlanChain
from loader.staging.layout import published_key
from loader.store.opening import open_store


def done_before(job: Job) -> dict[str, Any] | None:
    """The result of a job whose intervals are staged, or published in every table, already; None when it must run."""
    found: BacklogResult | MaterialiseResult | None = None
    if isinstance(job.spec, ExtractSpec):
        found = _staged(job.spec)
    elif isinstance(job.spec, MaterialiseSpec):
        found = _published(job.spec)
    return found.model_dump(mode="json") if found else None


def _staged(spec: ExtractSpec) -> BacklogResult | None:
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    extracts = []
    for manifest in chain.following(spec.generation, spec.start_seqno):
        if manifest.left_out:
            return None  # what it left out may have been given since
        extracts.append(result_of(manifest, "already"))
        if manifest.stop_seqno >= spec.through_seqno:
            return backlog_result(extracts)
    return None


def _published(spec: MaterialiseSpec) -> MaterialiseResult | None:
    """The newest record, when it is of the spec's stop or a later one."""
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    newest = chain.newest_published(spec.generation)
    if newest is None:
        return None
    start, record = newest
    if spec.through_seqno is None or record.stop_seqno < spec.through_seqno or record.behind:
        return None  # of tables behind, a run says which are still quarantined, and brings on the others
    tables = (
        TableResult(table=name, status="already", applied_seqno=table.applied, snapshot=table.snapshot)
        for name, table in sorted(record.tables.items())
    )
    return MaterialiseResult(
        tables=tuple(tables),
        stop=record.stop,
        stop_seqno=record.stop_seqno,
        published=published_key(spec.source, spec.generation, start),
    )
