"""Records of what operators skip: one for a whole transaction, or one for each table whose rows in it are skipped.

<source>/skips/<generation>/<seqno of the transaction, 20 digits>/transaction.json
                                                                 /<schema>/<table>.json

A record never changes. The manifests of the intervals that it shaped name its key. `transaction.withdrawn.json`
withdraws `transaction.json`: plans and extractions that begin later do not use it. The next record of the same rows is
`transaction.2.json`. No encoded name of a table contains a dot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count

from pydantic import BaseModel, ConfigDict

from loader.model.gtid import missing_gtids
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.document import Document
from loader.staging.documents import Plan
from loader.staging.entries import SkippedRows
from loader.staging.layout import encode, skips_folder
from loader.store.base import Store

_WHOLE = "transaction"
_RECORD, _WITHDRAWN = ".json", ".withdrawn.json"


class RowCounts(BaseModel):
    """The rows of a table in a transaction, by operation, and the row events that hold them.

    The rows are 0 if the row events cannot be decoded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    events: int
    inserts: int = 0
    updates: int = 0
    deletes: int = 0


class SkipRecord(Document):
    """A skipped transaction, or the skipped rows of one table in it.

    Attributes:
        generation: of the log in which it was found.
        start: where the transaction begins, `binlog.000054:123`.
        seqno: of the transaction.
        gtid: of the transaction; empty if it has none.
        table: `schema.table`; empty for the whole transaction.
        rows: the skipped rows by captured table.
        reason: why, in the words of the operator.
        by: who recorded or approved it.
        since: UTC time of the record.
    """

    source: str
    generation: str
    start: str
    seqno: int
    gtid: str = ""
    table: str = ""
    rows: tuple[RowCounts, ...]
    reason: str
    by: str
    since: datetime

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that lack rows, as `schema.table`."""
        return tuple(one.table for one in self.rows)

    def concerns(self, table: TableName) -> bool:
        """Return whether rows of a table are skipped."""
        return str(table) in self.tables


class Withdrawal(Document):
    """A withdrawn record. It has no effect if a plan or a manifest used the record already.

    Attributes:
        record: the key of the record.
        reason: why, in the words of the operator.
        by: who withdrew it.
        since: UTC time of the withdrawal.
    """

    source: str
    record: str
    reason: str
    by: str
    since: datetime


class Skips:
    """The records of a source, and their withdrawals. Each is written once."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._root = f"{skips_folder(source)}/"

    def keep(self, record: SkipRecord) -> tuple[str, SkipRecord]:
        """Create a record unless the same rows have one that is not withdrawn.

        Return its key, and the stored record: another process may be faster.
        """
        data = record.canonical()
        key = next(key for key in self._keys(record) if self._store.create(key, data) or not self.withdrawal(key))
        return key, self.get(key)

    def find(self, record: SkipRecord) -> tuple[str, SkipRecord] | None:
        """Return what skips the rows of a record already, with its key: the same record, or one of the transaction.

        A withdrawn record skips nothing.
        """
        same = (record.model_copy(update={"table": ""}), record)
        return next((found for one in same if (found := self._find_same(one))), None)

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Withdraw a record. The first withdrawal is kept."""
        self._store.create(_withdrawn(withdrawal.record), withdrawal.canonical())

    def withdrawal(self, key: str) -> Withdrawal | None:
        """Return the withdrawal of the record with this key, or None."""
        return Withdrawal.find(self._store, _withdrawn(key))

    def _find_same(self, record: SkipRecord) -> tuple[str, SkipRecord] | None:
        key = next(key for key in self._keys(record) if not self.withdrawal(key))
        found = SkipRecord.find(self._store, key)
        return (key, found) if found else None

    def _keys(self, record: SkipRecord) -> Iterator[str]:
        """Yield the keys that a record of these rows can have. A key is used once all before it are withdrawn."""
        name = TableName.parse(record.table)
        path = f"{encode(name.schema)}/{encode(name.table)}" if record.table else _WHOLE
        stem = f"{self._root}{encode(record.generation)}/{record.seqno:020d}/{path}"
        return (f"{stem}{f'.{number}' if number > 1 else ''}{_RECORD}" for number in count(1))

    def get(self, key: str) -> SkipRecord:
        """Return the record under a key."""
        return SkipRecord.read(self._store.get(key), key)

    def all(self) -> dict[str, SkipRecord]:
        """Return all records by key, in the order of generations and seqnos. Withdrawn ones are included."""
        return {key: self.get(key) for key in self._listed() if not key.endswith(_WITHDRAWN)}

    def places(self) -> list[tuple[str, int, str]]:
        """Return the generation, the seqno and the key of each record that is not withdrawn, without reading it."""
        keys = self._listed()
        live = [key for key in keys if not key.endswith(_WITHDRAWN) and _withdrawn(key) not in keys]
        found = ((*key.removeprefix(self._root).split("/")[:2], key) for key in live)
        return [(generation, int(seqno), key) for generation, seqno, key in found]

    def _listed(self) -> dict[str, None]:
        return dict.fromkeys(info.key for info in self._store.list(self._root))


def _withdrawn(key: str) -> str:
    """Return the key of the withdrawal of a record."""
    return key.removesuffix(_RECORD) + _WITHDRAWN


def find_skips(chain: PlanChain, plan: Plan) -> tuple[SkippedRows, ...]:
    """Return what operators skip in the interval of a plan, including what was recorded since it was planned.

    A transaction that was skipped in the log of an older server, and was not staged there, is found by its GTID.
    """
    skips, known = Skips(chain.store, chain.source), {one.key for one in plan.skips}
    places = skips.places()
    added = [
        _at_its_place(skips, key)
        for generation, seqno, key in places
        if generation == encode(plan.generation) and plan.start_seqno < seqno <= plan.stop_seqno and key not in known
    ]
    older = [one for one in places if one[0] != encode(plan.generation)]
    return (*plan.skips, *added, *(_from_older_logs(chain, skips, plan, older) if older else ()))


def named_skips(chain: PlanChain, plan: Plan, keys: Iterable[str]) -> tuple[SkippedRows, ...]:
    """Return the skips of a plan and of the records with these keys: those of a manifest."""
    skips, known = Skips(chain.store, chain.source), {one.key for one in plan.skips}
    records = ((key, skips.get(key)) for key in keys if key not in known)
    more = (_skipped(key, record, here=record.generation == plan.generation) for key, record in records)
    return (*plan.skips, *more)


def skips_between(store: Store, source: str, generation: str) -> Callable[[int, int], tuple[SkippedRows, ...]]:
    """Return a function that gives the skips of a generation with `start < seqno <= stop`. The store is listed once."""
    skips = Skips(store, source)
    places = [(seqno, key) for name, seqno, key in skips.places() if name == encode(generation)]
    return lambda start, stop: tuple(_at_its_place(skips, key) for seqno, key in places if start < seqno <= stop)


def _at_its_place(skips: Skips, key: str) -> SkippedRows:
    return _skipped(key, skips.get(key), here=True)


def _skipped(key: str, record: SkipRecord, *, here: bool) -> SkippedRows:
    return SkippedRows(key=key, place=record.start if here else "", gtid=record.gtid, table=record.table)


def _from_older_logs(
    chain: PlanChain, skips: Skips, plan: Plan, places: Sequence[tuple[str, int, str]]
) -> Iterator[SkippedRows]:
    """Yield the skips of older generations whose transactions come after the start of the interval, by GTID."""
    older = {encode(one.name): one for one in chain.lineage(plan.generation)[:-1]}
    known = ""
    for generation, seqno, key in places:
        if generation not in older or seqno <= chain.valid_until(older[generation]):
            continue
        known = known or chain.checkpoint(chain.require_generation(plan.generation), plan.interval.start).gtids
        record = skips.get(key)
        if record.gtid and missing_gtids(record.gtid, known):
            yield _skipped(key, record, here=False)
