"""The end of an extraction: statements judged, the accounts closed, the manifest."""

from __future__ import annotations

from collections.abc import Sequence

from loader import __version__
from loader.errors import LOAD_ALL_AGAIN, DataError, GapError
from loader.extract.accounting.balance import close_balance
from loader.extract.ddl.barriers import find_barriers
from loader.extract.gtids.marks import gtid_set
from loader.extract.interval_schemas import NO_SCHEMAS, SchemasAfter
from loader.extract.range_result import RangeResult
from loader.extract.repair.incomplete_tables import first_per_table
from loader.extract.xa.prepared_groups import NO_GROUPS, Settled, as_statement
from loader.model.gtid import GtidSet, MysqlGtidSet, joined, lacking, parse_gtid_set
from loader.model.moment import moment
from loader.staging.chain import Checkpoint
from loader.staging.documents import Manifest, Mark, Plan
from loader.transport.base import Segment


def build_manifest(
    plan: Plan,
    before: Checkpoint,
    segments: Sequence[Segment],
    results: Sequence[RangeResult],
    settled: Settled = NO_GROUPS,
    released: Sequence[RangeResult] = (),
    after: SchemasAfter = NO_SCHEMAS,
) -> Manifest:
    """The manifest of all ranges of a plan, and of the groups that were held and are released in it.

    `before`: how the log stood where the plan starts. `segments`: the interval's bytes, by log file. `after`: of the
    tables at its stop. Commits of XA transactions whose rows are in no log file stop all tables.

    Raises:
        DataError, UnsupportedError: a statement that stops the interval, or accounts that do not close.
    """
    staged = [*results, *released]
    files = sorted((file for result in staged for file in result.files), key=lambda f: f.key.split("/", 4)[-1])
    schemas = {key: schema for result in staged for key, schema in result.schemas.items()}
    return Manifest(
        source=plan.source,
        generation=plan.generation,
        identity=plan.identity,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        files=tuple(files),
        schemas={key: schemas[key].as_dict() for key in sorted(schemas)},
        barriers=find_barriers(
            [*(s for result in staged for s in result.statements), *map(as_statement, settled.lost)], plan
        ),
        held=settled.held,
        balance=close_balance(plan, segments, results, released),
        gtids=_gtids(plan, before, results),
        mark=_mark(plan, before, results),
        committed_at=_committed_at(results),
        schemas_after=after.digest,
        nameless=after.nameless,
        given=after.given,
        left_out=first_per_table(one for result in staged for one in result.left_out.values()),
        loader_version=__version__,
    )


def _gtids(plan: Plan, before: Checkpoint, results: Sequence[RangeResult]) -> str:
    """The set at the stop.

    Raises:
        GapError: a file begins behind transactions that were not in the log.
        DataError: the log holds some that were read before.
    """
    known = before.gtids
    for result in results:
        if lost := lacking(result.before, known):
            raise GapError(
                "transactions of the server are in none of its log files that were read",
                why=f"{result.file} begins behind {lost}: the server logged them under another name, or somewhere else",
                hint=LOAD_ALL_AGAIN,
                interval=plan.start_seqno,
            )
        seen = gtid_set(result.gtids, mariadb=plan.identity.kind == "mariadb")
        _check_new(plan, seen, known)
        known = str(joined(known, seen))
    return known


def _check_new(plan: Plan, seen: GtidSet, known: str) -> None:
    """MariaDB's sets do not tell a transaction that is there twice from one that is out of order: it is not asked."""
    before, skipped = parse_gtid_set(known), parse_gtid_set(plan.read_before)
    if not isinstance(seen, MysqlGtidSet) or not isinstance(before, MysqlGtidSet):
        return
    new = seen.without(skipped) if isinstance(skipped, MysqlGtidSet) else seen
    if again := str(new.without(new.without(before))):
        raise DataError(
            "the log holds transactions again that were read before",
            why=f"they are {again}: this server logged them in another order than the one before it",
            hint=f"set replica_preserve_commit_order=ON on replicas that may be promoted; then {LOAD_ALL_AGAIN}",
            interval=plan.start_seqno,
        )


def _mark(plan: Plan, before: Checkpoint, results: Sequence[RangeResult]) -> Mark | None:
    """The mark of the stop: behind the last transaction of its file, be it one of an interval before."""
    stop = plan.interval.stop
    marks = [result.mark for result in results if result.mark and result.file == stop.file]
    if before.position.file == stop.file and before.mark:
        marks.append(before.mark)
    return max(marks, key=lambda mark: mark.last, default=None)


def _committed_at(results: Sequence[RangeResult]) -> str:
    newest = max((result.committed for result in results), default=0)
    return moment(newest) if newest else ""
