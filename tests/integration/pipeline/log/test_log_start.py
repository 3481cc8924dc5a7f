"""Where a chain begins and where a run stops, as an operator chooses it, on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader import pipeline
from loader.errors import UsageError
from loader.model.position import Position
from loader.pipeline import IntervalChosen, chain_of, find_log_position, plan_interval
from loader.pipeline.chain.chain_begin import check_server
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop
from tests.support.replicas import address_of

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "mariadb"])
def unread(request: pytest.FixtureRequest, fresh_server: Callable[..., Server], tmp_path: Path) -> Iterator[Shop]:
    """A server with a table and two rows in three transactions; nothing of its log is planned."""
    server = fresh_server(request.param)
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    shop.run("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    shop.insert(1, 2)
    yield shop


def end(shop: Shop) -> Position:
    return check_server(shop.settings)[1]


def rows(shop: Shop, until: Position | None = None) -> int:
    """Stage the next interval, and return the number of inserted rows."""
    chosen = plan_interval(shop.settings, until=until)
    assert chosen is not None
    return sum(file.inserts for file in shop.extract(chosen).files)


def test_a_chain_begins_with_the_oldest_log_file(unread: Shop) -> None:
    unread.run("FLUSH BINARY LOGS")
    unread.insert(3)
    begun = pipeline.begin_at(unread.settings, "begin")
    assert (begun.start_position.lognum, begun.start_position.logpos, begun.gtids) == (1, 4, "")
    assert rows(unread) == 3
    assert pipeline.begin_at(unread.settings, "begin") == begun


def test_a_chain_begins_only_once(unread: Shop) -> None:
    first = pipeline.begin_at(unread.settings, "end")
    assert first.start_position == end(unread)
    with pytest.raises(UsageError, match="so it cannot begin at") as refused:
        pipeline.begin_at(unread.settings, "begin")
    assert str(first.start) in refused.value.what
    assert chain_of(unread.settings).generations() == [first]


def test_a_position_must_be_a_boundary(unread: Shop) -> None:
    here = end(unread)
    unread.insert(3)
    inside = Position(here.basename, here.lognum, here.logpos + 30)
    with pytest.raises(UsageError, match="cannot be read from or to") as refused:
        pipeline.begin_at(unread.settings, str(inside))
    assert refused.value.hint == f"the nearest boundaries are {here.logpos} and {end(unread).logpos}"
    assert chain_of(unread.settings).generation() is None
    pipeline.begin_at(unread.settings, str(here))
    assert rows(unread) == 1


def test_a_chain_begins_at_a_time(unread: Shop) -> None:
    ((last,),) = unread.run("SELECT UNIX_TIMESTAMP(NOW(6))")
    # MariaDB logs whole seconds.
    assert wait_until(lambda: unread.run("SELECT UNIX_TIMESTAMP()")[0][0] > last, 5)
    moment = datetime.fromtimestamp(int(last) + 1, UTC)
    unread.insert(3, 4)
    pipeline.begin_at(unread.settings, moment.isoformat())
    assert rows(unread) == 2
    with pytest.raises(UsageError, match="is in the future"):
        find_log_position(unread.settings, "2999-01-01")


def test_a_chain_begins_after_a_gtid_set(unread: Shop) -> None:
    gtids = executed(unread)
    unread.insert(3, 4, 5)
    begun = pipeline.begin_at(unread.settings, gtids)
    assert begun.gtids == gtids
    assert rows(unread) == 3


def test_a_gtid_set_that_the_server_lacks_is_refused(unread: Shop) -> None:
    """For example that of the primary, while the source is a replica that lags."""
    ahead = f"{executed(unread).rpartition('-')[0]}-1000"
    for act in (pipeline.begin_at, find_log_position):
        with pytest.raises(UsageError, match="does not have all transactions of the GTID set") as refused:
            act(unread.settings, ahead)
        assert refused.value.why.endswith("-1000")
    assert chain_of(unread.settings).generation() is None


def test_an_empty_gtid_set_is_the_first_transaction(unread: Shop) -> None:
    first = find_log_position(unread.settings, "gtid:")
    assert (first.lognum, first.logpos > 4) == (1, True)
    assert first == find_log_position(unread.settings, "1970-01-01")


def test_a_gtid_set_without_an_earlier_server_is_refused(unread: Shop) -> None:
    if unread.server.kind == "mariadb":
        pytest.skip("a domain that the set lacks is a stream of its own")
    other = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:1"
    unread.run(f"SET gtid_next = '{other}'", "INSERT INTO shop.orders VALUES (9, 'x')", "SET gtid_next = AUTOMATIC")
    with pytest.raises(UsageError, match="the GTID set lacks a server"):
        pipeline.begin_at(unread.settings, other)


def executed(shop: Shop) -> str:
    name = "gtid_executed" if shop.server.kind == "mysql" else "gtid_binlog_pos"
    return str(shop.run(f"SELECT @@global.{name}")[0][0])


def test_a_log_without_column_names_begins_at_its_end_only(unread: Shop) -> None:
    unread.run(f"SET GLOBAL binlog_row_metadata = {'MINIMAL' if unread.server.kind == 'mysql' else 'NO_LOG'}")
    with pytest.raises(UsageError, match="has no column names") as refused:
        pipeline.begin_at(unread.settings, "begin")
    assert refused.value.hint.startswith("loader begin --at end;")
    pipeline.begin_at(unread.settings, "end")
    unread.insert(3)
    assert rows(unread) == 1


def test_definitions_of_today_are_not_those_of_earlier_rows(unread: Shop) -> None:
    """The log has no names at first. The columns of that time are unknown, also if the table has two columns now."""
    metadata = "MINIMAL" if unread.server.kind == "mysql" else "NO_LOG"
    unread.run(f"SET GLOBAL binlog_row_metadata = {metadata}")
    here = end(unread)
    unread.insert(3)
    after = end(unread)
    unread.run("ALTER TABLE shop.orders RENAME COLUMN name TO title", "SET GLOBAL binlog_row_metadata = FULL")
    unread.insert(4)
    pipeline.begin_at(unread.settings, str(here))
    chosen = plan_interval(unread.settings)
    assert chosen is not None
    manifest = unread.extract(chosen)
    (left_out,) = manifest.left_out
    assert str(left_out.table) == "shop.orders"
    assert here < Position.parse(left_out.position) <= after
    assert [file.inserts for file in manifest.files] == [1]  # the row that has names


def test_a_run_stops_where_it_is_told(unread: Shop) -> None:
    pipeline.begin_at(unread.settings, "begin")
    until = end(unread)
    unread.insert(3)
    for _ in range(2):
        assert rows(unread, until) == 2
        assert chain_of(unread.settings).newest_plan("0001").stop == str(until)  # type: ignore[union-attr]
    assert rows(unread) == 1
    with pytest.raises(UsageError, match="which is after") as refused:
        plan_interval(unread.settings, until=until)
    assert refused.value.hint == f"loader run --until {end(unread)}"


def test_a_planned_interval_does_not_change(unread: Shop) -> None:
    pipeline.begin_at(unread.settings, "begin")
    until = end(unread)
    unread.insert(3)
    planned = plan_interval(unread.settings)
    with pytest.raises(UsageError, match="which is after"):
        plan_interval(unread.settings, until=until)
    assert plan_interval(unread.settings, until=end(unread)) == planned.model_copy(update={"new": False})  # type: ignore[union-attr]


def test_several_intervals_end_by_the_position(unread: Shop) -> None:
    pipeline.begin_at(unread.settings, "begin")
    unread.settings = unread.settings.model_copy(
        update={"interval": unread.settings.interval.model_copy(update={"transactions": 1})}
    )
    until = end(unread)
    unread.insert(3)
    chosen = plan_interval(unread.settings, until=until)
    assert isinstance(chosen, IntervalChosen)
    assert chosen.through_seqno == until.seqno()
    assert [plan.stop for plan in chain_of(unread.settings).unfinished("0001")][-1] == str(until)
