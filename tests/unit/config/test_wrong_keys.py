"""Every wrong key is named with its fix, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import UsageError
from loader.store.address import S3Options, split_address
from tests.unit.config.configuration import GOOD, complaint

WRONG = {
    'root = "file:///data/staging/"': [
        ("", "staging.root: this key is required"),
        (
            'root = "/data"',
            "staging.root: write an address: one of file:///folder, s3://bucket/prefix, hdfs://host:port/folder",
        ),
        ('root = "file://data"', "staging.root: write an address: one of file:///folder"),
        *(
            (f'root = "{root}"', "staging.root: write an address")
            for root in ("s3://", "file:///", "hdfs:///", "s3:///")
        ),
        ('root = "s3://b/p?region=x"', "staging.root: write options of the store as keys"),
        ('root = "s3://b/p"\ns3 = { sse = "none" }', "staging.s3.sse: Input should be '', 's3' or 'kms'"),
        ('root = "s3://b/p"\ns3 = { kms_key = "x" }', 'staging.s3: kms_key needs sse = "kms"'),
        ('root = "s3://b/p"\ns3 = { secret = "x" }', "staging.s3.secret: there is no such key"),
        ('root = "s3://b/p"\nhdfs = { user = "x" }', "staging: hdfs is only for a root hdfs://"),
        ('root = "file:///x"\ns3 = { region = "x" }', "staging: s3 is only for a root s3://"),
        ("root = 5", "staging.root: Input should be a valid string"),
        ('roots = "file:///x"\nroot = "file:///x"', "staging.roots: there is no such key"),
    ],
    'path = "file:///data/warehouse"': [
        ("", "warehouse.path: this key is required"),
        ('path = "x"\ntype = "sqlite"', "warehouse.type: Input should be 'hadoop', 'jdbc', 'rest', 'hive' or 'glue'"),
    ],
    'jars = "/opt/jars"': [
        ("", "spark.jars: this key is required"),
        ('jars = "x"\nconf = { a = 1 }', "spark.conf.a: Input should be a valid string"),
    ],
    'host = "db.example.org"': [
        ("", "sources.shop.host: this key is required"),
        ('host = "x"\nhots = "y"', "sources.shop.hots: there is no such key"),
        ('host = "x"\nport = "many"', "sources.shop.port: Input should be a valid integer"),
        ('host = "x"\nupdate_rows = "all"', "sources.shop.update_rows: Input should be 'after' or 'both'"),
        ('host = "x"\nundecodable = "skip"', "sources.shop.undecodable: Input should be 'error' or 'hex'"),
        ('host = "x"\npart_bytes = 100', "sources.shop.part_bytes: Input should be greater than or equal to 4096"),
        (
            'host = "x"\nskip = { server_ids = [4294967296] }',
            "sources.shop.skip.server_ids.0: Input should be less than 4294967296",
        ),
        ('host = "x"\nskip = { server_ids = [1, -1] }', "sources.shop.skip.server_ids.1: Input should be greater than"),
        (
            'host = "x"\nskip = { marker_tables = ["m"] }',
            "sources.shop.skip.marker_tables.0: write a table as schema.ta",
        ),
        ('host = "x"\nskip = { marker_tables = ["a."] }', "sources.shop.skip.marker_tables.0: write a table as schema"),
        ('host = "x"\nskip = { markers = ["a.b"] }', "sources.shop.skip.markers: there is no such key"),
        ('host = "x"\nchunk_rows = -1', "sources.shop.chunk_rows: Input should be greater than or equal to 0"),
        ('host = "x"\ntransport = "ftp"', "sources.shop.transport: Input should be 'network' or 'file'"),
        ('host = "x"\ntransport = "file"', 'sources.shop: transport = "file" needs log_files'),
    ],
    'user = "loader"': [("", "sources.shop.user: this key is required")],
    'tables = { include = ["shop.*"], exclude = ["shop.tmp_*"] }': [
        ("", "sources.shop.tables: this key is required"),
        ("tables = { include = [] }", "sources.shop.tables.include: Tuple should have at least 1 item"),
        (
            'tables = { include = ["shop"] }',
            "sources.shop.tables.include.0: write a pattern over schema.table, such as shop.*",
        ),
        ('tables = { include = ["a.b", "`a.b`"] }', "sources.shop.tables.include.1: write a pattern over schema.table"),
        ('tables = { include = ["a.b"], exclude = ["x"] }', "sources.shop.tables.exclude.0: write a pattern"),
    ],
}


@pytest.mark.parametrize(
    ("line", "instead", "said"), [(line, *case) for line, cases in WRONG.items() for case in cases]
)
def test_a_wrong_key_is_named_with_its_cure(line: str, instead: str, said: str, write: Path) -> None:
    assert line in GOOD
    assert complaint(write, GOOD.replace(line, instead)).startswith(said)


def test_all_wrong_keys_are_named_at_once(write: Path) -> None:
    text = (
        GOOD.replace('jars = "/opt/jars"', "")
        .replace('user = "loader"', 'usr = "loader"')
        .replace("file:///data/staging", "x")
    )
    assert complaint(write, text).split("; ") == [
        "staging.root: write an address: one of file:///folder, s3://bucket/prefix, hdfs://host:port/folder",
        "spark.jars: this key is required",
        "sources.shop.user: this key is required",
        "sources.shop.usr: there is no such key, did you mean user?",
    ]


def test_an_empty_file_lacks_all_sections(write: Path) -> None:
    names = [part.split(":")[0] for part in complaint(write, "").split("; ")]
    assert names == ["staging", "warehouse", "spark", "sources"]
    assert complaint(write, GOOD[: GOOD.index("[sources.shop]")] + "[sources]").startswith(
        "sources: Dictionary should have"
    )


@pytest.mark.parametrize("query", ["?region", "?secret=x", "?path_style=perhaps", "?kms_key=x"])
def test_wrong_options_in_an_address_are_refused(query: str) -> None:
    with pytest.raises(UsageError, match="options of the staging root are wrong"):
        split_address(f"s3://b{query}", S3Options)
