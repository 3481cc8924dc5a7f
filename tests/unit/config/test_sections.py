"""Keys and defaults of the configuration, and the settings that they become."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from loader.materialise.rules import DEFAULT, rule_of
from loader.materialise.spec import CatalogSettings, MaterialiseSpec
from loader.model.table import TableName
from loader.settings import IntervalLimits, Retention
from loader.staging.documents import Skip, TableFilter
from loader.staging.filters import CapturedTables
from loader.store.address import HdfsOptions, S3Options, split_address
from tests.unit.config.configuration import GOOD, complaint, loaded


def test_the_key_files_of_encrypted_logs(write: Path) -> None:
    files = GOOD + 'transport = "file"\nlog_files = "/logs"\n'
    transport = loaded(write, files + 'keyring = "/keys/keyring"\n').source().transport
    assert (transport.keys.keyring, transport.keys.keys) == ("/keys/keyring", "")
    assert type(transport).model_validate_json(transport.model_dump_json()) == transport
    assert loaded(write, files + 'keys = "/keys/list"\n').source().transport.keys.keys == "/keys/list"
    assert "a server sends its log unencrypted" in complaint(write, GOOD + 'keys = "/keys/list"\n')


def test_a_small_configuration_and_what_it_leaves_to_defaults(write: Path) -> None:
    settings = loaded(write, GOOD).source()
    assert (settings.name, str(settings.server), settings.server.password) == (
        "shop", "loader@db.example.org:3306", "env:SHOP_PASSWORD"
    )  # fmt: skip
    assert settings.tables == TableFilter(include=("shop.*",), exclude=("shop.tmp_*",))
    assert settings.staging_root == "file:///data/staging"
    assert (settings.transport.kind, settings.update_rows, settings.undecodable, settings.part_bytes) == (
        "network", "after", "error", 64 * 1024 * 1024
    )  # fmt: skip
    assert (settings.catalog.name, settings.catalog.type, settings.catalog.warehouse) == (
        "lake", "hadoop", "file:///data/warehouse"
    )  # fmt: skip
    assert settings.spark.master == "local[*]"


def test_rules_of_tables_in_their_order(write: Path) -> None:
    assert loaded(write, GOOD).source().rules == ()
    rules = """
