"""What `loader status` shows of an initial load that is running."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from loader import pipeline
from loader.cli.app import app
from loader.error_page import ErrorLinks
from loader.initial_load import load_states
from loader.initial_load.chunk_task import load_chunk
from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import plan_load
from loader.initial_load.loads import Loads, plan_key
from loader.initial_load.run import _manifest as manifest_of
from loader.page.host import CommandLine
from loader.page.reports.report_cache import ReportCache
from loader.page.reports.source_report import ReportReader
from loader.page.site import Site
from loader.source.schemas import read_key
from loader.store.registry import open_store
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.pipeline.conftest import settings_of
from tests.unit.page.reading import read_page

pytestmark = pytest.mark.integration


class Loading:
    """A table of ten rows whose load has four chunks, which are read one by one."""

    def __init__(self, source: SourceServer, folder: Path) -> None:
        source.run(
            "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(10))",
            "INSERT INTO orders VALUES " + ", ".join(f"({number}, 'n')" for number in range(10)),
        )
        self.source, self.folder = source, folder
        self.settings = settings_of(source.address, f"{source.schema}.*", folder).model_copy(update={"chunk_rows": 3})
        spec = cast("Any", pipeline.read_tables_job(self.settings).spec)
        self.loads = Loads(open_store(self.settings.staging_root), spec.source, spec.generation)
        with source.connected() as connection:
            key = read_key(connection, source.name("orders"))
            assert key is not None
            self.plan: LoadPlan = self.loads.begin(plan_load(connection, spec, source.name("orders"), key))

    def read(self, number: int) -> None:
        load_chunk(self.source.address, self.settings.staging_root, plan_key(self.plan), "one", number)

    def publish(self) -> None:
        chunks = self.loads.chunks(self.plan).values()
        self.loads.publish(self.plan, manifest_of(self.source.address, self.plan, chunks))

    def command(self, *arguments: str) -> str:
        config = self.folder / "loader.toml"
        config.write_text(
            f'[staging]\nroot = "{self.settings.staging_root}"\n[warehouse]\npath = "{self.folder}/warehouse"\n'
            f'[spark]\njars = "{self.folder}"\n[sources.shop]\nhost = "127.0.0.1"\nport = {self.source.address.port}\n'
            f'user = "root"\npassword = ""\ntables.include = ["{self.source.schema}.*"]\n'
        )
        done = CliRunner().invoke(app, ["--config", str(config), *arguments])
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    def status(self) -> dict[str, Any]:
        (load,) = json.loads(self.command("--json", "status"))["loads"]
        return cast("dict[str, Any]", load)

    def page(self) -> list[str]:
        """The cells of the row of the load on the page of its source."""
        cache = ReportCache(ReportReader(lambda _: self.settings).read, patience=60)
        answer = Site(["shop"], cache, CommandLine(ErrorLinks())).answer("source", {"name": "shop"})
        (row,) = read_page(answer.body.decode()).rows("Initial loads")
        return row

    def line(self) -> list[str]:
        """The words of the line of the load."""
        lines = self.command("status").splitlines()
        (title,) = (number for number, line in enumerate(lines) if line.startswith("initial load of"))
        return lines[title + 1].split()


def test_the_status_of_a_load(source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = Loading(source, tmp_path)
    table = f"{source.schema}.orders"
    nothing = loading.status()
    assert nothing == {
        "table": table, "chunks": 4, "staged": 0, "finished": False, "rows": 0, "bytes": 0, "estimated": False,
        "newest_chunk": None, "rows_per_second": None, "seconds_left": None,
    }  # fmt: skip
    assert loading.page() == [table, "0 of 4", "0 of 4", "0", "0 bytes", "unknown", "none", "unknown"]
    for number in range(3):
        loading.read(number)
    files = [cast("Any", chunk.file) for chunk in loading.loads.chunks(loading.plan).values()]
    times = sorted(loading.loads.chunk_times(loading.plan))

    class Clock:
        """Ten seconds after the first chunk."""

        @staticmethod
        def now(_: object) -> object:
            return times[0] + timedelta(seconds=10)

    monkeypatch.setattr(load_states, "datetime", Clock)
    size = sum(file.bytes for file in files)
    assert loading.status() == nothing | {
        "staged": 3, "rows": 9, "bytes": size, "newest_chunk": times[-1].isoformat().replace("+00:00", "Z"),
        "rows_per_second": 0.6, "seconds_left": 5.0,
    }  # fmt: skip
    assert loading.line() == [table, "3", "of", "4", "9", "0.0", "1", "0:00:05", "reading"]
    shown = loading.page()
    assert shown[:6] == [table, "3 of 4", "3 of 4", "9", f"{size} bytes", "1"]
    assert shown[7] == "about 5 s"

    monkeypatch.setattr(load_states, "_PACE_CHUNKS", 2)
    newest = loading.status()
    assert (newest["rows"], newest["estimated"]) == (9, True)
    assert loading.line()[4:6] == ["about", "9"]
    assert loading.page()[3] == "about 9"

    loading.read(3)
    loading.publish()
    size += cast("Any", loading.loads.chunks(loading.plan)[3].file).bytes
    assert loading.status() == nothing | {"staged": 4, "rows": 10, "bytes": size, "finished": True}
    staged = "all chunks are staged; not in the warehouse yet"
    assert loading.page() == [table, "4 of 4", "4 of 4", "10", f"{size} bytes", "", "", staged]
    assert loading.line() == [table, "4", "of", "4", "10", "0.0", "staged,", "not", "in", "the", "warehouse"]
