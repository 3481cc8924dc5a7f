"""Publishes an interval that changes no table: the snapshots of the newest record are complete up to its stop.

The log between has neither rows nor statements for the tables of the record. So no table is read, and Spark does not
start.
"""

from __future__ import annotations

from collections.abc import Sequence

from loader.errors import GapError
from loader.materialise.merge.cadence import utc_now
from loader.materialise.merge.postponement import Postponement
from loader.materialise.merge.published_record import publish
from loader.materialise.merge.table_results import results_of_record
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.filters import CapturedTables
from loader.staging.notes.outdated_records import is_outdated
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.notes.pauses import Pauses
from loader.staging.notes.quarantine import Quarantines
from loader.staging.published import Published
from loader.store.registry import open_store


def carry_over(spec: MaterialiseSpec) -> MaterialiseResult | None:
    """Publish the staged intervals up to the spec's stop, if they change no table. Otherwise return None.

    Raises:
        LoaderError: the store does not answer, or a document is damaged.
    """
    store = open_store(spec.staging_root)
    chain = Chain(store, spec.source, spec.generation)
    record = chain.newest_published()
    quiet = _find_quiet_intervals(chain, record, spec.through_seqno) if record else ()
    if record is None or not quiet:
        return None
    if not record.is_of(spec.catalog.place):
        return None  # its snapshots are in another warehouse
    last, known = quiet[-1], {TableName.parse(name) for name in (*record.tables, *record.behind)}
    if not all(chain.captures(manifest.start_seqno, table) for manifest in quiet for table in known):
        return None  # an interval was planned without a table: its changes were not read
    if record.ahead:
        return None  # it does not have their snapshots
    if is_outdated(store, record.source, record.generation, record.stop_seqno):
        return None  # loaded, adopted or corrected since the record, or while a run made the record
    if next(chain.tables_with_load(known), None) is not None:
        return None  # loaded since the record
    if not all(map(CapturedTables(spec.tables), known)):
        return None  # excluded since the record
    if OvertakenLoads(store, spec.source).contradict(record.behind):
        return None  # an initial load set a table back: the log after it must be merged again
    pauses = Pauses(store, spec.source).all()
    postponed = Postponement(pauses, record, spec.rules, None if spec.now else utc_now()).of_record()
    quarantined = Quarantines(store, spec.source).all()
    # Only the warehouse tells whether a quarantined table of the record has moved: it may have been rolled back.
    stopped = {str(table) for table in quarantined if table not in pauses}
    if postponed is None or stopped != record.behind.keys() - record.postponed.keys():
        return None  # released, quarantined, paused or resumed since the record
    results = results_of_record(record, quarantined, "unchanged", last.stop_seqno, postponed)
    return MaterialiseResult(
        tables=tuple(results),
        stop=last.stop,
        stop_seqno=last.stop_seqno,
        published=publish(chain, last, results, spec.catalog.place),
    )


def _find_quiet_intervals(chain: Chain, record: Published, stop: int | None) -> Sequence[Manifest]:
    """Return the intervals after the record up to `stop`, if none of them changes a table; otherwise nothing.

    The intervals must be contiguous and of one generation. If an interval is missing, the Spark job reports it.
    """
    try:
        last = chain.interval_ending_at(stop)
        is_later = last is not None and last.stop_seqno > record.stop_seqno and last.generation == record.generation
        intervals = chain.covering_intervals(record.stop_seqno, last.stop_seqno) if last and is_later else ()
    except GapError:
        return ()
    changed = any(
        manifest.barriers or manifest.left_out or any(file.rows for file in manifest.files) for manifest in intervals
    )
    of_one_log = all(manifest.generation == record.generation for manifest in intervals)
    return intervals if of_one_log and not changed else ()
