"""A store with as many staged and published intervals as one likes, which are made when they are read.

It answers as S3 does, in pages of a thousand, and counts requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from loader.model.position import Position
from loader.staging.documents import Manifest, Plan, StagedFile, TableFilter
from loader.staging.hints import Hint
from loader.staging.notes.finished_work import Purged
from loader.staging.published import Published, PublishedTable
from loader.store.base import PAGE_NAMES, ObjectInfo, ObjectNotFound, Page
from tests.support.memory_store import MemoryStore
from tests.unit.pipeline.site import GENERATION, IDENTITY, MARK

CHAIN = "shop/0001/"
STEP = 1_000_000
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
PER_FILE = 1000
TABLE = "shop.orders"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def position(number: int) -> Position:
    """The start of an interval by its number."""
    return Position("binlog", 1 + number // PER_FILE, 4 + number % PER_FILE * STEP)


def forged_plan(number: int) -> Plan:
    return Plan(
        source="shop", generation="0001", identity=IDENTITY, start=str(position(number)),
        stop=str(position(number + 1)), shift=0, tables=TableFilter(include=("shop.*",)),
    )  # fmt: skip


def forged_manifest(number: int, table: str = TABLE) -> Manifest:
    plan = forged_plan(number)
    schema, _, name = table.partition(".")
    file = StagedFile(
        key=f"{CHAIN}{plan.start_seqno:020d}/a/shop/{name}/x/part-1.csv", schema_name=schema, table=name, schema_id="x",
        inserts=1, updates=0, deletes=0, bytes=1, sha256="", min_seqno=plan.start_seqno + 1, max_seqno=plan.stop_seqno,
    )  # fmt: skip
    return Manifest(
        source="shop", generation="0001", identity=IDENTITY, start=plan.start, stop=plan.stop,
        start_seqno=plan.start_seqno, stop_seqno=plan.stop_seqno, files=(file,), schemas={}, mark=MARK,
        loader_version="0", gtids=f"{UUID}:1-{number + 1}",
    )  # fmt: skip


class ForgedStore(MemoryStore):
    """`count` intervals are there from the start; all of them are published and old, and their files are purged.

    Attributes:
        behind: of the records.
        requests: so far, by method.
    """

    def __init__(self, count: int, behind: dict[str, int] | None = None) -> None:
        super().__init__()
        self.count = count
        self.behind = behind or {}
        self.requests: Counter[str] = Counter()
        self.objects[f"{CHAIN}generation.json"] = GENERATION.canonical()
        for kind in ("swept", "purged"):  # by a purge before
            first = position(count - 5).seqno()
            self.objects[f"{CHAIN}newest/{kind}.json"] = Hint(start_seqno=first).canonical()

    def get(self, key: str) -> bytes:
        self.requests["get"] += 1
        if key in self.objects:
            return self.objects[key]
        found = self._made(key)
        if found is None:
            raise ObjectNotFound("no such object", key=key)
        return found

    def create(self, key: str, data: bytes) -> bool:
        self.requests["create"] += 1
        return self._made(key) is None and super().create(key, data)

    @contextmanager
    def writing(self, key: str) -> Iterator[object]:  # type: ignore[override]
        self.requests["write"] += 1
        with super().writing(key) as sink:
            yield sink

    def folders(self, prefix: str) -> tuple[str, ...]:
        found = super().folders(prefix)
        if prefix == CHAIN:
            found = tuple(sorted({*found, *(self._name(number) for number in range(self.count))}))
        self.requests["list"] += 1 + len(found) // PAGE_NAMES
        return found

    def folders_after(self, prefix: str, after: str) -> Page:
        self.requests["list"] += 1
        mine = [name for name in super().folders(prefix) if name > after]
        if prefix != CHAIN:
            return Page(tuple(mine[:PAGE_NAMES]), len(mine) > PAGE_NAMES)
        first = self._first_after(after)
        forged = [self._name(number) for number in range(first, min(self.count, first + PAGE_NAMES + 1))]
        names = sorted({*mine, *forged})
        return Page(tuple(names[:PAGE_NAMES]), len(names) > PAGE_NAMES)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        found = [*super().list(prefix)]
        folder = prefix.removeprefix(CHAIN).strip("/")
        numbers = range(self.count) if prefix == CHAIN else [self._number(folder)] if folder.isdigit() else []
        for number in numbers:
            if number is not None and number < self.count:
                names = ("manifest.json", "plan.json", "published.json", "purged.json")
                found += [ObjectInfo(f"{CHAIN}{self._name(number)}/{name}", 1, EPOCH) for name in names]
        self.requests["list"] += 1 + len(found) // PAGE_NAMES
        return iter(sorted(found, key=lambda info: info.key))

    def _made(self, key: str) -> bytes | None:
        folder, _, name = key.removeprefix(CHAIN).partition("/")
        number = self._number(folder) if folder.isdigit() else None
        if number is None or number >= self.count:
            return None
        plan = forged_plan(number)
        if name == "plan.json":
            return plan.canonical()
        if name == "manifest.json":
            return forged_manifest(number).canonical()
        if name == "purged.json":
            return Purged(source="shop", generation="0001", start_seqno=plan.start_seqno).canonical()
        if name != "published.json":
            return None
        tables = {TABLE: PublishedTable(snapshot=1, applied=plan.stop_seqno)}
        return Published(
            source="shop", generation="0001", stop=plan.stop, stop_seqno=plan.stop_seqno, tables=tables,
            behind=self.behind, made={}, committed_at="2026-01-01 00:00:00.000000",
        ).canonical()  # fmt: skip

    def _name(self, number: int) -> str:
        return f"{position(number).seqno():020d}"

    def _number(self, name: str) -> int | None:
        """Of an interval by the name of its folder."""
        file, offset = divmod(int(name), 10**12)
        number, rest = divmod(offset - 4, STEP)
        return (file - 1) * PER_FILE + number if rest == 0 and 0 <= number < PER_FILE and file > 0 else None

    def _first_after(self, after: str) -> int:
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._name(middle) > after else (middle + 1, high)
        return low
