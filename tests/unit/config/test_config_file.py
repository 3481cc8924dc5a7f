"""Where the configuration is looked for, and which of its sources is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.config.file import VARIABLE, load_config
from loader.errors import UsageError
from tests.unit.config.configuration import GOOD, TWO, complaint, loaded


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


def test_tables_with_dots_in_their_names_are_named(write: Path) -> None:
    """Errors name such tables in this form, to be excluded."""
    patterns = ("shop.orders.bak", "`my.shop`.*", "`a``b.c`.d", "shop.*")
    text = ", ".join(f"'{one}'" for one in patterns)
    config = loaded(write, GOOD.replace('include = ["shop.*"]', f"include = [{text}]"))
    assert config.source().tables.include == patterns


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
    assert caught.value.hint == "choose one with --source: crm, shop"
    with pytest.raises(UsageError, match="there is no source 'other'"):
        config.source("other")
    assert config.source("crm").name == "crm"


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
    assert caught.value.hint == "choose one with --source: crm, shop"


def test_an_address_of_several_sources_or_of_none_that_can_be_read(write: Path) -> None:
    config = loaded(write, TWO.replace("port = 3307", "").replace('"reader"', '"loader"'))
    with pytest.raises(UsageError, match=r"there is more than one source at mysql://db\.example\.org") as caught:
        config.source("mysql://loader:s3cret@db.example.org")
    assert "s3cret" not in str(caught.value)
    assert caught.value.hint == "choose one with --source: crm, shop"
    with pytest.raises(UsageError, match="port of the address is not a number"):
        config.source("mysql://db.example.org:many")


def test_an_archive_by_its_address(write: Path) -> None:
    config = loaded(write, TWO.replace('"/etc/mysql/my.cnf"', '"s3://logs/shop"'))
    assert config.at("s3://logs/shop/") == ["crm"]


@pytest.mark.parametrize("name", ["", "{{ ti }}", "a\\nb", "x" * 101])
def test_a_name_of_a_source_that_airflow_cannot_have(write: Path, name: str) -> None:
    found = complaint(write, TWO.replace("[sources.crm", f'[sources."{name}"'))
    assert found.endswith("the name of a source has 1 to 100 characters, without braces and control characters")
