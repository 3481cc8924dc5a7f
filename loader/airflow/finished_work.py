"""Work that needs no Spark: an earlier run has done it, or there is nothing to do."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel

from loader.extract.spec import BacklogResult, ExtractSpec, backlog_result, result_of
from loader.full_load.spec import FullLoadResult, FullLoadSpec
from loader.initial_load.run import find_staged_loads
from loader.initial_load.spec import InitialLoadSpec
from loader.materialise.load.load_notes import find_noted_loads
from loader.materialise.merge.cadence import utc_now
from loader.materialise.merge.postponement import Postponement
from loader.materialise.merge.table_results import results_of_record
from loader.materialise.spec import LoadSpec, MaterialiseResult, MaterialiseSpec
from loader.model.table import TableName
from loader.pipeline import Job
from loader.staging.chain import PlanChain
from loader.staging.layout import published_key
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.notes.pauses import Pauses
from loader.staging.notes.quarantine import Quarantines
from loader.store.registry import open_store

_LOG = logging.getLogger(__name__)


def done_before(job: Job, *, named: bool = False) -> dict[str, Any] | None:
    """Return the result of a job that was done before; None if it must run.

    Args:
        job: of the task.
        named: whether a person named the tables of an initial load. Then the job checks the warehouse in any case.
    """
    found: BaseModel | None = None
    if job.name == "extract" and isinstance(job.spec, ExtractSpec):
        found = _staged(job.spec)
    elif isinstance(job.spec, MaterialiseSpec):
        found = _published(job.spec)
    elif isinstance(job.spec, InitialLoadSpec):
        found = find_staged_loads(job.spec)
    elif isinstance(job.spec, LoadSpec) and not (named and job.spec.manifests):
        found = find_noted_loads(job.spec)
        if found and job.spec.manifests:
            _LOG.info(
                "all loads are in the warehouse already; name tables in the run's form to check the warehouse again"
            )
    return found.model_dump(mode="json") if found else None


def loaded_before(spec: FullLoadSpec) -> FullLoadResult | None:
    """Return the result of an initial load whose tables are all in the warehouse; None if one must be loaded.

    The warehouse itself is not read; see find_noted_loads.
    """
    read = find_staged_loads(spec.read)
    load = find_noted_loads(spec.load.model_copy(update={"manifests": read.manifests})) if read else None
    return FullLoadResult(read=read, load=load) if read and load else None


def _staged(spec: ExtractSpec) -> BacklogResult | None:
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    extracts = []
    for manifest in chain.manifests_from(spec.generation, spec.start_seqno):
        if manifest.left_out:
            return None  # the missing rows may have been backfilled since
        extracts.append(result_of(manifest, "already"))
        if manifest.stop_seqno >= spec.through_seqno:
            return backlog_result(extracts)
    return None


def _published(spec: MaterialiseSpec) -> MaterialiseResult | None:
    """Return the result of the newest published record, if it has the stop of the spec or a later one."""
    store = open_store(spec.staging_root)
    newest = PlanChain(store, spec.source).newest_published(spec.generation)
    if newest is None:
        return None
    start, record = newest
    if spec.through_seqno is None or record.stop_seqno < spec.through_seqno:
        return None
    if not record.is_of(spec.catalog.place):
        return None  # its tables are in another warehouse
    if OvertakenLoads(store, spec.source).contradict(record.behind):
        return None  # an initial load set a table back: the log after it must be merged again
    quarantined = Quarantines(store, spec.source).all()
    now = None if spec.now else utc_now()
    pauses = Pauses(store, spec.source).all() if record.postponed else {}
    postponed = Postponement(pauses, record, spec.rules, now).of_record() if record.postponed else []
    stopped = record.behind.keys() - record.postponed.keys()
    if postponed is None or any(TableName.parse(name) not in quarantined for name in stopped):
        return None  # a table was released or resumed, or is due, and can be merged
    if any(str(table) in record.tables for table in quarantined):
        return None  # a later run with the same stop quarantined a table, which was rolled back or dropped
    return MaterialiseResult(
        tables=tuple(results_of_record(record, quarantined, "already", postponed=postponed)),
        stop=record.stop,
        stop_seqno=record.stop_seqno,
        published=published_key(spec.source, spec.generation, start),
    )
