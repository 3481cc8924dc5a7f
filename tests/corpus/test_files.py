"""Each file of the corpus: what comes of it with all tables captured, and what the walk finds with none."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from loader.errors import DataError, LoaderError
from tests.corpus.corpus import FOLDER, GO, JAVA, MARIADB, RUST, SERVER, names, needs_corpus, read
from tests.unit.binlog.reading import Staged, outcome

pytestmark = needs_corpus


class Rows(NamedTuple):
    """Records staged."""

    count: int


class Index(NamedTuple):
    """What a walk notes."""

    row_events: int
    transactions: int
    statements: int


NAMELESS = "the log has no column names"
OLD = "starts with START_V3, not FORMAT_DESCRIPTION"
HEADER = "event headers of "
CUT = "the interval does not end at the end of an event"
ORDER = "a transaction begins inside another one, or ends without a beginning"
UNBEGUN = "a commit (XID) has no BEGIN before it"
OUTSIDE = "a row event is outside a transaction"
CHECKSUM = "the checksum of an event is wrong"
EARLY = "binary logs of MySQL 5.1.1"
PERMUTED = "binary logs of MySQL 5.2.2-a_drop6p13-debug-log are not supported"
OPEN = "the range ends inside a transaction"

Found = Rows | Index | str
FILES: dict[str, tuple[Found, Found]] = {
    f"{GO}/tcb-eval002c-bin.003320": (NAMELESS, Index(1, 1, 0)),
    f"{MARIADB}/binlog_before_20574.bin": (NAMELESS, Index(2, 3, 1)),
    f"{MARIADB}/binlog_before_20574.bin.decrypted": (NAMELESS, Index(2, 3, 1)),
    f"{MARIADB}/bug11747416_32228_binlog.000001": (NAMELESS, CUT),
    f"{MARIADB}/bug47142_master-bin.000001": (OLD, OLD),
    f"{MARIADB}/mariadb-5.5-binlog.000001": (Rows(0), Index(0, 4, 5)),
    f"{MARIADB}/mdev-4645-binlog_checksum.binlog": (HEADER, HEADER),
    f"{MARIADB}/mdev-4645-binlog_group_id.binlog": (HEADER, HEADER),
    f"{MARIADB}/mdev-4645-binlog_group_id_checksum.binlog": (HEADER, HEADER),
    f"{MARIADB}/mdev-4645-binlog_none.binlog": (Rows(0), Index(0, 3, 3)),
    f"{MARIADB}/mdev6020-mysql-bin.000001": (NAMELESS, Index(2488, 1381, 54)),
    f"{JAVA}/mysql-bin.aurora-padding": (OPEN, OPEN),
    f"{JAVA}/mysql-bin.checksum-crc32": (NAMELESS, Index(60, 60, 0)),
    f"{JAVA}/mysql-bin.checksum-none": (NAMELESS, Index(36, 40, 4)),
    f"{JAVA}/mysql-bin.compressed": (NAMELESS, Index(1, 1, 0)),
    f"{JAVA}/mysql-bin.sakila.gz": (NAMELESS, Index(1374, 53, 37)),
    f"{SERVER}/binlog_56_gtid_reserved_word.000001": (NAMELESS, Index(1, 6, 5)),
    f"{SERVER}/binlog_no_fd_event.000001": (
        "the log starts with event type 48, not F",
        "the log starts with event type 48, not F",
    ),
    f"{SERVER}/binlog_old_version_4_1.000001": (OLD, OLD),
    f"{SERVER}/binlog_savepoint.000001": (Rows(0), Index(0, 1, 7)),
    f"{SERVER}/binlog_transaction.000001": (Rows(0), Index(0, 9, 12)),
    f"{SERVER}/binlog_transaction_with_GTID.000001": (Rows(0), Index(0, 3, 3)),
    f"{SERVER}/binlog_transaction_with_anonymous_GTID.000001": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/binlog_truncated_event.000001": (
        "first event of the log is truncated",
        "first event of the log is truncated",
    ),
    f"{SERVER}/binlog_truncated_prev_gtid_event.000001": (CUT, CUT),
    f"{SERVER}/bug11747887-bin.000003": (Rows(0), Index(0, 4, 4)),
    f"{SERVER}/bug16266.000001": (Rows(0), Index(0, 4, 4)),
    f"{SERVER}/bug27213339-bin.000001": (Rows(0), Index(0, 46, 46)),
    f"{SERVER}/bug32407.001": (NAMELESS, Index(1, 2, 1)),
    f"{SERVER}/bug32407.001.alt1": (EARLY, EARLY),
    f"{SERVER}/bug33029-slave-relay-bin.000001": (Rows(0), Index(0, 28, 28)),
    f"{SERVER}/bug40482-bin.000001": ("contains INCIDENT", "contains INCIDENT"),
    f"{SERVER}/corrupt-relay-bin.000624": (UNBEGUN, UNBEGUN),
    f"{SERVER}/ddl_in_transaction.000001": (NAMELESS, ORDER),
    f"{SERVER}/duplicate_xid.000001": (NAMELESS, CHECKSUM),
    f"{SERVER}/duplicate_xid_ddl.000001": (NAMELESS, CHECKSUM),
    f"{SERVER}/duplicate_xid_xa_commit.000001": (NAMELESS, Index(2, 4, 3)),
    f"{SERVER}/duplicate_xid_xa_prepare.000001": (NAMELESS, CHECKSUM),
    f"{SERVER}/duplicate_xid_xa_rollback.000001": (NAMELESS, Index(2, 4, 3)),
    f"{SERVER}/malformed_xid_xa_commit.000001": (NAMELESS, CHECKSUM),
    f"{SERVER}/malformed_xid_xa_rollback.000001": (NAMELESS, CHECKSUM),
    f"{SERVER}/master-bin.000001": (Rows(0), Index(0, 0, 0)),
    f"{SERVER}/master-bin.000001.alt1": (OLD, OLD),
    f"{SERVER}/orphan_begin_start.000001": (NAMELESS, ORDER),
    f"{SERVER}/orphan_commit.000001": (Rows(0), Index(0, 2, 1)),
    f"{SERVER}/orphan_rollback.000001": (Rows(0), Index(0, 2, 1)),
    f"{SERVER}/orphan_xa_commit.000001": (NAMELESS, ORDER),
    f"{SERVER}/orphan_xa_prepare.000001": (ORDER, ORDER),
    f"{SERVER}/orphan_xa_rollback.000001": (NAMELESS, ORDER),
    f"{SERVER}/orphan_xid.000001": (NAMELESS, Index(1, 2, 0)),
    f"{SERVER}/replicated-bin.000001": (NAMELESS, Index(4, 5, 1)),
    f"{SERVER}/replicated-bin.000002": (NAMELESS, Index(3, 4, 1)),
    f"{SERVER}/rpl_atomic_ddl_rollback_full.000001": (Rows(0), Index(0, 4, 4)),
    f"{SERVER}/rpl_atomic_ddl_rollback_table.000001": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/rpl_atomic_ddl_rollback_view.000001": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/rpl_binlog_with_gipk_info_full_metadata.000001": (Rows(2), Index(2, 4, 2)),
    f"{SERVER}/rpl_binlog_with_gipk_info_minimal_metadata.000001": (NAMELESS, Index(2, 4, 2)),
    f"{SERVER}/rpl_binlog_with_gipk_info_no_gipk.000001": (NAMELESS, Index(1, 2, 1)),
    f"{SERVER}/rpl_binlog_with_gipk_info_with_gipk.000001": (NAMELESS, Index(1, 2, 1)),
    f"{SERVER}/rpl_binlog_with_no_gipk_info.000001": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/rpl_cross_version_default_utf8mb4_collation.000001": (Rows(0), Index(0, 5, 5)),
    f"{SERVER}/rpl_gipk_equivalent_key.000001": (NAMELESS, Index(1, 1, 0)),
    f"{SERVER}/rpl_no_gipk_high_column_number.000001": (NAMELESS, Index(1, 1, 0)),
    f"{SERVER}/rpl_no_gipk_low_column_number.000001": (NAMELESS, Index(1, 1, 0)),
    f"{SERVER}/rpl_no_gipk_minus_one_column_number.000001": (NAMELESS, Index(1, 1, 0)),
    f"{SERVER}/rpl_no_gipk_schema_divergence.000001": (NAMELESS, Index(1, 1, 0)),
    f"{SERVER}/rpl_nogtid_encryption_keyring_master": ("this is not a binary log", "this is not a binary log"),
    f"{SERVER}/rpl_nogtid_encryption_master-bin.000002": (NAMELESS, CUT),
    f"{SERVER}/rpl_nogtid_encryption_master-bin.000002.decrypted": (NAMELESS, CUT),
    f"{SERVER}/rpl_unfiltered_hidden_gcol.000001": (NAMELESS, Index(1, 3, 2)),
    f"{SERVER}/rpl_vector_binlog.000001": (NAMELESS, Index(3, 5, 2)),
    f"{SERVER}/slave-relay-bin.000001": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/slave-relay-bin.000001.alt1": (Rows(0), Index(0, 2, 2)),
    f"{SERVER}/trunc_binlog.000001": (OLD, OLD),
    f"{SERVER}/update-full-row.binlog": (NAMELESS, Index(5, 1, 0)),
    f"{SERVER}/update-full-row.binlog.alt1": (NAMELESS, Index(4, 1, 0)),
    f"{SERVER}/update-partial-row.binlog": (NAMELESS, Index(5, 1, 0)),
    f"{SERVER}/update-partial-row.binlog.alt1": (NAMELESS, Index(4, 1, 0)),
    f"{SERVER}/ver_5_1-telco.001": (EARLY, EARLY),
    f"{SERVER}/ver_5_1-wl2325_r.001": (PERMUTED, PERMUTED),
    f"{SERVER}/ver_5_1-wl2325_s.001": (PERMUTED, PERMUTED),
    f"{SERVER}/ver_5_1_17.001": (EARLY, EARLY),
    f"{SERVER}/ver_5_1_23.001": (NAMELESS, OUTSIDE),
    f"{SERVER}/ver_trunk_row_v2.001": (NAMELESS, Index(3, 12, 9)),
    f"{SERVER}/write-full-row.binlog": (NAMELESS, Index(4, 1, 0)),
    f"{SERVER}/write-full-row.binlog.alt1": (NAMELESS, Index(3, 1, 0)),
    f"{SERVER}/write-partial-row.binlog": (NAMELESS, Index(5, 1, 0)),
    f"{SERVER}/write-partial-row.binlog.alt1": (NAMELESS, Index(4, 1, 0)),
    f"{RUST}/binlog-invisible-columns.000001": (Rows(4), Index(3, 5, 2)),
    f"{RUST}/binlog_transaction_previous_GTID_no_tag.000001": (Rows(0), Index(0, 0, 0)),
    f"{RUST}/binlog_transaction_with_GTID_TAG.000001": (NAMELESS, Index(1, 1, 0)),
    f"{RUST}/json-opaque.binlog": (Rows(8), Index(8, 3, 2)),
    f"{RUST}/json.binlog.000001": (NAMELESS, Index(6, 8, 2)),
    f"{RUST}/mariadb-bin.000001": (Rows(2), Index(2, 2, 0)),
    f"{RUST}/minimal_row_metadata.000001": (NAMELESS, Index(1, 1, 0)),
    f"{RUST}/mysql-enum-string-set.000001": (Rows(4), Index(3, 5, 2)),
    f"{RUST}/mysql_type_bit.000001": (Rows(1), Index(1, 3, 2)),
    f"{RUST}/time_issue.000001": (NAMELESS, Index(1, 1, 0)),
    f"{RUST}/transaction_compression.000001": (NAMELESS, Index(1, 1, 0)),
    f"{RUST}/vector.binlog": (Rows(10), Index(6, 10, 7)),
}


def test_every_file_of_the_corpus_is_in_the_table() -> None:
    assert set(names()) == set(FILES)


@pytest.mark.parametrize(
    "name", [f"{MARIADB}/binlog_before_20574.bin", f"{SERVER}/rpl_nogtid_encryption_master-bin.000002"]
)
def test_an_encrypted_log_is_that_which_another_program_decrypted(name: str) -> None:
    assert read(name) == (FOLDER / f"{name}.decrypted").read_bytes()


def check(found: Staged | LoaderError, expected: Found) -> None:
    if isinstance(expected, str):
        assert isinstance(found, DataError), found
        assert expected in found.what
        return
    assert isinstance(found, Staged), found
    if isinstance(expected, Rows):
        counts = [count.inserts + count.updates + count.deletes for count in found.counts.values()]
        assert Rows(sum(counts)) == expected
    else:
        assert (
            Index(*(len(part) for part in (found.index.rows, found.index.transactions, found.index.statements)))
            == expected
        )


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_gives_its_rows_or_its_refusal(name: str) -> None:
    captured, passed = FILES[name]
    log = read(name)
    check(outcome(log), captured)
    check(outcome(log, captured=lambda _: False), passed)
