"""Every Spark application has its file, and only those of one machine run without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.materialise.spec import CatalogSettings, SnapshotsSpec
from loader.pipeline import KINDS, Job, run_in_threads

SPEC = SnapshotsSpec(catalog=CatalogSettings(type="hadoop", warehouse="/w"), snapshots={})
PACKAGE = Path(__file__).resolve().parents[3] / "loader"


def test_every_application_of_the_package_is_a_kind_of_job() -> None:
    programs = {path for path in PACKAGE.rglob("*job.py") if '__name__ == "__main__"' in path.read_text()}
    others = programs - {Job(name, SPEC).file for name in KINDS}
    # The doctor, the comparison of the tests and the demo, and the making of the archive of classes.
    names = {path.relative_to(PACKAGE).as_posix() for path in others}
    assert names == {"doctor/job.py", "verify/job.py", "materialise/jobs/warm_job.py"}
    assert all(Job(name, SPEC).file in programs for name in KINDS)


def test_what_needs_spark_is_not_run_in_threads() -> None:
    for name in (name for name, kind in KINDS.items() if kind.needs_spark):
        with pytest.raises(ValueError, match=f"{name} needs Spark"):
            run_in_threads(Job(name, SPEC), 1)
