"""XA transactions of MariaDB that are rolled back after a crash, although the log has their commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.extract.range_result import RangeResult
from loader.extract.xa.outcomes import settle_groups
from loader.extract.xa.prepared_groups import Settled
from loader.extract.xa_events import Decided, Prepared, XaEvent
from loader.model.identity import Identity
from loader.model.position import Position
from loader.transport.file import FileTransport
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, integer
from tests.unit.extract.intervals import plan_of

ITEMS = Table("shop", "items", (integer("id"),))
XID = "X'61',X'',1"


def decided(file: int, end: int, *, commit: bool) -> Decided:
    return Decided(XID, f"binlog.{file:06d}", end, commit, file * 10**12 + end, 0)


def prepared(file: int, end: int) -> Prepared:
    return Prepared(XID, f"binlog.{file:06d}", end - 100, end, captured=True)


def settled(folder: Path, *events: XaEvent, kind: str = "mariadb") -> Settled:
    identity = Identity(kind=kind, version="10.11", server_id=1)  # type: ignore[arg-type]
    plan = plan_of(bytes(LogBuilder().insert(ITEMS, (1,)).data)).model_copy(update={"identity": identity})
    start = Position("binlog", 2, 4)
    plan = plan.model_copy(update={"start": str(start), "stop": "binlog.000003:4"})
    return settle_groups(plan, (), FileTransport(str(folder)), [RangeResult(xa=list(events))])


COMMITTED = (prepared(2, 500), decided(2, 600, commit=True))


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_rollback_after_the_commit_in_the_file_before(kind: str, tmp_path: Path) -> None:
    rollback = decided(3, 300, commit=False)
    found = settled(tmp_path, *COMMITTED, rollback, kind=kind)
    assert len(found.releases) == 1
    assert found.lost == ((rollback,) if kind == "mariadb" else ())


def test_a_rollback_of_another_transaction_of_that_name(tmp_path: Path) -> None:
    again = prepared(3, 200)
    assert settled(tmp_path, *COMMITTED, again, decided(3, 300, commit=False)).lost == ()
    assert settled(tmp_path, *COMMITTED, decided(2, 700, commit=False)).lost == ()  # there was no crash in between


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
def test_the_outcome_in_an_earlier_interval(outcome: str, tmp_path: Path) -> None:
    log = LogBuilder().prepared(ITEMS, (1,))
    log.decided(outcome)
    (tmp_path / "binlog.000001").write_bytes(bytes(log.data))
    (tmp_path / "binlog.000002").write_bytes(bytes(LogBuilder().insert(ITEMS, (2,)).data))
    rollback = decided(2, 300, commit=False)
    assert settled(tmp_path, rollback).lost == ((rollback,) if outcome == "COMMIT" else ())
