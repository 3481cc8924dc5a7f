"""Log files that are shorter where they are read than the server says: a mount or a copy that is behind.

The sweep cuts them at every byte, the short form next to the ends of events and here and there inside of them.

A cut file is never read past its last whole transaction, and never taken for all of the log: the end of an interval is
the server's word, and what does not reach it is refused until it does.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader.errors import BinlogFormatError, GapError, LoaderError
from loader.extract.spec import TransportSettings
from loader.model.position import Position
from loader.pipeline import chain_of, plan_interval
from loader.source import server_facts
from loader.transport.base import LogLags
from loader.transport.server.connection import connected
from tests.integration.pipeline.shops import Shop, begun
from tests.support.replicas import address_of
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

StartServer = Callable[..., Server]

_STEP = 1 if IN_SWEEP else 41  # bytes between two cuts


class Seen:
    """A shop whose log is read from a copy of its folder."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.server, self.folder = shop.server, folder
        folder.mkdir()
        transport = TransportSettings(kind="file", server=shop.settings.server, path=str(folder))
        self.shop = Shop(shop.server, shop.settings.model_copy(update={"transport": transport}))

    def copy(self) -> None:
        for path in self.server.log_dir.glob(f"{self.server.log_basename}.[0-9]*"):
            shutil.copy(path, self.folder / path.name)

    def end(self) -> Position:
        with connected(address_of(self.server)) as connection:
            return server_facts.log_end(connection)

    def settle(self) -> None:
        """MariaDB writes a checkpoint to a new file some time after it has begun it."""
        file = self.end().file
        written = f"SHOW BINLOG EVENTS IN '{file}'"
        if self.server.kind == "mariadb":
            assert wait_until(lambda: ("Binlog_checkpoint", file) in [(e[2], e[5]) for e in self.shop.run(written)], 60)

    def rows(self) -> int:
        return sum(file.rows for file in self.shop.delta().files)

    def planned(self) -> list[str]:
        return [plan.stop for plan in chain_of(self.shop.settings).unfinished("0001")]

    def files_staged(self) -> list[Path]:
        return sorted(Path(self.shop.settings.staging_root.removeprefix("file://")).rglob("*.csv"))


@pytest.fixture(params=["mysql", "mysql without GTIDs", "mariadb"])
def seen(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> Seen:
    kind, _, without = request.param.partition(" ")
    off = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"} if without else {}
    made = Seen(begun(fresh_server(kind, off), tmp_path), tmp_path / "seen")
    made.shop.insert(1)
    made.copy()
    assert made.rows() == 1
    return made


def cuts(log: bytes, begin: int, end: int) -> list[int]:
    """Bytes from `begin`, the start of an event, to before `end`: next to the start of each event, and every so many."""
    found, start = set(range(begin, end, _STEP)), begin
    while start < end:
        found |= {start - 1, start, start + 1}
        start += int.from_bytes(log[start + 9 : start + 13], "little")
    return sorted({*found, end - 1} & set(range(begin, end)))


def refused(what: Callable[[], Any], file: str) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        what()
    assert file in caught.value.where.get("file", "") + caught.value.why, caught.value
    assert caught.value.exit_code in (3, 4)
    return caught.value


def test_nothing_is_planned_of_a_newest_file_that_is_cut(seen: Seen) -> None:
    """Not even what is whole of it: the server's next word comes soon."""
    start = seen.end()
    seen.shop.insert(2, 3)
    stop = seen.end()
    seen.copy()
    path = seen.folder / stop.file
    whole = path.read_bytes()
    for cut in [*range(0, start.logpos, 97), *cuts(whole, start.logpos, stop.logpos)]:
        path.write_bytes(whole[:cut])
        error = refused(lambda: plan_interval(seen.shop.settings), stop.file)
        assert isinstance(error, LogLags) and error.retryable, f"cut at {cut}: {error!r}"
        assert seen.planned() == []
    path.write_bytes(whole)
    assert seen.rows() == 2


def test_nothing_is_staged_of_a_newest_file_that_is_cut(seen: Seen) -> None:
    seen.shop.insert(2, 3)
    seen.copy()
    chosen = plan_interval(seen.shop.settings)
    assert chosen is not None
    stop, staged = Position.parse(chosen.stop), seen.files_staged()
    path = seen.folder / stop.file
    whole = path.read_bytes()
    for cut in [*range(4), *cuts(whole, 4, stop.logpos)]:
        path.write_bytes(whole[:cut])
        assert isinstance(refused(lambda: seen.shop.extract(chosen), stop.file), LogLags), f"cut at {cut}"
        assert (seen.planned(), seen.files_staged()) == ([chosen.stop], staged)
    path.write_bytes(whole[: stop.logpos])
    assert sum(file.rows for file in seen.shop.extract(chosen).files) == 2


def test_no_interval_goes_over_a_file_that_is_cut(seen: Seen) -> None:
    """Cut between two transactions, a file before the last looks whole: the server knows better, and the GTIDs do."""
    begin = seen.end()
    seen.shop.insert(2)
    boundaries = (begin.logpos, seen.end().logpos)
    seen.shop.insert(3)
    end = seen.end()
    seen.shop.run("FLUSH BINARY LOGS")
    seen.settle()
    seen.shop.insert(4)
    seen.copy()
    path = seen.folder / begin.file
    whole = path.read_bytes()
    for cut in cuts(whole, begin.logpos, len(whole)):
        path.write_bytes(whole[:cut])
        assert isinstance(refused(lambda: plan_interval(seen.shop.settings), begin.file), LogLags), f"cut at {cut}"
        assert seen.planned() == []
    path.write_bytes(whole)
    chosen = plan_interval(seen.shop.settings)
    assert chosen is not None
    if not chain_of(seen.shop.settings).require_generation().gtids:
        return
    for cut in cuts(whole, begin.logpos, end.logpos):
        path.write_bytes(whole[:cut])
        with pytest.raises(LoaderError) as caught:
            seen.shop.extract(chosen)
        # MariaDB leaves a file as a crash cut it, so a cut alone is no damage there: the GTIDs behind it are proof.
        by_gtids = cut in boundaries or seen.server.kind == "mariadb"
        wanted = GapError if by_gtids else BinlogFormatError
        assert type(caught.value) is wanted, f"cut at {cut}: {caught.value}"
        assert seen.planned() == [chosen.stop]
    path.write_bytes(whole)
    assert sum(file.rows for file in seen.shop.extract(chosen).files) == 3
