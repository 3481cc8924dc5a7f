"""Every event of generated logs as the end and as the start of an interval: only what lies between transactions is taken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError, UsageError
from loader.extract.log_ranges import whole_segment
from loader.model.position import Interval, Position
from loader.pipeline.chain.limits import find_stops
from loader.reader.files.log_files import FolderFiles
from loader.reader.seek.position_spec import At
from loader.reader.seek.seek import Locator
from loader.settings import IntervalLimits
from loader.transport.file import FileTransport
from tests.unit.binlog.builder import LogBuilder
from tests.unit.extract.intervals import FILE, extracted, plan_of
from tests.unit.pipeline.site import ITEMS, ORDERS


class Generated:
    """A log of transactions of every shape, and where each begins and ends."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        self.log = LogBuilder(checksum=seed % 4 != 0)
        self.spans: list[tuple[int, int]] = []
        chance = random.Random(seed)
        for number in range(1, chance.randint(5, 13)):
            shape = chance.choice(["rows", "rows", "rows", "ddl", "empty", "xa", "one phase", "noise"])
            begin = self.log.end
            if shape == "noise":
                self.log.event(29, b"\x05hello")
                continue
            getattr(self, "_" + shape.replace(" ", "_"))(number, chance)
            if shape == "xa":
                self.spans.append((begin, self.log.end))
                begin = self.log.end
                self.log.decided(chance.choice(["COMMIT", "ROLLBACK"]), f"{number:02x}")
            self.spans.append((begin, self.log.end))
        self.log.rotate()
        self.data = bytes(self.log.data)
        (folder / FILE).write_bytes(self.data)

    def _rows(self, number: int, chance: random.Random) -> None:
        self.log.begin(number)
        for _ in range(chance.randint(1, 3)):
            table, table_id = chance.choice([(ORDERS, 100), (ITEMS, 101)])
            self.log.table_map(table, table_id)
            row = (number, 1) if table is ITEMS else (number, "x" * chance.randint(0, 90))
            for last in chance.choice([(True,), (False, True)]):
                self.log.write(table, row, table_id=table_id, last=last)
        self.log.xid()

    def _ddl(self, number: int, _: random.Random) -> None:
        self.log.gtid(number)
        self.log.query("CREATE TABLE other.x (a INT)")

    def _empty(self, number: int, _: random.Random) -> None:
        self.log.begin(number)
        self.log.query("COMMIT")

    def _xa(self, number: int, _: random.Random) -> None:
        self.log.prepared(ORDERS, (number, "xa"), xid=f"{number:02x}")

    def _one_phase(self, number: int, _: random.Random) -> None:
        self.log.prepared(ORDERS, (number, "xa"), xid=f"{number:02x}", one_phase=True)

    def around(self, offset: int) -> tuple[int, int] | None:
        """The transaction that a byte is inside of."""
        return next(((begin, end) for begin, end in self.spans if begin < offset < end), None)

    def offsets(self) -> list[int]:
        return [at for at, _, _ in self.log.events] + [self.log.end]


@pytest.fixture(params=range(20))
def generated(request: pytest.FixtureRequest, tmp_path: Path) -> Generated:
    return Generated(request.param, tmp_path)


def test_a_place_in_the_log_is_a_boundary_or_its_neighbours_are_named(generated: Generated) -> None:
    locator = Locator(FolderFiles(generated.folder))
    for offset in generated.offsets():
        around = generated.around(offset)
        if around is None:
            assert locator.find(At("", 1, offset)) == Position("binlog", 1, offset)
            continue
        with pytest.raises(UsageError, match="a log cannot be read from or to") as caught:
            locator.find(At("", 1, offset))
        assert caught.value.why == "it is inside a transaction"
        assert (caught.value.where["before"], caught.value.where["after"]) == tuple(map(str, around))


def test_no_interval_is_planned_to_the_inside_of_a_transaction(generated: Generated) -> None:
    transport = FileTransport(str(generated.folder))
    for offset in generated.offsets()[1:]:
        interval = Interval(Position("binlog", 1, 4), Position("binlog", 1, offset))
        planned = find_stops(transport, interval, IntervalLimits(bytes=0, transactions=10**6))
        if generated.around(offset) is None:
            assert [stop.logpos for stop in planned] == [offset]
        else:
            with pytest.raises(BinlogFormatError):
                list(planned)


def test_no_interval_is_extracted_to_the_inside_of_a_transaction(generated: Generated) -> None:
    for offset in generated.offsets()[1:]:
        plan = plan_of(generated.data, 4, offset)
        span = whole_segment(FILE, 1, 4, offset, 4096)
        if generated.around(offset) is None:
            found = extracted(generated.data, plan, generated.folder, [span], f"to{offset}")
            assert found.manifest.stop == f"{FILE}:{offset}"
        else:
            with pytest.raises(BinlogFormatError):
                extracted(generated.data, plan, generated.folder, [span], f"to{offset}")


def test_no_interval_is_extracted_from_the_inside_of_a_transaction(generated: Generated) -> None:
    """But for the BEGIN behind a GTID event, which looks as on a server without GTIDs: no place there is ever given."""
    begins = {begin for begin, _ in generated.spans}
    second = {
        at
        for (before, _, _), (at, _, _) in zip(generated.log.events, generated.log.events[1:], strict=False)
        if before in begins
    }
    refused = 0
    for offset in generated.offsets()[:-1]:
        if generated.around(offset) is None or offset in second:
            continue
        plan = plan_of(generated.data, offset)
        span = whole_segment(FILE, 1, offset, len(generated.data), 4096)
        with pytest.raises(BinlogFormatError):
            extracted(generated.data, plan, generated.folder, [span], f"from{offset}")
        refused += 1
    assert refused or not any(end - begin > 200 for begin, end in generated.spans)
