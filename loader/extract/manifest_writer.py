"""The end of an extraction: find barriers, close the balance, build the manifest."""

from __future__ import annotations

from collections.abc import Sequence

from loader import __version__
from loader.errors import LOAD_ALL_AGAIN, DataError, GapError
from loader.extract.accounting.balance import close_balance
from loader.extract.ddl.barriers import find_barriers
from loader.extract.gtids.file_order import check_set
from loader.extract.gtids.marks import gtid_set
from loader.extract.interval_schemas import NO_SCHEMAS, SchemasAfter
from loader.extract.range_result import RangeResult
from loader.extract.repair.incomplete_tables import list_unlogged_tables, one_per_table
from loader.extract.repair.server_starts import empty_memory_tables
from loader.extract.repair.stale_columns import find_stale_tables
from loader.extract.xa.prepared_groups import NO_GROUPS, Settled, as_statement
from loader.model.gtid import GtidSet, MysqlGtidSet, missing_gtids, parse_gtid_set, union_gtids
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
    """Return the manifest of all ranges of a plan.

    XA commits whose rows are in no log file become barriers for all tables.

    Args:
        plan: of the interval.
        before: the state of the log at the start of the plan.
        segments: the bytes of the interval in each log file.
        results: of the interval's ranges.
        settled: the XA groups that are released, held or lost.
        released: results of the released XA groups.
        after: the schema fields at the stop.

    Raises:
        DataError, UnsupportedError: a statement stops the interval, or the balance does not close.
    """
    staged = [*results, *released]
    files = sorted((file for result in staged for file in result.files), key=lambda f: f.key.split("/", 4)[-1])
    schemas = {key: schema for result in staged for key, schema in result.schemas.items()}
    statements = [*(s for result in staged for s in result.statements), *map(as_statement, settled.lost)]
    barriers = find_barriers(statements, plan)
    emptied, unsure = empty_memory_tables(plan, results, barriers)
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
        barriers=tuple(sorted([*emptied, *barriers], key=lambda barrier: barrier.seqno)),
        held=settled.held,
        balance=close_balance(plan, segments, results, released),
        gtids=_gtids(plan, before, results),
        mark=_mark(plan, before, results),
        committed_at=_committed_at(results),
        schemas_after=after.digest,
        nameless=after.nameless,
        given=after.given,
        left_out=one_per_table(
            [
                *list_unlogged_tables(plan),
                *unsure,
                *find_stale_tables(plan, statements),
                *(one for result in staged for one in [*result.left_out.values(), *result.unlogged.values()]),
            ]
        ),
        skips=_skips(plan, results),
        loader_version=__version__,
    )


def _gtids(plan: Plan, before: Checkpoint, results: Sequence[RangeResult]) -> str:
    """Return the GTID set at the stop.

    Raises:
        GapError: a file starts after transactions that are missing from the log.
        LogReplaced: a file starts before transactions that were read.
        DataError: the log repeats transactions that were read before.
    """
    known, mariadb = before.gtids, plan.identity.kind == "mariadb"
    for result in results:
        if lost := missing_gtids(result.before, known):
            raise GapError(
                "the server's log files lack some of its transactions",
                why=f"{result.file} starts after {lost}: the server logged them in files of another name or folder",
                hint=LOAD_ALL_AGAIN,
                interval=plan.start_seqno,
            )
        seen = gtid_set(result.gtids, mariadb=mariadb)
        _check_new(plan, seen, known)
        known = str(union_gtids(known, seen))
    if mariadb:
        _check_files(plan, before.gtids, results)
    return known


def _check_files(plan: Plan, known: str, results: Sequence[RangeResult]) -> None:
    """Check the sets before the MariaDB files of an interval.

    Transactions that were read from another server can be missing before a file: they follow, or only the older server
    has them.
    """
    read, last, file = "" if plan.read_before else known, "", plan.start.rpartition(":")[0]
    for result in results:
        if result.file != file:
            check_set(result.file, result.before, read, last)
            last, file = "", result.file
        seen = gtid_set(result.gtids, mariadb=True)
        read, last = str(union_gtids(read, seen)), str(union_gtids(last, seen))


def _check_new(plan: Plan, seen: GtidSet, known: str) -> None:
    """Refuse repeated MySQL transactions. MariaDB's sets do not tell repeated from reordered transactions."""
    before, skipped = parse_gtid_set(known), parse_gtid_set(plan.read_before)
    if not isinstance(seen, MysqlGtidSet) or not isinstance(before, MysqlGtidSet):
        return
    new = seen.without(skipped) if isinstance(skipped, MysqlGtidSet) else seen
    if again := str(new.without(new.without(before))):
        raise DataError(
            "the log repeats transactions that were read before",
            why=f"transactions {again}: this server logged them in another order than the previous server",
            hint=f"set replica_preserve_commit_order=ON on replicas that can be promoted; then {LOAD_ALL_AGAIN}",
            interval=plan.start_seqno,
        )


def _skips(plan: Plan, results: Sequence[RangeResult]) -> tuple[str, ...]:
    """Return the keys of the records of operators that were used.

    Raises:
        DataError: no transaction of the interval begins where a record says.
    """
    used = set[str]().union(*(result.skips for result in results))
    if missing := [one for one in plan.skips if one.place and one.key not in used]:
        raise DataError(
            "the log has no transaction at a position where an operator skipped one",
            why=f"the record {missing[0].key} was made for another log",
            hint=f"withdraw it: loader skip {missing[0].place} --withdraw --reason TEXT; if a plan carries it,"
            f" {LOAD_ALL_AGAIN}",
            position=missing[0].place,
            interval=plan.start_seqno,
        )
    return tuple(sorted(used))


def _mark(plan: Plan, before: Checkpoint, results: Sequence[RangeResult]) -> Mark | None:
    """Return the mark of the stop, after the last transaction of its file, which an earlier interval may contain."""
    stop = plan.interval.stop
    marks = [result.mark for result in results if result.mark and result.file == stop.file]
    if before.position.file == stop.file and before.mark:
        marks.append(before.mark)
    return max(marks, key=lambda mark: mark.last, default=None)


def _committed_at(results: Sequence[RangeResult]) -> str:
    newest = max((result.committed for result in results), default=0)
    return moment(newest) if newest else ""
