"""The staging store is gone in the middle of an extraction: worth a retry, and the same bytes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from infra.s3server import S3Process, run_s3
from loader import pipeline
from loader.errors import StoreUnavailable
from loader.extract.extraction import extract, reextract
from loader.failpoints import failpoint
from loader.pipeline import chain_of, extract_job, plan_interval
from loader.s3 import open_client
from loader.spark.workers import Threads
from loader.staging import parts
from tests.integration.pipeline.conftest import Source
from tests.unit.binlog.reading import fields, records

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]
ROWS = 400


@pytest.fixture
def on_s3(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Source, S3Process]]:
    """The source with its staging on an S3 server of its own."""
    folder = tmp_path / "buckets"
    folder.mkdir()
    with run_s3(folder) as process:
        for variable, value in process.server.environment.items():
            monkeypatch.setenv(variable, value)
        open_client(endpoint=process.server.endpoint).create_bucket(Bucket="staging")
        root = f"s3://staging/a?endpoint={process.server.endpoint}&path_style=True"
        settings = source.settings.model_copy(update={"staging_root": root, "part_bytes": 4096})
        pipeline.begin(settings)
        yield replace(source, settings=settings), process


def at_point(point: str, action: Callable[[], object], patch: pytest.MonkeyPatch) -> list[str]:
    """Do it at the second passage of a point of the writer of parts, or at the first one of the manifest."""
    passed: list[str] = []

    def reached(name: str) -> None:
        failpoint(name)
        if name == point:
            passed.append(name)
            if len(passed) == (2 if point.startswith("part") else 1):
                action()

    for module in ("loader.staging.parts", "loader.staging.chain"):
        patch.setattr(f"{module}.failpoint", reached)
    return passed


def in_a_file(action: Callable[[], object], patch: pytest.MonkeyPatch) -> list[str]:
    """Do it after the second piece of lines was written."""
    passed: list[str] = []
    write = parts.PartWriter.write

    def written(self: parts.PartWriter, *arguments: Any) -> None:
        write(self, *arguments)
        passed.append("write")
        if len(passed) == 2:
            action()

    patch.setattr(parts.PartWriter, "write", written)
    return passed


def extracted(source: Source, start: int) -> str:
    """The status of an extraction in this process."""
    return extract(Threads(2), cast("Any", extract_job(source.settings, start).spec)).status


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["part.before", "write", "part.after", "manifest.before", "manifest.after"])
def test_an_object_store_that_goes_away_in_an_extraction(
    on_s3: tuple[Source, S3Process], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    source, process = on_s3
    source.insert(*range(ROWS))
    chosen = plan_interval(source.settings)
    assert chosen is not None
    try:
        with monkeypatch.context() as patch:
            begin = in_a_file if point == "write" else lambda *given: at_point(point, *given)
            passed = begin(process.stop, patch)
            with pytest.raises(StoreUnavailable) as caught:
                extracted(source, chosen.start_seqno)
            assert (caught.value.what, caught.value.retryable) == ("S3 does not answer", True)
    finally:
        process.start()
    assert passed
    assert extracted(source, chosen.start_seqno) == ("already" if point == "manifest.after" else "staged")
    assert extracted(source, chosen.start_seqno) == "already"
    chain = chain_of(source.settings)
    manifest = chain.manifest("0001", chosen.start_seqno)
    assert manifest is not None
    assert len(manifest.files) > 2
    lines = [fields(line) for file in manifest.files for line in records(chain.store.get(file.key))]
    assert sorted(int(str(line[5])) for line in lines) == list(range(ROWS))
    assert reextract(Threads(2), cast("Any", extract_job(source.settings, chosen.start_seqno).spec)).differences == ()
