"""All Spark applications of the loader. Commands and operators take everything that tells them apart from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from loader.extract.spec import ExtractSpec
    from loader.initial_load.spec import InitialLoadSpec

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class JobKind:
    """A Spark application.

    Attributes:
        file: below `loader/`.
        short: it usually ends within seconds, because it reads recent changes instead of whole tables.
        reads_source: its tasks connect to the server or read its log.
        needs_spark: False if threads of one machine can do its work.
    """

    file: str
    short: bool = True
    reads_source: bool = False
    needs_spark: bool = True


KINDS = {
    "read_tables": JobKind("initial_load/job.py", short=False, reads_source=True, needs_spark=False),
    "load_tables": JobKind("materialise/jobs/load_job.py", short=False),
    "initial_load": JobKind("full_load/job.py", short=False, reads_source=True),
    "adopt": JobKind("materialise/jobs/adopt_job.py"),
    "extract": JobKind("extract/jobs/extract_job.py", reads_source=True, needs_spark=False),
    "reextract": JobKind("extract/jobs/reextract_job.py", reads_source=True),
    "restore": JobKind("extract/jobs/restore_job.py", reads_source=True, needs_spark=False),
    "materialise": JobKind("materialise/jobs/materialise_job.py"),
    "delta": JobKind("delta/job.py", reads_source=True),
    "verify": JobKind("verify/verify_job.py"),
    "replay": JobKind("materialise/jobs/replay_job.py", short=False),
    "maintain": JobKind("materialise/jobs/maintain_job.py", short=False),
    "snapshots": JobKind("materialise/jobs/snapshots_job.py"),
}


@dataclass(frozen=True)
class Job:
    """A Spark application with its input. `name`: see KINDS."""

    name: str
    spec: BaseModel

    @property
    def kind(self) -> JobKind:
        """What the application is."""
        return KINDS[self.name]

    @property
    def file(self) -> Path:
        """The file of the application."""
        return _PACKAGE / self.kind.file


def run_in_threads(job: Job, threads: int) -> dict[str, Any]:
    """Do the work of a job that needs no Spark in threads of this process. Return its result.

    Raises:
        LoaderError: the error of the job.
    """
    # Not at the top: these load the kernels of the codec.
    from loader.extract.backlog import stage_backlog
    from loader.extract.extraction import restore
    from loader.initial_load.run import stage_tables
    from loader.spark.workers import Threads

    workers = Threads(threads)
    result: BaseModel
    match job.name:
        case "read_tables":
            result = stage_tables(workers, cast("InitialLoadSpec", job.spec))
        case "restore":
            result = restore(workers, cast("ExtractSpec", job.spec))
        case "extract":
            result = stage_backlog(workers, cast("ExtractSpec", job.spec))
        case _:
            raise ValueError(f"{job.name} needs Spark")
    return result.model_dump(mode="json")
