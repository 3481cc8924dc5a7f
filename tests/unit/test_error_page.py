"""`loader errors` and the links of errors are those of the page of errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.error_page import ErrorLinks, anchor_of, error_entries
from loader.errors import DataError, GapError, UsageError
from tests.unit.config.configuration import GOOD, TWO, complaint

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
SITE = 'docs_url = "https://docs.example.org/loader/"\n'


def test_entries_are_all_of_the_page() -> None:
    entries = error_entries()
    assert [entry.anchor for entry in entries] == re.findall(r"^### .+ \{ #(.+) \}$", PAGE, re.MULTILINE)
    assert [text for entry in entries for text in entry.texts] == re.findall(r'^"(.+)"$', PAGE, re.MULTILINE)
    assert all(entry.meaning and entry.title and entry.section for entry in entries)
    first = entries[0]
    assert (first.section, first.title, len(first.texts)) == ("Log continuity", "The log was purged", 2)
    assert first.meaning[0].startswith("The server deleted log files before the loader read them. The error names the")


def test_an_error_has_the_anchor_of_the_longest_text() -> None:
    assert anchor_of(GapError("a log file that is still needed is gone")) == "log-file-missing"
    assert anchor_of(DataError("a statement that the loader cannot read")) == "statement-not-supported"
    other = UsageError("something else")
    assert anchor_of(other) == "classes"
    other.__cause__ = GapError("a log file that is still needed is gone")
    assert anchor_of(other) == "log-file-missing"
    assert "\n## Classes\n" in PAGE


def test_links_of_paragraphs_name_files_of_the_documentation() -> None:
    targets = [
        target
        for entry in error_entries()
        for paragraph in entry.meaning
        for target in re.findall(r"\((docs/[^)#]+)", ErrorLinks().plain(paragraph))
    ]
    assert len(targets) > 20
    generated = {"docs/reference/configuration.md"}
    assert [name for name in targets if name not in generated and not (DOCS.parent / name).is_file()] == []
    (link,) = re.findall(r"\((https.+)\)", ErrorLinks("https://x.org").plain("See [the runbook](../runbook.md#a)."))
    assert link == "https://x.org/runbook.html#a"


def test_the_command_prints_every_entry(tmp_path: Path) -> None:
    config = tmp_path / "loader.toml"
    without = CliRunner().invoke(app, ["--config", str(config), "errors"])
    assert without.exit_code == 0
    assert "\nThe log was purged: #log-purged\n" in without.stdout
    links = "runbook (docs/runbook.md#log-purged). If another server took over, see Failover"
    assert f"See the {links} (docs/how-to/failover.md#with-gtids).\n" in without.stdout
    config.write_text("not TOML")
    assert CliRunner().invoke(app, ["--config", str(config), "errors"]).stdout == without.stdout
    config.write_text(SITE + GOOD)
    listed = CliRunner().invoke(app, ["--config", str(config), "--json", "errors"])
    entries = json.loads(listed.stdout)["errors"]
    assert [entry["anchor"] for entry in entries] == [entry.anchor for entry in error_entries()]
    assert entries[0]["link"] == "https://docs.example.org/loader/reference/errors.html#log-purged"


@pytest.mark.parametrize("as_json", [False, True])
def test_an_error_ends_with_its_link_if_the_configuration_has_a_site(as_json: bool, tmp_path: Path) -> None:
    config = tmp_path / "loader.toml"
    argv = [sys.executable, "-m", "loader", "--config", str(config), *["--json"][:as_json], "plan"]
    link = "https://docs.example.org/loader/reference/errors.html#classes"
    for head, expected in ((SITE, link), ("", None)):
        config.write_text(head + TWO)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        if as_json:
            assert json.loads(done.stdout).get("link") == expected
        else:
            assert done.stderr.endswith(f"  read on: {link}\n" if expected else "--source: crm, shop\n")


def test_the_address_of_the_site_is_checked(tmp_path: Path) -> None:
    assert "docs_url" in str(complaint(tmp_path / "loader.toml", 'docs_url = "docs.example.org"\n' + GOOD))
