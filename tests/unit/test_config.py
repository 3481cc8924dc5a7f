"""The configuration: every wrong key is named with its cure, all at once, and no secret is in it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from loader.config import VARIABLE, Config, load_config
from loader.errors import UsageError
from loader.materialise.rules import DEFAULT, rule_of
from loader.materialise.spec import CatalogSettings, MaterialiseSpec
from loader.model.table import TableName
from loader.settings import IntervalLimits, Retention
from loader.staging.documents import Skip, TableFilter
from loader.staging.filters import CapturedTables
from loader.store.address import HdfsOptions, S3Options, split_address

GOOD = """
[staging]
root = "file:///data/staging/"

[warehouse]
path = "file:///data/warehouse"

[spark]
jars = "/opt/jars"

[sources.shop]
host = "db.example.org"
user = "loader"
password = "env:SHOP_PASSWORD"
tables = { include = ["shop.*"], exclude = ["shop.tmp_*"] }
"""


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "loader.toml"


def loaded(file: Path, text: str) -> Config:
    file.write_text(text, encoding="utf-8")
    return load_config(str(file))


def complaint(file: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        loaded(file, text)
    assert caught.value.exit_code == 2
    assert caught.value.where == {"file": str(file)}
    return caught.value.why


def test_the_key_files_of_encrypted_logs(write: Path) -> None:
    files = GOOD + 'transport = "file"\nlog_files = "/logs"\n'
    transport = loaded(write, files + 'keyring = "/keys/keyring"\n').source().transport
    assert (transport.keys.keyring, transport.keys.keys) == ("/keys/keyring", "")
    assert type(transport).model_validate_json(transport.model_dump_json()) == transport
    assert loaded(write, files + 'keys = "/keys/list"\n').source().transport.keys.keys == "/keys/list"
    assert "a server sends plain logs" in complaint(write, GOOD + 'keys = "/keys/list"\n')


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
        ('mode = "history"', "tables: this key is needed"),
        ('tables = ["shop"]', "write a pattern over schema.table"),
        ('tables = ["a.b"]\nmode = "append"', "mode: Input should be 'mirror', 'soft_delete' or 'history'"),
        ('tables = ["a.b"]\nmode = "history"\nop_column = ""', "history needs a name for op_column"),
        ('tables = ["a.b"]\nmode = "soft_delete"\ndeleted_column = ""', "soft_delete needs a name for deleted_column"),
        ('tables = ["a.b"]\ncommitted_at_column = "_SEQNO"', "two of the loader's columns have the same name"),
        ('tables = ["a.b"]\nmode = "soft_delete"\ndeleted_column = "_Deleted"', "Iceberg has a column _deleted"),
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


@pytest.mark.parametrize("query", ["?region", "?secret=x", "?path_style=perhaps", "?kms_key=x"])
def test_wrong_options_in_an_address_are_refused(query: str) -> None:
    with pytest.raises(UsageError, match="options of the staging root are wrong"):
        split_address(f"s3://b{query}", S3Options)


WRONG = {
    'root = "file:///data/staging/"': [
        ("", "staging.root: this key is needed"),
        (
            'root = "/data"',
            "staging.root: write an address: file:///folder, s3://bucket/prefix or hdfs://host:port/folder",
        ),
        ('root = "file://data"', "staging.root: write an address: file:///folder"),
        ('root = "s3://b/p?region=x"', "staging.root: options of the store are keys of their own"),
        ('root = "s3://b/p"\ns3 = { sse = "none" }', "staging.s3.sse: Input should be '', 's3' or 'kms'"),
        ('root = "s3://b/p"\ns3 = { kms_key = "x" }', 'staging.s3: kms_key needs sse = "kms"'),
        ('root = "s3://b/p"\ns3 = { secret = "x" }', "staging.s3.secret: there is no such key"),
        ('root = "s3://b/p"\nhdfs = { user = "x" }', "staging: hdfs has options of a root hdfs://"),
        ('root = "file:///x"\ns3 = { region = "x" }', "staging: s3 has options of a root s3://"),
        ("root = 5", "staging.root: Input should be a valid string"),
        ('roots = "file:///x"\nroot = "file:///x"', "staging.roots: there is no such key"),
    ],
    'path = "file:///data/warehouse"': [
        ("", "warehouse.path: this key is needed"),
        ('path = "x"\ntype = "sqlite"', "warehouse.type: Input should be 'hadoop', 'jdbc', 'rest', 'hive' or 'glue'"),
    ],
    'jars = "/opt/jars"': [
        ("", "spark.jars: this key is needed"),
        ('jars = "x"\nconf = { a = 1 }', "spark.conf.a: Input should be a valid string"),
    ],
    'host = "db.example.org"': [
        ("", "sources.shop.host: this key is needed"),
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
        ('host = "x"\nchunk_rows = 0', "sources.shop.chunk_rows: Input should be greater than or equal to 1"),
        ('host = "x"\ntransport = "ftp"', "sources.shop.transport: Input should be 'network' or 'file'"),
        ('host = "x"\ntransport = "file"', 'sources.shop: transport = "file" needs log_files'),
    ],
    'user = "loader"': [("", "sources.shop.user: this key is needed")],
    'tables = { include = ["shop.*"], exclude = ["shop.tmp_*"] }': [
        ("", "sources.shop.tables: this key is needed"),
        ("tables = { include = [] }", "sources.shop.tables.include: Tuple should have at least 1 item"),
        (
            'tables = { include = ["shop"] }',
            "sources.shop.tables.include.0: write a pattern over schema.table, such as shop.*",
        ),
        ('tables = { include = ["a.b", "a.b.c"] }', "sources.shop.tables.include.1: write a pattern over schema.table"),
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
        "staging.root: write an address: file:///folder, s3://bucket/prefix or hdfs://host:port/folder",
        "spark.jars: this key is needed",
        "sources.shop.user: this key is needed",
        "sources.shop.usr: there is no such key, did you mean user?",
    ]


def test_an_empty_file_lacks_all_sections(write: Path) -> None:
    names = [part.split(":")[0] for part in complaint(write, "").split("; ")]
    assert names == ["staging", "warehouse", "spark", "sources"]
    assert complaint(write, GOOD[: GOOD.index("[sources.shop]")] + "[sources]").startswith(
        "sources: Dictionary should have"
    )


def test_a_password_is_given_by_reference_and_a_secret_in_its_place_is_not_repeated(write: Path) -> None:
    for reference in ("env:NAME", "file:/run/secret", "airflow:shop", ""):
        loaded(write, GOOD.replace("env:SHOP_PASSWORD", reference))
    for bare in ("env", "env:", "file: ", "airflow"):
        text = complaint(write, GOOD.replace("env:SHOP_PASSWORD", bare))
        assert text == "sources.shop.password: write a reference: env:NAME, file:/path or airflow:connection"
    with pytest.raises(UsageError) as caught:
        loaded(write, GOOD.replace("env:SHOP_PASSWORD", "hunter2-hunter2"))
    assert caught.value.why == "sources.shop.password: write a reference: env:NAME, file:/path or airflow:connection"
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.as_dict())


def test_secrets_of_a_catalog_are_given_by_reference(write: Path) -> None:
    def with_catalog(lines: str) -> str:
        return GOOD.replace("[spark]", f"{lines}\n[spark]", 1)

    good = with_catalog('properties = { "jdbc.user" = "a" }\nsecrets = { "jdbc.password" = "env:CATALOG" }')
    assert loaded(write, good).source("shop").catalog.secrets == {"jdbc.password": "env:CATALOG"}
    for name in (
        "jdbc.Password",
        "token",
        "credential",
        "s3.secret-access-key",
        "fs.s3a.secret.key",
        "adls.sas-token.a",
    ):
        text = complaint(
            write, with_catalog(f'properties = {{ "{name}" = "hunter2", "token-refresh-enabled" = "true" }}')
        )
        assert text.endswith(f"a secret; give a reference to it in warehouse.secrets: {name}")
        assert "hunter2" not in text
    text = complaint(write, with_catalog('secrets = { "token" = "hunter2" }'))
    assert text == "warehouse.secrets.token: write a reference: env:NAME, file:/path or airflow:connection"
    twice = 'properties = { "a" = "b" }\nsecrets = { "a" = "env:B" }'
    assert complaint(write, with_catalog(twice)).endswith("both in properties and in secrets: a")
    for uri in (
        "jdbc:postgresql://db/x?user=a&password=hunter2",
        "jdbc:mysql://loader:hunter2@db:3306/lake",
        "jdbc:mysql://address=(host=db)(user=a)(password=hunter2)/lake",
        "jdbc:oracle:thin:loader/hunter2@//db:1521/lake",
        "https://loader:hunter2@catalog/ws",
        "jdbc:sqlserver://db;user=a;Password=hunter2",
    ):
        with pytest.raises(UsageError, match="uri has a password") as caught:
            loaded(write, with_catalog(f'uri = "{uri}"'))
        assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"
        text = complaint(write, with_catalog(f'properties = {{ "uri" = "{uri}" }}'))
        assert "a password in uri" in text and "hunter2" not in text
    for uri in ("jdbc:postgresql://db:5432/x?user=a", "jdbc:oracle:thin:@//db:1521/lake", "thrift://a@db:9083,thrift://c:9083",
                "https://catalog:8181/v1@2", "jdbc:sqlite:/var/lake:1/x@y.db"):  # fmt: skip
        assert loaded(write, with_catalog(f'uri = "{uri}"')).source("shop").catalog.uri == uri


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UsageError, match="there is no configuration") as caught:
        load_config()
    assert caught.value.where == {"file": "loader.toml"}
    assert VARIABLE in caught.value.hint
    (tmp_path / "loader.toml").write_text(GOOD)
    (tmp_path / "named.toml").write_text(GOOD.replace("sources.shop", "sources.named"))
    (tmp_path / "given.toml").write_text(GOOD.replace("sources.shop", "sources.given"))
    assert list(load_config().sources) == ["shop"]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named.toml"))
    assert list(load_config().sources) == ["named"]
    assert list(load_config(str(tmp_path / "given.toml")).sources) == ["given"]


@pytest.mark.parametrize("text", ["[staging", "= 5", "a = 1\na = 2", "\0"])
def test_a_file_that_is_no_toml_is_said_to_be_none(text: str, write: Path) -> None:
    write.write_text(text)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        load_config(str(write))
    assert caught.value.why


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(str(tmp_path))


def test_a_file_that_is_not_utf8_is_an_error(write: Path) -> None:
    write.write_bytes(GOOD.encode().replace(b"db.example", b"db\xff.example"))
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(str(write))


def test_of_several_sources_one_must_be_named(write: Path) -> None:
    config = loaded(write, GOOD + GOOD[GOOD.index("[sources.shop]") :].replace("shop]", "crm]"))
    with pytest.raises(UsageError, match="several sources") as caught:
        config.source()
    assert caught.value.hint == "say which: --source with one of crm, shop"
    with pytest.raises(UsageError, match="there is no source 'other'"):
        config.source("other")
    assert config.source("crm").name == "crm"


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


TWO = (
    GOOD
    + """
