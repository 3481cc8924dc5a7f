"""Text from elsewhere does not act on terminals or logs, and JSON keeps it exact."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.cli.output import Lines, Output
from loader.errors import DataError
from loader.log_format import VisibleFormatter
from loader.visible_text import continued, exact_json, visible

ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "\x1b]0;owned\x07\x1b[2J\r\nINFO all is well\x9b31m\x85\u202egnp.exe\u2066\u2028\x7f"
TEXT = st.text(st.characters() | st.sampled_from(list(EVIL)) | st.characters(categories=["Cs"]))


@given(TEXT)
def test_nothing_that_acts_is_left(text: str) -> None:
    assert not ACTING.search(visible(text))
    assert not ACTING.search(continued(text).replace("\n", ""))
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize("text", ["plain", "orders.shop", "C:\\folder", "naïve 漢字 😀", "שלום", "a'b\"c`d"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == continued(text) == text


@given(TEXT)
def test_json_is_exact_and_does_not_act_either(text: str) -> None:
    shown = exact_json({text: [text]})
    assert not ACTING.search(shown)
    assert json.loads(shown) == {text: [text]}


def test_an_error_has_the_lines_that_the_loader_gives_it() -> None:
    error = DataError(f"what {EVIL}", why=f"first\n  what to do: rm -rf /\n{EVIL}", hint=f"do {EVIL}", table=EVIL)
    lines = str(error).split("\n")
    assert [line[:7] for line in lines] == ["what \\x", "  why: ", "     | ", "     | ", "     | ", "  what "]
    assert not any(map(ACTING.search, lines))
    assert error.as_dict()["what"] == f"what {EVIL}"


def test_what_is_logged_cannot_begin_a_line() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(message)s"))
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning("table %s", EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("failed")
    first, second, third, *_ = stream.getvalue().split("\n")
    assert (first[:9], second[:7], third) == ("WARNING t", "     | ", "ERROR failed")
    assert not ACTING.search(stream.getvalue().replace("\n", ""))


def test_what_a_spark_job_logs_does_not_act(tmp_path: Path) -> None:
    program = """
import logging, sys
from loader.spark import job
job._outcome = lambda *_: logging.getLogger("loader.x").warning("table %s", "\\x1b[2J\\nERROR all is lost") or {}
job.job_main(None, None)
"""
    arguments = [sys.executable, "-c", program, "--spec", "none", "--result", str(tmp_path / "result")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [r"WARNING loader.x: table \x1b[2J", "     | ERROR all is lost"]


def test_tables_and_sentences_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=False)
    output.line(EVIL)
    output.rows(("name", "bytes"), [(EVIL, 5), ("[red]x[/red]", EVIL)])
    Lines(output).handle(logging.LogRecord("x", logging.INFO, "", 1, "%s", (EVIL,), None))
    found = capsys.readouterr()
    assert not ACTING.search((found.out + found.err).replace("\n", ""))
    assert len(found.out.splitlines()) == 4
    assert "[red]x[/red]" in found.out


def test_documents_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.document({"name": EVIL})
    output.error(DataError(EVIL, why=EVIL))
    lines = capsys.readouterr().out.split("\n")
    assert not any(map(ACTING.search, lines))
    assert [json.loads(line).get("name", json.loads(line).get("what")) for line in lines[:2]] == [EVIL, EVIL]
