"""`loader init`: a first configuration that the loader itself takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.cli.commands.setup.init import needed_on_server
from loader.cli.commands.setup.jars import needed
from loader.config.file import load_config
from loader.errors import UsageError

_GIVEN = ["--user", "me", "--password", "env:X", "--jars", "/jars", "--no-check"]


def _init(file: Path, *arguments: str, answers: str = "") -> str:
    done = CliRunner().invoke(app, ["--config", str(file), "init", "--host", "db", *arguments], input=answers)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_the_answers_are_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "loader.toml"
    places = ["--staging", "s3://lake/staging", "--warehouse", "s3a://lake/warehouse", "--port", "3307"]
    catalog = [
        "--catalog",
        "jdbc",
        "--uri",
        "jdbc:postgresql://db/lake",
        "--tables",
        'shop.*, crm."x"_*',
        "--name",
        "a b",
    ]
    told = _init(file, *_GIVEN, *places, *catalog)
    found = load_config(str(file))
    source = found.sources["a b"]
    assert (source.host, source.port, source.user, source.password) == ("db", 3307, "me", "env:X")
    assert source.tables.include == ("shop.*", 'crm."x"_*')
    assert (found.staging.root, found.warehouse.path) == ("s3://lake/staging", "s3a://lake/warehouse")
    assert (found.warehouse.type, found.warehouse.uri) == ("jdbc", "jdbc:postgresql://db/lake")
    assert found.spark.jars == "/jars"
    assert needed(found) == ["iceberg", "s3", "postgresql"]
    assert f"written: {file}" in told.replace("\n", "")


def test_every_line_that_is_commented_out_is_a_key_that_is_known(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    _init(
        file, *_GIVEN, "--staging", "s3://lake/staging", "--warehouse", "/w", "--catalog", "hadoop", "--tables", "a.*"
    )
    text = file.read_text()
    keys = [line for line in text.splitlines() if line.startswith("# ") and " = " in line and "uri =" not in line]
    assert len(keys) > 6
    for line in keys:
        text = text.replace(line, line.removeprefix("# "))
    file.write_text(text)
    assert load_config(str(file)).sources["shop"].airflow.pause_on_failure


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    told = _init(file, "--jars", "/jars", "--no-check", answers="\nfile:/secret\ncrm.*\n\n\n\n")
    found = load_config(str(file))
    assert (found.sources["shop"].user, found.sources["shop"].password) == ("loader", "file:/secret")
    assert found.sources["shop"].tables.include == ("crm.*",)
    assert "GRANT SELECT ON `crm`.* TO 'loader'@'%';" in told


def test_a_catalog_on_a_server_is_asked_for_its_address(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    _init(file, "--jars", "/jars", "--no-check", answers="\n\n\n\n\njdbc\njdbc:postgresql://db/lake\n")
    assert load_config(str(file)).warehouse.uri == "jdbc:postgresql://db/lake"
    _init(
        file,
        "--jars",
        "/jars",
        "--no-check",
        "--force",
        "--catalog",
        "hive",
        "--uri",
        "thrift://h:1",
        answers="\n\n\n\n\n",
    )
    assert load_config(str(file)).warehouse.uri == "thrift://h:1"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--password", "hunter2"], "write a reference"),
        (["--staging", "/data"], "write an address"),
        (["--tables", "shop"], "write a pattern"),
    ],
)
def test_a_wrong_answer_writes_nothing(wrong: list[str], why: str, tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    right = {"--user": "me", "--password": "env:X", "--staging": "file:///s", "--warehouse": "/w", "--tables": "a.*"}
    given = {**right, "--catalog": "hadoop", "--jars": "/j", wrong[0]: wrong[1]}
    with pytest.raises(UsageError, match=why):
        _init(file, *[part for pair in given.items() for part in pair])
    assert not file.exists()


def test_a_configuration_is_not_replaced_unasked(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    file.write_text("mine")
    arguments = [*_GIVEN, "--staging", "file:///s", "--warehouse", "/w", "--catalog", "hadoop", "--tables", "a.*"]
    with pytest.raises(UsageError, match="the configuration exists already"):
        _init(file, *arguments)
    assert file.read_text() == "mine"
    _init(file, *arguments, "--force")
    assert load_config(str(file)).sources["shop"].host == "db"


def test_grants_are_of_the_schemas_that_are_named() -> None:
    told = needed_on_server("me", ("shop.*", "shop.x", "c*.y"))
    assert told[-4:] == [
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'me'@'%';",
        "GRANT SELECT ON `shop`.* TO 'me'@'%';",
        "GRANT SELECT ON *.* TO 'me'@'%';",
        "",
    ]
    assert json.dumps(told).count("SET GLOBAL") == 3


def test_an_existing_configuration_is_refused_before_any_question(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    file.write_text("# mine\n")
    with pytest.raises(UsageError, match="the configuration exists already") as refused:
        _init(file, answers="")  # no answer: a question would abort the command
    assert "add a section [sources.NAME]" in refused.value.hint
    assert file.read_text() == "# mine\n"
    assert "Usage:" in _init(file, "--help")
