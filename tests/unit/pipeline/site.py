"""A source over built logs: its real chain, store and extraction, without a server and without Spark."""

from __future__ import annotations

from pathlib import Path

from loader.extract.spec import TransportSettings
from loader.materialise.spec import CatalogSettings
from loader.model.position import Position
from loader.pipeline import chain_of
from loader.settings import IntervalLimits, Retention, SourceSettings
from loader.spark.settings import SparkSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Mark, Plan, Skip
from loader.staging.published import Published, PublishedTable
from loader.store.registry import open_store
from loader.transport.server.address import ServerAddress
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.extract.intervals import FILE, IDENTITY, extracted, pieces_of, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 4000)))
ITEMS = Table("shop", "items", (integer("id"), integer("line")))


MARK = Mark(log="first event", last=0, event="")
GENERATION = Generation(source="shop", name="0001", identity=IDENTITY, start=f"{FILE}:4", mark=MARK)


class Site:
    """A log of one file, and the chain of its intervals in `<folder>/staging` or another root."""

    def __init__(self, folder: Path, log: LogBuilder, root: str = "") -> None:
        self.folder = folder
        self.log = bytes(log.data)
        self.settings = settings_of(folder, root)
        self.store = open_store(self.settings.staging_root)
        self.chain: PlanChain = chain_of(self.settings)
        self.generation = self.chain.begin(GENERATION)

    def plan(self, stop: int) -> Plan:
        """Plan from where the chain ends to a byte of the log."""
        head = self.chain.newest_plan("0001")
        start = Position.parse(head.stop).logpos if head else 4
        return self.chain.extend(plan_of(self.log, start, stop))

    def attempt(self, plan: Plan, attempt: str = "a", pieces: int = 1) -> Manifest:
        """Stage the files of an interval without publishing them."""
        ranges = pieces_of(self.log, plan, self.folder, pieces)
        before = self.chain.checkpoint(self.generation, plan.interval.start)
        return extracted(self.log, plan, self.folder, ranges, attempt, before, self.store).manifest

    def extract(self, plan: Plan, attempt: str = "a") -> Manifest:
        """What the extraction does: nothing for an interval that is staged."""
        found = self.chain.manifest("0001", plan.start_seqno)
        return found or self.chain.publish(self.attempt(plan, attempt))

    def publish(self, plan: Plan, *tables: str, behind: dict[str, int] = {}) -> None:  # noqa: B006
        """What the materialisation writes once these tables have the interval, and others are quarantined."""
        record = Published(
            source="shop", generation="0001", stop=plan.stop, stop_seqno=plan.stop_seqno,
            tables={table: PublishedTable(snapshot=1, applied=plan.stop_seqno) for table in tables},
            behind=behind,
        )  # fmt: skip
        self.store.create(f"{self.chain.folder('0001', plan.start_seqno)}/published.json", record.canonical())

    def objects(self) -> dict[str, bytes]:
        """Everything in the staging root but hints, which decide nothing."""
        keys = (info.key for info in self.store.list("shop/") if "/newest/" not in info.key)
        return {key: self.store.get(key) for key in keys}


def settings_of(folder: Path, root: str = "") -> SourceSettings:
    """A source whose log and staging lie in a folder, and whose server is not there."""
    server = ServerAddress(host="127.0.0.1", port=1, user="nobody")
    return SourceSettings(
        name="shop",
        server=server,
        transport=TransportSettings(kind="file", server=server, path=str(folder)),
        tables=plan_of(b"", 4, 5).tables,
        skip=Skip(),
        update_rows="after",
        undecodable="error",
        part_bytes=4096,
        chunk_rows=1000,
        run_minutes=30,
        min_runway_hours=0,
        interval=IntervalLimits(),
        retention=Retention(),
        staging_root=root or f"file://{folder}/staging",
        catalog=CatalogSettings(type="hadoop", warehouse=f"{folder}/warehouse"),
        spark=SparkSettings(jars=str(folder)),
    )


def shop(transactions: int) -> tuple[LogBuilder, list[int]]:
    """A log of transactions on two tables, one after the other, and where each ends."""
    log, ends = LogBuilder(), []
    for number in range(transactions):
        log.begin(number + 1)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "o" * 50 * (number % 7)))
        if number % 2:
            log.table_map(ITEMS, 101)
            log.write(ITEMS, (number, 1), (number, 2), table_id=101)
        log.xid()
        ends.append(log.end)
    return log, ends