[sources.crm]
host = "DB.example.org"
port = 3307
user = "reader"
tables = { include = ["crm.*"] }
transport = "file"
log_files = "/etc/mysql/my.cnf"
"""
)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("mysql://db.example.org", "shop"),
        ("mysql://loader@db.example.org:3306/?tls_ca=/x", "shop"),
        ("mariadb://reader:s3cret@db.EXAMPLE.org:3307/", "crm"),
        ("file:///etc/mysql/my.cnf", "crm"),
        ("file:///etc/mysql/../mysql/my%2Ecnf?keys=/k", ""),
        ("mysql://other@db.example.org/", ""),
        ("mysql://db.example.org:3308/", ""),
        ("file:///etc/mysql", ""),
        ("s3://logs/shop", ""),
    ],
)
def test_a_source_by_its_address(uri: str, name: str, write: Path) -> None:
    config = loaded(write, TWO)
    assert config.at(uri) == ([name] if name else [])
    if name:
        assert config.source(uri).name == name
        return
    with pytest.raises(UsageError, match="there is no source at") as caught:
        config.source(uri)
    assert caught.value.hint == "say which: --source with one of crm, shop"


def test_an_address_of_several_sources_or_of_none_that_can_be_read(write: Path) -> None:
    config = loaded(write, TWO.replace("port = 3307", "").replace('"reader"', '"loader"'))
    with pytest.raises(UsageError, match=r"there is more than one source at mysql://db\.example\.org") as caught:
        config.source("mysql://loader:s3cret@db.example.org")
    assert "s3cret" not in str(caught.value)
    assert caught.value.hint == "say which: --source with one of crm, shop"
    with pytest.raises(UsageError, match="port of the address is not a number"):
        config.source("mysql://db.example.org:many")


def test_an_archive_by_its_address(write: Path) -> None:
    config = loaded(write, TWO.replace('"/etc/mysql/my.cnf"', '"s3://logs/shop"'))
    assert config.at("s3://logs/shop/") == ["crm"]


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", "spark.sql.catalog.lake.jdbc.password",
        "spark.sql.catalog.lake.token", "spark.sql.catalog.lake.credential", "spark.ssl.keyPassword",
        "spark.authenticate.secret", "spark.hadoop.javax.jdo.option.ConnectionPassword",
        "spark.sql.catalog.lake.s3.secret-access-key", "spark.sql.catalog.lake.s3.access-key-id",
    ],
)  # fmt: skip
def test_secrets_in_the_configuration_of_spark_would_be_seen_by_every_user(name: str, write: Path) -> None:
    text = complaint(write, GOOD.replace("[sources.shop]", f'[spark.conf]\n"{name}" = "hunter2"\n[sources.shop]', 1))
    assert text.startswith(f"spark: conf has secrets: {name}; give")
    assert "hunter2" not in text


@pytest.mark.parametrize("value", ["-Dx.password=hunter2", "jdbc:mysql://u:hunter2@db/x", "https://hunter2@catalog/"])
def test_secrets_inside_of_values_of_the_configuration_of_spark(value: str, write: Path) -> None:
    text = complaint(write, GOOD.replace("[sources.shop]", f'[spark.conf]\n"spark.x" = "{value}"\n[sources.shop]', 1))
    assert text.startswith("spark: conf has secrets: spark.x; give")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "line",
    [
        '"spark.hadoop.fs.s3a.aws.credentials.provider" = "x.Y"', '"spark.authenticate.secret.file" = "/run/secret"',
        '"spark.hadoop.hadoop.security.credential.provider.path" = "jceks://file/x"', '"spark.authenticate" = "true"',
        '"spark.security.credentials.hadoopfs.enabled" = "false"', '"spark.redaction.regex" = "(?i)secret|password"',
        '"spark.driver.extraJavaOptions" = "-Xmx1g -Da=b"', '"spark.kerberos.keytab" = "/etc/x.keytab"',
    ],
)  # fmt: skip
def test_places_and_classes_of_secrets_are_none(line: str, write: Path) -> None:
    loaded(write, GOOD.replace("[sources.shop]", f"[spark.conf]\n{line}\n[sources.shop]", 1))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('host = "db.example.org"', 'host = "loader:hunter2@db.example.org"', "sources.shop.host"),
        ('host = "db.example.org"', 'host = "mysql://db.example.org"', "sources.shop.host"),
        ("file:///data/staging", "s3://key:hunter2@bucket/x", "staging.root"),
        ("file:///data/staging", "hdfs://hunter2@name:8020/x", "staging.root"),
        ('"file:///data/staging/"', '"s3://b/x"\ns3 = { endpoint = "https://key:hunter2@s3.local" }', "staging.s3.endpoint"),
        ('"file:///data/staging/"', '"hdfs://n/x"\nhdfs = { webhdfs = "http://hunter2@n:9870" }', "staging.hdfs.webhdfs"),
    ],
)  # fmt: skip
def test_user_information_in_an_address_is_refused(old: str, new: str, key: str, write: Path) -> None:
    assert old in GOOD
    text = complaint(write, GOOD.replace(old, new))
    assert text.startswith(key)
    assert "hunter2" not in text