[[sources.shop.rules]]
tables = ["shop.audit_*"]
mode = "history"
committed_at_column = ""
[[sources.shop.rules]]
tables = ["shop.*", "*.log"]
mode = "soft_delete"
on_misfit = "text"
"""
    found = loaded(write, GOOD + rules).source().rules
    assert rule_of(found, TableName("shop", "audit_2")) is found[0]
    assert rule_of(found, TableName("other", "log")) is found[1]
    assert rule_of(found, TableName("other", "audit_1")) == DEFAULT
    assert found[0].meta == {
        "seqno_column": "_seqno", "committed_at_column": "", "op_column": "_op", "row_offset_column": "_row_offset"
    }  # fmt: skip
    spec = MaterialiseSpec(
        source="shop",
        generation="g",
        staging_root="",
        catalog=CatalogSettings(type="hadoop", warehouse=""),
        rules=found,
    )
    again = MaterialiseSpec.model_validate_json(spec.model_dump_json()).rules
    assert [rule.model_dump() for rule in again] == [rule.model_dump() for rule in found]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('mode = "history"', "tables: this key is required"),
        ('tables = ["shop"]', "write a pattern over schema.table"),
        ('tables = ["a.b"]\nmode = "append"', "mode: Input should be 'mirror', 'soft_delete' or 'history'"),
        ('tables = ["a.b"]\nmode = "history"\nop_column = ""', "history needs a name for op_column"),
        ('tables = ["a.b"]\nmode = "soft_delete"\ndeleted_column = ""', "soft_delete needs a name for deleted_column"),
        ('tables = ["a.b"]\ncommitted_at_column = "_SEQNO"', "two of the loader's columns have the same name"),
        (
            'tables = ["a.b"]\nmode = "soft_delete"\ndeleted_column = "_Deleted"',
            "Iceberg reserves the column name _deleted",
        ),
    ],
)
def test_a_rule_that_cannot_be(write: Path, rule: str, why: str) -> None:
    found = complaint(write, f"{GOOD}[[sources.shop.rules]]\n{rule}\n")
    assert found.startswith("sources.shop.rules.0")
    assert why in found


def test_what_is_skipped_and_that_marker_tables_are_not_captured(write: Path) -> None:
    assert loaded(write, GOOD).source().skip == Skip()
    text = GOOD + '[sources.shop.skip]\nserver_ids = [2, 4294967295]\nmarker_tables = ["shop.a[1]", "loader.b"]\n'
    settings = loaded(write, text).source()
    assert settings.skip == Skip(server_ids=(2, 4294967295), marker_tables=("shop.a[1]", "loader.b"))
    assert settings.skip.markers() == {TableName("shop", "a[1]"), TableName("loader", "b")}
    captured = CapturedTables(settings.tables)
    assert [captured(TableName("shop", name)) for name in ("a[1]", "a1", "tmp_a")] == [False, True, False]


STAGING = [
    ('root = "s3://lake/staging/"', "s3://lake/staging"),
    (
        'root = "s3://lake/staging"\ns3 = { endpoint = "https://s3.example.org:9000", region = "eu-1", path_style = true }',
        "s3://lake/staging?endpoint=https%3A%2F%2Fs3.example.org%3A9000&region=eu-1&path_style=True",
    ),
    (
        'root = "s3://lake"\ns3 = { sse = "kms", kms_key = "alias/a&b", requester_pays = true }',
        "s3://lake?sse=kms&kms_key=alias%2Fa%26b&requester_pays=True",
    ),
    ('root = "hdfs://nn:8020/staging"', "hdfs://nn:8020/staging"),
    (
        'root = "hdfs://lake/staging"\nhdfs = { webhdfs = "http://n1:9870;http://n2:9870", user = "etl" }',
        "hdfs://lake/staging?webhdfs=http%3A%2F%2Fn1%3A9870%3Bhttp%3A%2F%2Fn2%3A9870&user=etl",
    ),
]


@pytest.mark.parametrize(("lines", "address"), STAGING)
def test_the_options_of_the_store_are_in_the_address_that_goes_to_every_process(
    lines: str, address: str, write: Path
) -> None:
    config = loaded(write, GOOD.replace('root = "file:///data/staging/"', lines))
    assert config.source().staging_root == address
    kind = HdfsOptions if address.startswith("hdfs") else S3Options
    root, options = split_address(address, kind)
    assert root == config.staging.root
    assert options == (config.staging.hdfs if kind is HdfsOptions else config.staging.s3)


def test_spark_is_told_where_staged_files_lie_and_the_configuration_wins(write: Path) -> None:
    key = "spark.hadoop.fs.s3a.bucket.lake.endpoint.region"
    text = GOOD.replace('root = "file:///data/staging/"', 'root = "s3://lake/x"\ns3 = { region = "eu-1" }')
    assert loaded(write, text).source().spark.conf[key] == "eu-1"
    mine = text.replace('jars = "/opt/jars"', f'jars = "/opt/jars"\nconf = {{ "{key}" = "eu-2" }}')
    assert loaded(write, mine).source().spark.conf[key] == "eu-2"
    hdfs = GOOD.replace('root = "file:///data/staging/"', 'root = "hdfs://nn/x"\nhdfs = { user = "etl" }')
    assert loaded(write, hdfs).source().spark.hadoop_user == "etl"


def test_how_long_snapshots_are_kept(write: Path) -> None:
    assert loaded(write, GOOD).source().maintain.keep_days == 7
    assert loaded(write, GOOD + "maintain = { keep_days = 0.5 }\n").source().maintain.keep_days == 0.5
    assert "maintain.keep_days" in complaint(write, GOOD + "maintain = { keep_days = -1 }\n")


def test_limits_of_an_interval(write: Path) -> None:
    assert loaded(write, GOOD).source().interval == IntervalLimits(bytes=1024**3, transactions=0, seconds=0)
    given = loaded(write, GOOD + "interval = { bytes = 0, transactions = 7, seconds = 60 }\n").source().interval
    assert given == IntervalLimits(bytes=0, transactions=7, seconds=60)
    assert "interval.bytes" in complaint(write, GOOD + "interval = { bytes = -1 }\n")


@pytest.mark.parametrize(
    ("text", "keep"),
    [("forever", None), ("30d", timedelta(days=30)), ("12h", timedelta(hours=12)), ("0d", timedelta(0))],
)
def test_how_long_files_are_kept(write: Path, text: str, keep: timedelta | None) -> None:
    assert loaded(write, GOOD).source().retention == Retention(keep=None, archive="")
    given = GOOD.replace("[staging]", f'[staging]\nkeep = "{text}"\narchive = "old.files"')
    assert loaded(write, given).source().retention == Retention(keep=keep, archive="old.files")


@pytest.mark.parametrize("value", ['"30"', '"d"', "30", '"-1d"', '"30 days"', '""'])
def test_a_time_that_is_none_is_refused(write: Path, value: str) -> None:
    found = complaint(write, GOOD.replace("[staging]", f"[staging]\nkeep = {value}"))
    assert found == "staging.keep: write forever, or days or hours: 30d, 12h"


@pytest.mark.parametrize("value", ["a/b", "..", "/x", "é"])
def test_an_archive_is_a_name_beside_the_sources(write: Path, value: str) -> None:
    found = complaint(write, GOOD.replace("[staging]", f'[staging]\narchive = "{value}"'))
    assert found.startswith("staging.archive: write a name")
    assert "is the folder of a source" in complaint(write, GOOD.replace("[staging]", '[staging]\narchive = "shop"'))
