"""Publishing an interval that changes no table: its record is that of the interval before, up to a later stop.

No table is looked at, so no Spark is started. The newer record names the snapshots of the older one. They hold all
there is up to the new stop, since the log between has neither a row nor a statement for them.
"""

from __future__ import annotations

from loader.errors import GapError
from loader.materialise.merge.published_record import publish
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec, TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest, Published
from loader.staging.quarantine import Quarantine, Quarantines
from loader.store.registry import open_store


def carry_over(spec: MaterialiseSpec) -> MaterialiseResult | None:
    """Publish what is staged up to the spec's stop, if it changes no table; None if a table has to be looked at.

    Raises:
        LoaderError: the store does not answer, or a document is damaged.
    """
    store = open_store(spec.staging_root)
    chain = Chain(store, spec.source, spec.generation)
    record = chain.newest_published()
    last = _find_quiet_interval(chain, record, spec.through_seqno) if record else None
    if record is None or last is None:
        return None
    known = {TableName.parse(name) for name in (*record.tables, *record.behind)}
    if next(chain.tables_with_load(known), None) is not None:
        return None  # loaded since the record
    stopped = _stopped(Quarantines(store, spec.source), record)
    if stopped.keys() != record.behind.keys():
        return None  # released or quarantined since the record
    results = [
        TableResult(table=name, status="quarantined", applied_seqno=seqno, error=stopped[name].told())
        for name, seqno in record.behind.items()
    ]
    results += [
        TableResult(
            table=name,
            status="unchanged",
            applied_seqno=table.applied,
            snapshot=table.snapshot,
            complete_through=last.stop_seqno,
        )
        for name, table in record.tables.items()
    ]
    captured = [one for one in results if chain.captures(last.start_seqno, TableName.parse(one.table))]
    return MaterialiseResult(
        tables=tuple(sorted(captured, key=lambda one: one.table)),
        stop=last.stop,
        stop_seqno=last.stop_seqno,
        published=publish(chain, last, captured),
    )


def _stopped(quarantines: Quarantines, record: Published) -> dict[str, Quarantine]:
    """The tables that are quarantined where the record has them; one that has moved on since is quarantined no more."""
    found = {str(table): one for table, one in quarantines.all().items()}
    both = found.keys() & record.tables.keys()
    ended = {name for name in both if not quarantines.still(found[name].name, record.tables[name].applied)}
    return {name: one for name, one in found.items() if name not in ended}


def _find_quiet_interval(chain: Chain, record: Published, through: int | None) -> Manifest | None:
    """The interval that stops at `through`, if all from the record on have nothing for a table; None otherwise.

    They have to join up, and to be of one generation. The job says which one is missing, if one is.
    """
    try:
        last = chain.interval_ending_at(through)
        later = last is not None and last.stop_seqno > record.stop_seqno and last.generation == record.generation
        between = chain.covering_intervals(record.stop_seqno, last.stop_seqno) if last and later else ()
    except GapError:
        return None
    changed = any(one.barriers or one.left_out or any(file.rows for file in one.files) for one in between)
    of_one_log = all(one.generation == record.generation for one in between)
    return last if between and of_one_log and not changed else None
