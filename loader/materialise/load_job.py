"""The Spark job that makes tables from initial loads: `spark-submit load_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.job import job_main
from loader.materialise.run import load
from loader.materialise.spec import LoadSpec

if __name__ == "__main__":
    job_main(load, LoadSpec)
