"""The Spark job that stages initial loads: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.job import job_main
from loader.snapshot.run import snapshot
from loader.snapshot.spec import SnapshotSpec

if __name__ == "__main__":
    job_main(snapshot, SnapshotSpec)
