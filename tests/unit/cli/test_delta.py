"""The commands of a delta: options that exclude each other, and tables that are short of the stop."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from loader.cli.app import app
from loader.cli.output import Output
from loader.cli.reports import report_tables
from loader.errors import UsageError
from loader.materialise.spec import MaterialiseResult, TableResult


@pytest.mark.parametrize(
    "options",
    [("--again", "1", "--restore", "2"), ("--interval", "3", "--again", "1"), ("--interval", "1", "--restore", "1")],
)
def test_only_one_thing_is_done(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["extract", *options])
    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "--interval, --again and --restore exclude each other"


def _result(*tables: TableResult) -> dict[str, Any]:
    stop = {"stop": "binlog.000002:900", "stop_seqno": 2 * 10**12 + 900}
    return MaterialiseResult(tables=tables, **stop).model_dump(mode="json")


def test_a_table_that_is_short_of_the_stop_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    done = TableResult(
        table="shop.a", status="applied", position="binlog.000002:880", complete_through=2 * 10**12 + 900
    )
    error = UsageError("no").as_dict()
    short = TableResult(table="shop.b", status="failed", position="binlog.000001:70", error=error)
    with pytest.raises(typer.Exit):
        report_tables(Output(as_json=False), _result(done, short))
    rows = [line.strip().split(maxsplit=6) for line in capsys.readouterr().out.splitlines()]
    assert rows[0][-1] == "note"
    assert [row[5:] for row in rows[1:]] == [["binlog.000002:880"], ["binlog.000001:70", "short of binlog.000002:900"]]


def test_without_such_a_table_there_is_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    report_tables(
        Output(as_json=False), _result(TableResult(table="a.b", status="unchanged", complete_through=3 * 10**12))
    )
    assert capsys.readouterr().out.split()[:6] == ["table", "status", "inserts", "updates", "deletes", "position"]
    report_tables(Output(as_json=False), MaterialiseResult(tables=()).model_dump(mode="json"))
