"""A log that is not what was read is refused, each way by an error of its own."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from loader import pipeline
from loader.doctor.page import continues
from loader.errors import GapError, LoaderError, UsageError
from loader.materialise.plan.interval_chain import Chain
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import TableName
from loader.pipeline import chain_of, find_log_position, plan_interval
from loader.source.continuity import (
    LogPurged,
    LogRenamed,
    LogReplaced,
    LogReset,
    LogShortened,
    ServerRestored,
)
from loader.staging.documents import Followed
from loader.store.registry import open_store
from tests.integration.pipeline.shops import (
    Shop,
    StartServer,
    begun,
    purge,
    refused,
    reset,
    shop,
    sizes,
)

pytestmark = pytest.mark.integration
__all__ = ["shop"]  # fixtures


def test_gtids_and_marks_go_from_interval_to_interval(shop: Shop) -> None:
    chain = chain_of(shop.settings)
    generation = chain.require_generation()
    variable = "gtid_executed" if shop.server.kind == "mysql" else "gtid_binlog_pos"
    for number in (3, 4):
        shop.insert(number)
        manifest = shop.delta()
        assert manifest.gtids == shop.run(f"SELECT @@global.{variable}")[0][0].replace("\n", "")
        assert manifest.mark and manifest.mark.last and manifest.mark.log == cast("Any", generation.mark).log
    shop.run("FLUSH BINARY LOGS")
    manifest = shop.delta()
    assert manifest.mark and manifest.mark.last == 0
    shop.insert(5)
    assert shop.delta().gtids == shop.run(f"SELECT @@global.{variable}")[0][0].replace("\n", "")


def test_a_reset_log(shop: Shop) -> None:
    shop.run("FLUSH BINARY LOGS")
    shop.insert(3)
    shop.delta()
    reset(shop)
    shop.insert(4)
    refused(shop, LogReset, "the log ends before the position where reading continues")


def test_a_reset_log_that_was_filled_past_the_position(shop: Shop) -> None:
    before = sizes(shop.server)
    reset(shop)
    shop.insert(*range(10, 30))
    assert all(sizes(shop.server)[file] > size for file, size in before.items())
    refused(shop, LogReplaced, "the log file was replaced by another one of the same name")


def test_a_file_of_the_same_name_with_another_content(shop: Shop, tmp_path: Path) -> None:
    """The GTIDs go on, the files are others: as after a restore without them."""
    shop.insert(3)
    log = shop.server.log_dir / next(iter(sizes(shop.server)))
    shop.server.stop()
    changed = bytearray(log.read_bytes())
    changed[4] ^= 1  # a second earlier or later
    end = 4 + int.from_bytes(changed[13:17], "little")
    changed[end - 4 : end] = zlib.crc32(changed[4 : end - 4]).to_bytes(4, "little")
    log.write_bytes(changed)
    shop.server.start()
    refused(shop, LogReplaced, "the log file was replaced by another one of the same name")


def test_a_restored_server(shop: Shop, tmp_path: Path) -> None:
    """A copy of the data folder from before the last transactions that were read."""
    shop.server.stop()
    shutil.copytree(shop.server.data_dir, tmp_path / "backup", symlinks=True)
    shop.server.start()
    shop.insert(3, 4)
    shop.delta()
    shop.server.stop()
    shutil.rmtree(shop.server.data_dir)
    shutil.copytree(tmp_path / "backup", shop.server.data_dir, symlinks=True)
    shop.server.start()
    with pytest.raises((LogShortened, LogReset, ServerRestored, LogReplaced)):
        plan_interval(shop.settings)
    shop.insert(*range(10, 30))
    with pytest.raises((ServerRestored, LogReplaced)):
        plan_interval(shop.settings)


def test_a_log_that_lost_its_end(shop: Shop) -> None:
    log = shop.server.log_dir / next(iter(sizes(shop.server)))
    shop.server.stop()
    log.write_bytes(log.read_bytes()[:-200])
    shop.server.start()
    with pytest.raises((LogShortened, ServerRestored)):
        plan_interval(shop.settings)


def test_purged_files(shop: Shop) -> None:
    newest = ""
    for number in (3, 4):
        shop.insert(number)
        shop.run("FLUSH BINARY LOGS")
        newest = list(sizes(shop.server))[-1]
    position = chain_of(shop.settings).newest_checkpoint(chain_of(shop.settings).require_generation()).position
    purge(shop.server, newest)
    refused(shop, LogPurged, "the server purged a log file that is still needed")
    with pytest.raises(LogPurged) as caught:
        plan_interval(shop.settings)
    assert f"[{position}, {newest}:4)" in caught.value.why


def test_a_log_that_is_called_otherwise(shop: Shop) -> None:
    """It begins anew, and is followed if everything before it was read, where the server still knows its GTIDs."""
    shop.insert(3)
    shop.server.restart({"log_bin": "other"})
    shop.insert(4)
    if shop.server.kind == "mariadb":  # which keeps what GTIDs were logged in a file beside the log
        refused(shop, LogRenamed, "the server's log is now named other")
    else:
        refused(shop, LogPurged, "purged transactions from its log before they were read")
    # Under its old name again: what was logged under the other one is nowhere. MariaDB does not know of it any more.
    shop.server.restart({"log_bin": "binlog"})
    if shop.server.kind == "mysql":
        refused(shop, LogPurged, "purged transactions from its log before they were read")


@pytest.mark.parametrize("index", [{}, {"log_bin_index": "binlog.index"}], ids=["another index", "the same index"])
def test_a_log_that_is_called_otherwise_is_followed_once_all_was_read(shop: Shop, index: dict[str, str]) -> None:
    if shop.server.kind == "mariadb":
        pytest.skip("a new log of MariaDB does not know the GTIDs of the one before")
    shop.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")  # the old name has the higher numbers
    shop.server.restart({"log_bin": "other"} | index)
    for number in (5, 6):
        shop.insert(number)
        found = shop.delta()
        assert (found.generation, sum(file.rows for file in found.files)) == ("0002", 1)
        assert found.start.startswith("other.")


@pytest.mark.parametrize("passed", [False, True], ids=["fewer transactions than before", "more"])
def test_a_mariadb_log_with_another_name_is_followed_by_hand(
    passed: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    """Its GTIDs begin again at 1. Once their numbers are higher than those read, the log seems to continue."""
    shop = begun(fresh_server("mariadb"), tmp_path)
    shop.insert(1, 2)
    shop.delta()
    shop.server.restart({"log_bin": "other"})
    shop.insert(*range(10, 20 if passed else 12))
    refused(shop, LogRenamed, "the server's log is now named other")
    with pytest.raises(LogRenamed) as caught:
        plan_interval(shop.settings)
    assert "loader follow --at other.000001:4" in caught.value.hint
    with pytest.raises(LogRenamed):
        continues(shop.settings)
    pipeline.follow_to(shop.settings, Position("other", 1, 4))
    found = shop.delta()
    assert (found.generation, sum(file.rows for file in found.files)) == ("0002", 10 if passed else 2)
    shop.insert(20)
    assert sum(file.rows for file in shop.delta().files) == 1


def test_a_domain_that_the_server_forgot(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    shop.run("SET SESSION gtid_domain_id = 5", "INSERT INTO shop.orders VALUES (1, 'x')")
    shop.insert(2)
    assert "5-1-1" in shop.delta().gtids
    shop.run("FLUSH BINARY LOGS")
    shop.insert(3)
    shop.delta()
    purge(shop.server, list(sizes(shop.server))[-1])
    shop.run("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (5)")
    for number in (4, 5):
        shop.insert(number)
        assert sum(file.rows for file in shop.delta().files) == 1


def test_the_status_of_a_server_that_is_down_or_was_reset_says_what_is_staged(shop: Shop) -> None:
    shop.insert(3, 4)
    last = shop.delta()
    known = pipeline.status(shop.settings)
    assert known.behind is not None and known.behind >= 0
    reset(shop)
    found = pipeline.status(shop.settings)
    assert (found.staged, found.behind, found.runway, found.unreachable) == (last.stop, None, None, None)
    shop.server.kill()
    found = pipeline.status(shop.settings)
    assert (found.staged, found.planned, found.log_end, found.behind) == (last.stop, last.stop, "", None)
    assert found.unreachable is not None and found.unreachable["exit_code"] == 3


def test_all_tables_can_be_loaded_again_where_the_log_does_not_go_on(shop: Shop) -> None:
    old = chain_of(shop.settings).require_generation()
    stop = chain_of(shop.settings).newest_checkpoint(old).position.seqno(old.shift)
    reset(shop)
    shop.insert(3)
    with pytest.raises(GapError):
        plan_interval(shop.settings)
    found = pipeline.begin_again(shop.settings)
    assert (found.name, found.follows) == ("0002", Followed(name="0001", stop_seqno=stop))
    assert found.gap
    assert pipeline.begin_again(shop.settings) == found
    shop.insert(4)
    manifest = shop.delta()
    assert (manifest.generation, sum(file.rows for file in manifest.files)) == ("0002", 1)
    chain = Chain(open_store(shop.settings.staging_root), "shop", "0002")
    table = TableName("shop", "orders")
    with pytest.raises(GapError, match="was not loaded again") as caught:
        chain.check_joined(table, stop)
    assert caught.value.why == found.gap
    chain.check_joined(table, found.start_position.seqno(found.shift))


def test_a_seqno_is_a_place_in_the_log_that_is_read_now(shop: Shop) -> None:
    shop.insert(3)
    old = shop.delta()
    assert str(find_log_position(shop.settings, str(old.stop_seqno))) == old.stop
    reset(shop)
    shop.insert(4)
    pipeline.begin_again(shop.settings)
    shop.insert(5)
    new = shop.delta()
    assert new.stop_seqno // SEQNO_UNIT > Position.parse(new.stop).lognum
    assert str(find_log_position(shop.settings, str(new.stop_seqno))) == new.stop
    with pytest.raises(UsageError, match=f"seqno {old.stop_seqno} is in a log that is no longer read") as refused:
        find_log_position(shop.settings, str(old.stop_seqno))
    assert new.start in refused.value.hint


def test_intervals_that_cannot_be_staged_are_given_up_by_loading_all_again(shop: Shop) -> None:
    shop.insert(3)
    planned = plan_interval(shop.settings)
    assert planned is not None
    shop.run("FLUSH BINARY LOGS")
    shop.run("FLUSH BINARY LOGS")
    purge(shop.server, list(sizes(shop.server))[-1])
    for _ in range(2):
        with pytest.raises(LoaderError):
            shop.extract(planned)
    found = pipeline.begin_again(shop.settings)
    assert planned.start in found.gap or "purged" in found.gap
    shop.insert(5)
    manifest = shop.delta()
    assert (manifest.generation, sum(file.rows for file in manifest.files)) == ("0002", 1)
